/* simd/linear_exact.h: linear and linear_experts in float32 over weights in panels, written once
 * over simd_*.h.
 *
 * Every element of y is one sum in one order: k is cut in chunks of 64, a chunk is summed by fused
 * multiply-adds in the order of k, chunks are added in order, then the bias. Neither the number of
 * columns nor the split among threads nor the register width changes a bit of it.
 *
 * One column (decode) reads the weights once and computes as it unpacks. More columns of a group
 * are packed to tiles first, and the weights are unpacked once for all of them.
 *
 * The including file defines EXACT_UNPACK: unpack_quants, or what does the same with less code. */
#ifndef WK_SIMD_LINEAR_EXACT_H
#define WK_SIMD_LINEAR_EXACT_H

#include "backend/cpu/simd/linear_groups.h"

enum { PANEL_IS_EXACT = 1 };

#include "backend/cpu/simd/linear_panel.h"

enum {
    CHUNK = 64,
    BLOCK = WK_PANEL_BLOCK,
    PARTS_MAX = 2,
    SPAN = 4 * CHUNK,
    GROUP = 8,
};

WK_INLINE bool is_of_floats(const wk_layout layout) { return wk_panel_get(layout)->bits == 0; }

/* Element i of the 16 rows of a panel of floats. */
WK_INLINE v16 float_weight(const wk_layout layout, const uint8_t *panel, int64_t i) {
    if (layout == WK_LAYOUT_PANEL_F16) return load_f16(panel + 2 * WK_PANEL_ROWS * i);
    if (layout == WK_LAYOUT_PANEL_BF16) return load_bf16(panel + 2 * WK_PANEL_ROWS * i);
    return v16_load((const float *)(const void *)panel + WK_PANEL_ROWS * i);
}

/* A block with its scales. */
typedef struct open_block {
    panel_block at;
    v16 step[PARTS_MAX], addend[PARTS_MAX];
} open_block;

WK_INLINE open_block block_open(const wk_layout layout, const uint8_t *panel, int64_t b) {
    open_block block = {.at = block_find(layout, panel, b)};
    for (int part = 0; part < block_parts(layout); part++) {
        block.step[part] = block_step(layout, &block.at, part);
        block.addend[part] = block_addend(layout, &block.at, part);
    }
    return block;
}

/* The weights themselves, as the decoder of the raw blocks gives them: the product of a step and a
 * quant is exact, so the fused form rounds once as the two-step one does. */
WK_INLINE v16 block_weight(const wk_layout layout, const open_block *block, const int half,
                           b64 group, int i) {
    const v16 q = b64_float(group, i, (float)wk_panel_get(layout)->bias);
    const int part = block_parts(layout) == 1 ? 0 : half;
    if (!wk_panel_has_minimum(layout)) return v16_mul(q, block->step[part]);
    return v16_fma(q, block->step[part], block->addend[part]);
}

/* ---- One column. ---- */

/* Panel p of a column of y, of n rows from its first panel on; bias: that of its rows, or NULL. */
WK_INLINE void store_rows(float *y, const float *bias, int p, int64_t n, v16 value) {
    const int64_t first = p * WK_PANEL_ROWS;
    if (n <= first) return;
    if (bias != NULL) value = v16_add(value, v16_load_rows(bias + first, n - first));
    v16_store_rows(y + first, value, n - first);
}

/* sum[p] += weight . x over 16 k, half a block of each panel. */
WK_INLINE void column_half(const wk_layout layout, const open_block block[], const int half,
                           const float *x, v16 sum[]) {
    for (int i = 0; i < 4; i++) {
        b64 group[DECODE_PANELS];
        for (int p = 0; p < DECODE_PANELS; p++)
            group[p] = block_group(layout, &block[p].at, half, i);
        for (int e = 0; e < 4; e++) {
            const v16 xi = v16_set(x[4 * i + e]);
            for (int p = 0; p < DECODE_PANELS; p++)
                sum[p] = v16_fma(block_weight(layout, &block[p], half, group[p], e), xi, sum[p]);
        }
    }
}

/* The same over one chunk. */
WK_INLINE void column_chunk(const wk_layout layout, const uint8_t *const panel[], int64_t first,
                            int64_t len, const float *x, v16 sum[]) {
    if (is_of_floats(layout)) {
        for (int64_t i = first; i < first + len; i++) {
            const v16 xi = v16_set(x[i]);
            for (int p = 0; p < DECODE_PANELS; p++)
                sum[p] = v16_fma(float_weight(layout, panel[p], i), xi, sum[p]);
        }
        return;
    }
    for (int64_t i = first; i < first + len; i += BLOCK) {
        open_block block[DECODE_PANELS];
        for (int p = 0; p < DECODE_PANELS; p++) block[p] = block_open(layout, panel[p], i / BLOCK);
        column_half(layout, block, 0, x + i, sum);
        column_half(layout, block, 1, x + i + BLOCK / 2, sum);
    }
}

/* Elements [first, first + len) of k of one panel as floats [len][16]. */
typedef void (*unpack_fn)(const uint8_t *panel, int64_t first, int64_t len, float *w);

/* The same of any type, over weights that are unpacked to w [DECODE_PANELS][CHUNK * 16] first: it
 * takes longer, and no code for each type. */
WK_INLINE void unpacked_chunk(unpack_fn unpack, const uint8_t *const panel[], int64_t first,
                              int64_t len, const float *x, float *w, v16 sum[]) {
    for (int p = 0; p < DECODE_PANELS; p++)
        unpack(panel[p], first, len, w + p * CHUNK * WK_PANEL_ROWS);
    for (int64_t i = 0; i < len; i++) {
        const v16 xi = v16_set(x[first + i]);
        for (int p = 0; p < DECODE_PANELS; p++)
            sum[p] = v16_fma(v16_load(w + (p * CHUNK + i) * WK_PANEL_ROWS), xi, sum[p]);
    }
}

/* unpack, w: where code for each type is too much; else layout is a constant. */
WK_INLINE_FORM void run_column(const linear_operands *a, const wk_layout layout, unpack_fn unpack,
                               float *w, int64_t begin, int64_t end) {
    const float *const x = linear_at(a, &a->x, 0);
    float *const y = linear_at(a, &a->y, 0);
    for (int64_t at = begin; at < end; at += DECODE_PANELS) {
        const uint8_t *panel[DECODE_PANELS];
        /* Panels past the end repeat the last one; their sums are not stored. */
        for (int p = 0; p < DECODE_PANELS; p++)
            panel[p] = a->weight + (at + p < end ? at + p : end - 1) * a->panel_bytes;
        v16 total[DECODE_PANELS];
        for (int p = 0; p < DECODE_PANELS; p++) total[p] = v16_zero();
        for (int64_t first = 0; first < a->k; first += CHUNK) {
            const int64_t len = a->k - first < CHUNK ? a->k - first : CHUNK;
            v16 sum[DECODE_PANELS];
            for (int p = 0; p < DECODE_PANELS; p++) sum[p] = v16_zero();
            if (unpack)
                unpacked_chunk(unpack, panel, first, len, x, w, sum);
            else
                column_chunk(layout, panel, first, len, x, sum);
            for (int p = 0; p < DECODE_PANELS; p++) total[p] = v16_add(total[p], sum[p]);
        }
        for (int p = 0; p < DECODE_PANELS && at + p < end; p++) {
            const int64_t row = at * WK_PANEL_ROWS;
            store_rows(y + row, a->bias != NULL ? a->bias + row : NULL, p, a->n - row, total[p]);
        }
    }
}

/* ---- Several columns. ---- */

/* Columns of tile t, rounded up to a width that a tile function exists for. */
WK_INLINE int64_t tile_width(int64_t m, int64_t t) {
    const int64_t left = m - t * TILE_COLUMNS;
    if (left >= TILE_COLUMNS) return TILE_COLUMNS;
    return (left + TILE_COLUMNS_SMALL - 1) / TILE_COLUMNS_SMALL * TILE_COLUMNS_SMALL;
}

/* Packs tile t of x to [k][width]; columns past m are zeros. */
static void pack_tile(const linear_operands *a, int64_t t, float *packed) {
    const int64_t width = tile_width(a->m, t);
    float *const to = packed + t * TILE_COLUMNS * a->k;
    for (int64_t c = 0; c < width; c++) {
        const int64_t row = t * TILE_COLUMNS + c;
        const float *const x = row < a->m ? linear_at(a, &a->x, row) : NULL;
        for (int64_t i = 0; i < a->k; i++) to[i * width + c] = x != NULL ? x[i] : 0;
    }
}

/* One chunk of TILE_PANELS panels times one tile of columns. */
typedef struct exact_tile {
    const float *w; /* [TILE_PANELS][.., 16], panels panel_stride floats apart */
    int64_t panel_stride;
    const float *x; /* [len][width] */
    int64_t len;
    v16 (*total)[TILE_COLUMNS]; /* [TILE_PANELS], of the chunks so far */
} exact_tile;

WK_INLINE void tile_compute(const exact_tile *t, const int width) {
    v16 sum[TILE_PANELS][TILE_COLUMNS];
    for (int p = 0; p < TILE_PANELS; p++)
        for (int c = 0; c < width; c++) sum[p][c] = v16_zero();
    const float *w = t->w, *x = t->x;
    for (int64_t i = 0; i < t->len; i++, w += WK_PANEL_ROWS, x += width) {
        v16 wi[TILE_PANELS];
        for (int p = 0; p < TILE_PANELS; p++) wi[p] = v16_load(w + p * t->panel_stride);
        for (int c = 0; c < width; c++) {
            const v16 xi = v16_set(x[c]);
            for (int p = 0; p < TILE_PANELS; p++) sum[p][c] = v16_fma(wi[p], xi, sum[p][c]);
        }
    }
    for (int p = 0; p < TILE_PANELS; p++)
        for (int c = 0; c < width; c++) t->total[p][c] = v16_add(t->total[p][c], sum[p][c]);
}

static void tile_small(const exact_tile *t) { tile_compute(t, TILE_COLUMNS_SMALL); }
static void tile_medium(const exact_tile *t) { tile_compute(t, 2 * TILE_COLUMNS_SMALL); }
static void tile_full(const exact_tile *t) { tile_compute(t, TILE_COLUMNS); }

static void tile_run(const exact_tile *t, int64_t width) {
    if (width == TILE_COLUMNS) {
        tile_full(t);
    } else if (width == TILE_COLUMNS_SMALL) {
        tile_small(t);
    } else {
        tile_medium(t);
    }
}

/* Half a block as floats [16][16]. */
WK_INLINE void unpack_half(const wk_layout layout, const open_block *block, const int half,
                           float *w) {
    for (int i = 0; i < 4; i++) {
        const b64 group = block_group(layout, &block->at, half, i);
        for (int e = 0; e < 4; e++, w += WK_PANEL_ROWS)
            v16_store(w, block_weight(layout, block, half, group, e));
    }
}

/* Elements [first, first + len) of k of one panel as floats [len][16]. */
WK_INLINE_FORM void unpack_floats(const wk_layout layout, const uint8_t *panel, int64_t first,
                                  int64_t len, float *w) {
    for (int64_t i = first; i < first + len; i++, w += WK_PANEL_ROWS)
        v16_store(w, float_weight(layout, panel, i));
}
WK_INLINE_FORM void unpack_quants(const wk_layout layout, const uint8_t *panel, int64_t first,
                                  int64_t len, float *w) {
    for (int64_t i = first; i < first + len; i += BLOCK, w += BLOCK * WK_PANEL_ROWS) {
        const open_block block = block_open(layout, panel, i / BLOCK);
        unpack_half(layout, &block, 0, w);
        unpack_half(layout, &block, 1, w + BLOCK / 2 * WK_PANEL_ROWS);
    }
}

/* Panels [begin, end), GROUP at most, in a span of k, whose weights stay near, as floats, for one
 * tile of columns after another. */
typedef struct exact_group {
    int64_t begin, end;
    int64_t first, last;  /* of the span */
    const float *weights; /* the span's, panels stride floats apart */
    int64_t stride;
} exact_group;

_Static_assert(TILE_PANELS <= 2 && GROUP % TILE_PANELS == 0, "one panel may be missing");

/* Adds one tile of columns with TILE_PANELS panels from at on to y, chunk by chunk. */
static void run_tile(const linear_operands *a, const exact_group *g, const float *packed,
                     int64_t at, int64_t tile) {
    const int64_t row = at * WK_PANEL_ROWS, column = tile * TILE_COLUMNS;
    const int64_t width = tile_width(a->m, tile);
    const int64_t columns = a->m - column < TILE_COLUMNS ? a->m - column : TILE_COLUMNS;
    float *y[TILE_COLUMNS];
    for (int64_t c = 0; c < columns; c++) y[c] = linear_at(a, &a->y, column + c) + row;
    v16 total[TILE_PANELS][TILE_COLUMNS];
    for (int p = 0; p < TILE_PANELS; p++)
        for (int64_t c = 0; c < width; c++)
            total[p][c] =
                g->first == 0 || c >= columns
                    ? v16_zero()
                    : v16_load_rows(y[c] + p * WK_PANEL_ROWS, a->n - row - p * WK_PANEL_ROWS);
    /* A panel past the end is not there: its neighbour is computed twice. */
    exact_tile t = {.panel_stride = at + 1 < g->end ? g->stride : 0, .total = total};
    for (int64_t first = g->first; first < g->last; first += CHUNK) {
        t.w = g->weights + (at - g->begin) * g->stride + (first - g->first) * WK_PANEL_ROWS;
        t.x = packed + column * a->k + first * width;
        t.len = g->last - first < CHUNK ? g->last - first : CHUNK;
        tile_run(&t, width);
    }
    const float *const bias = g->last == a->k && a->bias != NULL ? a->bias + row : NULL;
    for (int p = 0; p < TILE_PANELS; p++)
        for (int64_t c = 0; c < columns; c++) store_rows(y[c], bias, p, a->n - row, total[p][c]);
}

/* A span is the same for every type: one function for all of them keeps the program small. */
static void run_span(const linear_operands *a, const exact_group *g, const float *packed) {
    for (int64_t t = 0; t * TILE_COLUMNS < a->m; t++)
        for (int64_t at = g->begin; at < g->end; at += TILE_PANELS) run_tile(a, g, packed, at, t);
}

/* unpacked [GROUP][SPAN * 16] */
static void run_group(const linear_operands *a, wk_layout layout, unpack_fn unpack,
                      const float *packed, exact_group g, float *unpacked) {
    const uint8_t *const panel = a->weight + g.begin * a->panel_bytes;
    for (g.first = 0; g.first < a->k || g.first == 0; g.first += SPAN) {
        g.last = a->k - g.first < SPAN ? a->k : g.first + SPAN;
        if (layout == WK_LAYOUT_PANEL_F32) {
            g.weights = (const float *)(const void *)panel + g.first * WK_PANEL_ROWS;
            g.stride = a->k * WK_PANEL_ROWS;
        } else {
            g.weights = unpacked;
            g.stride = SPAN * WK_PANEL_ROWS;
            for (int64_t p = 0; p < g.end - g.begin; p++)
                unpack(panel + p * a->panel_bytes, g.first, g.last - g.first,
                       unpacked + p * g.stride);
        }
        run_span(a, &g, packed);
    }
}

/* ---- What a wk_cpu_kernel asks for. ---- */

/* An item of packing is a group of experts, else a tile. */
static int64_t exact_items(const wk_op *op, int phase) {
    const int64_t m = linear_m(op);
    if (phase == LINEAR_SORT) return linear_sort_items(op);
    if (phase == LINEAR_MULTIPLY) return linear_multiply_items(op);
    if (m == 1) return 0;
    return linear_has_experts(op) ? linear_groups(op) : (m + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

static int64_t exact_grain(const wk_op *op, int phase) {
    if (phase != LINEAR_MULTIPLY) return 1;
    if (linear_has_experts(op)) return LINEAR_GROUP_ITEMS;
    return linear_m(op) == 1 ? DECODE_PANELS : TILE_PANELS;
}

/* The last tile of each group may be filled up. */
static uint64_t exact_scratch_bytes(const wk_op *op) {
    const int64_t m = linear_m(op), columns = m + linear_groups(op) * TILE_COLUMNS_SMALL;
    const uint64_t packed = m == 1 ? 0 : (uint64_t)(columns * linear_k(op)) * sizeof(float);
    return linear_index_bytes(op) + packed;
}

static uint64_t exact_worker_bytes(const wk_op *op) {
    const int n = linear_m(op) > 1 ? GROUP * SPAN : COLUMN_IS_UNPACKED ? DECODE_PANELS * CHUNK : 0;
    return (uint64_t)n * WK_PANEL_ROWS * sizeof(float);
}

/* The tiles of group number g. */
static float *exact_packed(const linear_index *index, const linear_group *group, int64_t g) {
    return (float *)index->packed + (group->first + g * TILE_COLUMNS_SMALL) * group->a.k;
}

static void pack_groups(const wk_cpu_run *run, const linear_index *index, int64_t begin,
                        int64_t end) {
    for (int64_t g = begin; g < end; g++) {
        const linear_group group = linear_group_at(run, index, g);
        for (int64_t t = 0; group.a.m > 1 && t * TILE_COLUMNS < group.a.m; t++)
            pack_tile(&group.a, t, exact_packed(index, &group, g));
    }
}

/* What there is of a type. */
typedef struct exact_type {
    wk_layout layout;
    unpack_fn unpack;
    void (*column)(const linear_operands *a, int64_t begin, int64_t end); /* NULL: by unpack */
} exact_type;

static void exact_column(const linear_operands *a, const exact_type *type, float *w, int64_t begin,
                         int64_t end) {
    if (type->column)
        type->column(a, begin, end);
    else
        run_column(a, type->layout, type->unpack, w, begin, end);
}

static void exact_run(const wk_cpu_run *run, const exact_type *type, int phase, int64_t begin,
                      int64_t end) {
    const linear_index index = linear_index_in(run->op, run->scratch);
    if (phase == LINEAR_SORT) {
        linear_sort(run);
    } else if (phase == LINEAR_PACK && linear_has_experts(run->op)) {
        pack_groups(run, &index, begin, end);
    } else if (phase == LINEAR_PACK) {
        const linear_operands a = linear_get(run->op);
        for (int64_t t = begin; t < end; t++) pack_tile(&a, t, index.packed);
    }
    while (phase == LINEAR_MULTIPLY && begin < end) {
        const linear_span span = linear_span_at(run->op, begin, end);
        const linear_group group = linear_group_at(run, &index, span.group);
        begin = span.next;
        if (group.a.m == 1) exact_column(&group.a, type, run->worker_scratch, span.begin, span.end);
        for (int64_t at = span.begin; group.a.m > 1 && at < span.end; at += GROUP) {
            const exact_group g = {.begin = at,
                                   .end = at + GROUP < span.end ? at + GROUP : span.end};
            run_group(&group.a, type->layout, type->unpack,
                      exact_packed(&index, &group, span.group), g, run->worker_scratch);
        }
    }
}

#define EXACT_RUN(layout, name, unpack)                                                            \
    static bool accepts_##name(const wk_op *op) {                                                  \
        return linear_accepts(op, WK_LAYOUT_PANEL_##layout);                                       \
    }                                                                                              \
    static void unpack_##name(const uint8_t *panel, int64_t first, int64_t len, float *w) {        \
        unpack(WK_LAYOUT_PANEL_##layout, panel, first, len, w);                                    \
    }                                                                                              \
    static void column_##name(const linear_operands *a, int64_t begin, int64_t end) {              \
        run_column(a, WK_LAYOUT_PANEL_##layout, NULL, NULL, begin, end);                           \
    }                                                                                              \
    static void run_##name(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        static const exact_type type = {                                                           \
            WK_LAYOUT_PANEL_##layout,                                                              \
            unpack_##name,                                                                         \
            COLUMN_IS_UNPACKED ? NULL : column_##name,                                             \
        };                                                                                         \
        exact_run(run, &type, phase, begin, end);                                                  \
    }
#define EXACT_RUN_QUANTS(layout, name) EXACT_RUN(layout, name, EXACT_UNPACK)
EXACT_RUN(F32, f32, unpack_floats)
EXACT_RUN(F16, f16, unpack_floats)
EXACT_RUN(BF16, bf16, unpack_floats)
WK_PANEL_FORMATS(EXACT_RUN_QUANTS)
#undef EXACT_RUN
#undef EXACT_RUN_QUANTS

/* The kernels of a type; isa: the suffix of their names. */
#define EXACT_KERNEL_OF(opcode, operation, type, isa)                                              \
    const wk_cpu_kernel wk_##operation##_##type##_##isa = {                                        \
        .base.name = #operation "_" #type "_" #isa,                                                \
        .base.code = opcode,                                                                       \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_##type,                                                            \
        .n_phases = LINEAR_PHASES,                                                                 \
        .items = exact_items,                                                                      \
        .grain = exact_grain,                                                                      \
        .scratch_bytes = exact_scratch_bytes,                                                      \
        .worker_bytes = exact_worker_bytes,                                                        \
        .run = run_##type,                                                                         \
    };
#define EXACT_KERNEL(type, isa)                                                                    \
    EXACT_KERNEL_OF(WK_OP_LINEAR, linear, type, isa)                                               \
    EXACT_KERNEL_OF(WK_OP_LINEAR_EXPERTS, linear_experts, type, isa)

#endif
