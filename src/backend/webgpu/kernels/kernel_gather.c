/* backend/webgpu/kernels/kernel_gather.c: elements of rows by index: fetched, or met by others. */
#include "backend/webgpu/kernels/rows.h"
#include "backend/webgpu/kernels/strided.h"

#include "core/dtype.h"

#include <string.h>

/* 1, or 2 words of an element. */
static uint32_t words_of(const wk_view *view) { return wk_is_wide(view->dtype) ? 2 : 1; }

static uint32_t last_stride(const wk_view *view) {
    return (uint32_t)view->stride[view->rank - 1] * words_of(view);
}

/* The same for every thread. */
static wk_view fault_of(wk_encoder *e) {
    wk_view fault = *wk_encoder_fault(e);
    memset(fault.stride, 0, sizeof fault.stride);
    return fault;
}

/* --- Gather --- */

/* Rows of x are found by 32 bits. */
static bool accepts_gather(const wk_op *op) { return wk_view_count(wk_src(op, 0)) < UINT32_MAX; }

static wick_status encode_gather(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "gather",
        .parts = {wk_wgsl_strided, wk_wgsl_find_id, wk_wgsl_gather},
        .operands = {"y", "index", "x", "fault"},
        .constants = {"LANES", "THREADS", "WIDE", "WIDE_INDEX", "FAULT"}};
    const wk_view *const index = wk_src(op, 1), fault = fault_of(e);
    const wk_view y = wk_view_bits(wk_dst(op, 0));
    wk_view x = wk_view_bits(wk_src(op, 0));
    const int last = x.rank - 1;
    const uint32_t n = (uint32_t)x.extent[last], stride = last_stride(&x);
    x.stride[last] = 0; /* where a row begins */
    const wk_strided s = {
        .source = &source,
        .views = {&y, index, &x, &fault},
        .n = 4,
        .fault = 3,
        .constants = {wk_is_wide(y.dtype), wk_is_wide(index->dtype), WK_OP_GATHER + 1},
        .a = n,
        .own = {stride},
    };
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_gather = {
    .base.name = "gather_wgsl",
    .base.code = WK_OP_GATHER,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_gather,
    .encode = encode_gather,
};

/* --- Scatter: a thread has a row, or the sources of long rows are sorted by where they go --- */

enum {
    FEW_SOURCES = 128,   /* of a row that a thread does in its turn ... */
    MORE_SOURCES = 4096, /* ... or, where there are MANY_ROWS, of one of these */
    MANY_ROWS = 512,
    CHUNK = 64, /* pairs that a thread joins; see scatter_runs.wgsl */
};

static int64_t rows_of(const wk_view *src) {
    return wk_view_count(src) / (src->extent[src->rank - 1] > 0 ? src->extent[src->rank - 1] : 1);
}

static bool is_sorted_first(const wk_op *op) {
    const wk_view *const src = wk_src(op, 0);
    const int64_t most = rows_of(src) < MANY_ROWS ? FEW_SOURCES : MORE_SOURCES;
    return src->extent[src->rank - 1] > most;
}

static bool accepts_scatter(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const src = wk_src(op, 0);
    const wick_dtype dtype = y->dtype;
    const bool is_word = dtype == WICK_F32 || dtype == WICK_I32 || dtype == WICK_U32;
    return (op->p.scatter == WK_SCATTER_SET || is_word) && wk_view_count(y) < UINT32_MAX &&
           wk_view_count(src) <= UINT32_MAX / 4;
}

static uint64_t pairs_bytes(const wk_op *op) {
    return is_sorted_first(op) ? 8 * (uint64_t)wk_view_count(wk_src(op, 0)) : 0;
}

static wick_status scatter_rows(wk_encoder *e, const wk_op *op, wk_view y, wk_view src) {
    static const wk_source source = {
        .name = "scatter",
        .parts = {wk_wgsl_strided, wk_wgsl_find_id, wk_wgsl_meet, wk_wgsl_scatter},
        .operands = {"y", "src", "index", "fault"},
        .constants = {"LANES", "THREADS", "FN", "FLOATS", "WIDE", "WIDE_INDEX", "FAULT"}};
    const wk_view fault = fault_of(e);
    wk_view index = *wk_src(op, 1);
    const int last = y.rank - 1;
    const wk_strided s = {
        .source = &source,
        .views = {&y, &src, &index, &fault},
        .n = 4,
        .fault = 3,
        .constants = {(int32_t)op->p.scatter, y.dtype == WICK_F32, wk_is_wide(y.dtype),
                      wk_is_wide(index.dtype), WK_OP_SCATTER + 1},
        .a = (uint32_t)y.extent[last],
        .b = (uint32_t)src.extent[last],
        .own = {last_stride(&y), last_stride(&src), last_stride(&index)},
    };
    y.rank = src.rank = index.rank = last; /* a thread has a row */
    return wk_strided_run(e, &s);
}

/* ids [rows, m] u32, dense: of index [.., m], below n. */
static wick_status find_ids(wk_encoder *e, const wk_view *index, uint32_t n, wk_view *ids) {
    static const wk_source source = {
        .name = "scatter_ids",
        .parts = {wk_wgsl_strided, wk_wgsl_find_id, wk_wgsl_scatter_ids},
        .operands = {"y", "index", "fault"},
        .constants = {"LANES", "THREADS", "WIDE_INDEX", "FAULT"}};
    const wk_view fault = fault_of(e);
    WK_TRY(wk_encoder_temp(e, wk_view_count(index), ids));
    ids->dtype = WICK_U32;
    wk_view shaped = *ids; /* as index */
    shaped.rank = index->rank;
    int64_t stride = 1;
    for (int d = index->rank - 1; d >= 0; d--) {
        shaped.extent[d] = index->extent[d];
        shaped.stride[d] = stride;
        stride *= index->extent[d];
    }
    const wk_strided s = {
        .source = &source,
        .views = {&shaped, index, &fault},
        .n = 3,
        .fault = 2,
        .constants = {wk_is_wide(index->dtype), WK_OP_SCATTER + 1},
        .a = n,
    };
    ids->rank = 2;
    ids->extent[0] = rows_of(index);
    ids->stride[0] = ids->extent[1] = index->extent[index->rank - 1];
    ids->stride[1] = 1;
    return wk_strided_run(e, &s);
}

/* A dim of chunks after the dims of rows; words of each one's own in a dense temporary. */
static void add_chunks(wk_view *view, const wk_view *rows, int64_t n_chunks, int64_t words,
                       int64_t row_words) {
    const bool is_temp = words > 0;
    const int last = rows->rank - 1;
    int64_t stride = row_words;
    view->rank = rows->rank;
    for (int d = last - 1; d >= 0 && is_temp; d--) {
        view->extent[d] = rows->extent[d];
        view->stride[d] = stride;
        stride *= rows->extent[d];
    }
    view->extent[last] = n_chunks;
    view->stride[last] = words;
}

/* n pairs of each row become two for each chunk. */
static wick_status join_runs(wk_encoder *e, const wk_op *op, const wk_view *y, const wk_view *src,
                             const wk_view *pairs, const wk_view *next, int64_t n, int level) {
    static const wk_source source = {
        .name = "scatter_runs",
        .parts = {wk_wgsl_strided, wk_wgsl_meet, wk_wgsl_scatter_runs},
        .operands = {"y", "src", "pairs", "next"},
        .constants = {"LANES", "THREADS", "FN", "FLOATS", "WIDE", "LEVEL", "CHUNK"}};
    const int64_t n_chunks = (n + CHUNK - 1) / CHUNK;
    wk_view to = *y, from = *src, in = *pairs, out = *next;
    add_chunks(&to, src, n_chunks, 0, 0);
    add_chunks(&from, src, n_chunks, 0, 0);
    add_chunks(&in, src, n_chunks, 2 * CHUNK, 2 * n);
    add_chunks(&out, src, n_chunks, 4, 4 * n_chunks);
    const wk_strided s = {
        .source = &source,
        .views = {&to, &from, &in, &out},
        .n = 4,
        .fault = 3, /* it is written to, as a fault slot is */
        .constants = {(int32_t)op->p.scatter, y->dtype == WICK_F32, wk_is_wide(y->dtype), level > 0,
                      CHUNK},
        .a = (uint32_t)y->extent[y->rank - 1],
        .b = (uint32_t)n,
        .own = {(uint32_t)n_chunks, last_stride(y), last_stride(src)},
    };
    return wk_strided_run(e, &s);
}

static wick_status scatter_sorted(wk_encoder *e, const wk_op *op, wk_view y, wk_view src) {
    const wk_view *const index = wk_src(op, 1);
    wk_view ids, pairs[2];
    int at;
    WK_TRY(find_ids(e, index, (uint32_t)y.extent[y.rank - 1], &ids));
    for (int i = 0; i < 2; i++) {
        WK_TRY(wk_encoder_temp(e, 2 * wk_view_count(index), &pairs[i]));
        pairs[i].dtype = WICK_U32;
    }
    WK_TRY(wk_rows_sort(e, &ids, pairs, &at));
    int64_t n = ids.extent[1];
    for (int level = 0;; level++, at = !at) {
        WK_TRY(join_runs(e, op, &y, &src, &pairs[at], &pairs[!at], n, level));
        if (n <= CHUNK) return WICK_OK;
        n = 2 * ((n + CHUNK - 1) / CHUNK);
    }
}

static wick_status encode_scatter(wk_encoder *e, const wk_op *op) {
    const bool is_set = op->p.scatter == WK_SCATTER_SET;
    const wk_view y = is_set ? wk_view_bits(wk_dst(op, 0)) : *wk_dst(op, 0);
    const wk_view src = is_set ? wk_view_bits(wk_src(op, 0)) : *wk_src(op, 0);
    if (wk_view_count(&src) == 0) return WICK_OK;
    return is_sorted_first(op) ? scatter_sorted(e, op, y, src) : scatter_rows(e, op, y, src);
}

const wk_webgpu_kernel wk_webgpu_scatter = {
    .base.name = "scatter_wgsl",
    .base.code = WK_OP_SCATTER,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_scatter,
    .temp_bytes = pairs_bytes,
    .encode = encode_scatter,
};
