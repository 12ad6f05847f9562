/* backend/webgpu/kernels/kernel_matmul.c: products of float matrices, at any strides. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

#include "core/compiler.h"

enum { OPERANDS = 3, LEADING = 6 /* of WICK_MAX_RANK */ };

static const int64_t tile_of_tuning[] = {32, 64};

static bool accepts(const wk_op *op) { return wk_dst(op, 0)->dtype != WICK_F64; }

static void put_vector(wk_dispatch *d, const wk_op *op, int dimension) {
    for (int i = 0; i < OPERANDS; i++)
        wk_dispatch_u32(d, dimension < 0 ? 0 : (uint32_t)op->view[i].stride[dimension]);
    wk_dispatch_u32(d, 0);
}

/* The members of struct Params after `groups`. */
static void put_strides(wk_dispatch *d, const wk_op *op) {
    const wk_view *const c = wk_dst(op, 0);
    const int leading = c->rank - 2;
    wk_dispatch_u32(d, (uint32_t)leading);
    wk_dispatch_u32(d, 0);
    for (int i = 0; i < 4; i++) wk_dispatch_u32(d, i < OPERANDS ? d->first[i] : 0);
    put_vector(d, op, leading);
    put_vector(d, op, leading + 1);
    for (int k = 0; k < 8; k++) wk_dispatch_u32(d, k < leading ? (uint32_t)c->extent[k] : 1);
    for (int k = 0; k < LEADING; k++) put_vector(d, op, k < leading ? k : -1);
}

static wick_status encode(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "matmul",
                                     .parts = {wk_wgsl_matmul},
                                     .operands = {"c", "a", "b"},
                                     .constants = {"SIZE", "A_ALONG_K", "B_ALONG_K"}};
    const wk_view *const c = wk_dst(op, 0), *const a = wk_src(op, 0), *const b = wk_src(op, 1);
    const int rows = c->rank - 2, columns = c->rank - 1;
    const int64_t count = wk_view_count(c);
    if (count == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    for (int i = 0; i < OPERANDS; i++)
        wk_dispatch_bind(&d, i, &op->view[i], WK_FORM_ELEMENTS, i == 0);
    const int64_t tile = tile_of_tuning[wk_encoder_tuning(e)];
    d.program.constants[0] = (int32_t)tile;
    d.program.constants[1] = a->stride[columns] <= a->stride[rows];
    d.program.constants[2] = b->stride[rows] < b->stride[columns];
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t m = c->extent[rows], n = c->extent[columns];
    const int64_t row_tiles = (m + tile - 1) / tile, column_tiles = (n + tile - 1) / tile;
    const int64_t groups = row_tiles * column_tiles * (count / (m * n));
    const int64_t params[] = {m, n, a->extent[columns], row_tiles, column_tiles, groups};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    put_strides(&d, op);
    return wk_dispatch_run_n(e, &d, (uint64_t)groups);
}

const wk_webgpu_kernel wk_webgpu_matmul = {
    .base.name = "matmul_wgsl",
    .base.code = WK_OP_MATMUL,
    .base.n_tunings = WK_COUNT(tile_of_tuning),
    .base.accepts = accepts,
    .encode = encode,
};
