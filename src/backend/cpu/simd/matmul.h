/* simd/matmul.h: products of float matrices of any strides, and linear over weights that lie as
 * rows of floats; written once over vector_simd_*.h.
 *
 * Blocks of both operands are packed so that the innermost loop reads them in order (Goto and van
 * de Geijn, 2008). With tiles of 12 rows by 32 columns and SPAN elements of k at once:
 *
 *        strips of b: [SPAN][32] each           c
 *               +----+----+----+         +----+----+----+
 *               | 32 | 32 | 32 |         |    |    |    |
 *               +----+----+----+         |    |    |    |
 *   tiles of a: [SPAN][12] each          |    +----+    |
 *   +-------+                            |    |tile|    | 12 rows
 *   |  12   |  ->                        |    +----+    |
 *   +-------+                            +----+----+----+
 *
 * Every element of c is one sum in one order, that of linear_exact.h: k is cut in chunks of 64, a
 * chunk is summed by fused multiply-adds in the order of k, chunks are added in order, then the
 * bias. Neither the shape of the tiles nor the split among threads changes a bit of it. */
#ifndef WK_SIMD_MATMUL_H
#define WK_SIMD_MATMUL_H

#include "backend/cpu/simd/linear_operands.h"
#include "backend/cpu/simd/vector_convert.h"

#include <stdalign.h>

enum {
    STRIP = TILE_PANELS * 16,
    TILE_ROWS = TILE_COLUMNS,
    TILE_ROWS_SMALL = TILE_COLUMNS_SMALL,
    SUM_CHUNK = 64,
    SPAN = 4 * SUM_CHUNK,
    MOST_COLUMNS = 512,         /* of an item */
    MOST_ROWS = 16 * TILE_ROWS, /* of an item, which a core's cache holds with its part of c */
    FEW_COLUMNS = 16,           /* fewer would leave most of a strip empty */
    FEW_ITEMS = 8,              /* fewer are cut, so that many threads get some, ... */
    LEAST_WORK = 1 << 21,       /* ... while an item still has so many products */
    MOST_SHARED = 1 << 24,      /* floats that are packed for all blocks at once, ... */
    PACK_ROWS = 8 * TILE_ROWS,  /* ... in such parts */
    PACK_COLUMNS = 8 * STRIP,
};

enum { PACK, MULTIPLY }; /* phases */

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
WK_INLINE v16 load_line(const matrix *x, const void *from, int64_t stride, int64_t n) {
    if (stride == 1 && x->dtype == WICK_F32) return v16_load_rows(from, n);
    alignas(64) float line[16] = {0};
    if (n > 0) load_run(line, from, stride, x->dtype, n < 16 ? n : 16);
    return v16_load(line);
}

/* Of dense floats, which is the case that counts; how many elements of k, but never the last ones:
 * what is stored reaches into those that follow. */
WK_INLINE int64_t pack_dense_rows(const float *from, int64_t stride, const int n, int64_t depth,
                                  float *to) {
    int64_t l = 0;
    for (; l + 16 < depth; l += 16) {
        v16 lines[16];
        for (int i = 0; i < 16; i++)
            lines[i] = i < n ? v16_load(from + i * stride + l) : v16_zero();
        v16_transpose(lines);
        for (int i = 0; i < 16; i++, to += n) v16_store(to, lines[i]);
    }
    return l;
}

/* Rows [row, row + n) of a at columns [first, end) to [end - first][n]. */
static void pack_rows(const matrix *a, int64_t row, int n, int64_t first, int64_t end, float *to) {
    const bool is_dense = a->column_stride == 1 && a->dtype == WICK_F32;
    int64_t done = 0;
    if (is_dense && n == TILE_ROWS)
        done =
            pack_dense_rows(element_at(a, row, first), a->row_stride, TILE_ROWS, end - first, to);
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

/* A row of dense floats to strips that lie depth rows apart. */
WK_INLINE void pack_dense_row(const float *from, int64_t n, int64_t depth, float *to) {
    for (; n >= STRIP; n -= STRIP, from += STRIP, to += STRIP * depth)
        for (int p = 0; p < TILE_PANELS; p++) v16_store(to + 16 * p, v16_load(from + 16 * p));
    for (int p = 0; n > 0 && p < TILE_PANELS; p++)
        v16_store(to + 16 * p, v16_load_rows(from + 16 * p, n - 16 * p));
}

/* Columns [column, column + n) of b at rows [first, end) to strips [.][end - first][STRIP], the
 * last one filled with zeros. */
static void pack_strips(const matrix *b, int64_t column, int64_t n, int64_t first, int64_t end,
                        float *to) {
    const int64_t depth = end - first;
    if (b->column_stride == 1 && b->dtype == WICK_F32) {
        for (int64_t l = 0; l < depth; l++)
            pack_dense_row(element_at(b, first + l, column), n, depth, to + l * STRIP);
        return;
    }
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

/* --- A tile --- */

/* Where a tile is stored: dense rows. */
typedef struct tile {
    float *c;
    int64_t stride, left; /* of its columns, those that exist */
    const float *bias;    /* added at the end; NULL: none */
    bool is_first;        /* nothing is there yet */
} tile;

/* a [n][rows] times b [n][STRIP], of which the first panels count. c is read after the first chunk
 * and written after the last: it comes from farther away than the sums between. */
WK_INLINE void multiply_tile(const tile *t, const float *a, const float *b, int64_t n,
                             const int rows, const int panels) {
    v16 total[TILE_ROWS][TILE_PANELS];
    for (int i = 0; i < rows; i++)
        for (int p = 0; p < panels; p++) wk_prefetch(t->c + i * t->stride + 16 * p);
    for (int64_t first = 0; first < n || first == 0; first += SUM_CHUNK) {
        const int64_t end = first + SUM_CHUNK < n ? first + SUM_CHUNK : n;
        v16 sum[TILE_ROWS][TILE_PANELS];
        for (int i = 0; i < rows; i++)
            for (int p = 0; p < panels; p++) sum[i][p] = v16_zero();
        for (int64_t l = first; l < end; l++, a += rows, b += STRIP) {
            v16 line[TILE_PANELS];
            for (int p = 0; p < panels; p++) line[p] = v16_load(b + 16 * p);
            for (int i = 0; i < rows; i++) {
                const v16 element = v16_set(a[i]);
                for (int p = 0; p < panels; p++) sum[i][p] = v16_fma(line[p], element, sum[i][p]);
            }
        }
        for (int i = 0; i < rows; i++) {
            for (int p = 0; p < panels; p++) {
                const float *const before = t->c + i * t->stride + 16 * p;
                v16 value = sum[i][p];
                if (first > 0) {
                    value = v16_add(total[i][p], value);
                } else if (!t->is_first) {
                    value = v16_add(v16_load_rows(before, t->left - 16 * p), value);
                }
                total[i][p] = value;
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int p = 0; p < panels; p++) {
            const int64_t left = t->left - 16 * p;
            v16 value = total[i][p];
            if (t->bias != NULL) value = v16_add(value, v16_load_rows(t->bias + 16 * p, left));
            v16_store_rows(t->c + i * t->stride + 16 * p, value, left);
        }
    }
}

#define MULTIPLY_ROWS(name, rows)                                                                  \
    static void name(const tile *t, const float *a, const float *b, int64_t n) {                   \
        if (t->left <= STRIP - 16) {                                                               \
            multiply_tile(t, a, b, n, rows, TILE_PANELS > 1 ? TILE_PANELS - 1 : 1);                \
        } else {                                                                                   \
            multiply_tile(t, a, b, n, rows, TILE_PANELS);                                          \
        }                                                                                          \
    }
MULTIPLY_ROWS(multiply_rows, TILE_ROWS)
MULTIPLY_ROWS(multiply_few, TILE_ROWS_SMALL)
MULTIPLY_ROWS(multiply_one, 1)
#undef MULTIPLY_ROWS

/* Rows of the next tile, of those that are left. */
static int tile_rows(int64_t left) {
    return left >= TILE_ROWS ? TILE_ROWS : left >= TILE_ROWS_SMALL ? TILE_ROWS_SMALL : 1;
}

/* --- An item: a block of rows and columns of one product --- */

typedef struct block {
    int64_t row, n_rows, column, n_columns; /* those that exist */
    float *a, *b;                           /* tiles and strips, over SPAN elements of k */
    float *held; /* [n_rows][n_columns to whole strips], NULL: c takes the sums */
} block;

/* All of a and b of one product, packed: of each span all tiles, of each span all strips. */
typedef struct shared {
    float *a, *b;
    int64_t rows, columns; /* with what fills the last block */
} shared;

static int64_t whole_strips(int64_t n_columns) { return (n_columns + STRIP - 1) / STRIP * STRIP; }

/* One tile after another, over so many elements of k. */
static void multiply_packed(const product *p, const block *b, int64_t n, bool is_first,
                            bool is_last) {
    for (int64_t j = 0; j < b->n_columns; j += STRIP) {
        const float *const with = b->b + j * n;
        tile t = {.left = b->n_columns - j, .is_first = is_first};
        t.stride = b->held != NULL ? whole_strips(b->n_columns) : p->c.row_stride;
        if (p->bias != NULL && is_last) t.bias = p->bias + b->column + j;
        for (int64_t i = 0, rows; i < b->n_rows; i += rows) {
            rows = tile_rows(b->n_rows - i);
            t.c = b->held != NULL ? b->held + i * t.stride + j
                                  : element_at(&p->c, b->row + i, b->column + j);
            const float *const from = b->a + i * n;
            if (rows == TILE_ROWS) {
                multiply_rows(&t, from, with, n);
            } else if (rows == TILE_ROWS_SMALL) {
                multiply_few(&t, from, with, n);
            } else {
                multiply_one(&t, from, with, n);
            }
        }
    }
}

static void pack_tiles(const matrix *a, int64_t row, int64_t n, int64_t first, int64_t end,
                       float *to) {
    for (int64_t i = 0, rows; i < n; i += rows) {
        rows = tile_rows(n - i);
        pack_rows(a, row + i, (int)rows, first, end, to + i * (end - first));
    }
}

/* all: a and b are packed there already, one span of all rows and columns after the other. */
static void multiply_block(const product *p, block *b, const shared *all) {
    const int64_t k = p->a.columns, width = whole_strips(b->n_columns);
    for (int64_t first = 0; first < k || first == 0; first += SPAN) {
        const int64_t end = first + SPAN < k ? first + SPAN : k;
        if (all != NULL) {
            b->a = all->a + first * all->rows + b->row * (end - first);
            b->b = all->b + first * all->columns + b->column * (end - first);
        } else {
            pack_tiles(&p->a, b->row, b->n_rows, first, end, b->a);
            pack_strips(&p->b, b->column, b->n_columns, first, end, b->b);
        }
        multiply_packed(p, b, end - first, first == 0, end == k);
    }
    for (int64_t i = 0; b->held != NULL && i < b->n_rows; i++)
        store_run(element_at(&p->c, b->row + i, b->column), p->c.column_stride, p->c.dtype,
                  b->held + i * width, b->n_columns);
}

/* --- Items --- */

/* How c [rows, columns] is cut into blocks. */
typedef struct cuts {
    int64_t rows, columns, k, row_step, column_step, n_down, n_across, n_matrices;
    bool is_swapped; /* c^T = b^T a^T is computed, since c has few columns */
    bool is_shared;  /* a phase of its own packs all of a and b, once for all blocks */
} cuts;

static int64_t parts_of(int64_t n, int64_t step) { return (n + step - 1) / step; }

/* The step of about as many parts as there are of at most so many, all alike. */
static int64_t even_step(int64_t n, int64_t most, int64_t unit) {
    const int64_t parts = parts_of(n, most);
    const int64_t each = parts > 0 ? (n + parts - 1) / parts : 1;
    return (each + unit - 1) / unit * unit;
}

/* Sets the steps. Rows are cut before columns: what a block reads of b is read in order, and only
 * once, while its part of a stays in the cache. */
static void cut_blocks(cuts *t) {
    for (int64_t most_rows = MOST_ROWS, most_columns = MOST_COLUMNS;;) {
        t->row_step = even_step(t->rows, most_rows, TILE_ROWS);
        t->column_step = even_step(t->columns, most_columns, STRIP);
        t->n_down = parts_of(t->rows, t->row_step);
        t->n_across = parts_of(t->columns, t->column_step);
        const int64_t work = (t->rows < t->row_step ? t->rows : t->row_step) * t->column_step;
        if (t->n_matrices * t->n_down * t->n_across >= FEW_ITEMS || work / 2 * t->k < LEAST_WORK)
            return;
        if (t->row_step > MOST_ROWS / 2) {
            most_rows = t->row_step / 2;
        } else if (t->column_step > STRIP) {
            most_columns = t->column_step / 2;
        } else {
            return;
        }
    }
}

/* Floats of all of a, and of b, of one matrix as they are packed. */
static int64_t shared_a(const cuts *t) { return t->n_down * t->row_step * t->k; }
static int64_t shared_b(const cuts *t) { return t->n_across * t->column_step * t->k; }

static cuts cuts_of(const wk_op *op) {
    const wk_view *const c = wk_dst(op, 0), *const a = wk_src(op, 0);
    cuts t = {.rows = c->extent[c->rank - 2],
              .columns = c->extent[c->rank - 1],
              .k = a->extent[a->rank - 1],
              .n_matrices = 1};
    for (int d = 0; d < c->rank - 2; d++) t.n_matrices *= c->extent[d];
    if (op->code == WK_OP_MATMUL && t.columns < FEW_COLUMNS && t.columns < t.rows) {
        t.is_swapped = true;
        t.columns = t.rows;
        t.rows = c->extent[c->rank - 1];
    }
    cut_blocks(&t);
    /* Where no rows are shared by several blocks b is packed once, anyway. */
    const double all = (double)t.n_matrices * (double)(shared_a(&t) + shared_b(&t));
    t.is_shared = t.n_down > 1 && all <= (double)MOST_SHARED;
    return t;
}

static int64_t matmul_items(const wk_op *op, int phase) {
    const cuts t = cuts_of(op);
    if (phase == MULTIPLY) return t.n_matrices * t.n_down * t.n_across;
    if (!t.is_shared) return 0;
    return t.n_matrices * (parts_of(t.rows, PACK_ROWS) + parts_of(t.columns, PACK_COLUMNS));
}

static bool is_held(const wk_op *op, const cuts *t) {
    const wk_view *const c = wk_dst(op, 0);
    return c->dtype != WICK_F32 || c->stride[t->is_swapped ? c->rank - 2 : c->rank - 1] != 1;
}

static size_t matmul_scratch_bytes(const wk_op *op) {
    const cuts t = cuts_of(op);
    if (!t.is_shared) return 0;
    return (size_t)(t.n_matrices * (shared_a(&t) + shared_b(&t))) * sizeof(float);
}

static size_t matmul_worker_bytes(const wk_op *op) {
    const cuts t = cuts_of(op);
    const int64_t depth = t.is_shared ? 0 : t.k < SPAN ? t.k : SPAN;
    const int64_t held = is_held(op, &t) ? t.row_step * t.column_step : 0;
    return (size_t)((t.row_step + t.column_step) * depth + held) * sizeof(float);
}

static product product_of(const wk_op *op, int64_t index, const cuts *t) {
    const matrix a = matrix_at(wk_src(op, 0), index), b = matrix_at(wk_src(op, 1), index);
    const matrix c = matrix_at(wk_dst(op, 0), index);
    if (op->code == WK_OP_LINEAR) {
        const wk_view *const bias = wk_src(op, 2);
        return (product){a, transposed(&b), c, bias->buf != NULL ? wk_view_data(bias) : NULL};
    }
    if (t->is_swapped) return (product){transposed(&b), transposed(&a), transposed(&c), NULL};
    return (product){a, b, c, NULL};
}

static shared shared_at(const wk_cpu_run *run, const cuts *t, int64_t index) {
    float *const b = (float *)run->scratch + index * (shared_a(t) + shared_b(t));
    return (shared){b + shared_b(t), b, t->n_down * t->row_step, t->n_across * t->column_step};
}

static void pack_item(const wk_cpu_run *run, const cuts *t, int64_t item) {
    const int64_t n_a = parts_of(t->rows, PACK_ROWS), n_b = parts_of(t->columns, PACK_COLUMNS);
    const int64_t index = item / (n_a + n_b), part = item % (n_a + n_b);
    const product p = product_of(run->op, index, t);
    const shared all = shared_at(run, t, index);
    const int64_t row = part * PACK_ROWS, rows = t->rows - row;
    const int64_t column = (part - n_a) * PACK_COLUMNS, columns = t->columns - column;
    for (int64_t first = 0; first < t->k; first += SPAN) {
        const int64_t end = first + SPAN < t->k ? first + SPAN : t->k, n = end - first;
        if (part < n_a) {
            pack_tiles(&p.a, row, rows < PACK_ROWS ? rows : PACK_ROWS, first, end,
                       all.a + first * all.rows + row * n);
        } else {
            pack_strips(&p.b, column, columns < PACK_COLUMNS ? columns : PACK_COLUMNS, first, end,
                        all.b + first * all.columns + column * n);
        }
    }
}

static void multiply_item(const wk_cpu_run *run, const cuts *t, int64_t item) {
    const int64_t index = item / (t->n_down * t->n_across), depth = t->k < SPAN ? t->k : SPAN;
    const product p = product_of(run->op, index, t);
    block b = {.row = item % t->n_down * t->row_step,
               .column = item / t->n_down % t->n_across * t->column_step};
    float *const room = run->worker_scratch;
    b.n_rows = t->rows - b.row < t->row_step ? t->rows - b.row : t->row_step;
    b.n_columns = t->columns - b.column < t->column_step ? t->columns - b.column : t->column_step;
    shared all;
    if (t->is_shared) {
        all = shared_at(run, t, index);
        b.held = room;
    } else {
        b.b = room;
        b.a = room + t->column_step * depth;
        b.held = b.a + t->row_step * depth;
    }
    if (!is_held(run->op, t)) b.held = NULL;
    multiply_block(&p, &b, t->is_shared ? &all : NULL);
}

static void run_matmul(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    const cuts t = cuts_of(run->op);
    for (int64_t item = begin; item < end; item++) {
        if (phase == PACK) {
            pack_item(run, &t, item);
        } else {
            multiply_item(run, &t, item);
        }
    }
}

static bool accepts_matmul(const wk_op *op) { return accepts_floats(op); }

/* Rows of floats, of any strides; those of weights in another layout have kernels of their own. */
static bool accepts_linear_rows(const wk_op *op) {
    const wk_view *const bias = wk_src(op, 2);
    const bool has_bias = bias->rank == 0 || (bias->dtype == WICK_F32 && wk_view_is_dense(bias));
    return accepts_matmul(op) && has_bias;
}

/* isa: the suffix of the names. */
#define MATMUL_KERNELS(isa)                                                                        \
    const wk_cpu_kernel wk_matmul_##isa = {                                                        \
        .base.name = "matmul_" #isa,                                                               \
        .base.code = WK_OP_MATMUL,                                                                 \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_matmul,                                                            \
        .n_phases = 2,                                                                             \
        .items = matmul_items,                                                                     \
        .scratch_bytes = matmul_scratch_bytes,                                                     \
        .worker_bytes = matmul_worker_bytes,                                                       \
        .run = run_matmul,                                                                         \
    };                                                                                             \
    const wk_cpu_kernel wk_linear_rows_##isa = {                                                   \
        .base.name = "linear_rows_" #isa,                                                          \
        .base.code = WK_OP_LINEAR,                                                                 \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_linear_rows,                                                       \
        .n_phases = 2,                                                                             \
        .items = matmul_items,                                                                     \
        .scratch_bytes = matmul_scratch_bytes,                                                     \
        .worker_bytes = matmul_worker_bytes,                                                       \
        .run = run_matmul,                                                                         \
    };

#endif
