/* x86/vector_simd_avx2.h: what the vector kernels need besides simd_avx2.h: lanes chosen by a
 * comparison, roundings, the parts of a float, conversions. */
#ifndef WK_X86_VECTOR_SIMD_AVX2_H
#define WK_X86_VECTOR_SIMD_AVX2_H

#include "backend/cpu/x86/linear_simd_avx2.h"

#include <stdbool.h>

enum { SIMD_STREAMS = 1 }; /* whether v16_stream goes past the caches */

/* To an address that 64 divides; others see it after v16_stream_end. */
WK_INLINE void v16_stream(float *p, v16 a) {
    _mm256_stream_ps(p, a.low);
    _mm256_stream_ps(p + 8, a.high);
}
WK_INLINE void v16_stream_end(void) { _mm_sfence(); }

typedef struct m16 { /* 16 lanes, all ones where something holds, else zero */
    __m256 low, high;
} m16;

/* Comparisons with NaN are false. */
WK_INLINE m16 v16_less(v16 a, v16 b) {
    return (m16){_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ),
                 _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
WK_INLINE m16 v16_less_equal(v16 a, v16 b) {
    return (m16){_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ),
                 _mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ)};
}
WK_INLINE m16 v16_equal(v16 a, v16 b) {
    return (m16){_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ),
                 _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
WK_INLINE m16 m16_not(m16 m) {
    const __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    return (m16){_mm256_xor_ps(m.low, ones), _mm256_xor_ps(m.high, ones)};
}
WK_INLINE bool m16_any(m16 m) { return _mm256_movemask_ps(_mm256_or_ps(m.low, m.high)) != 0; }
WK_INLINE v16 v16_select(m16 m, v16 yes, v16 no) {
    return v16_of(_mm256_blendv_ps(no.low, yes.low, m.low),
                  _mm256_blendv_ps(no.high, yes.high, m.high));
}
/* 16 bytes: 1 where it holds, else 0; loaded: whether they are not 0. */
WK_INLINE void m16_store(uint8_t *p, m16 m) {
    const __m256i words =
        _mm256_packs_epi32(_mm256_castps_si256(m.low), _mm256_castps_si256(m.high));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128((__m128i *)(void *)p, _mm_and_si128(bytes, _mm_set1_epi8(1)));
}
WK_INLINE m16 m16_load(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m256i low = _mm256_cvtepu8_epi32(bytes), zero = _mm256_setzero_si256();
    const __m256i high = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
    return (m16){_mm256_castsi256_ps(_mm256_cmpgt_epi32(low, zero)),
                 _mm256_castsi256_ps(_mm256_cmpgt_epi32(high, zero))};
}

/* b where either is NaN, as v16_max. */
WK_INLINE v16 v16_min(v16 a, v16 b) {
    return v16_of(_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high));
}
WK_INLINE v16 v16_sqrt(v16 a) { return v16_of(_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)); }
WK_INLINE v16 v16_floor(v16 a) { return v16_of(_mm256_floor_ps(a.low), _mm256_floor_ps(a.high)); }
WK_INLINE v16 v16_ceil(v16 a) { return v16_of(_mm256_ceil_ps(a.low), _mm256_ceil_ps(a.high)); }
WK_INLINE __m256 simd_copy_sign(__m256 a, __m256 from) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, from));
}
WK_INLINE v16 v16_copy_sign(v16 a, v16 from) {
    return v16_of(simd_copy_sign(a.low, from.low), simd_copy_sign(a.high, from.high));
}

WK_INLINE __m256 simd_split(__m256 a, __m256 *exponent) {
    const __m256i bits = _mm256_castps_si256(a), root = _mm256_set1_epi32(0x3F3504F3);
    const __m256i n = _mm256_srai_epi32(_mm256_sub_epi32(bits, root), 23);
    *exponent = _mm256_cvtepi32_ps(n);
    return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(n, 23)));
}
/* The m of a = 2^exponent m with m from sqrt(1/2) to sqrt(2); a is normal, finite and above 0, else
 * both are any numbers. */
WK_INLINE v16 v16_split(v16 a, v16 *exponent) {
    return v16_of(simd_split(a.low, &exponent->low), simd_split(a.high, &exponent->high));
}

WK_INLINE __m256 simd_next(__m256 a, __m256 is_smaller) {
    const __m256i step = _mm256_or_si256(_mm256_castps_si256(is_smaller), _mm256_set1_epi32(1));
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), step));
}
/* The float next to a in the direction of larger magnitude, or of smaller where it holds; a is
 * finite, not 0 and not the last of its direction. */
WK_INLINE v16 v16_next(v16 a, m16 is_smaller) {
    return v16_of(simd_next(a.low, is_smaller.low), simd_next(a.high, is_smaller.high));
}

/* Four sums: lane i of 0 ... i, pairs first. */
WK_INLINE __m256d simd_running(__m128 from) {
    const __m256d a = _mm256_cvtps_pd(from), zero = _mm256_setzero_pd();
    const __m256d two = _mm256_add_pd(a, _mm256_blend_pd(zero, _mm256_movedup_pd(a), 10));
    return _mm256_add_pd(two, _mm256_blend_pd(zero, _mm256_permute4x64_pd(two, 0x55), 12));
}
/* Of eight lanes; *before becomes the last. */
WK_INLINE __m256 simd_running_sums(__m256 a, __m256d *before) {
    const __m256d low = simd_running(_mm256_castps256_ps128(a));
    const __m256d next = simd_running(_mm256_extractf128_ps(a, 1));
    const __m256d high = _mm256_add_pd(next, _mm256_permute4x64_pd(low, 0xFF));
    const __m256d first = *before;
    *before = _mm256_add_pd(first, _mm256_permute4x64_pd(high, 0xFF));
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_add_pd(first, high)),
                           _mm256_cvtpd_ps(_mm256_add_pd(first, low)));
}
/* The sums of *before and lanes 0 ... i in float64, eight by eight; *before becomes the last. */
WK_INLINE v16 v16_running_sums(v16 a, double *before) {
    __m256d first = _mm256_set1_pd(*before);
    const __m256 low = simd_running_sums(a.low, &first), high = simd_running_sums(a.high, &first);
    *before = _mm256_cvtsd_f64(first);
    return v16_of(low, high);
}

WK_INLINE __m256i simd_to_bf16(__m256 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 is_nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
    const __m256i rounded = _mm256_add_epi32(bits, half);
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan)), 16);
}
/* Rounds to nearest even; NaN gets quiet. */
WK_INLINE void v16_store_bf16(uint16_t *p, v16 a) {
    const __m256i words = _mm256_packus_epi32(simd_to_bf16(a.low), simd_to_bf16(a.high));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permute4x64_epi64(words, 0xD8));
}

#endif
