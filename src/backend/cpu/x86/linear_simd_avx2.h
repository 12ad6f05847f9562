/* x86/linear_simd_avx2.h: what linear needs besides simd_avx2.h. */
#ifndef WK_X86_LINEAR_SIMD_AVX2_H
#define WK_X86_LINEAR_SIMD_AVX2_H

#include "backend/cpu/x86/simd_avx2.h"

WK_INLINE __m256 simd_load_bf16(const uint16_t *p) {
    const __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return v16_of(simd_load_bf16(p), simd_load_bf16(p + 8));
}
WK_INLINE v16 v16_load_u8(const uint8_t *p) {
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)p);
    const __m128i high = _mm_loadl_epi64((const __m128i *)(const void *)(p + 8));
    return v16_of(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low)),
                  _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high)));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)p);
    const __m128i high = _mm_loadl_epi64((const __m128i *)(const void *)(p + 8));
    return v16_of(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)),
                  _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)));
}

/* n in 0 ... 31; a shift by 32 gives zeros. */
WK_INLINE __m256i simd_add_upper(__m256i a, __m256i upper, int n, char mask) {
    const __m256i turned = _mm256_or_si256(_mm256_srlv_epi32(upper, _mm256_set1_epi32(n)),
                                           _mm256_sllv_epi32(upper, _mm256_set1_epi32(32 - n)));
    return _mm256_or_si256(a, _mm256_and_si256(turned, _mm256_set1_epi8(mask)));
}
/* a with those bits set that upper has, its words rotated right by n and masked bytewise. */
WK_INLINE b64 b64_add_upper(b64 a, b64 upper, int n, char mask) {
    return (b64){simd_add_upper(a.low, upper.low, n, mask),
                 simd_add_upper(a.high, upper.high, n, mask)};
}
/* table[byte] of all bytes, which are below 16. */
WK_INLINE b64 b64_look_up(b64 a, const uint8_t table[16]) {
    const __m128i levels = _mm_loadu_si128((const __m128i *)(const void *)table);
    const __m256i both = _mm256_broadcastsi128_si256(levels);
    return (b64){_mm256_shuffle_epi8(both, a.low), _mm256_shuffle_epi8(both, a.high)};
}

#endif
