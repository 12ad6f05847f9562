/* backend/webgpu/kernels/kernel_norm_sum.c: norms of rows as integers, too, and a sum of rows and
 * its norm as one dispatch: alone; with what makes the second summand, a norm or a weighted sum;
 * with a router's choice of experts, which follows. The bits are those of the ops one by one. */
#include "backend/webgpu/kernels/norm_sum.h"
#include "backend/webgpu/kernels/rows.h"

#include "core/compiler.h"
#include "quant/panel.h"

#include <math.h>
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

/* Sums as long as wgsl/matmul.wgsl makes them in one go. */
enum { MOST_TERMS = 64 };

/* y = a b for each row, [rows, 1, k] and [rows, k, n]. */
static bool is_mix(const wk_op *mix, const wk_view *y) {
    const wk_view *const c = wk_dst(mix, 0), *const a = wk_src(mix, 0), *const b = wk_src(mix, 1);
    return c->rank == 3 && c->extent[1] == 1 && a->rank == 3 && b->rank == 3 &&
           a->extent[0] == c->extent[0] && b->extent[0] == c->extent[0] && a->extent[2] > 0 &&
           a->extent[2] <= MOST_TERMS && b->stride[2] == 1 && a->dtype == WICK_F32 &&
           b->dtype == WICK_F32 && c->dtype == WICK_F32 && y->buf == c->buf &&
           y->offset == c->offset && y->extent[0] == c->extent[0] && y->extent[1] == c->extent[2] &&
           wk_view_is_dense(c) && wk_view_is_dense(y);
}

static bool accepts_mix(const wk_op *ops) {
    return accepts(&ops[1], &ops[2]) && is_mix(&ops[0], wk_src(&ops[1], 1));
}

enum {
    MOST_EXPERTS = 128, /* what 16 KiB of shared memory hold */
    MOST_CHOSEN = 16,
    MOST_ROUTER = 1 << 19 /* elements: a workgroup multiplies a row by all of them */
};

/* How gates are made, as wgsl/route.wgsl has it. */
typedef enum gating { OF_CHOSEN = 1, OF_ALL, SHARES } gating;

/* The choice of experts: logits = LINEAR of a row, what is chosen, what that counts for. */
typedef struct router {
    const wk_op *product, *top_k;
    const wk_view *gates;
    gating gating;
} router;

static router router_of(wk_opcode code, const wk_op *ops) {
    if (code == WK_OPS_ROUTE) return (router){&ops[2], &ops[3], wk_dst(&ops[4], 0), OF_CHOSEN};
    if (code == WK_OPS_ROUTE_ALL) return (router){&ops[2], &ops[4], wk_dst(&ops[4], 0), OF_ALL};
    return (router){&ops[2], &ops[4], wk_dst(&ops[6], 0), SHARES};
}

static bool is_product_of(const wk_op *op, const wk_view *x) {
    const wk_view *const weight = wk_src(op, 1), *const bias = wk_src(op, 2);
    return wk_view_same(wk_src(op, 0), x) && weight->layout == WK_LAYOUT_PANEL_F32 &&
           weight->extent[0] <= MOST_EXPERTS && wk_view_count(weight) <= MOST_ROUTER &&
           (!bias->buf || bias->dtype == WICK_F32) && has_rows(wk_dst(op, 0));
}

/* Its rows go out side by side, as many as the kernel can hold. */
static bool is_router(const router *r, const wk_op *norm) {
    const wk_view *const ids = wk_dst(r->top_k, 1);
    return is_product_of(r->product, wk_dst(norm, 0)) && ids->dtype == WICK_U32 && ids->rank == 2 &&
           ids->stride[1] == 1 && ids->extent[1] <= MOST_CHOSEN && has_rows(r->gates);
}

static bool accepts_route(const wk_op *ops) {
    const router r = router_of(WK_OPS_ROUTE, ops);
    return accepts_two(ops) && is_router(&r, &ops[1]) &&
           wk_view_same(wk_src(r.top_k, 0), wk_dst(r.product, 0)) && wk_is_top_k_softmax(r.top_k);
}

static bool accepts_route_all(const wk_op *ops) {
    const router r = router_of(WK_OPS_ROUTE_ALL, ops);
    return accepts_two(ops) && is_router(&r, &ops[1]) && !ops[3].p.softmax.is_log &&
           wk_view_same(wk_src(&ops[3], 0), wk_dst(r.product, 0)) &&
           wk_view_same(wk_src(r.top_k, 0), wk_dst(&ops[3], 0));
}

/* One number for each row, in all its columns. */
static bool is_of_rows(const wk_view *divisor, const wk_view *sums) {
    return divisor->buf == sums->buf && divisor->offset == sums->offset &&
           (divisor->extent[0] == 1 || divisor->stride[0] == 1) &&
           (divisor->extent[1] == 1 || divisor->stride[1] == 0);
}

static bool accepts_route_shares(const wk_op *ops) {
    const wk_view *const chosen = wk_dst(&ops[4], 0), *const sums = wk_dst(&ops[5], 0);
    return accepts_route_all(ops) && ops[5].p.reduce.fn == WK_REDUCE_SUM &&
           wk_view_same(wk_src(&ops[5], 0), chosen) && wk_view_is_dense(sums) &&
           wk_view_count(sums) == chosen->extent[0] && ops[6].p.binary == WK_BINARY_DIV &&
           wk_view_same(wk_src(&ops[6], 0), chosen) && is_of_rows(wk_src(&ops[6], 1), sums) &&
           has_rows(wk_dst(&ops[6], 0));
}

enum { SUM, Y, X, RESIDUAL, WEIGHT, POST, INTEGERS, MIX, ROUTER, BIAS, IDS, GATES };
enum { TERMS = 6, EXPERTS, HAS_BIAS, GATING, N_CONSTANTS };

static void write_rest(const wk_program *program, wk_strbuf *out) {
    wk_strbuf_format(out, "fn x_of(row: u32, at: u32) -> f32 {\n");
    if (program->constants[TERMS] == 0)
        wk_strbuf_format(out, "return load_x(at);\n}\n");
    else
        wk_strbuf_format(out, "var sum = 0.0;\n"
                              "for (var j = 0u; j < u32(TERMS); j++) {\n"
                              "let w = load_mix(params.mix + row * params.mix_row "
                              "+ j * params.mix_element);\n"
                              "sum = fma(w, load_x(at + j * params.x_step), sum);\n}\n"
                              "return sum;\n}\n");
    if (program->constants[EXPERTS] == 0)
        wk_strbuf_format(out, "fn route(row: u32, p: Place) {}\n");
}

/* What becomes of the rows of y, and by lanes of threads alone or by subgroups. */
#define SOURCE(finish, lanes, ...)                                                                 \
    {                                                                                              \
        .name = "norm_sum",                                                                        \
        .parts = {wk_wgsl_norm_sum, wk_wgsl_##lanes, wk_wgsl_##finish, __VA_ARGS__},               \
        .operands = {"sum", "y", "x", "residual", "weight", "post", "q", "mix", "router", "bias",  \
                     "ids", "gates"},                                                              \
        .constants = {"THREADS", "LANES", "HAS_SUM", "HAS_POST", "BLOCKS", "SUBGROUP", "TERMS",    \
                      "EXPERTS", "HAS_BIAS", "GATING"},                                            \
        .write = write_rest,                                                                       \
    }
#define FINISHES(lanes, ...)                                                                       \
    {                                                                                              \
        SOURCE(norm_floats, lanes, __VA_ARGS__),                                                   \
        SOURCE(norm_integers, lanes, wk_wgsl_quantize, __VA_ARGS__),                               \
    }
#define ROUTE wk_wgsl_functions, wk_wgsl_softmax_of_kept, wk_wgsl_route
/* [has a router][by subgroups][integers] */
static const wk_source sources[2][2][2] = {
    {FINISHES(lanes, NULL), FINISHES(lanes_subgroups, NULL)},
    {FINISHES(lanes, ROUTE), FINISHES(lanes_subgroups, ROUTE)},
};
#undef ROUTE
#undef FINISHES
#undef SOURCE

/* norm: the last one. sum: NULL, or what it is of. post, mix: NULL, or what makes operand `term` of
 * the sum. router: NULL, or the choice that follows. */
typedef struct norms {
    const wk_op *norm, *sum, *post, *mix;
    const router *router;
    int term;
} norms;

static void bind_router(wk_dispatch *d, const router *r) {
    const wk_view *const weight = wk_src(r->product, 1), *const bias = wk_src(r->product, 2);
    const int64_t n = weight->extent[0];
    d->program.constants[EXPERTS] =
        (int32_t)((n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS * WK_PANEL_ROWS);
    d->program.constants[HAS_BIAS] = bias->buf != NULL;
    d->program.constants[GATING] = (int32_t)r->gating;
    wk_dispatch_bind(d, ROUTER, weight, WK_FORM_VECTORS, false);
    wk_dispatch_bind(d, BIAS, bias->buf ? bias : r->gates, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(d, IDS, wk_dst(r->top_k, 1), WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(d, GATES, r->gates, WK_FORM_ELEMENTS, true);
}

static void put_router(wk_dispatch *d, const router *r) {
    const wk_view *const weight = wk_src(r->product, 1), *const ids = wk_dst(r->top_k, 1);
    const int64_t k = weight->extent[1];
    const int64_t params[] = {d->first[ROUTER],
                              (int64_t)wk_panel_bytes(WK_LAYOUT_PANEL_F32, k) / 16,
                              (k + WK_QK_SMALL - 1) / WK_QK_SMALL,
                              d->first[BIAS],
                              wk_src(r->product, 2)->stride[0],
                              weight->extent[0],
                              ids->extent[1],
                              d->first[IDS],
                              ids->stride[0],
                              d->first[GATES],
                              r->gates->stride[0]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(d, (uint32_t)params[i]);
    wk_dispatch_f32(d, NAN);
}

/* The rows of x, of which each is one or is made of several. */
static const wk_view *rows_of_x(const norms *o) {
    if (o->post) return wk_src(o->post, 0);
    if (o->mix) return wk_src(o->mix, 1);
    return o->sum ? wk_src(o->sum, o->term) : wk_src(o->norm, 0);
}

static void put_mix(wk_dispatch *d, const wk_op *mix) {
    const wk_view *const a = wk_src(mix, 0);
    wk_dispatch_u32(d, d->first[MIX]);
    wk_dispatch_u32(d, (uint32_t)a->stride[0]);
    wk_dispatch_u32(d, (uint32_t)a->stride[2]);
    wk_dispatch_u32(d, (uint32_t)wk_src(mix, 1)->stride[1]);
}

static wick_status run(wk_encoder *e, const norms *o) {
    const wk_op *const post = o->post ? o->post : o->norm;
    const wk_view *const y = wk_dst(o->norm, 0), *const x = rows_of_x(o);
    /* The text names all operands. */
    const wk_view *const views[] = {o->sum ? wk_dst(o->sum, 0) : y, y, x,
                                    o->sum ? wk_src(o->sum, 1 - o->term) : x};
    const wk_view *const weight = wk_src(o->norm, 1), *const second = wk_src(post, 1);
    const wk_rows rows = wk_rows_of(y, wk_src(o->norm, 0), 1);
    const uint32_t blocks = wk_encoder_makes_integers(e) ? rows.n / WK_QK_SMALL : 0;
    const uint32_t needs = wk_encoder_kernel(e)->needs;
    const bool by_subgroups = (needs & WICK_WEBGPU_SUBGROUPS) != 0;
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[o->router != NULL][by_subgroups][blocks > 0],
                      needs | (blocks > 0 ? WICK_WEBGPU_DOT4 : 0));
    const int32_t constants[N_CONSTANTS] = {(int32_t)rows.lanes,
                                            (int32_t)rows.lanes,
                                            o->sum != NULL,
                                            o->post != NULL,
                                            (int32_t)blocks,
                                            by_subgroups ? (int32_t)wk_encoder_subgroup(e) : 0,
                                            [TERMS] =
                                                o->mix ? (int32_t)wk_src(o->mix, 0)->extent[2] : 0};
    memcpy(d.program.constants, constants, sizeof constants);
    for (int i = 0; i < 4; i++) wk_dispatch_bind(&d, i, views[i], WK_FORM_ELEMENTS, i < 2);
    wk_dispatch_bind(&d, WEIGHT, weight, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, POST, second, WK_FORM_ELEMENTS, false);
    if (o->mix) wk_dispatch_bind(&d, MIX, wk_src(o->mix, 0), WK_FORM_ELEMENTS, false);
    if (o->router) bind_router(&d, o->router);
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
    if (o->mix)
        put_mix(&d, o->mix);
    else
        for (int i = 0; i < 4; i++) wk_dispatch_u32(&d, 0);
    if (o->router) put_router(&d, o->router);
    return wk_dispatch_run_n(e, &d, rows.n_rows);
}

bool wk_norm_makes_integers(const wk_encoder *e, const wk_op *norm) {
    return wk_encoder_makes_integers(e) && is_plain_norm(norm);
}

wick_status wk_norm_encode_integers(wk_encoder *e, const wk_op *norm) {
    return run(e, &(norms){.norm = norm});
}

/* The residual comes first in a sum of the model, what is added second. */
static wick_status encode_two(wk_encoder *e, const wk_op *ops) {
    return run(e, &(norms){.norm = &ops[1], .sum = &ops[0], .term = 1});
}

static wick_status encode_three(wk_encoder *e, const wk_op *ops) {
    return run(e, &(norms){.norm = &ops[2], .sum = &ops[1], .post = &ops[0], .term = term_of(ops)});
}

static wick_status encode_mix(wk_encoder *e, const wk_op *ops) {
    return run(e, &(norms){.norm = &ops[2], .sum = &ops[1], .mix = &ops[0], .term = 1});
}

static wick_status encode_routing(wk_encoder *e, const wk_op *ops) {
    const router r = router_of(wk_encoder_kernel(e)->code, ops);
    return run(e, &(norms){.norm = &ops[1], .sum = &ops[0], .router = &r, .term = 1});
}

/* Two kernels: by lanes of threads alone, by subgroups. */
#define KERNEL(title, opcode, of_needs, of_ops, encodes)                                           \
    const wk_webgpu_kernel wk_webgpu_##title = {                                                   \
        .base.name = #title "_wgsl",                                                               \
        .base.code = opcode,                                                                       \
        .base.needs = of_needs,                                                                    \
        .base.accepts = accepts_##of_ops,                                                          \
        .makes_integers = true,                                                                    \
        .encode = encodes,                                                                         \
    };
#define KERNELS(title, opcode, of_ops, encodes)                                                    \
    KERNEL(title, opcode, 0, of_ops, encodes)                                                      \
    KERNEL(title##_subgroups, opcode, WICK_WEBGPU_SUBGROUPS, of_ops, encodes)
KERNELS(add_norm, WK_OPS_ADD_NORM, two, encode_two)
KERNELS(norm_add_norm, WK_OPS_NORM_ADD_NORM, three, encode_three)
KERNELS(mix_add_norm, WK_OPS_MIX_ADD_NORM, mix, encode_mix)
KERNELS(route, WK_OPS_ROUTE, route, encode_routing)
KERNELS(route_all, WK_OPS_ROUTE_ALL, route_all, encode_routing)
KERNELS(route_shares, WK_OPS_ROUTE_SHARES, route_shares, encode_routing)
#undef KERNELS
#undef KERNEL
