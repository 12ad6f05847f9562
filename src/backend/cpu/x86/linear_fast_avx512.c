/* x86/linear_fast_avx512.c: linear with activations as integers, by the byte dot products of VNNI.
 *
 * An activation is two signed bytes (linear_quantize.h), so a block takes two dot products, of the
 * high bytes and of the low ones. Against a single byte that costs half as much time again in a
 * prefill and none in decode, and leaves a hundredth of the error. */
#include "backend/cpu/x86/linear_simd_avx512.h"

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/simd/linear_panel.h"
#include "backend/cpu/simd/linear_quantize.h"

enum {
    FAST_COLUMNS = 4,
    FAST_PANELS = 2,
    GROUPS = QUANT_BLOCK / 4,
};

/* One block of a tile of width columns: the words of linear_quantize.h, then
 *
 *   high[8][width]  4 bytes each
 *   low[8][width] */
WK_INLINE int64_t block_words(int64_t width) { return width * (WORD_DATA + 2 * GROUPS); }

/* Splits v into its high and low bytes, stored width words apart, and sums its halves. */
WK_INLINE void pack_bytes(const int32_t *v, int64_t width, int32_t *high, int32_t *low,
                          int32_t sum[QUANT_PARTS]) {
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
        sum[i / 16] = _mm512_reduce_add_epi32(whole);
    }
}

static void pack_block(const float *x, int64_t width, int32_t *block) {
    int32_t v[QUANT_BLOCK], sum[QUANT_PARTS];
    const float scale = quant_make(x, v);
    int32_t *const high = block + WORD_DATA * width;
    pack_bytes(v, width, high, high + GROUPS * width, sum);
    pack_words(scale, sum, width, block);
}

/* The sums of one block, or part of it, for each panel and column. */
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

/* The bias of 128 goes off by the high bytes, whose sums count 128 times, others by the low ones.
 */
WK_INLINE void begin_sums(const wk_layout layout, const int panels, const int width, int part,
                          const int32_t *block, block_sums *sums) {
    const int bias = wk_panel_get(layout).bias;
    for (int c = 0; c < width; c++) {
        const int32_t base = bias == 0 ? 0 : block_base(width, block, c, block_parts(layout), part);
        for (int p = 0; p < panels; p++) {
            sums->high[p][c] = _mm512_set1_epi32(bias == QUANT_STEP ? base : 0);
            sums->low[p][c] = _mm512_set1_epi32(bias == QUANT_STEP ? 0 : bias * base);
        }
    }
}

/* total += sums, scaled. */
WK_INLINE void add_sums(const wk_layout layout, const int panels, const int width, int part,
                        const panel_block at[], const int32_t *block, const block_sums *sums,
                        v16 total[FAST_PANELS][FAST_COLUMNS]) {
    for (int p = 0; p < panels; p++) {
        const v16 step = block_step(layout, &at[p], part);
        for (int c = 0; c < width; c++) {
            const v16 both = v16_mul(step, set_word(block + WORD_SCALE * width + c));
            const __m512i high = _mm512_slli_epi32(sums->high[p][c], 7);
            const v16 whole = _mm512_cvtepi32_ps(_mm512_add_epi32(high, sums->low[p][c]));
            total[p][c] = v16_fma(whole, both, total[p][c]);
        }
    }
}

/* sums += weights . x for group i of the first or second half of the block. */
WK_INLINE void add_group(const wk_layout layout, const int panels, const int width, const int half,
                         int i, const panel_block at[], const int32_t *x, block_sums *sums) {
    b64 group[FAST_PANELS];
    for (int p = 0; p < panels; p++) group[p] = block_group(layout, &at[p], half, i);
    dot_group(panels, width, group, x + (i + half * GROUPS / 2) * width, sums);
}

/* total += what the block's halves with the steps of part add to y: one of two, or both. */
WK_INLINE void add_part(const wk_layout layout, const int panels, const int width, const int part,
                        const panel_block at[], const int32_t *block,
                        v16 total[FAST_PANELS][FAST_COLUMNS]) {
    const int32_t *const x = block + WORD_DATA * width;
    block_sums sums;
    begin_sums(layout, panels, width, part, block, &sums);
    /* In the order of memory: with 8 bits the halves follow each other, else they share their
     * bytes. */
    const bool is_paired = block_parts(layout) == 1 && wk_panel_get(layout).bits < 8;
    for (int i = 0; i < GROUPS / 2; i++) {
        add_group(layout, panels, width, part, i, at, x, &sums);
        if (is_paired) add_group(layout, panels, width, 1, i, at, x, &sums);
    }
    for (int i = 0; i < GROUPS / 2 && block_parts(layout) == 1 && !is_paired; i++)
        add_group(layout, panels, width, 1, i, at, x, &sums);
    add_sums(layout, panels, width, part, at, block, &sums, total);
}

/* total += the block's part of y. */
WK_INLINE void add_block(const wk_layout layout, const int panels, const int width,
                         const panel_block at[], const int32_t *block,
                         v16 total[FAST_PANELS][FAST_COLUMNS]) {
    add_part(layout, panels, width, 0, at, block, total);
    if (block_parts(layout) > 1) add_part(layout, panels, width, 1, at, block, total);
    if (!wk_panel_has_minimum(layout)) return;
    for (int p = 0; p < panels; p++) {
        const v16 addend = block_addend(layout, &at[p]);
        for (int c = 0; c < width; c++)
            total[p][c] = v16_fma(addend, set_word(block + WORD_SUM * width + c), total[p][c]);
    }
}

#include "backend/cpu/simd/linear_fast.h"

#define FAST_KERNEL(layout, type)                                                                  \
    const wk_cpu_kernel wk_linear_##type##_fast_avx512 = {                                         \
        .base = {.name = "linear_" #type "_fast_avx512", .is_fast = true},                         \
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
