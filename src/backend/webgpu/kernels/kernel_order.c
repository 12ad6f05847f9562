/* backend/webgpu/kernels/kernel_order.c: what goes along rows in their order: running sums, and
 * sorting. */
#include "backend/webgpu/kernels/rows.h"

#include "core/dtype.h"
#include "core/half.h"

/* --- Cumulate --- */

static bool accepts_cumulate(const wk_op *op) {
    const wick_dtype dtype = wk_src(op, 0)->dtype;
    const bool is_wide = dtype == WICK_I64 || dtype == WICK_F64;
    return !is_wide && wk_rows_are_countable(wk_src(op, 0));
}

static wick_status encode_cumulate(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "cumulate",
                                     .parts = {wk_wgsl_rows, wk_wgsl_cumulate},
                                     .operands = {"y", "x"},
                                     .constants = {"THREADS", "LANES", "COLUMNS", "KIND", "FN"}};
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    const bool is_float = wk_dtype_is_float(x->dtype), is_sum = op->p.cumulate == WK_CUMULATE_SUM;
    const wk_rows rows = wk_rows_of(y, x, x->rank - 1);
    if (wk_view_count(y) == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[WK_ROWS_CONSTANTS] = !is_float;
    d.program.constants[WK_ROWS_CONSTANTS + 1] = (int32_t)op->p.cumulate;
    wk_dispatch_bind(&d, 0, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    const uint32_t own[4] = {is_sum ? 0 : is_float ? wk_f32_bits(1) : 1};
    return wk_rows_run(e, &d, &rows, own);
}

const wk_webgpu_kernel wk_webgpu_cumulate = {
    .base.name = "cumulate_wgsl",
    .base.code = WK_OP_CUMULATE,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_cumulate,
    .encode = encode_cumulate,
};

/* --- Argsort: tiles are sorted, then merged in pairs until one is left --- */

/* Elements of the largest tile: 8 bytes each in shared memory. */
enum { MOST_TILE = 1024, LEAST_TILE = 64, MOST_THREADS = 256 };

static bool accepts_argsort(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return wk_rows_kind_of(x->dtype) != WK_KIND_NONE && wk_rows_are_countable(x);
}

static uint64_t candidate_bytes(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return x->extent[x->rank - 1] > MOST_TILE ? 8 * (uint64_t)wk_view_count(x) : 0;
}

/* Rows whose parts have `part` elements and a workgroup each. */
static void set_parts(wk_rows *rows, uint32_t part, uint32_t threads) {
    rows->part = part;
    rows->n_parts = (rows->n + part - 1) / part;
    rows->threads = rows->lanes = threads;
    rows->is_alone = true;
    rows->by_columns = false;
}

/* Tiles of x: as indices in y where there is one tile only, else, or where y is NULL, as
 * candidates. */
static wick_status sort_tiles(wk_encoder *e, const wk_view *y, const wk_view *x, bool is_descending,
                              wk_rows *rows, const wk_view *to) {
    static const wk_source source = {
        .name = "argsort",
        .parts = {wk_wgsl_rows, wk_wgsl_bitonic, wk_wgsl_argsort},
        .operands = {"y", "x"},
        .constants = {"THREADS", "LANES", "COLUMNS", "KIND", "WHOLE", "TILE"}};
    uint32_t tile = LEAST_TILE;
    while (tile < rows->n && tile < MOST_TILE) tile *= 4;
    set_parts(rows, tile, tile / 2 < MOST_THREADS ? tile / 2 : MOST_THREADS);
    const bool is_whole = y && rows->n_parts == 1;
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    int32_t *const constants = d.program.constants + WK_ROWS_CONSTANTS;
    constants[0] = (int32_t)wk_rows_kind_of(x->dtype);
    constants[1] = is_whole;
    constants[2] = (int32_t)tile;
    wk_dispatch_bind(&d, 0, is_whole ? y : to, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    const uint32_t own[4] = {is_descending ? UINT32_MAX : 0,
                             is_whole ? (uint32_t)y->stride[y->rank - 1] : 0};
    return wk_rows_run(e, &d, rows, own);
}

/* Runs of `run` elements become runs of twice as many; the last ones in y, if to is NULL. */
static wick_status merge(wk_encoder *e, const wk_view *y, wk_rows *rows, uint32_t run,
                         const wk_view *from, const wk_view *to) {
    static const wk_source source = {.name = "argsort_merge",
                                     .parts = {wk_wgsl_rows, wk_wgsl_argsort_merge},
                                     .operands = {"y", "x"},
                                     .constants = {"THREADS", "LANES", "COLUMNS", "LAST"}};
    set_parts(rows, MOST_THREADS, MOST_THREADS);
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[WK_ROWS_CONSTANTS] = to == NULL;
    wk_dispatch_bind(&d, 0, to ? to : y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, from, WK_FORM_ELEMENTS, false);
    const uint32_t own[4] = {run, to ? 0 : (uint32_t)y->stride[y->rank - 1]};
    return wk_rows_run(e, &d, rows, own);
}

/* Candidates are read and written alternately; *at: those that were written last. */
static wick_status sort_rows(wk_encoder *e, const wk_view *y, const wk_view *x, bool is_descending,
                             const wk_view candidates[2], int *at) {
    wk_rows rows = wk_rows_of(y ? y : x, x, x->rank - 1);
    *at = 0;
    WK_TRY(sort_tiles(e, y, x, is_descending, &rows, &candidates[0]));
    for (uint64_t run = MOST_TILE; run < rows.n; run *= 2, *at = !*at) {
        const bool is_last = y && 2 * run >= rows.n;
        WK_TRY(merge(e, y, &rows, (uint32_t)run, &candidates[*at],
                     is_last ? NULL : &candidates[!*at]));
    }
    return WICK_OK;
}

wick_status wk_rows_sort(wk_encoder *e, const wk_view *x, const wk_view pairs[2], int *at) {
    return sort_rows(e, NULL, x, false, pairs, at);
}

static wick_status encode_argsort(wk_encoder *e, const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    const int64_t n = x->extent[x->rank - 1];
    wk_view candidates[2] = {{0}};
    int at;
    if (wk_view_count(y) == 0) return WICK_OK;
    for (int i = 0; i < 2 && n > (int64_t)MOST_TILE << i; i++) {
        WK_TRY(wk_encoder_temp(e, 2 * wk_view_count(x), &candidates[i]));
        candidates[i].dtype = WICK_U32;
    }
    return sort_rows(e, y, x, op->p.argsort.is_descending, candidates, &at);
}

const wk_webgpu_kernel wk_webgpu_argsort = {
    .base.name = "argsort_wgsl",
    .base.code = WK_OP_ARGSORT,
    .base.accepts = accepts_argsort,
    .temp_bytes = candidate_bytes,
    .encode = encode_argsort,
};
