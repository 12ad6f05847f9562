/* x86/matmul_avx512.c: products of float matrices for AVX-512. */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/simd/matmul.h"

const wk_cpu_kernel wk_matmul_avx512 = {
    .base.name = "matmul_avx512",
    .base.code = WK_OP_MATMUL,
    .base.needs = SIMD_NEEDS,
    .base.accepts = accepts_matmul,
    .n_phases = 1,
    .items = matmul_items,
    .worker_bytes = matmul_worker_bytes,
    .run = run_matmul,
};
