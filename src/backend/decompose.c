/* backend/decompose.c: fused ops in terms of basic ones: their fallback and their oracle. */
#include "backend/op.h"

#include <math.h>

static wick_status emit_unary(const wk_decomposition *to, wk_unary_fn fn, const double params[2],
                              const wk_view *y, const wk_view *x) {
    wk_op op = {.code = WK_OP_UNARY, .n_dst = 1, .n_src = 1, .view = {*y, *x}, .p.unary.fn = fn};
    if (params) {
        op.p.unary.a = params[0];
        op.p.unary.b = params[1];
    }
    return to->emit(to->user, &op);
}

static wick_status emit_mul(const wk_decomposition *to, const wk_view *y, const wk_view *a,
                            const wk_view *b) {
    const wk_op op = {.code = WK_OP_BINARY,
                      .n_dst = 1,
                      .n_src = 2,
                      .view = {*y, *a, *b},
                      .p.binary = WK_BINARY_MUL};
    return to->emit(to->user, &op);
}

static wick_status temp_like(const wk_decomposition *to, const wk_view *y, wk_view *out) {
    return to->temp(to->user, y->dtype, y->rank, y->extent, out);
}

/* g = min(gate, limit); y = g * sigmoid(alpha g) * (clamp(up, -limit, limit) + 1). */
static wick_status decompose_clamped(const wk_op *op, const wk_decomposition *to) {
    const double alpha = op->p.gated.alpha, limit = op->p.gated.limit;
    wk_view g, s, u;
    WK_TRY(temp_like(to, wk_dst(op, 0), &g));
    WK_TRY(temp_like(to, wk_dst(op, 0), &s));
    WK_TRY(temp_like(to, wk_dst(op, 0), &u));
    const double below[2] = {-(double)INFINITY, limit}, within[2] = {-limit, limit};
    WK_TRY(emit_unary(to, WK_UNARY_CLAMP, below, &g, wk_src(op, 0)));
    WK_TRY(emit_unary(to, WK_UNARY_CLAMP, within, &u, wk_src(op, 1)));
    WK_TRY(emit_unary(to, WK_UNARY_AFFINE, (const double[]){1, 1}, &u, &u));
    WK_TRY(emit_unary(to, WK_UNARY_AFFINE, (const double[]){alpha, 0}, &s, &g));
    WK_TRY(emit_unary(to, WK_UNARY_SIGMOID, NULL, &s, &s));
    WK_TRY(emit_mul(to, &g, &g, &s));
    return emit_mul(to, wk_dst(op, 0), &g, &u);
}

/* t = fn(gate); y = t * up. */
wick_status wk_decompose_gated(const wk_op *op, const wk_decomposition *to) {
    static const wk_unary_fn functions[] = {
        [WK_GATED_SWIGLU] = WK_UNARY_SILU,
        [WK_GATED_GEGLU] = WK_UNARY_GELU,
        [WK_GATED_GEGLU_ERF] = WK_UNARY_GELU_ERF,
        [WK_GATED_REGLU] = WK_UNARY_RELU,
    };
    if (op->p.gated.fn == WK_GATED_SWIGLU_CLAMPED) return decompose_clamped(op, to);
    const wk_view *const y = wk_dst(op, 0);
    wk_view t;
    WK_TRY(temp_like(to, y, &t));
    WK_TRY(emit_unary(to, functions[op->p.gated.fn], NULL, &t, wk_src(op, 0)));
    return emit_mul(to, y, &t, wk_src(op, 1));
}
