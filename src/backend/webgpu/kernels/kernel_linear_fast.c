/* backend/webgpu/kernels/kernel_linear_fast.c: products with weights of quants by dot products of
 * bytes: x is made integers first (wgsl/quantize.wgsl), a block of 32 at a time, as on the CPU. A
 * form for few columns (rows of y) that one weight multiplies, whose threads share the inner
 * dimension, and one for many. */
#include "backend/webgpu/kernels/linear_wgsl.h"
#include "backend/webgpu/kernels/panel_wgsl.h"

#include "core/compiler.h"
#include "core/half.h"

#include <math.h>

enum {
    FEW = 16,        /* most columns of the form for few */
    FEW_COLUMNS = 8, /* most columns in a workgroup of that form, */
    LEAST_SLICES = 16,
    MOST_SLICES = 64,   /* and slices of the inner dimension */
    TILE = 64,          /* rows and columns of a workgroup of the form for many */
    LEAST_THREADS = 64, /* of a row that becomes integers, */
    FEW_BLOCKS = 32,    /* with more: */
    MOST_THREADS = 256,
    MOST_BLOCKS = 3072,                 /* whose largest elements find room in a workgroup */
    OWN_ELEMENTS = 4096,                /* see makes_own_integers */
    HAS_BIAS = WK_PANEL_CONSTANT_COUNT, /* constants after the weight's */
    FAULT,
    GATED,
    COLUMNS,
    SLICES,
    BLOCKS,
    SUBGROUP,
};

static bool accepts(const wk_op *op) {
    const wk_view *const bias = wk_src(op, 2);
    const int64_t k = wk_src(op, 0)->extent[wk_src(op, 0)->rank - 1];
    return k > 0 && k <= MOST_BLOCKS * WK_QK_SMALL && wk_webgpu_is_float(wk_dst(op, 0)->dtype) &&
           wk_webgpu_is_float(wk_src(op, 0)->dtype) &&
           (!bias->buf || wk_webgpu_is_float(bias->dtype)) && wk_weight_has_bytes(wk_src(op, 1));
}

static bool is_few(const wk_op *op) { return wk_linear_columns(op) <= FEW; }

static bool accepts_few(const wk_op *op) { return is_few(op) && accepts(op); }

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Rows of x as integers: what is there, or those of a dispatch. */
static wick_status quantize(wk_encoder *e, const wk_op *op, wk_view *out) {
    static const wk_source source = {.name = "linear_quantize",
                                     .parts = {wk_wgsl_linear_quantize, wk_wgsl_quantize},
                                     .operands = {"y", "x"},
                                     .constants = {"THREADS", "BLOCKS"}};
    const wk_view *const x = wk_src(op, 0), all = wk_linear_rows(op);
    const wk_view *const made = wk_encoder_integers(e, &all);
    const wk_linear_x rows = wk_linear_x_of(op);
    const int64_t n_blocks = x->extent[x->rank - 1] / WK_QK_SMALL;
    if (made) {
        *out = *made;
        return WICK_OK;
    }
    WK_TRY(wk_encoder_temp(e, rows.n * n_blocks * WK_INTEGER_WORDS, out));
    wk_encoder_keep_integers(e, &all, out);
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, WICK_WEBGPU_DOT4);
    d.program.constants[0] = n_blocks > FEW_BLOCKS ? MOST_THREADS : LEAST_THREADS;
    d.program.constants[1] = (int32_t)n_blocks;
    wk_dispatch_bind(&d, 0, out, WK_FORM_WORDS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t params[] = {rows.n, d.first[0], d.first[1], rows.stride, x->stride[x->rank - 1],
                              rows.u, rows.step};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    return wk_dispatch_run_n(e, &d, (uint64_t)rows.n);
}

/* A short product of one row, whose workgroups make all of x integers themselves: that takes less
 * time than another dispatch. */
static bool makes_own_integers(const wk_encoder *e, const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return op->code == WK_OP_LINEAR && x->extent[0] == 1 && x->dtype == WICK_F32 &&
           x->stride[1] == 1 && x->offset % 16 == 0 && x->extent[1] <= OWN_ELEMENTS &&
           wk_dst(op, 0)->extent[1] <= x->extent[1] && !wk_encoder_integers(e, x);
}

/* --- The product --- */

#define CONSTANTS WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_NAME) "HAS_BIAS", "FAULT", "GATED"
#define MANY(...)                                                                                  \
    {                                                                                              \
        .name = "linear_tiles_fast",                                                               \
        .parts = {wk_wgsl_linear_fast, __VA_ARGS__, wk_wgsl_panel, wk_wgsl_linear_tiles_fast},     \
        .operands = WK_LINEAR_OPERANDS,                                                            \
        .constants = {CONSTANTS},                                                                  \
    }
#define FEW_BY(slices, ...)                                                                        \
    {                                                                                              \
        .name = "linear_few_fast",                                                                 \
        .parts = {wk_wgsl_linear_fast, __VA_ARGS__, wk_wgsl_panel, wk_wgsl_##slices,               \
                  wk_wgsl_linear_few_fast},                                                        \
        .operands = WK_LINEAR_OPERANDS,                                                            \
        .constants = {CONSTANTS, "COLUMNS", "SLICES", "BLOCKS", "SUBGROUP"},                       \
    }
#define FEW(...) FEW_BY(slices, wk_wgsl_linear_x, __VA_ARGS__)
#define FEW_BY_SUBGROUPS(...) FEW_BY(slices_subgroups, wk_wgsl_linear_x, __VA_ARGS__)
#define OWN(slices)                                                                                \
    FEW_BY(slices, wk_wgsl_linear_plain, wk_wgsl_linear_rows, wk_wgsl_quantize,                    \
           wk_wgsl_linear_x_own)
/* A source for each way to find rows; `joined`: what becomes of sums. */
#define KINDS(SOURCE, ...)                                                                         \
    {                                                                                              \
        [WK_LINEAR_ROWS] = SOURCE(__VA_ARGS__, wk_wgsl_linear_rows),                               \
        [WK_LINEAR_EACH] =                                                                         \
            SOURCE(__VA_ARGS__, wk_wgsl_linear_experts, wk_wgsl_linear_experts_each),              \
        [WK_LINEAR_SORTED] =                                                                       \
            SOURCE(__VA_ARGS__, wk_wgsl_linear_experts, wk_wgsl_linear_experts_sorted),            \
    }
#define PLAIN wk_wgsl_linear_plain
#define JOINED wk_wgsl_functions, wk_wgsl_gated, wk_wgsl_linear_gated
/* Plain and gated. */
static const wk_source many[2][WK_LINEAR_KINDS] = {KINDS(MANY, PLAIN), KINDS(MANY, JOINED)};
static const wk_source few[2][WK_LINEAR_KINDS] = {KINDS(FEW, PLAIN), KINDS(FEW, JOINED)};
static const wk_source few_subgroups[2][WK_LINEAR_KINDS] = {KINDS(FEW_BY_SUBGROUPS, PLAIN),
                                                            KINDS(FEW_BY_SUBGROUPS, JOINED)};
/* Without and with subgroups. */
static const wk_source few_own[] = {OWN(slices), OWN(slices_subgroups)};
#undef JOINED
#undef PLAIN
#undef KINDS
#undef OWN
#undef FEW_BY_SUBGROUPS
#undef FEW
#undef FEW_BY
#undef MANY
#undef CONSTANTS

/* rows: of the weight, whose halves have as many of them where the op is gated. */
static wick_status multiply(wk_encoder *e, const wk_linear_job *job, const wk_view *x,
                            wk_dispatch *d, int64_t rows, int64_t columns) {
    const wk_op *const op = &job->op;
    const wk_view *const y = wk_dst(op, 0), *const weight = &job->weight, *bias = &job->bias;
    const bool has_bias = bias->buf != NULL;
    if (!has_bias) bias = y; /* any that is bound */
    wk_linear_tiles tiles;
    WK_TRY(wk_linear_make_tiles(e, op, columns, &tiles));
    wk_dispatch_bind(d, WK_LINEAR_Y, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(d, WK_LINEAR_X, x, WK_FORM_VECTORS, false);
    wk_dispatch_bind(d, WK_LINEAR_BIAS, bias, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_weight_bind(e, d, WK_LINEAR_WEIGHT, WK_LINEAR_TABLES, weight, y));
    wk_linear_bind(e, d, op, &tiles);
    d->program.constants[HAS_BIAS] = has_bias;
    d->program.constants[FAULT] = (int32_t)op->code + 1;
    d->program.constants[GATED] = wk_linear_gated_constant(job);
    WK_TRY(wk_dispatch_place(e, d));
    const int64_t n = y->extent[y->rank - 1];
    const int64_t row_tiles = divide_up(n, rows), groups = row_tiles * tiles.n;
    const wk_linear_x of_x = wk_linear_x_packed(op, 1);
    const int64_t params[] = {of_x.n,
                              n,
                              weight->extent[weight->rank - 1] / WK_QK_SMALL,
                              row_tiles,
                              groups,
                              d->first[WK_LINEAR_X],
                              of_x.stride,
                              d->first[WK_LINEAR_Y],
                              y->stride[0],
                              y->stride[y->rank - 1],
                              d->first[WK_LINEAR_BIAS],
                              bias->stride[bias->rank - 1]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(d, (uint32_t)params[i]);
    wk_weight_params(d, WK_LINEAR_WEIGHT, WK_LINEAR_TABLES);
    wk_linear_gated_params(d, job);
    wk_linear_params(e, d, op, &tiles, &of_x);
    return wk_dispatch_run_n(e, d, (uint64_t)groups);
}

/* x: NULL: as the op has it. */
static wick_status multiply_few(wk_encoder *e, const wk_linear_job *job, const wk_view *x) {
    const uint32_t needs = wk_encoder_kernel(e)->needs;
    const wk_op *const op = &job->op;
    const wk_view *const weight = wk_src(op, 1);
    const int64_t m = wk_linear_columns(op);
    const int64_t n_blocks = weight->extent[weight->rank - 1] / WK_QK_SMALL;
    int64_t columns = 1, slices = LEAST_SLICES;
    while (columns < m && columns < FEW_COLUMNS) columns *= 2;
    while (2 * slices <= n_blocks && slices < MOST_SLICES) slices *= 2;
    const bool has_subgroups = (needs & WICK_WEBGPU_SUBGROUPS) != 0;
    wk_dispatch d;
    const bool is_gated = job->gated != NULL;
    const wk_source *const of_kind = has_subgroups ? few_subgroups[is_gated] : few[is_gated];
    const wk_source *const source = x ? &of_kind[wk_linear_kind_of(op)] : &few_own[has_subgroups];
    wk_dispatch_begin(&d, source, needs);
    d.program.constants[COLUMNS] = (int32_t)columns;
    d.program.constants[SLICES] = (int32_t)slices;
    if (!x) d.program.constants[BLOCKS] = (int32_t)n_blocks;
    if (has_subgroups) d.program.constants[SUBGROUP] = (int32_t)wk_encoder_subgroup(e);
    return multiply(e, job, x ? x : wk_src(op, 0), &d, WK_PANEL_ROWS, columns);
}

static wick_status encode(wk_encoder *e, const wk_op *ops) {
    const size_t n = wk_opcode_ops(wk_encoder_kernel(e)->code);
    wk_view x;
    if (wk_view_count(wk_dst(ops, 0)) == 0) return WICK_OK;
    const wk_linear_job job = wk_linear_job_of(ops, n);
    if (n == 1 && makes_own_integers(e, ops)) return multiply_few(e, &job, NULL);
    WK_TRY(quantize(e, ops, &x));
    if (is_few(ops)) return multiply_few(e, &job, &x);
    wk_dispatch d;
    wk_dispatch_begin(&d, &many[n > 1][wk_linear_kind_of(ops)], WICK_WEBGPU_DOT4);
    return multiply(e, &job, &x, &d, n > 1 ? TILE / 2 : TILE, TILE);
}

enum { WITH_SUBGROUPS = WICK_WEBGPU_DOT4 | WICK_WEBGPU_SUBGROUPS };

static bool accepts_gated(const wk_op *ops) { return accepts(ops) && wk_linear_is_gated(ops); }

static bool accepts_few_gated(const wk_op *ops) {
    return accepts_few(ops) && wk_linear_is_gated(ops);
}

static bool accepts_experts_gated(const wk_op *ops) {
    return accepts(ops) && wk_linear_are_gated_experts(ops);
}

static bool accepts_few_experts_gated(const wk_op *ops) {
    return accepts_few(ops) && wk_linear_are_gated_experts(ops);
}

const wk_webgpu_kernel wk_webgpu_experts_gated_dot4_subgroups = {
    .base.name = "experts_gated_dot4_subgroups_wgsl",
    .base.code = WK_OPS_EXPERTS_GATED,
    .base.needs = WITH_SUBGROUPS,
    .base.is_fast = true,
    .base.accepts = accepts_few_experts_gated,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_experts_gated_dot4 = {
    .base.name = "experts_gated_dot4_wgsl",
    .base.code = WK_OPS_EXPERTS_GATED,
    .base.needs = WICK_WEBGPU_DOT4,
    .base.is_fast = true,
    .base.accepts = accepts_experts_gated,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_gated_dot4_subgroups = {
    .base.name = "linear_gated_dot4_subgroups_wgsl",
    .base.code = WK_OPS_GATED,
    .base.needs = WITH_SUBGROUPS,
    .base.is_fast = true,
    .base.accepts = accepts_few_gated,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_gated_dot4 = {
    .base.name = "linear_gated_dot4_wgsl",
    .base.code = WK_OPS_GATED,
    .base.needs = WICK_WEBGPU_DOT4,
    .base.is_fast = true,
    .base.accepts = accepts_gated,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_dot4_subgroups = {
    .base.name = "linear_dot4_subgroups_wgsl",
    .base.code = WK_OP_LINEAR,
    .base.needs = WICK_WEBGPU_DOT4 | WICK_WEBGPU_SUBGROUPS,
    .base.is_fast = true,
    .base.accepts = accepts_few,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_dot4 = {
    .base.name = "linear_dot4_wgsl",
    .base.code = WK_OP_LINEAR,
    .base.needs = WICK_WEBGPU_DOT4,
    .base.is_fast = true,
    .base.accepts = accepts,
    .takes_integers = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_experts_dot4_subgroups = {
    .base.name = "linear_experts_dot4_subgroups_wgsl",
    .base.code = WK_OP_LINEAR_EXPERTS,
    .base.needs = WICK_WEBGPU_DOT4 | WICK_WEBGPU_SUBGROUPS,
    .base.is_fast = true,
    .base.accepts = accepts_few,
    .takes_integers = true,
    .takes_rows = true,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_experts_dot4 = {
    .base.name = "linear_experts_dot4_wgsl",
    .base.code = WK_OP_LINEAR_EXPERTS,
    .base.needs = WICK_WEBGPU_DOT4,
    .base.is_fast = true,
    .base.accepts = accepts,
    .takes_integers = true,
    .takes_rows = true,
    .encode = encode,
};
