/* quant/layout.h: how a weight [n, k] lies in memory: the blocks of its file, or a compute layout.
 *
 * Compute layouts ("panels", quant/panel.h) put WK_PANEL_ROWS rows side by side, so that one vector
 * register holds the same elements of 16 rows: decode (one activation row) and prefill (many) both
 * read them in order, and every row's sum runs over k in the same order regardless of the number of
 * columns. Rows past n in the last panel are zeros. */
#ifndef WK_QUANT_LAYOUT_H
#define WK_QUANT_LAYOUT_H

#include "core/status.h"

#include <wick/tensor.h>

enum { WK_PANEL_ROWS = 16 };

/* X(dtype, name) of the block types that have panels (quant/panel.h): those whose quants are
 * numbers, those whose quants are indices into levels, and all of them. */
#define WK_PANEL_LINEAR_FORMATS(X)                                                                 \
    X(Q8_0, q8_0)                                                                                  \
    X(Q4_0, q4_0)                                                                                  \
    X(Q4_1, q4_1)                                                                                  \
    X(Q5_0, q5_0)                                                                                  \
    X(Q5_1, q5_1)                                                                                  \
    X(Q2_K, q2_k)                                                                                  \
    X(Q3_K, q3_k)                                                                                  \
    X(Q4_K, q4_k)                                                                                  \
    X(Q5_K, q5_k)                                                                                  \
    X(Q6_K, q6_k)                                                                                  \
    X(TQ1_0, tq1_0)                                                                                \
    X(TQ2_0, tq2_0)                                                                                \
    X(Q2_0, q2_0)
#define WK_PANEL_LEVEL_FORMATS(X)                                                                  \
    X(IQ1_S, iq1_s)                                                                                \
    X(IQ1_M, iq1_m)                                                                                \
    X(IQ2_XXS, iq2_xxs)                                                                            \
    X(IQ2_XS, iq2_xs)                                                                              \
    X(IQ2_S, iq2_s)                                                                                \
    X(IQ3_XXS, iq3_xxs)                                                                            \
    X(IQ3_S, iq3_s)                                                                                \
    X(IQ4_NL, iq4_nl)                                                                              \
    X(IQ4_XS, iq4_xs)                                                                              \
    X(MXFP4, mxfp4)                                                                                \
    X(NVFP4, nvfp4)                                                                                \
    X(Q1_0, q1_0)
#define WK_PANEL_FORMATS(X)                                                                        \
    WK_PANEL_LINEAR_FORMATS(X)                                                                     \
    WK_PANEL_LEVEL_FORMATS(X)

typedef enum wk_layout {
    WK_LAYOUT_RAW, /* rows of blocks (or elements) as in the file, dense */
    /* Of floats: [panel][k][16 rows] */
    WK_LAYOUT_PANEL_F32,
    WK_LAYOUT_PANEL_F16,
    WK_LAYOUT_PANEL_BF16,
/* Of quants in blocks of 32, named after the block type that they hold */
#define WK_LAYOUT_OF(dtype, name) WK_LAYOUT_PANEL_##dtype,
    WK_PANEL_FORMATS(WK_LAYOUT_OF)
#undef WK_LAYOUT_OF
        WK_LAYOUT_COUNT_,
} wk_layout;

/* Bytes from one panel to the next; layout is not WK_LAYOUT_RAW. */
int64_t wk_panel_bytes(wk_layout layout, int64_t k);

/* Whether a weight [n, k] of dtype can lie so. */
bool wk_layout_accepts(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k);
/* The panels that such a weight can lie in; WK_LAYOUT_RAW: there are none. */
wk_layout wk_layout_of_panels(wick_dtype dtype, int64_t n, int64_t k);
/* Bytes of the whole weight; false on overflow or where the layout does not accept it. */
bool wk_layout_bytes(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, uint64_t *bytes);
/* Lays rows [first_row, first_row + n_rows) of raw blocks out into weight, which has n rows in all.
 * first_row must be a multiple of WK_PANEL_ROWS, n_rows too unless it reaches n. */
void wk_layout_store(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, int64_t first_row,
                     int64_t n_rows, const void *blocks, void *weight);
/* Decodes row of a weight [n, k] to k floats: the definition of every layout. The dtype must have a
 * decoder (wk_decoder). */
void wk_layout_decode_row(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k, int64_t row,
                          const void *weight, float *dst);

#endif
