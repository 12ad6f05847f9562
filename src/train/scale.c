/* train/scale.c: gradients that are multiplied in place: clipped, or divided by the scale of their
 * loss. */
#include <wick/nn.h>
#include <wick/train.h>

#include "ops/compose.h"

#include <math.h>

/* The first gradient that is there; NULL: none, or not all can be changed. */
static wick_tensor *check(const char *name, wick_tensor *const *gradients, size_t n) {
    wick_tensor *first = NULL;
    for (size_t i = 0; gradients && i < n; i++) {
        if (!gradients[i]) continue;
        if (!first) first = gradients[i];
        if (!wk_operands_present(name, (wick_tensor *[]){first, gradients[i]}, 2) ||
            !wk_operand_is_float(name, gradients[i]) || !wk_operand_is_writable(name, gradients[i]))
            return NULL;
    }
    return first;
}

/* f64 where a gradient is, else f32. */
static wick_dtype widest_dtype(wick_tensor *const *gradients, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (gradients[i] && gradients[i]->view.dtype == WICK_F64) return WICK_F64;
    return WICK_F32;
}

static wick_tensor *norm_of(wick_tensor *const *gradients, size_t n, wick_dtype dtype) {
    wick_tensor *sum = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!gradients[i]) continue;
        wick_tensor *const squares = wick_sqr(wk_widened(gradients[i]));
        wick_tensor *const part = wk_promoted(wick_sum(squares, 0, NULL, false), dtype);
        sum = sum ? wick_add(sum, part) : part;
        if (!sum) return NULL;
    }
    return wick_sqrt(sum);
}

/* x *= factor, a scalar of another type, in place. */
static bool multiply(wick_tensor *x, wick_tensor *factor) {
    wick_tensor *const wide = wk_widened(x);
    return wide && wick_copy(x, wick_mul(wide, wk_promoted(factor, wide->view.dtype)));
}

wick_tensor *wick_clip_grad_norm(wick_tensor *const *gradients, size_t n, double max_norm) {
    static const char name[] = "clip_grad_norm";
    wick_tensor *const first = check(name, gradients, n);
    if (!first) return NULL;
    if (!(max_norm > 0)) {
        wk_device_fail(first->device, WICK_ERR_VALUE, "%s: max_norm is %g", name, max_norm);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(first->device, name);
    const wick_dtype dtype = widest_dtype(gradients, n);
    wick_tensor *norm = norm_of(gradients, n, dtype);
    wick_tensor *const most = wick_full(first->device, dtype, WICK_SCALAR, max_norm);
    /* The little that is added keeps a norm of 0 from dividing. */
    wick_tensor *const share = norm ? wick_div(most, wick_affine(norm, 1, 1e-6)) : NULL;
    wick_tensor *const factor = share ? wick_clamp(share, 0, 1) : NULL;
    for (size_t i = 0; i < n && norm; i++)
        if (gradients[i] && (!factor || !multiply(gradients[i], factor))) norm = NULL;
    return wick_scope_result(scope, norm);
}

/* --- Scaled losses --- */

/* 1 where all of x is finite, else 0. */
static wick_tensor *is_all_finite(wick_tensor *x) {
    return wick_cast(wick_all(wick_is_finite(x), 0, NULL, false), WICK_F32);
}

wick_tensor *wick_unscale_gradients(wick_tensor *const *gradients, size_t n, double scale) {
    static const char name[] = "unscale_gradients";
    wick_tensor *const first = check(name, gradients, n);
    if (!first) return NULL;
    if (!(scale > 0) || isinf(scale)) {
        wk_device_fail(first->device, WICK_ERR_VALUE, "%s: the scale is %g", name, scale);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(first->device, name);
    wick_tensor *all = wick_ones(first->device, WICK_F32, WICK_SCALAR);
    wick_tensor *const factor =
        wick_full(first->device, widest_dtype(gradients, n), WICK_SCALAR, 1 / scale);
    for (size_t i = 0; i < n && all; i++) {
        if (!gradients[i]) continue;
        all = wick_mul(all, is_all_finite(gradients[i]));
        if (!factor || !multiply(gradients[i], factor)) all = NULL;
    }
    return wick_scope_result(scope, all);
}

bool wick_loss_scale_update(wick_loss_scale *scale, bool is_finite) {
    const double least = 1.0 / (1 << 24), most = 1 << 24;
    if (!scale) return is_finite;
    if (!is_finite) {
        scale->scale = fmax(scale->scale / 2, least);
        scale->n_steps = 0;
        return false;
    }
    if (++scale->n_steps < (scale->interval > 0 ? scale->interval : 2000)) return true;
    scale->scale = fmin(scale->scale * 2, fmax(most, scale->scale));
    scale->n_steps = 0;
    return true;
}
