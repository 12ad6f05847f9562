/* simd/matmul.h: products of float matrices of any strides, and linear over weights that lie as
 * rows of floats; written once over vector_simd_*.h.
 *
 * Blocks of both operands are packed so that the innermost loop reads them in order (Goto and van
 * de Geijn, 2008). With tiles of 12 rows by 32 columns and a span of k at once:
 *
 *        strips of b: [span][32] each           c
 *               +----+----+----+         +----+----+----+
 *               | 32 | 32 | 32 |         |    |    |    |
 *               +----+----+----+         |    |    |    |
 *   tiles of a: [span][12] each          |    +----+    |
 *   +-------+                            |    |tile|    | 12 rows
 *   |  12   |  ->                        |    +----+    |
 *   +-------+                            +----+----+----+
 *
 * The tiles of an item's rows stay in a core's own cache while one strip after another passes them,
 * and so do the sums until the last span. Far caches are slow: without prefetching the next strip
 * waiting for it took a fifth of the time.
 *
 * Every element of c is one sum in one order, that of linear_exact.h: k is cut in chunks of 64, a
 * chunk is summed by fused multiply-adds in the order of k, chunks are added in order, then the
 * bias. Neither the shape of the tiles nor the split among threads changes a bit of it. */
#ifndef WK_SIMD_MATMUL_H
#define WK_SIMD_MATMUL_H

#include "backend/cpu/simd/matmul_pack.h"

enum {
    SUM_CHUNK = 64,
    SPAN = 4 * SUM_CHUNK,       /* about: a strip of it fits in the first cache */
    STEP = 4,                   /* of k, for which 16 floats of the next strip are prefetched */
    MOST_COLUMNS = 1024,        /* of an item that packs b by itself, ... */
    FAR_COLUMNS = 4096,         /* ... and of one that finds it packed: a is packed for each item */
    MOST_ROWS = 16 * TILE_ROWS, /* of an item, which a core's cache holds with its sums */
    FEW_COLUMNS = 16,           /* fewer would leave most of a strip empty */
    LEAST_TILES = 3,            /* of an item that could have more */
    EVEN_ITEMS = 8,        /* a multiple of these, so that 2, 4 or 8 threads get as many, ... */
    LEAST_WORK = 1 << 21,  /* ... while an item still has this many products */
    MOST_SHARED = 1 << 24, /* floats of b that are packed for all items at once, ... */
    PACK_STRIPS = 8,       /* ... in parts of a span and so many strips */
};

enum { PACK, MULTIPLY }; /* phases */

/* --- A tile --- */

/* A tile of c, and what comes before it. */
typedef struct tile {
    float *c;
    int64_t stride, left; /* of its columns, those that exist */
    const float *before;  /* the sums so far; NULL: nothing is there yet */
    int64_t before_stride;
    const float *bias; /* added at the end; NULL: none */
    const float *next; /* brought nearer meanwhile, 16 floats for each STEP of k */
} tile;

/* sum += a [rows] times b [STRIP]. */
WK_INLINE void add_product(v16 sum[TILE_ROWS][TILE_PANELS], const float *a, const float *b,
                           const int rows, const int panels) {
    v16 line[TILE_PANELS];
    for (int p = 0; p < panels; p++) line[p] = v16_load(b + 16 * p);
    for (int i = 0; i < rows; i++) {
        const v16 element = v16_set(a[i]);
        for (int p = 0; p < panels; p++) sum[i][p] = v16_fma(line[p], element, sum[i][p]);
    }
}

/* sum += a [n][rows] times b [n][STRIP]; next: as of a tile. */
WK_INLINE void add_products(v16 sum[TILE_ROWS][TILE_PANELS], const float *a, const float *b,
                            int64_t n, const float *next, const int rows, const int panels) {
    for (; HAS_PREFETCH && n >= STEP; n -= STEP, next += 16) {
        wk_prefetch(next, 0, 2); /* not into the first cache */
#pragma GCC unroll 16
        for (int l = 0; l < STEP; l++, a += rows, b += STRIP) add_product(sum, a, b, rows, panels);
    }
    for (; n > 0; n--, a += rows, b += STRIP) add_product(sum, a, b, rows, panels);
}

/* a [n][rows] times b [n][STRIP], of which the first panels count. c is read after the first chunk
 * and written after the last: it comes from farther away than the sums between. */
WK_INLINE_FOR_TENSORS void multiply_tile(const tile *t, const float *a, const float *b, int64_t n,
                                         const int rows, const int panels) {
    v16 total[TILE_ROWS][TILE_PANELS];
    for (int i = 0; i < rows; i++)
        for (int p = 0; p < panels; p++) wk_prefetch(t->c + i * t->stride + 16 * p, 1);
    for (int64_t first = 0; first < n || first == 0; first += SUM_CHUNK) {
        const int64_t len = n - first < SUM_CHUNK ? n - first : SUM_CHUNK;
        v16 sum[TILE_ROWS][TILE_PANELS];
        for (int i = 0; i < rows; i++)
            for (int p = 0; p < panels; p++) sum[i][p] = v16_zero();
        add_products(sum, a, b, len, t->next + first / STEP * 16, rows, panels);
        a += rows * len;
        b += STRIP * len;
        if (first > 0)
            for (int i = 0; i < rows; i++)
                for (int p = 0; p < panels; p++) sum[i][p] = v16_add(total[i][p], sum[i][p]);
        for (int i = 0; i < rows; i++)
            for (int p = 0; p < panels; p++) total[i][p] = sum[i][p];
        if (first > 0 || t->before == NULL) continue;
        for (int i = 0; i < rows; i++) {
            for (int p = 0; p < panels; p++) {
                const float *const before = t->before + i * t->before_stride + 16 * p;
                total[i][p] = v16_add(v16_load_rows(before, t->left - 16 * p), total[i][p]);
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
    float *a, *b;                           /* tiles and strips, over a span of k */
    const float *next;                      /* the strip that is read after these */
    float *held;  /* [n_rows][n_columns to whole strips], the sums of the spans so far */
    bool is_held; /* of all spans, too: c cannot take them as they are */
} block;

/* All of b of one product, packed: of each span all strips. */
typedef struct shared {
    float *b;
    int64_t columns; /* with what fills the last strip */
} shared;

/* Its strips of a span, from a column on where one begins. */
static float *strips_at(const shared *all, int64_t first, int64_t end, int64_t column) {
    return all->b + first * all->columns + column * (end - first);
}

static int64_t end_of_span(int64_t first, int64_t span, int64_t k) {
    return first + span < k ? first + span : k;
}

static int64_t whole_strips(int64_t n_columns) { return (n_columns + STRIP - 1) / STRIP * STRIP; }

/* One tile after another, over n elements of k. Each brings a part of the next strip nearer. */
static void multiply_packed(const product *p, const block *b, int64_t n, bool is_first,
                            bool is_last) {
    const int64_t width = whole_strips(b->n_columns);
    const bool is_held = !is_last || b->is_held;
    for (int64_t j = 0; j < b->n_columns; j += STRIP) {
        const float *const with = b->b + j * n;
        const float *const next = j + STRIP < b->n_columns ? with + STRIP * n : b->next;
        tile t = {.left = b->n_columns - j, .before_stride = width};
        t.stride = is_held ? width : p->c.row_stride;
        if (p->bias != NULL && is_last) t.bias = p->bias + b->column + j;
        for (int64_t i = 0, rows, near = 0; i < b->n_rows; i += rows, near += n / STEP * 16) {
            rows = tile_rows(b->n_rows - i);
            float *const held = b->held + i * width + j;
            t.c = is_held ? held : element_at(&p->c, b->row + i, b->column + j);
            t.before = is_first ? NULL : held;
            t.next = near < STRIP * n ? next + near : with;
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
    int64_t i = 0;
    if (a->row_stride == 1 && a->column_stride != 1 && a->dtype == WICK_F32) {
        for (; n - i >= SIDE_TILES * TILE_ROWS; i += SIDE_TILES * TILE_ROWS)
            pack_dense_columns(element_at(a, row + i, first), a->column_stride, end - first,
                               to + i * (end - first));
    }
    for (int64_t rows; i < n; i += rows) {
        rows = tile_rows(n - i);
        pack_rows(a, row + i, (int)rows, first, end, to + i * (end - first));
    }
}

/* all: b is packed there already. */
static void multiply_block(const product *p, block *b, int64_t span, const shared *all) {
    const int64_t k = p->a.columns, width = whole_strips(b->n_columns);
    for (int64_t first = 0; first < k || first == 0; first += span) {
        const int64_t end = end_of_span(first, span, k), n = end - first;
        pack_tiles(&p->a, b->row, b->n_rows, first, end, b->a);
        if (all != NULL) {
            b->b = strips_at(all, first, end, b->column);
            b->next = end < k ? strips_at(all, end, end_of_span(end, span, k), b->column) : b->b;
        } else {
            pack_strips(&p->b, b->column, b->n_columns, first, end, b->b);
            b->next = b->b;
        }
        multiply_packed(p, b, n, first == 0, end == k);
    }
    for (int64_t i = 0; b->is_held && i < b->n_rows; i++)
        store_run(element_at(&p->c, b->row + i, b->column), p->c.column_stride, p->c.dtype,
                  b->held + i * width, b->n_columns);
}

/* --- Items --- */

/* How c [rows, columns] is cut into blocks: n_down times n_across, whose numbers of tiles and of
 * strips differ by one at most. */
typedef struct cuts {
    int64_t rows, columns, k, span, n_down, n_across, n_matrices;
    bool is_swapped; /* c^T = b^T a^T is computed, since c has few columns */
    bool is_shared;  /* a phase of its own packs all of b, once for all blocks */
} cuts;

/* Small products are asked often, and would wait for the division. */
static int64_t parts_of(int64_t n, int64_t step) {
    return n <= step ? n > 0 : (n + step - 1) / step;
}

/* Of n elements in units cut into parts: where part i begins. */
static int64_t begin_of(int64_t n, int64_t unit, int64_t parts, int64_t i) {
    if (parts <= 1) return i > 0 ? n : 0;
    const int64_t begin = parts_of(n, unit) * i / parts * unit;
    return begin < n ? begin : n;
}

/* The most that a part has, in whole units. */
static int64_t most_of(int64_t n, int64_t unit, int64_t parts) {
    return parts_of(parts_of(n, unit), parts < 1 ? 1 : parts) * unit;
}

/* Floats of b of one matrix as it is packed. */
static int64_t shared_b(const cuts *t) { return whole_strips(t->columns) * t->k; }

static bool can_share(const cuts *t) {
    return (double)t->n_matrices * (double)shared_b(t) <= (double)MOST_SHARED;
}

/* Not fewer parts than these, and more where that makes items a multiple of EVEN_ITEMS; others:
 * items for each part. */
static int64_t even_parts(int64_t parts, int64_t others, int64_t most) {
    const int64_t twos = others & -others; /* the largest power of two that divides it */
    const int64_t unit = twos > 0 && twos < EVEN_ITEMS ? EVEN_ITEMS / twos : 1;
    int64_t even = parts_of(parts, unit) * unit;
    while (even > parts && even > most) even /= 2;
    return even > parts ? even : parts;
}

/* Rows are cut before columns: what a block reads of b is read in order, and only once, while its
 * part of a stays in the cache. Of 1024 x 1024: 86 tiles down are 6 blocks of at most 16, and 8 of
 * 10 or 11. */
static void cut_blocks(cuts *t) {
    const int64_t tiles = parts_of(t->rows, TILE_ROWS), strips = parts_of(t->columns, STRIP);
    t->n_down = parts_of(t->rows, MOST_ROWS);
    const bool is_shared = t->n_down > 1 && can_share(t);
    t->n_across = parts_of(t->columns, is_shared ? FAR_COLUMNS : MOST_COLUMNS);
    int64_t others = t->n_matrices * t->n_across;
    if (t->n_down <= 1 && others >= EVEN_ITEMS) return;
    const int64_t most = t->n_matrices * (t->rows * t->columns * t->k / LEAST_WORK); /* items */
    if (most <= others) return;
    const int64_t room = most / others;
    t->n_down =
        even_parts(t->n_down, others, tiles / LEAST_TILES < room ? tiles / LEAST_TILES : room);
    others = t->n_matrices * t->n_down;
    if (others * t->n_across < EVEN_ITEMS)
        t->n_across =
            even_parts(t->n_across, others, strips < most / others ? strips : most / others);
}

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
    t.span = most_of(t.k < 1 ? 1 : t.k, SUM_CHUNK, (t.k + SPAN / 2) / SPAN);
    t.is_shared = t.n_down > 1 && can_share(&t); /* one block of all rows packs it once, anyway */
    return t;
}

/* Parts of the columns in which b is packed. */
static int64_t pack_parts(const cuts *t) { return parts_of(t->columns, PACK_STRIPS * STRIP); }

static int64_t matmul_items(const wk_op *op, int phase) {
    const cuts t = cuts_of(op);
    if (phase == MULTIPLY) return t.n_matrices * t.n_down * t.n_across;
    if (!t.is_shared) return 0;
    return t.n_matrices * pack_parts(&t) * parts_of(t.k, t.span);
}

static bool is_held(const wk_op *op, const cuts *t) {
    const wk_view *const c = wk_dst(op, 0);
    return c->dtype != WICK_F32 || c->stride[t->is_swapped ? c->rank - 2 : c->rank - 1] != 1;
}

static uint64_t matmul_scratch_bytes(const wk_op *op) {
    const cuts t = cuts_of(op);
    if (!t.is_shared) return 0;
    return (uint64_t)(t.n_matrices * shared_b(&t)) * sizeof(float);
}

static uint64_t matmul_worker_bytes(const wk_op *op) {
    const cuts t = cuts_of(op);
    const int64_t depth = t.k < t.span ? t.k : t.span;
    const int64_t rows = most_of(t.rows, TILE_ROWS, t.n_down);
    const int64_t columns = most_of(t.columns, STRIP, t.n_across);
    const int64_t packed = rows + (t.is_shared ? 0 : columns);
    const int64_t held = is_held(op, &t) || t.k > t.span ? rows * columns : 0;
    return (uint64_t)(packed * depth + held) * sizeof(float);
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
    float *const b = (float *)run->scratch + index * shared_b(t);
    return (shared){b, whole_strips(t->columns)};
}

/* The strips of a part of the columns, over a span. */
static void pack_item(const wk_cpu_run *run, const cuts *t, int64_t item) {
    const int64_t parts = pack_parts(t), spans = parts_of(t->k, t->span);
    const int64_t part = item % parts, index = item / parts / spans;
    const product p = product_of(run->op, index, t);
    const shared all = shared_at(run, t, index);
    const int64_t column = begin_of(t->columns, STRIP, parts, part);
    const int64_t end_column = begin_of(t->columns, STRIP, parts, part + 1);
    const int64_t first = item / parts % spans * t->span, end = end_of_span(first, t->span, t->k);
    pack_strips(&p.b, column, end_column - column, first, end, strips_at(&all, first, end, column));
}

static void multiply_item(const wk_cpu_run *run, const cuts *t, int64_t item) {
    const int64_t down = item % t->n_down, across = item / t->n_down % t->n_across;
    const int64_t index = item / (t->n_down * t->n_across), depth = t->k < t->span ? t->k : t->span;
    const product p = product_of(run->op, index, t);
    block b = {.row = begin_of(t->rows, TILE_ROWS, t->n_down, down),
               .column = begin_of(t->columns, STRIP, t->n_across, across)};
    b.n_rows = begin_of(t->rows, TILE_ROWS, t->n_down, down + 1) - b.row;
    b.n_columns = begin_of(t->columns, STRIP, t->n_across, across + 1) - b.column;
    float *room = run->worker_scratch;
    shared all;
    if (t->is_shared) {
        all = shared_at(run, t, index);
    } else {
        b.b = room;
        room += whole_strips(b.n_columns) * depth;
    }
    b.a = room;
    b.held = room + most_of(t->rows, TILE_ROWS, t->n_down) * depth;
    b.is_held = is_held(run->op, t);
    multiply_block(&p, &b, t->span, t->is_shared ? &all : NULL);
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
