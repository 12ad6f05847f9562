/* simd/linear_bytes.h: blocks of fast linear where the instruction set has dot products of bytes.
 * Over linear_simd_*.h and what the including file defines:
 *
 *   FAST_COLUMNS, FAST_PANELS   (linear_fast.h)
 *   w16                         16 words of 32 bits
 *   w16_set(word)               the same in all of them
 *   w16_dot(sum, quants, x, is_wide)
 *                               sum + quants . x by rows, 4 unsigned and 4 signed bytes each
 *   WIDE_BIAS                   128, or 0 where w16_dot takes that off wide quants itself
 *   w16_times_step(sum)         QUANT_STEP times that
 *   w16_add(a, b)
 *   w16_float(sum) */
#ifndef WK_SIMD_LINEAR_BYTES_H
#define WK_SIMD_LINEAR_BYTES_H

#include "backend/cpu/simd/linear_panel.h"
#include "backend/cpu/simd/linear_quantize.h"

enum { GROUPS = QUANT_BLOCK / 4 };

/* Bytes of a block: of the coarse v, or those of the fine one divided by QUANT_STEP, or the rest.
 */
typedef struct byte_plane {
    int32_t base[QUANT_PARTS]; /* minus the sums of each part */
    int8_t bytes[QUANT_BLOCK];
} byte_plane;

/* A block of x; low is zeros, and not read without need, where it is not fine. What is always read
 * shares a cache line. */
typedef struct fast_block {
    float scale; /* of high */
    float sum;   /* of the block's x */
    int32_t is_fine;
    byte_plane high, low;
} fast_block;

/* v = QUANT_STEP * high + low. */
WK_INLINE void split_block(const quant_block *q, int8_t high[QUANT_BLOCK],
                           int8_t low[QUANT_BLOCK]) {
    /* Rounded down; the offset keeps the dividend positive. */
    const int32_t offset = QUANT_STEP * QUANT_STEP + QUANT_STEP / 2;
    for (int i = 0; i < QUANT_BLOCK; i++) {
        const int32_t h = (int32_t)((uint32_t)(q->v[i] + offset) / QUANT_STEP) - QUANT_STEP;
        high[i] = (int8_t)h;
        low[i] = (int8_t)(q->v[i] - h * QUANT_STEP);
    }
}

/* Sets the bases of a plane; gives the sum of its bytes. */
WK_INLINE int32_t sum_plane(byte_plane *plane) {
    int32_t first = 0, second = 0;
    for (int i = 0; i < QUANT_BLOCK / 2; i++) {
        first += plane->bytes[i];
        second += plane->bytes[i + QUANT_BLOCK / 2];
    }
    plane->base[0] = -first;
    plane->base[1] = -second;
    return first + second;
}

static void pack_block(const float *x, float fine_above, fast_block *block) {
    quant_block q;
    quant_make(x, fine_above, &q);
    block->is_fine = q.is_fine;
    if (q.is_fine) {
        split_block(&q, block->high.bytes, block->low.bytes);
        const int32_t sum = QUANT_STEP * sum_plane(&block->high) + sum_plane(&block->low);
        block->sum = q.scale * (float)sum;
        block->scale = q.scale * QUANT_STEP;
    } else {
        for (int i = 0; i < QUANT_BLOCK; i++) block->high.bytes[i] = (int8_t)q.v[i];
        block->low = (byte_plane){0};
        block->sum = q.scale * (float)sum_plane(&block->high);
        block->scale = q.scale;
    }
}

/* Whether quants have 8 bits; their bias is 128 then. */
WK_INLINE bool is_wide(const wk_layout layout) { return wk_panel_get(layout).bias == 128; }

/* Dot products of a block or a part of it, by panel and column. */
typedef struct block_sums {
    w16 of[FAST_PANELS][FAST_COLUMNS];
} block_sums;

/* sums += weights . x for group i of the first or second half of the block. */
WK_INLINE void add_group(const wk_layout layout, const int panels, const int width, const int half,
                         const int i, const panel_block at[], const byte_plane *const x[],
                         block_sums *sums) {
    b64 group[FAST_PANELS];
    for (int p = 0; p < panels; p++) group[p] = block_group(layout, &at[p], half, i);
    for (int c = 0; c < width; c++) {
        int32_t word;
        memcpy(&word, x[c]->bytes + 4 * (i + half * GROUPS / 2), sizeof word);
        for (int p = 0; p < panels; p++)
            sums->of[p][c] = w16_dot(sums->of[p][c], group[p], w16_set(word), is_wide(layout));
    }
}

/* The same for all groups of the part, with what the bias of the quants takes. */
WK_INLINE void add_plane(const wk_layout layout, const int panels, const int width, const int part,
                         const panel_block at[], const byte_plane *const x[], block_sums *sums) {
    const bool is_whole = block_parts(layout) == 1;
    const int bias = is_wide(layout) ? WIDE_BIAS : wk_panel_get(layout).bias;
    for (int c = 0; c < width && bias != 0; c++) {
        const int32_t base = is_whole ? x[c]->base[0] + x[c]->base[1] : x[c]->base[part];
        const w16 all = w16_set(bias * base);
        for (int p = 0; p < panels; p++) sums->of[p][c] = w16_add(sums->of[p][c], all);
    }
    /* In the order of memory: with 8 bits the halves follow each other, else they share bytes. */
    const bool is_paired = is_whole && wk_panel_get(layout).bits < 8;
    for (int i = 0; i < GROUPS / 2; i++) {
        add_group(layout, panels, width, part, i, at, x, sums);
        if (is_paired) add_group(layout, panels, width, 1, i, at, x, sums);
    }
    for (int i = 0; i < GROUPS / 2 && is_whole && !is_paired; i++)
        add_group(layout, panels, width, 1, i, at, x, sums);
}

/* The part's dot products with what the columns' high bytes, or v of fine blocks, stand for. */
WK_INLINE void sum_part(const wk_layout layout, const int panels, const int width, const int part,
                        const panel_block at[], const fast_block *const x[], bool is_fine,
                        block_sums *sums) {
    const byte_plane *high[FAST_COLUMNS], *low[FAST_COLUMNS];
    for (int c = 0; c < width; c++) {
        high[c] = &x[c]->high;
        low[c] = &x[c]->low;
        for (int p = 0; p < panels; p++) sums->of[p][c] = w16_set(0);
    }
    add_plane(layout, panels, width, part, at, high, sums);
    if (!is_fine) return;
    for (int p = 0; p < panels; p++)
        for (int c = 0; c < width; c++) sums->of[p][c] = w16_times_step(sums->of[p][c]);
    add_plane(layout, panels, width, part, at, low, sums);
}

/* product += the dot products of the part times its step, in units of the columns' scales. */
WK_INLINE void add_part(const wk_layout layout, const int panels, const int width, const int part,
                        const panel_block at[], const fast_block *const x[], bool is_fine,
                        v16 product[FAST_PANELS][FAST_COLUMNS]) {
    block_sums sums;
    sum_part(layout, panels, width, part, at, x, is_fine, &sums);
    const v16 unit = v16_set(is_fine ? 1.0F / QUANT_STEP : 1);
    for (int p = 0; p < panels; p++) {
        const v16 step = v16_mul(unit, block_step(layout, &at[p], part));
        for (int c = 0; c < width; c++) {
            const v16 whole = w16_float(sums.of[p][c]);
            product[p][c] = part == 0 ? v16_mul(whole, step) : v16_fma(whole, step, product[p][c]);
        }
    }
}

/* total += the block's part of y. */
WK_INLINE void add_block(const wk_layout layout, const int panels, const int width,
                         const panel_block at[], const fast_block *const x[],
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    int32_t is_fine = 0; /* any of them: what the others then add is exactly as without */
    for (int c = 0; c < width; c++) is_fine |= x[c]->is_fine;
    v16 product[FAST_PANELS][FAST_COLUMNS];
    add_part(layout, panels, width, 0, at, x, is_fine, product);
    if (block_parts(layout) > 1) add_part(layout, panels, width, 1, at, x, is_fine, product);
    for (int p = 0; p < panels; p++)
        for (int c = 0; c < width; c++)
            total[p][c] = v16_fma(product[p][c], v16_set(x[c]->scale), total[p][c]);
    if (!wk_panel_has_minimum(layout)) return;
    for (int p = 0; p < panels; p++) {
        const v16 addend = block_addend(layout, &at[p]);
        for (int c = 0; c < width; c++)
            total[p][c] = v16_fma(addend, v16_set(x[c]->sum), total[p][c]);
    }
}

#endif
