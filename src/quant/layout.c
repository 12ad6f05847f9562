/* quant/layout.c: which weights have which layout, writing them, and what they mean. */
#include "quant/layout.h"

#include "core/dtype.h"
#include "quant/block.h"
#include "quant/decode.h"
#include "quant/panel.h"

#include <assert.h>
#include <string.h>

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

static bool is_of_floats(wk_layout layout) { return wk_panel_get(layout)->bits == 0; }

bool wk_layout_accepts(wk_layout layout, wick_dtype dtype, int64_t n, int64_t k) {
    if (n < 0 || k < 0 || k % wk_dtype_get(dtype)->block_elements != 0) return false;
    return layout == WK_LAYOUT_RAW || panel_dtype(layout) == dtype;
}

wk_layout wk_layout_of_panels(wick_dtype dtype, int64_t n, int64_t k) {
    for (wk_layout layout = WK_LAYOUT_PANEL_F32; layout < WK_LAYOUT_COUNT_; layout++)
        if (wk_layout_accepts(layout, dtype, n, k)) return layout;
    return WK_LAYOUT_RAW;
}

int64_t wk_panel_bytes(wk_layout layout, int64_t k) {
    assert(layout > WK_LAYOUT_RAW && layout < WK_LAYOUT_COUNT_ && k >= 0);
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
        uint8_t *const to = (uint8_t *)weight + (size_t)first_row * (size_t)row_bytes;
        if (n_rows > 0 && row_bytes > 0) memcpy(to, blocks, (size_t)n_rows * (size_t)row_bytes);
        return;
    }
    const int64_t panel_bytes = wk_panel_bytes(layout, k);
    for (int64_t i = 0; i < n_rows; i += WK_PANEL_ROWS) {
        const int n_here = n_rows - i < WK_PANEL_ROWS ? (int)(n_rows - i) : WK_PANEL_ROWS;
        wk_panel_store(layout, k, (const uint8_t *)blocks + (uint64_t)i * row_bytes, row_bytes,
                       n_here, (uint8_t *)weight + (first_row + i) / WK_PANEL_ROWS * panel_bytes);
    }
}

static void decode_floats(wk_layout layout, int64_t k, int row, const uint8_t *panel, float *dst) {
    const wick_dtype dtype = panel_dtype(layout);
    assert(row >= 0 && row < WK_PANEL_ROWS);
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
        wk_panel_decode_row(layout, k, lane, panel, dst);
    }
}
