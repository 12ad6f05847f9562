/* backend/webgpu/kernels/kernel_gather.c: elements of rows by index: fetched, or met by others. */
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

/* --- Scatter --- */

/* What one thread does in its turn; more would be slower than the CPU. */
enum { MOST_SOURCES = 1 << 16 };

static bool accepts_scatter(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const src = wk_src(op, 0);
    const wick_dtype dtype = y->dtype;
    const bool is_word = dtype == WICK_F32 || dtype == WICK_I32 || dtype == WICK_U32;
    return (op->p.scatter == WK_SCATTER_SET || is_word) && wk_view_count(y) < UINT32_MAX &&
           src->extent[src->rank - 1] <= MOST_SOURCES;
}

static wick_status encode_scatter(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "scatter",
        .parts = {wk_wgsl_strided, wk_wgsl_find_id, wk_wgsl_scatter},
        .operands = {"y", "src", "index", "fault"},
        .constants = {"LANES", "THREADS", "FN", "FLOATS", "WIDE", "WIDE_INDEX", "FAULT"}};
    const bool is_set = op->p.scatter == WK_SCATTER_SET;
    const wk_view fault = fault_of(e);
    wk_view y = is_set ? wk_view_bits(wk_dst(op, 0)) : *wk_dst(op, 0);
    wk_view src = is_set ? wk_view_bits(wk_src(op, 0)) : *wk_src(op, 0);
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
    if (wk_view_count(&src) == 0) return WICK_OK;
    y.rank = src.rank = index.rank = last; /* a thread has a row */
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_scatter = {
    .base.name = "scatter_wgsl",
    .base.code = WK_OP_SCATTER,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_scatter,
    .encode = encode_scatter,
};
