/* quant/panel_decode.c: a row of a panel of quants as floats: what quant/panel.h describes, in
 * plain C. */
#include "quant/panel.h"

#include "quant/decode.h"

#include <assert.h>
#include <string.h>

const uint8_t wk_panel_levels_table[WK_LEVELS_COUNT_][16] = {
    [WK_LEVELS_IQ4] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    [WK_LEVELS_E2M1] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120,
                        116},
    [WK_LEVELS_SIGN] = {127, 129},
    [WK_LEVELS_IQ1] = {121, 129, 137, 0, 0, 0, 0, 0, 119, 127, 135},
    [WK_LEVELS_IQ2] = {136, 153, 171},
    [WK_LEVELS_IQ3_XXS] = {132, 140, 148, 156, 164, 172, 180, 190},
    [WK_LEVELS_IQ3_S] = {129, 131, 133, 135, 137, 139, 141, 143},
};

/* ---- Steps ---- */

/* One half of a block. */
typedef struct half_scale {
    float step, addend;
} half_scale;

static float odd_step(wk_layout layout, float d, unsigned s) {
    return d * (float)(2 * s + 1) * wk_panel_get_grid(layout)->unit;
}

/* head and scale point to this row's. */
static half_scale load_scale(wk_layout layout, const uint8_t *head, const uint8_t *scale,
                             const uint8_t *quants, int half) {
    const float d = wk_load_f16(head);
    const uint8_t *const second = head + 2 * WK_PANEL_ROWS;
    switch (wk_panel_get(layout)->scale) {
    case WK_SCALE_F16: return (half_scale){d, 0};
    case WK_SCALE_BF16: return (half_scale){wk_bf16_to_f32(wk_load_u16(head)), 0};
    case WK_SCALE_F16_MIN: return (half_scale){d, wk_load_f16(second)};
    case WK_SCALE_F16_HALVES: return (half_scale){half == 0 ? d : wk_load_f16(second), 0};
    case WK_SCALE_K: return (half_scale){d * (float)(int8_t)scale[0], 0};
    case WK_SCALE_K_HALVES: return (half_scale){d * (float)(int8_t)scale[half * WK_PANEL_ROWS], 0};
    case WK_SCALE_K_MIN:
        return (half_scale){d * (float)scale[0],
                            -(wk_load_f16(second) * (float)scale[WK_PANEL_ROWS])};
    case WK_SCALE_K_MIN_HALVES: {
        const uint8_t both = scale[half * WK_PANEL_ROWS];
        return (half_scale){d * (float)(both & 15), -(wk_load_f16(second) * (float)(both >> 4))};
    }
    case WK_SCALE_ODD: return (half_scale){odd_step(layout, d, scale[0]), 0};
    case WK_SCALE_ODD_HALVES:
        return (half_scale){odd_step(layout, d, scale[0] >> 4 * half & 15), 0};
    case WK_SCALE_ODD_UPPER: {
        const wk_panel_grid *const grid = wk_panel_get_grid(layout);
        const uint8_t *const upper = quants + wk_panel_upper_at(grid);
        return (half_scale){odd_step(layout, d, upper[WK_PANEL_ROWS] >> 4 & 7), 0};
    }
    }
    assert(false && "a scale of no kind");
    return (half_scale){0, 0};
}

/* ---- Quants: of group g, four as the bytes of a word; quants point to the panel's ---- */

static uint32_t load_word(const uint8_t *quants, int index, int row) {
    return wk_load_u32(quants + index * WK_PANEL_GROUP_BYTES + 4 * row);
}

static uint32_t bits_word(int bits, const uint8_t *quants, int row, int g) {
    const int lower = wk_panel_lower_bits(bits), u = bits - lower;
    const uint32_t word =
        load_word(quants, g % lower, row) >> g / lower * lower & wk_panel_mask(lower);
    if (u == 0) return word;
    const uint32_t upper = load_word(quants, lower + wk_panel_upper_word(u, g), row);
    const uint32_t turned = wk_panel_rotate(upper, 32 - wk_panel_upper_shift(lower, u, g));
    return word | (turned & wk_panel_mask(u)) << lower;
}

static uint32_t trits_word(const uint8_t *quants, int row, int g) {
    static const unsigned powers[WK_PANEL_TRITS] = {1, 3, 9, 27, 81};
    if (g >= WK_PANEL_TRITS) {
        const int index = WK_PANEL_GROUP_BYTES + (g - WK_PANEL_TRITS) * WK_PANEL_ROWS + row;
        return wk_panel_spread(quants[index], 2);
    }
    uint8_t trits[4];
    for (int e = 0; e < 4; e++)
        trits[e] = (uint8_t)((quants[4 * row + e] * powers[g] & 255) * 3 >> 8);
    return wk_load_u32(trits);
}

static uint32_t grid_word(wk_layout layout, const uint8_t *quants, int row, int g) {
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    const int j = g * grid->entries / WK_PANEL_GROUPS;
    const uint8_t *const bytes = quants + wk_panel_upper_at(grid) + row;
    uint32_t upper = 0;
    for (int i = 0; i < grid->upper_bytes; i++)
        upper |= (uint32_t)bytes[i * WK_PANEL_ROWS] << 8 * i;
    const uint32_t high = upper >> grid->upper_step * j & grid->upper_mask;
    const uint32_t entry = grid->grid[high << 8 | quants[j * WK_PANEL_ROWS + row]];
    if (grid->entries == WK_PANEL_GROUPS) return wk_panel_spread(entry, 3);
    const uint32_t word = wk_panel_spread(entry >> g % 2 * 8 & 255, 2);
    const bool is_down = wk_panel_get(layout)->levels == WK_LEVELS_IQ1 &&
                         (upper >> wk_panel_down_bit(grid, j) & 1) != 0;
    return is_down ? word | 0x08080808 : word;
}

/* The signs of the group's elements as bits. */
static unsigned grid_signs(wk_layout layout, const uint8_t *quants, int row, int g) {
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    if (!grid->has_signs) return 0;
    const uint8_t *const signs = quants + wk_panel_signs_at(grid) + g * WK_PANEL_ROWS / 2;
    return (uint32_t)signs[row / 2] >> row % 2 * 4 & 15;
}

static void group_quants(wk_layout layout, const uint8_t *quants, int row, int g, int q[4]) {
    const wk_panel_format *const format = wk_panel_get(layout);
    uint32_t word = 0;
    unsigned signs = 0;
    switch (format->code) {
    case WK_CODE_BITS: word = bits_word(format->bits, quants, row, g); break;
    case WK_CODE_TRITS: word = trits_word(quants, row, g); break;
    case WK_CODE_GRID:
        word = grid_word(layout, quants, row, g);
        signs = grid_signs(layout, quants, row, g);
        break;
    }
    for (int e = 0; e < 4; e++) {
        q[e] = (int)(word >> 8 * e & 255);
        if (format->levels != WK_LEVELS_LINEAR) q[e] = wk_panel_levels_table[format->levels][q[e]];
        q[e] -= format->bias;
        if ((signs >> e & 1) != 0) q[e] = -q[e];
    }
}

void wk_panel_decode_row(wk_layout layout, int64_t k, int row, const uint8_t *panel, float *dst) {
    assert(row >= 0 && row < WK_PANEL_ROWS && k % WK_PANEL_BLOCK == 0);
    enum { HALF = WK_PANEL_BLOCK / 2 };
    const bool has_minimum = wk_panel_has_minimum(layout);
    for (int64_t b = 0; b < k / WK_PANEL_BLOCK; b++) {
        const uint8_t *const head = panel + wk_panel_head_at(layout, b) + 2 * row;
        const uint8_t *const scale = panel + wk_panel_block_at(layout, b) + row;
        const uint8_t *const quants = scale - row + wk_panel_scale_bytes(layout);
        for (int g = 0; g < WK_PANEL_GROUPS; g++, dst += 4) {
            const half_scale of = load_scale(layout, head, scale, quants + row, g * 4 / HALF);
            int q[4];
            group_quants(layout, quants, row, g, q);
            for (int e = 0; e < 4; e++) {
                /* The product is exact: at most 24 bits. */
                dst[e] = (float)q[e] * of.step;
                if (has_minimum) dst[e] += of.addend;
            }
        }
    }
}
