/* backend/webgpu/kernels/kernel_norm_sum.c: a sum of rows and its norm as one dispatch, with or
 * without a norm of the second summand. The bits are those of the ops one by one. */
#include "backend/webgpu/kernels/rows.h"

#include "core/compiler.h"

/* [m, n] of f32, elements side by side. */
static bool has_rows(const wk_view *view) {
    return view->dtype == WICK_F32 && view->rank == 2 &&
           (view->extent[1] == 1 || view->stride[1] == 1);
}

static bool is_plain_norm(const wk_op *norm) {
    const wk_view *const weight = wk_src(norm, 1);
    return has_rows(wk_dst(norm, 0)) && has_rows(wk_src(norm, 0)) && weight->buf &&
           weight->dtype == WICK_F32;
}

/* sum and y, x and residual have rows of the same length; x is operand `term` of the sum. */
static bool accepts(const wk_op *sum, const wk_op *norm) {
    return wk_rows_are_countable(wk_src(norm, 0)) && is_plain_norm(norm) &&
           has_rows(wk_dst(sum, 0)) && has_rows(wk_src(sum, 0)) && has_rows(wk_src(sum, 1)) &&
           wk_view_same(wk_dst(sum, 0), wk_src(norm, 0));
}

static bool accepts_two(const wk_op *ops) { return accepts(&ops[0], &ops[1]); }

/* Which operand of the sum the first norm has made; 2: none. */
static int term_of(const wk_op *ops) {
    int i = 0;
    while (i < 2 && !wk_view_same(wk_src(&ops[1], i), wk_dst(&ops[0], 0))) i++;
    return i;
}

static bool accepts_three(const wk_op *ops) {
    return accepts(&ops[1], &ops[2]) && is_plain_norm(&ops[0]) && term_of(ops) < 2;
}

enum { SUM, Y, X, RESIDUAL, WEIGHT, POST };

/* post: the norm of the second summand, or NULL. */
static wick_status run(wk_encoder *e, const wk_op *sum, const wk_op *norm, const wk_op *post,
                       int term) {
    static const wk_source source = {.name = "norm_sum",
                                     .parts = {wk_wgsl_norm_sum, wk_wgsl_lanes},
                                     .operands = {"sum", "y", "x", "residual", "weight", "post"},
                                     .constants = {"THREADS", "LANES", "HAS_POST"}};
    const wk_view *const views[] = {wk_dst(sum, 0), wk_dst(norm, 0),
                                    post ? wk_src(post, 0) : wk_src(sum, term),
                                    wk_src(sum, 1 - term)};
    const wk_view *const weight = wk_src(norm, 1), *const second = wk_src(post ? post : norm, 1);
    const wk_rows rows = wk_rows_of(wk_dst(norm, 0), wk_src(norm, 0), 1);
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[0] = d.program.constants[1] = (int32_t)rows.lanes;
    d.program.constants[2] = post != NULL;
    for (int i = 0; i < 4; i++) wk_dispatch_bind(&d, i, views[i], WK_FORM_ELEMENTS, i < 2);
    wk_dispatch_bind(&d, WEIGHT, weight, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, POST, second, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    for (int i = 0; i < 4; i++) wk_dispatch_u32(&d, d.first[i]);
    for (int i = 0; i < 4; i++) wk_dispatch_u32(&d, (uint32_t)views[i]->stride[0]);
    wk_dispatch_u32(&d, d.first[WEIGHT]);
    wk_dispatch_u32(&d, (uint32_t)weight->stride[0]);
    wk_dispatch_u32(&d, d.first[POST]);
    wk_dispatch_u32(&d, (uint32_t)second->stride[0]);
    wk_dispatch_u32(&d, rows.n);
    wk_dispatch_u32(&d, rows.n_rows);
    wk_dispatch_f32(&d, (float)norm->p.norm.eps);
    wk_dispatch_f32(&d, post ? (float)post->p.norm.eps : 0);
    return wk_dispatch_run_n(e, &d, rows.n_rows);
}

/* The residual comes first in a sum of the model, what is added second. */
static wick_status encode_two(wk_encoder *e, const wk_op *ops) {
    return run(e, &ops[0], &ops[1], NULL, 1);
}

static wick_status encode_three(wk_encoder *e, const wk_op *ops) {
    return run(e, &ops[1], &ops[2], &ops[0], term_of(ops));
}

const wk_webgpu_kernel wk_webgpu_add_norm = {
    .base.name = "add_norm_wgsl",
    .base.code = WK_OPS_ADD_NORM,
    .base.accepts = accepts_two,
    .encode = encode_two,
};

const wk_webgpu_kernel wk_webgpu_norm_add_norm = {
    .base.name = "norm_add_norm_wgsl",
    .base.code = WK_OPS_NORM_ADD_NORM,
    .base.accepts = accepts_three,
    .encode = encode_three,
};
