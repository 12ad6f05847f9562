/* simd/linear_fast.h: linear with activations as integers, what the instruction sets share.
 *
 * Phase 0 quantizes the rows of x (linear_quantize.h). Phase 1 multiplies panels by tiles of those
 * rows, the columns of y's transpose. A block's dot product is a whole number; the sums over blocks
 * are float32, in the order of k. So neither the number of columns nor that of threads changes a
 * bit. The including file defines what linear_bytes.h asks for, of which
 *
 *   FAST_COLUMNS   of a tile with one panel; an even number
 *   FAST_PANELS    of a tile with one column: as many streams from memory */
#ifndef WK_SIMD_LINEAR_FAST_H
#define WK_SIMD_LINEAR_FAST_H

#include "backend/cpu/simd/linear_bytes.h"
#include "backend/cpu/simd/linear_operands.h"

/* With a single column the weights come from memory, and only once. Long panels are read as several
 * streams, which the processor fetches ahead by itself; of short ones it would lose the track at
 * each end, so one follows the other and is fetched ahead by hand. */
enum { LONG_PANEL = 32 << 10, PREFETCH_BYTES = 16 << 10 };

/* All tiles take a group of panels before the next group is read, so that it comes from the cache:
 * so many panels, and bytes of them where they are unpacked. */
enum { GROUP_PANELS = 8, GROUP_BYTES = 512 << 10 };

/* Row of x to its place in packed, [m][k / QUANT_BLOCK]. */
static void pack_row(const linear_operands *a, int64_t row, fast_block *packed) {
    const float *const x = a->x + row * a->x_stride;
    const float fine_above = quant_fine_above(x, a->k);
    for (int64_t b = 0; b < a->k / QUANT_BLOCK; b++)
        pack_block(x + b * QUANT_BLOCK, fine_above, packed + row * (a->k / QUANT_BLOCK) + b);
}

/* Where a tile of y goes. */
typedef struct fast_target {
    float *y;
    const float *bias; /* NULL: none */
    int64_t y_stride;
    int64_t rows, columns; /* that exist; may be more than a tile's */
} fast_target;

WK_INLINE void store_tile(const fast_target *to, int c, int p, v16 value) {
    const int64_t rows = to->rows - p * WK_PANEL_ROWS;
    if (c >= to->columns || rows <= 0) return;
    float *const y = to->y + c * to->y_stride + p * WK_PANEL_ROWS;
    if (to->bias != NULL) value = v16_add(value, v16_load_rows(to->bias + p * WK_PANEL_ROWS, rows));
    v16_store_rows(y, value, rows);
}

/* panel: panels, or unpacked blocks of them; x: the tile's rows. */
WK_INLINE void run_tile(const tile_form f, const void *const panel[], int64_t n_blocks,
                        const fast_block *const x[], const fast_target *to) {
    v16 total[FAST_PANELS][FAST_COLUMNS];
    for (int p = 0; p < f.panels; p++)
        for (int c = 0; c < f.width; c++) total[p][c] = v16_zero();
    for (int64_t b = 0; b < n_blocks; b++) {
        panel_block at[FAST_PANELS];
        const fast_block *block[FAST_COLUMNS];
        for (int p = 0; p < f.panels; p++) at[p] = form_block(f, panel[p], b);
        for (int c = 0; c < f.width; c++) block[c] = x[c] + b;
        if (f.width == 1 && f.panels == 1)
            for (int i = 0; i < wk_panel_block_bytes(f.layout); i += 64)
                wk_prefetch(at[0].scales + PREFETCH_BYTES + i);
        add_block(f, at, block, total);
    }
    for (int c = 0; c < f.width; c++)
        for (int p = 0; p < f.panels; p++) store_tile(to, c, p, total[p][c]);
}

/* The tile's rows of x; those past the end repeat the last one. */
WK_INLINE void tile_rows(const linear_operands *a, const fast_block *packed, int64_t tile,
                         const fast_block *x[FAST_COLUMNS]) {
    for (int64_t c = 0; c < FAST_COLUMNS; c++) {
        const int64_t row = tile * FAST_COLUMNS + c;
        x[c] = packed + (row < a->m ? row : a->m - 1) * (a->k / QUANT_BLOCK);
    }
}

/* Rows of panels [panel, end) of y, and the columns of the tile. */
static fast_target target_at(const linear_operands *a, int64_t panel, int64_t end, int64_t tile) {
    const int64_t row = panel * WK_PANEL_ROWS, column = tile * FAST_COLUMNS;
    const int64_t last = end * WK_PANEL_ROWS < a->n ? end * WK_PANEL_ROWS : a->n;
    return (fast_target){
        .y = a->y + column * a->y_stride + row,
        .bias = a->bias != NULL ? a->bias + row : NULL,
        .y_stride = a->y_stride,
        .rows = last - row,
        .columns = a->m - column,
    };
}

/* Panels [begin, end). */
typedef struct fast_group {
    int64_t begin, end;
    const uint8_t *panels;          /* the first one */
    const unpacked_block *unpacked; /* [end - begin][n_blocks], where has_unpacked */
    int64_t n_blocks;               /* of a panel */
} fast_group;

/* Whether full tiles read unpacked blocks: where there are any, for narrower ones it does not pay.
 */
WK_INLINE bool has_unpacked(const wk_layout layout, int64_t m) {
    return is_slow(layout) && m > FAST_COLUMNS / 2;
}

/* The group by one tile of columns, of which no more than width exist. */
WK_INLINE void run_tiles(const linear_operands *a, const tile_form f, const fast_group *g,
                         const fast_block *const x[], int64_t tile) {
    for (int64_t at = g->begin; at < g->end; at += f.panels) {
        const void *panel[FAST_PANELS];
        for (int p = 0; p < f.panels; p++) { /* those past the end repeat the last one */
            const int64_t i = (at + p < g->end ? at + p : g->end - 1) - g->begin;
            panel[p] = f.is_unpacked ? (const void *)(g->unpacked + i * g->n_blocks)
                                     : (const void *)(g->panels + i * a->panel_bytes);
        }
        const fast_target to = target_at(a, at, g->end, tile);
        run_tile(f, panel, g->n_blocks, x, &to);
    }
}

WK_INLINE void run_group(const linear_operands *a, const wk_layout layout, const fast_group *g,
                         const fast_block *packed) {
    for (int64_t t = 0; t * FAST_COLUMNS < a->m; t++) {
        const fast_block *x[FAST_COLUMNS];
        tile_rows(a, packed, t, x);
        const int64_t columns = a->m - t * FAST_COLUMNS;
        if (columns == 1 && a->panel_bytes < LONG_PANEL) {
            run_tiles(a, (tile_form){layout, 1, 1, false}, g, x, t);
        } else if (columns == 1) {
            run_tiles(a, (tile_form){layout, FAST_PANELS, 1, false}, g, x, t);
        } else if (columns <= FAST_COLUMNS / 2) {
            run_tiles(a, (tile_form){layout, 1, FAST_COLUMNS / 2, false}, g, x, t);
        } else {
            run_tiles(a, (tile_form){layout, 1, FAST_COLUMNS, is_slow(layout)}, g, x, t);
        }
    }
}

WK_INLINE void unpack_panels(const wk_layout layout, const fast_group *g, int64_t panel_bytes,
                             unpacked_block *to) {
    for (int64_t p = 0; p < g->end - g->begin; p++) {
        for (int64_t b = 0; b < g->n_blocks; b++) {
            const panel_block block = block_find(layout, g->panels + p * panel_bytes, b);
            unpack_block(layout, &block, to++);
        }
    }
}

/* Panels of a group. */
WK_INLINE int64_t group_panels(const wk_layout layout, int64_t m, int64_t k) {
    if (!has_unpacked(layout, m)) return GROUP_PANELS;
    const int64_t bytes = k / QUANT_BLOCK * (int64_t)sizeof(unpacked_block);
    const int64_t panels = GROUP_BYTES / (bytes + 1); /* k may be 0 */
    return panels < 1 ? 1 : panels < GROUP_PANELS ? panels : GROUP_PANELS;
}

WK_INLINE void run_range(const wk_cpu_run *run, const wk_layout layout, int phase, int64_t begin,
                         int64_t end) {
    const linear_operands a = linear_get(run->op);
    fast_block *const packed = run->scratch;
    if (phase == 0) {
        for (int64_t row = begin; row < end; row++) pack_row(&a, row, packed);
        return;
    }
    const int64_t step = group_panels(layout, a.m, a.k);
    for (int64_t at = begin; at < end; at += step) {
        const fast_group g = {
            .begin = at,
            .end = at + step < end ? at + step : end,
            .panels = a.weight + at * a.panel_bytes,
            .unpacked = run->worker_scratch,
            .n_blocks = a.k / QUANT_BLOCK,
        };
        if (has_unpacked(layout, a.m))
            unpack_panels(layout, &g, a.panel_bytes, run->worker_scratch);
        run_group(&a, layout, &g, packed);
    }
}

#define FAST_RUN(layout, name)                                                                     \
    static bool accepts_##name(const wk_op *op) {                                                  \
        return linear_accepts(op, WK_LAYOUT_PANEL_##layout);                                       \
    }                                                                                              \
    static void run_##name(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        run_range(run, WK_LAYOUT_PANEL_##layout, phase, begin, end);                               \
    }
WK_PANEL_FORMATS(FAST_RUN)
#undef FAST_RUN

static int64_t items(const wk_op *op, int phase) {
    const int64_t m = wk_src(op, 0)->extent[0];
    return phase == 0 || m == 0 ? m : linear_panels(op);
}

static int64_t grain(const wk_op *op, int phase) {
    (void)op;
    return phase == 0 ? 1 : FAST_PANELS;
}

static size_t scratch_bytes(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return (size_t)(x->extent[0] * (x->extent[1] / QUANT_BLOCK)) * sizeof(fast_block);
}

static size_t worker_bytes(const wk_op *op) {
    const int64_t m = wk_src(op, 0)->extent[0], k = wk_src(op, 0)->extent[1];
    const wk_layout layout = (wk_layout)wk_src(op, 1)->layout;
    if (!has_unpacked(layout, m)) return 0;
    return (size_t)(group_panels(layout, m, k) * (k / QUANT_BLOCK)) * sizeof(unpacked_block);
}

/* The kernel of a type; isa: the suffix of its name, isa_needs: WK_CPU_* features. */
#define FAST_KERNEL(type, isa, isa_needs)                                                          \
    const wk_cpu_kernel wk_linear_##type##_fast_##isa = {                                          \
        .base = {.name = "linear_" #type "_fast_" #isa, .is_fast = true},                          \
        .code = WK_OP_LINEAR,                                                                      \
        .needs = isa_needs,                                                                        \
        .accepts = accepts_##type,                                                                 \
        .n_phases = 2,                                                                             \
        .items = items,                                                                            \
        .grain = grain,                                                                            \
        .scratch_bytes = scratch_bytes,                                                            \
        .worker_bytes = worker_bytes,                                                              \
        .run = run_##type,                                                                         \
    };

#endif
