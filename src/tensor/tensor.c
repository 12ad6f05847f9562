/* tensor/tensor.c: tensors: made, looked at, released. */
#include "tensor/tensor.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "tensor/device.h"

#include <assert.h>
#include <string.h>

/* --- Making --- */

/* Takes over one reference to view->buf, also on failure. */
static wick_tensor *make(wick_device *device, const wk_view *view) {
    wick_tensor *const tensor = wk_alloc_zeroed(&device->heap, sizeof *tensor);
    if (!tensor) {
        wk_buffer_release(device, view->buf);
        (void)wk_fail_memory(&device->error, sizeof *tensor, 0, "a tensor");
        return NULL;
    }
    tensor->device = device;
    tensor->view = *view;
    tensor->refs = 1;
    return tensor;
}

static wick_tensor *into_scope(wick_tensor *tensor) {
    if (!tensor || tensor->device->scope_depth == 0) return tensor;
    wick_tensor **const list = &tensor->device->scopes[tensor->device->scope_depth - 1];
    tensor->scope = tensor->device->scope_depth;
    tensor->next = *list;
    *list = tensor;
    return tensor;
}

static bool dense_view(wick_device *device, wick_dtype dtype, const wick_shape *shape,
                       wk_view *view, uint64_t *bytes) {
    int64_t count;
    char text[96];
    if (dtype >= WICK_DTYPE_COUNT_) {
        (void)wk_device_fail(device, WICK_ERR_DTYPE, "there is no dtype number %d", (int)dtype);
        return false;
    }
    if (!wk_shape_count(shape, &count) || !wk_dtype_bytes(dtype, count, bytes)) {
        (void)wk_device_fail(device, WICK_ERR_SHAPE, "a tensor of %s cannot have the shape %s",
                             wick_dtype_name(dtype), wk_shape_text(shape, text, sizeof text));
        return false;
    }
    *view = (wk_view){.dtype = dtype, .rank = shape->rank};
    memcpy(view->extent, shape->extent, sizeof view->extent);
    wk_shape_dense(shape, view->stride);
    return true;
}

wick_tensor *wk_tensor_new(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    wk_view view;
    uint64_t bytes;
    if (!dense_view(device, dtype, shape, &view, &bytes)) return NULL;
    const wick_status status = device->recording
                                   ? wk_plan_place(device->recording, bytes, &view.buf)
                                   : wk_buffer_new(device, bytes, &view.buf);
    return status == WICK_OK ? into_scope(make(device, &view)) : NULL;
}

wick_tensor *wk_tensor_view(wick_tensor *tensor, const wk_view *view) {
    assert(view->buf == tensor->view.buf && view->dtype == tensor->view.dtype);
    wk_buffer_retain(view->buf);
    return into_scope(make(tensor->device, view));
}

wick_tensor *wick_empty(wick_device *device, wick_dtype dtype, wick_shape shape) {
    return device ? wk_tensor_new(device, dtype, &shape) : NULL;
}

wick_tensor *wick_tensor_from_data(wick_device *device, wick_dtype dtype, wick_shape shape,
                                   const void *data, size_t size) {
    wick_tensor *const tensor = wick_empty(device, dtype, shape);
    if (!tensor || wick_write(tensor, data, size) == WICK_OK) return tensor;
    if (tensor->scope == 0) wick_release(tensor); /* else its scope does */
    return NULL;
}

wick_tensor *wick_tensor_from_memory(wick_device *device, wick_dtype dtype, wick_shape shape,
                                     void *memory, size_t size, void (*deleter)(void *user),
                                     void *user) {
    /* Every backend so far computes on memory of its own: the bytes are copied. */
    wick_tensor *const tensor = wick_tensor_from_data(device, dtype, shape, memory, size);
    if (deleter) deleter(user);
    return tensor;
}

/* --- Weights --- */

uint64_t wk_weight_bytes(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                         uint32_t uses) {
    int64_t count;
    uint64_t bytes = 0;
    if (!wk_shape_count(shape, &count)) return 0;
    if (shape->rank != 2) return wk_dtype_bytes(dtype, count, &bytes) ? bytes : 0;
    const int64_t n = shape->extent[0], k = shape->extent[1];
    const wk_layout layout =
        device->backend->prepare_weight(device->handle, dtype, n, k, uses);
    return wk_layout_bytes(layout, dtype, n, k, &bytes) ? bytes : 0;
}

wick_tensor *wk_weight_new(wick_device *device, wick_dtype dtype, const wick_shape *shape,
                           uint32_t uses, const void *data, bool *in_place) {
    wk_view view;
    uint64_t bytes;
    *in_place = false;
    if (!dense_view(device, dtype, shape, &view, &bytes)) return NULL;
    if (shape->rank == 2) {
        view.layout = (uint8_t)device->backend->prepare_weight(
            device->handle, dtype, shape->extent[0], shape->extent[1], uses);
        if (!wk_layout_bytes((wk_layout)view.layout, dtype, shape->extent[0], shape->extent[1],
                             &bytes)) {
            (void)wk_device_fail(device, WICK_ERR_SHAPE, "a weight of this size has no layout");
            return NULL;
        }
    }
    if (data && view.layout == WK_LAYOUT_RAW && device->backend->wrap) {
        /* The bytes are only ever read: no op takes a weight as its destination. */
        view.buf = device->backend->wrap(device->handle, (void *)(uintptr_t)data, bytes);
        if (view.buf) view.buf->refs = 1;
        *in_place = view.buf != NULL;
    }
    if (!view.buf && wk_buffer_new(device, bytes, &view.buf) != WICK_OK) return NULL;
    return make(device, &view);
}

wick_status wk_weight_upload(wick_tensor *weight, int64_t first_row, int64_t n_rows,
                             const void *blocks) {
    wick_device *const device = weight->device;
    const wk_view *const view = &weight->view;
    if (view->rank == 2)
        return device->backend->upload_rows(device->handle, view, first_row, n_rows, blocks,
                                            &device->error);
    /* A vector is one row. */
    uint64_t bytes;
    if (!wk_dtype_bytes(view->dtype, wk_view_count(view), &bytes))
        return wk_device_fail(device, WICK_ERR_SHAPE, "a weight of this size cannot be stored");
    return device->backend->upload(device->handle, view->buf, view->offset, blocks, bytes,
                                   &device->error);
}

/* --- Looking and releasing --- */

wick_tensor *wick_retain(wick_tensor *tensor) {
    if (tensor) tensor->refs++;
    return tensor;
}

static void leave_scope(wick_tensor *tensor) {
    wick_tensor **at = &tensor->device->scopes[tensor->scope - 1];
    while (*at && *at != tensor) at = &(*at)->next;
    if (*at) *at = tensor->next;
}

void wick_release(wick_tensor *tensor) {
    if (!tensor) return;
    assert(tensor->refs > 0);
    if (--tensor->refs > 0) return;
    if (tensor->scope) leave_scope(tensor); /* released by hand inside its scope */
    wick_device *const device = tensor->device;
    wk_buffer_release(device, tensor->view.buf);
    wk_free(&device->heap, tensor, sizeof *tensor);
}

wick_dtype wick_tensor_dtype(const wick_tensor *tensor) { return tensor->view.dtype; }

wick_shape wick_tensor_shape(const wick_tensor *tensor) { return wk_tensor_shape_of(tensor); }

wick_device *wick_tensor_device(const wick_tensor *tensor) { return tensor->device; }

int64_t wick_tensor_size(const wick_tensor *tensor) { return wk_view_count(&tensor->view); }

size_t wick_tensor_bytes(const wick_tensor *tensor) {
    uint64_t bytes = 0;
    (void)wk_dtype_bytes(tensor->view.dtype, wk_view_count(&tensor->view), &bytes);
    return (size_t)bytes;
}
