/* simd/linear_quantize.h: activations as integers, for the fast forms of linear.
 *
 * A block of 32 elements becomes x = scale * v with whole v: of 8 bits, and of 15 bits in fine
 * blocks, those whose largest element stands out of its row. They are few, and hold most of the
 * error that 8 bits would make (docs/numerics.md). */
#ifndef WK_SIMD_LINEAR_QUANTIZE_H
#define WK_SIMD_LINEAR_QUANTIZE_H

#include "core/half.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    QUANT_BLOCK = 32,
    QUANT_MAX = 127,
    QUANT_STEP = 128, /* of the coarse v, in fine ones */
    QUANT_PARTS = 2,  /* halves of a block, of which some layouts need the sums alone */
};

/* One block of one row. */
typedef struct quant_block {
    int32_t v[QUANT_BLOCK];
    int32_t sum[QUANT_PARTS]; /* of v */
    float scale;              /* NaN: the block holds NaN or more than 2^126, and v zeros */
    bool is_fine;
} quant_block;

/* Largest magnitude of a block; NaN where the block holds one. */
WK_INLINE float quant_largest(const float *x) {
    uint32_t largest = 0; /* magnitudes compare as their bits do, NaN above all */
    for (int i = 0; i < QUANT_BLOCK; i++) {
        const uint32_t magnitude = wk_f32_bits(x[i]) & 0x7FFFFFFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    return wk_f32_from_bits(largest);
}

/* Blocks of a row whose largest magnitude is above the result are fine; sum: of all n of them. */
WK_INLINE float quant_fine_above(float sum, int64_t n) { return 1.5F * sum / (float)n; }

/* largest: what quant_largest gives. */
WK_INLINE void quant_make(const float *x, float largest, float fine_above, quant_block *block) {
    const bool is_finite = largest <= 0x1p126F;
    /* Below this, products with scales could be denormal; such a block counts as zeros. */
    const bool is_zero = !is_finite || largest < 0x1p-80F;
    block->is_fine = !is_zero && largest > fine_above;
    const float most = block->is_fine ? QUANT_MAX * QUANT_STEP : QUANT_MAX;
    const v16 inverse = v16_set(is_zero ? 0 : most / largest);
    for (int part = 0; part < QUANT_PARTS; part++) {
        const int i = part * (QUANT_BLOCK / QUANT_PARTS);
        const v16 scaled = is_zero ? v16_zero() : v16_mul(v16_load(x + i), inverse);
        v16_store_int(block->v + i, scaled);
        block->sum[part] = (int32_t)v16_sum(v16_round(scaled)); /* below 2^24: exact */
    }
    block->scale = is_zero ? 0 : largest / most;
    if (!is_finite) block->scale = NAN;
}

#endif
