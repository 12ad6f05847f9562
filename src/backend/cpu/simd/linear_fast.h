/* simd/linear_fast.h: linear and linear_experts with activations as integers, what the instruction
 * sets share.
 *
 * First the rows of x are quantized (linear_quantize.h). Then panels are multiplied by tiles of
 * those rows, the columns of y's transpose. A block's dot product is a whole number; the sums over
 * blocks are float32, in the order of k. So neither the number of columns nor that of threads
 * changes a bit. The including file defines what linear_bytes.h asks for, of which
 *
 *   FAST_FORMATS   X-list of block types (quant/layout.h)
 *   FAST_COLUMNS   of a tile with one panel; an even number
 *   FAST_PANELS    of a tile with one column: as many streams from memory
 *   FAST_HOLDS     whether registers hold a whole block of two panels, so that a tile of these
 * takes any number of columns up to FAST_COLUMNS FAST_SHARES    whether code is to be small rather
 * than the fastest there is for every layout: all have the same tiles, over unpacked blocks, and a
 * few one for a single column
 */
#ifndef WK_SIMD_LINEAR_FAST_H
#define WK_SIMD_LINEAR_FAST_H

#include "backend/cpu/simd/linear_pack.h"

#include <assert.h>

/* With a single column the weights come from memory, and only once. Long panels are read as several
 * streams, which the processor fetches ahead by itself; of short ones it would lose the track at
 * each end, so one follows the other and is fetched ahead by hand. */
enum { LONG_PANEL = 32 << 10, PREFETCH_BYTES = 16 << 10 };

/* All tiles take a group of panels before the next group is read, so that it comes from the cache.
 * A group has at most GROUP_PANELS panels, and GROUP_BYTES where they are unpacked. */
enum { GROUP_PANELS = 8, GROUP_BYTES = 512 << 10 };

/* Where a tile of y goes. */
typedef struct fast_target {
    float *const *y;       /* [columns] */
    int64_t row;           /* the first one */
    const float *bias;     /* NULL: none */
    int64_t rows, columns; /* that exist; rows may be more than a tile's */
} fast_target;

WK_INLINE void store_tile(const fast_target *to, int c, int p, v16 value) {
    const int64_t rows = to->rows - p * WK_PANEL_ROWS;
    if (c >= to->columns || rows <= 0) return;
    float *const y = to->y[c] + to->row + p * WK_PANEL_ROWS;
    if (to->bias != NULL) value = v16_add(value, v16_load_rows(to->bias + p * WK_PANEL_ROWS, rows));
    v16_store_rows(y, value, rows);
}

/* high, low: what a tile sums up of the high planes of all blocks, and of the low ones of those
 * that are fine. */
WK_INLINE void clear_sums(v16 sums[FAST_PANELS][FAST_COLUMNS], int panels, int width) {
    for (int p = 0; p < panels; p++)
        for (int c = 0; c < width; c++) sums[p][c] = v16_zero();
}

WK_INLINE void store_sums(const fast_target *to, v16 high[FAST_PANELS][FAST_COLUMNS],
                          v16 low[FAST_PANELS][FAST_COLUMNS], int panels, int width) {
    for (int c = 0; c < width; c++) {
        for (int p = 0; p < panels; p++) {
            const v16 sum = FAST_PLANES > 1 ? v16_add(high[p][c], low[p][c]) : high[p][c];
            store_tile(to, c, p, sum);
        }
    }
}

/* The low planes of the columns whose bits are set: there are few. */
WK_INLINE void add_lows(const tile_form *f, const panel_block at[], const fast_row x[], int64_t b,
                        uint32_t fine, v16 low[FAST_PANELS][FAST_COLUMNS]) {
    panel_block again[FAST_PANELS];
    if (FAST_PLANES == 1 || fine == 0) return;
    for (int p = 0; p < f->panels; p++) again[p] = block_again(at[p]);
    for (; fine != 0; fine &= fine - 1) {
        const int c = f->width == 1 ? 0 : __builtin_ctz(fine);
        const fast_row from = row_from(&x[c], b);
        add_low(f, again, &from, c, low);
        if (f->width == 1) return;
    }
}

/* panel: panels, or unpacked blocks of them; x: the tile's rows. */
WK_INLINE void run_tile(const tile_form *f, const void *const panel[], int64_t n_blocks,
                        const fast_row x[], const fast_target *to) {
    v16 high[FAST_PANELS][FAST_COLUMNS], low[FAST_PANELS][FAST_COLUMNS];
    clear_sums(high, f->panels, f->width);
    clear_sums(low, f->panels, f->width);
    for (int64_t b = 0; b < n_blocks; b++) {
        panel_block at[FAST_PANELS];
        fast_row from[FAST_COLUMNS];
        uint32_t fine = 0;
        for (int p = 0; p < f->panels; p++) at[p] = form_block(f, panel[p], b);
        for (int c = 0; c < f->width; c++) {
            from[c] = row_from(&x[c], b);
            fine |= (uint32_t)is_fine(&from[c]) << c;
        }
        if (f->width == 1 && f->panels == 1 && !f->is_unpacked)
            for (int i = 0; i < wk_panel_block_bytes(f->layout); i += 64)
                wk_prefetch(at[0].scales + PREFETCH_BYTES + i);
        add_high(f, at, from, high);
        add_lows(f, at, x, b, fine, low);
    }
    store_sums(to, high, low, f->panels, f->width);
}

/* Blocks of panels by n columns, two at a time. Which are fine comes back as bits. */
WK_INLINE uint32_t add_pairs(const tile_form *two, const panel_block at[], const fast_row x[],
                             int64_t b, int n, v16 high[FAST_PANELS][FAST_COLUMNS]) {
    v16 sum[FAST_PANELS][FAST_COLUMNS];
    uint32_t fine = 0;
    for (int c = 0; c < n; c += 2) {
        const fast_row from[2] = {row_from(&x[c], b), row_from(&x[c + 1], b)};
        fine |= ((uint32_t)from[0].blocks->is_fine | (uint32_t)from[1].blocks->is_fine << 1) << c;
        for (int p = 0; p < two->panels; p++)
            for (int i = 0; i < 2; i++) sum[p][i] = high[p][c + i];
        add_high(two, at, from, sum);
        for (int p = 0; p < two->panels; p++)
            for (int i = 0; i < 2; i++) high[p][c + i] = sum[p][i];
    }
    return fine;
}

/* Panels by the columns that there are, whose quants stay in registers for all of them. Columns
 * are an even number: the last one may count twice. */
WK_INLINE void run_held(const tile_form *f, const void *const panel[], int64_t n_blocks,
                        const fast_row x[], const fast_target *to) {
    const int n = (int)(to->columns + 1) / 2 * 2;
    const tile_form two = tile_form_of(f->layout, f->panels, 2, true);
    v16 high[FAST_PANELS][FAST_COLUMNS], low[FAST_PANELS][FAST_COLUMNS];
    clear_sums(high, f->panels, n);
    clear_sums(low, f->panels, n);
    for (int64_t b = 0; b < n_blocks; b++) {
        unpacked_block held[FAST_PANELS];
        panel_block at[FAST_PANELS];
        for (int p = 0; p < f->panels; p++) {
            const panel_block block = form_block(f, panel[p], b);
            if (f->is_unpacked) {
                held[p] = *unpacked_at(&block);
            } else {
                for (int i = 0; i < wk_panel_block_bytes(f->layout); i += 64)
                    wk_prefetch(block.scales + PREFETCH_BYTES + i);
                unpack_block(f->layout, &block, &held[p]);
            }
            at[p].quants = (const uint8_t *)(const void *)&held[p];
        }
        const uint32_t fine = add_pairs(&two, at, x, b, n, high);
        add_lows(&two, at, x, b, fine, low);
    }
    store_sums(to, high, low, f->panels, n);
}

/* Columns of a tile; those past the end repeat the last one. */
typedef struct fast_columns {
    fast_row x[FAST_COLUMNS];
    float *y[FAST_COLUMNS];
    int64_t n;
} fast_columns;

WK_INLINE void find_columns(const linear_operands *a, const fast_packed *packed, int64_t first,
                            fast_columns *columns) {
    assert(first < a->m);
    columns->n = a->m - first < FAST_COLUMNS ? a->m - first : FAST_COLUMNS;
    for (int64_t c = 0; c < FAST_COLUMNS; c++) {
        const int64_t i = first + (c < columns->n ? c : columns->n - 1);
        columns->x[c] = row_of_packed(packed, packed_row(a, linear_row(a, i)));
        columns->y[c] = linear_at(a, &a->y, i);
    }
}

/* Rows of panels [panel, end) of y. */
static fast_target target_at(const linear_operands *a, int64_t panel, int64_t end,
                             const fast_columns *columns) {
    const int64_t row = panel * WK_PANEL_ROWS;
    const int64_t last = end * WK_PANEL_ROWS < a->n ? end * WK_PANEL_ROWS : a->n;
    return (fast_target){
        .y = columns->y,
        .row = row,
        .bias = a->bias != NULL ? a->bias + row : NULL,
        .rows = last - row,
        .columns = columns->n,
    };
}

/* Panels [begin, end). */
typedef struct fast_group {
    int64_t begin, end;
    const uint8_t *panels;          /* the first one */
    const unpacked_block *unpacked; /* [end - begin][n_blocks], where has_unpacked */
    int64_t n_blocks;               /* of a panel */
} fast_group;

/* Layouts that a single column reads directly even where code is to be small. */
WK_INLINE bool is_direct(const wk_layout layout) {
    return !is_slow(layout) || layout == WK_LAYOUT_PANEL_Q6_K;
}

/* Whether full tiles read unpacked blocks: where there are any, for narrower ones it does not pay.
 */
WK_INLINE bool has_unpacked(const wk_layout layout, int64_t m) {
    if (FAST_SHARES) return m > 1 || !is_direct(layout);
    return is_slow(layout) && m > FAST_COLUMNS / 2;
}

/* The group by one tile of columns, of which no more than width exist. */
WK_INLINE_FORM void run_tiles(const linear_operands *a, const tile_form *f, const fast_group *g,
                              const fast_columns *columns) {
    for (int64_t at = g->begin; at < g->end; at += f->panels) {
        const void *panel[FAST_PANELS];
        for (int p = 0; p < f->panels; p++) { /* those past the end repeat the last one */
            const int64_t i = (at + p < g->end ? at + p : g->end - 1) - g->begin;
            panel[p] = f->is_unpacked ? (const void *)(g->unpacked + i * g->n_blocks)
                                      : (const void *)(g->panels + i * a->panel_bytes);
        }
        const fast_target to = target_at(a, at, g->end, columns);
        if (FAST_HOLDS && f->width > 1)
            run_held(f, panel, g->n_blocks, columns->x, &to);
        else
            run_tile(f, panel, g->n_blocks, columns->x, &to);
    }
}

/* What all layouts have in common. */
static void run_shared(const linear_operands *a, wk_layout layout, const fast_group *g,
                       const fast_columns *columns) {
    if (columns->n == 1) {
        const tile_form f = tile_form_of(layout, 1, 1, true);
        run_tiles(a, &f, g, columns);
    } else {
        const tile_form f = tile_form_of(layout, 1, FAST_COLUMNS, true);
        run_tiles(a, &f, g, columns);
    }
}

/* Each form of a tile is a function of its own: clang took 20 s for a type whose tiles were one
 * function, and 5 s for these. */
typedef void fast_tiles(const linear_operands *a, const fast_group *g, const fast_columns *columns);

/* Blocks [first, first + n) of a panel. */
typedef void unpack_blocks_fn(const uint8_t *panel, int64_t first, int64_t n, unpacked_block *to);

/* The functions of a layout. With FAST_SHARES one and unpack are all there is. */
typedef struct fast_form {
    wk_layout layout;
    fast_tiles *one;     /* 1 column by 1 panel */
    fast_tiles *streams; /* 1 column by FAST_PANELS panels */
    fast_tiles *half;    /* FAST_COLUMNS / 2 columns by 1 panel; with FAST_HOLDS 2 to all by 2 */
    fast_tiles *full;    /* FAST_COLUMNS columns by 1 panel, unpacked where has_unpacked */
    unpack_blocks_fn *unpack;
} fast_form;

static void run_columns(const linear_operands *a, const fast_form *form, const fast_group *g,
                        const fast_columns *columns) {
    if (FAST_SHARES && has_unpacked(form->layout, a->m)) {
        run_shared(a, form->layout, g, columns);
    } else if (FAST_SHARES || (columns->n == 1 && a->panel_bytes < LONG_PANEL)) {
        form->one(a, g, columns);
    } else if (columns->n == 1) {
        form->streams(a, g, columns);
    } else if (columns->n <= FAST_COLUMNS / 2 || (FAST_HOLDS && !is_slow(form->layout))) {
        form->half(a, g, columns);
    } else {
        form->full(a, g, columns);
    }
}

static void run_group(const linear_operands *a, const fast_form *form, const fast_group *g,
                      const fast_packed *packed) {
    for (int64_t first = 0; first < a->m; first += FAST_COLUMNS) {
        fast_columns columns;
        find_columns(a, packed, first, &columns);
        run_columns(a, form, g, &columns);
    }
}

WK_INLINE_FORM void unpack_blocks(const wk_layout layout, const uint8_t *panel, int64_t first,
                                  int64_t n, unpacked_block *to) {
    for (int64_t b = first; b < first + n; b++) {
        const panel_block block = block_find(layout, panel, b);
        unpack_block(layout, &block, to++);
    }
}

/* Panels of a group. */
static int64_t group_panels(const wk_layout layout, int64_t m, int64_t k) {
    if (!has_unpacked(layout, m)) return GROUP_PANELS;
    if (FAST_SHARES) return 1;
    const int64_t bytes = k / QUANT_BLOCK * (int64_t)sizeof(unpacked_block);
    const int64_t panels = GROUP_BYTES / (bytes + 1); /* k may be 0 */
    return panels < 1 ? 1 : panels < GROUP_PANELS ? panels : GROUP_PANELS;
}

/* Panels [begin, end) by the rows of one weight. */
static void run_panels(const linear_operands *a, const fast_form *form, int64_t begin, int64_t end,
                       const fast_packed *packed, unpacked_block *unpacked) {
    assert(a->k % QUANT_BLOCK == 0 && (unpacked || !has_unpacked(form->layout, a->m)));
    const int64_t step = group_panels(form->layout, a->m, a->k);
    for (int64_t at = begin; at < end; at += step) {
        const fast_group g = {
            .begin = at,
            .end = at + step < end ? at + step : end,
            .panels = a->weight + at * a->panel_bytes,
            .unpacked = unpacked,
            .n_blocks = a->k / QUANT_BLOCK,
        };
        for (int64_t p = 0; has_unpacked(form->layout, a->m) && p < g.end - g.begin; p++)
            form->unpack(g.panels + p * a->panel_bytes, 0, g.n_blocks, unpacked + p * g.n_blocks);
        run_group(a, form, &g, packed);
    }
}

static void pack_rows(const wk_op *op, wk_layout layout, const fast_packed *packed, int64_t begin,
                      int64_t end) {
    const linear_operands a = linear_get(op);
    const tile_form f = tile_form_of(layout, 1, 1, false);
    for (int64_t row = begin; row < end; row++) pack_row(&a, &f, row, packed);
}

static void run_range(const wk_cpu_run *run, const fast_form *form, int phase, int64_t begin,
                      int64_t end) {
    const linear_index index = linear_index_in(run->op, run->scratch);
    const fast_packed packed = packed_in(run->op, index.packed);
    if (phase == LINEAR_SORT) linear_sort(run);
    if (phase == LINEAR_PACK) pack_rows(run->op, form->layout, &packed, begin, end);
    while (phase == LINEAR_MULTIPLY && begin < end) {
        const linear_span span = linear_span_at(run->op, begin, end);
        const linear_group group = linear_group_at(run, &index, span.group);
        if (group.a.m > 0)
            run_panels(&group.a, form, span.begin, span.end, &packed, run->worker_scratch);
        begin = span.next;
    }
}

#define FAST_TILES(dtype, type, form, n_panels, width, is_unpacked)                                \
    static void type##_##form(const linear_operands *a, const fast_group *g,                       \
                              const fast_columns *columns) {                                       \
        if (FAST_SHARES && !is_direct(WK_LAYOUT_PANEL_##dtype)) return;    /* run_shared */        \
        if (FAST_HOLDS && width == FAST_COLUMNS && !(is_unpacked)) return; /* half */              \
        const tile_form f = tile_form_of(WK_LAYOUT_PANEL_##dtype, n_panels, width, is_unpacked);   \
        run_tiles(a, &f, g, columns);                                                              \
    }
#define FAST_RUN(dtype, type)                                                                      \
    FAST_TILES(dtype, type, one, 1, 1, false)                                                      \
    FAST_TILES(dtype, type, streams, FAST_PANELS, 1, false)                                        \
    FAST_TILES(dtype, type, half, FAST_HOLDS ? 2 : 1, FAST_COLUMNS / 2, false)                     \
    FAST_TILES(dtype, type, full, FAST_HOLDS ? 2 : 1, FAST_COLUMNS,                                \
               is_slow(WK_LAYOUT_PANEL_##dtype))                                                   \
    static void unpack_##type(const uint8_t *panel, int64_t first, int64_t n,                      \
                              unpacked_block *to) {                                                \
        unpack_blocks(WK_LAYOUT_PANEL_##dtype, panel, first, n, to);                               \
    }                                                                                              \
    static bool accepts_##type(const wk_op *op) {                                                  \
        return linear_accepts(op, WK_LAYOUT_PANEL_##dtype);                                        \
    }                                                                                              \
    static void run_##type(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        static const fast_form form = {                                                            \
            .layout = WK_LAYOUT_PANEL_##dtype,                                                     \
            .one = type##_one,                                                                     \
            .streams = FAST_SHARES ? NULL : type##_streams,                                        \
            .half = FAST_SHARES ? NULL : type##_half,                                              \
            .full = FAST_SHARES ? NULL : type##_full,                                              \
            .unpack = unpack_##type,                                                               \
        };                                                                                         \
        run_range(run, &form, phase, begin, end);                                                  \
    }
FAST_FORMATS(FAST_RUN)
#undef FAST_RUN
#undef FAST_TILES

static int64_t items(const wk_op *op, int phase) {
    if (phase == LINEAR_SORT) return linear_sort_items(op);
    return phase == LINEAR_PACK ? packed_rows(op) : linear_multiply_items(op);
}

/* Panels that a tile takes: with more, threads would not share a narrow product evenly. */
static int64_t grain(const wk_op *op, int phase) {
    if (phase != LINEAR_MULTIPLY) return 1;
    if (linear_has_experts(op)) return LINEAR_GROUP_ITEMS;
    return linear_m(op) == 1 && linear_get(op).panel_bytes >= LONG_PANEL ? FAST_PANELS : 2;
}

static uint64_t scratch_bytes(const wk_op *op) { return linear_index_bytes(op) + packed_bytes(op); }

static uint64_t worker_bytes(const wk_op *op) {
    const int64_t m = linear_m(op), k = linear_k(op);
    const wk_layout layout = (wk_layout)wk_src(op, 1)->layout;
    if (!has_unpacked(layout, m)) return 0;
    return (uint64_t)(group_panels(layout, m, k) * (k / QUANT_BLOCK)) * sizeof(unpacked_block);
}

/* The kernels of a type; isa: the suffix of their names, isa_needs: WK_CPU_* features. */
#define FAST_KERNEL_OF(opcode, operation, type, isa, isa_needs)                                    \
    const wk_cpu_kernel wk_##operation##_##type##_fast_##isa = {                                   \
        .base.name = #operation "_" #type "_fast_" #isa,                                           \
        .base.code = opcode,                                                                       \
        .base.needs = isa_needs,                                                                   \
        .base.is_fast = true,                                                                      \
        .base.accepts = accepts_##type,                                                            \
        .n_phases = LINEAR_PHASES,                                                                 \
        .items = items,                                                                            \
        .grain = grain,                                                                            \
        .scratch_bytes = scratch_bytes,                                                            \
        .worker_bytes = worker_bytes,                                                              \
        .run = run_##type,                                                                         \
    };
#define FAST_KERNEL(type, isa, isa_needs)                                                          \
    FAST_KERNEL_OF(WK_OP_LINEAR, linear, type, isa, isa_needs)                                     \
    FAST_KERNEL_OF(WK_OP_LINEAR_EXPERTS, linear_experts, type, isa, isa_needs)

#endif
