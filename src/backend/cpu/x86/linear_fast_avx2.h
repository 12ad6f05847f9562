/* x86/linear_fast_avx2.h: linear with activations as integers, by sums of pairs of products. */
#ifndef WK_X86_LINEAR_FAST_AVX2_H
#define WK_X86_LINEAR_FAST_AVX2_H

#include "backend/cpu/x86/linear_simd_avx2.h"

#include "backend/cpu/cpu_kernel.h"

#include <stdbool.h>

enum { FAST_COLUMNS = 4, FAST_PANELS = 4, FAST_HOLDS = 0, FAST_PAIRS = 1, FAST_OFFSETS = 1 };
enum { WIDE_BIAS = 0 };

typedef b64 w16;

WK_INLINE w16 w16_set(int32_t word) {
    return (w16){_mm256_set1_epi32(word), _mm256_set1_epi32(word)};
}
WK_INLINE w16 w16_add(w16 a, w16 b) {
    return (w16){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
WK_INLINE v16 w16_float(w16 sum) {
    return v16_of(_mm256_cvtepi32_ps(sum.low), _mm256_cvtepi32_ps(sum.high));
}
WK_INLINE v16 w16_as_float(w16 sum) {
    return v16_of(_mm256_castsi256_ps(sum.low), _mm256_castsi256_ps(sum.high));
}

/* Two products of numbers of 7 and 8 bits fit 16 bits. */
WK_INLINE __m256i dot_narrow(__m256i quants, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(quants, x), _mm256_set1_epi16(1));
}
/* As signed numbers, less 128, whose signs go over to x: products of 128 and 127 fit too. */
WK_INLINE __m256i dot_wide(__m256i quants, __m256i x) {
    const __m256i q = _mm256_xor_si256(quants, _mm256_set1_epi8(-128));
    return dot_narrow(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
}
/* gcc puts off additions until all products of a tile lie on the stack, if it may. */
WK_INLINE w16 w16_now(w16 sum) {
    __asm__("" : "+x"(sum.low), "+x"(sum.high));
    return sum;
}
WK_INLINE w16 w16_dot(w16 sum, b64 quants, w16 x, const bool is_wide) {
    const w16 product = is_wide
                            ? (w16){dot_wide(quants.low, x.low), dot_wide(quants.high, x.high)}
                            : (w16){dot_narrow(quants.low, x.low), dot_narrow(quants.high, x.high)};
    return w16_now(w16_add(sum, product));
}

/* Of 16 bits, which maddubs gives. */
WK_INLINE w16 w16_dot_pairs(w16 sum, b64 quants, w16 x) {
    return w16_now((w16){_mm256_add_epi16(sum.low, _mm256_maddubs_epi16(quants.low, x.low)),
                         _mm256_add_epi16(sum.high, _mm256_maddubs_epi16(quants.high, x.high))});
}
WK_INLINE w16 w16_of_pairs(w16 sum) {
    const __m256i one = _mm256_set1_epi16(1);
    return (w16){_mm256_madd_epi16(sum.low, one), _mm256_madd_epi16(sum.high, one)};
}

#include "backend/cpu/simd/linear_words.h"

#endif
