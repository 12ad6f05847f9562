/* backend/view.c: views: pure arithmetic on shapes, strides and offsets. */
#include "backend/backend.h"

#include "core/dtype.h"
#include "core/shape.h"

#include <string.h>

bool wk_view_dense(wick_dtype dtype, const wick_shape *shape, wk_view *out, uint64_t *bytes) {
    int64_t count;
    if ((unsigned)dtype >= WICK_DTYPE_COUNT_ || !wk_shape_count(shape, &count)) return false;
    /* Every row is whole blocks; rank 0 is a row of one element. */
    const int64_t row = shape->rank > 0 ? shape->extent[shape->rank - 1] : 1;
    if (row % wk_dtype_get(dtype)->block_elements != 0) return false;
    *out = (wk_view){.dtype = dtype, .rank = shape->rank};
    memcpy(out->extent, shape->extent, sizeof out->extent);
    wk_shape_dense(shape, out->stride);
    return wk_dtype_bytes(dtype, count, bytes);
}

int64_t wk_view_count(const wk_view *view) {
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++) count *= view->extent[i];
    return count;
}

bool wk_view_is_dense(const wk_view *view) {
    const wick_shape shape = wick_shape_of(view->rank, view->extent);
    return wk_shape_is_dense(&shape, view->stride);
}

void wk_view_range(const wk_view *view, uint64_t *begin, uint64_t *end) {
    *begin = *end = view->offset;
    if (wk_view_count(view) == 0) return;
    if (view->layout != WK_LAYOUT_RAW) {
        uint64_t bytes = 0;
        (void)wk_layout_bytes((wk_layout)view->layout, view->dtype, view->extent[0],
                              view->extent[1], &bytes);
        *end += bytes;
        return;
    }
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    int64_t last = 0; /* index of the last element */
    for (int i = 0; i < view->rank; i++) last += (view->extent[i] - 1) * view->stride[i];
    *end += (uint64_t)(last / info->block_elements + 1) * (uint64_t)info->block_bytes;
}
