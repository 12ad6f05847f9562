/* backend/webgpu/kernels/kernel_linear.c: products with weights, in three forms that give the same
 * bits: for few columns (rows of y) that one weight multiplies, for many, and for processors. */
#include "backend/webgpu/kernels/linear_wgsl.h"
#include "backend/webgpu/kernels/panel_wgsl.h"

#include "core/compiler.h"

enum {
    TILE_ROWS = 64, /* of the form for many */
    THREADS = 64,
    ENOUGH_GROUPS = 16,
    COLUMNS = WK_PANEL_CONSTANT_COUNT, /* constants after the weight's */
    PANELS,
    HAS_BIAS,
    FAULT,
    IS_GATED,
    WIDTH,
};

/* columns: see linear_wgsl.h. */
typedef struct tuning {
    int64_t few;                 /* most columns of the form for few */
    int64_t few_columns, panels; /* of a workgroup of that form; columns at most */
    int64_t tile_columns;        /* columns in a workgroup of the form for many, */
    uint32_t workgroup_bytes;    /* and the shared memory that it needs */
    bool is_wide;                /* few by wgsl/linear_wide.wgsl; columns and panels at most */
} tuning;

enum { ON_PROCESSORS = 0 WK_NOT_IN_PAGES(+3) };
static const tuning tunings[] = {{16, 8, 1, 32, 0, false},
                                 {16, 4, 2, 64, 18 * 1024, false},
                                 {1, 8, 4, 32, 0, false}, /* tiles from two columns on */
                                 WK_NOT_IN_PAGES({INT64_MAX, 8, 8, 0, 0, true})};

static bool accepts(const wk_op *op) {
    const wk_view *const bias = wk_src(op, 2);
    return wk_webgpu_is_float(wk_dst(op, 0)->dtype) && wk_webgpu_is_float(wk_src(op, 0)->dtype) &&
           (!bias->buf || wk_webgpu_is_float(bias->dtype)) && wk_weight_is_readable(wk_src(op, 1));
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* --- x as vectors of four floats --- */

static bool is_of_vectors(const wk_view *x, const wk_linear_x *rows) {
    const int last = x->rank - 1;
    return x->dtype == WICK_F32 && x->stride[last] == 1 && rows->stride % 4 == 0 &&
           rows->step % 4 == 0 && x->extent[last] % 4 == 0 && x->offset % 16 == 0;
}

/* A copy of it that is so, of rows that follow each other. */
static wick_status pack(wk_encoder *e, const wk_op *op, wk_view *out, wk_linear_x *rows) {
    static const wk_source source = {
        .name = "linear_pack", .parts = {wk_wgsl_linear_pack}, .operands = {"y", "x"}};
    const wk_view *const x = wk_src(op, 0);
    const int64_t k = x->extent[x->rank - 1], stride = divide_up(k, 4) * 4;
    const int64_t count = rows->n * stride;
    WK_TRY(wk_encoder_temp(e, count, out));
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    wk_dispatch_bind(&d, 0, out, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t params[] = {
        count,   k,         stride, d.first[0], d.first[1], rows->stride, x->stride[x->rank - 1],
        rows->u, rows->step};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    *rows = wk_linear_x_packed(op, stride);
    return wk_dispatch_run_n(e, &d, (uint64_t)divide_up(count, THREADS));
}

/* --- The product --- */

/* A source for each way to find rows, and each text that decodes weights. */
#define SOURCE(weight, main, ...)                                                                  \
    {                                                                                              \
        .name = #main,                                                                             \
        .parts = {wk_wgsl_linear, __VA_ARGS__, wk_wgsl_##weight, wk_wgsl_##main},                  \
        .operands = WK_LINEAR_OPERANDS,                                                            \
        .constants = {WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_NAME) "COLUMNS", "PANELS", "HAS_BIAS",  \
                      "FAULT", "GATED", "WIDTH"},                                                  \
    }
#define PANELS(main, ...)                                                                          \
    {                                                                                              \
        [WK_WEIGHT_QUANTS] = SOURCE(panel, main, __VA_ARGS__),                                     \
        [WK_WEIGHT_FLOATS] = SOURCE(panel_float, main, __VA_ARGS__),                               \
    }
#define WEIGHTS(main, ...)                                                                         \
    {                                                                                              \
        [WK_WEIGHT_QUANTS] = SOURCE(panel, main, __VA_ARGS__),                                     \
        [WK_WEIGHT_FLOATS] = SOURCE(panel_float, main, __VA_ARGS__),                               \
        [WK_WEIGHT_RAW] = SOURCE(raw, main, __VA_ARGS__),                                          \
    }
#define KINDS(SOURCES, main, ...)                                                                  \
    {                                                                                              \
        [WK_LINEAR_ROWS] = SOURCES(main, __VA_ARGS__, wk_wgsl_linear_rows),                        \
        [WK_LINEAR_EACH] =                                                                         \
            SOURCES(main, __VA_ARGS__, wk_wgsl_linear_experts, wk_wgsl_linear_experts_each),       \
        [WK_LINEAR_SORTED] =                                                                       \
            SOURCES(main, __VA_ARGS__, wk_wgsl_linear_experts, wk_wgsl_linear_experts_sorted),     \
    }
static const wk_source few[][WK_WEIGHT_TEXT_COUNT] =
    KINDS(WEIGHTS, linear_few, wk_wgsl_linear_plain);
static const wk_source many[][WK_WEIGHT_TEXT_COUNT] =
    KINDS(WEIGHTS, linear_tiles, wk_wgsl_linear_plain);
#define GATED wk_wgsl_functions, wk_wgsl_gated, wk_wgsl_linear_gated
static const wk_source few_gated[][WK_WEIGHT_TEXT_COUNT] = KINDS(PANELS, linear_few, GATED);
static const wk_source many_gated[][WK_WEIGHT_TEXT_COUNT] = KINDS(PANELS, linear_tiles, GATED);
/* Not in pages, which seldom have a driver in software. */
WK_NOT_IN_PAGES(static const wk_source wide[][WK_WEIGHT_TEXT_COUNT] = KINDS(WEIGHTS, linear_wide,
                                                                            wk_wgsl_linear_plain);)
WK_NOT_IN_PAGES(static const wk_source wide_gated[][WK_WEIGHT_TEXT_COUNT] = KINDS(PANELS,
                                                                                  linear_wide,
                                                                                  GATED);)
#undef GATED
#undef KINDS
#undef WEIGHTS
#undef PANELS
#undef SOURCE

/* How y is shared out to workgroups. */
typedef struct tiling {
    const wk_source *source;
    int64_t rows, columns; /* of a workgroup */
    int64_t panels;        /* of the weight */
    bool is_wide;
} tiling;

static tiling wide_tiling(const wk_linear_job *job, tiling t) {
    const wk_op *const op = &job->op;
    const wk_view *const y = wk_dst(op, 0);
    const int64_t n = y->extent[y->rank - 1];
    const int64_t n_panels = n * divide_up(wk_linear_columns(op), t.columns) / WK_PANEL_ROWS;
    while (t.panels > 2 && n_panels / t.panels < ENOUGH_GROUPS) t.panels /= 2;
    WK_NOT_IN_PAGES(t.source = (job->gated ? wide_gated : wide)[wk_linear_kind_of(op)] +
                               wk_weight_text_of(wk_src(op, 1));)
    t.rows = t.panels * WK_PANEL_ROWS;
    return t;
}

static tiling choose_tiling(const wk_encoder *e, const wk_linear_job *job) {
    const wk_op *const op = &job->op;
    const int64_t m = wk_linear_columns(op);
    const wk_linear_kind kind = wk_linear_kind_of(op);
    const wk_weight_text text = wk_weight_text_of(wk_src(op, 1));
    const tuning *t = &tunings[wk_encoder_tuning(e)];
    if (t->workgroup_bytes > wk_encoder_limits(e)->workgroup_bytes ||
        (t->is_wide && !wk_encoder_has(e, WICK_WEBGPU_SUBGROUPS)))
        t = &tunings[0];
    const int64_t n_halves = job->gated ? 2 : 1;
    if (m > t->few)
        return (tiling){.source = job->gated ? &many_gated[kind][text] : &many[kind][text],
                        .rows = TILE_ROWS / n_halves,
                        .columns = t->tile_columns,
                        .panels = TILE_ROWS / WK_PANEL_ROWS};
    tiling out = {.columns = 1, .panels = t->panels, .is_wide = t->is_wide};
    while (out.columns < m && out.columns < t->few_columns) out.columns *= 2;
    if (t->is_wide) return wide_tiling(job, out);
    if (out.panels < n_halves) out.panels = n_halves;
    out.source = job->gated ? &few_gated[kind][text] : &few[kind][text];
    out.rows = out.panels / n_halves * WK_PANEL_ROWS;
    return out;
}

static wick_status multiply(wk_encoder *e, const wk_linear_job *job, const wk_view *x,
                            const wk_linear_x *rows, const tiling *t) {
    const wk_op *const op = &job->op;
    const wk_view *const y = wk_dst(op, 0), *const weight = &job->weight, *bias = &job->bias;
    const bool has_bias = bias->buf != NULL;
    if (!has_bias) bias = y; /* any that is bound */
    wk_linear_tiles tiles;
    WK_TRY(wk_linear_make_tiles(e, op, t->columns, &tiles));
    wk_dispatch d;
    wk_dispatch_begin(&d, t->source, t->is_wide ? WICK_WEBGPU_SUBGROUPS : 0);
    d.program.constants[WIDTH] = wk_encoder_subgroup(e) < 8 ? 4 : 8;
    wk_dispatch_bind(&d, WK_LINEAR_Y, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, WK_LINEAR_X, x, WK_FORM_VECTORS, false);
    wk_dispatch_bind(&d, WK_LINEAR_BIAS, bias, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_weight_bind(e, &d, WK_LINEAR_WEIGHT, WK_LINEAR_TABLES, weight, y));
    wk_linear_bind(e, &d, op, &tiles);
    d.program.constants[COLUMNS] = (int32_t)t->columns;
    d.program.constants[PANELS] = (int32_t)t->panels;
    d.program.constants[HAS_BIAS] = has_bias;
    d.program.constants[FAULT] = (int32_t)op->code + 1;
    d.program.constants[IS_GATED] = wk_linear_gated_constant(job);
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t n = y->extent[y->rank - 1], k = weight->extent[weight->rank - 1];
    const int64_t row_tiles = divide_up(n, t->rows), groups = row_tiles * tiles.n;
    const int64_t params[] = {wk_view_rows(y),
                              n,
                              k,
                              divide_up(k, 32),
                              row_tiles,
                              groups,
                              d.first[WK_LINEAR_X],
                              rows->stride / 4,
                              d.first[WK_LINEAR_Y],
                              y->stride[0],
                              y->stride[y->rank - 1],
                              d.first[WK_LINEAR_BIAS],
                              bias->stride[bias->rank - 1]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    wk_weight_params(&d, WK_LINEAR_WEIGHT, WK_LINEAR_TABLES);
    wk_linear_gated_params(&d, job);
    const wk_linear_x vectors = {.step = rows->step / 4};
    wk_linear_params(e, &d, op, &tiles, &vectors);
    return wk_dispatch_run_n(e, &d, (uint64_t)groups);
}

static wick_status encode(wk_encoder *e, const wk_op *ops) {
    const size_t n = wk_opcode_ops(wk_encoder_kernel(e)->code);
    const wk_view *const x = wk_src(ops, 0);
    if (wk_view_count(wk_dst(ops, 0)) == 0) return WICK_OK;
    const wk_linear_job job = wk_linear_job_of(ops, n);
    wk_view packed = *x;
    wk_linear_x rows = wk_linear_x_of(ops);
    if (!is_of_vectors(x, &rows)) WK_TRY(pack(e, ops, &packed, &rows));
    const tiling t = choose_tiling(e, &job);
    return multiply(e, &job, &packed, &rows, &t);
}

static bool accepts_gated(const wk_op *ops) { return accepts(ops) && wk_linear_is_gated(ops); }

static bool accepts_gated_experts(const wk_op *ops) {
    return accepts(ops) && wk_linear_are_gated_experts(ops);
}

const wk_webgpu_kernel wk_webgpu_experts_gated = {
    .base.name = "experts_gated_wgsl",
    .base.code = WK_OPS_EXPERTS_GATED,
    .base.accepts = accepts_gated_experts,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_gated = {
    .base.name = "linear_gated_wgsl",
    .base.code = WK_OPS_GATED,
    .base.accepts = accepts_gated,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear = {
    .base.name = "linear_wgsl",
    .base.code = WK_OP_LINEAR,
    .base.n_tunings = WK_COUNT(tunings),
    .processor_tuning = ON_PROCESSORS,
    .base.accepts = accepts,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_linear_experts = {
    .base.name = "linear_experts_wgsl",
    .base.code = WK_OP_LINEAR_EXPERTS,
    .base.n_tunings = WK_COUNT(tunings),
    .processor_tuning = ON_PROCESSORS,
    .base.accepts = accepts,
    .takes_rows = true,
    .encode = encode,
};
