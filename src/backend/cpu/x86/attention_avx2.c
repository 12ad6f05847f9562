/* x86/attention_avx2.c: attention, dense and over the paged cache, for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/simd_avx2.h"

#include "backend/cpu/simd/attention_cached.h"
#include "backend/cpu/simd/attention_dense.h"
#include "backend/cpu/simd/kv_append.h"

const wk_cpu_kernel wk_attention_avx2 = {
    .base = {.name = "attention_avx2"},
    .code = WK_OP_ATTENTION,
    .needs = SIMD_NEEDS,
    .accepts = accepts_attention_dense,
    .n_phases = 1,
    .items = dense_items,
    .worker_bytes = dense_worker_bytes,
    .run = run_attention_dense,
};

const wk_cpu_kernel wk_attention_cached_avx2 = {
    .base = {.name = "attention_cached_avx2"},
    .code = WK_OP_ATTENTION_CACHED,
    .needs = SIMD_NEEDS,
    .accepts = accepts_attention_cached,
    .n_phases = 2,
    .items = cached_items,
    .scratch_bytes = cached_scratch_bytes,
    .worker_bytes = cached_worker_bytes,
    .run = run_attention_cached,
};

const wk_cpu_kernel wk_kv_append_avx2 = {
    .base = {.name = "kv_append_avx2"},
    .code = WK_OP_KV_APPEND,
    .needs = SIMD_NEEDS,
    .accepts = accepts_append,
    .n_phases = 1,
    .items = append_items,
    .run = run_append,
};
