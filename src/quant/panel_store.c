/* quant/panel_store.c: raw rows into panels: puts 16 of them side by side.
 *
 * A model is loaded as fast as this runs, so every layout has its own copy of the loops, in which
 * all that depends on the layout is constant. */
#include "quant/panel.h"

#include "core/dtype.h"
#include "quant/panel_take.h"

#include <assert.h>

static void store_word(uint8_t *to, int index, uint32_t word) {
    memcpy(to + index * WK_PANEL_GROUP_BYTES, &word, sizeof word);
}

/* to: of this row in group 0. */
WK_INLINE void store_bits(int bits, const uint32_t word[WK_PANEL_GROUPS], uint8_t *to) {
    const int lower = wk_panel_lower_bits(bits), u = bits - lower;
    uint32_t array[WK_PANEL_GROUPS] = {0};
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        array[g % lower] |= (word[g] & wk_panel_mask(lower)) << g / lower * lower;
        if (u == 0) continue;
        array[lower + wk_panel_upper_word(u, g)] |=
            wk_panel_rotate(word[g] >> lower & wk_panel_mask(u), wk_panel_upper_shift(lower, u, g));
    }
    for (int i = 0; i < bits; i++) store_word(to, i, array[i]);
}

WK_INLINE void store_trits(const uint32_t word[WK_PANEL_GROUPS], int row, uint8_t *quants) {
    for (int e = 0; e < 4; e++) {
        unsigned digits = 0;
        for (int g = 0; g < WK_PANEL_TRITS; g++) digits = 3 * digits + (word[g] >> 8 * e & 3);
        /* The smallest byte that is so great a part of 256 as the digits are of 3^5. */
        quants[4 * row + e] = (uint8_t)((digits * 256 + 242) / 243);
    }
    for (int g = WK_PANEL_TRITS; g < WK_PANEL_GROUPS; g++) {
        const uint32_t w = word[g];
        quants[WK_PANEL_GROUP_BYTES + (g - WK_PANEL_TRITS) * WK_PANEL_ROWS + row] =
            (uint8_t)((w & 3) | (w >> 6 & 12) | (w >> 12 & 48) | (w >> 18 & 192));
    }
}

/* The rows come in order, from 0 on: even ones begin the bytes of signs. */
WK_INLINE void store_grid(const wk_panel_grid *grid, const block_row *from, int row,
                          uint8_t *quants) {
    for (int j = 0; j < grid->entries; j++)
        quants[j * WK_PANEL_ROWS + row] = (uint8_t)from->word[j];
    for (int i = 0; i < grid->upper_bytes; i++)
        quants[wk_panel_upper_at(grid) + i * WK_PANEL_ROWS + row] = (uint8_t)(from->upper >> 8 * i);
    for (int g = 0; g < WK_PANEL_GROUPS && grid->has_signs; g++) {
        uint8_t *const signs = quants + wk_panel_signs_at(grid) + g * WK_PANEL_ROWS / 2 + row / 2;
        const int four = from->signs[g / 2] >> g % 2 * 4 & 15;
        *signs = (uint8_t)(row % 2 == 0 ? four : *signs | four << 4);
    }
}

WK_INLINE void store_quants(wk_layout layout, const block_row *from, int row, uint8_t *quants) {
    const wk_panel_format *const format = wk_panel_get(layout);
    if (format->code == WK_CODE_GRID) {
        const wk_panel_grid *const grid = wk_panel_get_grid(layout);
        store_grid(grid, from, row, quants);
    } else if (format->code == WK_CODE_TRITS) {
        store_trits(from->word, row, quants);
    } else {
        store_bits(format->bits, from->word, quants + 4 * row);
    }
}

/* ---- Panels ---- */

/* Rows of a weight as they lie in the file. */
typedef struct raw_rows {
    const uint8_t *bytes;
    uint64_t row_bytes;
    int n;     /* 1 to WK_PANEL_ROWS */
    int64_t k; /* elements of a row */
} raw_rows;

/* Blocks of a panel in a block of the file: those that share a head. nvfp4 has none but scales. */
WK_INLINE int raw_runs(wk_layout layout) {
    return layout == WK_LAYOUT_PANEL_NVFP4 ? 2 : wk_panel_head_blocks(layout);
}

/* Heads and scales are columns of one 16-bit number or byte for each row. */
WK_INLINE void store_quant_panel(wk_layout layout, wick_dtype dtype, const raw_rows *from,
                                 uint8_t *panel) {
    const int n_runs = raw_runs(layout), raw_bytes = wk_dtype_get(dtype)->block_bytes;
    assert(from->k % (n_runs * WK_PANEL_BLOCK) == 0);
    const int head_bytes = wk_panel_head_bytes(layout), scale_bytes = wk_panel_scale_bytes(layout);
    const uint8_t *raw = from->bytes;
    for (int64_t left = from->k; left > 0; left -= n_runs * WK_PANEL_BLOCK, raw += raw_bytes) {
        uint8_t *heads = panel;
        for (int run = 0; run < n_runs; run++, panel += wk_panel_block_bytes(layout)) {
            const bool has_head = run % wk_panel_head_blocks(layout) == 0;
            if (has_head) {
                heads = panel;
                panel += head_bytes;
            }
            for (int row = 0; row < from->n; row++) {
                block_row block;
                take_block(dtype, raw + (uint64_t)row * from->row_bytes, run, &block);
                for (int i = 0; has_head && 2 * i * WK_PANEL_ROWS < head_bytes; i++)
                    memcpy(heads + 2 * (i * WK_PANEL_ROWS + row), block.head + 2 * i, 2);
                for (int i = 0; i * WK_PANEL_ROWS < scale_bytes; i++)
                    panel[i * WK_PANEL_ROWS + row] = block.scale[i];
                store_quants(layout, &block, row, panel + scale_bytes);
            }
        }
    }
}

WK_INLINE void store_floats(size_t size, const raw_rows *from, int64_t first, uint8_t *panel) {
    for (int64_t i = first; i < from->k; i++) {
        for (int row = 0; row < from->n; row++)
            memcpy(panel + size * (size_t)(i * WK_PANEL_ROWS + row),
                   from->bytes + (uint64_t)row * from->row_bytes + size * (size_t)i, size);
    }
}

/* Four elements of 16 bits of each of four rows, row_bytes apart, to where a panel has them. */
WK_INLINE void store_4x4(const uint8_t *from, uint64_t row_bytes, uint8_t *to) {
    const uint64_t low_words = UINT64_C(0x00000000FFFFFFFF), even = UINT64_C(0x0000FFFF0000FFFF);
    uint64_t a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + row_bytes, sizeof b);
    memcpy(&c, from + 2 * row_bytes, sizeof c);
    memcpy(&d, from + 3 * row_bytes, sizeof d);
    const uint64_t pair[2][2] = {
        {(a & low_words) | c << 32, (b & low_words) | d << 32},
        {a >> 32 | (c & ~low_words), b >> 32 | (d & ~low_words)},
    };
    for (int i = 0; i < 4; i++) {
        const uint64_t p = pair[i / 2][0], q = pair[i / 2][1];
        const uint64_t column =
            i % 2 == 0 ? (p & even) | (q & even) << 16 : (p >> 16 & even) | (q & ~even);
        memcpy(to + 2 * i * WK_PANEL_ROWS, &column, sizeof column);
    }
}

static void store_halves(const raw_rows *from, uint8_t *panel) {
    enum { TILE = 32 }; /* elements of one cache line */
    const int64_t n_whole = from->n == WK_PANEL_ROWS ? from->k / TILE * TILE : 0;
    for (int64_t first = 0; first < n_whole; first += TILE) {
        for (int row = 0; row < WK_PANEL_ROWS; row += 4) {
            for (int64_t i = first; i < first + TILE; i += 4)
                store_4x4(from->bytes + (uint64_t)row * from->row_bytes + 2 * i, from->row_bytes,
                          panel + 2 * (i * WK_PANEL_ROWS + row));
        }
    }
    store_floats(2, from, n_whole, panel);
}

void wk_panel_store(wk_layout layout, int64_t k, const uint8_t *rows, uint64_t row_bytes,
                    int n_rows, uint8_t *panel) {
    const raw_rows from = {.bytes = rows, .row_bytes = row_bytes, .n = n_rows, .k = k};
    assert(n_rows >= 1 && n_rows <= WK_PANEL_ROWS);
    if (n_rows < WK_PANEL_ROWS) memset(panel, 0, (size_t)wk_panel_bytes(layout, k));
    switch (layout) {
    case WK_LAYOUT_PANEL_F32: store_floats(4, &from, 0, panel); break;
    case WK_LAYOUT_PANEL_F16:
    case WK_LAYOUT_PANEL_BF16: store_halves(&from, panel); break;
#define STORE(dtype, name)                                                                         \
    case WK_LAYOUT_PANEL_##dtype:                                                                  \
        store_quant_panel(WK_LAYOUT_PANEL_##dtype, WICK_##dtype, &from, panel);                    \
        break;
        WK_PANEL_FORMATS(STORE)
#undef STORE
    case WK_LAYOUT_RAW:
    case WK_LAYOUT_COUNT_: assert(false && "not a layout of panels");
    }
}
