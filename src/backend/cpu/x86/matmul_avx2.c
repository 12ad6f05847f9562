/* x86/matmul_avx2.c: products of float matrices for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/simd_avx2.h"

#include "backend/cpu/simd/matmul.h"

const wk_cpu_kernel wk_matmul_avx2 = {
    .base.name = "matmul_avx2",
    .base.code = WK_OP_MATMUL,
    .base.needs = SIMD_NEEDS,
    .base.accepts = accepts_matmul,
    .n_phases = 1,
    .items = matmul_items,
    .worker_bytes = matmul_worker_bytes,
    .run = run_matmul,
};
