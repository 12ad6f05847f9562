/* wasm/matmul_wasm.c: products of float matrices for WebAssembly's SIMD. */
#include "backend/cpu/wasm/simd_wasm.h"

#include "backend/cpu/simd/matmul.h"

const wk_cpu_kernel wk_matmul_wasm = {
    .base.name = "matmul_wasm",
    .base.code = WK_OP_MATMUL,
    .base.needs = SIMD_NEEDS,
    .base.accepts = accepts_matmul,
    .n_phases = 1,
    .items = matmul_items,
    .worker_bytes = matmul_worker_bytes,
    .run = run_matmul,
};
