/* backend/tolerance.c: how far from cpu/ref the result of a right kernel may be, op by op.
 * Verification while running (tensor/shadow.c) and verify/ compare by it. */
#include "backend/op.h"

#include "core/dtype.h"

#include <math.h>

/* Half an ulp of the result's dtype, and its least subnormal, doubled: the reference rounds too. */
static wk_tolerance rounding_of(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F16: return (wk_tolerance){.relative = 0x1p-10, .absolute = 0x1p-23};
    case WICK_BF16: return (wk_tolerance){.relative = 0x1p-7, .absolute = 0x1p-125};
    case WICK_F64: return (wk_tolerance){.relative = 0x1p-50, .absolute = 0x1p-1021};
    default: /* f32; subnormals may be flushed to zero */
        return (wk_tolerance){.relative = 0x1p-23, .absolute = 0x1p-125};
    }
}

/* Of the block types of caches, where what lies between two levels may go to either: a step, which
 * is at most so much of the largest magnitude, and what a scale may be off by. */
static wk_tolerance step_of(wick_dtype dtype) {
    const double n_levels = dtype == WICK_Q8_0 ? 127 : 8;
    return (wk_tolerance){.relative = 0x1p-10, .of_largest = 1.001 / n_levels, .absolute = 0x1p-17};
}

/* Far below 0, where they vanish, they are e^u with a u that is itself rounded. */
static bool is_gelu(wk_unary_fn fn) {
    return fn == WK_UNARY_GELU || fn == WK_UNARY_GELU_ERF || fn == WK_UNARY_GELU_QUICK;
}

/* What float32 arithmetic adds to t; false: a right result has the reference's bits. */
typedef bool differs_fn(const wk_op *op, bool is_fast, wk_tolerance *t);

static bool differs_nowhere(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)op, (void)is_fast, (void)t;
    return false;
}

/* A sum of two numbers is rounded once; what vanishes in log(e^a + e^b) was near 1. */
static bool differs_binary(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    const wk_binary_fn fn = op->code == WK_OP_BINARY ? op->p.binary : WK_BINARY_ADD;
    const bool is_curve =
        fn == WK_BINARY_ATAN2 || fn == WK_BINARY_HYPOT || fn == WK_BINARY_LOGADDEXP;
    t->relative += is_curve ? 4e-6 : 5e-7;
    if (fn == WK_BINARY_LOGADDEXP) t->absolute += 1e-6;
    return true;
}

/* The sigmoid of -88 may be flushed to zero; a device may round a x before it adds b. */
static bool differs_unary(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    t->relative += 4e-6;
    t->absolute += is_gelu(op->p.unary.fn) ? 1e-6 : 88 * 0x1p-126;
    if (op->p.unary.fn == WK_UNARY_AFFINE) t->absolute += 1.2e-7 * fabs(op->p.unary.b);
    return true;
}

/* The same, times up. */
static bool differs_gated(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    t->relative += 4e-6;
    t->absolute += 1e-30;
    if (op->p.gated.fn != WK_GATED_SWIGLU) t->of_largest += 1e-6;
    return true;
}

/* Of numbers up to about 8, at every step: what a step is off by goes through those that follow. */
static bool differs_chain(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    t->absolute += op->p.chain.n_steps * (2e-5 + 8 * t->relative);
    const double n = (double)wk_view_count(wk_src(op, 0)) / (double)wk_view_count(wk_dst(op, 0));
    if (wk_chain_is_reduced(op) && n > 1) t->absolute *= n; /* of a sum */
    return true;
}

/* x - largest is rounded before exp is taken of it; then the logarithm of the sum is. */
static bool differs_softmax(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    t->relative += 1e-5;
    if (op->p.softmax.is_log) t->absolute += 1e-6;
    return true;
}

static bool differs_rms_norm(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)op, (void)is_fast;
    t->relative += 4e-6;
    return true;
}

static bool differs_rope_table(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)op, (void)is_fast;
    t->of_largest += 2e-6;
    return true;
}

/* Of the terms of a normal number: the mean, and the deviation times up to 5.8. */
static bool differs_random(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)is_fast;
    t->absolute += 2e-6 * op->p.random.b + 1.2e-7 * fabs(op->p.random.a);
    return op->p.random.fn == WK_RANDOM_NORMAL;
}

/* The terms of a sum may cancel. */
static bool differs_sum(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)op, (void)is_fast;
    t->of_largest += 2e-5;
    return true;
}

static bool differs_scatter(const wk_op *op, bool is_fast, wk_tolerance *t) {
    return op->p.scatter != WK_SCATTER_SET && differs_sum(op, is_fast, t);
}

/* Each factor is rounded, and so is each product. */
static bool differs_reduce(const wk_op *op, bool is_fast, wk_tolerance *t) {
    if (op->p.reduce.fn != WK_REDUCE_PROD) return differs_sum(op, is_fast, t);
    t->relative += 2e-5;
    return true;
}

static bool differs_pool(const wk_op *op, bool is_fast, wk_tolerance *t) {
    return op->p.pool.fn == WK_WINDOW_MEAN && differs_sum(op, is_fast, t);
}

static bool differs_linear(const wk_op *op, bool is_fast, wk_tolerance *t) {
    (void)op;
    t->of_largest += is_fast ? 2e-2 : 2e-5;
    return true;
}

wk_tolerance wk_op_tolerance(const wk_op *op, bool is_fast) {
    static differs_fn *const functions[] = {
#define WK_TRAITS(code, rows, cost, tolerance, ...) [WK_OP_##code] = differs_##tolerance,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = differs_sum,
    };
    const wick_dtype dtype = wk_dst(op, 0)->dtype;
    if (wk_dtype_is_block(dtype)) return step_of(dtype);
    const wk_tolerance rounding = rounding_of(dtype);
    wk_tolerance tolerance = rounding;
    if (!wk_dtype_is_float(dtype) || !functions[op->code](op, is_fast, &tolerance))
        return (wk_tolerance){0};
    if (dtype != WICK_F64) return tolerance;
    return (wk_tolerance){rounding.relative, 1e-12, rounding.absolute};
}

bool wk_tolerance_accepts(const wk_tolerance *tolerance, double largest, double want, double got) {
    if (want == got || (isnan(want) && isnan(got))) return true;
    const double bound =
        tolerance->relative * fabs(want) + tolerance->of_largest * largest + tolerance->absolute;
    return isfinite(want) && fabs(want - got) <= bound;
}
