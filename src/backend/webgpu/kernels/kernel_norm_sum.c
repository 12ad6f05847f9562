/* backend/webgpu/kernels/kernel_norm_sum.c: norms of rows as integers, too, and a sum of rows and
 * its norm as one dispatch, with or without a norm of the second summand. The bits are those of the
 * ops one by one. */
#include "backend/webgpu/kernels/norm_sum.h"
#include "backend/webgpu/kernels/rows.h"

#include "core/compiler.h"

#include <string.h>

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

enum { SUM, Y, X, RESIDUAL, WEIGHT, POST, INTEGERS };

/* What becomes of the rows of y, and by lanes of threads alone or by subgroups. */
#define SOURCE(finish, lanes, ...)                                                                 \
    {                                                                                              \
        .name = "norm_sum",                                                                        \
        .parts = {wk_wgsl_norm_sum, wk_wgsl_##lanes, wk_wgsl_##finish, __VA_ARGS__},               \
        .operands = {"sum", "y", "x", "residual", "weight", "post", "q"},                          \
        .constants = {"THREADS", "LANES", "HAS_SUM", "HAS_POST", "BLOCKS", "SUBGROUP"},            \
    }
static const wk_source sources[2][2] = {
    {SOURCE(norm_floats, lanes, NULL), SOURCE(norm_floats, lanes_subgroups, NULL)},
    {SOURCE(norm_integers, lanes, wk_wgsl_quantize),
     SOURCE(norm_integers, lanes_subgroups, wk_wgsl_quantize)},
};
#undef SOURCE

/* norm: the last one. sum: NULL, or what it is of. post: NULL, or the norm of operand `term` of the
 * sum. */
typedef struct norms {
    const wk_op *norm, *sum, *post;
    int term;
    uint32_t needs;
} norms;

static wick_status run(wk_encoder *e, const norms *o) {
    const wk_op *const post = o->post ? o->post : o->norm;
    const wk_view *const y = wk_dst(o->norm, 0);
    const wk_view *const x = o->post  ? wk_src(o->post, 0)
                             : o->sum ? wk_src(o->sum, o->term)
                                      : wk_src(o->norm, 0);
    /* The text names all operands. */
    const wk_view *const views[] = {o->sum ? wk_dst(o->sum, 0) : y, y, x,
                                    o->sum ? wk_src(o->sum, 1 - o->term) : x};
    const wk_view *const weight = wk_src(o->norm, 1), *const second = wk_src(post, 1);
    const wk_rows rows = wk_rows_of(y, wk_src(o->norm, 0), 1);
    const uint32_t blocks = wk_encoder_makes_integers(e) ? rows.n / WK_QK_SMALL : 0;
    const bool by_subgroups = (o->needs & WICK_WEBGPU_SUBGROUPS) != 0;
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[blocks > 0][by_subgroups],
                      o->needs | (blocks > 0 ? WICK_WEBGPU_DOT4 : 0));
    const int32_t constants[] = {
        (int32_t)rows.lanes, (int32_t)rows.lanes,
        o->sum != NULL,      o->post != NULL,
        (int32_t)blocks,     by_subgroups ? (int32_t)wk_encoder_subgroup(e) : 0};
    memcpy(d.program.constants, constants, sizeof constants);
    for (int i = 0; i < 4; i++) wk_dispatch_bind(&d, i, views[i], WK_FORM_ELEMENTS, i < 2);
    wk_dispatch_bind(&d, WEIGHT, weight, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, POST, second, WK_FORM_ELEMENTS, false);
    if (blocks > 0) {
        wk_view integers;
        WK_TRY(wk_encoder_temp(e, (int64_t)rows.n_rows * blocks * WK_INTEGER_WORDS, &integers));
        wk_dispatch_bind(&d, INTEGERS, &integers, WK_FORM_WORDS, true);
        wk_encoder_keep_integers(e, y, &integers);
    }
    WK_TRY(wk_dispatch_place(e, &d));
    for (int i = 0; i < 4; i++) wk_dispatch_u32(&d, d.first[i]);
    for (int i = 0; i < 4; i++) wk_dispatch_u32(&d, (uint32_t)views[i]->stride[0]);
    wk_dispatch_u32(&d, d.first[WEIGHT]);
    wk_dispatch_u32(&d, (uint32_t)weight->stride[0]);
    wk_dispatch_u32(&d, d.first[POST]);
    wk_dispatch_u32(&d, (uint32_t)second->stride[0]);
    wk_dispatch_u32(&d, rows.n);
    wk_dispatch_u32(&d, rows.n_rows);
    wk_dispatch_f32(&d, (float)o->norm->p.norm.eps);
    wk_dispatch_f32(&d, (float)post->p.norm.eps);
    wk_dispatch_u32(&d, blocks > 0 ? d.first[INTEGERS] : 0);
    return wk_dispatch_run_n(e, &d, rows.n_rows);
}

bool wk_norm_makes_integers(const wk_encoder *e, const wk_op *norm) {
    return wk_encoder_makes_integers(e) && is_plain_norm(norm);
}

wick_status wk_norm_encode_integers(wk_encoder *e, const wk_op *norm, uint32_t needs) {
    return run(e, &(norms){.norm = norm, .needs = needs});
}

/* The residual comes first in a sum of the model, what is added second. */
static wick_status run_two(wk_encoder *e, const wk_op *ops, uint32_t needs) {
    return run(e, &(norms){.norm = &ops[1], .sum = &ops[0], .term = 1, .needs = needs});
}

static wick_status run_three(wk_encoder *e, const wk_op *ops, uint32_t needs) {
    return run(e, &(norms){.norm = &ops[2],
                           .sum = &ops[1],
                           .post = &ops[0],
                           .term = term_of(ops),
                           .needs = needs});
}

static wick_status encode_two(wk_encoder *e, const wk_op *ops) { return run_two(e, ops, 0); }
static wick_status encode_three(wk_encoder *e, const wk_op *ops) { return run_three(e, ops, 0); }
static wick_status encode_two_subgroups(wk_encoder *e, const wk_op *ops) {
    return run_two(e, ops, WICK_WEBGPU_SUBGROUPS);
}
static wick_status encode_three_subgroups(wk_encoder *e, const wk_op *ops) {
    return run_three(e, ops, WICK_WEBGPU_SUBGROUPS);
}

const wk_webgpu_kernel wk_webgpu_add_norm = {
    .base.name = "add_norm_wgsl",
    .base.code = WK_OPS_ADD_NORM,
    .base.accepts = accepts_two,
    .makes_integers = true,
    .encode = encode_two,
};

const wk_webgpu_kernel wk_webgpu_add_norm_subgroups = {
    .base.name = "add_norm_subgroups_wgsl",
    .base.code = WK_OPS_ADD_NORM,
    .base.needs = WICK_WEBGPU_SUBGROUPS,
    .base.accepts = accepts_two,
    .makes_integers = true,
    .encode = encode_two_subgroups,
};

const wk_webgpu_kernel wk_webgpu_norm_add_norm = {
    .base.name = "norm_add_norm_wgsl",
    .base.code = WK_OPS_NORM_ADD_NORM,
    .base.accepts = accepts_three,
    .makes_integers = true,
    .encode = encode_three,
};

const wk_webgpu_kernel wk_webgpu_norm_add_norm_subgroups = {
    .base.name = "norm_add_norm_subgroups_wgsl",
    .base.code = WK_OPS_NORM_ADD_NORM,
    .base.needs = WICK_WEBGPU_SUBGROUPS,
    .base.accepts = accepts_three,
    .makes_integers = true,
    .encode = encode_three_subgroups,
};
