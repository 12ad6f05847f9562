/* backend/view.c: views: pure arithmetic on shapes, strides and offsets. */
#include "backend/op.h"

#include "core/dtype.h"
#include "core/shape.h"

#include <assert.h>
#include <string.h>

bool wk_view_dense(wick_dtype dtype, const wick_shape *shape, wk_view *out, uint64_t *bytes) {
    int64_t count;
    if ((unsigned)dtype >= WICK_DTYPE_COUNT_ || !wk_shape_count(shape, &count)) return false;
    /* Every row is whole blocks; rank 0 is a row of one element. */
    const int64_t row = shape->rank > 0 ? shape->extent[shape->rank - 1] : 1;
    if (row % wk_dtype_get(dtype)->block_elements != 0) return false;
    *out = (wk_view){.dtype = dtype, .rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) out->extent[i] = shape->extent[i];
    wk_shape_dense(shape, out->stride);
    return wk_dtype_bytes(dtype, count, bytes);
}

uint64_t wk_shape_row_bytes(wick_dtype dtype, const wick_shape *shape) {
    uint64_t bytes;
    const int64_t row = shape->rank > 0 ? shape->extent[shape->rank - 1] : 1;
    return wk_dtype_bytes(dtype, row, &bytes) ? bytes : 0;
}

bool wk_view_same_shape(const wk_view *a, const wk_view *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] != b->extent[i]) return false;
    return true;
}

bool wk_view_same(const wk_view *a, const wk_view *b) {
    return a->buf == b->buf && a->offset == b->offset && a->dtype == b->dtype &&
           a->layout == b->layout && wk_view_same_shape(a, b) &&
           memcmp(a->stride, b->stride, sizeof a->stride[0] * (size_t)a->rank) == 0;
}

int64_t wk_view_rows(const wk_view *view) {
    int64_t rows = 1;
    for (int i = 0; i < view->rank - 1; i++) rows *= view->extent[i];
    return rows;
}

bool wk_view_is_dense(const wk_view *view) {
    return wk_shape_is_dense(view->rank, view->extent, view->stride);
}

void wk_view_range(const wk_view *view, uint64_t *begin, uint64_t *end) {
    *begin = *end = view->offset;
    if (wk_view_count(view) == 0) return;
    if (view->layout != WK_LAYOUT_RAW) {
        uint64_t bytes = 0;
        assert(view->rank >= 2 && view->layout < WK_LAYOUT_COUNT_);
        (void)wk_layout_bytes((wk_layout)view->layout, view->dtype, wk_view_rows(view),
                              view->extent[view->rank - 1], &bytes);
        *end += bytes;
        return;
    }
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    int64_t last = 0; /* index of the last element, then of its block */
    for (int i = 0; i < view->rank; i++) last += (view->extent[i] - 1) * view->stride[i];
    if (info->block_elements > 1) last /= info->block_elements;
    *end += (uint64_t)(last + 1) * (uint64_t)info->block_bytes;
}

bool wk_view_ranges_meet(const wk_view *a, const wk_view *b) {
    assert(a->buf == b->buf);
    uint64_t a_begin, a_end, b_begin, b_end;
    wk_view_range(a, &a_begin, &a_end);
    wk_view_range(b, &b_begin, &b_end);
    return a_begin < b_end && b_begin < a_end;
}

/* [n, k], or [experts, n, k] whose experts are whole panels. */
static bool may_have_panels(const wk_view *view) {
    return view->layout < WK_LAYOUT_COUNT_ &&
           (view->rank == 2 || (view->rank == 3 && view->extent[1] % WK_PANEL_ROWS == 0));
}

bool wk_view_is_well_formed(const wk_view *view, bool is_weight) {
    if (view->rank < 0 || view->rank > WICK_MAX_RANK || (unsigned)view->dtype >= WICK_DTYPE_COUNT_)
        return false;
    const wick_shape shape = wick_shape_of(view->rank, view->extent);
    int64_t count, last = 0;
    if (!wk_shape_count(&shape, &count) || count > WK_MOST_ELEMENTS) return false;
    if (view->layout != WK_LAYOUT_RAW) {
        uint64_t bytes;
        return is_weight && may_have_panels(view) &&
               wk_layout_bytes((wk_layout)view->layout, view->dtype, wk_view_rows(view),
                               view->extent[view->rank - 1], &bytes) &&
               bytes <= UINT64_MAX - view->offset;
    }
    const int64_t most = INT64_MAX / 1024; /* of elements, none of which has 1024 bytes */
    for (int d = 0; d < view->rank; d++) {
        if (view->stride[d] < 0 || view->stride[d] > most) return false;
        if (view->extent[d] <= 1 || view->stride[d] == 0) continue;
        if (view->extent[d] - 1 > (most - last) / view->stride[d]) return false;
        last += (view->extent[d] - 1) * view->stride[d];
    }
    return view->offset <= INT64_MAX;
}

bool wk_view_is_aligned(const wk_view *view) {
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    if (info->block_elements == 1) return view->offset % (uint64_t)info->block_bytes == 0;
    if (view->layout != WK_LAYOUT_RAW) return true;
    const int last = view->rank - 1;
    if (last < 0 || view->extent[last] % info->block_elements != 0) return false;
    if (wk_view_count(view) == 0) return true;
    if (view->stride[last] != 1) return false;
    for (int d = 0; d < last; d++)
        if (view->extent[d] > 1 && view->stride[d] % info->block_elements != 0) return false;
    return true;
}

/* Every stride steps over all that the smaller ones reach. */
bool wk_view_is_writable(const wk_view *view) {
    assert(view->layout == WK_LAYOUT_RAW); /* in panels strides mean nothing */
    int order[WICK_MAX_RANK], n = 0;
    if (wk_view_count(view) == 0) return true;
    for (int d = 0; d < view->rank; d++) {
        if (view->extent[d] == 1) continue;
        int at = n++;
        for (; at > 0 && view->stride[order[at - 1]] > view->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t reach = 0; /* of the dimensions so far, in elements */
    for (int i = 0; i < n; i++) {
        if (view->stride[order[i]] <= reach) return false;
        reach += (view->extent[order[i]] - 1) * view->stride[order[i]];
    }
    return true;
}

/* Scalars whose strides fall, and whose extents, strides and count are so small that no sum below
 * can overflow. */
bool wk_view_is_plain(const wk_view *view, bool is_written) {
    const int64_t most = INT64_C(1) << 28;
    if ((unsigned)view->rank > WICK_MAX_RANK || (unsigned)view->dtype >= WICK_DTYPE_COUNT_ ||
        view->layout != WK_LAYOUT_RAW)
        return false;
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    const uint64_t bytes = (uint64_t)info->block_bytes;
    if (info->block_elements > 1 || (view->offset & (bytes - 1)) != 0 ||
        view->offset > INT64_MAX / 2)
        return false;
    int64_t count = 1, last = 0; /* the last element, of the dimensions so far */
    for (int d = view->rank - 1; d >= 0; d--) {
        const int64_t extent = view->extent[d], stride = view->stride[d];
        if (extent < 1 || extent > most || stride < 0 || stride > most) return false;
        if (is_written && extent > 1 && stride <= last) return false;
        count *= extent;
        last += (extent - 1) * stride;
        if (count > most) return false;
    }
    return view->offset + (uint64_t)(last + 1) * bytes <= view->buf->size;
}
