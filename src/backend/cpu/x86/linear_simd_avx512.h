/* x86/linear_simd_avx512.h: what linear needs besides simd_avx512.h; as linear_simd_avx2.h. */
#ifndef WK_X86_LINEAR_SIMD_AVX512_H
#define WK_X86_LINEAR_SIMD_AVX512_H

#include "backend/cpu/x86/simd_avx512.h"

#include <string.h>

WK_INLINE void b64_store(uint8_t *p, b64 a) { _mm512_storeu_si512(p, a); }

/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_f16_number(const uint16_t *p) { return v16_load_f16(p); }
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    const __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* Bytes of 16 rows to words, words to floats. */
WK_INLINE b64 b64_widen(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
WK_INLINE v16 v16_of_words(b64 a) { return _mm512_cvtepi32_ps(a); }
/* a >> n & mask of every word. */
WK_INLINE b64 b64_bits(b64 a, int n, uint32_t mask) {
    if (n != 0) a = _mm512_srlv_epi32(a, _mm512_set1_epi32(n));
    return _mm512_and_si512(a, _mm512_set1_epi32((int)mask));
}
/* a | b << n of every word. */
WK_INLINE b64 b64_join(b64 a, b64 b, int n) {
    return _mm512_or_si512(a, _mm512_sllv_epi32(b, _mm512_set1_epi32(n)));
}
/* table[word] in the lower 16 bits; the upper ones may be anything. */
WK_INLINE b64 b64_gather(const uint16_t *table, b64 index) {
    return _mm512_i32gather_epi32(index, table, 2);
}
/* Negates those of the 64 bytes whose bit in signs is 1. */
WK_INLINE b64 b64_negate(b64 a, const uint8_t signs[8]) {
    uint64_t bits;
    memcpy(&bits, signs, sizeof bits);
    return _mm512_mask_sub_epi8(a, (__mmask64)bits, _mm512_setzero_si512(), a);
}
/* The digits in base 3 that power = 3^i brings to the front of the bytes. */
WK_INLINE __m512i simd_trits(__m512i bytes, __m512i power) {
    const __m512i low = _mm512_set1_epi16(255);
    const __m512i rest = _mm512_and_si512(_mm512_mullo_epi16(bytes, power), low);
    return _mm512_srli_epi16(_mm512_mullo_epi16(rest, _mm512_set1_epi16(3)), 8);
}
WK_INLINE b64 b64_trits(b64 a, uint16_t power) {
    const __m512i low = _mm512_set1_epi16(255), by = _mm512_set1_epi16((short)power);
    const __m512i odd = simd_trits(_mm512_srli_epi16(a, 8), by);
    return _mm512_or_si512(simd_trits(_mm512_and_si512(a, low), by), _mm512_slli_epi16(odd, 8));
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
