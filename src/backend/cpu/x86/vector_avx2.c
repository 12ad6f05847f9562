/* x86/vector_avx2.c: elementwise ops, reductions, norms and copies for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/vector_simd_avx2.h"

#include "backend/cpu/simd/vector_kernels.h"

#define VECTOR_KERNEL(op_name, op_code, op_accepts, op_items, op_grain, op_bytes)                  \
    const wk_cpu_kernel wk_##op_name##_avx2 = {                                                    \
        .base = {.name = #op_name "_avx2"},                                                        \
        .code = WK_OP_##op_code,                                                                   \
        .needs = SIMD_NEEDS,                                                                       \
        .accepts = op_accepts,                                                                     \
        .n_phases = 1,                                                                             \
        .items = op_items,                                                                         \
        .grain = op_grain,                                                                         \
        .worker_bytes = op_bytes,                                                                  \
        .run = run_##op_name,                                                                      \
    };
VECTOR_KERNELS(VECTOR_KERNEL)
#undef VECTOR_KERNEL
