/* x86/linear_quantize.h: activations as 15-bit integers, for the fast forms of linear.
 *
 * A block of 32 elements becomes x = scale * v with whole v, |v| <= 127 * 128, so that v splits
 * into two signed bytes, v = 128 * high + low. */
#ifndef WK_X86_LINEAR_QUANTIZE_H
#define WK_X86_LINEAR_QUANTIZE_H

#include "core/half.h"

#include <math.h>
#include <stdbool.h>

enum {
    QUANT_BLOCK = 32,
    QUANT_STEP = 128, /* value of the high byte's last bit */
    QUANT_MAX = 127 * QUANT_STEP,
};

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
