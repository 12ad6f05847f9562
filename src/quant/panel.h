/* quant/panel.h: the panels of quants: what lies where, for those who write, decode and multiply.
 *
 * A panel is 16 rows. Its k runs in blocks of 32 elements; those of one block of the file share a
 * head:
 *
 *   { head, { scales, quants } of each block under it }
 *
 *   head    [16 rows] of 16 bits, once or twice, by wk_panel_scale
 *   scales  [16 rows] bytes, as often as wk_panel_scale says
 *   quants  by wk_panel_code, of 8 groups g of 4 elements each
 *
 * Bits lie in arrays of [16 rows][4] bytes. Of 1, 2, 4 or 8 bits: group g is in array g mod bits,
 * from bit (g / bits) bits of each byte on. Of 3, 5 or 6 bits: the lower 2 or 4 bits are stored in
 * this way, followed by arrays of the upper u bits, each of 8 / u groups: those of element e begin
 * at bit (8 e + lower + u (g mod (8 / u))) mod 32 of the row's word, so that a rotation of words
 * brings them to their place.
 *
 * Scales keep the value that they have in the file: a row decodes to the same floats as its raw
 * blocks. */
#ifndef WK_QUANT_PANEL_H
#define WK_QUANT_PANEL_H

#include "core/compiler.h"
#include "quant/iq_tables.h"
#include "quant/layout.h"

enum {
    WK_PANEL_BLOCK = 32,
    WK_PANEL_GROUPS = 8,
    WK_PANEL_GROUP_BYTES = 4 * WK_PANEL_ROWS,
    WK_PANEL_TRITS = 5, /* in a byte */
};

/* x = step * q + addend, q being the quant less its bias. Halves are elements 0 ... 15 and
 * 16 ... 31 of a block. */
typedef enum wk_panel_scale {
    WK_SCALE_F16,          /* head d: step d */
    WK_SCALE_BF16,         /* step d, as bf16 */
    WK_SCALE_F16_MIN,      /* head d and m: step d, addend m */
    WK_SCALE_F16_HALVES,   /* head with a d for each half: step d */
    WK_SCALE_K,            /* head d, scale s, signed: step d s */
    WK_SCALE_K_HALVES,     /* the same with an s for each half */
    WK_SCALE_K_MIN,        /* head d and m, scales s and t: step d s, addend -(m t) */
    WK_SCALE_K_MIN_HALVES, /* the same with a byte for each half, s in its low bits, t in its high
                            */
    WK_SCALE_ODD,          /* head d, scale s: step d (2 s + 1) unit */
    WK_SCALE_ODD_HALVES, /* the same with an s for each half, in the low and high bits of a byte */
    WK_SCALE_ODD_UPPER,  /* as WK_SCALE_ODD, s being in bits 12, 13 and 14 of the upper bits */
} wk_panel_scale;

/* Quants that are indices: to be looked up first. */
typedef enum wk_panel_levels {
    WK_LEVELS_LINEAR, /* no indices */
    WK_LEVELS_IQ4,
    WK_LEVELS_E2M1, /* twice the value of a 4-bit float */
    WK_LEVELS_SIGN, /* -1 and 1 */
    WK_LEVELS_IQ1,  /* eighths: 8 times -1, 0, 1, and 1 more; the same and 1 less from 8 on */
    WK_LEVELS_IQ2,
    WK_LEVELS_IQ3_XXS,
    WK_LEVELS_IQ3_S,
    WK_LEVELS_COUNT_,
} wk_panel_levels;

/* The levels with 128 added; those of WK_LEVELS_LINEAR are not there. */
extern const uint8_t wk_panel_levels_table[WK_LEVELS_COUNT_][16];

typedef enum wk_panel_code {
    WK_CODE_BITS,
    /* 0, 1, 2: groups 0 ... 4 as five digits in base 3 (as in decode_ternary.c) of [16 rows][4]
     * bytes; then of each other group [16 rows] bytes with its 4 elements in 2 bits each */
    WK_CODE_TRITS,
    WK_CODE_GRID, /* entries of a grid (see wk_panel_grid), elements having that many bits in it */
} wk_panel_code;

typedef struct wk_panel_format {
    wk_panel_code code;
    int bits, bias;
    wk_panel_levels levels;
    wk_panel_scale scale;
    int head_blocks; /* blocks under one head */
} wk_panel_format;

/* X(layout, code, bits, bias, levels, scale, blocks under a head) */
#define FORMATS(X)                                                                                 \
    X(Q8_0, BITS, 8, 128, LINEAR, F16, 1)                                                          \
    X(Q4_0, BITS, 4, 8, LINEAR, F16, 1)                                                            \
    X(Q4_1, BITS, 4, 0, LINEAR, F16_MIN, 1)                                                        \
    X(Q5_0, BITS, 5, 16, LINEAR, F16, 1)                                                           \
    X(Q5_1, BITS, 5, 0, LINEAR, F16_MIN, 1)                                                        \
    X(Q2_K, BITS, 2, 0, LINEAR, K_MIN_HALVES, 8)                                                   \
    X(Q3_K, BITS, 3, 4, LINEAR, K_HALVES, 8)                                                       \
    X(Q4_K, BITS, 4, 0, LINEAR, K_MIN, 8)                                                          \
    X(Q5_K, BITS, 5, 0, LINEAR, K_MIN, 8)                                                          \
    X(Q6_K, BITS, 6, 32, LINEAR, K_HALVES, 8)                                                      \
    X(IQ4_NL, BITS, 4, 128, IQ4, F16, 1)                                                           \
    X(IQ4_XS, BITS, 4, 128, IQ4, K, 8)                                                             \
    X(MXFP4, BITS, 4, 128, E2M1, BF16, 1)                                                          \
    X(NVFP4, BITS, 4, 128, E2M1, F16_HALVES, 1)                                                    \
    X(Q1_0, BITS, 1, 128, SIGN, F16, 4)                                                            \
    X(Q2_0, BITS, 2, 1, LINEAR, F16, 2)                                                            \
    X(TQ1_0, TRITS, 2, 1, LINEAR, F16, 8)                                                          \
    X(TQ2_0, BITS, 2, 1, LINEAR, F16, 8)                                                           \
    X(IQ1_S, GRID, 2, 128, IQ1, ODD_UPPER, 8)                                                      \
    X(IQ1_M, GRID, 2, 128, IQ1, ODD_HALVES, 8)                                                     \
    X(IQ2_XXS, GRID, 2, 128, IQ2, ODD, 8)                                                          \
    X(IQ2_XS, GRID, 2, 128, IQ2, ODD_HALVES, 8)                                                    \
    X(IQ2_S, GRID, 2, 128, IQ2, ODD_HALVES, 8)                                                     \
    X(IQ3_XXS, GRID, 3, 128, IQ3_XXS, ODD, 8)                                                      \
    X(IQ3_S, GRID, 3, 128, IQ3_S, ODD, 8)

/* Constant tables rather than switches: of a constant layout everything here is constant, and the
 * compiler has no other cases to take apart in each of the thousands of places that ask. */
static const wk_panel_format wk_panel_formats[WK_LAYOUT_COUNT_] = {
#define AT(layout) WK_LAYOUT_PANEL_##layout
#define FORMAT(layout, code, bits, bias, levels, scale, blocks)                                    \
    [AT(layout)] = {WK_CODE_##code, bits, bias, WK_LEVELS_##levels, WK_SCALE_##scale, blocks},
    FORMATS(FORMAT)
#undef FORMAT
};
#undef FORMATS

/* bits is 0 for layouts of floats. */
WK_INLINE const wk_panel_format *wk_panel_get(wk_layout layout) {
    return &wk_panel_formats[layout];
}

/* Quants of a block by a grid of quant/iq_tables.h:
 *
 *   indices  their low 8 bits, [entries][16 rows]
 *   upper    [upper_bytes][16 rows] as one number: those of entry j from bit j upper_step on
 *   signs    [8 groups][16 rows] of 4 bits, 1 for negative elements; or none
 *
 * With WK_LEVELS_IQ1 another upper bit says which half of the levels an entry takes: bit 15 where
 * upper_step is 3, else the one above the entry's own. */
typedef struct wk_panel_grid {
    const uint16_t *grid;
    int entries; /* in a block */
    int upper_bytes, upper_step;
    uint32_t upper_mask;
    bool has_signs;
    float unit;
} wk_panel_grid;

/* X(layout, members of wk_panel_grid) */
#define GRIDS(X)                                                                                   \
    X(IQ1_S, wk_iq1_grid, 4, 2, 3, 7, false, 0.125F)                                               \
    X(IQ1_M, wk_iq1_grid, 4, 2, 4, 7, false, 0.125F)                                               \
    X(IQ2_XXS, wk_iq2_xxs_grid, 4, 0, 0, 0, true, 0.125F)                                          \
    X(IQ2_XS, wk_iq2_xs_grid, 4, 1, 2, 1, true, 0.125F)                                            \
    X(IQ2_S, wk_iq2_s_grid, 4, 1, 2, 3, true, 0.125F)                                              \
    X(IQ3_XXS, wk_iq3_xxs_grid, 8, 0, 0, 0, true, 0.25F)                                           \
    X(IQ3_S, wk_iq3_s_grid, 8, 1, 1, 1, true, 1)

static const wk_panel_grid wk_panel_grids[WK_LAYOUT_COUNT_] = {
#define GRID(layout, ...) [AT(layout)] = {__VA_ARGS__},
    GRIDS(GRID)
#undef GRID
};
#undef GRIDS
#undef AT

WK_INLINE const wk_panel_grid *wk_panel_get_grid(wk_layout layout) {
    return &wk_panel_grids[layout];
}

/* Which bit of the upper ones says that entry j is of the levels from 8 on. */
WK_INLINE int wk_panel_down_bit(const wk_panel_grid *grid, int j) {
    return grid->upper_step == 3 ? 15 : grid->upper_step * j + 3;
}
/* Where the upper bits and the signs are, from the quants on. */
WK_INLINE int wk_panel_upper_at(const wk_panel_grid *grid) { return grid->entries * WK_PANEL_ROWS; }
WK_INLINE int wk_panel_signs_at(const wk_panel_grid *grid) {
    return (grid->entries + grid->upper_bytes) * WK_PANEL_ROWS;
}

/* Of 8, 4, 2 or 1 bits are the arrays that hold the lower ones. */
WK_INLINE int wk_panel_lower_bits(int bits) {
    if (bits == 3) return 2;
    return bits == 5 || bits == 6 ? 4 : bits;
}

WK_INLINE bool wk_panel_has_minimum(wk_layout layout) {
    const wk_panel_scale scale = wk_panel_get(layout)->scale;
    return scale == WK_SCALE_F16_MIN || scale == WK_SCALE_K_MIN || scale == WK_SCALE_K_MIN_HALVES;
}
/* Blocks under one head. */
WK_INLINE int wk_panel_head_blocks(wk_layout layout) { return wk_panel_get(layout)->head_blocks; }
WK_INLINE int wk_panel_head_bytes(wk_layout layout) {
    const bool is_pair =
        wk_panel_has_minimum(layout) || wk_panel_get(layout)->scale == WK_SCALE_F16_HALVES;
    return (is_pair ? 4 : 2) * WK_PANEL_ROWS;
}
WK_INLINE int wk_panel_scale_bytes(wk_layout layout) {
    switch (wk_panel_get(layout)->scale) {
    case WK_SCALE_K:
    case WK_SCALE_ODD:
    case WK_SCALE_ODD_HALVES: return WK_PANEL_ROWS;
    case WK_SCALE_K_HALVES:
    case WK_SCALE_K_MIN:
    case WK_SCALE_K_MIN_HALVES: return 2 * WK_PANEL_ROWS;
    default: return 0;
    }
}
WK_INLINE int wk_panel_quant_bytes(wk_layout layout) {
    const wk_panel_format *const format = wk_panel_get(layout);
    if (format->code == WK_CODE_TRITS)
        return WK_PANEL_GROUP_BYTES + (WK_PANEL_GROUPS - WK_PANEL_TRITS) * WK_PANEL_ROWS;
    if (format->code == WK_CODE_BITS) return format->bits * WK_PANEL_GROUP_BYTES;
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    return wk_panel_signs_at(grid) + (grid->has_signs ? WK_PANEL_GROUPS * WK_PANEL_ROWS / 2 : 0);
}
/* Scales and quants. */
WK_INLINE int wk_panel_block_bytes(wk_layout layout) {
    return wk_panel_scale_bytes(layout) + wk_panel_quant_bytes(layout);
}

/* Where block b of a panel has its head, and where it begins itself, from the panel's begin. */
WK_INLINE int64_t wk_panel_head_at(wk_layout layout, int64_t b) {
    const int blocks = wk_panel_head_blocks(layout);
    return b / blocks * (wk_panel_head_bytes(layout) + blocks * wk_panel_block_bytes(layout));
}
WK_INLINE int64_t wk_panel_block_at(wk_layout layout, int64_t b) {
    return wk_panel_head_at(layout, b) + wk_panel_head_bytes(layout) +
           b % wk_panel_head_blocks(layout) * wk_panel_block_bytes(layout);
}

/* Of 3, 5 and 6 bits, where the upper ones of group g lie in a row's words of upper bits, u of each
 * element: the word, and the bit where the one of element 0 begins. */
WK_INLINE int wk_panel_upper_word(int u, int g) { return g / (8 / u); }
WK_INLINE int wk_panel_upper_shift(int lower, int u, int g) { return lower + u * (g % (8 / u)); }
/* The lowest bits of four bytes. */
WK_INLINE uint32_t wk_panel_mask(int bits) { return 0x01010101U * ((1U << bits) - 1); }
/* To the left, by 1 to 31. */
WK_INLINE uint32_t wk_panel_rotate(uint32_t word, int by) { return word << by | word >> (32 - by); }

/* 4 elements of a word with bits each, the first one lowest, to bytes. */
WK_INLINE uint32_t wk_panel_spread(uint32_t word, int bits) {
    const uint32_t pair = (1U << 2 * bits) - 1;
    word = (word | word << (16 - 2 * bits)) & (pair | pair << 16);
    return (word | word << (8 - bits)) & wk_panel_mask(bits);
}

/* panel_decode.c: row of a panel of quants to k floats. */
void wk_panel_decode_row(wk_layout layout, int64_t k, int row, const uint8_t *panel, float *dst);

/* panel_store.c: n_rows <= WK_PANEL_ROWS raw rows of k elements, row_bytes apart, into a panel.
 * Rows that are missing become zeros. */
void wk_panel_store(wk_layout layout, int64_t k, const uint8_t *rows, uint64_t row_bytes,
                    int n_rows, uint8_t *panel);

#endif
