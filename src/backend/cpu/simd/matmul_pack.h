/* simd/matmul_pack.h: the operands of float products, packed in the order in which matmul.h reads
 * them: tiles of a [k][rows] and strips of b [k][STRIP]. */
#ifndef WK_SIMD_MATMUL_PACK_H
#define WK_SIMD_MATMUL_PACK_H

#include "backend/cpu/simd/linear_operands.h"
#include "backend/cpu/simd/vector_convert.h"

#include <stdalign.h>

enum {
    STRIP = TILE_PANELS * 16,
    TILE_ROWS = TILE_COLUMNS,
    TILE_ROWS_SMALL = TILE_COLUMNS_SMALL,
    SIDE_TILES = 4,
};

/* --- Operands --- */

/* The last two dimensions of an operand at one index of the others. Strides in elements. */
typedef struct matrix {
    unsigned char *data;
    wick_dtype dtype;
    int64_t size; /* of an element */
    int64_t rows, columns, row_stride, column_stride;
} matrix;

static matrix matrix_at(const wk_view *view, int64_t index) {
    const int r = view->rank;
    int64_t offset = 0;
    for (int d = r - 3; d >= 0; d--) {
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    const int64_t size = wk_dtype_get(view->dtype)->block_bytes;
    return (matrix){(unsigned char *)wk_view_data(view) + offset * size,
                    view->dtype,
                    size,
                    view->extent[r - 2],
                    view->extent[r - 1],
                    view->stride[r - 2],
                    view->stride[r - 1]};
}

static matrix transposed(const matrix *x) {
    return (matrix){x->data, x->dtype,         x->size,      x->columns,
                    x->rows, x->column_stride, x->row_stride};
}

static void *element_at(const matrix *x, int64_t row, int64_t column) {
    return x->data + (row * x->row_stride + column * x->column_stride) * x->size;
}

/* c = a b, with a bias [columns] or NULL. */
typedef struct product {
    matrix a, b, c;
    const float *bias;
} product;

/* --- Packing --- */

/* n elements, a stride apart; from 16 on 16, the others are zeros. */
WK_INLINE_FOR_TENSORS v16 load_line(const matrix *x, const void *from, int64_t stride, int64_t n) {
    if (stride == 1 && x->dtype == WICK_F32) return v16_load_rows(from, n);
    alignas(64) float line[16] = {0};
    if (n > 0) load_run(line, from, stride, x->dtype, n < 16 ? n : 16);
    return v16_load(line);
}

/* Of dense floats, which is the case that counts; how many elements of k: 16 at a time. */
WK_INLINE_FOR_TENSORS int64_t pack_dense_rows(const float *from, int64_t stride, const int n,
                                              int64_t depth, float *to) {
    int64_t l = 0;
    for (; depth - l >= 16; l += 16) {
        v16 lines[16];
        for (int i = 0; i < 16; i++)
            lines[i] = i < n ? v16_load(from + i * stride + l) : v16_zero();
        for (int i = 0; i < n; i++) wk_prefetch(from + i * stride + l + 64);
        v16_transpose(lines);
        if (depth - l < 32) { /* what comes after may be another thread's */
            for (int i = 0; i < 16; i++, to += n) v16_store_rows(to, lines[i], n);
        } else {
            for (int i = 0; i < 16; i++, to += n) v16_store(to, lines[i]);
        }
    }
    return l;
}

/* Of dense columns of floats, SIDE_TILES tiles side by side: lines of memory are read whole. */
static void pack_dense_columns(const float *from, int64_t stride, int64_t depth, float *to) {
    enum { AHEAD = 8 };
    for (int64_t l = 0; l < depth; l++, from += stride, to += TILE_ROWS) {
        for (int i = 0; i < SIDE_TILES * TILE_ROWS; i += 16) wk_prefetch(from + AHEAD * stride + i);
        for (int t = 0; t < SIDE_TILES; t++)
            v16_store_n(to + t * TILE_ROWS * depth, v16_load_n(from + t * TILE_ROWS, TILE_ROWS),
                        TILE_ROWS);
    }
}

/* Rows [row, row + n) of a at columns [first, end) to [end - first][n]. */
static void pack_rows(const matrix *a, int64_t row, int n, int64_t first, int64_t end, float *to) {
    const float *const from = element_at(a, row, first);
    const bool is_dense = a->column_stride == 1 && a->dtype == WICK_F32;
    int64_t done = 0;
    if (is_dense && n == TILE_ROWS) {
        done = pack_dense_rows(from, a->row_stride, TILE_ROWS, end - first, to);
    } else if (is_dense && n == TILE_ROWS_SMALL) {
        done = pack_dense_rows(from, a->row_stride, TILE_ROWS_SMALL, end - first, to);
    }
    for (int64_t l = first + done, i; l < end && a->column_stride == 1; l += 16) {
        v16 lines[16];
        for (i = 0; i < 16; i++)
            lines[i] = i < n ? load_line(a, element_at(a, row + i, l), 1, end - l) : v16_zero();
        v16_transpose(lines);
        for (i = 0; i < 16 && l + i < end; i++)
            v16_store_rows(to + (l + i - first) * n, lines[i], n);
    }
    for (int64_t l = first; l < end && a->column_stride != 1; l++, to += n)
        v16_store_rows(to, load_line(a, element_at(a, row, l), a->row_stride, n), n);
}

/* Dense rows of n floats, of which a strip takes the first, to that strip. The processor does not
 * see by itself that the next rows will be read, nor soon enough that the strip is written. */
static void pack_dense_strip(const float *from, int64_t stride, int64_t n, int64_t depth,
                             float *to) {
    enum { AHEAD = 8 };
    for (int64_t l = 0; l < depth; l++, from += stride, to += STRIP) {
        for (int p = 0; p < TILE_PANELS; p++) {
            wk_prefetch(from + AHEAD * stride + 16 * p);
            wk_prefetch(to + AHEAD * STRIP + 16 * p, 1);
            v16_store(to + 16 * p, v16_load_rows(from + 16 * p, n - 16 * p));
        }
    }
}

/* Columns [column, column + n) of b at rows [first, end) to strips [.][end - first][STRIP], the
 * last one filled with zeros. */
static void pack_strips(const matrix *b, int64_t column, int64_t n, int64_t first, int64_t end,
                        float *to) {
    const int64_t depth = end - first;
    const bool is_dense = b->column_stride == 1 && b->dtype == WICK_F32;
    for (int64_t j = 0; is_dense && j < n; j += STRIP)
        pack_dense_strip(element_at(b, first, column + j), b->row_stride, n - j, depth,
                         to + j * depth);
    if (is_dense) return;
    const bool is_across = b->row_stride == 1 && b->column_stride != 1;
    for (int64_t j = 0; j < (n + STRIP - 1) / STRIP * STRIP; j += 16) {
        float *at = to + j / STRIP * STRIP * depth + j % STRIP;
        for (int64_t l = first; l < end && !is_across; l++, at += STRIP)
            v16_store(at, load_line(b, element_at(b, l, column + j), b->column_stride, n - j));
        for (int64_t l = first; l < end && is_across; l += 16) {
            v16 lines[16];
            for (int i = 0; i < 16; i++)
                lines[i] = i < n - j ? load_line(b, element_at(b, l, column + j + i), 1, end - l)
                                     : v16_zero();
            v16_transpose(lines);
            for (int i = 0; i < 16 && l + i < end; i++, at += STRIP) v16_store(at, lines[i]);
        }
    }
}

#endif
