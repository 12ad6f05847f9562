/* tensor/weight.c: weights: tensors in the layout that their device wants. */
#include "tensor/device.h"

#include "core/dtype.h"
#include "core/shape.h"

uint64_t wk_weight_bytes(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                         uint32_t uses) {
    int64_t count;
    uint64_t bytes = 0;
    if (!wk_shape_count(shape, &count)) return 0;
    if (shape->rank != 2) return wk_dtype_bytes(dtype, count, &bytes) ? bytes : 0;
    const int64_t n = shape->extent[0], k = shape->extent[1];
    const wk_layout layout = device->backend->prepare_weight(device->handle, dtype, n, k, uses);
    return wk_layout_bytes(layout, dtype, n, k, &bytes) ? bytes : 0;
}

wick_tensor *wk_weight_new(wick_device *device, wick_dtype dtype, const wick_shape *shape,
                           uint32_t uses, const void *data, bool *in_place) {
    wk_view view;
    uint64_t bytes;
    *in_place = false;
    if (!wk_view_dense(dtype, shape, &view, &bytes)) {
        (void)wk_device_fail(device, WICK_ERR_SHAPE, "no weight of %s can have this shape",
                             wick_dtype_name(dtype));
        return NULL;
    }
    if (shape->rank == 2) {
        view.layout = (uint8_t)device->backend->prepare_weight(
            device->handle, dtype, shape->extent[0], shape->extent[1], uses);
        if (!wk_layout_bytes((wk_layout)view.layout, dtype, shape->extent[0], shape->extent[1],
                             &bytes)) {
            (void)wk_device_fail(device, WICK_ERR_SHAPE, "a weight of this size has no layout");
            return NULL;
        }
    }
    if (data && view.layout == WK_LAYOUT_RAW) {
        /* The bytes are only ever read: no op takes a weight as its destination. */
        view.buf = wk_buffer_wrap(device, (void *)(uintptr_t)data, bytes, (wk_memory_owner){0});
        *in_place = view.buf != NULL;
    }
    if (!view.buf && wk_buffer_new(device, bytes, &view.buf) != WICK_OK) return NULL;
    return wk_tensor_over(device, &view);
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
