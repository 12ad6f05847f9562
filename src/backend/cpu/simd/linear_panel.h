/* simd/linear_panel.h: reads the blocks of panels of quants (quant/panel.h), over linear_simd_*.h.
 * The layout is always a constant, so that of each function only what it needs is left. */
#ifndef WK_SIMD_LINEAR_PANEL_H
#define WK_SIMD_LINEAR_PANEL_H

#include "quant/panel.h"

/* Halves of a block with scales of their own: 1 or 2. */
WK_INLINE int block_parts(const wk_layout layout) {
    return wk_panel_get(layout).scale == WK_SCALE_K_HALVES ? 2 : 1;
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

WK_INLINE v16 load_f16(const uint8_t *p) { return v16_load_f16((const uint16_t *)(const void *)p); }
WK_INLINE v16 load_bf16(const uint8_t *p) {
    return v16_load_bf16((const uint16_t *)(const void *)p);
}

/* What the quants of a part are multiplied by. */
WK_INLINE v16 block_step(const wk_layout layout, const panel_block *block, int part) {
    switch (wk_panel_get(layout).scale) {
    case WK_SCALE_BF16: return load_bf16(block->head);
    case WK_SCALE_K:
    case WK_SCALE_K_HALVES:
        return v16_mul(load_f16(block->head), v16_load_i8(block->scales + part * WK_PANEL_ROWS));
    case WK_SCALE_K_MIN: return v16_mul(load_f16(block->head), v16_load_u8(block->scales));
    default: return load_f16(block->head);
    }
}

/* What is added to the product, where the layout has a minimum. */
WK_INLINE v16 block_addend(const wk_layout layout, const panel_block *block) {
    if (!wk_panel_has_minimum(layout)) return v16_zero();
    const v16 m = load_f16(block->head + 2 * WK_PANEL_ROWS);
    if (wk_panel_get(layout).scale == WK_SCALE_F16_MIN) return m;
    /* The product is exact, so it does not matter where its sign is turned. */
    return v16_mul(v16_sub(v16_zero(), m), v16_load_u8(block->scales + WK_PANEL_ROWS));
}

/* Group i + 4 half (i below 4, half a constant): its quants of the 16 rows, bias included. */
WK_INLINE b64 block_group(const wk_layout layout, const panel_block *block, const int half, int i) {
    const wk_panel_format format = wk_panel_get(layout);
    const uint8_t *const at = block->quants + WK_PANEL_GROUP_BYTES * i;
    if (format.bits == 8) return b64_load(at + WK_PANEL_GROUP_BYTES * 4 * half);
    const b64 low = half == 0 ? b64_low_halves(b64_load(at)) : b64_high_halves(b64_load(at));
    const uint8_t *const upper = block->quants + WK_PANEL_GROUP_BYTES * 4;
    if (format.bits == 5) return b64_add_upper(low, b64_load(upper), i + 4 * half, 16);
    if (format.bits == 6)
        return b64_add_upper(low, b64_load(upper + WK_PANEL_GROUP_BYTES * half), 2 * i, 48);
    if (format.levels != WK_LEVELS_LINEAR)
        return b64_look_up(low, wk_panel_levels_table[format.levels]);
    return low;
}

#endif
