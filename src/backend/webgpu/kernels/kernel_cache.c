/* backend/webgpu/kernels/kernel_cache.c: writing to the paged cache. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

enum { BATCH = 2, THREADS = 64 };

/* Of elements, of blocks. */
#define SOURCE(items, ...)                                                                         \
    {                                                                                              \
        .name = "kv_append",                                                                       \
        .parts = {wk_wgsl_kv_append, wk_wgsl_kv_append_##items},                                   \
        .operands = {"cache", "fresh", "batch", "fault"},                                          \
        .constants = {__VA_ARGS__},                                                                \
    }
static const wk_source sources[2] = {SOURCE(elements, NULL), SOURCE(blocks, "UNITS")};
#undef SOURCE

/* Rows of keys (i = 0) or of values (1). */
static wick_status append(wk_encoder *e, const wk_op *op, int i) {
    const wk_view cache = wk_webgpu_units(wk_dst(op, i)), *const fresh = wk_src(op, i);
    const wk_batch_layout *const batch = &op->p.cached.batch;
    const int64_t units = wk_webgpu_block_units(wk_dst(op, i)->dtype);
    const int64_t item = units > 0 ? WK_QK_SMALL : 1; /* elements */
    const int64_t count = wk_view_count(fresh) / item;
    if (count == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[units > 0], 0);
    if (units > 0) d.program.constants[0] = (int32_t)units;
    wk_dispatch_bind(&d, 0, &cache, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, fresh, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, 2, wk_src(op, BATCH), WK_FORM_WORDS, false);
    wk_dispatch_bind(&d, 3, wk_encoder_fault(e), WK_FORM_WORDS, true);
    WK_TRY(wk_dispatch_place(e, &d));
    for (int k = 0; k < 3; k++) wk_dispatch_u32(&d, (uint32_t)cache.stride[k]);
    wk_dispatch_u32(&d, (uint32_t)(units > 0 ? units : cache.stride[3]));
    for (int k = 0; k < 2; k++) wk_dispatch_u32(&d, (uint32_t)fresh->stride[k]);
    wk_dispatch_u32(&d, (uint32_t)(fresh->stride[2] * item));
    wk_dispatch_u32(&d, 0);
    for (int k = 0; k < 4; k++) wk_dispatch_u32(&d, d.first[k]);
    wk_dispatch_u32(&d, (uint32_t)count);
    wk_dispatch_u32(&d, (uint32_t)fresh->extent[1]);
    wk_dispatch_u32(&d, (uint32_t)(fresh->extent[2] / item));
    wk_dispatch_u32(&d, batch->block_size);
    wk_dispatch_u32(&d, (uint32_t)cache.extent[0]);
    wk_dispatch_u32(&d, batch->n_sequences);
    wk_dispatch_u32(&d, batch->sequences);
    wk_dispatch_u32(&d, batch->slots);
    wk_dispatch_u32(&d, (uint32_t)op->code + 1);
    return wk_dispatch_run_n(e, &d, ((uint64_t)count + THREADS - 1) / THREADS);
}

static wick_status encode_append(wk_encoder *e, const wk_op *op) {
    WK_TRY(append(e, op, 0));
    return append(e, op, 1);
}

const wk_webgpu_kernel wk_webgpu_kv_append = {
    .base.name = "kv_append_wgsl",
    .base.code = WK_OP_KV_APPEND,
    .encode = encode_append,
};
