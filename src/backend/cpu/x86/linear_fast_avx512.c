/* x86/linear_fast_avx512.c: linear with activations as integers, by the byte dot products of VNNI.
 *
 * Blocks are fine (15 bits: two dot products) where that costs nothing, in products with few
 * columns, and where it pays, in the blocks that hold a row's outliers; else coarse (8 bits: one).
 */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/x86/linear_quantize.h"

#include <string.h>

enum {
    FAST_COLUMNS = 6,
    FAST_PANELS = 2,
    GROUPS = QUANT_BLOCK / 4,
};

/* One block of a tile of width columns, in words:
 *
 *   fine          1 when a column is fine
 *   scale[width]  f32, of the fine integers
 *   sum[width]    f32, scale times the sum of v
 *   base[width]   what takes the 128 that PANEL_Q8 adds to its quants off the sum of the high bytes
 *   base_low[width]  and off that of the low ones
 *   high[8][width] 4 bytes each
 *   low[8][width]  written and read only where fine */
WK_INLINE int64_t block_words(int64_t width) { return 1 + width * (4 + 2 * GROUPS); }
/* Splits v into its high and low bytes, stored width words apart, and sums both. */
WK_INLINE void pack_bytes(const int32_t *v, int64_t width, int32_t *high, int32_t *low,
                          int32_t sum[2]) {
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int i = 0; i < QUANT_BLOCK; i += 16) {
        const __m512i whole = _mm512_loadu_si512(v + i);
        const __m512i up = _mm512_add_epi32(whole, _mm512_set1_epi32(QUANT_STEP / 2));
        const __m512i h = _mm512_srai_epi32(up, 7);
        const __m512i l = _mm512_sub_epi32(whole, _mm512_slli_epi32(h, 7));
        int32_t words[2][4];
        _mm_storeu_si128((__m128i *)(void *)words[0], _mm512_cvtepi32_epi8(h));
        _mm_storeu_si128((__m128i *)(void *)words[1], _mm512_cvtepi32_epi8(l));
        for (int g = 0; g < 4; g++) {
            high[(i / 4 + g) * width] = words[0][g];
            low[(i / 4 + g) * width] = words[1][g];
        }
        sums[0] = _mm512_add_epi32(sums[0], h);
        sums[1] = _mm512_add_epi32(sums[1], l);
    }
    for (int i = 0; i < 2; i++) sum[i] = _mm512_reduce_add_epi32(sums[i]);
}

static void pack_block(const float *x, float largest, bool is_fine, int64_t width, int32_t *block) {
    int32_t v[QUANT_BLOCK], sum[2];
    const float scale = quant_make(x, largest, is_fine, v);
    int32_t *const high = block + 4 * width;
    pack_bytes(v, width, high, high + GROUPS * width, sum);
    const float scaled_sum = scale * (float)(QUANT_STEP * sum[0] + sum[1]);
    memcpy(block, &scale, sizeof scale);
    memcpy(block + width, &scaled_sum, sizeof scaled_sum);
    block[2 * width] = -128 * sum[0];
    block[3 * width] = -128 * sum[1];
}

/* sum += quants . plane, a plane being the high or the low bytes of a block. */
WK_INLINE void dot_plane(const wk_layout layout, const int panels, const int width,
                         const uint8_t *const quants[], const int32_t *plane,
                         __m512i sum[FAST_PANELS][FAST_COLUMNS]) {
    const int n = layout == WK_LAYOUT_PANEL_Q8 ? GROUPS : GROUPS / 2;
    for (int g = 0; g < n; g++) {
        b64 low[FAST_PANELS], high[FAST_PANELS];
        for (int p = 0; p < panels; p++) {
            const b64 bytes = b64_load(quants[p] + 64 * g);
            low[p] = layout == WK_LAYOUT_PANEL_Q8 ? bytes : b64_low_halves(bytes);
            high[p] = b64_high_halves(bytes);
        }
        for (int c = 0; c < width; c++) {
            const __m512i x = _mm512_set1_epi32(plane[g * width + c]);
            for (int p = 0; p < panels; p++) sum[p][c] = _mm512_dpbusd_epi32(sum[p][c], low[p], x);
        }
        for (int c = 0; c < width && layout == WK_LAYOUT_PANEL_Q4; c++) {
            const __m512i x = _mm512_set1_epi32(plane[(g + GROUPS / 2) * width + c]);
            for (int p = 0; p < panels; p++) sum[p][c] = _mm512_dpbusd_epi32(sum[p][c], high[p], x);
        }
    }
}

WK_INLINE v16 set_word(const int32_t *word) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(*word));
}

/* total += the block's part of y. */
WK_INLINE void add_block(const wk_layout layout, const int panels, const int width,
                         const uint8_t *const at[], const int32_t *block,
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    const bool is_q8 = layout == WK_LAYOUT_PANEL_Q8;
    const uint8_t *quants[FAST_PANELS];
    for (int p = 0; p < panels; p++) quants[p] = at[p] + (is_q8 ? 2 : 4) * WK_PANEL_ROWS;
    __m512i sum[FAST_PANELS][FAST_COLUMNS];
    for (int c = 0; c < width; c++)
        for (int p = 0; p < panels; p++)
            sum[p][c] =
                is_q8 ? _mm512_set1_epi32(block[1 + 2 * width + c]) : _mm512_setzero_si512();
    const int32_t *const high = block + 1 + 4 * width;
    dot_plane(layout, panels, width, quants, high, sum);
    float unit = QUANT_STEP;
    if (block[0] != 0) {
        unit = 1;
        for (int c = 0; c < width; c++) {
            for (int p = 0; p < panels; p++) {
                sum[p][c] = _mm512_slli_epi32(sum[p][c], 7);
                if (is_q8)
                    sum[p][c] =
                        _mm512_add_epi32(sum[p][c], _mm512_set1_epi32(block[1 + 3 * width + c]));
            }
        }
        dot_plane(layout, panels, width, quants, high + GROUPS * width, sum);
    }
    for (int p = 0; p < panels; p++) {
        const uint16_t *const halves = (const uint16_t *)(const void *)at[p];
        const v16 scale = v16_mul(v16_load_f16(halves), v16_set(unit));
        for (int c = 0; c < width; c++) {
            const v16 both = v16_mul(scale, set_word(block + 1 + c));
            total[p][c] = v16_fma(_mm512_cvtepi32_ps(sum[p][c]), both, total[p][c]);
            if (!is_q8)
                total[p][c] = v16_fma(v16_load_f16(halves + WK_PANEL_ROWS),
                                      set_word(block + 1 + width + c), total[p][c]);
        }
    }
}

#include "backend/cpu/x86/linear_fast.h"

const wk_cpu_kernel wk_linear_q8_fast_avx512 = {
    .base = {.name = "linear_q8_fast_avx512", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q8,
    .n_phases = 2,
    .items = items,
    .grain = grain,
    .scratch_bytes = scratch_bytes,
    .run = run_q8,
};

const wk_cpu_kernel wk_linear_q4_fast_avx512 = {
    .base = {.name = "linear_q4_fast_avx512", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q4,
    .n_phases = 2,
    .items = items,
    .grain = grain,
    .scratch_bytes = scratch_bytes,
    .run = run_q4,
};
