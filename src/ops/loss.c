/* ops/loss.c: losses of elements, and similarity. */
#include <wick/nn.h>

#include "core/shape.h"
#include "ops/compose.h"
#include "ops/reduced.h"

#include <float.h>
#include <math.h>

bool wk_reduction_is_known(const char *op, const wick_tensor *x, wick_reduction reduction) {
    if ((unsigned)reduction <= WICK_REDUCTION_NONE) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: there is no reduction %d", op, (int)reduction);
    return false;
}

wick_tensor *wk_reduced(wick_tensor *loss, wick_reduction reduction) {
    switch (reduction) {
    case WICK_REDUCTION_MEAN: return wick_mean(loss, 0, NULL, false);
    case WICK_REDUCTION_SUM: return wick_sum(loss, 0, NULL, false);
    default: return loss;
    }
}

/* x and target of one shape; factor, which may be absent, broadcasts. */
static bool check(const char *op, wick_tensor *x, wick_tensor *target, wick_tensor *factor,
                  wick_reduction reduction) {
    wick_tensor *const operands[] = {x, target, factor};
    return wk_operands_are_floats(op, operands, 2, 3) && wk_operands_same_shape(op, x, target) &&
           wk_reduction_is_known(op, x, reduction);
}

/* Ends the scope with the loss, in x's dtype. */
static wick_tensor *finish(wick_scope scope, wick_tensor *loss, wick_reduction reduction,
                           const wick_tensor *x) {
    return wick_scope_result(scope, wk_promoted(wk_reduced(loss, reduction), x->view.dtype));
}

static wick_tensor *difference(wick_tensor *x, wick_tensor *target) {
    return wick_sub(wk_widened(x), wk_widened(target));
}

/* --- Distances --- */

wick_tensor *wick_mse(wick_tensor *x, wick_tensor *target, wick_reduction reduction) {
    if (!check("mse", x, target, NULL, reduction)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "mse");
    return finish(scope, wick_sqr(difference(x, target)), reduction, x);
}

static wick_tensor *l1(const char *op, wick_tensor *x, wick_tensor *target,
                       wick_reduction reduction) {
    if (!check(op, x, target, NULL, reduction)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, op);
    return finish(scope, wick_abs(difference(x, target)), reduction, x);
}

wick_tensor *wick_l1(wick_tensor *x, wick_tensor *target, wick_reduction reduction) {
    return l1("l1", x, target, reduction);
}

/* d^2 / 2 up to delta, and on as a line: with m = min(d, delta) both are m^2 / 2 + delta (d - m).
 */
static wick_tensor *huber(const char *op, wick_tensor *x, wick_tensor *target, double delta,
                          double scale, wick_reduction reduction) {
    if (!check(op, x, target, NULL, reduction)) return NULL;
    if (!(delta >= 0)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: delta is %g", op, delta);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const d = wick_abs(difference(x, target));
    wick_tensor *const near = wick_clamp(d, 0, delta);
    wick_tensor *y = wick_affine(wick_sqr(near), scale / 2, 0);
    if (isfinite(delta)) y = wick_add(y, wick_affine(wick_sub(d, near), scale * delta, 0));
    return finish(scope, y, reduction, x);
}

wick_tensor *wick_huber(wick_tensor *x, wick_tensor *target, double delta,
                        wick_reduction reduction) {
    if (x && delta == 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "huber: delta is 0");
        return NULL;
    }
    return huber("huber", x, target, delta, 1, reduction);
}

wick_tensor *wick_smooth_l1(wick_tensor *x, wick_tensor *target, double delta,
                            wick_reduction reduction) {
    if (delta == 0) return l1("smooth_l1", x, target, reduction);
    return huber("smooth_l1", x, target, delta, 1 / delta, reduction);
}

/* --- Probabilities --- */

/* At least -100, which is what 0 gives; its gradient is 0 there. */
static wick_tensor *log_above(wick_tensor *x) {
    if (!x) return NULL;
    wick_tensor *const least = wick_full(x->device, x->view.dtype, WICK_SCALAR, -100);
    wick_tensor *const one = wick_ones(x->device, x->view.dtype, WICK_SCALAR);
    wick_tensor *const is_zero = wick_eq(x, wick_affine(one, 0, 0));
    wick_tensor *const log = wick_log(wick_where(is_zero, one, x));
    return wick_where(is_zero, least, log ? wick_clamp(log, -100, FLT_MAX) : NULL);
}

static wick_tensor *one_less(wick_tensor *x) { return x ? wick_affine(x, -1, 1) : NULL; }

wick_tensor *wick_bce(wick_tensor *x, wick_tensor *target, wick_reduction reduction) {
    if (!check("bce", x, target, NULL, reduction)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "bce");
    wick_tensor *const p = wk_widened(x), *const t = wk_widened(target);
    wick_tensor *const hit = wick_mul(t, log_above(p));
    wick_tensor *const miss = wick_mul(one_less(t), log_above(one_less(p)));
    return finish(scope, wick_neg(wick_add(hit, miss)), reduction, x);
}

static bool broadcasts_to(const char *op, const wick_tensor *x, const wick_tensor *factor) {
    if (!factor) return true;
    const wick_shape shape = wk_tensor_shape_of(x), other = wk_tensor_shape_of(factor);
    wick_shape both;
    if (wk_shape_broadcast(&shape, &other, &both) && wk_shape_equal(&shape, &both)) return true;
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: pos_weight %s does not broadcast to %s", op,
                   wk_shape_text(&other, text[0], sizeof text[0]),
                   wk_shape_text(&shape, text[1], sizeof text[1]));
    return false;
}

/* -log(sigmoid(x)) is softplus(-x), -log(1 - sigmoid(x)) is softplus(x). */
wick_tensor *wick_bce_with_logits(wick_tensor *logits, wick_tensor *target, wick_tensor *pos_weight,
                                  wick_reduction reduction) {
    static const char name[] = "bce_with_logits";
    if (!check(name, logits, target, pos_weight, reduction)) return NULL;
    if (!broadcasts_to(name, logits, pos_weight)) return NULL;
    const wick_scope scope = wk_operation_begin(logits->device, name);
    wick_tensor *const x = wk_widened(logits), *const t = wk_widened(target);
    wick_tensor *hit = wick_mul(t, wick_softplus(wick_neg(x)));
    if (pos_weight) hit = wick_mul(hit, wk_widened(pos_weight));
    wick_tensor *const miss = wick_mul(one_less(t), wick_softplus(x));
    return finish(scope, wick_add(hit, miss), reduction, logits);
}

/* A target of 0 counts as nothing: its logarithm is that of the least normal number. */
wick_tensor *wick_kl_div(wick_tensor *x, wick_tensor *target, bool is_log,
                         wick_reduction reduction) {
    if (!check("kl_div", x, target, NULL, reduction)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "kl_div");
    wick_tensor *const t = wk_widened(target);
    const bool is_double = x->view.dtype == WICK_F64;
    const double least = is_double ? DBL_MIN : (double)FLT_MIN;
    const double most = is_double ? DBL_MAX : (double)FLT_MAX;
    wick_tensor *const log = is_log ? t : wick_log(wick_clamp(t, least, most));
    wick_tensor *const p = is_log ? wick_exp(t) : t;
    return finish(scope, wick_mul(p, wick_sub(log, wk_widened(x))), reduction, x);
}

/* --- Similarity --- */

wick_tensor *wick_cosine_similarity(wick_tensor *a, wick_tensor *b, int dim, double eps) {
    static const char name[] = "cosine_similarity";
    if (!wk_operands_are_floats(name, (wick_tensor *[]){a, b}, 2, 2)) return NULL;
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    wick_shape shape;
    int resolved;
    if (!wk_shape_broadcast(&shape_a, &shape_b, &shape)) {
        (void)wk_operands_same_shape(name, a, b);
        return NULL;
    }
    if (!wk_operand_dim(name, shape_a.rank < shape_b.rank ? b : a, dim, &resolved)) return NULL;
    if (!(eps >= 0)) {
        wk_device_fail(a->device, WICK_ERR_VALUE, "%s: eps %g", name, eps);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(a->device, name);
    wick_tensor *const x = wick_expand(wk_widened(a), shape);
    wick_tensor *const y = wick_expand(wk_widened(b), shape);
    wick_tensor *const product = wick_sum(wick_mul(x, y), 1, &resolved, true);
    wick_tensor *const norms =
        wick_mul(wk_norm_along(x, resolved, eps), wk_norm_along(y, resolved, eps));
    wick_tensor *const cosine = wick_squeeze(wick_div(product, norms), resolved);
    return wick_scope_result(scope, wk_promoted(cosine, a->view.dtype));
}
