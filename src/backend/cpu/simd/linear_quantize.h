/* simd/linear_quantize.h: activations as 15-bit integers, for the fast forms of linear.
 *
 * A block of 32 elements becomes x = scale * v with whole v, |v| <= 127 * 128, so that v splits
 * into two signed bytes, v = 128 * high + low. */
#ifndef WK_SIMD_LINEAR_QUANTIZE_H
#define WK_SIMD_LINEAR_QUANTIZE_H

#include "core/half.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    QUANT_BLOCK = 32,
    QUANT_STEP = 128, /* value of the high byte's last bit */
    QUANT_MAX = 127 * QUANT_STEP,
    QUANT_PARTS = 2, /* halves of a block, of which some layouts need the sums alone */
};

/* What a packed block begins with; each word is there once for every column of the tile. */
enum {
    WORD_SCALE, /* f32 */
    WORD_SUM,   /* f32, scale times the sum of v */
    WORD_BASE,  /* minus the sums of v in each part: times the bias of the quants, what that adds */
    WORD_DATA = WORD_BASE + QUANT_PARTS,
};

/* Writes those words of one column, width words apart. */
WK_INLINE void pack_words(float scale, const int32_t sum[QUANT_PARTS], int64_t width,
                          int32_t *block) {
    const float scaled_sum = scale * (float)(sum[0] + sum[1]);
    memcpy(block + WORD_SCALE * width, &scale, sizeof scale);
    memcpy(block + WORD_SUM * width, &scaled_sum, sizeof scaled_sum);
    for (int part = 0; part < QUANT_PARTS; part++) block[(WORD_BASE + part) * width] = -sum[part];
}

/* What the dot products of a column begin with. */
WK_INLINE int32_t block_base(int width, const int32_t *block, int c, int parts, int part) {
    const int32_t *const base = block + WORD_BASE * width + c;
    return parts == 1 ? base[0] + base[width] : base[part * width];
}

/* Largest magnitude of a block; NaN where the block holds one. */
WK_INLINE float quant_largest(const float *x) {
    uint32_t largest = 0; /* magnitudes compare as their bits do, NaN above all */
    for (int i = 0; i < QUANT_BLOCK; i++) {
        const uint32_t magnitude = wk_f32_bits(x[i]) & 0x7FFFFFFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    return wk_f32_from_bits(largest);
}

/* Writes v and gives the scale. A block with an infinity or NaN gives NaN and zeros. */
WK_INLINE float quant_make(const float *x, int32_t *v) {
    const float largest = quant_largest(x);
    const bool is_finite = largest <= 0x1p126F;
    /* Below this the reciprocal would overflow; such a block counts as zeros. */
    const bool is_zero = !is_finite || largest < 0x1p-100F;
    const v16 inverse = v16_set(is_zero ? 0 : (float)QUANT_MAX / largest);
    for (int i = 0; i < QUANT_BLOCK; i += 16) {
        const v16 scaled = v16_mul(v16_load(x + i), inverse);
        v16_store_int(v + i, is_zero ? v16_zero() : scaled);
    }
    if (!is_finite) return NAN;
    return is_zero ? 0 : largest / (float)QUANT_MAX;
}

#endif
