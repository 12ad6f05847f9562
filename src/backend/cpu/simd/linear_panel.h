/* simd/linear_panel.h: reads the blocks of panels of quants (quant/panel.h), over linear_simd_*.h.
 * The layout is always a constant, so that of each function only what it needs is left. The
 * including file defines PANEL_IS_EXACT: whether a scale that is NaN must stay one, or may become
 * infinite. */
#ifndef WK_SIMD_LINEAR_PANEL_H
#define WK_SIMD_LINEAR_PANEL_H

#include "quant/panel.h"

/* Parts of a block with steps of their own: 1 or 2. */
WK_INLINE int block_parts(const wk_layout layout) {
    switch (wk_panel_get(layout)->scale) {
    case WK_SCALE_F16_HALVES:
    case WK_SCALE_K_HALVES:
    case WK_SCALE_K_MIN_HALVES:
    case WK_SCALE_ODD_HALVES: return 2;
    default: return 1;
    }
}

/* Where a block is. */
typedef struct panel_block {
    const uint8_t *head, *scales, *quants;
} panel_block;

WK_INLINE panel_block block_find(const wk_layout layout, const uint8_t *panel, int64_t b) {
    const uint8_t *const scales = panel + wk_panel_block_at(layout, b);
    return (panel_block){panel + wk_panel_head_at(layout, b), scales,
                         scales + wk_panel_scale_bytes(layout)};
}

WK_INLINE v16 load_f16(const uint8_t *p) {
    const uint16_t *const halves = (const uint16_t *)(const void *)p;
    return PANEL_IS_EXACT ? v16_load_f16(halves) : v16_load_f16_number(halves);
}
WK_INLINE v16 load_bf16(const uint8_t *p) {
    return v16_load_bf16((const uint16_t *)(const void *)p);
}

/* ---- Steps: what is not exact in float32 by itself is rounded nowhere but in their product ----
 */

/* Bits [n, n + bits) of the bytes of 16 rows. */
WK_INLINE v16 load_bits(const uint8_t *p, const int n, const int bits) {
    const b64 bytes = b64_widen(p);
    if (bits == 8) return v16_of_words(bytes);
    return v16_of_words(b64_bits(bytes, n, (1U << bits) - 1));
}

/* d (2 s + 1) unit */
WK_INLINE v16 odd_step(const wk_layout layout, const panel_block *block, v16 s) {
    const float unit = wk_panel_get_grid(layout)->unit;
    return v16_mul(load_f16(block->head), v16_fma(s, v16_set(2 * unit), v16_set(unit)));
}

/* What the quants of a part are multiplied by. */
WK_INLINE v16 block_step(const wk_layout layout, const panel_block *block, const int part) {
    const uint8_t *const scales = block->scales;
    switch (wk_panel_get(layout)->scale) {
    case WK_SCALE_F16:
    case WK_SCALE_F16_MIN: break;
    case WK_SCALE_F16_HALVES: return load_f16(block->head + 2 * WK_PANEL_ROWS * part);
    case WK_SCALE_BF16: return load_bf16(block->head);
    case WK_SCALE_K:
    case WK_SCALE_K_HALVES:
        return v16_mul(load_f16(block->head), v16_load_i8(scales + part * WK_PANEL_ROWS));
    case WK_SCALE_K_MIN: return v16_mul(load_f16(block->head), load_bits(scales, 0, 8));
    case WK_SCALE_K_MIN_HALVES:
        return v16_mul(load_f16(block->head), load_bits(scales + part * WK_PANEL_ROWS, 0, 4));
    case WK_SCALE_ODD: return odd_step(layout, block, load_bits(scales, 0, 8));
    case WK_SCALE_ODD_HALVES: return odd_step(layout, block, load_bits(scales, 4 * part, 4));
    case WK_SCALE_ODD_UPPER: {
        const wk_panel_grid *const grid = wk_panel_get_grid(layout);
        const uint8_t *const upper = block->quants + wk_panel_upper_at(grid);
        return odd_step(layout, block, load_bits(upper + WK_PANEL_ROWS, 4, 3));
    }
    }
    return load_f16(block->head);
}

/* Parts of a block with addends of their own: 0 where the layout has no minimum. */
WK_INLINE int block_minima(const wk_layout layout) {
    return wk_panel_has_minimum(layout) ? block_parts(layout) : 0;
}

/* What is added to the product in a part, where the layout has a minimum. */
WK_INLINE v16 block_addend(const wk_layout layout, const panel_block *block, const int part) {
    if (!wk_panel_has_minimum(layout)) return v16_zero();
    const uint8_t *const scales = block->scales;
    const v16 m = load_f16(block->head + 2 * WK_PANEL_ROWS);
    if (wk_panel_get(layout)->scale == WK_SCALE_F16_MIN) return m;
    const v16 t = wk_panel_get(layout)->scale == WK_SCALE_K_MIN
                      ? load_bits(scales + WK_PANEL_ROWS, 0, 8)
                      : load_bits(scales + part * WK_PANEL_ROWS, 4, 4);
    /* The product is exact, so it does not matter where its sign is turned. */
    return v16_mul(v16_sub(v16_zero(), m), t);
}

/* ---- Quants ---- */

/* Group g is i + 4 half. Halves are constants, so that with 4 bits there is no shift by a variable.
 */
WK_INLINE b64 bits_group(const int bits, const uint8_t *quants, const int half, int i) {
    const int lower = wk_panel_lower_bits(bits), u = bits - lower, g = i + 4 * half;
    const b64 array = b64_load(quants + g % lower * WK_PANEL_GROUP_BYTES);
    if (lower == 8) return array;
    if (lower < 4) {
        const b64 low = b64_bits(array, g / lower * lower, wk_panel_mask(lower));
        if (u == 0) return low;
        return b64_add_upper(low, b64_load(quants + lower * WK_PANEL_GROUP_BYTES), g,
                             (char)(wk_panel_mask(u) << lower & 255));
    }
    const b64 low = half == 0 ? b64_low_halves(array) : b64_high_halves(array);
    if (u == 0) return low;
    const int word = lower + wk_panel_upper_word(u, g);
    return b64_add_upper(low, b64_load(quants + word * WK_PANEL_GROUP_BYTES),
                         wk_panel_upper_shift(0, u, g), (char)(wk_panel_mask(u) << lower & 255));
}

/* Elements of bits each in the words' lowest bits, to bytes: wk_panel_spread of 16 rows. */
WK_INLINE b64 spread_group(b64 word, const int bits) {
    const uint32_t pair = (1U << 2 * bits) - 1;
    word = b64_bits(b64_join(word, word, 16 - 2 * bits), 0, pair | pair << 16);
    return b64_bits(b64_join(word, word, 8 - bits), 0, wk_panel_mask(bits));
}

WK_INLINE b64 trits_group(const uint8_t *quants, int g) {
    static const uint16_t powers[WK_PANEL_TRITS] = {1, 3, 9, 27, 81};
    if (g < WK_PANEL_TRITS) return b64_trits(b64_load(quants), powers[g]);
    const int at = WK_PANEL_GROUP_BYTES + (g - WK_PANEL_TRITS) * WK_PANEL_ROWS;
    return spread_group(b64_widen(quants + at), 2);
}

/* A bit of the words, 0 or 1, to bit 3 of each of its bytes. */
WK_INLINE b64 spread_down(b64 bit) {
    const b64 two = b64_join(bit, bit, 8);
    return b64_bits(b64_join(bit, b64_join(two, two, 16), 3), 0, 0x08080808);
}

/* Indices of levels. */
WK_INLINE b64 grid_indices(const wk_layout layout, const uint8_t *quants, int g) {
    const wk_panel_format *const format = wk_panel_get(layout);
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    const int j = g * grid->entries / WK_PANEL_GROUPS;
    const uint8_t *const at = quants + wk_panel_upper_at(grid);
    b64 index = b64_widen(quants + j * WK_PANEL_ROWS), upper = index;
    if (grid->upper_bytes > 0) upper = b64_widen(at);
    if (grid->upper_bytes > 1) upper = b64_join(upper, b64_widen(at + WK_PANEL_ROWS), 8);
    if (grid->upper_bytes > 0)
        index = b64_join(index, b64_bits(upper, grid->upper_step * j, grid->upper_mask), 8);
    const b64 entry = b64_gather(grid->grid, index);
    if (grid->entries == WK_PANEL_GROUPS) return spread_group(b64_bits(entry, 0, 0xFFFF), 3);
    const b64 group = spread_group(b64_bits(entry, g % 2 * 8, 255), 2);
    if (format->levels != WK_LEVELS_IQ1) return group;
    const b64 down = spread_down(b64_bits(upper, wk_panel_down_bit(grid, j), 1));
    return b64_join(group, down, 0);
}

/* Group i + 4 half (i below 4, half a constant): its quants of the 16 rows, bias included. */
WK_INLINE b64 block_group(const wk_layout layout, const panel_block *block, const int half, int i) {
    const wk_panel_format *const format = wk_panel_get(layout);
    const uint8_t *const quants = block->quants;
    const int g = i + 4 * half;
    if (format->code == WK_CODE_TRITS) return trits_group(quants, g);
    const b64 group = format->code == WK_CODE_GRID ? grid_indices(layout, quants, g)
                                                   : bits_group(format->bits, quants, half, i);
    if (format->levels == WK_LEVELS_LINEAR) return group;
    const b64 levels = b64_look_up(group, wk_panel_levels_table[format->levels]);
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    if (!grid->has_signs) return levels;
    /* 128 + q becomes 128 - q, which is -(128 + q) as a byte. */
    return b64_negate(levels, quants + wk_panel_signs_at(grid) + g * WK_PANEL_ROWS / 2);
}

#endif
