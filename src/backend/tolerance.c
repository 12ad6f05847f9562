/* backend/tolerance.c: how far from cpu/ref the result of a right kernel may be, op by op. The one
 * table of it: verification while running (tensor/shadow.c) and verify/ compare by it. */
#include "backend/backend.h"

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

/* What float32 arithmetic adds to that. */
static void add_arithmetic(wk_tolerance *t, const wk_op *op, bool is_fast) {
    switch (op->code) {
    case WK_OP_BINARY:
    case WK_OP_ARANGE: t->relative += 5e-7; break;
    case WK_OP_UNARY: /* the sigmoid of -88 may be flushed to zero */
        t->relative += 4e-6;
        t->absolute += is_gelu(op->p.unary.fn) ? 1e-6 : 88 * 0x1p-126;
        break;
    case WK_OP_GATED: /* the same, times up */
        t->relative += 4e-6;
        t->absolute += 1e-30;
        if (op->p.gated.fn != WK_GATED_SWIGLU) t->of_largest += 1e-6;
        break;
    case WK_OP_SOFTMAX: /* x - largest is rounded before exp is taken of it */
        t->relative += 1e-5;
        if (op->p.softmax.is_log) t->absolute += 1e-6; /* of the logarithm of the sum */
        break;
    case WK_OP_RMS_NORM: t->relative += 4e-6; break;
    case WK_OP_ROPE_TABLE: t->of_largest += 2e-6; break;
    case WK_OP_RANDOM: /* of the terms: the mean, and the deviation times up to 5.8 */
        t->absolute += 2e-6 * op->p.random.b + 1.2e-7 * fabs(op->p.random.a);
        break;
    case WK_OP_LINEAR:
    case WK_OP_LINEAR_EXPERTS: t->of_largest += is_fast ? 2e-2 : 2e-5; break;
    default: t->of_largest += 2e-5; break; /* sums whose terms may cancel */
    }
}

wk_tolerance wk_op_tolerance(const wk_op *op, bool is_fast) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype;
    if (wk_dtype_is_block(dtype)) return step_of(dtype);
    if (!wk_dtype_is_float(dtype)) return (wk_tolerance){0};
    switch (op->code) {
    case WK_OP_COPY:
    case WK_OP_FILL:
    case WK_OP_TOP_K:
    case WK_OP_EMBEDDING:
    case WK_OP_KV_APPEND: return (wk_tolerance){0};
    case WK_OP_RANDOM:
        if (op->p.random.fn == WK_RANDOM_UNIFORM) return (wk_tolerance){0};
        break;
    default: break;
    }
    wk_tolerance tolerance = rounding_of(dtype);
    if (dtype == WICK_F64) {
        tolerance.of_largest = 1e-12;
    } else {
        add_arithmetic(&tolerance, op, is_fast);
    }
    return tolerance;
}

bool wk_tolerance_accepts(const wk_tolerance *tolerance, double largest, double want, double got) {
    if (want == got || (isnan(want) && isnan(got))) return true;
    const double bound =
        tolerance->relative * fabs(want) + tolerance->of_largest * largest + tolerance->absolute;
    return isfinite(want) && fabs(want - got) <= bound;
}
