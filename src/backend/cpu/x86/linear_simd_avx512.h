/* x86/linear_simd_avx512.h: what linear needs besides simd_avx512.h; as linear_simd_avx2.h. */
#ifndef WK_X86_LINEAR_SIMD_AVX512_H
#define WK_X86_LINEAR_SIMD_AVX512_H

#include "backend/cpu/x86/simd_avx512.h"

/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    const __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
WK_INLINE v16 v16_load_u8(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* a with those bits set that upper has, its words rotated right by n and masked bytewise. */
WK_INLINE b64 b64_add_upper(b64 a, b64 upper, int n, char mask) {
    const __m512i turned = _mm512_rorv_epi32(upper, _mm512_set1_epi32(n));
    return _mm512_ternarylogic_epi32(a, turned, _mm512_set1_epi8(mask), 0xF8); /* a | b & c */
}
/* table[byte] of all bytes, which are below 16. */
WK_INLINE b64 b64_look_up(b64 a, const uint8_t table[16]) {
    const __m128i levels = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(levels), a);
}

#endif
