/* ops/shape.c: views that people ask for: transpose, reshape, narrow, expand ... */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <assert.h>
#include <inttypes.h>

static const wk_view_step reshaped = {.kind = WK_VIEW_RESHAPE};

/* Blocks lie along the last dimension, so views of block types may change the other ones only. */
static wick_tensor *make_view(const char *op, wick_tensor *x, const wk_view *view,
                              const wk_view_step *step) {
    if (!wk_operand_is_strided(op, x)) return NULL;
    if (wk_dtype_is_block(x->view.dtype)) {
        const int last = view->rank - 1, old_last = x->view.rank - 1;
        if (last < 0 || view->extent[last] != x->view.extent[old_last] || view->stride[last] != 1) {
            wk_device_fail(x->device, WICK_ERR_UNSUPPORTED,
                           "%s: views of %s must keep its last dimension as it is", op,
                           wick_dtype_name(x->view.dtype));
            return NULL;
        }
    }
    return wk_tensor_view(x, view, step);
}

/* dims: of x, each once. */
static wick_tensor *permute(const char *op, wick_tensor *x, const int *dims) {
    wk_view_step step = {.kind = WK_VIEW_PERMUTE};
    wk_view view;
    for (int i = 0; i < x->view.rank; i++) step.dims[i] = dims[i];
    wk_view_permute(&x->view, dims, &view);
    return make_view(op, x, &view, &step);
}

static wick_tensor *cannot_become(const char *op, wick_tensor *x, const wick_shape *shape) {
    const wick_shape from = wk_tensor_shape_of(x);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s cannot become %s", op,
                   wk_shape_text(&from, text[0], sizeof text[0]),
                   wk_shape_text(shape, text[1], sizeof text[1]));
    return NULL;
}

wick_tensor *wick_transpose(wick_tensor *x, int dim0, int dim1) {
    if (!x) return NULL;
    int first, second;
    if (!wk_operand_dim("transpose", x, dim0, &first)) return NULL;
    if (!wk_operand_dim("transpose", x, dim1, &second)) return NULL;
    int dims[WICK_MAX_RANK];
    for (int i = 0; i < x->view.rank; i++) dims[i] = i;
    dims[first] = second;
    dims[second] = first;
    return permute("transpose", x, dims);
}

wick_tensor *wick_matrix_transpose(wick_tensor *x) {
    if (!x) return NULL;
    if (x->view.rank >= 2) return wick_transpose(x, -2, -1);
    wk_device_fail(x->device, WICK_ERR_SHAPE, "matrix_transpose: x has rank %d, not 2 or more",
                   x->view.rank);
    return NULL;
}

wick_tensor *wick_permute(wick_tensor *x, int rank, const int *dims) {
    if (!x) return NULL;
    if (rank != x->view.rank || (!dims && rank > 0)) {
        wk_device_fail(x->device, WICK_ERR_DIM, "permute: %d dims for a tensor of rank %d",
                       dims ? rank : 0, x->view.rank);
        return NULL;
    }
    int resolved[WICK_MAX_RANK];
    bool is_named[WICK_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) {
        if (!wk_operand_dim("permute", x, dims[i], &resolved[i])) return NULL;
        if (is_named[resolved[i]]) {
            wk_device_fail(x->device, WICK_ERR_DIM, "permute: dim %d is named twice", dims[i]);
            return NULL;
        }
        is_named[resolved[i]] = true;
    }
    return permute("permute", x, resolved);
}

/* Replaces the one extent of -1; false when the shape cannot hold count elements. */
static bool resolve_shape(const wick_shape *shape, int64_t count, wick_shape *out) {
    int unknown = -1;
    *out = *shape;
    if (shape->rank < 0 || shape->rank > WICK_MAX_RANK) return false;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->extent[i] != -1) continue;
        if (unknown >= 0) return false;
        unknown = i;
        out->extent[i] = 1;
    }
    int64_t known;
    if (!wk_shape_count(out, &known)) return false;
    if (unknown < 0) return known == count;
    if (known == 0 || count % known != 0) return false;
    out->extent[unknown] = count / known;
    return true;
}

/* A view where strides allow it, else a copy. */
static wick_tensor *reshape(const char *op, wick_tensor *x, const wick_shape *shape) {
    wk_view view;
    if (wk_view_reshape(&x->view, shape, &view)) return make_view(op, x, &view, &reshaped);
    if (!wk_operand_is_strided(op, x)) return NULL;
    if (wk_dtype_is_block(x->view.dtype)) {
        wk_device_fail(x->device, WICK_ERR_UNSUPPORTED, "%s: this view of %s would need a copy", op,
                       wick_dtype_name(x->view.dtype));
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, shape);
    if (y) {
        const wick_shape from = wk_tensor_shape_of(x);
        wk_view as_x; /* a dense tensor takes any shape */
        const bool is_dense = wk_view_reshape(&y->view, &from, &as_x);
        assert(is_dense);
        (void)is_dense;
        if (wk_queue_copy(y, &as_x, x, &x->view) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, y);
}

wick_tensor *wick_reshape(wick_tensor *x, wick_shape shape) {
    if (!x) return NULL;
    wick_shape resolved;
    if (!resolve_shape(&shape, wick_tensor_size(x), &resolved)) {
        return cannot_become("reshape", x, &shape);
    }
    return reshape("reshape", x, &resolved);
}

wick_tensor *wick_flatten(wick_tensor *x, int start, int end) {
    if (!x) return NULL;
    int first, last;
    if (!wk_operand_dim("flatten", x, start, &first)) return NULL;
    if (!wk_operand_dim("flatten", x, end, &last)) return NULL;
    if (first > last) {
        wk_device_fail(x->device, WICK_ERR_DIM, "flatten: dim %d comes after dim %d", start, end);
        return NULL;
    }
    wick_shape shape = {.rank = x->view.rank - (last - first)};
    for (int i = 0; i < first; i++) shape.extent[i] = x->view.extent[i];
    shape.extent[first] = 1;
    for (int i = first; i <= last; i++) shape.extent[first] *= x->view.extent[i];
    for (int i = last + 1; i < x->view.rank; i++) {
        shape.extent[i - (last - first)] = x->view.extent[i];
    }
    return reshape("flatten", x, &shape);
}

wick_tensor *wick_squeeze(wick_tensor *x, int dim) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_dim("squeeze", x, dim, &resolved)) return NULL;
    wk_view view = x->view;
    if (view.extent[resolved] == 1) wk_view_remove(&x->view, resolved, &view);
    return make_view("squeeze", x, &view, &reshaped);
}

wick_tensor *wick_unsqueeze(wick_tensor *x, int dim) {
    if (!x) return NULL;
    const int rank = x->view.rank + 1; /* dim counts in the result */
    int resolved;
    if (!wk_shape_dim(rank, dim, &resolved)) {
        wk_device_fail(x->device, WICK_ERR_DIM, "unsqueeze: dim %d is out of range for rank %d",
                       dim, rank);
        return NULL;
    }
    if (rank > WICK_MAX_RANK) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "unsqueeze: the rank cannot exceed %d",
                       WICK_MAX_RANK);
        return NULL;
    }
    wk_view view;
    wk_view_insert(&x->view, resolved, &view);
    return make_view("unsqueeze", x, &view, &reshaped);
}

static wick_tensor *slice(const char *op, wick_tensor *x, int dim, int64_t start, int64_t length,
                          int64_t step) {
    if (wk_dtype_is_block(x->view.dtype) && dim == x->view.rank - 1 &&
        length != x->view.extent[dim]) {
        wk_device_fail(x->device, WICK_ERR_UNSUPPORTED, "%s: cannot cut the rows of %s", op,
                       wick_dtype_name(x->view.dtype));
        return NULL;
    }
    wk_view view;
    wk_view_slice(&x->view, dim, start, length, step, &view);
    const wk_view_step sliced = {.kind = WK_VIEW_SLICE,
                                 .slice = {.dim = dim, .start = start, .step = step}};
    return make_view(op, x, &view, &sliced);
}

wick_tensor *wick_narrow(wick_tensor *x, int dim, int64_t start, int64_t length) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_dim("narrow", x, dim, &resolved)) return NULL;
    if (length < 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "narrow: length %" PRId64 " is negative", length);
        return NULL;
    }
    const int64_t extent = x->view.extent[resolved];
    if (start < 0 || start > extent || length > extent - start) {
        wk_device_fail(x->device, WICK_ERR_INDEX,
                       "narrow: %" PRId64 " elements from %" PRId64 " exceed dim %d of %" PRId64,
                       length, start, dim, extent);
        return NULL;
    }
    return slice("narrow", x, resolved, start, length, 1);
}

wick_tensor *wick_slice(wick_tensor *x, int dim, int64_t start, int64_t stop, int64_t step) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_dim("slice", x, dim, &resolved)) return NULL;
    if (step <= 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "slice: step %" PRId64 " is not positive", step);
        return NULL;
    }
    const int64_t extent = x->view.extent[resolved];
    if (start < 0 || start > stop || stop > extent) {
        wk_device_fail(x->device, WICK_ERR_INDEX,
                       "slice: %" PRId64 " to %" PRId64 " is not a part of dim %d of %" PRId64,
                       start, stop, dim, extent);
        return NULL;
    }
    const int64_t length = start == stop ? 0 : (stop - start - 1) / step + 1;
    /* The step between fewer than two elements is never taken and could overflow. */
    return slice("slice", x, resolved, start, length, length > 1 ? step : 1);
}

size_t wick_chunk(wick_tensor *x, size_t count, int dim, wick_tensor **out) {
    if (!x) return 0;
    int resolved;
    if (!wk_operand_dim("chunk", x, dim, &resolved)) return 0;
    if (count == 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "chunk: into no parts at all");
        return 0;
    }
    if (!out) {
        wk_device_fail(x->device, WICK_ERR_ARGUMENT, "chunk: out is NULL");
        return 0;
    }
    const int64_t extent = x->view.extent[resolved];
    /* More parts than elements are not made, but of no elements all are. */
    const int64_t wanted = count < (size_t)INT64_MAX ? (int64_t)count : INT64_MAX;
    const int64_t size = extent / wanted + (extent % wanted != 0);
    size_t n = 0;
    int64_t start = 0;
    while (extent > 0 ? start < extent : n < count) {
        const int64_t length = size < extent - start ? size : extent - start;
        out[n] = slice("chunk", x, resolved, start, length, 1);
        if (!out[n]) {
            while (n > 0) wick_release(out[--n]);
            return 0;
        }
        n++;
        start += length;
    }
    return n;
}

wick_tensor *wick_expand(wick_tensor *x, wick_shape shape) {
    if (!x) return NULL;
    wk_view view;
    int64_t count;
    if (!wk_shape_count(&shape, &count) || !wk_view_expand(&x->view, &shape, &view)) {
        return cannot_become("expand", x, &shape);
    }
    return make_view("expand", x, &view, &(wk_view_step){.kind = WK_VIEW_EXPAND});
}

wick_tensor *wick_contiguous(wick_tensor *x) {
    if (!x) return NULL;
    if (!wk_operand_is_strided("contiguous", x)) return NULL;
    if (wk_view_is_dense(&x->view)) return wk_tensor_view(x, &x->view, &reshaped);
    if (wk_dtype_is_block(x->view.dtype)) {
        wk_device_fail(x->device, WICK_ERR_UNSUPPORTED, "contiguous: cannot copy %s",
                       wick_dtype_name(x->view.dtype));
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "contiguous");
    return wick_scope_result(scope, wk_dense_copy(x, x->view.dtype));
}
