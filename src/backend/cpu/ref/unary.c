/* backend/cpu/ref/unary.c: functions of one element, and the gated units made of them. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"
#include "core/scalar.h"

#include <math.h>

static const double sqrt_half = 0.70710678118654752440, sqrt_2_over_pi = 0.79788456080286535588;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- Of floats --- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
}

static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

/* NaN stays. */
static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

static double hard_sigmoid(double x) { return clamp(x / 6 + 0.5, 0, 1); }

static double with_parameters(wk_unary_fn fn, double x, double a, double b) {
    switch (fn) {
    case WK_UNARY_ELU: return x > 0 ? x : a * expm1(x);
    case WK_UNARY_LEAKY_RELU: return x > 0 ? x : a * x;
    case WK_UNARY_POW: return pow(x, a);
    case WK_UNARY_AFFINE: return a * x + b;
    case WK_UNARY_CLAMP: return clamp(x, a, b);
    default: return (double)NAN; /* accepts_unary lets no other through */
    }
}

/* Circular and hyperbolic functions, their inverses, and C's other exponentials and logarithms. */
static double of_math_h(wk_unary_fn fn, double x, double a, double b) {
    switch (fn) {
    case WK_UNARY_TAN: return tan(x);
    case WK_UNARY_ASIN: return asin(x);
    case WK_UNARY_ACOS: return acos(x);
    case WK_UNARY_ATAN: return atan(x);
    case WK_UNARY_SINH: return sinh(x);
    case WK_UNARY_COSH: return cosh(x);
    case WK_UNARY_ASINH: return asinh(x);
    case WK_UNARY_ACOSH: return acosh(x);
    case WK_UNARY_ATANH: return atanh(x);
    case WK_UNARY_EXPM1: return expm1(x);
    case WK_UNARY_EXP2: return exp2(x);
    case WK_UNARY_LOG1P: return log1p(x);
    case WK_UNARY_LOG2: return log2(x);
    case WK_UNARY_LOG10: return log10(x);
    default: return with_parameters(fn, x, a, b);
    }
}

/* One case for each function, which is all there is to say about it. */
static double apply_float(wk_unary_fn fn, double x, double a, double b) {
    switch (fn) {
    case WK_UNARY_SILU: return x / (1 + exp(-x));
    case WK_UNARY_EXP: return exp(x);
    case WK_UNARY_LOG: return log(x);
    case WK_UNARY_SIN: return sin(x);
    case WK_UNARY_COS: return cos(x);
    case WK_UNARY_ABS: return fabs(x);
    case WK_UNARY_NEG: return -x;
    case WK_UNARY_RECIP: return 1 / x;
    case WK_UNARY_SQR: return x * x;
    case WK_UNARY_SQRT: return sqrt(x);
    case WK_UNARY_ERF: return erf(x);
    case WK_UNARY_TANH: return tanh(x);
    case WK_UNARY_SIGMOID: return sigmoid(x);
    case WK_UNARY_FLOOR: return floor(x);
    case WK_UNARY_CEIL: return ceil(x);
    case WK_UNARY_ROUND: return nearbyint(x); /* the rounding mode is never changed */
    case WK_UNARY_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case WK_UNARY_RELU: return x < 0 ? 0 : x;
    case WK_UNARY_GELU: return gelu(x);
    case WK_UNARY_GELU_ERF: return 0.5 * x * erfc(-x * sqrt_half);
    case WK_UNARY_GELU_QUICK: return x * sigmoid(1.702 * x);
    case WK_UNARY_SOFTPLUS: return softplus(x);
    case WK_UNARY_MISH: return x * tanh(softplus(x));
    case WK_UNARY_HARD_SIGMOID: return hard_sigmoid(x);
    case WK_UNARY_HARD_SWISH: return x * hard_sigmoid(x);
    case WK_UNARY_RSQRT: return 1 / sqrt(x);
    case WK_UNARY_TRUNC: return trunc(x);
    default: return of_math_h(fn, x, a, b);
    }
}

/* --- Of integers, modulo 2^64: storing keeps the low bits, so that narrower ones wrap too --- */

static int64_t negated(int64_t x) { return (int64_t)(0 - (uint64_t)x); }

static int64_t apply_integer(wk_unary_fn fn, int64_t x, int64_t a, int64_t b) {
    switch (fn) {
    case WK_UNARY_ABS: return x < 0 ? negated(x) : x;
    case WK_UNARY_NEG: return negated(x);
    case WK_UNARY_SQR: return (int64_t)((uint64_t)x * (uint64_t)x);
    case WK_UNARY_SIGN: return (x > 0) - (x < 0);
    case WK_UNARY_RELU: return x < 0 ? 0 : x;
    case WK_UNARY_AFFINE: return (int64_t)((uint64_t)a * (uint64_t)x + (uint64_t)b);
    case WK_UNARY_CLAMP: return x < a ? a : x > b ? b : x;
    case WK_UNARY_NOT: return ~x;
    default: return 0; /* wk_unary_takes lets no other through */
    }
}

/* --- Unary --- */

static void unary_row(const wk_params *p, const wk_row *y, const wk_row *x) {
    double real[WK_REF_CHUNK];
    int64_t integer[WK_REF_CHUNK];
    const bool is_float = wk_dtype_is_float(y->dtype);
    const int64_t a = wk_f64_to_i64(p->unary.a), b = wk_f64_to_i64(p->unary.b);
    for (int64_t i = 0; i < y->n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, y->n - i);
        if (is_float) {
            wk_row_load(x, i, n, real);
            for (int64_t j = 0; j < n; j++)
                real[j] = apply_float(p->unary.fn, real[j], p->unary.a, p->unary.b);
            wk_row_store(y, i, n, real);
        } else {
            wk_row_load_integer(x, i, n, integer);
            for (int64_t j = 0; j < n; j++)
                integer[j] = apply_integer(p->unary.fn, integer[j], a, b);
            wk_row_store_integer(y, i, n, integer);
        }
    }
}

static void run_unary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        const wk_row x = wk_row_at(wk_src(run->op, 0), r);
        unary_row(&run->op->p, &y, &x);
    }
}

static bool accepts_unary(const wk_op *op) {
    return op->p.unary.fn < WK_UNARY_COUNT_ && wk_unary_takes(op->p.unary.fn, wk_dst(op, 0)->dtype);
}

const wk_cpu_kernel wk_unary_ref = {
    .base.name = "unary_ref",
    .base.code = WK_OP_UNARY,
    .base.is_reference = true,
    .base.accepts = accepts_unary,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_unary,
};

/* --- Gated --- */

static double gate(const wk_params *p, double g, double u) {
    switch (p->gated.fn) {
    case WK_GATED_SWIGLU: return apply_float(WK_UNARY_SILU, g, 0, 0) * u;
    case WK_GATED_GEGLU: return apply_float(WK_UNARY_GELU, g, 0, 0) * u;
    case WK_GATED_GEGLU_ERF: return apply_float(WK_UNARY_GELU_ERF, g, 0, 0) * u;
    case WK_GATED_REGLU: return apply_float(WK_UNARY_RELU, g, 0, 0) * u;
    default: break;
    }
    const double limit = p->gated.limit, cut = clamp(g, -(double)INFINITY, limit);
    return cut * sigmoid(p->gated.alpha * cut) * (clamp(u, -limit, limit) + 1);
}

static void run_gated(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    double g[WK_REF_CHUNK], u[WK_REF_CHUNK];
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        const wk_row gates = wk_row_at(wk_src(run->op, 0), r);
        const wk_row ups = wk_row_at(wk_src(run->op, 1), r);
        for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, y.n - i);
            wk_row_load(&gates, i, n, g);
            wk_row_load(&ups, i, n, u);
            for (int64_t j = 0; j < n; j++) g[j] = gate(&run->op->p, g[j], u[j]);
            wk_row_store(&y, i, n, g);
        }
    }
}

static bool accepts_gated(const wk_op *op) {
    return wk_ref_is_float(op) && op->p.gated.fn < WK_GATED_COUNT_;
}

const wk_cpu_kernel wk_gated_ref = {
    .base.name = "gated_ref",
    .base.code = WK_OP_GATED,
    .base.is_reference = true,
    .base.accepts = accepts_gated,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_gated,
};
