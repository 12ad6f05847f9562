/* quant/layout.c: which weights have which layout, writing them, and what they mean. */
#include "quant/layout.h"

#include "core/dtype.h"
#include "quant/block.h"
#include "quant/decode.h"
#include "quant/panel.h"

#include <assert.h>
#include <string.h>

enum { HALF_GROUPS = WK_PANEL_GROUPS / 2 };

const uint8_t wk_panel_levels_table[3][16] = {
    [WK_LEVELS_IQ4] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    [WK_LEVELS_E2M1] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120,
                        116},
};

/* The type whose weights lie so; not for WK_LAYOUT_RAW. */
static wick_dtype panel_dtype(wk_layout layout) {
    switch (layout) {
    case WK_LAYOUT_PANEL_F32: return WICK_F32;
    case WK_LAYOUT_PANEL_F16: return WICK_F16;
    case WK_LAYOUT_PANEL_BF16: return WICK_BF16;
#define LAYOUT_DTYPE(dtype, name)                                                                  \
    case WK_LAYOUT_PANEL_##dtype: return WICK_##dtype;
        WK_PANEL_FORMATS(LAYOUT_DTYPE)
#undef LAYOUT_DTYPE
    case WK_LAYOUT_RAW:
    case WK_LAYOUT_COUNT_: break;
    }
    assert(false && "a layout of no type");
    return WICK_F32;
}

static bool is_of_floats(wk_layout layout) { return wk_panel_get(layout).bits == 0; }

bool wk_layout_accepts(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k) {
    if (n < 0 || k < 0 || k % wk_dtype_get(dtype)->block_elements != 0) return false;
    return layout == WK_LAYOUT_RAW || panel_dtype(layout) == dtype;
}

int64_t wk_panel_bytes(wk_layout layout, int64_t k) {
    if (is_of_floats(layout))
        return k * WK_PANEL_ROWS * wk_dtype_get(panel_dtype(layout))->block_bytes;
    return wk_panel_head_at(layout, k / WK_PANEL_BLOCK);
}

static bool multiply(uint64_t a, uint64_t b, uint64_t *product) {
    if (b != 0 && a > UINT64_MAX / b) return false;
    *product = a * b;
    return true;
}

bool wk_layout_bytes(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, uint64_t *bytes) {
    if (!wk_layout_accepts(layout, dtype, n, k)) return false;
    uint64_t row_bytes;
    if (layout == WK_LAYOUT_RAW)
        return wk_dtype_bytes(dtype, k, &row_bytes) && multiply(row_bytes, (uint64_t)n, bytes);
    /* Far from the end of the address space, so that wk_panel_bytes cannot overflow. */
    if (k > INT64_MAX / 256) return false;
    const uint64_t panels = ((uint64_t)n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS;
    return multiply((uint64_t)wk_panel_bytes(layout, k), panels, bytes);
}

/* ---- Rows of words and bytes in a panel of quants. ---- */

static uint32_t rotate_left(uint32_t word, int by) { return word << by | word >> (32 - by); }

static void store_word(uint8_t *to, int index, uint32_t word) {
    memcpy(to + index * WK_PANEL_GROUP_BYTES, &word, sizeof word);
}

static uint32_t load_word(const uint8_t *from, int index) {
    return wk_load_u32(from + index * WK_PANEL_GROUP_BYTES);
}

/* Where the bits of group g above the fourth lie in a row's word (quant/panel.h). */
static int upper_shift(int bits, int g) { return bits == 5 ? 4 + g : 4 + 2 * (g % HALF_GROUPS); }
static int upper_word(int bits, int g) {
    return HALF_GROUPS + (bits == 6 && g >= HALF_GROUPS ? 1 : 0);
}
static uint32_t upper_mask(int bits) { return bits == 5 ? 0x01010101 : 0x03030303; }

/* to: of this row in group 0. */
static void store_quants(int bits, const uint32_t word[WK_PANEL_GROUPS], uint8_t *to) {
    if (bits == 8) {
        for (int g = 0; g < WK_PANEL_GROUPS; g++) store_word(to, g, word[g]);
        return;
    }
    for (int g = 0; g < HALF_GROUPS; g++) {
        const uint32_t low = word[g] & 0x0F0F0F0F, high = word[g + HALF_GROUPS] & 0x0F0F0F0F;
        store_word(to, g, low | high << 4);
    }
    if (bits == 4) return;
    uint32_t upper[2] = {0, 0};
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        upper[upper_word(bits, g) - HALF_GROUPS] |=
            rotate_left(word[g] >> 4 & upper_mask(bits), upper_shift(bits, g));
    store_word(to, HALF_GROUPS, upper[0]);
    if (bits == 6) store_word(to, HALF_GROUPS + 1, upper[1]);
}

static void load_quants(int bits, const uint8_t *from, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        if (bits == 8) {
            word[g] = load_word(from, g);
            continue;
        }
        word[g] = load_word(from, g % HALF_GROUPS) >> g / HALF_GROUPS * 4 & 0x0F0F0F0F;
        if (bits == 4) continue;
        const uint32_t upper = load_word(from, upper_word(bits, g));
        word[g] |= (rotate_left(upper, 32 - upper_shift(bits, g)) & upper_mask(bits)) << 4;
    }
}

/* Heads and scales are columns of one 16-bit number or byte for each row. */
static void store_block(wk_layout layout, const wk_panel_row *from, int64_t b, int row,
                        uint8_t *panel) {
    uint8_t *const head = panel + wk_panel_head_at(layout, b);
    uint8_t *const scales = panel + wk_panel_block_at(layout, b);
    if (b % wk_panel_head_blocks(layout) == 0)
        for (int i = 0; 2 * i * WK_PANEL_ROWS < wk_panel_head_bytes(layout); i++)
            memcpy(head + 2 * (i * WK_PANEL_ROWS + row), from->head + 2 * i, 2);
    for (int i = 0; i * WK_PANEL_ROWS < wk_panel_scale_bytes(layout); i++)
        scales[i * WK_PANEL_ROWS + row] = from->scale[i];
    store_quants(wk_panel_get(layout).bits, from->word,
                 scales + wk_panel_scale_bytes(layout) + 4 * row);
}

static void store_row(wk_layout layout, wick_dtype dtype, int64_t k, int row, const uint8_t *raw,
                      uint8_t *panel) {
    if (is_of_floats(layout)) {
        const int64_t size = wk_dtype_get(dtype)->block_bytes;
        for (int64_t i = 0; i < k; i++)
            memcpy(panel + size * (i * WK_PANEL_ROWS + row), raw + size * i, (size_t)size);
        return;
    }
    for (int64_t b = 0; b < k / WK_PANEL_BLOCK; b++) {
        wk_panel_row block;
        wk_panel_from_raw(dtype, raw, b, &block);
        store_block(layout, &block, b, row, panel);
    }
}

void wk_layout_store(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, int64_t first_row,
                     int64_t n_rows, const void *blocks, void *weight) {
    assert(wk_layout_accepts(layout, dtype, n, k) && first_row + n_rows <= n);
    assert(first_row % WK_PANEL_ROWS == 0 &&
           (n_rows % WK_PANEL_ROWS == 0 || first_row + n_rows == n));
    uint64_t row_bytes = 0;
    const bool fits = wk_dtype_bytes(dtype, k, &row_bytes);
    assert(fits);
    (void)fits, (void)n;
    if (layout == WK_LAYOUT_RAW) {
        uint8_t *const to = (uint8_t *)weight + (size_t)first_row * row_bytes;
        if (n_rows > 0 && row_bytes > 0) memcpy(to, blocks, (size_t)n_rows * row_bytes);
        return;
    }
    const int64_t panel_bytes = wk_panel_bytes(layout, k);
    const uint8_t *raw = blocks;
    for (int64_t i = 0; i < n_rows; i++, raw += row_bytes) {
        const int row = (int)(i % WK_PANEL_ROWS);
        uint8_t *const panel = (uint8_t *)weight + (first_row + i) / WK_PANEL_ROWS * panel_bytes;
        /* Rows past n stay zeros. */
        if (row == 0 && n_rows - i < WK_PANEL_ROWS) memset(panel, 0, (size_t)panel_bytes);
        store_row(layout, dtype, k, row, raw, panel);
    }
}

/* ---- Decoding ---- */

/* What is added to step * q, and the steps of both halves of a block. */
typedef struct row_scales {
    float step[2], addend;
} row_scales;

static row_scales load_scales(wk_layout layout, const uint8_t *panel, int64_t b, int row) {
    const uint8_t *const head = panel + wk_panel_head_at(layout, b) + 2 * row;
    const uint8_t *const scale = panel + wk_panel_block_at(layout, b) + row;
    const float d = wk_load_f16(head);
    switch (wk_panel_get(layout).scale) {
    case WK_SCALE_F16: return (row_scales){{d, d}, 0};
    case WK_SCALE_BF16: {
        const float step = wk_bf16_to_f32(wk_load_u16(head));
        return (row_scales){{step, step}, 0};
    }
    case WK_SCALE_F16_MIN: return (row_scales){{d, d}, wk_load_f16(head + 2 * WK_PANEL_ROWS)};
    case WK_SCALE_K: {
        const float step = d * (float)(int8_t)scale[0];
        return (row_scales){{step, step}, 0};
    }
    case WK_SCALE_K_HALVES:
        return (row_scales){{d * (float)(int8_t)scale[0], d * (float)(int8_t)scale[WK_PANEL_ROWS]},
                            0};
    case WK_SCALE_K_MIN: {
        const float step = d * (float)scale[0];
        const float minimum = wk_load_f16(head + 2 * WK_PANEL_ROWS) * (float)scale[WK_PANEL_ROWS];
        return (row_scales){{step, step}, -minimum};
    }
    }
    assert(false && "a scale of no kind");
    return (row_scales){{0, 0}, 0};
}

static void decode_quants(wk_layout layout, int64_t k, int row, const uint8_t *panel, float *dst) {
    const wk_panel_format format = wk_panel_get(layout);
    const bool has_minimum = wk_panel_has_minimum(layout);
    for (int64_t b = 0; b < k / WK_PANEL_BLOCK; b++) {
        const row_scales scales = load_scales(layout, panel, b, row);
        const uint8_t *const quants =
            panel + wk_panel_block_at(layout, b) + wk_panel_scale_bytes(layout) + 4 * row;
        uint32_t word[WK_PANEL_GROUPS];
        load_quants(format.bits, quants, word);
        for (int i = 0; i < WK_PANEL_BLOCK; i++, dst++) {
            int q = (int)(word[i / 4] >> i % 4 * 8 & 255);
            if (format.levels != WK_LEVELS_LINEAR) q = wk_panel_levels_table[format.levels][q];
            /* The product is exact: at most 24 bits. */
            *dst = (float)(q - format.bias) * scales.step[i / (WK_PANEL_BLOCK / 2)];
            if (has_minimum) *dst += scales.addend;
        }
    }
}

static void decode_floats(wk_layout layout, int64_t k, int row, const uint8_t *panel, float *dst) {
    const wick_dtype dtype = panel_dtype(layout);
    const int64_t size = wk_dtype_get(dtype)->block_bytes;
    for (int64_t i = 0; i < k; i++)
        wk_decoder(dtype)(panel + size * (i * WK_PANEL_ROWS + row), dst + i, 1);
}

void wk_layout_decode_row(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, int64_t row,
                          const void *weight, float *dst) {
    assert(wk_layout_accepts(layout, dtype, n, k) && row >= 0 && row < n);
    (void)n;
    if (layout == WK_LAYOUT_RAW) {
        const wk_dtype_info *const info = wk_dtype_get(dtype);
        const int64_t row_bytes = k / info->block_elements * info->block_bytes;
        wk_decoder(dtype)((const uint8_t *)weight + row * row_bytes, dst, k);
        return;
    }
    const int lane = (int)(row % WK_PANEL_ROWS);
    const uint8_t *const panel =
        (const uint8_t *)weight + row / WK_PANEL_ROWS * wk_panel_bytes(layout, k);
    if (is_of_floats(layout)) {
        decode_floats(layout, k, lane, panel, dst);
    } else {
        decode_quants(layout, k, lane, panel, dst);
    }
}
