/* x86/linear_fast_avx512.c: linear with activations as integers, by the byte dot products of VNNI.
 *
 * An activation is two signed bytes (linear_quantize.h), so a block takes two dot products: of the
 * high bytes, shifted, and of the low ones. Against one of 8 bits that costs a quarter more time in
 * a prefill and none in decode, and leaves a hundredth of the error. */
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
 *   scale[width]    f32
 *   sum[width]      f32, scale times the sum of v
 *   base[width]     minus the sum of v: times 128, what PANEL_Q8 adds by adding 128 to its quants
 *   high[8][width]  4 bytes each
 *   low[8][width] */
WK_INLINE int64_t block_words(int64_t width) { return width * (3 + 2 * GROUPS); }

/* Splits v into its high and low bytes, stored width words apart; the sum of v. */
WK_INLINE int32_t pack_bytes(const int32_t *v, int64_t width, int32_t *high, int32_t *low) {
    __m512i sum = _mm512_setzero_si512();
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
        sum = _mm512_add_epi32(sum, whole);
    }
    return _mm512_reduce_add_epi32(sum);
}

static void pack_block(const float *x, int64_t width, int32_t *block) {
    int32_t v[QUANT_BLOCK];
    const float scale = quant_make(x, v);
    int32_t *const high = block + 3 * width;
    const int32_t sum = pack_bytes(v, width, high, high + GROUPS * width);
    const float scaled_sum = scale * (float)sum;
    memcpy(block, &scale, sizeof scale);
    memcpy(block + width, &scaled_sum, sizeof scaled_sum);
    block[2 * width] = -sum;
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
            sum[p][c] = is_q8 ? _mm512_set1_epi32(block[2 * width + c]) : _mm512_setzero_si512();
    const int32_t *const high = block + 3 * width;
    dot_plane(layout, panels, width, quants, high, sum);
    for (int c = 0; c < width; c++)
        for (int p = 0; p < panels; p++) sum[p][c] = _mm512_slli_epi32(sum[p][c], 7);
    dot_plane(layout, panels, width, quants, high + GROUPS * width, sum);
    for (int p = 0; p < panels; p++) {
        const uint16_t *const halves = (const uint16_t *)(const void *)at[p];
        const v16 scale = v16_load_f16(halves);
        for (int c = 0; c < width; c++) {
            const v16 both = v16_mul(scale, set_word(block + c));
            total[p][c] = v16_fma(_mm512_cvtepi32_ps(sum[p][c]), both, total[p][c]);
            if (!is_q8)
                total[p][c] = v16_fma(v16_load_f16(halves + WK_PANEL_ROWS),
                                      set_word(block + width + c), total[p][c]);
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
