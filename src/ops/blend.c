/* ops/blend.c: values between two tensors, and in place of those that are not finite. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/compose.h"

wick_tensor *wick_lerp(wick_tensor *a, wick_tensor *b, wick_tensor *weight) {
    if (!wk_operands_are_floats("lerp", (wick_tensor *[]){a, b, weight}, 3, 3)) return NULL;
    wick_shape shape; /* three broadcast where each two of them do */
    if (!wk_operands_broadcast("lerp", a, b, &shape) ||
        !wk_operands_broadcast("lerp", a, weight, &shape) ||
        !wk_operands_broadcast("lerp", b, weight, &shape))
        return NULL;
    const wick_scope scope = wk_operation_begin(a->device, "lerp");
    wick_tensor *const from = wk_widened(a);
    wick_tensor *const step = wick_mul(wk_widened(weight), wick_sub(wk_widened(b), from));
    return wick_scope_result(scope, wk_promoted(wick_add(from, step), a->view.dtype));
}

wick_tensor *wick_nan_to_num(wick_tensor *x, double nan, double inf, double minus_inf) {
    if (!x || !wk_operand_is_number("nan_to_num", x) || !wk_operand_is_strided("nan_to_num", x))
        return NULL;
    const wick_dtype dtype = x->view.dtype;
    const wick_scope scope = wk_operation_begin(x->device, "nan_to_num");
    if (!wk_dtype_is_float(dtype)) return wick_scope_result(scope, wk_dense_copy(x, dtype));
    wick_tensor *const zero = wick_zeros(x->device, dtype, WICK_SCALAR);
    wick_tensor *const bound =
        wick_where(wick_gt(x, zero), wick_full(x->device, dtype, WICK_SCALAR, inf),
                   wick_full(x->device, dtype, WICK_SCALAR, minus_inf));
    wick_tensor *const finite = wick_where(wick_is_inf(x), bound, x);
    wick_tensor *const number = wick_full(x->device, dtype, WICK_SCALAR, nan);
    return wick_scope_result(scope, wick_where(wick_is_nan(x), number, finite));
}
