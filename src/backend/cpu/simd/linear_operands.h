/* simd/linear_operands.h: the operands of linear and linear_experts as the kernels of this folder
 * want them: a product with one weight, of rows of x and y that need not follow each other. */
#ifndef WK_SIMD_LINEAR_OPERANDS_H
#define WK_SIMD_LINEAR_OPERANDS_H

#include "backend/cpu/cpu_kernel.h"

#include <assert.h>

/* Rows of floats; those of u follow each other at step, the next u at stride. */
typedef struct linear_rows {
    float *first;
    int64_t stride, step;
} linear_rows;

typedef struct linear_operands {
    int64_t m, n, k; /* y [m, n] = x [m, k] weight [n, k]^T + bias [n] */
    linear_rows x, y;
    int64_t u;
    const uint32_t *order; /* of the m rows, their numbers; NULL: they are 0 ... m - 1 */
    const uint8_t *weight;
    int64_t panel_bytes;
    const float *bias; /* NULL: none */
} linear_operands;

static inline int64_t linear_row(const linear_operands *a, int64_t i) {
    return a->order != NULL ? (int64_t)a->order[i] : i;
}

static inline float *linear_at(const linear_operands *a, const linear_rows *rows, int64_t i) {
    assert(i >= 0 && i < a->m && a->u > 0);
    const int64_t row = linear_row(a, i);
    return rows->first + row / a->u * rows->stride + row % a->u * rows->step;
}

static inline bool linear_is_f32_rows(const wk_view *view) {
    const int last = view->rank - 1;
    return view->dtype == WICK_F32 && (view->stride[last] == 1 || view->extent[last] <= 1);
}

/* Whether the weight lies in layout and the others are float rows. */
static inline bool linear_accepts(const wk_op *op, wk_layout layout) {
    const wk_view *const bias = wk_src(op, 2);
    return wk_src(op, 1)->layout == layout && linear_is_f32_rows(wk_src(op, 0)) &&
           linear_is_f32_rows(wk_dst(op, 0)) &&
           (bias->rank == 0 || (bias->dtype == WICK_F32 && wk_view_is_dense(bias)));
}

/* Of one weight. */
static inline int64_t linear_panels(const wk_op *op) {
    const wk_view *const w = wk_src(op, 1);
    return (w->extent[w->rank - 2] + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS;
}

static inline int64_t linear_k(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return x->extent[x->rank - 1];
}

static inline linear_rows linear_rows_of(const wk_view *view) {
    return (linear_rows){wk_view_data(view), view->stride[0], view->rank > 2 ? view->stride[1] : 0};
}

/* All rows, by the first weight. */
static inline linear_operands linear_get(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const w = wk_src(op, 1), *const bias = wk_src(op, 2);
    return (linear_operands){
        .m = wk_view_rows(y),
        .n = w->extent[w->rank - 2],
        .k = linear_k(op),
        .x = linear_rows_of(wk_src(op, 0)),
        .y = linear_rows_of(y),
        .u = y->rank > 2 ? y->extent[1] : 1,
        .weight = wk_view_data(w),
        .panel_bytes = wk_panel_bytes((wk_layout)w->layout, linear_k(op)),
        .bias = bias->buf != NULL ? wk_view_data(bias) : NULL,
    };
}

#endif
