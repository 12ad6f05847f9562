/* x86/linear_fast_avx2.c: linear with activations as 16-bit integers: their dot products take as
 * many instructions here as those of signed bytes, which AVX2 lacks. */
#include "backend/cpu/x86/linear_simd_avx2.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/simd/linear_panel.h"
#include "backend/cpu/simd/linear_quantize.h"

enum { FAST_COLUMNS = 4, FAST_PANELS = 1, GROUPS = QUANT_BLOCK / 4 };

/* One block of a tile of width columns: the words of linear_quantize.h, then
 *
 *   even[8][width]  elements 0 and 2 of each group, 16 bits each
 *   odd[8][width]   elements 1 and 3 */
WK_INLINE int64_t block_words(int64_t width) { return width * (WORD_DATA + 2 * GROUPS); }

/* Two 16-bit numbers as one word. */
WK_INLINE int32_t pack_two(int32_t low, int32_t high) {
    return (int32_t)(((uint32_t)low & 0xFFFF) | (uint32_t)high << 16);
}

static void pack_block(const float *x, int64_t width, int32_t *block) {
    int32_t v[QUANT_BLOCK], sum[QUANT_PARTS] = {0, 0};
    const float scale = quant_make(x, v);
    for (int i = 0; i < QUANT_BLOCK; i++) sum[i / 16] += v[i];
    pack_words(scale, sum, width, block);
    int32_t *const even = block + WORD_DATA * width, *const odd = even + GROUPS * width;
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

/* sum[c] += weights . x for the first or second half of the block. */
WK_INLINE void add_half(const wk_layout layout, const int width, const int half,
                        const panel_block *at, const int32_t *x, row_sums sum[FAST_COLUMNS]) {
    for (int i = 0; i < GROUPS / 2; i++)
        dot_group(width, block_group(layout, at, half, i), x + (i + half * GROUPS / 2) * width,
                  sum);
}

/* total += what the block's halves with the steps of part add to y: one of two, or both. */
WK_INLINE void add_part(const wk_layout layout, const int width, const int part,
                        const panel_block *at, const int32_t *block, v16 total[FAST_COLUMNS]) {
    const int parts = block_parts(layout), bias = wk_panel_get(layout).bias;
    const int32_t *const x = block + WORD_DATA * width;
    row_sums sum[FAST_COLUMNS];
    for (int c = 0; c < width; c++) {
        const int32_t base = bias == 0 ? 0 : bias * block_base(width, block, c, parts, part);
        sum[c] = (row_sums){_mm256_set1_epi32(base), _mm256_set1_epi32(base)};
    }
    add_half(layout, width, part, at, x, sum);
    if (parts == 1) add_half(layout, width, 1, at, x, sum);
    const v16 step = block_step(layout, at, part);
    for (int c = 0; c < width; c++) {
        const v16 whole = v16_of(_mm256_cvtepi32_ps(sum[c].low), _mm256_cvtepi32_ps(sum[c].high));
        const v16 both = v16_mul(step, set_word(block + WORD_SCALE * width + c));
        total[c] = v16_fma(whole, both, total[c]);
    }
}

/* total += the block's part of y; panels is 1. */
WK_INLINE void add_block(const wk_layout layout, const int panels, const int width,
                         const panel_block at[], const int32_t *block,
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    (void)panels;
    add_part(layout, width, 0, at, block, total[0]);
    if (block_parts(layout) > 1) add_part(layout, width, 1, at, block, total[0]);
    if (!wk_panel_has_minimum(layout)) return;
    const v16 addend = block_addend(layout, at);
    for (int c = 0; c < width; c++)
        total[0][c] = v16_fma(addend, set_word(block + WORD_SUM * width + c), total[0][c]);
}

#include "backend/cpu/simd/linear_fast.h"

#define FAST_KERNEL(layout, type)                                                                  \
    const wk_cpu_kernel wk_linear_##type##_fast_avx2 = {                                           \
        .base = {.name = "linear_" #type "_fast_avx2", .is_fast = true},                           \
        .code = WK_OP_LINEAR,                                                                      \
        .needs = SIMD_NEEDS,                                                                       \
        .accepts = accepts_##type,                                                                 \
        .n_phases = 2,                                                                             \
        .items = items,                                                                            \
        .grain = grain,                                                                            \
        .scratch_bytes = scratch_bytes,                                                            \
        .run = run_##type,                                                                         \
    };
WK_PANEL_FORMATS(FAST_KERNEL)
#undef FAST_KERNEL
