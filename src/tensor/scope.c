/* tensor/scope.c: scopes: who frees the temporaries. */
#include "tensor/device.h"

enum { FIRST_SCOPES = 8 };

/* The outermost scope must always open: without it, no scope would own its tensors. */
wick_status wk_scopes_make(wick_device *device, wick_error *err) {
    const size_t size = FIRST_SCOPES * sizeof *device->scopes;
    device->scopes = wk_alloc(&device->heap, size);
    if (!device->scopes) return wk_fail_memory(err, size, "a device's scopes");
    device->scope_capacity = FIRST_SCOPES;
    return WICK_OK;
}

wick_scope wick_scope_begin(wick_device *device) {
    if (!device) return (wick_scope){0};
    if (device->scope_depth == device->scope_capacity) {
        const uint32_t capacity = 2 * device->scope_capacity;
        wick_tensor **const grown =
            wk_realloc(&device->heap, device->scopes, device->scope_capacity * sizeof *grown,
                       capacity * sizeof *grown);
        if (!grown) {
            /* Depth 0 marks a scope that could not be opened: its tensors go to the one around it.
             */
            (void)wk_fail_memory(device->err, capacity * sizeof *grown, "a scope");
            return (wick_scope){.device = device};
        }
        device->scopes = grown;
        device->scope_capacity = capacity;
    }
    device->scopes[device->scope_depth++] = NULL;
    return (wick_scope){.device = device, .depth = device->scope_depth};
}

wick_scope wk_operation_begin(wick_device *device, const char *name) {
    const wick_scope scope = wick_scope_begin(device);
    if (!device->operation && scope.depth > 0) {
        device->operation = name;
        device->operation_depth = scope.depth;
    }
    return scope;
}

/* A tensor's deleter may make and release others, and even end the scope. */
static void end_innermost(wick_device *device) {
    const uint32_t last = device->scope_depth - 1;
    for (wick_tensor *tensor; (tensor = device->scopes[last]);) {
        device->scopes[last] = tensor->next;
        tensor->scope = 0;
        wick_release(tensor);
    }
    device->scope_depth = last;
    if (device->operation_depth > last) {
        device->operation = NULL;
        device->operation_depth = 0;
    }
}

/* Scopes left open inside this one end with it. */
void wick_scope_end(wick_scope scope) {
    if (scope.depth == 0) return;
    while (scope.device->scope_depth >= scope.depth) end_innermost(scope.device);
}

/* y, of that scope or one inside it, goes to the list of the one around it, or to the caller. */
wick_tensor *wk_scope_keep(wick_scope scope, wick_tensor *y) {
    if (!y || y->device != scope.device || scope.depth == 0 || y->scope < scope.depth) return y;
    wk_tensor_leave_scope(y);
    wick_device *const device = scope.device;
    y->scope = scope.depth - 1;
    y->next = NULL;
    if (y->scope > 0) {
        y->next = device->scopes[y->scope - 1];
        device->scopes[y->scope - 1] = y;
    }
    return y;
}

wick_tensor *wick_scope_result(wick_scope scope, wick_tensor *tensor) {
    (void)wk_scope_keep(scope, tensor);
    wick_scope_end(scope);
    return tensor;
}
