/* arm/linear_fast_i8mm.h: linear with activations as integers, by the mixed dot products of I8MM.
 *
 * Its 2 x 2 products would take half as many instructions, but want 8 elements of a row side by
 * side where panels have 4: to change that and to sort the sums takes most of them again (112
 * instead of 128 instructions for a block, 16 rows and 4 columns). */
#ifndef WK_ARM_LINEAR_FAST_I8MM_H
#define WK_ARM_LINEAR_FAST_I8MM_H

#include "backend/cpu/arm/linear_fast_neon.h"

#include <stdbool.h>

enum { WIDE_BIAS = 128 };

WK_INLINE w16 w16_dot(w16 sum, b64 quants, w16 x, const bool is_wide) {
    (void)is_wide;
    for (int i = 0; i < SIMD_PARTS; i++) {
        const int8x16_t bytes = vreinterpretq_s8_s32(x.part[i]);
        sum.part[i] = vusdotq_s32(sum.part[i], quants.part[i], bytes);
    }
    return sum;
}

#include "backend/cpu/simd/linear_no_pairs.h"
#include "backend/cpu/simd/linear_words.h"

#endif
