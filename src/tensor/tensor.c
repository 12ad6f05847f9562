/* tensor/tensor.c: tensors: made, looked at, released. */
#include "tensor/tensor.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "tensor/record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- Making --- */

/* Released ones are used again: their structs are all of one size. */
enum { MOST_UNUSED = 1024 };

static wick_tensor *take_unused(wick_device *device) {
    wick_tensor *const tensor = device->unused;
    if (!tensor) return NULL;
    wk_permit(tensor, offsetof(wick_tensor, next));
    device->unused = tensor->next;
    device->n_unused--;
    return tensor;
}

void wk_tensors_free_unused(wick_device *device) {
    for (wick_tensor *tensor; (tensor = take_unused(device));)
        wk_free(&device->heap, tensor, sizeof *tensor);
}

static void keep_unused(wick_device *device, wick_tensor *tensor) {
    if (device->n_unused == MOST_UNUSED) {
        wk_free(&device->heap, tensor, sizeof *tensor);
        return;
    }
    tensor->next = device->unused;
    device->unused = tensor;
    device->n_unused++;
    wk_forbid(tensor, offsetof(wick_tensor, next)); /* a search for leaks follows the list */
}

/* Without its view; NULL: no memory. */
static wick_tensor *take(wick_device *device) {
    wick_tensor *tensor = take_unused(device);
    if (!tensor) tensor = wk_alloc(&device->heap, sizeof *tensor);
    if (!tensor) (void)wk_fail_memory(device->err, sizeof *tensor, "a tensor");
    return tensor;
}

/* With its view. */
static wick_tensor *begin(wick_device *device, wick_tensor *tensor) {
    tensor->device = device;
    tensor->refs = 1;
    tensor->scope = 0;
    tensor->next = tensor->newer = NULL;
    tensor->older = device->newest;
    if (tensor->older) tensor->older->newer = tensor;
    device->newest = tensor;
    return tensor;
}

wick_tensor *wk_tensor_over(wick_device *device, const wk_view *view) {
    wick_tensor *const tensor = take(device);
    if (!tensor) {
        wk_buffer_release(device, view->buf);
        return NULL;
    }
    tensor->view = *view;
    return begin(device, tensor);
}

static wick_tensor *enter_scope(wick_device *device, wick_tensor *tensor) {
    if (device->scope_depth == 0) return tensor;
    assert(device->scope_depth <= device->scope_capacity);
    wick_tensor **const list = &device->scopes[device->scope_depth - 1];
    tensor->scope = device->scope_depth;
    tensor->next = *list;
    *list = tensor;
    return tensor;
}

wick_tensor *wk_tensor_in_scope(wick_device *device, const wk_view *view) {
    wick_tensor *const tensor = wk_tensor_over(device, view);
    return tensor ? enter_scope(device, tensor) : NULL;
}

/* A dense view; false after reporting the reason. */
static bool dense_view(wick_device *device, wick_dtype dtype, const wick_shape *shape,
                       wk_view *view, uint64_t *bytes) {
    if (wk_view_dense(dtype, shape, view, bytes)) return true;
    char text[96];
    if ((unsigned)dtype >= WICK_DTYPE_COUNT_)
        (void)wk_device_fail(device, WICK_ERR_DTYPE, "there is no dtype number %d", (int)dtype);
    else if (shape->rank < 0 || shape->rank > WICK_MAX_RANK)
        (void)wk_device_fail(device, WICK_ERR_SHAPE, "a tensor has 0 to %d dims, not %d",
                             WICK_MAX_RANK, shape->rank);
    else
        (void)wk_device_fail(device, WICK_ERR_SHAPE, "a tensor of %s cannot have the shape %s",
                             wick_dtype_name(dtype), wk_shape_text(shape, text, sizeof text));
    return false;
}

/* The same, over memory of its own. */
static bool new_view(wick_device *device, wick_dtype dtype, const wick_shape *shape,
                     wk_view *view) {
    uint64_t bytes;
    if (!dense_view(device, dtype, shape, view, &bytes)) return false;
    const uint64_t row = wk_shape_row_bytes(dtype, shape);
    const wick_status status = device->recording
                                   ? wk_plan_place(device->recording, bytes, row, &view->buf)
                                   : wk_buffer_new(device, bytes, row, &view->buf);
    return status == WICK_OK;
}

wick_tensor *wk_tensor_new(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    wick_tensor *const tensor = take(device);
    if (!tensor) return NULL;
    if (new_view(device, dtype, shape, &tensor->view))
        return enter_scope(device, begin(device, tensor));
    keep_unused(device, tensor);
    return NULL;
}

wick_tensor *wk_tensor_of_view(wick_device *device, const wk_view *view) {
    wk_buffer_retain(view->buf);
    return wk_tensor_in_scope(device, view);
}

wick_tensor *wk_tensor_view(wick_tensor *tensor, const wk_view *view, const wk_view_step *step) {
    assert(view->buf == tensor->view.buf && view->dtype == tensor->view.dtype);
    wick_tensor *const made = wk_tensor_of_view(tensor->device, view);
    if (made)
        wk_observers_show(tensor->device, NULL,
                          &(wk_view_made){.from = tensor, .to = made, .step = step}, NULL);
    return made;
}

wick_tensor *wick_empty(wick_device *device, wick_dtype dtype, wick_shape shape) {
    return device ? wk_tensor_new(device, dtype, &shape) : NULL;
}

/* --- Looking and releasing --- */

wick_tensor *wick_retain(wick_tensor *tensor) {
    if (tensor) tensor->refs++;
    return tensor;
}

void wk_tensor_leave_scope(wick_tensor *tensor) {
    assert(tensor->scope <= tensor->device->scope_depth); /* ended scopes own nothing */
    wick_tensor **at = &tensor->device->scopes[tensor->scope - 1];
    while (*at && *at != tensor) at = &(*at)->next;
    if (*at) *at = tensor->next;
}

void wick_release(wick_tensor *tensor) {
    if (!tensor) return;
    assert(tensor->refs > 0);
    if (--tensor->refs > 0) return;
    if (tensor->scope) wk_tensor_leave_scope(tensor); /* released by hand inside its scope */
    wick_device *const device = tensor->device;
    if (tensor->older) tensor->older->newer = tensor->newer;
    if (tensor->newer)
        tensor->newer->older = tensor->older;
    else
        device->newest = tensor->older;
    wk_buffer_release(device, tensor->view.buf);
    keep_unused(device, tensor);
}

void wk_tensors_tell_left(const wick_device *device) {
    enum { MOST_SHOWN = 8 };
    size_t n = 0;
    if (!device->desc.log || !device->newest) return;
    for (const wick_tensor *tensor = device->newest; tensor; tensor = tensor->older) n++;
    char text[512];
    int used = snprintf(text, sizeof text,
                        "the device is closed with %zu tensor%s that %s never released:", n,
                        n == 1 ? "" : "s", n == 1 ? "was" : "were");
    const wick_tensor *tensor = device->newest;
    for (int i = 0; tensor && i < MOST_SHOWN; i++, tensor = tensor->older) {
        const wick_shape shape = wk_tensor_shape_of(tensor);
        char extents[96];
        if ((size_t)used < sizeof text)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s %s%s", i > 0 ? "," : "",
                             wick_dtype_name(tensor->view.dtype),
                             wk_shape_text(&shape, extents, sizeof extents));
    }
    if (tensor && (size_t)used < sizeof text)
        (void)snprintf(text + used, sizeof text - (size_t)used, " and older ones");
    device->desc.log(device->desc.log_user, WICK_LOG_WARNING, text);
}

wick_dtype wick_tensor_dtype(const wick_tensor *tensor) {
    return tensor ? tensor->view.dtype : WICK_F32;
}

wick_shape wick_tensor_shape(const wick_tensor *tensor) {
    return tensor ? wk_tensor_shape_of(tensor) : WICK_SHAPE(0);
}

wick_device *wick_tensor_device(const wick_tensor *tensor) {
    return tensor ? tensor->device : NULL;
}

int64_t wick_tensor_size(const wick_tensor *tensor) {
    return tensor ? wk_view_count(&tensor->view) : 0;
}

size_t wick_tensor_bytes(const wick_tensor *tensor) {
    uint64_t bytes = 0;
    if (!tensor) return 0;
    (void)wk_dtype_bytes(tensor->view.dtype, wk_view_count(&tensor->view), &bytes);
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX; /* of 32 bits: no memory is as large */
}
