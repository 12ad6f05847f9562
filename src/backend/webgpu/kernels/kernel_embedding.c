/* backend/webgpu/kernels/kernel_embedding.c: rows of a weight by index: decoded from panels, or
 * moved. */
#include "backend/webgpu/kernels/panel_wgsl.h"

#include "core/dtype.h"

enum {
    Y = 0,
    IDS = 1,
    FAULT = 2,
    WEIGHT = 3,
    TABLES = 4,
    THREADS = 64,
    ID_WORDS = WK_PANEL_CONSTANT_COUNT, /* constants after the weight's */
    FAULT_CODE,
};

static bool is_moved(const wk_op *op) { return wk_src(op, 0)->layout == WK_LAYOUT_RAW; }

static bool accepts(const wk_op *op) {
    const wick_dtype y = wk_dst(op, 0)->dtype, weight = wk_src(op, 0)->dtype;
    if (y == WICK_F64 || y == WICK_I64 || wk_dtype_is_block(y)) return false;
    if (is_moved(op) && y == weight) return true;
    return wk_dtype_is_float(y) && wk_weight_is_readable(wk_src(op, 0));
}

#define SOURCE(...)                                                                                \
    {                                                                                              \
        .name = "embedding",                                                                       \
        .parts = {wk_wgsl_embedding, __VA_ARGS__},                                                 \
        .operands = {"y", "ids", "fault", "weight", "tables"},                                     \
        .constants = {WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_NAME) "ID_WORDS", "FAULT"},             \
    }
static const wk_source sources[] = {
    [WK_WEIGHT_QUANTS] = SOURCE(wk_wgsl_panel, wk_wgsl_embedding_panel),
    [WK_WEIGHT_FLOATS] = SOURCE(wk_wgsl_panel_float, wk_wgsl_embedding_panel),
    [WK_WEIGHT_RAW] = SOURCE(wk_wgsl_embedding_raw),
};
#undef SOURCE

static wick_status encode(wk_encoder *e, const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const weight = wk_src(op, 0),
                         *const ids = wk_src(op, 1);
    const int64_t m = y->extent[0], n = weight->extent[0], k = weight->extent[1];
    const int64_t parts = is_moved(op) ? k : (k + 7) / 8;
    if (wk_view_count(y) == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[wk_weight_text_of(weight)], 0);
    wk_dispatch_bind(&d, Y, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, IDS, ids, ids->dtype == WICK_U8 ? WK_FORM_ELEMENTS : WK_FORM_WORDS, false);
    wk_dispatch_bind(&d, FAULT, wk_encoder_fault(e), WK_FORM_WORDS, true);
    WK_TRY(wk_weight_bind(e, &d, WEIGHT, TABLES, weight, y));
    d.program.constants[ID_WORDS] = ids->dtype == WICK_I64 ? 2 : 1;
    d.program.constants[FAULT_CODE] = WK_OP_EMBEDDING + 1;
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t params[] = {
        m, n, k, parts, d.first[Y], y->stride[0], y->stride[1], d.first[IDS], ids->stride[0]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    wk_weight_params(&d, WEIGHT, TABLES);
    wk_dispatch_u32(&d, d.first[FAULT]);
    uint32_t first_row, table_rows;
    wk_encoder_rows(e, op, &first_row, &table_rows);
    wk_dispatch_u32(&d, first_row);
    wk_dispatch_u32(&d, table_rows);
    return wk_dispatch_run_n(e, &d, (uint64_t)(m * parts + THREADS - 1) / THREADS);
}

const wk_webgpu_kernel wk_webgpu_embedding = {
    .base.name = "embedding_wgsl",
    .base.code = WK_OP_EMBEDDING,
    .base.accepts = accepts,
    .takes_rows = true,
    .encode = encode,
};
