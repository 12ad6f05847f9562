/* arm/matmul_neon.c: products of float matrices for NEON. */
#include "backend/cpu/arm/simd_neon.h"

#include "backend/cpu/simd/matmul.h"

const wk_cpu_kernel wk_matmul_neon = {
    .base.name = "matmul_neon",
    .base.code = WK_OP_MATMUL,
    .base.needs = SIMD_NEEDS,
    .base.accepts = accepts_matmul,
    .n_phases = 1,
    .items = matmul_items,
    .worker_bytes = matmul_worker_bytes,
    .run = run_matmul,
};
