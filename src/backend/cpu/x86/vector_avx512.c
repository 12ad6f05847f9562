/* x86/vector_avx512.c: ops over float rows for AVX-512. */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/simd/vector_rows.h"

const wk_cpu_kernel wk_unary_avx512 = {
    .base = {.name = "unary_avx512"},
    .code = WK_OP_UNARY,
    .needs = SIMD_NEEDS,
    .accepts = accepts_unary,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_unary,
};

const wk_cpu_kernel wk_binary_avx512 = {
    .base = {.name = "binary_avx512"},
    .code = WK_OP_BINARY,
    .needs = SIMD_NEEDS,
    .accepts = accepts_binary,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_binary,
};

const wk_cpu_kernel wk_gated_avx512 = {
    .base = {.name = "gated_avx512"},
    .code = WK_OP_GATED,
    .needs = SIMD_NEEDS,
    .accepts = accepts_gated,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_gated,
};

const wk_cpu_kernel wk_softmax_avx512 = {
    .base = {.name = "softmax_avx512"},
    .code = WK_OP_SOFTMAX,
    .needs = SIMD_NEEDS,
    .accepts = accepts_rows,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_softmax,
};

const wk_cpu_kernel wk_rms_norm_avx512 = {
    .base = {.name = "rms_norm_avx512"},
    .code = WK_OP_RMS_NORM,
    .needs = SIMD_NEEDS,
    .accepts = accepts_rows,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_rms_norm,
};

const wk_cpu_kernel wk_rope_table_avx512 = {
    .base = {.name = "rope_table_avx512"},
    .code = WK_OP_ROPE_TABLE,
    .needs = SIMD_NEEDS,
    .accepts = accepts_rows,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_rope_table,
};

const wk_cpu_kernel wk_copy_avx512 = {
    .base = {.name = "copy_avx512"},
    .code = WK_OP_COPY,
    .needs = SIMD_NEEDS,
    .accepts = accepts_rows,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_copy,
};

const wk_cpu_kernel wk_layer_norm_avx512 = {
    .base = {.name = "layer_norm_avx512"},
    .code = WK_OP_LAYER_NORM,
    .needs = SIMD_NEEDS,
    .accepts = accepts_rows,
    .n_phases = 1,
    .items = row_items,
    .grain = row_grain,
    .run = run_layer_norm,
};

const wk_cpu_kernel wk_reduce_avx512 = {
    .base = {.name = "reduce_avx512"},
    .code = WK_OP_REDUCE,
    .needs = SIMD_NEEDS,
    .accepts = accepts_reduce,
    .n_phases = 1,
    .items = reduce_items,
    .grain = reduce_grain,
    .run = run_reduce,
};
