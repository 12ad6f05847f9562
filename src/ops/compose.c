/* ops/compose.c: see compose.h. */
#include "ops/compose.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/view.h"

#include <wick/ops.h>

#include <math.h>

/* --- Checks --- */

bool wk_operands_are_floats(const char *op, wick_tensor *const *operands, size_t n_required,
                            size_t n) {
    for (size_t i = 0; i < n_required; i++)
        if (!operands[i]) return false;
    const wick_tensor *const x = operands[0];
    for (size_t i = 0; i < n; i++) {
        if (!operands[i]) continue;
        if (!wk_operands_present(op, (wick_tensor *[]){operands[0], operands[i]}, 2)) return false;
        if (!wk_operand_is_float(op, operands[i]) || !wk_operand_is_strided(op, operands[i]) ||
            !wk_operands_same_dtype(op, x, operands[i]))
            return false;
    }
    return true;
}

bool wk_operand_rank(const char *op, const char *name, const wick_tensor *x, int least, int most) {
    const int rank = x->view.rank;
    if (rank >= least && rank <= most) return true;
    if (least == most)
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s has rank %d, not %d", op, name, rank,
                       least);
    else
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s has rank %d, not %d to %d", op, name,
                       rank, least, most);
    return false;
}

bool wk_operand_is_vector(const char *op, const char *name, const wick_tensor *vector, int64_t n) {
    if (!vector || (vector->view.rank == 1 && vector->view.extent[0] == n)) return true;
    const wick_shape shape = wk_tensor_shape_of(vector), wanted = {.rank = 1, .extent = {n}};
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(vector->device, WICK_ERR_SHAPE, "%s: %s is %s, not %s", op, name,
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&wanted, text[1], sizeof text[1]));
    return false;
}

bool wk_operands_same_shape(const char *op, const wick_tensor *a, const wick_tensor *b) {
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    if (wk_shape_equal(&shape_a, &shape_b)) return true;
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(a->device, WICK_ERR_SHAPE, "%s: %s and %s are not of one shape", op,
                   wk_shape_text(&shape_a, text[0], sizeof text[0]),
                   wk_shape_text(&shape_b, text[1], sizeof text[1]));
    return false;
}

/* --- Pieces of operations --- */

wick_tensor *wk_own(wick_tensor *y, const wick_tensor *x) {
    return y == x && y ? wick_reshape(y, wk_tensor_shape_of(y)) : y;
}

wick_tensor *wk_add_to(wick_tensor *dst, wick_tensor *x) {
    if (!dst || !x) return NULL;
    const wick_shape shape = wk_tensor_shape_of(dst);
    wk_view view;
    if (!wk_view_expand(&x->view, &shape, &view)) {
        (void)wk_operands_same_shape("add", dst, x);
        return NULL;
    }
    if (wk_tensor_is_empty(dst)) return dst;
    wk_call call;
    wk_call_begin(&call, WK_OP_BINARY, NULL);
    wk_call_add(&call, dst, NULL);
    wk_call_add(&call, dst, NULL);
    wk_call_add(&call, x, &view);
    call.op.p.binary = WK_BINARY_ADD;
    return wk_call_queue(dst->device, &call) == WICK_OK ? dst : NULL;
}

wick_tensor *wk_padded(wick_tensor *x, int first, int n, const int64_t *before,
                       const int64_t *after, double value) {
    if (!x) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    bool is_wanted = false;
    for (int i = 0; i < n; i++) {
        shape.extent[first + i] += before[i] + after[i];
        is_wanted |= before[i] + after[i] > 0;
    }
    if (!is_wanted) return x;
    wick_tensor *const y = wick_full(x->device, x->view.dtype, shape, value);
    wick_tensor *middle = y;
    for (int i = 0; i < n; i++)
        middle = wick_narrow(middle, first + i, before[i], x->view.extent[first + i]);
    return wick_copy(middle, x) ? y : NULL;
}

wick_tensor *wk_windows(wick_tensor *x, int dim, int64_t size, int64_t step, int64_t dilation) {
    if (!x) return NULL;
    wk_view view = x->view;
    const int64_t span = dilation * (size - 1) + 1, count = (view.extent[dim] - span) / step + 1;
    view.extent[view.rank] = size;
    view.stride[view.rank] = size > 1 ? view.stride[dim] * dilation : 1;
    view.rank++;
    view.extent[dim] = count;
    view.stride[dim] = count > 1 ? view.stride[dim] * step : 1;
    const wk_view_step made = {
        .kind = WK_VIEW_WINDOWS,
        .windows = {.dim = dim, .size = size, .step = step, .dilation = dilation}};
    return wk_tensor_view(x, &view, &made);
}

wick_tensor *wk_every(wick_tensor *x, int dim, int64_t start, int64_t step, int64_t n) {
    return wick_slice(x, dim, start, n > 0 ? start + (n - 1) * step + 1 : start, step);
}

wick_tensor *wk_along(wick_tensor *vector, int after) {
    if (!vector) return NULL;
    wick_shape shape = {.rank = after + 1, .extent = {vector->view.extent[0]}};
    for (int i = 1; i <= after; i++) shape.extent[i] = 1;
    return wick_reshape(vector, shape);
}

wick_tensor *wk_root(wick_tensor *s, double p) {
    if (!s) return NULL;
    wick_tensor *const zero = wick_zeros(s->device, s->view.dtype, WICK_SCALAR);
    wick_tensor *const one = wick_ones(s->device, s->view.dtype, WICK_SCALAR);
    wick_tensor *const is_zero = wick_eq(s, zero);
    wick_tensor *const safe = wick_where(is_zero, one, s);
    return wick_where(is_zero, zero, p == 2 ? wick_sqrt(safe) : wick_powf(safe, 1 / p));
}

wick_tensor *wk_norm_along(wick_tensor *x, int dim, double eps) {
    wick_tensor *const norm = wk_root(wick_sum(wick_sqr(x), 1, &dim, true), 2);
    return wick_clamp(norm, eps, (double)INFINITY);
}

wick_tensor *wk_host_floats(wick_device *device, wick_dtype dtype, int64_t n, const double *data) {
    enum { FEW = 256 };
    float few[FEW];
    if (dtype == WICK_F64)
        return wick_tensor_from_data(device, dtype, WICK_SHAPE(n), data, (size_t)n * sizeof *data);
    wk_heap *const heap = wk_device_heap(device);
    const size_t size = (size_t)n * sizeof(float);
    float *const rounded = n <= FEW ? few : wk_alloc(heap, size);
    if (!rounded) {
        wk_device_fail(device, WICK_ERR_OUT_OF_MEMORY, "no memory for a table of %zu bytes", size);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) rounded[i] = (float)data[i];
    wick_tensor *const y = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(n), rounded, size);
    if (rounded != few) wk_free(heap, rounded, size);
    return wk_promoted(y, dtype);
}
