/* tensor/weight.c: weights: tensors in the layout that their device wants. */
#include "tensor/device.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "tensor/record.h"

#include <assert.h>

enum { STORE_ALIGNMENT = 64 };

static uint64_t align(uint64_t bytes) {
    return (bytes + STORE_ALIGNMENT - 1) / STORE_ALIGNMENT * STORE_ALIGNMENT;
}

/* True for a matrix, and for several of one shape, stored one after the other. */
static bool has_rows(const wick_shape *shape) { return shape->rank >= 2; }

static int64_t count_rows(const wick_shape *shape) {
    int64_t rows = 1;
    for (int i = 0; i < shape->rank - 1; i++) rows *= shape->extent[i];
    return rows;
}

static int64_t row_length(const wick_shape *shape) {
    assert(shape->rank > 0);
    return shape->extent[shape->rank - 1];
}

/* Matrices whose last panels are not full stay rows: a panel belongs to one of them. */
static wk_layout layout_for(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                            uint32_t uses) {
    int64_t count;
    const bool is_whole =
        shape->rank == 2 || (shape->rank == 3 && shape->extent[1] % WK_PANEL_ROWS == 0);
    if (!is_whole || !wk_shape_count(shape, &count)) return WK_LAYOUT_RAW;
    return device->backend->prepare_weight(device->handle, dtype, count_rows(shape),
                                           row_length(shape), uses);
}

static bool find_bytes(wk_layout layout, wick_dtype dtype, const wick_shape *shape,
                       uint64_t *bytes) {
    int64_t count;
    if (!wk_shape_count(shape, &count)) return false;
    if (!has_rows(shape)) return wk_dtype_bytes(dtype, count, bytes);
    return wk_layout_bytes(layout, dtype, count_rows(shape), row_length(shape), bytes);
}

uint64_t wk_weight_bytes(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                         uint32_t uses) {
    uint64_t bytes;
    const wk_layout layout = layout_for(device, dtype, shape, uses);
    return find_bytes(layout, dtype, shape, &bytes) ? bytes : 0;
}

bool wk_weight_is_raw(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                      uint32_t uses) {
    return layout_for(device, dtype, shape, uses) == WK_LAYOUT_RAW;
}

/* Vectors are copied: to reach one in a mapped file costs as much memory as the system maps at
 * once, up to 2 MiB. */
static bool can_be_in_place(const wick_device *device, const wk_weight_desc *desc,
                            wk_layout layout) {
    return device->backend->wrap && layout == WK_LAYOUT_RAW && has_rows(&desc->shape);
}

uint64_t wk_weight_room(const wick_device *device, const wk_weight_desc *desc, bool is_mapped) {
    uint64_t bytes;
    const wk_layout layout = layout_for(device, desc->dtype, &desc->shape, desc->uses);
    if (is_mapped && can_be_in_place(device, desc, layout)) return 0;
    return find_bytes(layout, desc->dtype, &desc->shape, &bytes) ? align(bytes) : 0;
}

wick_status wk_weight_store_make(wick_device *device, uint64_t bytes, wk_weight_store *out) {
    *out = (wk_weight_store){.device = device};
    /* No object is larger than PTRDIFF_MAX, 2 GiB in WebAssembly; some of it is for the heap. */
    const bool is_object = bytes > 0 && bytes <= PTRDIFF_MAX / 2;
    return is_object && device->backend->joins_weights ? wk_buffer_new(device, bytes, 0, &out->buf)
                                                       : WICK_OK;
}

void wk_weight_store_release(wk_weight_store *store) {
    if (store->buf) wk_buffer_release(store->device, store->buf);
    *store = (wk_weight_store){0};
}

/* What kernels read together of a weight: one of several matrices, else a panel, else a row. */
static uint64_t granule_of(const wk_view *view) {
    const wick_shape shape = wick_shape_of(view->rank, view->extent);
    const int64_t k = view->rank > 0 ? row_length(&shape) : 1;
    const uint64_t n = view->rank == 3 ? (uint64_t)view->extent[1] : 1;
    if (view->layout == WK_LAYOUT_RAW) return n * wk_shape_row_bytes(view->dtype, &shape);
    return (n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS *
           (uint64_t)wk_panel_bytes((wk_layout)view->layout, k);
}

bool wk_device_joins_products(const wick_device *device) { return device->backend->joins_products; }

/* The memory of a weight: a part of the store or a buffer of its own. */
static wick_status place(wk_weight_store *store, wick_device *device, uint64_t bytes,
                         wk_view *view) {
    if (device->recording)
        return wk_plan_place(device->recording, bytes, granule_of(view), &view->buf);
    if (!store->buf || align(bytes) > store->buf->size - store->used)
        return wk_buffer_new(device, bytes, granule_of(view), &view->buf);
    wk_buffer_retain(store->buf);
    view->buf = store->buf;
    assert(store->used % STORE_ALIGNMENT == 0 && store->device == device);
    view->offset = store->used;
    store->used += align(bytes);
    return WICK_OK;
}

/* A part of the memory that weights side by side share. */
static wick_status place_beside(wk_weight_store *store, wick_device *device,
                                const wk_weight_desc *desc, wk_view *view) {
    if (desc->neighbour) {
        view->buf = desc->neighbour->view.buf;
        view->offset = desc->neighbour->view.offset;
        wk_buffer_retain(view->buf);
    } else {
        WK_TRY(place(store, device, desc->room, view));
    }
    view->offset += desc->begin;
    return WICK_OK;
}

uint64_t wk_weight_footprint(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                             uint32_t uses) {
    wk_view view;
    uint64_t dense;
    const uint64_t bytes = wk_weight_bytes(device, dtype, shape, uses);
    if (!device->backend->footprint || !wk_view_dense(dtype, shape, &view, &dense)) return bytes;
    view.layout = (uint8_t)layout_for(device, dtype, shape, uses);
    return device->backend->footprint(device->handle, bytes, granule_of(&view));
}

wick_tensor *wk_weight_new(wick_device *device, const wk_weight_desc *desc, wk_weight_store *store,
                           bool *in_place) {
    wk_view view;
    uint64_t bytes;
    *in_place = false;
    const wk_layout layout = layout_for(device, desc->dtype, &desc->shape, desc->uses);
    if (!wk_view_dense(desc->dtype, &desc->shape, &view, &bytes) ||
        !find_bytes(layout, desc->dtype, &desc->shape, &bytes)) {
        (void)wk_device_fail(device, WICK_ERR_SHAPE, "no weight of %s can have this shape",
                             wick_dtype_name(desc->dtype));
        return NULL;
    }
    view.layout = (uint8_t)layout;
    if (desc->data && can_be_in_place(device, desc, layout)) {
        /* The bytes are only ever read: no op takes a weight as its destination. */
        view.buf =
            wk_buffer_wrap(device, (void *)(uintptr_t)desc->data, bytes, (wk_memory_owner){0});
        *in_place = view.buf != NULL;
    }
    if (!view.buf && desc->room > 0 && place_beside(store, device, desc, &view) != WICK_OK)
        return NULL;
    if (!view.buf && place(store, device, bytes, &view) != WICK_OK) return NULL;
    return wk_tensor_over(device, &view);
}

/* The rows of all matrices as those of one; they are dense. */
static wk_view as_matrix(const wk_view *view) {
    const int64_t k = view->extent[view->rank - 1];
    wk_view matrix = *view;
    matrix.rank = 2;
    matrix.extent[0] = wk_view_rows(view);
    matrix.extent[1] = matrix.stride[0] = k;
    matrix.stride[1] = 1;
    return matrix;
}

wick_status wk_weight_upload(wick_tensor *weight, int64_t first_row, int64_t n_rows,
                             const void *blocks) {
    wick_device *const device = weight->device;
    const wk_view *const view = &weight->view;
    WK_TRY(wk_buffer_usable(device, view->buf));
    if (view->rank >= 2) {
        const wk_view rows = as_matrix(view);
        return device->backend->upload_rows(device->handle, &rows, first_row, n_rows, blocks,
                                            device->err);
    }
    /* A vector is one row. */
    uint64_t bytes;
    if (!wk_dtype_bytes(view->dtype, wk_view_count(view), &bytes))
        return wk_device_fail(device, WICK_ERR_SHAPE, "a weight of this size cannot be stored");
    return device->backend->upload(device->handle, view->buf, view->offset, blocks, bytes,
                                   device->err);
}
