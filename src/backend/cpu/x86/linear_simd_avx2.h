/* x86/linear_simd_avx2.h: what linear needs besides simd_avx2.h. */
#ifndef WK_X86_LINEAR_SIMD_AVX2_H
#define WK_X86_LINEAR_SIMD_AVX2_H

#include "backend/cpu/x86/simd_avx2.h"

#include <string.h>

WK_INLINE __m256 simd_load_bf16(const uint16_t *p) {
    const __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
WK_INLINE void b64_store(uint8_t *p, b64 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, a.low);
    _mm256_storeu_si256((__m256i *)(void *)(p + 32), a.high);
}

/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_f16_number(const uint16_t *p) { return v16_load_f16(p); }
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return v16_of(simd_load_bf16(p), simd_load_bf16(p + 8));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)p);
    const __m128i high = _mm_loadl_epi64((const __m128i *)(const void *)(p + 8));
    return v16_of(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)),
                  _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)));
}

/* Bytes of 16 rows to words, words to floats. */
WK_INLINE __m256i simd_widen(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
WK_INLINE b64 b64_widen(const uint8_t *p) { return (b64){simd_widen(p), simd_widen(p + 8)}; }
WK_INLINE v16 v16_of_words(b64 a) {
    return v16_of(_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high));
}
WK_INLINE __m256i simd_bits(__m256i a, int n, uint32_t mask) {
    if (n != 0) a = _mm256_srlv_epi32(a, _mm256_set1_epi32(n));
    return _mm256_and_si256(a, _mm256_set1_epi32((int)mask));
}
/* a >> n & mask of every word. */
WK_INLINE b64 b64_bits(b64 a, int n, uint32_t mask) {
    return (b64){simd_bits(a.low, n, mask), simd_bits(a.high, n, mask)};
}
/* a | b << n of every word. */
WK_INLINE b64 b64_join(b64 a, b64 b, int n) {
    const __m256i by = _mm256_set1_epi32(n);
    return (b64){_mm256_or_si256(a.low, _mm256_sllv_epi32(b.low, by)),
                 _mm256_or_si256(a.high, _mm256_sllv_epi32(b.high, by))};
}
/* table[word] in the lower 16 bits; the upper ones may be anything. */
WK_INLINE b64 b64_gather(const uint16_t *table, b64 index) {
    const int *const at = (const int *)(const void *)table;
    return (b64){_mm256_i32gather_epi32(at, index.low, 2),
                 _mm256_i32gather_epi32(at, index.high, 2)};
}
WK_INLINE __m256i simd_negate(__m256i a, const uint8_t signs[4]) {
    int32_t word;
    memcpy(&word, signs, sizeof word);
    const __m256i own = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202,
                                          0x0101010101010101, 0); /* byte of signs */
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(word), own);
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_sub_epi8(_mm256_xor_si256(a, is_set), is_set);
}
/* Negates those of the 64 bytes whose bit in signs is 1. */
WK_INLINE b64 b64_negate(b64 a, const uint8_t signs[8]) {
    return (b64){simd_negate(a.low, signs), simd_negate(a.high, signs + 4)};
}
WK_INLINE __m256i simd_digit(__m256i bytes, __m256i power) {
    const __m256i low = _mm256_set1_epi16(255);
    const __m256i rest = _mm256_and_si256(_mm256_mullo_epi16(bytes, power), low);
    return _mm256_srli_epi16(_mm256_mullo_epi16(rest, _mm256_set1_epi16(3)), 8);
}
WK_INLINE __m256i simd_trits(__m256i a, __m256i power) {
    const __m256i odd = simd_digit(_mm256_srli_epi16(a, 8), power);
    const __m256i even = simd_digit(_mm256_and_si256(a, _mm256_set1_epi16(255)), power);
    return _mm256_or_si256(even, _mm256_slli_epi16(odd, 8));
}
/* The digits in base 3 that power = 3^i brings to the front of the bytes. */
WK_INLINE b64 b64_trits(b64 a, uint16_t power) {
    const __m256i by = _mm256_set1_epi16((short)power);
    return (b64){simd_trits(a.low, by), simd_trits(a.high, by)};
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
