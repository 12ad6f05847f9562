/* train/clip.c: gradients that are bounded by the norm of all of them. */
#include <wick/nn.h>
#include <wick/train.h>

#include "ops/compose.h"

static const char name[] = "clip_grad_norm";

/* The first gradient that is there; NULL: none, or not all can be changed. */
static wick_tensor *check(wick_tensor *const *gradients, size_t n) {
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
static wick_dtype dtype_of_norm(wick_tensor *const *gradients, size_t n) {
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
static bool scale(wick_tensor *x, wick_tensor *factor) {
    wick_tensor *const wide = wk_widened(x);
    return wide && wick_copy(x, wick_mul(wide, wk_promoted(factor, wide->view.dtype)));
}

wick_tensor *wick_clip_grad_norm(wick_tensor *const *gradients, size_t n, double max_norm) {
    wick_tensor *const first = check(gradients, n);
    if (!first) return NULL;
    if (!(max_norm > 0)) {
        wk_device_fail(first->device, WICK_ERR_VALUE, "%s: max_norm is %g", name, max_norm);
        return NULL;
    }
    const wick_scope scope = wick_scope_begin(first->device);
    const wick_dtype dtype = dtype_of_norm(gradients, n);
    wick_tensor *norm = norm_of(gradients, n, dtype);
    wick_tensor *const most = wick_full(first->device, dtype, WICK_SCALAR, max_norm);
    /* The little that is added keeps a norm of 0 from dividing. */
    wick_tensor *const share = norm ? wick_div(most, wick_affine(norm, 1, 1e-6)) : NULL;
    wick_tensor *const factor = share ? wick_clamp(share, 0, 1) : NULL;
    for (size_t i = 0; i < n && norm; i++)
        if (gradients[i] && (!factor || !scale(gradients[i], factor))) norm = NULL;
    return wick_scope_result(scope, norm);
}
