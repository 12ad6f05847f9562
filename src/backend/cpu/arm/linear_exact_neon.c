/* arm/linear_exact_neon.c: linear in float32 for NEON. */
#include "backend/cpu/arm/linear_simd_neon.h"

#include "backend/cpu/simd/linear_exact.h"

#define EXACT_KERNEL(layout, type)                                                                 \
    const wk_cpu_kernel wk_linear_##type##_neon = {                                                \
        .base = {.name = "linear_" #type "_neon"},                                                 \
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
