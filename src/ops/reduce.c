/* ops/reduce.c: reductions over any dims, and softmax along one. The views that kernels see have
 * the dims in question last. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/view.h"

#include <math.h>

/* --- Reductions --- */

typedef struct reduction {
    bool is_reduced[WICK_MAX_RANK]; /* of x's dims */
    bool keepdim;
    wk_view view;     /* of x, the reduced dims last, each group in its order */
    wick_shape shape; /* of the result, with keepdim the reduced ones as 1 */
} reduction;

static void move_dims(const wick_tensor *x, reduction *r) {
    int order[WICK_MAX_RANK], n = 0;
    r->shape.rank = 0;
    for (int i = 0; i < x->view.rank; i++) {
        if (!r->is_reduced[i] || r->keepdim)
            r->shape.extent[r->shape.rank++] = r->is_reduced[i] ? 1 : x->view.extent[i];
        if (!r->is_reduced[i]) order[n++] = i;
    }
    for (int i = 0; i < x->view.rank; i++) {
        if (r->is_reduced[i]) order[n++] = i;
    }
    wk_view_permute(&x->view, order, &r->view);
}

/* Whether the function can do without elements; those that choose one cannot. */
static bool needs_elements(wk_reduce_fn fn) {
    return fn != WK_REDUCE_SUM && fn != WK_REDUCE_MEAN && fn != WK_REDUCE_VAR &&
           fn != WK_REDUCE_PROD;
}

static bool check_extents(const char *op, const wick_tensor *x, const reduction *r) {
    for (int i = 0; i < x->view.rank; i++) {
        if (!r->is_reduced[i] || x->view.extent[i] > 0) continue;
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: dim %d is empty", op, i);
        return false;
    }
    return true;
}

static wick_tensor *queue_reduction(const char *op, const wk_params *params, wick_dtype dtype,
                                    wick_tensor *x, const reduction *r) {
    wick_tensor *const y = wk_tensor_new(x->device, dtype, &r->shape);
    if (!y) return NULL;
    wk_view kept = y->view; /* as the kernel sees it: without the reduced dims */
    for (int i = x->view.rank - 1; r->keepdim && i >= 0; i--) {
        if (r->is_reduced[i]) wk_view_remove(&kept, i, &kept);
    }
    wk_call call;
    wk_call_begin(&call, WK_OP_REDUCE, op);
    wk_call_add(&call, y, &kept);
    wk_call_add(&call, x, &r->view);
    call.op.p = *params;
    return wk_queue_result(&call, y);
}

static wick_tensor *reduce(const char *op, const wk_params *params, wick_tensor *x, int n_dims,
                           const int *dims, bool keepdim) {
    if (!x) return NULL;
    const wk_reduce_fn fn = params->reduce.fn;
    const bool takes_integers = wk_reduce_takes_integers(fn);
    if (takes_integers ? !wk_operand_is_number(op, x) : !wk_operand_is_float(op, x)) return NULL;
    if (!wk_operand_is_strided(op, x)) return NULL;
    reduction r = {.keepdim = keepdim};
    if (!wk_operand_dims(op, x, n_dims, dims, r.is_reduced)) return NULL;
    if (needs_elements(fn) && !check_extents(op, x, &r)) return NULL;
    move_dims(x, &r);
    const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
    return queue_reduction(op, params, is_index ? WICK_U32 : x->view.dtype, x, &r);
}

wick_tensor *wick_sum(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    return reduce("sum", &(wk_params){.reduce.fn = WK_REDUCE_SUM}, x, n_dims, dims, keepdim);
}

wick_tensor *wick_prod(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    return reduce("prod", &(wk_params){.reduce.fn = WK_REDUCE_PROD}, x, n_dims, dims, keepdim);
}

wick_tensor *wick_mean(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    return reduce("mean", &(wk_params){.reduce.fn = WK_REDUCE_MEAN}, x, n_dims, dims, keepdim);
}

wick_tensor *wick_max(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    return reduce("max", &(wk_params){.reduce.fn = WK_REDUCE_MAX}, x, n_dims, dims, keepdim);
}

wick_tensor *wick_min(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    return reduce("min", &(wk_params){.reduce.fn = WK_REDUCE_MIN}, x, n_dims, dims, keepdim);
}

wick_tensor *wick_var(wick_tensor *x, int n_dims, const int *dims, bool keepdim,
                      double correction) {
    if (x && !isfinite(correction)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "var: correction %g", correction);
        return NULL;
    }
    const wk_params params = {.reduce = {.fn = WK_REDUCE_VAR, .correction = correction}};
    return reduce("var", &params, x, n_dims, dims, keepdim);
}

wick_tensor *wick_argmax(wick_tensor *x, int dim, bool keepdim) {
    return reduce("argmax", &(wk_params){.reduce.fn = WK_REDUCE_ARGMAX}, x, 1, &dim, keepdim);
}

wick_tensor *wick_argmin(wick_tensor *x, int dim, bool keepdim) {
    return reduce("argmin", &(wk_params){.reduce.fn = WK_REDUCE_ARGMIN}, x, 1, &dim, keepdim);
}

/* --- Softmax --- */

static wick_tensor *softmax(const char *op, wick_tensor *x, int dim, bool is_log) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_is_float(op, x) || !wk_operand_is_strided(op, x)) return NULL;
    if (!wk_operand_dim(op, x, dim, &resolved)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    if (!y) return NULL;
    wk_view view_x, view_y;
    wk_view_move_last(&x->view, resolved, &view_x);
    wk_view_move_last(&y->view, resolved, &view_y);
    wk_call call;
    wk_call_begin(&call, WK_OP_SOFTMAX, op);
    wk_call_add(&call, y, &view_y);
    wk_call_add(&call, x, &view_x);
    call.op.p.softmax.is_log = is_log;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_softmax(wick_tensor *x, int dim) { return softmax("softmax", x, dim, false); }

wick_tensor *wick_log_softmax(wick_tensor *x, int dim) {
    return softmax("log_softmax", x, dim, true);
}
