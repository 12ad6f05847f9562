/* backend/decompose.c: fused ops in terms of basic ones: their fallback and their oracle. */
#include "backend/backend.h"

/* swiglu: t = silu(gate); y = t * up. */
wick_status wk_decompose_gated(const wk_op *op, const wk_decomposition *to) {
    const wk_view *const y = wk_dst(op, 0);
    wk_view t;
    WK_TRY(to->temp(to->user, y->dtype, y->rank, y->extent, &t));
    const wk_op silu = {.code = WK_OP_UNARY,
                        .n_dst = 1,
                        .n_src = 1,
                        .view = {t, *wk_src(op, 0)},
                        .p.unary = WK_UNARY_SILU};
    WK_TRY(to->emit(to->user, &silu));
    const wk_op mul = {.code = WK_OP_BINARY,
                       .n_dst = 1,
                       .n_src = 2,
                       .view = {*y, t, *wk_src(op, 1)},
                       .p.binary = WK_BINARY_MUL};
    return to->emit(to->user, &mul);
}
