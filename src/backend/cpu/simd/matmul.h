/* simd/matmul.h: products of float matrices, written once over simd_*.h.
 *
 * A register tile holds TILE_COLUMNS rows of c by TILE_PANELS x 16 columns; every element is one
 * sum in the order of k, in chunks of 64 as in linear, so that its error does not grow with k. An
 * item is a strip of columns of one matrix, whose part of b is packed first. */
#ifndef WK_SIMD_MATMUL_H
#define WK_SIMD_MATMUL_H

#include "backend/cpu/cpu_kernel.h"

enum { STRIP = TILE_PANELS * 16, TILE_ROWS = TILE_COLUMNS, SUM_CHUNK = 64 };

/* The last two dimensions of an operand at one index of the others. */
typedef struct matrix {
    float *data;
    int64_t rows, columns, row_stride, column_stride;
} matrix;

static matrix matrix_at(const wk_view *view, int64_t index) {
    const int r = view->rank;
    int64_t offset = 0;
    for (int d = r - 3; d >= 0; d--) {
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    return (matrix){(float *)wk_view_data(view) + offset, view->extent[r - 2], view->extent[r - 1],
                    view->stride[r - 2], view->stride[r - 1]};
}

static bool accepts_matmul(const wk_op *op) {
    const wk_view *const c = wk_dst(op, 0);
    for (int i = 0; i < 3; i++)
        if (op->view[i].dtype != WICK_F32) return false;
    return c->stride[c->rank - 1] == 1 || c->extent[c->rank - 1] <= 1;
}

static int64_t strips(const wk_op *op) {
    const wk_view *const c = wk_dst(op, 0);
    return (c->extent[c->rank - 1] + STRIP - 1) / STRIP;
}

static int64_t matmul_items(const wk_op *op, int phase) {
    (void)phase;
    const wk_view *const c = wk_dst(op, 0);
    int64_t items = strips(op);
    for (int d = 0; d < c->rank - 2; d++) items *= c->extent[d];
    return items;
}

static size_t matmul_worker_bytes(const wk_op *op) {
    const wk_view *const a = wk_src(op, 0);
    return (size_t)a->extent[a->rank - 1] * STRIP * sizeof(float);
}

/* Columns from on of b as [k][STRIP]; those past its end are zeros. */
static void pack_strip(const matrix *b, int64_t from, float *packed) {
    const int64_t left = b->columns - from;
    for (int64_t i = 0; i < b->rows; i++, packed += STRIP) {
        const float *const row = b->data + i * b->row_stride + from * b->column_stride;
        for (int64_t j = 0; j < STRIP; j += 16) {
            if (b->column_stride == 1) {
                v16_store(packed + j, v16_load_rows(row + j, left - j));
                continue;
            }
            for (int64_t l = j; l < j + 16; l++)
                packed[l] = l < left ? row[l * b->column_stride] : 0;
        }
    }
}

/* Rows [row, row + n) of the strip of c that begins at column from. */
WK_INLINE void matmul_tile(const matrix *a, const float *packed, const matrix *c, int64_t row,
                           const int n, int64_t from) {
    const float *const rows = a->data + row * a->row_stride;
    for (int64_t first = 0; first < a->columns || first == 0; first += SUM_CHUNK) {
        const int64_t end = first + SUM_CHUNK < a->columns ? first + SUM_CHUNK : a->columns;
        v16 sum[TILE_ROWS][TILE_PANELS];
        for (int i = 0; i < n; i++)
            for (int p = 0; p < TILE_PANELS; p++) sum[i][p] = v16_zero();
        for (int64_t l = first; l < end; l++, packed += STRIP) {
            v16 b[TILE_PANELS];
            for (int p = 0; p < TILE_PANELS; p++) b[p] = v16_load(packed + 16 * p);
            for (int i = 0; i < n; i++) {
                const v16 element = v16_set(rows[i * a->row_stride + l * a->column_stride]);
                for (int p = 0; p < TILE_PANELS; p++) sum[i][p] = v16_fma(b[p], element, sum[i][p]);
            }
        }
        for (int i = 0; i < n; i++) {
            for (int p = 0; p < TILE_PANELS; p++) {
                const int64_t left = c->columns - from - 16 * p;
                float *const y = c->data + (row + i) * c->row_stride + from + 16 * p;
                if (first > 0) sum[i][p] = v16_add(v16_load_rows(y, left), sum[i][p]);
                v16_store_rows(y, sum[i][p], left);
            }
        }
    }
}

static void run_matmul(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const int64_t n_strips = strips(op);
    float *const packed = run->worker_scratch;
    for (int64_t item = begin; item < end; item++) {
        const int64_t index = item / n_strips, from = item % n_strips * STRIP;
        const matrix a = matrix_at(wk_src(op, 0), index), b = matrix_at(wk_src(op, 1), index);
        const matrix c = matrix_at(wk_dst(op, 0), index);
        pack_strip(&b, from, packed);
        int64_t row = 0;
        for (; row + TILE_ROWS <= c.rows; row += TILE_ROWS)
            matmul_tile(&a, packed, &c, row, TILE_ROWS, from);
        for (; row < c.rows; row++) matmul_tile(&a, packed, &c, row, 1, from);
    }
}

#endif
