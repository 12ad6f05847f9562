/* simd/vector_kernels.h: the list of the vector kernels, from which each instruction set makes its
 * own. */
#ifndef WK_SIMD_VECTOR_KERNELS_H
#define WK_SIMD_VECTOR_KERNELS_H

#include "backend/cpu/simd/recurrent.h"
#include "backend/cpu/simd/vector_choose.h"
#include "backend/cpu/simd/vector_copy.h"
#include "backend/cpu/simd/vector_depthwise.h"
#include "backend/cpu/simd/vector_elementwise.h"
#include "backend/cpu/simd/vector_index.h"
#include "backend/cpu/simd/vector_pool.h"
#include "backend/cpu/simd/vector_reduce_long.h"
#include "backend/cpu/simd/vector_rope.h"
#include "backend/cpu/simd/vector_rows.h"
#include "backend/cpu/simd/vector_sort.h"

/* X(name, CODE, accepts); run is run_NAME, row NAME_row. */
#define ELEMENT_KERNELS(X)                                                                         \
    X(unary, UNARY, accepts_unary)                                                                 \
    X(binary, BINARY, accepts_binary)                                                              \
    X(gated, GATED, accepts_gated)

/* X(name, CODE, accepts, items, grain, worker_bytes); run is run_NAME. */
#define VECTOR_KERNELS(X)                                                                          \
    X(copy, COPY, accepts_copy, element_items, element_grain, NULL)                                \
    X(reduce, REDUCE, accepts_reduce, element_items, reduce_grain, NULL)                           \
    X(softmax, SOFTMAX, accepts_rows, row_items, row_grain, row_bytes)                             \
    X(rms_norm, RMS_NORM, accepts_rows, row_items, row_grain, row_bytes)                           \
    X(layer_norm, LAYER_NORM, accepts_rows, row_items, row_grain, row_bytes)                       \
    X(rope_table, ROPE_TABLE, accepts_rope_table, row_items, row_grain, NULL)                      \
    X(causal_conv, CAUSAL_CONV, accepts_causal_conv, causal_conv_items, NULL, causal_conv_bytes)   \
    X(scan, SCAN, accepts_scan, scan_items, NULL, scan_bytes)

/* The same of ops that no model has, or spends time in. */
#define VECTOR_KERNELS_OF_TENSORS(X)                                                               \
    X(compare, COMPARE, accepts_compare, element_items, element_grain, NULL)                       \
    X(where, WHERE, accepts_where, element_items, element_grain, NULL)                             \
    X(fill, FILL, accepts_fill, element_items, element_grain, NULL)                                \
    X(transpose, COPY, accepts_transpose, transpose_items, transpose_grain, NULL)                  \
    X(gather, GATHER, accepts_gather, gather_items, gather_grain, NULL)                            \
    X(scatter, SCATTER, accepts_scatter, scatter_items, NULL, NULL)                                \
    X(cumulate, CUMULATE, accepts_cumulate, cumulate_items, NULL, NULL)                            \
    X(argsort, ARGSORT, accepts_argsort, row_items, row_grain, argsort_bytes)                      \
    X(pool, POOL, accepts_floats, row_items, pool_grain, pool_bytes)                               \
    X(convolution_depthwise, CONVOLUTION, accepts_depthwise, depthwise_items, NULL, depthwise_bytes)

/* One of the lists; isa: the suffix of its name. */
#define ELEMENT_KERNEL(isa, op_name, op_code, op_accepts)                                          \
    const wk_cpu_kernel wk_##op_name##_##isa = {                                                   \
        .base.name = #op_name "_" #isa,                                                            \
        .base.code = WK_OP_##op_code,                                                              \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = op_accepts,                                                                \
        .n_phases = 1,                                                                             \
        .items = element_items,                                                                    \
        .grain = element_grain,                                                                    \
        .run = run_##op_name,                                                                      \
        .row = op_name##_row,                                                                      \
    };

#define VECTOR_KERNEL(isa, op_name, op_code, op_accepts, op_items, op_grain, op_bytes)             \
    const wk_cpu_kernel wk_##op_name##_##isa = {                                                   \
        .base.name = #op_name "_" #isa,                                                            \
        .base.code = WK_OP_##op_code,                                                              \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = op_accepts,                                                                \
        .n_phases = 1,                                                                             \
        .items = op_items,                                                                         \
        .grain = op_grain,                                                                         \
        .worker_bytes = op_bytes,                                                                  \
        .run = run_##op_name,                                                                      \
    };

#endif
