/* wick/ops.h: operations on tensors.
 *
 * Each one checks its operands, queues the operation and returns its result, a new tensor (or a
 * view where it says so) that belongs to the innermost scope or else to the caller. On failure it
 * returns NULL and the device holds the sentence; a NULL operand gives NULL. dims count from 0, or
 * from the end when negative. Operands of one operation have one dtype unless it says otherwise.
 * Operations on a and b broadcast by NumPy's rule; where their dtypes differ, both are promoted as
 * the array API standard (2024.12) has it: to the least type that holds the numbers of both, of a
 * float and an integer the float's, of f16 and bf16 f32. */
#ifndef WICK_OPS_H
#define WICK_OPS_H

#include <wick/array.h>
#include <wick/in_place.h>
#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Creation --- */

WICK_API wick_tensor *wick_zeros(wick_device *device, wick_dtype dtype, wick_shape shape);
WICK_API wick_tensor *wick_ones(wick_device *device, wick_dtype dtype, wick_shape shape);
/* value is rounded to dtype; integers are cut to whole numbers and to what dtype holds. */
WICK_API wick_tensor *wick_full(wick_device *device, wick_dtype dtype, wick_shape shape,
                                double value);
/* start, start + step, ... while below end (above, for a negative step). WICK_ERR_VALUE: step is 0
 * or points away from end, or a value does not fit an integer dtype. */
WICK_API wick_tensor *wick_arange(wick_device *device, wick_dtype dtype, double start, double end,
                                  double step);
/* [n, n], 1 on the diagonal. */
WICK_API wick_tensor *wick_eye(wick_device *device, wick_dtype dtype, int64_t n);

/* Random numbers. Each call takes the next stream of the device's seed (wick_device_set_seed); the
 * numbers are the same on every device, normal ones within rounding. WICK_ERR_STATE: in a recorded
 * plan.
 *
 * Uniform in [low, high): a number that rounding to dtype would take out of it becomes the next one
 * inside, of f32 and [0, 1) 1 - 2^-24 at most. f32, f16 and bf16 are made of 24 random bits, f64
 * of 53. WICK_ERR_VALUE: low >= high, or dtype cannot hold them or has no number in between. */
WICK_API wick_tensor *wick_rand(wick_device *device, wick_dtype dtype, wick_shape shape, double low,
                                double high);
/* Normal, at most 5.8 deviations from mean (f64: 8.6). WICK_ERR_VALUE: deviation < 0. */
WICK_API wick_tensor *wick_randn(wick_device *device, wick_dtype dtype, wick_shape shape,
                                 double mean, double deviation);
/* u32: 32 random bits each, the words that the numbers above are made of. */
WICK_API wick_tensor *wick_rand_bits(wick_device *device, wick_shape shape);

/* --- Elementwise, of numbers: what overflows an integer type wraps --- */

WICK_API wick_tensor *wick_abs(wick_tensor *x);
WICK_API wick_tensor *wick_neg(wick_tensor *x);
WICK_API wick_tensor *wick_sqr(wick_tensor *x);
/* -1, 0 or 1. */
WICK_API wick_tensor *wick_sign(wick_tensor *x);
WICK_API wick_tensor *wick_relu(wick_tensor *x);
/* relu(x)^2 and min(relu(x), 6). */
WICK_API wick_tensor *wick_relu_squared(wick_tensor *x);
WICK_API wick_tensor *wick_relu6(wick_tensor *x);
/* x * mul + add; both are truncated where x is of an integer type, as are the bounds of clamp. */
WICK_API wick_tensor *wick_affine(wick_tensor *x, double mul, double add);
/* min(max(x, min), max), so max where min is larger; NaN stays. WICK_ERR_VALUE: a bound is NaN. */
WICK_API wick_tensor *wick_clamp(wick_tensor *x, double min, double max);

WICK_API wick_tensor *wick_add(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_sub(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_mul(wick_tensor *a, wick_tensor *b);
/* Integers truncate toward zero; there x / 0 is x. */
WICK_API wick_tensor *wick_div(wick_tensor *a, wick_tensor *b);
/* The same rounded down; integers: x / 0 is x. */
WICK_API wick_tensor *wick_floor_divide(wick_tensor *a, wick_tensor *b);
/* a - b floor(a / b), with the sign of b, and a - b trunc(a / b), with the sign of a; exact where
 * the result can be. Integers: the remainder of a division by 0 is 0. */
WICK_API wick_tensor *wick_remainder(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_fmod(wick_tensor *a, wick_tensor *b);
/* NaN where either operand is NaN. */
WICK_API wick_tensor *wick_maximum(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_minimum(wick_tensor *a, wick_tensor *b);
/* u8, 0 or 1. A comparison with NaN is 0, but 1 for ne. */
WICK_API wick_tensor *wick_eq(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_ne(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_lt(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_le(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_gt(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_ge(wick_tensor *a, wick_tensor *b);
/* |a - b| <= atol + rtol |b|, and where both are the same infinity or, with equal_nan, NaN: u8;
 * integers are compared as f64. all_close: whether it holds of all elements, a scalar.
 * WICK_ERR_VALUE unless rtol and atol are finite and >= 0. */
WICK_API wick_tensor *wick_is_close(wick_tensor *a, wick_tensor *b, double rtol, double atol,
                                    bool equal_nan);
WICK_API wick_tensor *wick_all_close(wick_tensor *a, wick_tensor *b, double rtol, double atol,
                                     bool equal_nan);
/* u8 of any dtype: NaN; infinite; neither; negative or -0. */
WICK_API wick_tensor *wick_is_nan(wick_tensor *x);
WICK_API wick_tensor *wick_is_inf(wick_tensor *x);
WICK_API wick_tensor *wick_is_finite(wick_tensor *x);
WICK_API wick_tensor *wick_signbit(wick_tensor *x);
/* u8 of any dtypes; what is not zero is true, NaN too. */
WICK_API wick_tensor *wick_logical_not(wick_tensor *x);
WICK_API wick_tensor *wick_logical_and(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_logical_or(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_logical_xor(wick_tensor *a, wick_tensor *b);
/* Of the bits of integers, and of bools. */
WICK_API wick_tensor *wick_bitwise_not(wick_tensor *x);
WICK_API wick_tensor *wick_bitwise_and(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_bitwise_or(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_bitwise_xor(wick_tensor *a, wick_tensor *b);
/* Bits of integer a moved b places, b < 0 and b >= a's bits counting as all of them; to the right
 * the sign fills up. */
WICK_API wick_tensor *wick_bitwise_left_shift(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_bitwise_right_shift(wick_tensor *a, wick_tensor *b);
/* a where cond (u8, bool or i64) is not zero, else b; all three broadcast. */
WICK_API wick_tensor *wick_where(wick_tensor *cond, wick_tensor *a, wick_tensor *b);
/* Keeps what lies on and below (tril), on and above (triu) a diagonal of the last two dims, and
 * makes the rest zero; diagonal 0: the main one, positive: above it. */
WICK_API wick_tensor *wick_tril(wick_tensor *x, int64_t diagonal);
WICK_API wick_tensor *wick_triu(wick_tensor *x, int64_t diagonal);

/* --- Elementwise, of floats --- */

WICK_API wick_tensor *wick_exp(wick_tensor *x);
WICK_API wick_tensor *wick_log(wick_tensor *x);
WICK_API wick_tensor *wick_sin(wick_tensor *x);
WICK_API wick_tensor *wick_cos(wick_tensor *x);
WICK_API wick_tensor *wick_tan(wick_tensor *x);
WICK_API wick_tensor *wick_asin(wick_tensor *x);
WICK_API wick_tensor *wick_acos(wick_tensor *x);
WICK_API wick_tensor *wick_atan(wick_tensor *x);
/* Angle of the point (b, a), -pi to pi. */
WICK_API wick_tensor *wick_atan2(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_sinh(wick_tensor *x);
WICK_API wick_tensor *wick_cosh(wick_tensor *x);
WICK_API wick_tensor *wick_asinh(wick_tensor *x);
WICK_API wick_tensor *wick_acosh(wick_tensor *x);
WICK_API wick_tensor *wick_atanh(wick_tensor *x);
/* e^x - 1, 2^x; log(1 + x), and logarithms to base 2 and 10. */
WICK_API wick_tensor *wick_expm1(wick_tensor *x);
WICK_API wick_tensor *wick_exp2(wick_tensor *x);
WICK_API wick_tensor *wick_log1p(wick_tensor *x);
WICK_API wick_tensor *wick_log2(wick_tensor *x);
WICK_API wick_tensor *wick_log10(wick_tensor *x);
/* log(e^a + e^b), without its overflow. */
WICK_API wick_tensor *wick_logaddexp(wick_tensor *a, wick_tensor *b);
/* 1 / x. */
WICK_API wick_tensor *wick_recip(wick_tensor *x);
WICK_API wick_tensor *wick_sqrt(wick_tensor *x);
/* 1 / sqrt(x). */
WICK_API wick_tensor *wick_rsqrt(wick_tensor *x);
/* sqrt(a^2 + b^2), without its overflow. */
WICK_API wick_tensor *wick_hypot(wick_tensor *a, wick_tensor *b);
/* |a| with the sign of b. */
WICK_API wick_tensor *wick_copysign(wick_tensor *a, wick_tensor *b);
/* The number of the dtype that follows a on the way to b; computed on the CPU. */
WICK_API wick_tensor *wick_nextafter(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_erf(wick_tensor *x);
WICK_API wick_tensor *wick_tanh(wick_tensor *x);
WICK_API wick_tensor *wick_sigmoid(wick_tensor *x);
WICK_API wick_tensor *wick_floor(wick_tensor *x);
WICK_API wick_tensor *wick_ceil(wick_tensor *x);
/* Toward zero. */
WICK_API wick_tensor *wick_trunc(wick_tensor *x);
/* Half to even. */
WICK_API wick_tensor *wick_round(wick_tensor *x);
/* As C's pow. */
WICK_API wick_tensor *wick_pow(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_powf(wick_tensor *x, double exponent);

/* x * sigmoid(x). */
WICK_API wick_tensor *wick_silu(wick_tensor *x);
/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), x / 2 * (1 + erf(x / sqrt(2))) and
 * x * sigmoid(1.702 x) (Hendrycks, Gimpel, 2016). */
WICK_API wick_tensor *wick_gelu(wick_tensor *x);
WICK_API wick_tensor *wick_gelu_erf(wick_tensor *x);
WICK_API wick_tensor *wick_quick_gelu(wick_tensor *x);
/* log(1 + e^x) and x * tanh(softplus(x)). */
WICK_API wick_tensor *wick_softplus(wick_tensor *x);
WICK_API wick_tensor *wick_mish(wick_tensor *x);
/* clamp(x / 6 + 1 / 2, 0, 1) and x times that. */
WICK_API wick_tensor *wick_hard_sigmoid(wick_tensor *x);
WICK_API wick_tensor *wick_hard_swish(wick_tensor *x);
/* Below 0 alpha * (e^x - 1) and slope * x, else x. */
WICK_API wick_tensor *wick_elu(wick_tensor *x, double alpha);
WICK_API wick_tensor *wick_leaky_relu(wick_tensor *x, double slope);

/* 1.0507 times elu of alpha 1.67326 (Klambauer et al., 2017). */
WICK_API wick_tensor *wick_selu(wick_tensor *x);
/* max(x, 0) + min(alpha (e^(x / alpha) - 1), 0) (Barron, 2017). WICK_ERR_VALUE: alpha is 0 or not
 * finite. */
WICK_API wick_tensor *wick_celu(wick_tensor *x, double alpha);
/* x / (1 + |x|), x clamped to [-1, 1], log(sigmoid(x)). */
WICK_API wick_tensor *wick_softsign(wick_tensor *x);
WICK_API wick_tensor *wick_hard_tanh(wick_tensor *x);
WICK_API wick_tensor *wick_log_sigmoid(wick_tensor *x);

/* Gated units: silu, gelu, gelu_erf or relu of gate, times up; one shape (Shazeer, 2020). */
WICK_API wick_tensor *wick_swiglu(wick_tensor *gate, wick_tensor *up);
WICK_API wick_tensor *wick_geglu(wick_tensor *gate, wick_tensor *up);
WICK_API wick_tensor *wick_geglu_erf(wick_tensor *gate, wick_tensor *up);
WICK_API wick_tensor *wick_reglu(wick_tensor *gate, wick_tensor *up);
/* g * sigmoid(alpha * g) * (u + 1) with g = min(gate, limit), u = clamp(up, -limit, limit). */
WICK_API wick_tensor *wick_swiglu_clamped(wick_tensor *gate, wick_tensor *up, double alpha,
                                          double limit);

/* a + weight (b - a); the three broadcast. */
WICK_API wick_tensor *wick_lerp(wick_tensor *a, wick_tensor *b, wick_tensor *weight);
/* x with these numbers in place of NaN, infinity and -infinity. */
WICK_API wick_tensor *wick_nan_to_num(wick_tensor *x, double nan, double inf, double minus_inf);

/* --- Conversion --- */

/* Between all dtypes: floats round to nearest even; float to integer truncates and saturates, NaN
 * gives 0; integer to a narrower integer keeps the low bits. The source may be of a block type. */
WICK_API wick_tensor *wick_cast(wick_tensor *x, wick_dtype dtype);

/* --- In place (they return their first operand, not a new reference); more: in_place.h --- */

/* Every element becomes value. */
WICK_API wick_tensor *wick_fill(wick_tensor *x, double value);
/* dst becomes src, broadcast to its shape and cast to its dtype. */
WICK_API wick_tensor *wick_copy(wick_tensor *dst, wick_tensor *src);
/* cache [b, h, s, d] receives fresh [b, h, t, d] at position along dim 2; position + t <= s. */
WICK_API wick_tensor *wick_kv_append(wick_tensor *cache, wick_tensor *fresh, int64_t position);

/* --- Views: no data moves (reshape and flatten copy where strides force it) --- */

WICK_API wick_tensor *wick_transpose(wick_tensor *x, int dim0, int dim1);
/* dims: each dimension of x once. */
WICK_API wick_tensor *wick_permute(wick_tensor *x, int rank, const int *dims);
/* One extent may be -1: what is left. */
WICK_API wick_tensor *wick_reshape(wick_tensor *x, wick_shape shape);
/* Dims start to end (inclusive) become one. */
WICK_API wick_tensor *wick_flatten(wick_tensor *x, int start, int end);
/* Removes dim where its extent is 1, else changes nothing. */
WICK_API wick_tensor *wick_squeeze(wick_tensor *x, int dim);
/* A new dim of extent 1 at position dim of the result. */
WICK_API wick_tensor *wick_unsqueeze(wick_tensor *x, int dim);
/* Elements start to start + length - 1 of dim. WICK_ERR_INDEX: some of them are not there;
 * WICK_ERR_VALUE: length < 0. */
WICK_API wick_tensor *wick_narrow(wick_tensor *x, int dim, int64_t start, int64_t length);
/* Elements start, start + step, ... below stop of dim. WICK_ERR_INDEX unless 0 <= start <= stop <=
 * the extent: unlike in NumPy, positions do not count from the end. WICK_ERR_VALUE: step <= 0. */
WICK_API wick_tensor *wick_slice(wick_tensor *x, int dim, int64_t start, int64_t stop,
                                 int64_t step);
/* Parts of dim of ceil(extent / count) elements, the last one perhaps smaller, into out [count]; of
 * an empty dim `count`. Returns how many there are, 0 on failure. WICK_ERR_VALUE: count is 0. */
WICK_API size_t wick_chunk(wick_tensor *x, size_t count, int dim, wick_tensor **out);
/* Dims of extent 1, and new leading ones, are repeated without a copy. */
WICK_API wick_tensor *wick_expand(wick_tensor *x, wick_shape shape);
/* A view of x when it is dense, else a dense copy. */
WICK_API wick_tensor *wick_contiguous(wick_tensor *x);
/* count >= 1 tensors that agree in all dims but dim. */
WICK_API wick_tensor *wick_cat(wick_tensor *const *x, size_t count, int dim);
/* count >= 1 tensors of one shape along a new dim. */
WICK_API wick_tensor *wick_stack(wick_tensor *const *x, size_t count, int dim);

/* --- Reductions and normalisation --- */

/* Over dims [n_dims]; dims NULL: over all, regardless of n_dims. keepdim leaves an extent of 1 for
 * each. The result has the dtype of x; sums and products of integers wrap. Over no elements the
 * sum is 0, the product 1 and the mean NaN. */
WICK_API wick_tensor *wick_sum(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
WICK_API wick_tensor *wick_prod(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
/* Floats. */
WICK_API wick_tensor *wick_mean(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
/* Sum of (x - mean)^2, divided by the number of elements less correction; floats. */
WICK_API wick_tensor *wick_var(wick_tensor *x, int n_dims, const int *dims, bool keepdim,
                               double correction);
/* The square root of var. */
WICK_API wick_tensor *wick_std(wick_tensor *x, int n_dims, const int *dims, bool keepdim,
                               double correction);
/* log(sum(e^x)), without its overflow; floats. Over no elements -infinity. */
WICK_API wick_tensor *wick_log_sum_exp(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
/* sum(|x|^p)^(1 / p), of p = 2 the root of the sum of squares; p 0: the number of elements that are
 * not zero; infinity and -infinity: the largest and the least |x|, over no elements WICK_ERR_SHAPE.
 * Floats. WICK_ERR_VALUE: p is NaN. */
WICK_API wick_tensor *wick_norm(wick_tensor *x, double p, int n_dims, const int *dims,
                                bool keepdim);
/* Whether all or any elements are not zero, u8 (over none all are, and not any), and how many, u32;
 * any dtype. */
WICK_API wick_tensor *wick_all(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
WICK_API wick_tensor *wick_any(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
WICK_API wick_tensor *wick_count_nonzero(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
/* NaN where any element is NaN. Over no elements: WICK_ERR_SHAPE, as for argmax and argmin. */
WICK_API wick_tensor *wick_max(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
WICK_API wick_tensor *wick_min(wick_tensor *x, int n_dims, const int *dims, bool keepdim);
/* u32 index of the first largest or smallest element along dim; NaN is passed over unless it comes
 * first. Up to 2^32 - 1 elements. */
WICK_API wick_tensor *wick_argmax(wick_tensor *x, int dim, bool keepdim);
WICK_API wick_tensor *wick_argmin(wick_tensor *x, int dim, bool keepdim);
/* The k largest elements along dim, the largest first, and their u32 indices in *indices (NULL: not
 * wanted), which belongs to the scope or the caller as the result does. Of equal ones the first
 * comes first; NaN counts as the largest of all. Floats. On failure *indices is NULL, too.
 * WICK_ERR_VALUE unless 0 < k <= the extent. On a GPU k may be up to 512, or the extent up to 1024;
 * beyond that it is computed on the CPU. */
WICK_API wick_tensor *wick_top_k(wick_tensor *x, int64_t k, int dim, wick_tensor **indices);
WICK_API wick_tensor *wick_softmax(wick_tensor *x, int dim);
/* log(softmax(x)), without its overflow. */
WICK_API wick_tensor *wick_log_softmax(wick_tensor *x, int dim);
/* x / sqrt(mean(x^2) + eps) * weight (last dim); weight [n] or NULL (Zhang, Sennrich, 2019). */
WICK_API wick_tensor *wick_rms_norm(wick_tensor *x, wick_tensor *weight, double eps);
/* (x - mean) / sqrt(variance + eps) * weight + bias over the last dim, the variance divided by n;
 * weight and bias [n] or NULL (Ba, Kiros, Hinton, 2016). */
WICK_API wick_tensor *wick_layer_norm(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                      double eps);
/* The same over the last n dims together, of whose shape weight and bias are. */
WICK_API wick_tensor *wick_rms_norm_over(wick_tensor *x, int n, wick_tensor *weight, double eps);
WICK_API wick_tensor *wick_layer_norm_over(wick_tensor *x, int n, wick_tensor *weight,
                                           wick_tensor *bias, double eps);

/* --- Products --- */

/* [.., m, k] x [.., k, n], leading dims broadcast; floats. A vector [k] is a row on the left and a
 * column on the right; the result does not have that dim. */
WICK_API wick_tensor *wick_matmul(wick_tensor *a, wick_tensor *b);
/* x [.., k] weight^T + bias: weight [n, k] of any dtype, block types included, bias [n] or NULL. */
WICK_API wick_tensor *wick_linear(wick_tensor *x, wick_tensor *weight, wick_tensor *bias);
/* The same with a weight of its own for each row: x [m, u, k], or [m, k] for the same x u times;
 * weight [experts, n, k], bias [experts, n] or NULL, ids [m, u] u32: [m, u, n], row (i, j) by
 * expert ids[i, j]. A row whose id is out of range is left as it is, and reported by the next read
 * or poll (WICK_ERR_INDEX). */
WICK_API wick_tensor *wick_linear_experts(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                          wick_tensor *ids);
/* Rows of weight [n, k]: [ids.., k]. ids: integers. An index out of range is reported by the
 * next read or poll (WICK_ERR_INDEX). */
WICK_API wick_tensor *wick_embedding(wick_tensor *weight, wick_tensor *ids);

/* --- Transformers --- */

typedef enum wick_rope_layout {
    WICK_ROPE_BHTD, /* [batch, heads, time, dim] */
    WICK_ROPE_BTHD, /* [batch, time, heads, dim] */
} wick_rope_layout;

/* Rotary embedding (Su et al., 2021) of the first rotary_dim dimensions; the others pass. Pair k at
 * position p turns by p / scale_factor * theta^(-2k / rotary_dim). Zero: default. */
typedef struct wick_rope_desc {
    int rotary_dim;      /* 0: all of the last dim; even */
    double theta;        /* 0: 10000 */
    double scale_factor; /* 0: 1 */
    int64_t offset;      /* position of the first row, where positions is NULL */
    bool interleaved;    /* pairs (2k, 2k + 1), else (k, k + rotary_dim / 2) */
    wick_rope_layout layout;
} wick_rope_desc;

/* x rank 4; positions [time] or [batch, time] (integers) or NULL. */
WICK_API wick_tensor *wick_rope(wick_tensor *x, wick_tensor *positions, const wick_rope_desc *desc);
/* The same with given tables: cos and sin [time, r / 2] or [batch, time, r / 2] of a float type
 * (f32 is used as it is, as is f64 for x of f64). x rank 3 (without batch) or 4. */
WICK_API wick_tensor *wick_rope_table(wick_tensor *x, wick_tensor *cos, wick_tensor *sin,
                                      bool interleaved, wick_rope_layout layout);

/* Scaled dot-product attention (Vaswani et al., 2017). Row i of t queries over s keys stands at
 * position i + s - t. */
typedef struct wick_attention_desc {
    double scale;   /* 0: 1 / sqrt(d); FLT_MIN weighs all keys alike */
    double softcap; /* c > 0: scores become c tanh(score / c) */
    int32_t window; /* w > 0: keys w or more positions before the query are not seen */
    bool causal;
    wick_tensor *mask;   /* u8 or bool, broadcast to [b, h, t, s]; 0: not seen */
    wick_tensor *bias;   /* added to the scores, broadcast to [b, h, t, s] */
    wick_tensor *sinks;  /* [h]: one more logit per head, without a value */
    wick_tensor *slopes; /* [h]: ALiBi, slope * (key position - query position) is added */
} wick_attention_desc;

/* q [b, h, t, d], k [b, g, s, d], v [b, g, s, e]: [b, h, t, e]; g divides h. desc may be NULL. */
WICK_API wick_tensor *wick_attention(wick_tensor *q, wick_tensor *k, wick_tensor *v,
                                     const wick_attention_desc *desc);

#ifdef __cplusplus
}
#endif

#endif
