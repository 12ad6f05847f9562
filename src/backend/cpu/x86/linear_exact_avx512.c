/* x86/linear_exact_avx512.c: linear in float32 for AVX-512. */
#include "backend/cpu/x86/linear_simd_avx512.h"

#include "backend/cpu/simd/linear_exact.h"

#define EXACT_KERNEL(layout, type)                                                                 \
    const wk_cpu_kernel wk_linear_##type##_avx512 = {                                              \
        .base = {.name = "linear_" #type "_avx512"},                                               \
        .code = WK_OP_LINEAR,                                                                      \
        .needs = SIMD_NEEDS,                                                                       \
        .accepts = accepts_##type,                                                                 \
        .n_phases = 2,                                                                             \
        .items = exact_items,                                                                      \
        .grain = exact_grain,                                                                      \
        .scratch_bytes = exact_scratch_bytes,                                                      \
        .worker_bytes = exact_worker_bytes,                                                        \
        .run = run_##type,                                                                         \
    };
EXACT_KERNEL(F32, f32)
EXACT_KERNEL(F16, f16)
EXACT_KERNEL(BF16, bf16)
WK_PANEL_FORMATS(EXACT_KERNEL)
#undef EXACT_KERNEL
