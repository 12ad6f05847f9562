/* ops/view.c: arithmetic of views. */
#include "ops/view.h"

#include "core/dtype.h"
#include "core/shape.h"

#include <assert.h>

void wk_view_permute(const wk_view *from, const int *dims, wk_view *out) {
    const wk_view x = *from;
    *out = x;
    for (int i = 0; i < x.rank; i++) {
        out->extent[i] = x.extent[dims[i]];
        out->stride[i] = x.stride[dims[i]];
    }
}

void wk_view_move_last(const wk_view *from, int dim, wk_view *out) {
    int dims[WICK_MAX_RANK], n = 0;
    for (int i = 0; i < from->rank; i++) {
        if (i != dim) dims[n++] = i;
    }
    dims[n] = dim;
    wk_view_permute(from, dims, out);
}

void wk_view_remove(const wk_view *from, int dim, wk_view *out) {
    wk_view_move_last(from, dim, out);
    out->rank--;
}

void wk_view_insert(const wk_view *from, int dim, wk_view *out) {
    assert(from->rank < WICK_MAX_RANK);
    const wk_view x = *from;
    *out = x;
    out->rank = x.rank + 1;
    for (int i = dim; i < x.rank; i++) {
        out->extent[i + 1] = x.extent[i];
        out->stride[i + 1] = x.stride[i];
    }
    /* The stride of an extent of 1 is never used; this one keeps dense views dense. */
    out->extent[dim] = 1;
    out->stride[dim] = dim < x.rank ? x.extent[dim] * x.stride[dim] : 1;
}

void wk_view_slice(const wk_view *from, int dim, int64_t start, int64_t length, int64_t step,
                   wk_view *out) {
    *out = *from;
    uint64_t skipped = 0;
    /* Nothing is where an empty view would begin. */
    if (length > 0 && wk_view_count(from) > 0) {
        const bool is_whole = wk_dtype_bytes(from->dtype, start * from->stride[dim], &skipped);
        assert(is_whole);
        (void)is_whole;
    }
    out->offset += skipped;
    out->extent[dim] = length;
    out->stride[dim] *= step;
}

void wk_view_diagonal(const wk_view *from, int dim0, int dim1, wk_view *out) {
    const int64_t m = from->extent[dim0], n = from->extent[dim1];
    const int64_t stride = from->stride[dim0] + from->stride[dim1];
    wk_view_remove(from, dim0 > dim1 ? dim0 : dim1, out);
    wk_view_remove(out, dim0 > dim1 ? dim1 : dim0, out);
    out->extent[out->rank] = m < n ? m : n;
    out->stride[out->rank++] = stride;
}

bool wk_view_expand(const wk_view *from, const wick_shape *shape, wk_view *out) {
    const int added = shape->rank - from->rank;
    if (added < 0) return false;
    bool is_same = added == 0;
    for (int i = added; i < shape->rank; i++) {
        const int64_t extent = from->extent[i - added];
        if (extent != shape->extent[i] && extent != 1) return false;
        is_same = is_same && extent == shape->extent[i];
    }
    if (out != from) *out = *from;
    if (is_same) return true;
    out->rank = shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) { /* from the right: out may be from */
        const bool is_kept = i >= added && out->extent[i - added] == shape->extent[i];
        out->stride[i] = is_kept ? out->stride[i - added] : 0;
        out->extent[i] = shape->extent[i];
    }
    return true;
}

bool wk_view_reshape(const wk_view *from, const wick_shape *shape, wk_view *out) {
    wick_shape old = {.rank = from->rank};
    for (int i = 0; i < from->rank; i++) old.extent[i] = from->extent[i];
    wk_view result = *from;
    result.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++) result.extent[i] = shape->extent[i];
    if (!wk_shape_restride(&old, from->stride, shape, result.stride)) return false;
    *out = result;
    return true;
}
