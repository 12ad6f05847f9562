/* tensor/scope.c: scopes: who frees the temporaries. */
#include "tensor/device.h"

#include <assert.h>

wick_scope wick_scope_begin(wick_device *device) {
    if (device->scope_depth == device->scope_capacity) {
        const uint32_t capacity = device->scope_capacity ? 2 * device->scope_capacity : 8;
        wick_tensor **const grown =
            wk_realloc(&device->heap, device->scopes, device->scope_capacity * sizeof *grown,
                       capacity * sizeof *grown);
        if (!grown) {
            /* Depth 0 marks a scope that could not be opened: its tensors go to the one around it.
             */
            (void)wk_fail_memory(&device->error, capacity * sizeof *grown, 0, "a scope");
            return (wick_scope){.device = device};
        }
        device->scopes = grown;
        device->scope_capacity = capacity;
    }
    device->scopes[device->scope_depth++] = NULL;
    return (wick_scope){.device = device, .depth = device->scope_depth};
}

void wick_scope_end(wick_scope scope) {
    wick_device *const device = scope.device;
    if (scope.depth == 0) return;
    assert(scope.depth == device->scope_depth);
    wick_tensor *tensor = device->scopes[scope.depth - 1];
    while (tensor) {
        wick_tensor *const next = tensor->next;
        tensor->scope = 0;
        wick_release(tensor);
        tensor = next;
    }
    device->scope_depth--;
}
