/* x86/linear_exact_avx512.c: linear in float32 for AVX-512. */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/x86/linear_exact.h"

const wk_cpu_kernel wk_linear_f32_avx512 = {
    .base = {.name = "linear_f32_avx512"},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_f32,
    .n_phases = 2,
    .items = exact_items,
    .grain = exact_grain,
    .scratch_bytes = exact_scratch_bytes,
    .run = run_f32,
};

const wk_cpu_kernel wk_linear_q8_avx512 = {
    .base = {.name = "linear_q8_avx512"},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q8,
    .n_phases = 2,
    .items = exact_items,
    .grain = exact_grain,
    .scratch_bytes = exact_scratch_bytes,
    .run = run_q8,
};

const wk_cpu_kernel wk_linear_q4_avx512 = {
    .base = {.name = "linear_q4_avx512"},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q4,
    .n_phases = 2,
    .items = exact_items,
    .grain = exact_grain,
    .scratch_bytes = exact_scratch_bytes,
    .run = run_q4,
};
