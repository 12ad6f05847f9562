/* x86/simd_sums.h: the lanes of a v16 taken together; included at the end of simd_avx2.h and of
 * simd_avx512.h. The order is part of the result: arm/simd_neon.h keeps it. */
#ifndef WK_X86_SIMD_SUMS_H
#define WK_X86_SIMD_SUMS_H

#include "core/compiler.h"

#include <immintrin.h>

/* The sum of all lanes, pairwise: halves of 8, then of 4, 2 and 1. */
WK_INLINE float v16_sum(v16 a) {
    const __m256 eight = _mm256_add_ps(v16_low(a), v16_high(a));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* The sum of all: parts 0 and 1, 2 and 3, both, then halves of 2 and of 1. */
WK_INLINE double wide_total(const wide_sums *sums) {
    const __m256d four = wide_fours(sums);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The largest lane, where none is NaN. */
WK_INLINE float v16_largest(v16 a) {
    const __m256 eight = _mm256_max_ps(v16_low(a), v16_high(a));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

#endif
