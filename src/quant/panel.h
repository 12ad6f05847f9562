/* quant/panel.h: the panels of quants: what lies where, for those who write, decode and multiply.
 *
 * A panel is 16 rows. Its k runs in blocks of 32 elements; with k types, 8 blocks share a head:
 *
 *   { head, { scales, quants } of each block under it }
 *
 *   head    [16 rows] of 16 bits: the scale d; then, with a minimum, [16 rows] f16 of that
 *   scales  [16 rows] bytes, once or twice, by wk_panel_scale
 *   quants  of 8 groups g, 4 elements each, in [16 rows][4] bytes:
 *           8 bits  groups 0 ... 7
 *           4 bits  groups 0 ... 3 in the low halves, 4 ... 7 in the high ones
 *           5 bits  the same, then the fifth bits: that of element e in group g is bit
 *                   (8 e + 4 + g) mod 32 of the row's word
 *           6 bits  the same, then the top two bits of groups 0 ... 3 and of groups 4 ... 7: those
 *                   of element e in group g begin at bit (8 e + 4 + 2 (g mod 4)) mod 32
 *
 * so that a rotation of words brings the upper bits of a group to their place. Scales keep the bits
 * of the file: a row decodes to the same floats as its raw blocks. */
#ifndef WK_QUANT_PANEL_H
#define WK_QUANT_PANEL_H

#include "core/compiler.h"
#include "quant/layout.h"

enum { WK_PANEL_BLOCK = 32, WK_PANEL_GROUPS = 8, WK_PANEL_GROUP_BYTES = 4 * WK_PANEL_ROWS };

/* x = step * q + addend, q being the quant less its bias. */
typedef enum wk_panel_scale {
    WK_SCALE_F16,      /* step d */
    WK_SCALE_BF16,     /* step d, as bf16 */
    WK_SCALE_F16_MIN,  /* step d, addend m */
    WK_SCALE_K,        /* step d s, s signed */
    WK_SCALE_K_HALVES, /* the same, with an s for elements 0 ... 15 and one for 16 ... 31 */
    WK_SCALE_K_MIN,    /* step d s, addend -(m t), s and t unsigned */
} wk_panel_scale;

/* 4-bit quants that are indices: to be looked up first. */
typedef enum wk_panel_levels {
    WK_LEVELS_LINEAR, /* no indices */
    WK_LEVELS_IQ4,
    WK_LEVELS_E2M1, /* twice the value of a 4-bit float */
} wk_panel_levels;

/* The levels with 128 added; those of WK_LEVELS_LINEAR are not there. */
extern const uint8_t wk_panel_levels_table[3][16];

typedef struct wk_panel_format {
    int bits, bias;
    wk_panel_scale scale;
    wk_panel_levels levels;
} wk_panel_format;

/* X(layout and dtype, name) of all that have a format. */
#define WK_PANEL_FORMATS(X)                                                                        \
    X(Q8_0, q8_0)                                                                                  \
    X(Q4_0, q4_0)                                                                                  \
    X(Q4_1, q4_1)                                                                                  \
    X(Q5_0, q5_0)                                                                                  \
    X(Q5_1, q5_1)                                                                                  \
    X(Q4_K, q4_k)                                                                                  \
    X(Q5_K, q5_k)                                                                                  \
    X(Q6_K, q6_k)                                                                                  \
    X(IQ4_NL, iq4_nl)                                                                              \
    X(IQ4_XS, iq4_xs)                                                                              \
    X(MXFP4, mxfp4)

/* Of a constant layout everything here is constant. bits is 0 for layouts of floats. */
WK_INLINE wk_panel_format wk_panel_get(wk_layout layout) {
    switch (layout) {
    case WK_LAYOUT_PANEL_Q8_0: return (wk_panel_format){8, 128, WK_SCALE_F16, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q4_0: return (wk_panel_format){4, 8, WK_SCALE_F16, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q4_1: return (wk_panel_format){4, 0, WK_SCALE_F16_MIN, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q5_0: return (wk_panel_format){5, 16, WK_SCALE_F16, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q5_1: return (wk_panel_format){5, 0, WK_SCALE_F16_MIN, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q4_K: return (wk_panel_format){4, 0, WK_SCALE_K_MIN, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q5_K: return (wk_panel_format){5, 0, WK_SCALE_K_MIN, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_Q6_K: return (wk_panel_format){6, 32, WK_SCALE_K_HALVES, WK_LEVELS_LINEAR};
    case WK_LAYOUT_PANEL_IQ4_NL: return (wk_panel_format){4, 128, WK_SCALE_F16, WK_LEVELS_IQ4};
    case WK_LAYOUT_PANEL_IQ4_XS: return (wk_panel_format){4, 128, WK_SCALE_K, WK_LEVELS_IQ4};
    case WK_LAYOUT_PANEL_MXFP4: return (wk_panel_format){4, 128, WK_SCALE_BF16, WK_LEVELS_E2M1};
    default: return (wk_panel_format){0};
    }
}

WK_INLINE bool wk_panel_has_minimum(wk_layout layout) {
    const wk_panel_scale scale = wk_panel_get(layout).scale;
    return scale == WK_SCALE_F16_MIN || scale == WK_SCALE_K_MIN;
}
/* Blocks under one head. */
WK_INLINE int wk_panel_head_blocks(wk_layout layout) {
    return wk_panel_get(layout).scale >= WK_SCALE_K ? 8 : 1;
}
WK_INLINE int wk_panel_head_bytes(wk_layout layout) {
    return (wk_panel_has_minimum(layout) ? 4 : 2) * WK_PANEL_ROWS;
}
WK_INLINE int wk_panel_scale_bytes(wk_layout layout) {
    const wk_panel_scale scale = wk_panel_get(layout).scale;
    if (scale < WK_SCALE_K) return 0;
    return (scale == WK_SCALE_K ? 1 : 2) * WK_PANEL_ROWS;
}
/* Scales and quants. */
WK_INLINE int wk_panel_block_bytes(wk_layout layout) {
    return wk_panel_scale_bytes(layout) + wk_panel_get(layout).bits * WK_PANEL_GROUP_BYTES;
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

/* One row of a block, out of any form. */
typedef struct wk_panel_row {
    uint32_t word[WK_PANEL_GROUPS]; /* of a group each: 4 quants or indices, the first one lowest */
    uint8_t head[4];                /* d and minimum */
    uint8_t scale[2];
} wk_panel_row;

/* panel_raw.c: block b (of 32) of a raw row of dtype, which is a name of WK_PANEL_FORMATS. */
void wk_panel_from_raw(wick_dtype dtype, const uint8_t *raw, int64_t b, wk_panel_row *out);

#endif
