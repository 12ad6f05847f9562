/* simd/attention_kernels.h: the kernels of attention, for each instruction set. */
#ifndef WK_SIMD_ATTENTION_KERNELS_H
#define WK_SIMD_ATTENTION_KERNELS_H

#include "backend/cpu/simd/attention_cached.h"
#include "backend/cpu/simd/attention_dense.h"
#include "backend/cpu/simd/kv_append.h"

/* isa: the suffix of their names. */
#define ATTENTION_KERNELS(isa)                                                                     \
    const wk_cpu_kernel wk_attention_##isa = {                                                     \
        .base.name = "attention_" #isa,                                                            \
        .base.code = WK_OP_ATTENTION,                                                              \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_attention_dense,                                                   \
        .n_phases = 1,                                                                             \
        .items = dense_items,                                                                      \
        .worker_bytes = dense_worker_bytes,                                                        \
        .run = run_attention_dense,                                                                \
    };                                                                                             \
    const wk_cpu_kernel wk_attention_cached_##isa = {                                              \
        .base.name = "attention_cached_" #isa,                                                     \
        .base.code = WK_OP_ATTENTION_CACHED,                                                       \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_attention_cached,                                                  \
        .n_phases = 2,                                                                             \
        .items = cached_items,                                                                     \
        .scratch_bytes = cached_scratch_bytes,                                                     \
        .worker_bytes = cached_worker_bytes,                                                       \
        .run = run_attention_cached,                                                               \
    };                                                                                             \
    const wk_cpu_kernel wk_kv_append_##isa = {                                                     \
        .base.name = "kv_append_" #isa,                                                            \
        .base.code = WK_OP_KV_APPEND,                                                              \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_append,                                                            \
        .n_phases = 1,                                                                             \
        .items = append_items,                                                                     \
        .run = run_append,                                                                         \
    };

#endif
