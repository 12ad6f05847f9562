/* simd/linear_bytes.h: the blocks of linear_fast.h by dot products of quants that are bytes. The
 * including file brings linear_simd_*.h and defines
 *
 *   FAST_COLUMNS, FAST_PANELS   (linear_fast.h)
 *   fast_value                  what x is multiplied as: int8_t, fine blocks in FAST_PLANES = 2
 *                               planes, or int16_t, where all blocks are fine in one
 *   fast_place(i)               where element i of a plane lies
 *   b64_unit(quants, i)         of 4 unsigned bytes of each row those that w16_dot takes for word i
 *   w16                         16 words of 32 bits, one of each row of a panel
 *   w16_set(word)               the same in all of them
 *   w16_add(a, b)
 *   w16_times_step(sum)         QUANT_STEP times that
 *   w16_float(sum)
 *   w16_dot(sum, unit, x, is_wide)
 *                               sum + unit . x by rows, x being a word of values
 *   WIDE_BIAS                   128, or 0 where w16_dot takes that off wide quants itself */
#ifndef WK_SIMD_LINEAR_BYTES_H
#define WK_SIMD_LINEAR_BYTES_H

enum { PANEL_IS_EXACT = 0 };

#include "backend/cpu/simd/linear_panel.h"
#include "backend/cpu/simd/linear_quantize.h"

/* A group are 4 elements, a unit as many as there are values in a word. */
enum { GROUPS = QUANT_BLOCK / 4, UNITS = QUANT_BLOCK * sizeof(fast_value) / sizeof(int32_t) };

/* One value of each element of a block. */
typedef struct fast_plane {
    int32_t base[QUANT_PARTS]; /* minus the sum of each half: times a bias, what the bias takes */
    fast_value values[QUANT_BLOCK];
} fast_plane;

enum { HIGH, LOW = FAST_PLANES - 1 };

/* A block of x: scale * (high + low / QUANT_STEP), or scale * high where there is one plane. Where
 * it is not fine low is zeros, and is read only for the sake of fine neighbours; so it lies last.
 */
typedef struct fast_block {
    float scale;
    float sum;       /* of the elements */
    int32_t is_fine; /* and in two planes */
    fast_plane planes[FAST_PLANES];
} fast_block;

/* v = QUANT_STEP * high + low, low being -64 ... 63. */
WK_INLINE void split_block(const quant_block *q, fast_plane *high, fast_plane *low) {
    /* Rounded down; the offset keeps the dividend positive. */
    const int32_t offset = QUANT_STEP * QUANT_STEP + QUANT_STEP / 2;
    for (int i = 0; i < QUANT_BLOCK; i++) {
        const int32_t h = (int32_t)((uint32_t)(q->v[i] + offset) / QUANT_STEP) - QUANT_STEP;
        high->values[fast_place(i)] = (fast_value)h;
        low->values[fast_place(i)] = (fast_value)(q->v[i] - h * QUANT_STEP);
    }
}

/* Sets the bases of a plane; gives the sum of its values. */
WK_INLINE int32_t sum_plane(fast_plane *plane) {
    int32_t first = 0, second = 0;
    for (int i = 0; i < QUANT_BLOCK / 2; i++) {
        first += plane->values[i];
        second += plane->values[i + QUANT_BLOCK / 2];
    }
    plane->base[0] = -first;
    plane->base[1] = -second;
    return first + second;
}

static void pack_block(const float *x, float fine_above, fast_block *block) {
    quant_block q;
    quant_make(x, fine_above, &q);
    fast_plane *const high = &block->planes[HIGH], *const low = &block->planes[LOW];
    block->is_fine = FAST_PLANES > 1 && q.is_fine;
    if (block->is_fine) {
        split_block(&q, high, low);
        const int32_t sum = QUANT_STEP * sum_plane(high) + sum_plane(low);
        block->sum = q.scale * (float)sum;
        block->scale = q.scale * (float)QUANT_STEP;
    } else {
        if (FAST_PLANES > 1) *low = (fast_plane){0};
        for (int i = 0; i < QUANT_BLOCK; i++) high->values[fast_place(i)] = (fast_value)q.v[i];
        block->sum = q.scale * (float)sum_plane(high);
        block->scale = q.scale;
    }
}

/* Whether quants have 8 bits; their bias is 128 then. */
WK_INLINE bool is_wide(const wk_layout layout) { return wk_panel_get(layout)->bias == 128; }

/* Whether unpacking a block takes long. */
WK_INLINE bool is_slow(const wk_layout layout) {
    const wk_panel_format *const format = wk_panel_get(layout);
    return format->code != WK_CODE_BITS || (format->bits != 8 && format->bits != 4);
}

/* What the compiler knows of a tile: how many panels by how many columns, whether the blocks are
 * unpacked_block, and the layout with what follows from it; of unpacked blocks only that is asked,
 * and may be a variable. */
typedef struct tile_form {
    wk_layout layout;
    int panels, width;
    bool is_unpacked;
    int parts, minima, bias;
} tile_form;

WK_INLINE tile_form tile_form_of(const wk_layout layout, int panels, int width, bool is_unpacked) {
    return (tile_form){
        .layout = layout,
        .panels = panels,
        .width = width,
        .is_unpacked = is_unpacked,
        .parts = block_parts(layout),
        .minima = block_minima(layout),
        .bias = is_wide(layout) ? WIDE_BIAS : wk_panel_get(layout)->bias,
    };
}

/* A block of a panel with its quants as bytes and its scales as floats: made once for all tiles of
 * columns where that takes long (is_slow). */
typedef struct unpacked_block {
    uint8_t units[UNITS][WK_PANEL_GROUP_BYTES];
    float step[QUANT_PARTS][WK_PANEL_ROWS], addend[QUANT_PARTS][WK_PANEL_ROWS];
} unpacked_block;

WK_INLINE void unpack_block(const wk_layout layout, const panel_block *block, unpacked_block *to) {
    for (int i = 0; i < GROUPS / 2; i++) {
        const b64 low = block_group(layout, block, 0, i), high = block_group(layout, block, 1, i);
        for (int u = 0; u < UNITS / GROUPS; u++) {
            b64_store(to->units[i * (UNITS / GROUPS) + u], b64_unit(low, u));
            b64_store(to->units[i * (UNITS / GROUPS) + u + UNITS / 2], b64_unit(high, u));
        }
    }
    for (int part = 0; part < block_parts(layout); part++)
        v16_store(to->step[part], block_step(layout, block, part));
    for (int part = 0; part < block_minima(layout); part++)
        v16_store(to->addend[part], block_addend(layout, block, part));
}

/* ---- Blocks of either kind ---- */

/* Block b of a panel, or of the unpacked blocks of one, to which quants points then. */
WK_INLINE panel_block form_block(const tile_form *f, const void *panel, int64_t b) {
    if (!f->is_unpacked) return block_find(f->layout, panel, b);
    return (panel_block){.quants = (const uint8_t *)((const unpacked_block *)panel + b)};
}

WK_INLINE const unpacked_block *unpacked_at(const panel_block *block) {
    return (const unpacked_block *)(const void *)block->quants;
}
WK_INLINE v16 form_step(const tile_form *f, const panel_block *block, const int part) {
    if (f->is_unpacked) return v16_load(unpacked_at(block)->step[part]);
    return block_step(f->layout, block, part);
}
WK_INLINE v16 form_addend(const tile_form *f, const panel_block *block, const int part) {
    if (f->is_unpacked) return v16_load(unpacked_at(block)->addend[part]);
    return block_addend(f->layout, block, part);
}

/* ---- Dot products. at: the block of each panel; x: that of each column ---- */

/* Whole sums, by panel and column. */
typedef struct block_sums {
    w16 of[FAST_PANELS][FAST_COLUMNS];
} block_sums;

/* sums += quants . values for unit u, whose quants are one of each panel. */
WK_INLINE void add_unit(const tile_form *f, const int u, const b64 unit[],
                        const fast_plane *const x[], block_sums *sums) {
    for (int c = 0; c < f->width; c++) {
        int32_t word;
        memcpy(&word, x[c]->values + u * (QUANT_BLOCK / UNITS), sizeof word);
        for (int p = 0; p < f->panels; p++)
            sums->of[p][c] = w16_dot(sums->of[p][c], unit[p], w16_set(word), is_wide(f->layout));
    }
}

/* The same for group i of one half of a block of a panel. */
WK_INLINE void add_group(const tile_form *f, const int half, const int i, const panel_block at[],
                         const fast_plane *const x[], block_sums *sums) {
    b64 group[FAST_PANELS], unit[FAST_PANELS];
    for (int p = 0; p < f->panels; p++) group[p] = block_group(f->layout, &at[p], half, i);
    for (int u = 0; u < UNITS / GROUPS; u++) {
        for (int p = 0; p < f->panels; p++) unit[p] = b64_unit(group[p], u);
        add_unit(f, i * (UNITS / GROUPS) + u + half * UNITS / 2, unit, x, sums);
    }
}

/* For all groups of a part. */
WK_INLINE void add_groups(const tile_form *f, const int part, const panel_block at[],
                          const fast_plane *const x[], block_sums *sums) {
    /* In the order of memory: bytes follow each other, smaller quants of both halves share them. */
    if (wk_panel_get(f->layout)->bits == 8) {
        for (int i = 0; i < GROUPS; i++)
            add_group(f, i / (GROUPS / 2), i % (GROUPS / 2), at, x, sums);
        return;
    }
    for (int i = 0; i < GROUPS / 2; i++) {
        add_group(f, part, i, at, x, sums);
        if (f->parts == 1) add_group(f, 1, i, at, x, sums);
    }
}

/* For all units of a part of unpacked blocks. */
WK_INLINE void add_units(const tile_form *f, const int part, const panel_block at[],
                         const fast_plane *const x[], block_sums *sums) {
    const int begin = part * UNITS / 2, end = f->parts == 1 ? UNITS : begin + UNITS / 2;
    for (int u = begin; u < end; u++) {
        b64 unit[FAST_PANELS];
        for (int p = 0; p < f->panels; p++) unit[p] = b64_load(unpacked_at(&at[p])->units[u]);
        add_unit(f, u, unit, x, sums);
    }
}

/* For a part, less what the bias of the quants adds. */
WK_INLINE void add_plane(const tile_form *f, const int part, const panel_block at[],
                         const fast_plane *const x[], block_sums *sums) {
    for (int c = 0; c < f->width && f->bias != 0; c++) {
        const int32_t base = f->parts == 1 ? x[c]->base[0] + x[c]->base[1] : x[c]->base[part];
        const w16 all = w16_set(f->bias * base);
        for (int p = 0; p < f->panels; p++) sums->of[p][c] = w16_add(sums->of[p][c], all);
    }
    if (f->is_unpacked) {
        add_units(f, part, at, x, sums);
    } else {
        add_groups(f, part, at, x, sums);
    }
}

/* A part's dot products of quants less bias: with high, or with QUANT_STEP * high + low. They are
 * below 2^27. */
WK_INLINE void sum_part(const tile_form *f, const int part, const panel_block at[],
                        const fast_block *const x[], bool is_fine, block_sums *sums) {
    const fast_plane *high[FAST_COLUMNS], *low[FAST_COLUMNS];
    for (int c = 0; c < f->width; c++) {
        high[c] = &x[c]->planes[HIGH];
        low[c] = &x[c]->planes[LOW];
        for (int p = 0; p < f->panels; p++) sums->of[p][c] = w16_set(0);
    }
    add_plane(f, part, at, high, sums);
    if (!is_fine) return;
    for (int p = 0; p < f->panels; p++)
        for (int c = 0; c < f->width; c++) sums->of[p][c] = w16_times_step(sums->of[p][c]);
    add_plane(f, part, at, low, sums);
}

/* product = the part's dot products times its step, in units of the columns' scales; part 1 is
 * added to part 0. */
WK_INLINE void add_part(const tile_form *f, const int part, const panel_block at[],
                        const fast_block *const x[], bool is_fine,
                        v16 product[FAST_PANELS][FAST_COLUMNS]) {
    block_sums sums;
    sum_part(f, part, at, x, is_fine, &sums);
    const v16 unit = v16_set(is_fine ? 1.0F / (float)QUANT_STEP : 1);
    for (int p = 0; p < f->panels; p++) {
        const v16 step = v16_mul(unit, form_step(f, &at[p], part));
        for (int c = 0; c < f->width; c++) {
            const v16 whole = w16_float(sums.of[p][c]);
            product[p][c] = part == 0 ? v16_mul(whole, step) : v16_fma(whole, step, product[p][c]);
        }
    }
}

/* The sum of x in one of the parts that have an addend. */
WK_INLINE float part_sum(const tile_form *f, const fast_block *x, const int part) {
    if (f->minima == 1) return x->sum;
    const float rest = x->is_fine ? (float)x->planes[LOW].base[part] / (float)QUANT_STEP : 0;
    return -x->scale * ((float)x->planes[HIGH].base[part] + rest);
}

/* total += the block's part of y: (sum of quants . x) step + addend (sum of x). */
WK_INLINE void add_block(const tile_form *f, const panel_block at[], const fast_block *const x[],
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    int32_t is_fine = 0; /* any: to the others the low bytes then add nothing, to the bit */
    for (int c = 0; c < f->width && FAST_PLANES > 1; c++) is_fine |= x[c]->is_fine;
    v16 product[FAST_PANELS][FAST_COLUMNS];
    add_part(f, 0, at, x, is_fine, product);
    if (f->parts > 1) add_part(f, 1, at, x, is_fine, product);
    for (int p = 0; p < f->panels; p++)
        for (int c = 0; c < f->width; c++)
            total[p][c] = v16_fma(product[p][c], v16_set(x[c]->scale), total[p][c]);
    for (int part = 0; part < f->minima; part++) {
        for (int p = 0; p < f->panels; p++) {
            const v16 addend = form_addend(f, &at[p], part);
            for (int c = 0; c < f->width; c++)
                total[p][c] = v16_fma(addend, v16_set(part_sum(f, x[c], part)), total[p][c]);
        }
    }
}

#endif
