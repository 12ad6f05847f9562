/* backend/webgpu/kernel_linear_fast.c: products with weights of quants by dot products of bytes: x
 * is made integers first (wgsl/linear_quantize.wgsl), a block of 32 at a time, as on the CPU. A
 * form for few columns (rows of x), whose threads share the inner dimension, and one for many. */
#include "backend/webgpu/panel_wgsl.h"

#include "core/compiler.h"
#include "core/half.h"

#include <math.h>

enum {
    FEW = 16,        /* columns, at most, of the form for few, whose */
    FEW_COLUMNS = 8, /* workgroups have no more than these, and so many */
    LEAST_SLICES = 16,
    MOST_SLICES = 64, /* slices of the inner dimension */
    TILE = 64,        /* rows and columns of a workgroup of the form for many */
    QUANT_BLOCK = 32,
    BLOCK_WORDS = 20, /* of a block of integers */
    Y = 0,
    X = 1,
    WEIGHT = 2,
    BIAS = 3,
    TABLES = 4,
    HAS_BIAS = WK_PANEL_CONSTANT_COUNT, /* constants behind the weight's */
    COLUMNS,
    SLICES,
    SUBGROUP,
};

static bool accepts(const wk_op *op) {
    const wk_view *const bias = wk_src(op, 2);
    return wk_webgpu_is_float(wk_dst(op, 0)->dtype) && wk_webgpu_is_float(wk_src(op, 0)->dtype) &&
           (!bias->buf || wk_webgpu_is_float(bias->dtype)) && wk_weight_has_bytes(wk_src(op, 1));
}

static bool accepts_few(const wk_op *op) { return wk_dst(op, 0)->extent[0] <= FEW && accepts(op); }

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static wick_status quantize(wk_encoder *e, const wk_view *x, wk_view *out) {
    static const wk_source source = {
        .name = "linear_quantize", .parts = {wk_wgsl_linear_quantize}, .operands = {"y", "x"}};
    const int64_t m = x->extent[0], n_blocks = x->extent[1] / QUANT_BLOCK;
    WK_TRY(wk_encoder_temp(e, m * n_blocks * BLOCK_WORDS, out));
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, WICK_WEBGPU_DOT4);
    wk_dispatch_bind(&d, 0, out, WK_FORM_VECTORS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    const uint32_t params[] = {(uint32_t)m,     (uint32_t)n_blocks,     d.first[0],
                               d.first[1],      (uint32_t)x->stride[0], (uint32_t)x->stride[1],
                               wk_f32_bits(NAN)};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, params[i]);
    return wk_dispatch_run_n(e, &d, (uint64_t)m);
}

/* --- The product --- */

#define OPERANDS {"y", "x", "weight", "bias", "tables"}
#define CONSTANTS WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_NAME) "HAS_BIAS"
static const wk_source many = {
    .name = "linear_tiles_fast",
    .parts = {wk_wgsl_linear_fast, wk_wgsl_panel, wk_wgsl_linear_tiles_fast},
    .operands = OPERANDS,
    .constants = {CONSTANTS},
};
static const wk_source few = {
    .name = "linear_few_fast",
    .parts = {wk_wgsl_linear_fast, wk_wgsl_panel, wk_wgsl_slices, wk_wgsl_linear_few_fast},
    .operands = OPERANDS,
    .constants = {CONSTANTS, "COLUMNS", "SLICES"},
};
static const wk_source few_subgroups = {
    .name = "linear_few_fast_subgroups",
    .parts = {wk_wgsl_linear_fast, wk_wgsl_panel, wk_wgsl_slices_subgroups,
              wk_wgsl_linear_few_fast},
    .operands = OPERANDS,
    .constants = {CONSTANTS, "COLUMNS", "SLICES", "SUBGROUP"},
};
#undef OPERANDS
#undef CONSTANTS

static wick_status multiply(wk_encoder *e, const wk_op *op, const wk_view *x, wk_dispatch *d,
                            int64_t rows, int64_t columns) {
    const wk_view *const y = wk_dst(op, 0), *const weight = wk_src(op, 1), *bias = wk_src(op, 2);
    const bool has_bias = bias->buf != NULL;
    if (!has_bias) bias = y; /* any that is bound */
    wk_dispatch_bind(d, Y, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(d, X, x, WK_FORM_VECTORS, false);
    wk_dispatch_bind(d, BIAS, bias, WK_FORM_ELEMENTS, false);
    WK_TRY(wk_weight_bind(e, d, WEIGHT, TABLES, weight, y));
    d->program.constants[HAS_BIAS] = has_bias;
    WK_TRY(wk_dispatch_place(e, d));
    const int64_t m = y->extent[0], n = y->extent[1];
    const int64_t row_tiles = divide_up(n, rows), groups = row_tiles * divide_up(m, columns);
    const int64_t params[] = {m,
                              n,
                              weight->extent[1] / QUANT_BLOCK,
                              row_tiles,
                              groups,
                              d->first[X],
                              d->first[Y],
                              y->stride[0],
                              y->stride[1],
                              d->first[BIAS],
                              bias->stride[0]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(d, (uint32_t)params[i]);
    wk_weight_params(d, WEIGHT, TABLES);
    return wk_dispatch_run_n(e, d, (uint64_t)groups);
}

static wick_status multiply_few(wk_encoder *e, const wk_op *op, const wk_view *x, uint32_t needs) {
    const int64_t m = wk_dst(op, 0)->extent[0], n_blocks = wk_src(op, 1)->extent[1] / QUANT_BLOCK;
    int64_t columns = 1, slices = LEAST_SLICES;
    while (columns < m && columns < FEW_COLUMNS) columns *= 2;
    while (2 * slices <= n_blocks && slices < MOST_SLICES) slices *= 2;
    const bool has_subgroups = (needs & WICK_WEBGPU_SUBGROUPS) != 0;
    wk_dispatch d;
    wk_dispatch_begin(&d, has_subgroups ? &few_subgroups : &few, needs);
    d.program.constants[COLUMNS] = (int32_t)columns;
    d.program.constants[SLICES] = (int32_t)slices;
    if (has_subgroups) d.program.constants[SUBGROUP] = (int32_t)wk_encoder_subgroup(e);
    return multiply(e, op, x, &d, WK_PANEL_ROWS, columns);
}

static wick_status encode_few(wk_encoder *e, const wk_op *op, uint32_t needs) {
    wk_view x;
    if (wk_view_count(wk_dst(op, 0)) == 0) return WICK_OK;
    WK_TRY(quantize(e, wk_src(op, 0), &x));
    return multiply_few(e, op, &x, needs);
}

static wick_status encode_subgroups(wk_encoder *e, const wk_op *op) {
    return encode_few(e, op, WICK_WEBGPU_DOT4 | WICK_WEBGPU_SUBGROUPS);
}

static wick_status encode(wk_encoder *e, const wk_op *op) {
    wk_view x;
    if (wk_dst(op, 0)->extent[0] <= FEW) return encode_few(e, op, WICK_WEBGPU_DOT4);
    if (wk_view_count(wk_dst(op, 0)) == 0) return WICK_OK;
    WK_TRY(quantize(e, wk_src(op, 0), &x));
    wk_dispatch d;
    wk_dispatch_begin(&d, &many, WICK_WEBGPU_DOT4);
    return multiply(e, op, &x, &d, TILE, TILE);
}

const wk_webgpu_kernel wk_webgpu_linear_dot4_subgroups = {
    .base = {.name = "linear_dot4_subgroups_wgsl", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = WICK_WEBGPU_DOT4 | WICK_WEBGPU_SUBGROUPS,
    .accepts = accepts_few,
    .encode = encode_subgroups,
};

const wk_webgpu_kernel wk_webgpu_linear_dot4 = {
    .base = {.name = "linear_dot4_wgsl", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = WICK_WEBGPU_DOT4,
    .accepts = accepts,
    .encode = encode,
};
