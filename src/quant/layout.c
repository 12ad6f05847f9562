/* quant/layout.c: the compute layouts, how they are written and what they mean.
 *
 * Panels lie one behind the other. A block is 32 elements of k, a group is 4:
 *
 *   PANEL_F32  [k][16 rows] f32
 *   PANEL_Q8   [block] { [16 rows] f16 scales, [group of 8][16 rows][4 k] u8 = q + 128 }
 *   PANEL_Q4   [block] { [16 rows] f16 scales, [16 rows] f16 minima, [group of 4][16 rows][4 k] u8
 * }: low half = the group, high half = the group 4 further on
 *
 * Scales keep the bits of the file, so a row decodes to the same floats as its raw blocks. */
#include "quant/layout.h"

#include "core/dtype.h"
#include "core/half.h"
#include "quant/block.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = WK_QK_SMALL,
    GROUP = 4,
    GROUP_BYTES = WK_PANEL_ROWS * GROUP,
    RAW_Q8_BYTES = 2 + BLOCK,
    RAW_Q4_BYTES = 4 + BLOCK / 2,
};

bool wk_layout_accepts(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k) {
    if (n < 0 || k < 0) return false;
    switch (layout) {
    case WK_LAYOUT_RAW: return k % wk_dtype_get(dtype)->block_elements == 0;
    case WK_LAYOUT_PANEL_F32: return dtype == WICK_F32;
    case WK_LAYOUT_PANEL_Q8: return dtype == WICK_Q8_0 && k % BLOCK == 0;
    case WK_LAYOUT_PANEL_Q4: return dtype == WICK_Q4_1 && k % BLOCK == 0;
    case WK_LAYOUT_COUNT_: break;
    }
    return false;
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

static void store_f32(int64_t k, int row, const uint8_t *raw, uint8_t *panel) {
    for (int64_t i = 0; i < k; i++)
        memcpy(panel + sizeof(float) * (size_t)(i * WK_PANEL_ROWS + row),
               raw + sizeof(float) * (size_t)i, sizeof(float));
}

static void store_q8(int64_t k, int row, const uint8_t *raw, uint8_t *panel) {
    for (int64_t i = 0; i < k; i += BLOCK, raw += RAW_Q8_BYTES, panel += WK_PANEL_Q8_BLOCK_BYTES) {
        memcpy(panel + 2 * row, raw, 2);
        uint8_t *quants = panel + 2 * WK_PANEL_ROWS + GROUP * row;
        for (int j = 0; j < BLOCK; j += GROUP, quants += GROUP_BYTES)
            for (int e = 0; e < GROUP; e++) quants[e] = raw[2 + j + e] ^ 128;
    }
}

static void store_q4(int64_t k, int row, const uint8_t *raw, uint8_t *panel) {
    for (int64_t i = 0; i < k; i += BLOCK, raw += RAW_Q4_BYTES, panel += WK_PANEL_Q4_BLOCK_BYTES) {
        memcpy(panel + 2 * row, raw, 2);
        memcpy(panel + 2 * WK_PANEL_ROWS + 2 * row, raw + 2, 2);
        uint8_t *quants = panel + 4 * WK_PANEL_ROWS + GROUP * row;
        /* The file pairs element j with j + 16 as the panel does. */
        for (int j = 0; j < BLOCK / 2; j += GROUP, quants += GROUP_BYTES)
            memcpy(quants, raw + 4 + j, GROUP);
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
        if (layout == WK_LAYOUT_PANEL_F32) store_f32(k, row, raw, panel);
        if (layout == WK_LAYOUT_PANEL_Q8) store_q8(k, row, raw, panel);
        if (layout == WK_LAYOUT_PANEL_Q4) store_q4(k, row, raw, panel);
    }
}

static float load_f16(const uint8_t *bytes) {
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return wk_f16_to_f32(half);
}

static void decode_q8(int64_t k, int row, const uint8_t *panel, float *dst) {
    for (int64_t i = 0; i < k; i += BLOCK, panel += WK_PANEL_Q8_BLOCK_BYTES) {
        const float d = load_f16(panel + 2 * row);
        const uint8_t *quants = panel + 2 * WK_PANEL_ROWS + GROUP * row;
        for (int j = 0; j < BLOCK; j += GROUP, quants += GROUP_BYTES)
            for (int e = 0; e < GROUP; e++) dst[i + j + e] = (float)(quants[e] - 128) * d;
    }
}

static void decode_q4(int64_t k, int row, const uint8_t *panel, float *dst) {
    for (int64_t i = 0; i < k; i += BLOCK, panel += WK_PANEL_Q4_BLOCK_BYTES) {
        const float d = load_f16(panel + 2 * row);
        const float m = load_f16(panel + 2 * WK_PANEL_ROWS + 2 * row);
        const uint8_t *quants = panel + 4 * WK_PANEL_ROWS + GROUP * row;
        for (int j = 0; j < BLOCK / 2; j += GROUP, quants += GROUP_BYTES) {
            for (int e = 0; e < GROUP; e++) {
                dst[i + j + e] = (float)(quants[e] & 15) * d + m;
                dst[i + j + e + BLOCK / 2] = (float)(quants[e] >> 4) * d + m;
            }
        }
    }
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
    if (layout == WK_LAYOUT_PANEL_Q8) {
        decode_q8(k, lane, panel, dst);
    } else if (layout == WK_LAYOUT_PANEL_Q4) {
        decode_q4(k, lane, panel, dst);
    } else {
        for (int64_t i = 0; i < k; i++)
            memcpy(dst + i, panel + sizeof(float) * (size_t)(i * WK_PANEL_ROWS + lane),
                   sizeof *dst);
    }
}
