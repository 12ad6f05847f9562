/* backend/webgpu/kernels/kernel_draw.c: one of a few ids, drawn by a single thread: it is a few
 * hundred exponentials beside a token's forward pass. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

#include <float.h>
#include <math.h>

static wick_status encode_draw(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "draw", .parts = {wk_wgsl_draw}, .operands = {"y", "x", "ids"}};
    const wk_draw *const draw = &op->p.draw;
    const wk_view *const x = wk_src(op, 0), *const ids = wk_src(op, 1);
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    wk_dispatch_bind(&d, 0, wk_dst(op, 0), WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, 2, ids, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    for (int i = 0; i < 3; i++) wk_dispatch_u32(&d, d.first[i]);
    wk_dispatch_u32(&d, 0);
    wk_dispatch_u32(&d, (uint32_t)x->stride[0]);
    wk_dispatch_u32(&d, (uint32_t)ids->stride[0]);
    wk_dispatch_u32(&d, draw->k);
    wk_dispatch_f32(&d, draw->temperature > 0 ? 1 / draw->temperature : 0);
    wk_dispatch_f32(&d, draw->top_p);
    wk_dispatch_f32(&d, draw->min_p > 0 ? logf(draw->min_p) : -FLT_MAX);
    wk_dispatch_f32(&d, draw->u);
    return wk_dispatch_run(e, &d, 1, 1, 1);
}

const wk_webgpu_kernel wk_webgpu_draw = {
    .base.name = "draw_wgsl",
    .base.code = WK_OP_DRAW,
    .encode = encode_draw,
};
