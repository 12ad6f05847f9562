/* simd/linear_fast.h: linear with activations as integers; what the instruction sets share.
 *
 * Phase 0 quantizes x (linear_quantize.h) into tiles of up to FAST_COLUMNS columns; phase 1
 * multiplies FAST_PANELS panels at a time with them. A block's dot product is a whole number; the
 * sums over blocks are float32, in the order of k. The file that includes this one defines the
 * tile:
 *
 *   FAST_COLUMNS, FAST_PANELS
 *   block_words(width)  size of a packed block of a tile of width columns
 *   pack_block(x, width, block)   one column of it; block points to the column's first word
 *   add_block(layout, panels, width, at, block, total)   total += the block's part of y */
#ifndef WK_SIMD_LINEAR_FAST_H
#define WK_SIMD_LINEAR_FAST_H

#include "backend/cpu/simd/linear_operands.h"

enum { PREFETCH_BYTES = 8192 };

WK_INLINE int64_t tile_words(int64_t k) { return k / QUANT_BLOCK * block_words(FAST_COLUMNS); }

/* 1, 2 or FAST_COLUMNS, which is 4. */
WK_INLINE int64_t tile_width(int64_t m, int64_t t) {
    const int64_t left = m - t * FAST_COLUMNS;
    return left > 2 ? FAST_COLUMNS : left;
}

static const float zeros[QUANT_BLOCK];

static void pack_tile(const linear_operands *a, int64_t t, int32_t *packed) {
    const int64_t width = tile_width(a->m, t), stride = block_words(width);
    int32_t *const tile = packed + t * tile_words(a->k);
    for (int64_t c = 0; c < width; c++) {
        const int64_t row = t * FAST_COLUMNS + c;
        const float *const x = row < a->m ? a->x + row * a->x_stride : NULL;
        for (int64_t b = 0; b < a->k / QUANT_BLOCK; b++)
            pack_block(x != NULL ? x + b * QUANT_BLOCK : zeros, width, tile + b * stride + c);
    }
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

WK_INLINE void run_tile(const wk_layout layout, const int panels, const int width,
                        const uint8_t *panel, int64_t panel_stride, int64_t k,
                        const int32_t *packed, const fast_target *to) {
    v16 total[FAST_PANELS][FAST_COLUMNS];
    for (int p = 0; p < panels; p++)
        for (int c = 0; c < width; c++) total[p][c] = v16_zero();
    for (int64_t b = 0; b < k / QUANT_BLOCK; b++, packed += block_words(width)) {
        panel_block at[FAST_PANELS];
        for (int p = 0; p < panels; p++) at[p] = block_find(layout, panel + p * panel_stride, b);
        if (panels == 1) /* the weights come from memory, and only once */
            for (int i = 0; i < wk_panel_block_bytes(layout); i += 64)
                _mm_prefetch((const char *)at[0].scales + PREFETCH_BYTES + i, _MM_HINT_T0);
        add_block(layout, panels, width, at, packed, total);
    }
    for (int c = 0; c < width; c++)
        for (int p = 0; p < panels; p++) store_tile(to, c, p, total[p][c]);
}

/* One panel: the form for the few columns of one tile, where the panels stream from memory. */
WK_INLINE void run_panel(const wk_layout layout, int64_t width, const uint8_t *panel, int64_t k,
                         const int32_t *packed, const fast_target *to) {
    switch (width) {
    case 1: run_tile(layout, 1, 1, panel, 0, k, packed, to); break;
    case 2: run_tile(layout, 1, 2, panel, 0, k, packed, to); break;
    default: run_tile(layout, 1, FAST_COLUMNS, panel, 0, k, packed, to); break;
    }
}

static fast_target target_at(const linear_operands *a, int64_t panel, int64_t tile) {
    const int64_t row = panel * WK_PANEL_ROWS, column = tile * FAST_COLUMNS;
    return (fast_target){
        .y = a->y + column * a->y_stride + row,
        .bias = a->bias != NULL ? a->bias + row : NULL,
        .y_stride = a->y_stride,
        .rows = a->n - row,
        .columns = a->m - column,
    };
}

/* All columns of panels at and at + 1, unless that is end. */
WK_INLINE void run_pair(const linear_operands *a, const wk_layout layout, const int32_t *packed,
                        int64_t at, int64_t end) {
    const uint8_t *const panel = a->weight + at * a->panel_bytes;
    const bool is_paired = a->m > FAST_COLUMNS && at + FAST_PANELS <= end;
    const int64_t full = is_paired ? a->m / FAST_COLUMNS : 0;
    for (int64_t t = 0; t < full; t++) {
        const fast_target to = target_at(a, at, t);
        run_tile(layout, FAST_PANELS, FAST_COLUMNS, panel, a->panel_bytes, a->k,
                 packed + t * tile_words(a->k), &to);
    }
    for (int64_t t = full; t * FAST_COLUMNS < a->m; t++) {
        for (int p = 0; p < FAST_PANELS && at + p < end; p++) {
            const fast_target to = target_at(a, at + p, t);
            run_panel(layout, tile_width(a->m, t), panel + p * a->panel_bytes, a->k,
                      packed + t * tile_words(a->k), &to);
        }
    }
}

WK_INLINE void run_panels(const wk_cpu_run *run, const wk_layout layout, int phase, int64_t begin,
                          int64_t end) {
    const linear_operands a = linear_get(run->op);
    int32_t *const packed = run->scratch;
    if (phase == 0) {
        for (int64_t t = begin; t < end; t++) pack_tile(&a, t, packed);
    } else {
        for (int64_t at = begin; at < end; at += FAST_PANELS) run_pair(&a, layout, packed, at, end);
    }
}

#define FAST_RUN(layout, name)                                                                     \
    static bool accepts_##name(const wk_op *op) {                                                  \
        return linear_accepts(op, WK_LAYOUT_PANEL_##layout);                                       \
    }                                                                                              \
    static void run_##name(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        run_panels(run, WK_LAYOUT_PANEL_##layout, phase, begin, end);                              \
    }
WK_PANEL_FORMATS(FAST_RUN)
#undef FAST_RUN

static int64_t n_tiles(const wk_op *op) {
    return (wk_src(op, 0)->extent[0] + FAST_COLUMNS - 1) / FAST_COLUMNS;
}

static int64_t items(const wk_op *op, int phase) {
    if (phase == 0) return n_tiles(op);
    return n_tiles(op) == 0 ? 0 : linear_panels(op);
}

static int64_t grain(const wk_op *op, int phase) {
    (void)op;
    return phase == 0 ? 1 : FAST_PANELS;
}

static size_t scratch_bytes(const wk_op *op) {
    return (size_t)(n_tiles(op) * tile_words(wk_src(op, 0)->extent[1])) * sizeof(int32_t);
}

#endif
