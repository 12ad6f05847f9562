/* x86/linear_fast_avx2.c: linear with activations as 16-bit integers: their dot products take as
 * many instructions here as those of signed bytes, which AVX2 lacks. */
#include "backend/cpu/x86/simd_avx2.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/x86/linear_quantize.h"

#include <string.h>

enum { FAST_COLUMNS = 4, FAST_PANELS = 1, GROUPS = QUANT_BLOCK / 4 };

/* One block of a tile of width columns, in words:
 *
 *   scale[width]    f32
 *   sum[width]      f32, scale times the sum of v
 *   base[width]     what takes the 128 that PANEL_Q8 adds to its quants off the dot product
 *   even[8][width]  elements 0 and 2 of each group, 16 bits each
 *   odd[8][width]   elements 1 and 3 */
WK_INLINE int64_t block_words(int64_t width) { return width * (3 + 2 * GROUPS); }

/* Two 16-bit numbers as one word. */
WK_INLINE int32_t pack_two(int32_t low, int32_t high) {
    return (int32_t)(((uint32_t)low & 0xFFFF) | (uint32_t)high << 16);
}

static void pack_block(const float *x, int64_t width, int32_t *block) {
    int32_t v[QUANT_BLOCK], sum = 0;
    const float scale = quant_make(x, v);
    for (int i = 0; i < QUANT_BLOCK; i++) sum += v[i];
    const float scaled_sum = scale * (float)sum;
    memcpy(block, &scale, sizeof scale);
    memcpy(block + width, &scaled_sum, sizeof scaled_sum);
    block[2 * width] = -128 * sum;
    int32_t *const even = block + 3 * width, *const odd = even + GROUPS * width;
    for (int g = 0; g < GROUPS; g++) {
        even[g * width] = pack_two(v[4 * g], v[4 * g + 2]);
        odd[g * width] = pack_two(v[4 * g + 1], v[4 * g + 3]);
    }
}

/* Whole numbers of 16 rows. */
typedef struct row_sums {
    __m256i low, high;
} row_sums;

WK_INLINE __m256i dot_rows(__m256i even, __m256i odd, __m256i x_even, __m256i x_odd, __m256i sum) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, x_even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(odd, x_odd));
}

/* sum += group . x; x points to the group's even words of the tile. */
WK_INLINE void dot_group(const int width, b64 group, const int32_t *x, row_sums sum[FAST_COLUMNS]) {
    const __m256i mask = _mm256_set1_epi16(255);
    const b64 even = {_mm256_and_si256(group.low, mask), _mm256_and_si256(group.high, mask)};
    const b64 odd = {_mm256_srli_epi16(group.low, 8), _mm256_srli_epi16(group.high, 8)};
    for (int c = 0; c < width; c++) {
        const __m256i x_even = _mm256_set1_epi32(x[c]);
        const __m256i x_odd = _mm256_set1_epi32(x[c + GROUPS * width]);
        sum[c].low = dot_rows(even.low, odd.low, x_even, x_odd, sum[c].low);
        sum[c].high = dot_rows(even.high, odd.high, x_even, x_odd, sum[c].high);
    }
}

WK_INLINE v16 set_word(const int32_t *word) {
    const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(*word));
    return v16_of(all, all);
}

/* total += the block's part of y; panels is 1. */
WK_INLINE void add_block(const wk_layout layout, const int panels, const int width,
                         const uint8_t *const at[], const int32_t *block,
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    (void)panels;
    const bool is_q8 = layout == WK_LAYOUT_PANEL_Q8;
    const uint8_t *const quants = at[0] + (is_q8 ? 2 : 4) * WK_PANEL_ROWS;
    const int32_t *const x = block + 3 * width;
    row_sums sum[FAST_COLUMNS];
    for (int c = 0; c < width; c++) {
        const int32_t base = is_q8 ? block[2 * width + c] : 0;
        sum[c] = (row_sums){_mm256_set1_epi32(base), _mm256_set1_epi32(base)};
    }
    for (int g = 0; g < (is_q8 ? GROUPS : GROUPS / 2); g++) {
        const b64 bytes = b64_load(quants + 64 * g);
        dot_group(width, is_q8 ? bytes : b64_low_halves(bytes), x + g * width, sum);
        if (!is_q8) dot_group(width, b64_high_halves(bytes), x + (g + GROUPS / 2) * width, sum);
    }
    const uint16_t *const halves = (const uint16_t *)(const void *)at[0];
    const v16 scale = v16_load_f16(halves);
    for (int c = 0; c < width; c++) {
        const v16 whole = v16_of(_mm256_cvtepi32_ps(sum[c].low), _mm256_cvtepi32_ps(sum[c].high));
        total[0][c] = v16_fma(whole, v16_mul(scale, set_word(block + c)), total[0][c]);
        if (!is_q8)
            total[0][c] = v16_fma(v16_load_f16(halves + WK_PANEL_ROWS), set_word(block + width + c),
                                  total[0][c]);
    }
}

#include "backend/cpu/x86/linear_fast.h"

const wk_cpu_kernel wk_linear_q8_fast_avx2 = {
    .base = {.name = "linear_q8_fast_avx2", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q8,
    .n_phases = 2,
    .items = items,
    .grain = grain,
    .scratch_bytes = scratch_bytes,
    .run = run_q8,
};

const wk_cpu_kernel wk_linear_q4_fast_avx2 = {
    .base = {.name = "linear_q4_fast_avx2", .is_fast = true},
    .code = WK_OP_LINEAR,
    .needs = SIMD_NEEDS,
    .accepts = accepts_q4,
    .n_phases = 2,
    .items = items,
    .grain = grain,
    .scratch_bytes = scratch_bytes,
    .run = run_q4,
};
