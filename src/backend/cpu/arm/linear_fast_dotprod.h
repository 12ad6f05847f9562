/* arm/linear_fast_dotprod.h: linear with activations as integers, by dot products of signed bytes.
 */
#ifndef WK_ARM_LINEAR_FAST_DOTPROD_H
#define WK_ARM_LINEAR_FAST_DOTPROD_H

#include "backend/cpu/arm/linear_fast_neon.h"

#include <stdbool.h>

enum { WIDE_BIAS = 0 };

WK_INLINE w16 w16_dot(w16 sum, b64 quants, w16 x, const bool is_wide) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        /* Wide quants become signed by less 128, a flip of the sign; others are below 128. */
        uint8x16_t q = quants.part[i];
        if (is_wide) q = veorq_u8(q, vdupq_n_u8(128));
        const int8x16_t bytes = vreinterpretq_s8_s32(x.part[i]);
        sum.part[i] = vdotq_s32(sum.part[i], vreinterpretq_s8_u8(q), bytes);
    }
    return sum;
}

#include "backend/cpu/simd/linear_no_pairs.h"
#include "backend/cpu/simd/linear_words.h"

#endif
