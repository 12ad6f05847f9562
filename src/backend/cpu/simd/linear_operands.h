/* simd/linear_operands.h: the operands of linear as the kernels of this folder want them. */
#ifndef WK_SIMD_LINEAR_OPERANDS_H
#define WK_SIMD_LINEAR_OPERANDS_H

#include "backend/cpu/cpu_kernel.h"

typedef struct linear_operands {
    int64_t m, n, k; /* y [m, n] = x [m, k] weight [n, k]^T + bias [n] */
    const float *x;
    float *y;
    int64_t x_stride, y_stride;
    const uint8_t *weight;
    int64_t panel_bytes;
    const float *bias; /* NULL: none */
} linear_operands;

static inline bool linear_is_f32_rows(const wk_view *view) {
    return view->dtype == WICK_F32 && view->rank == 2 &&
           (view->stride[1] == 1 || view->extent[1] <= 1);
}

/* Whether the weight lies in layout and the others are float rows. */
static inline bool linear_accepts(const wk_op *op, wk_layout layout) {
    const wk_view *const bias = wk_src(op, 2);
    return wk_src(op, 1)->layout == layout && linear_is_f32_rows(wk_src(op, 0)) &&
           linear_is_f32_rows(wk_dst(op, 0)) &&
           (bias->rank == 0 || (bias->dtype == WICK_F32 && wk_view_is_dense(bias)));
}

static inline int64_t linear_panels(const wk_op *op) {
    return (wk_src(op, 1)->extent[0] + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS;
}

static inline linear_operands linear_get(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const w = wk_src(op, 1);
    const wk_view *const bias = wk_src(op, 2);
    return (linear_operands){
        .m = x->extent[0],
        .n = w->extent[0],
        .k = w->extent[1],
        .x = wk_cpu_data(x),
        .y = wk_cpu_data(y),
        .x_stride = x->stride[0],
        .y_stride = y->stride[0],
        .weight = wk_cpu_data(w),
        .panel_bytes = wk_panel_bytes((wk_layout)w->layout, w->extent[1]),
        .bias = bias->buf != NULL ? wk_cpu_data(bias) : NULL,
    };
}

#endif
