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
 *   w16_float(sum)
 *   FAST_OFFSETS                whether v16_fma rounds once
 *   w16_as_float(sum)           the floats that have these bits
 *   w16_dot(sum, unit, x, is_wide)
 *                               sum + unit . x by rows, x being a word of values
 *   PANEL_IS_EXACT              (linear_panel.h)
 *   WIDE_BIAS                   128, or 0 where w16_dot takes that off wide quants itself
 *   FAST_PAIRS                  whether dot products of small quants add up in 16 bits first:
 *   w16_dot_pairs(sum, unit, x) sum + unit . x, which are two sums of 16 bits in each word, one of
 *                               the first two products and one of the others
 *   w16_of_pairs(sum)           both together */
#ifndef WK_SIMD_LINEAR_BYTES_H
#define WK_SIMD_LINEAR_BYTES_H

/* More with pairs, and quants of later groups would lie on the stack. */
enum { UNROLLED_GROUPS = FAST_PAIRS || FAST_SHARES ? 1 : 4 };

#include "backend/cpu/simd/linear_panel.h"
#include "backend/cpu/simd/linear_quantize.h"

/* A group are 4 elements, a unit as many as there are values in a word. */
enum { GROUPS = QUANT_BLOCK / 4, UNITS = QUANT_BLOCK * sizeof(fast_value) / sizeof(int32_t) };

/* Planes: one value of each element of a block. */
enum { HIGH, LOW = FAST_PLANES - 1 };

/* A block of x without its low plane: scale * (high + low / QUANT_STEP), or scale * high where
 * there is one plane. */
typedef struct fast_block {
    _Alignas(32) fast_value values[QUANT_BLOCK]; /* high */
    float scale;
    float sum;       /* of the elements */
    int32_t is_fine; /* and in two planes */
    /* Of a plane what the bias of the quants takes in each part of their block: minus the sum of
     * the values times the bias, or times 1 where there is none. */
    int32_t base[FAST_PLANES][QUANT_PARTS];
} fast_block;

/* The low plane of a fine block; these are few, and lie apart. */
typedef struct fast_low {
    fast_value values[QUANT_BLOCK];
} fast_low;

/* A row of x, from some block on. */
typedef struct fast_row {
    const fast_block *blocks;
    const fast_low *low;
} fast_row;

WK_INLINE fast_row row_from(const fast_row *row, int64_t block) {
    return (fast_row){row->blocks + block, FAST_PLANES > 1 ? row->low + block : NULL};
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

/* v = QUANT_STEP * high + low, low being -64 ... 63. */
WK_INLINE void split_block(const int32_t *v, int32_t *high, int32_t *low) {
    /* Rounded down; the offset keeps the dividend positive. */
    const int32_t offset = QUANT_STEP * QUANT_STEP + QUANT_STEP / 2;
    for (int i = 0; i < QUANT_BLOCK; i++) {
        high[i] = (int32_t)((uint32_t)(v[i] + offset) / QUANT_STEP) - QUANT_STEP;
        low[i] = v[i] - high[i] * QUANT_STEP;
    }
}

WK_INLINE int32_t sum_words(const int32_t v[QUANT_BLOCK / 2]) {
    int32_t sum = 0;
    for (int i = 0; i < QUANT_BLOCK / 2; i++) sum += v[i];
    return sum;
}

/* A plane, whose halves have these sums, with its bases. */
WK_INLINE void pack_plane(const tile_form *f, const int32_t *v, const int32_t sum[QUANT_PARTS],
                          fast_value *values, int32_t *base) {
    for (int i = 0; i < QUANT_BLOCK; i++) values[fast_place(i)] = (fast_value)v[i];
    const int32_t bias = f->bias == 0 ? 1 : f->bias;
    base[0] = -bias * (f->parts == 1 ? sum[0] + sum[1] : sum[0]);
    base[1] = -bias * sum[1];
}

/* For blocks of f's layout. largest: as quant_make wants it. */
WK_INLINE void pack_block(const tile_form *f, const float *x, float largest, float fine_above,
                          fast_block *block, fast_low *low) {
    quant_block q;
    quant_make(x, largest, fine_above, &q);
    block->is_fine = FAST_PLANES > 1 && q.is_fine;
    block->scale = q.scale;
    block->sum = q.scale * (float)(q.sum[0] + q.sum[1]);
    if (!block->is_fine) {
        pack_plane(f, q.v, q.sum, block->values, block->base[HIGH]);
        return;
    }
    int32_t v[2][QUANT_BLOCK], sum[2][QUANT_PARTS];
    split_block(q.v, v[0], v[1]);
    for (int part = 0; part < QUANT_PARTS; part++) {
        sum[0][part] = sum_words(v[0] + part * (QUANT_BLOCK / QUANT_PARTS));
        sum[1][part] = q.sum[part] - QUANT_STEP * sum[0][part];
    }
    pack_plane(f, v[0], sum[0], block->values, block->base[HIGH]);
    pack_plane(f, v[1], sum[1], low->values, block->base[LOW]);
    block->scale = q.scale * (float)QUANT_STEP;
}

/* A block of a panel with its quants as bytes and its scales as floats: made once for all tiles of
 * columns where that takes long (is_slow), or for those of one tile, in registers. */
typedef struct unpacked_block {
    b64 units[UNITS];
    v16 step[QUANT_PARTS], addend[QUANT_PARTS];
} unpacked_block;

WK_INLINE void unpack_block(const wk_layout layout, const panel_block *block, unpacked_block *to) {
    for (int i = 0; i < GROUPS / 2; i++) {
        const b64 low = block_group(layout, block, 0, i), high = block_group(layout, block, 1, i);
        for (int u = 0; u < UNITS / GROUPS; u++) {
            to->units[i * (UNITS / GROUPS) + u] = b64_unit(low, u);
            to->units[i * (UNITS / GROUPS) + u + UNITS / 2] = b64_unit(high, u);
        }
    }
    for (int part = 0; part < block_parts(layout); part++)
        to->step[part] = block_step(layout, block, part);
    for (int part = 0; part < block_minima(layout); part++)
        to->addend[part] = block_addend(layout, block, part);
}

/* ---- Blocks of either kind ---- */

/* Block b of a panel, or of the unpacked blocks of one, to which quants points then. */
WK_INLINE panel_block form_block(const tile_form *f, const void *panel, int64_t b) {
    if (!f->is_unpacked) return block_find(f->layout, panel, b);
    return (panel_block){.quants = (const uint8_t *)((const unpacked_block *)panel + b)};
}

/* The same block, of which the compiler keeps nothing that it has unpacked before. */
WK_INLINE panel_block block_again(panel_block block) {
    __asm__("" : "+r"(block.quants));
    return block;
}

WK_INLINE const unpacked_block *unpacked_at(const panel_block *block) {
    return (const unpacked_block *)(const void *)block->quants;
}
WK_INLINE v16 form_step(const tile_form *f, const panel_block *block, const int part) {
    if (f->is_unpacked) return unpacked_at(block)->step[part];
    return block_step(f->layout, block, part);
}
WK_INLINE v16 form_addend(const tile_form *f, const panel_block *block, const int part) {
    if (f->is_unpacked) return unpacked_at(block)->addend[part];
    return block_addend(f->layout, block, part);
}

/* ---- Dot products. at: the block of each panel; x: each column, from that block on ---- */

/* Whole sums, by panel and column; pairs: what is not yet in them. */
typedef struct block_sums {
    w16 of[FAST_PANELS][FAST_COLUMNS], pairs[FAST_PANELS][FAST_COLUMNS];
} block_sums;

/* Units of a part whose dot products add up in pairs, quants being 0 ... 2^bits - 1 and values -128
 * ... 127; 0: none do. */
WK_INLINE int paired_units(const tile_form *f) {
    const wk_panel_format *const format = wk_panel_get(f->layout);
    if (!FAST_PAIRS || format->levels != WK_LEVELS_LINEAR || format->bits > 6) return 0;
    const int n = format->bits == 6 ? 2 : format->bits == 5 ? 4 : 8, all = UNITS / f->parts;
    return n < all ? n : all;
}

WK_INLINE void clear_pairs(const tile_form *f, block_sums *sums) {
    if (paired_units(f) == 0) return;
    for (int p = 0; p < f->panels; p++)
        for (int c = 0; c < f->width; c++) sums->pairs[p][c] = w16_set(0);
}

WK_INLINE void settle_pairs(const tile_form *f, block_sums *sums) {
    if (paired_units(f) == 0) return;
    for (int p = 0; p < f->panels; p++) {
        for (int c = 0; c < f->width; c++)
            sums->of[p][c] = w16_add(sums->of[p][c], w16_of_pairs(sums->pairs[p][c]));
    }
}

/* sums += quants . values for unit u, whose quants are one of each panel. */
WK_INLINE void add_unit(const tile_form *f, const int u, const b64 unit[],
                        const fast_value *const x[], block_sums *sums) {
    for (int c = 0; c < f->width; c++) {
        int32_t word;
        memcpy(&word, x[c] + u * (QUANT_BLOCK / UNITS), sizeof word);
        for (int p = 0; p < f->panels; p++) {
            if (paired_units(f) > 0)
                sums->pairs[p][c] = w16_dot_pairs(sums->pairs[p][c], unit[p], w16_set(word));
            else
                sums->of[p][c] =
                    w16_dot(sums->of[p][c], unit[p], w16_set(word), is_wide(f->layout));
        }
    }
}

/* The same for group i of one half of a block of a panel. */
WK_INLINE void add_group(const tile_form *f, const int half, const int i, const panel_block at[],
                         const fast_value *const x[], block_sums *sums) {
    b64 group[FAST_PANELS], unit[FAST_PANELS];
    for (int p = 0; p < f->panels; p++) group[p] = block_group(f->layout, &at[p], half, i);
    for (int u = 0; u < UNITS / GROUPS; u++) {
        for (int p = 0; p < f->panels; p++) unit[p] = b64_unit(group[p], u);
        add_unit(f, i * (UNITS / GROUPS) + u + half * UNITS / 2, unit, x, sums);
    }
}

/* For all groups of a part. */
WK_INLINE void add_groups(const tile_form *f, const int part, const panel_block at[],
                          const fast_value *const x[], block_sums *sums) {
    /* In the order of memory: bytes follow each other, smaller quants of both halves share them. */
    if (wk_panel_get(f->layout)->bits == 8) {
        for (int i = 0; i < GROUPS; i++)
            add_group(f, i / (GROUPS / 2), i % (GROUPS / 2), at, x, sums);
        return;
    }
    const int paired = paired_units(f) * f->parts / QUANT_PARTS;
    const int step = paired > 0 ? paired : GROUPS / 2;
    for (int first = 0; first < GROUPS / 2; first += step) {
        clear_pairs(f, sums);
#pragma GCC unroll UNROLLED_GROUPS
        for (int i = first; i < first + step; i++) {
            add_group(f, part, i, at, x, sums);
            if (f->parts == 1) add_group(f, 1, i, at, x, sums);
        }
        settle_pairs(f, sums);
    }
}

/* For all units of a part of unpacked blocks. */
WK_INLINE void add_units(const tile_form *f, const int part, const panel_block at[],
                         const fast_value *const x[], block_sums *sums) {
    const int begin = part * UNITS / 2, end = f->parts == 1 ? UNITS : begin + UNITS / 2;
    const int paired = paired_units(f), step = paired > 0 ? paired : 1;
    for (int first = begin; first < end; first += step) {
        clear_pairs(f, sums);
        for (int u = first; u < first + step; u++) {
            b64 unit[FAST_PANELS];
            for (int p = 0; p < f->panels; p++) unit[p] = unpacked_at(&at[p])->units[u];
            add_unit(f, u, unit, x, sums);
        }
        settle_pairs(f, sums);
    }
}

/* For a part, less what the bias of the quants adds. */
WK_INLINE void add_plane(const tile_form *f, const int part, const int plane,
                         const panel_block at[], const fast_row x[], block_sums *sums) {
    const fast_value *values[FAST_COLUMNS];
    for (int c = 0; c < f->width; c++) {
        values[c] = plane == HIGH ? x[c].blocks->values : x[c].low->values;
        const w16 base = w16_set(x[c].blocks->base[plane][part]);
        for (int p = 0; p < f->panels && f->bias != 0; p++)
            sums->of[p][c] = w16_add(sums->of[p][c], base);
    }
    if (f->is_unpacked) {
        add_units(f, part, at, values, sums);
    } else {
        add_groups(f, part, at, values, sums);
    }
}

/* The bits of this float plus a whole number n, below 2^22 with either sign, are those of the float
 * WHOLE_OFFSET + n: sums that begin there need no conversion. */
#define WHOLE_OFFSET 12582912.0F /* 1.5 * 2^23 */
enum { WHOLE_BITS = 0x4B400000 };

/* Whether WHOLE_OFFSET times a step is exact and finite: steps are float16 times small numbers. */
WK_INLINE bool has_short_steps(const tile_form *f) {
    return wk_panel_get(f->layout)->scale != WK_SCALE_BF16;
}

/* product = the dot products of a part with a plane times the steps of the quants, in units of the
 * columns' scales; part 1 is added to part 0. Dot products are whole numbers below 2^20. */
WK_INLINE void multiply_part(const tile_form *f, const int part, const int plane,
                             const panel_block at[], const fast_row x[],
                             v16 product[FAST_PANELS][FAST_COLUMNS]) {
    const bool is_offset = FAST_OFFSETS && part == 0 && has_short_steps(f);
    block_sums sums;
    for (int p = 0; p < f->panels; p++)
        for (int c = 0; c < f->width; c++) sums.of[p][c] = w16_set(is_offset ? WHOLE_BITS : 0);
    add_plane(f, part, plane, at, x, &sums);
    for (int p = 0; p < f->panels; p++) {
        v16 step = form_step(f, &at[p], part);
        if (plane != HIGH) step = v16_mul(step, v16_set(1.0F / (float)QUANT_STEP));
        const v16 offset = v16_mul(step, v16_set(-WHOLE_OFFSET));
        for (int c = 0; c < f->width; c++) {
            if (is_offset) { /* (offset + whole) step - offset step, rounded once */
                product[p][c] = v16_fma(w16_as_float(sums.of[p][c]), step, offset);
                continue;
            }
            const v16 whole = w16_float(sums.of[p][c]);
            product[p][c] = part == 0 ? v16_mul(whole, step) : v16_fma(whole, step, product[p][c]);
        }
    }
}

WK_INLINE void multiply_plane(const tile_form *f, const int plane, const panel_block at[],
                              const fast_row x[], v16 product[FAST_PANELS][FAST_COLUMNS]) {
    for (int p = 0; p < f->panels; p++) /* gcc does not see that part 0 does it */
        for (int c = 0; c < f->width; c++) product[p][c] = v16_zero();
    multiply_part(f, 0, plane, at, x, product);
    if (f->parts > 1) multiply_part(f, 1, plane, at, x, product);
}

/* The sum of x in one of the parts that have an addend. */
WK_INLINE float part_sum(const tile_form *f, const fast_block *x, const int part) {
    if (f->minima == 1) return x->sum;
    const float rest = x->is_fine ? (float)x->base[LOW][part] / (float)QUANT_STEP : 0;
    return -x->scale * ((float)x->base[HIGH][part] + rest);
}

/* high += (sum of quants . high plane) step scale + addend (sum of x). */
WK_INLINE void add_high(const tile_form *f, const panel_block at[], const fast_row x[],
                        v16 high[FAST_PANELS][FAST_COLUMNS]) {
    v16 product[FAST_PANELS][FAST_COLUMNS];
    multiply_plane(f, HIGH, at, x, product);
    for (int p = 0; p < f->panels; p++)
        for (int c = 0; c < f->width; c++)
            high[p][c] = v16_fma(product[p][c], v16_set(x[c].blocks->scale), high[p][c]);
    for (int part = 0; part < f->minima; part++) {
        for (int p = 0; p < f->panels; p++) {
            const v16 addend = form_addend(f, &at[p], part);
            for (int c = 0; c < f->width; c++)
                high[p][c] = v16_fma(addend, v16_set(part_sum(f, x[c].blocks, part)), high[p][c]);
        }
    }
}

WK_INLINE bool is_fine(const fast_row *x) { return FAST_PLANES > 1 && x->blocks->is_fine; }

/* low += (sum of quants . low plane) step scale / QUANT_STEP, for column c, which is fine. */
WK_INLINE void add_low(const tile_form *f, const panel_block at[], const fast_row *x, int c,
                       v16 low[FAST_PANELS][FAST_COLUMNS]) {
    tile_form one = *f;
    one.width = 1;
    v16 product[FAST_PANELS][FAST_COLUMNS];
    multiply_plane(&one, LOW, at, x, product);
    for (int p = 0; p < f->panels; p++)
        low[p][c] = v16_fma(product[p][0], v16_set(x->blocks->scale), low[p][c]);
}

#endif
