/* x86/linear_fast_avx512.c: linear with activations as integers, by the byte dot products of VNNI.
 *
 * An activation is two signed bytes (linear_quantize.h), so a block takes two dot products, of the
 * high bytes and of the low ones. Against a single byte that costs half as much time again in a
 * prefill and none in decode, and leaves a hundredth of the error. */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/x86/linear_quantize.h"

#include <string.h>

enum {
    FAST_COLUMNS = 4,
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

/* The sums of one block for each panel and column. */
typedef struct block_sums {
    __m512i high[FAST_PANELS][FAST_COLUMNS], low[FAST_PANELS][FAST_COLUMNS];
} block_sums;

/* sums += weights . x for one group of each panel; x points to the group's high words of the tile.
 */
WK_INLINE void dot_group(const int panels, const int width, const b64 group[FAST_PANELS],
                         const int32_t *x, block_sums *sums) {
    for (int c = 0; c < width; c++) {
        const __m512i high = _mm512_set1_epi32(x[c]);
        const __m512i low = _mm512_set1_epi32(x[c + GROUPS * width]);
        for (int p = 0; p < panels; p++) {
            sums->high[p][c] = _mm512_dpbusd_epi32(sums->high[p][c], group[p], high);
            sums->low[p][c] = _mm512_dpbusd_epi32(sums->low[p][c], group[p], low);
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
    const int32_t *const x = block + 3 * width;
    block_sums sums;
    for (int c = 0; c < width; c++) {
        for (int p = 0; p < panels; p++) {
            sums.high[p][c] =
                is_q8 ? _mm512_set1_epi32(block[2 * width + c]) : _mm512_setzero_si512();
            sums.low[p][c] = _mm512_setzero_si512();
        }
    }
    for (int g = 0; g < (is_q8 ? GROUPS : GROUPS / 2); g++) {
        b64 group[FAST_PANELS], next[FAST_PANELS];
        for (int p = 0; p < panels; p++) {
            const b64 bytes = b64_load(at[p] + (is_q8 ? 2 : 4) * WK_PANEL_ROWS + 64 * g);
            group[p] = is_q8 ? bytes : b64_low_halves(bytes);
            next[p] = b64_high_halves(bytes);
        }
        dot_group(panels, width, group, x + g * width, &sums);
        if (!is_q8) dot_group(panels, width, next, x + (g + GROUPS / 2) * width, &sums);
    }
    for (int p = 0; p < panels; p++) {
        const uint16_t *const halves = (const uint16_t *)(const void *)at[p];
        const v16 scale = v16_load_f16(halves);
        for (int c = 0; c < width; c++) {
            const v16 both = v16_mul(scale, set_word(block + c));
            const __m512i high = _mm512_slli_epi32(sums.high[p][c], 7);
            const v16 whole = _mm512_cvtepi32_ps(_mm512_add_epi32(high, sums.low[p][c]));
            total[p][c] = v16_fma(whole, both, total[p][c]);
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
