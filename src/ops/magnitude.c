/* ops/magnitude.c: reductions that are made of others: log_sum_exp, norm, std. Those of f16 and
 * bf16 compute in f32. */
#include <wick/ops.h>

#include "ops/compose.h"

#include <math.h>

typedef struct over {
    int n_dims;
    const int *dims;
    bool keepdim;
} over;

/* Whether x is a float and has such dims; *is_empty: whether these hold no element. */
static bool check(const char *op, const wick_tensor *x, const over *o, bool *is_empty) {
    bool is_reduced[WICK_MAX_RANK];
    if (!wk_operand_is_float(op, x) || !wk_operand_is_strided(op, x)) return false;
    if (!wk_operand_dims(op, x, o->n_dims, o->dims, is_reduced)) return false;
    *is_empty = false;
    for (int i = 0; i < x->view.rank; i++)
        if (is_reduced[i] && x->view.extent[i] == 0) *is_empty = true;
    return true;
}

static wick_tensor *sum(wick_tensor *x, const over *o) {
    return wick_sum(x, o->n_dims, o->dims, o->keepdim);
}

/* --- log_sum_exp --- */

/* The largest elements, but 0 where they are not finite: e^(inf - inf) would be NaN. */
static wick_tensor *shift_of(wick_tensor *x, const over *o, bool keepdim) {
    wick_tensor *const most = wick_max(x, o->n_dims, o->dims, keepdim);
    if (!most) return NULL;
    wick_tensor *const zero = wick_zeros(most->device, most->view.dtype, WICK_SCALAR);
    return wick_where(wick_is_finite(most), most, zero);
}

wick_tensor *wick_log_sum_exp(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    const over o = {n_dims, dims, keepdim};
    bool is_empty;
    if (!x || !check("log_sum_exp", x, &o, &is_empty)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "log_sum_exp");
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *y = wide;
    if (!is_empty) y = wick_sub(wide, shift_of(wide, &o, true));
    y = wick_log(sum(wick_exp(y), &o));
    if (!is_empty) y = wick_add(y, shift_of(wide, &o, keepdim));
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}

/* --- norm --- */

static wick_tensor *norm_of(wick_tensor *x, double p, const over *o) {
    if (p == 2) return wk_root(sum(wick_sqr(x), o), 2);
    if (p == 1) return sum(wick_abs(x), o);
    if (isinf(p) && p > 0) return wick_max(wick_abs(x), o->n_dims, o->dims, o->keepdim);
    if (isinf(p)) return wick_min(wick_abs(x), o->n_dims, o->dims, o->keepdim);
    if (p > 1) return wk_root(sum(wick_powf(wick_abs(x), p), o), p);
    if (p > 0) return wk_root(sum(wk_root(wick_abs(x), 1 / p), o), p); /* steep at 0 */
    if (p < 0) return wick_powf(sum(wick_powf(wick_abs(x), p), o), 1 / p);
    if (!x) return NULL;
    wick_tensor *const zero = wick_zeros(x->device, x->view.dtype, WICK_SCALAR);
    return sum(wk_promoted(wick_ne(x, zero), x->view.dtype), o);
}

wick_tensor *wick_norm(wick_tensor *x, double p, int n_dims, const int *dims, bool keepdim) {
    const over o = {n_dims, dims, keepdim};
    bool is_empty;
    if (!x || !check("norm", x, &o, &is_empty)) return NULL;
    if (isnan(p)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "norm: p is NaN");
        return NULL;
    }
    if (isinf(p) && is_empty) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "norm: there is no extreme of an empty dim");
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "norm");
    return wick_scope_result(scope, wk_promoted(norm_of(wk_widened(x), p, &o), x->view.dtype));
}

/* --- std --- */

wick_tensor *wick_std(wick_tensor *x, int n_dims, const int *dims, bool keepdim,
                      double correction) {
    const over o = {n_dims, dims, keepdim};
    bool unused;
    if (!x || !check("std", x, &o, &unused)) return NULL;
    if (!isfinite(correction)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "std: correction %g", correction);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "std");
    wick_tensor *const variance = wick_var(wk_widened(x), n_dims, dims, keepdim, correction);
    return wick_scope_result(scope, wk_promoted(wk_root(variance, 2), x->view.dtype));
}
