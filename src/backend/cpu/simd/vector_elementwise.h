/* simd/vector_elementwise.h: functions of one and of two elements and gated units, over any
 * strides. Floats are computed in f32, regardless of the operands' dtypes. */
#ifndef WK_SIMD_VECTOR_ELEMENTWISE_H
#define WK_SIMD_VECTOR_ELEMENTWISE_H

#include "backend/cpu/simd/vector_inverse.h"
#include "backend/cpu/simd/vector_walk.h"

#include <stdalign.h>

/* Every function has a loop of its own. */

/* --- Unary --- */

/* Parameters of float64, each as a pair of floats. */
typedef struct unary_parameters {
    float a, a_low, b, b_low;
} unary_parameters;

static unary_parameters parameters_of(const wk_op *op) {
    const double a = op->p.unary.a, b = op->p.unary.b;
    return (unary_parameters){
        .a = (float)a,
        .a_low = (float)(a - (double)(float)a),
        .b = (float)b,
        .b_low = (float)(b - (double)(float)b),
    };
}

/* To [low, high]; low where that is above high, NaN stays. */
WK_INLINE v16 v16_clamp(v16 x, v16 low, v16 high) {
    return v16_select(v16_less(x, low), low, v16_min(high, x));
}

WK_INLINE v16 v16_hard_sigmoid(v16 x) {
    const v16 sixths = v16_clamp(v16_add(x, v16_set(3)), v16_zero(), v16_set(6));
    return v16_div(sixths, v16_set(6));
}

/* What the low parts add would be NaN next to an infinity. */
WK_INLINE v16 v16_affine(v16 x, const unary_parameters *p) {
    const v16 more = v16_fma(x, v16_set(p->a_low), v16_set(p->b_low));
    const m16 is_finite = v16_less(v16_abs(x), v16_set(INFINITY));
    const v16 value = v16_fma_once(x, v16_set(p->a), v16_set(p->b)); /* they may cancel */
    return v16_add(value, v16_select(is_finite, more, v16_zero()));
}

/* x where it is above 0, else other. */
WK_INLINE v16 v16_if_above(v16 x, v16 other) {
    return v16_select(v16_less(v16_zero(), x), x, other);
}

/* Zeros and NaN are their own. */
WK_INLINE v16 v16_sign(v16 x) {
    return v16_select(v16_less(v16_zero(), v16_abs(x)), v16_copy_sign(v16_set(1), x), x);
}

/* In this order NaN stays. */
WK_INLINE v16 v16_relu(v16 x) { return v16_max(v16_zero(), x); }

/* X(FUNCTION, of x with the parameters p and a): those that models use, and the others. */
#define UNARY_FUNCTIONS_OF_MODELS(X)                                                               \
    X(SILU, v16_silu(x))                                                                           \
    X(EXP, v16_exp_full(x))                                                                        \
    X(ABS, v16_abs(x))                                                                             \
    X(NEG, v16_negate(x))                                                                          \
    X(RECIP, v16_div(v16_set(1), x))                                                               \
    X(SQR, v16_mul(x, x))                                                                          \
    X(SQRT, v16_sqrt(x))                                                                           \
    X(TANH, v16_tanh(x))                                                                           \
    X(SIGMOID, v16_sigmoid(x))                                                                     \
    X(RELU, v16_relu(x))                                                                           \
    X(GELU, v16_gelu(x))                                                                           \
    X(GELU_ERF, v16_gelu_erf(x))                                                                   \
    X(GELU_QUICK, v16_mul(x, v16_sigmoid(v16_mul(x, v16_set(1.702F)))))                            \
    X(SOFTPLUS, v16_softplus(x))                                                                   \
    X(AFFINE, v16_affine(x, &p))                                                                   \
    X(CLAMP, v16_clamp(x, a, v16_set(p.b)))
#define UNARY_FUNCTIONS_OF_TENSORS(X)                                                              \
    X(LOG, v16_log(x))                                                                             \
    X(SIN, v16_sine_full(x, false))                                                                \
    X(COS, v16_sine_full(x, true))                                                                 \
    X(ERF, v16_erf(x))                                                                             \
    X(FLOOR, v16_floor(x))                                                                         \
    X(CEIL, v16_ceil(x))                                                                           \
    X(ROUND, v16_round(x))                                                                         \
    X(SIGN, v16_sign(x))                                                                           \
    X(MISH, v16_mish(x))                                                                           \
    X(HARD_SIGMOID, v16_hard_sigmoid(x))                                                           \
    X(HARD_SWISH, v16_mul(x, v16_hard_sigmoid(x)))                                                 \
    X(ELU, v16_if_above(x, v16_mul(a, v16_copy_sign(v16_exp_minus_1(x), x))))                      \
    X(LEAKY_RELU, v16_if_above(x, v16_mul(a, x)))                                                  \
    X(POW, v16_pow(x, a, v16_set(p.a_low)))                                                        \
    X(EXPM1, v16_copy_sign(v16_exp_minus_1_full(x), x)) /* of -0 it is 0 */                        \
    X(RSQRT, v16_div(v16_set(1), v16_sqrt(x)))                                                     \
    X(TRUNC, v16_copy_sign(v16_floor(v16_abs(x)), x))                                              \
    X(TAN, v16_tan(x))                                                                             \
    X(ASIN, v16_asin(x))                                                                           \
    X(ACOS, v16_acos(x))                                                                           \
    X(ATAN, v16_atan(x))                                                                           \
    X(SINH, v16_sinh(x))                                                                           \
    X(COSH, v16_cosh(x))                                                                           \
    X(ASINH, v16_asinh(x))                                                                         \
    X(ACOSH, v16_acosh(x))                                                                         \
    X(ATANH, v16_atanh(x))                                                                         \
    X(EXP2, v16_exp2(x))                                                                           \
    X(LOG1P, v16_log1p(x))                                                                         \
    X(LOG2, v16_log2(x))                                                                           \
    X(LOG10, v16_log10(x))
#define UNARY_FUNCTIONS(X) UNARY_FUNCTIONS_OF_MODELS(X) WK_OF_TENSORS(UNARY_FUNCTIONS_OF_TENSORS(X))

static void unary_row(const wk_op *op, float *y, const float *const in[2], int64_t n) {
    const unary_parameters p = parameters_of(op);
    const float *const from = in[0];
    const v16 a = v16_set(p.a);
    switch (op->p.unary.fn) {
#define CASE(function, value)                                                                      \
    case WK_UNARY_##function:                                                                      \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            const v16 x = load_next(from, i, n);                                                   \
            store_at(y, i, n, value);                                                              \
        }                                                                                          \
        break;
        UNARY_FUNCTIONS(CASE)
#undef CASE
    default: break;
    }
}

/* The others are left to the reference. */
static bool has_unary(wk_unary_fn fn) {
    switch (fn) {
#define CASE(function, value) case WK_UNARY_##function:
        UNARY_FUNCTIONS(CASE)
#undef CASE
        return true;
    default: return false;
    }
}

/* Parameters that float32 cannot hold are left to the reference. */
static bool accepts_unary(const wk_op *op) {
    const unary_parameters p = parameters_of(op);
    if (!accepts_floats(op) || !has_unary(op->p.unary.fn)) return false;
    if (op->p.unary.fn == WK_UNARY_CLAMP) return true;
    return isfinite(p.a) && isfinite(p.b) && wk_unary_is_of_f32(op);
}

/* --- Binary --- */

/* NaN where either is. */
WK_INLINE v16 v16_maximum(v16 a, v16 b) { return v16_select(v16_equal(a, a), v16_max(a, b), a); }
WK_INLINE v16 v16_minimum(v16 a, v16 b) { return v16_select(v16_equal(a, a), v16_min(a, b), a); }

/* X(FUNCTION, of a and b). */
#define BINARY_FUNCTIONS(X)                                                                        \
    X(ADD, v16_add(a, b))                                                                          \
    X(MUL, v16_mul(a, b))                                                                          \
    X(SUB, v16_sub(a, b))                                                                          \
    X(DIV, v16_div(a, b))                                                                          \
    X(MAXIMUM, v16_maximum(a, b))                                                                  \
    X(MINIMUM, v16_minimum(a, b))                                                                  \
    WK_OF_TENSORS(X(POW, v16_pow(a, b, v16_zero())) X(REMAINDER, v16_remainder(a, b))              \
                      X(FMOD, v16_fmod(a, b)) X(FLOOR_DIVIDE, v16_floor_divide(a, b))              \
                          X(ATAN2, v16_atan2(a, b)) X(HYPOT, v16_hypot(a, b))                      \
                              X(COPYSIGN, v16_copy_sign(a, b)) X(LOGADDEXP, v16_logaddexp(a, b))   \
                                  X(NEXTAFTER, v16_next_after(a, b)))

static void binary_row(const wk_op *op, float *y, const float *const in[2], int64_t n) {
    const float *const of_a = in[0], *const of_b = in[1];
    switch (op->p.binary) {
#define CASE(function, value)                                                                      \
    case WK_BINARY_##function:                                                                     \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            const v16 a = load_next(of_a, i, n), b = load_next(of_b, i, n);                        \
            store_at(y, i, n, value);                                                              \
        }                                                                                          \
        break;
        BINARY_FUNCTIONS(CASE)
#undef CASE
    default: break;
    }
}

/* The others are left to the reference. */
static bool has_binary(wk_binary_fn fn) {
    switch (fn) {
#define CASE(function, value) case WK_BINARY_##function:
        BINARY_FUNCTIONS(CASE)
#undef CASE
        return true;
    default: return false;
    }
}

/* The next float16 is not the next float. */
static bool accepts_binary(const wk_op *op) {
    if (op->p.binary == WK_BINARY_NEXTAFTER && wk_dst(op, 0)->dtype != WICK_F32) return false;
    return accepts_floats(op) && has_binary(op->p.binary);
}

/* --- Gated --- */

WK_INLINE v16 swiglu_clamped(v16 gate, v16 up, v16 alpha, v16 limit) {
    const v16 cut = v16_min(limit, gate); /* in this order NaN stays */
    const v16 more = v16_add(v16_clamp(up, v16_negate(limit), limit), v16_set(1));
    return v16_mul(v16_mul(cut, v16_sigmoid(v16_mul(alpha, cut))), more);
}

/* X(FUNCTION, of gate and up with alpha and limit). */
#define GATED_FUNCTIONS(X)                                                                         \
    X(SWIGLU, v16_mul(v16_silu(gate), up))                                                         \
    X(GEGLU, v16_mul(v16_gelu(gate), up))                                                          \
    X(GEGLU_ERF, v16_mul(v16_gelu_erf(gate), up))                                                  \
    X(REGLU, v16_mul(v16_relu(gate), up))                                                          \
    X(SWIGLU_CLAMPED, swiglu_clamped(gate, up, alpha, limit))

static void gated_row(const wk_op *op, float *y, const float *const in[2], int64_t n) {
    const v16 alpha = v16_set((float)op->p.gated.alpha), limit = v16_set((float)op->p.gated.limit);
    switch (op->p.gated.fn) {
#define CASE(function, value)                                                                      \
    case WK_GATED_##function:                                                                      \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            const v16 gate = load_next(in[0], i, n), up = load_next(in[1], i, n);                  \
            store_at(y, i, n, value);                                                              \
        }                                                                                          \
        break;
        GATED_FUNCTIONS(CASE)
#undef CASE
    default: break;
    }
}

static bool accepts_gated(const wk_op *op) {
    return accepts_floats(op) && op->p.gated.fn < WK_GATED_COUNT_;
}

/* --- All of them --- */

typedef void (*row_fn)(const wk_op *op, float *y, const float *const x[2], int64_t n);

/* fn of n elements, to y past the caches. */
static void stream_row(const wk_op *op, float *y, const float *const x[2], int64_t n, row_fn fn) {
    alignas(64) float buf[WALK_CHUNK];
    for (int64_t i = 0; i < n; i += WALK_CHUNK) {
        const int64_t some = n - i < WALK_CHUNK ? n - i : WALK_CHUNK;
        fn(op, buf, (const float *const[2]){x[0] + i, x[1] != NULL ? x[1] + i : NULL}, some);
        stream_bytes(y + i, buf, (size_t)some * sizeof *y);
    }
}

/* fn over elements [begin, end); everything of a step is read before it is written. */
static void run_rows_of(const wk_cpu_run *run, int64_t begin, int64_t end, row_fn fn) {
    const wk_op *const op = run->op;
    walk w;
    walk_elements(&w, op);
    const bool is_past_caches = is_streamed(op);
    alignas(64) float buf[3][WALK_CHUNK];
    for (int64_t n; begin < end; begin += n) {
        n = walk_step(&w, begin, end);
        const float *x[2] = {NULL, NULL};
        for (int i = 0; i < op->n_src; i++) x[i] = load_floats(&w, 1 + i, begin, n, buf[1 + i]);
        float *const y = floats_at(&w, 0, begin, n);
        if (y != NULL && is_past_caches) {
            stream_row(op, y, x, n, fn);
            continue;
        }
        fn(op, y != NULL ? y : buf[0], x, n);
        if (y == NULL) store_floats(&w, 0, begin, n, buf[0]);
    }
    v16_stream_end();
}

static void run_unary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    run_rows_of(run, begin, end, unary_row);
}

static void run_binary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    run_rows_of(run, begin, end, binary_row);
}

static void run_gated(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    run_rows_of(run, begin, end, gated_row);
}

#endif
