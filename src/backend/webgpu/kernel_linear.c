/* backend/webgpu/kernel_linear.c: products with weights, in two forms that give the same bits: for
 * few columns (rows of x), and for many. */
#include "backend/webgpu/panel_wgsl.h"

#include "core/compiler.h"

enum {
    TILE_ROWS = 64, /* of the form for many */
    THREADS = 64,
    Y = 0,
    X = 1,
    WEIGHT = 2,
    BIAS = 3,
    TABLES = 4,
    COLUMNS = WK_PANEL_CONSTANT_COUNT, /* constants behind the weight's */
    PANELS,
    HAS_BIAS,
};

/* columns: rows of x. */
typedef struct tuning {
    int64_t few;                 /* columns, at most, of the form for few, */
    int64_t few_columns, panels; /* of whose workgroups each has at most so many of both; */
    int64_t tile_columns;        /* the other form's have these */
    uint32_t workgroup_bytes;    /* that those need */
} tuning;

static const tuning tunings[] = {
    {16, 8, 1, 32, 0},
    {16, 4, 2, 64, 18 * 1024},
    {1, 8, 4, 32, 0},        /* tiles from two columns on */
    {INT64_MAX, 8, 1, 0, 0}, /* and never: where barriers are slow */
};

static bool accepts(const wk_op *op) {
    const wk_view *const bias = wk_src(op, 2);
    return wk_webgpu_is_float(wk_dst(op, 0)->dtype) && wk_webgpu_is_float(wk_src(op, 0)->dtype) &&
           (!bias->buf || wk_webgpu_is_float(bias->dtype)) && wk_weight_is_readable(wk_src(op, 1));
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* --- x as vectors of four floats --- */

static bool is_of_vectors(const wk_view *x) {
    return x->dtype == WICK_F32 && x->stride[1] == 1 && x->stride[0] % 4 == 0 &&
           x->extent[1] % 4 == 0 && x->offset % 16 == 0;
}

/* A copy of it that is so. */
static wick_status pack(wk_encoder *e, const wk_view *x, wk_view *out) {
    static const wk_source source = {
        .name = "linear_pack", .parts = {wk_wgsl_linear_pack}, .operands = {"y", "x"}};
    const int64_t stride = divide_up(x->extent[1], 4) * 4, count = x->extent[0] * stride;
    WK_TRY(wk_encoder_temp(e, count, out));
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    wk_dispatch_bind(&d, 0, out, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    const uint32_t params[] = {
        (uint32_t)count, (uint32_t)x->extent[1], (uint32_t)stride,      d.first[0],
        d.first[1],      (uint32_t)x->stride[0], (uint32_t)x->stride[1]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, params[i]);
    out->rank = 2;
    out->extent[0] = x->extent[0];
    out->extent[1] = stride;
    out->stride[0] = stride;
    out->stride[1] = 1;
    return wk_dispatch_run_n(e, &d, (uint64_t)divide_up(count, THREADS));
}

/* --- The product --- */

/* A source for each text that decodes weights. */
#define SOURCE(weight, main)                                                                       \
    {                                                                                              \
        .name = #main,                                                                             \
        .parts = {wk_wgsl_linear, wk_wgsl_##weight, wk_wgsl_##main},                               \
        .operands = {"y", "x", "weight", "bias", "tables"},                                        \
        .constants = {WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_NAME) "COLUMNS", "PANELS", "HAS_BIAS"}, \
    }
static const wk_source few[] = {
    [WK_WEIGHT_QUANTS] = SOURCE(panel, linear_few),
    [WK_WEIGHT_FLOATS] = SOURCE(panel_float, linear_few),
    [WK_WEIGHT_RAW] = SOURCE(raw, linear_few),
};
static const wk_source many[] = {
    [WK_WEIGHT_QUANTS] = SOURCE(panel, linear_tiles),
    [WK_WEIGHT_FLOATS] = SOURCE(panel_float, linear_tiles),
    [WK_WEIGHT_RAW] = SOURCE(raw, linear_tiles),
};
#undef SOURCE

/* How y is shared out to workgroups. */
typedef struct tiling {
    const wk_source *source;
    int64_t rows, columns; /* of a workgroup */
} tiling;

static tiling choose_tiling(const wk_encoder *e, int64_t m, const wk_view *weight) {
    const wk_weight_text text = wk_weight_text_of(weight);
    const tuning *t = &tunings[wk_encoder_tuning(e)];
    if (t->workgroup_bytes > wk_encoder_limits(e)->workgroup_bytes) t = &tunings[0];
    if (m > t->few) return (tiling){&many[text], TILE_ROWS, t->tile_columns};
    int64_t columns = 1;
    while (columns < m && columns < t->few_columns) columns *= 2;
    return (tiling){&few[text], t->panels * WK_PANEL_ROWS, columns};
}

static wick_status multiply(wk_encoder *e, const wk_op *op, const wk_view *x, const tiling *t) {
    const wk_view *const y = wk_dst(op, 0), *const weight = wk_src(op, 1), *bias = wk_src(op, 2);
    const bool has_bias = bias->buf != NULL;
    if (!has_bias) bias = y; /* any that is bound */
    wk_dispatch d;
    wk_dispatch_begin(&d, t->source, 0);
    wk_dispatch_bind(&d, Y, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, X, x, WK_FORM_VECTORS, false);
    wk_dispatch_bind(&d, BIAS, bias, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_weight_bind(e, &d, WEIGHT, TABLES, weight, y));
    d.program.constants[COLUMNS] = (int32_t)t->columns;
    d.program.constants[PANELS] = (int32_t)(t->rows / WK_PANEL_ROWS);
    d.program.constants[HAS_BIAS] = has_bias;
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t m = y->extent[0], n = y->extent[1], k = weight->extent[1];
    const int64_t row_tiles = divide_up(n, t->rows), groups = row_tiles * divide_up(m, t->columns);
    const int64_t params[] = {m,
                              n,
                              k,
                              divide_up(k, 32),
                              row_tiles,
                              groups,
                              d.first[X],
                              x->stride[0] / 4,
                              d.first[Y],
                              y->stride[0],
                              y->stride[1],
                              d.first[BIAS],
                              bias->stride[0]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    wk_weight_params(&d, WEIGHT, TABLES);
    return wk_dispatch_run_n(e, &d, (uint64_t)groups);
}

static wick_status encode(wk_encoder *e, const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (wk_view_count(y) == 0) return WICK_OK;
    wk_view packed = *x;
    if (!is_of_vectors(x)) WK_TRY(pack(e, x, &packed));
    const tiling t = choose_tiling(e, y->extent[0], wk_src(op, 1));
    return multiply(e, op, &packed, &t);
}

const wk_webgpu_kernel wk_webgpu_linear = {
    .base = {.name = "linear_wgsl"},
    .code = WK_OP_LINEAR,
    .n_tunings = WK_COUNT(tunings),
    .accepts = accepts,
    .encode = encode,
};
