/* ops/copy.c: data that moves: cast, copy, cat, stack, kv_append. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>

wick_tensor *wick_cast(wick_tensor *x, wick_dtype dtype) {
    if (!x || !wk_operand_is_strided("cast", x)) return NULL;
    if (!wk_dtype_is_storable("cast", x->device, dtype)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "cast");
    return wick_scope_result(scope, wk_dense_copy(x, dtype));
}

wick_tensor *wick_copy(wick_tensor *dst, wick_tensor *src) {
    if (!wk_operands_present("copy", (wick_tensor *[]){dst, src}, 2)) return NULL;
    if (!wk_operand_is_writable("copy", dst) || !wk_operand_is_strided("copy", src)) return NULL;
    const wick_shape to = wk_tensor_shape_of(dst), from = wk_tensor_shape_of(src);
    wk_view view;
    if (!wk_view_expand(&src->view, &to, &view)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(dst->device, WICK_ERR_SHAPE, "copy: %s does not broadcast to %s",
                       wk_shape_text(&from, text[0], sizeof text[0]),
                       wk_shape_text(&to, text[1], sizeof text[1]));
        return NULL;
    }
    return wk_queue_copy(dst, &dst->view, src, &view) == WICK_OK ? dst : NULL;
}

/* Whether two shapes agree in all dims but one. */
static bool agree_but(const wick_shape *a, const wick_shape *b, int dim) {
    wick_shape changed = *b;
    if (a->rank == b->rank) changed.extent[dim] = a->extent[dim];
    return wk_shape_equal(a, &changed);
}

wick_tensor *wick_kv_append(wick_tensor *cache, wick_tensor *fresh, int64_t position) {
    if (!wk_operands_present("kv_append", (wick_tensor *[]){cache, fresh}, 2)) return NULL;
    if (!wk_operand_is_writable("kv_append", cache)) return NULL;
    if (!wk_operand_is_strided("kv_append", fresh)) return NULL;
    const wick_shape to = wk_tensor_shape_of(cache), from = wk_tensor_shape_of(fresh);
    if (to.rank != 4 || !agree_but(&to, &from, 2)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(cache->device, WICK_ERR_SHAPE, "kv_append: %s does not fit a cache of %s",
                       wk_shape_text(&from, text[0], sizeof text[0]),
                       wk_shape_text(&to, text[1], sizeof text[1]));
        return NULL;
    }
    const int64_t length = from.extent[2], capacity = to.extent[2];
    if (position < 0 || position > capacity || length > capacity - position) {
        wk_device_fail(cache->device, WICK_ERR_INDEX,
                       "kv_append: %" PRId64 " rows at position %" PRId64
                       " exceed a cache of %" PRId64,
                       length, position, capacity);
        return NULL;
    }
    wk_view view;
    wk_view_slice(&cache->view, 2, position, length, 1, &view);
    const wick_scope scope = wk_operation_begin(cache->device, "kv_append");
    const wick_status status = wk_queue_copy(cache, &view, fresh, &fresh->view);
    wick_scope_end(scope);
    return status == WICK_OK ? cache : NULL;
}

/* Checks the operands of cat and finds its dim and shape. */
static bool cat_shape(wick_tensor *const *x, size_t count, int dim, int *out_dim, wick_shape *out) {
    if (!wk_operand_dim("cat", x[0], dim, out_dim)) return false;
    *out = wk_tensor_shape_of(x[0]);
    for (size_t i = 0; i < count; i++) {
        if (!wk_operand_is_strided("cat", x[i])) return false;
        if (!wk_operands_same_dtype("cat", x[0], x[i])) return false;
        const wick_shape shape = wk_tensor_shape_of(x[i]);
        if (!agree_but(out, &shape, *out_dim)) {
            char text[WK_SHAPE_TEXT];
            wk_device_fail(x[0]->device, WICK_ERR_SHAPE,
                           "cat: operand %zu of shape %s does not fit the others along dim %d", i,
                           wk_shape_text(&shape, text, sizeof text), dim);
            return false;
        }
        if (i == 0) continue;
        if (shape.extent[*out_dim] > INT64_MAX - out->extent[*out_dim]) {
            wk_device_fail(x[0]->device, WICK_ERR_SHAPE, "cat: the result is too large");
            return false;
        }
        out->extent[*out_dim] += shape.extent[*out_dim];
    }
    if (!wk_dtype_is_block(x[0]->view.dtype)) return true;
    wk_device_fail(x[0]->device, WICK_ERR_DTYPE, "cat: cannot copy %s",
                   wick_dtype_name(x[0]->view.dtype));
    return false;
}

wick_tensor *wick_cat(wick_tensor *const *x, size_t count, int dim) {
    if (!x || count == 0 || !wk_operands_present("cat", x, count)) return NULL;
    int resolved;
    wick_shape shape;
    if (!cat_shape(x, count, dim, &resolved, &shape)) return NULL;
    const wick_scope scope = wk_operation_begin(x[0]->device, "cat");
    wick_tensor *y = wk_tensor_new(x[0]->device, x[0]->view.dtype, &shape);
    int64_t start = 0;
    for (size_t i = 0; y && i < count; i++) {
        const int64_t length = x[i]->view.extent[resolved];
        wk_view view;
        wk_view_slice(&y->view, resolved, start, length, 1, &view);
        if (wk_queue_copy(y, &view, x[i], &x[i]->view) != WICK_OK) y = NULL;
        start += length;
    }
    return wick_scope_result(scope, y);
}

/* Checks the operands of stack and finds its dim and shape. */
static bool stack_shape(wick_tensor *const *x, size_t count, int dim, int *out_dim,
                        wick_shape *out) {
    const wick_shape part = wk_tensor_shape_of(x[0]);
    if (part.rank == WICK_MAX_RANK || (uint64_t)count > INT64_MAX) {
        wk_device_fail(x[0]->device, WICK_ERR_SHAPE, "stack: the rank cannot exceed %d",
                       WICK_MAX_RANK);
        return false;
    }
    if (!wk_shape_dim(part.rank + 1, dim, out_dim)) {
        wk_device_fail(x[0]->device, WICK_ERR_DIM, "stack: dim %d is out of range for rank %d", dim,
                       part.rank + 1);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!wk_operand_is_strided("stack", x[i])) return false;
        if (!wk_operands_same_dtype("stack", x[0], x[i])) return false;
        const wick_shape shape = wk_tensor_shape_of(x[i]);
        if (!wk_shape_equal(&part, &shape)) {
            char text[WK_SHAPE_TEXT];
            wk_device_fail(x[0]->device, WICK_ERR_SHAPE,
                           "stack: operand %zu of shape %s is not shaped as the first one", i,
                           wk_shape_text(&shape, text, sizeof text));
            return false;
        }
    }
    *out = (wick_shape){.rank = part.rank + 1};
    for (int i = 0; i < part.rank; i++) out->extent[i < *out_dim ? i : i + 1] = part.extent[i];
    out->extent[*out_dim] = (int64_t)count;
    return wk_dtype_is_storable("stack", x[0]->device, x[0]->view.dtype);
}

wick_tensor *wick_stack(wick_tensor *const *x, size_t count, int dim) {
    if (!x || count == 0 || !wk_operands_present("stack", x, count)) return NULL;
    int resolved;
    wick_shape shape;
    if (!stack_shape(x, count, dim, &resolved, &shape)) return NULL;
    const wick_scope scope = wk_operation_begin(x[0]->device, "stack");
    wick_tensor *y = wk_tensor_new(x[0]->device, x[0]->view.dtype, &shape);
    const bool is_empty = y && wk_tensor_is_empty(y);
    for (size_t i = 0; y && !is_empty && i < count; i++) {
        wk_view from, to;
        wk_view_insert(&x[i]->view, resolved, &from);
        wk_view_slice(&y->view, resolved, (int64_t)i, 1, 1, &to);
        if (wk_queue_copy(y, &to, x[i], &from) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, y);
}
