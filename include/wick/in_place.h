/* wick/in_place.h: functions of elements that overwrite their first operand; part of wick/ops.h,
 * whose conventions hold. They return that operand, not a new reference. */
#ifndef WICK_IN_PLACE_H
#define WICK_IN_PLACE_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x becomes the function of x, or of x and b, which is broadcast to its shape. WICK_ERR_DTYPE: x
 * cannot hold the result. WICK_ERR_ARGUMENT: x shows elements more than once. For all others
 * wick_copy(x, wick_cos(x)) does the same through a new tensor. */
WICK_API wick_tensor *wick_add_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_sub_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_mul_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_div_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_maximum_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_minimum_in_place(wick_tensor *x, wick_tensor *b);
WICK_API wick_tensor *wick_affine_in_place(wick_tensor *x, double mul, double add);
WICK_API wick_tensor *wick_clamp_in_place(wick_tensor *x, double min, double max);
WICK_API wick_tensor *wick_abs_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_neg_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_sqr_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_relu_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_exp_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_log_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_sqrt_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_tanh_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_sigmoid_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_silu_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_gelu_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_floor_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_ceil_in_place(wick_tensor *x);
WICK_API wick_tensor *wick_round_in_place(wick_tensor *x);

#ifdef __cplusplus
}
#endif

#endif
