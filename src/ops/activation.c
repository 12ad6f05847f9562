/* ops/activation.c: activations that are made of other functions. What affine adds is -0 where it
 * adds nothing, so that -0 stays as it is. */
#include <wick/ops.h>

#include "ops/operand.h"

#include <math.h>

/* x is a float; a chain of f16 or bf16 computes in f32, and its result becomes dtype again. */
static bool begin(const char *op, wick_tensor *x, wick_scope *scope) {
    if (!x || !wk_operand_is_float(op, x) || !wk_operand_is_strided(op, x)) return false;
    *scope = wk_operation_begin(x->device, op);
    return true;
}

static wick_tensor *end(wick_scope scope, const wick_tensor *x, wick_tensor *y) {
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}

wick_tensor *wick_selu(wick_tensor *x) {
    wick_scope scope;
    if (!begin("selu", x, &scope)) return NULL;
    wick_tensor *const curve = wick_elu(wk_widened(x), 1.6732632423543772848170429916717);
    return end(scope, x, wick_affine(curve, 1.0507009873554804934193349852946, -0.0));
}

wick_tensor *wick_celu(wick_tensor *x, double alpha) {
    wick_scope scope;
    if (x && !(isfinite(alpha) && alpha != 0)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "celu: alpha is %g", alpha);
        return NULL;
    }
    if (!begin("celu", x, &scope)) return NULL;
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *const zero = wide ? wick_zeros(x->device, wide->view.dtype, WICK_SCALAR) : NULL;
    wick_tensor *const is_above = wick_gt(wide, zero);
    wick_tensor *const below =
        wick_where(is_above, zero, wide); /* e^x of the others may overflow */
    wick_tensor *const curve =
        wick_affine(wick_expm1(wick_affine(below, 1 / alpha, -0.0)), alpha, -0.0);
    return end(scope, x, wick_where(is_above, wide, curve));
}

wick_tensor *wick_softsign(wick_tensor *x) {
    wick_scope scope;
    if (!begin("softsign", x, &scope)) return NULL;
    wick_tensor *const wide = wk_widened(x);
    return end(scope, x, wick_div(wide, wick_affine(wick_abs(wide), 1, 1)));
}

wick_tensor *wick_hard_tanh(wick_tensor *x) {
    wick_scope scope;
    if (!begin("hard_tanh", x, &scope)) return NULL;
    return end(scope, x, wick_clamp(x, -1, 1));
}

wick_tensor *wick_log_sigmoid(wick_tensor *x) {
    wick_scope scope;
    if (!begin("log_sigmoid", x, &scope)) return NULL;
    return end(scope, x, wick_neg(wick_softplus(wick_neg(x))));
}
