/* x86/vector_simd_avx512.h: what the vector kernels need besides simd_avx512.h; as
 * vector_simd_avx2.h. */
#ifndef WK_X86_VECTOR_SIMD_AVX512_H
#define WK_X86_VECTOR_SIMD_AVX512_H

#include "backend/cpu/x86/linear_simd_avx512.h"

#include <stdbool.h>

enum { SIMD_STREAMS = 1 }; /* whether v16_stream goes past the caches */

/* To an address that 64 divides; others see it after v16_stream_end. */
WK_INLINE void v16_stream(float *p, v16 a) { _mm512_stream_ps(p, a); }
WK_INLINE void v16_stream_end(void) { _mm_sfence(); }

typedef __mmask16 m16; /* 16 lanes, 1 where something holds */

/* Comparisons with NaN are false. */
WK_INLINE m16 v16_less(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
WK_INLINE m16 v16_less_equal(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
WK_INLINE m16 v16_equal(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
WK_INLINE m16 m16_not(m16 m) { return _knot_mask16(m); }
WK_INLINE bool m16_any(m16 m) { return m != 0; }
WK_INLINE v16 v16_select(m16 m, v16 yes, v16 no) { return _mm512_mask_blend_ps(m, no, yes); }
/* 16 bytes: 1 where it holds, else 0; loaded: whether they are not 0. */
WK_INLINE void m16_store(uint8_t *p, m16 m) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm_maskz_set1_epi8(m, 1));
}
WK_INLINE m16 m16_load(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm_test_epi8_mask(bytes, bytes);
}

/* b where either is NaN, as v16_max. */
WK_INLINE v16 v16_min(v16 a, v16 b) { return _mm512_min_ps(a, b); }
WK_INLINE v16 v16_sqrt(v16 a) { return _mm512_sqrt_ps(a); }
WK_INLINE v16 v16_floor(v16 a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
WK_INLINE v16 v16_ceil(v16 a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
WK_INLINE v16 v16_copy_sign(v16 a, v16 from) {
    const __m512 sign = _mm512_set1_ps(-0.0F);
    return _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, from));
}

/* The m of a = 2^exponent m with m from sqrt(1/2) to sqrt(2); a is normal, finite and above 0, else
 * both are any numbers. */
WK_INLINE v16 v16_split(v16 a, v16 *exponent) {
    const __m512i bits = _mm512_castps_si512(a), root = _mm512_set1_epi32(0x3F3504F3);
    const __m512i n = _mm512_srai_epi32(_mm512_sub_epi32(bits, root), 23);
    *exponent = _mm512_cvtepi32_ps(n);
    return _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(n, 23)));
}

/* The float next to a in the direction of larger magnitude, or of smaller where it holds; a is
 * finite, not 0 and not the last of its direction. */
WK_INLINE v16 v16_next(v16 a, m16 is_smaller) {
    const __m512i step =
        _mm512_mask_mov_epi32(_mm512_set1_epi32(1), is_smaller, _mm512_set1_epi32(-1));
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), step));
}

/* Eight sums: lane i of 0 ... i, by halves: pairs, then fours, then all. */
WK_INLINE __m512d simd_running(__m512d a) {
    a = _mm512_mask_add_pd(a, 0xAA, a, _mm512_movedup_pd(a));
    a = _mm512_mask_add_pd(a, 0xCC, a, _mm512_permutex_pd(a, 0x55));
    return _mm512_mask_add_pd(a, 0xF0, a, _mm512_permutexvar_pd(_mm512_set1_epi64(3), a));
}
/* The sums of *before and lanes 0 ... i in float64, eight by eight; *before becomes the last. */
WK_INLINE v16 v16_running_sums(v16 a, double *before) {
    const __m512d low = simd_running(_mm512_cvtps_pd(v16_low(a)));
    const __m512d high = simd_running(_mm512_cvtps_pd(v16_high(a)));
    const __m512i last = _mm512_set1_epi64(7);
    const __m512d first = _mm512_set1_pd(*before);
    const __m512d second = _mm512_add_pd(first, _mm512_permutexvar_pd(last, low));
    *before = _mm512_cvtsd_f64(_mm512_add_pd(second, _mm512_permutexvar_pd(last, high)));
    const __m512 sums = _mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_add_pd(first, low)));
    return _mm512_insertf32x8(sums, _mm512_cvtpd_ps(_mm512_add_pd(second, high)), 1);
}

/* Rounds to nearest even; NaN gets quiet. */
WK_INLINE void v16_store_bf16(uint16_t *p, v16 a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
    const __m512i rounded =
        _mm512_mask_or_epi32(_mm512_add_epi32(bits, half), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q),
                             bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

#endif
