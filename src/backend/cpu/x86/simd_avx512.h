/* x86/simd_avx512.h: 16 floats as one AVX-512 register; the same functions as simd_avx2.h, which
 * give the same bits. Only for translation units that are compiled for AVX-512. */
#ifndef WK_X86_SIMD_AVX512_H
#define WK_X86_SIMD_AVX512_H

#include "core/compiler.h"
#include "sys/cpu_features.h"

#include <immintrin.h>
#include <stdint.h>

enum {
    SIMD_NEEDS = WK_CPU_AVX512, /* as the file is compiled */
    /* Register tile of matrix products: TILE_PANELS x 16 rows of the weight by TILE_COLUMNS. */
    TILE_PANELS = 2,
    TILE_COLUMNS = 12,
    TILE_COLUMNS_SMALL = 4,
    HAS_PREFETCH = 1,
    ATTENTION_SUMS = 16,    /* register tile of attention, of 16 floats */
    ATTENTION_WIDENS = 0,   /* whether halves become floats first even for few queries */
    DECODE_PANELS = 4,      /* panels in flight with one column, to hide the latency of the sums */
    COLUMN_IS_UNPACKED = 0, /* exact, with one column: no code for each type */
    SIMD_IS_SHORT = 0,      /* whether less code is worth a few more instructions */
};

typedef __m512 v16;  /* 16 floats */
typedef __m512i b64; /* 16 rows of 4 bytes */

WK_INLINE v16 v16_zero(void) { return _mm512_setzero_ps(); }
WK_INLINE v16 v16_set(float a) { return _mm512_set1_ps(a); }
WK_INLINE v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
WK_INLINE void v16_store(float *p, v16 a) { _mm512_storeu_ps(p, a); }

WK_INLINE __mmask16 simd_mask(int64_t n) { return (__mmask16)((1U << n) - 1); }
/* The first n (0 ... 15) lanes; the others read as zero and are not written. */
WK_INLINE v16 v16_load_n(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps(simd_mask(n), p);
}
WK_INLINE void v16_store_n(float *p, v16 a, int64_t n) {
    _mm512_mask_storeu_ps(p, simd_mask(n), a);
}
/* The same where n may also be 16 or more, or less than 1. */
WK_INLINE v16 v16_load_rows(const float *p, int64_t n) {
    if (n >= 16) return v16_load(p);
    return n > 0 ? v16_load_n(p, n) : v16_zero();
}
WK_INLINE void v16_store_rows(float *p, v16 a, int64_t n) {
    if (n >= 16) {
        v16_store(p, a);
    } else if (n > 0) {
        v16_store_n(p, a, n);
    }
}

/* Lanes from n on become fill. */
WK_INLINE v16 v16_fill_from(v16 a, int64_t n, float fill) {
    if (n >= 16) return a;
    if (n < 0) n = 0;
    return _mm512_mask_blend_ps(simd_mask(n), _mm512_set1_ps(fill), a);
}

WK_INLINE v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
WK_INLINE v16 v16_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
WK_INLINE v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
WK_INLINE v16 v16_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
WK_INLINE v16 v16_max(v16 a, v16 b) { return _mm512_max_ps(a, b); }
WK_INLINE v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
WK_INLINE v16 v16_fma_once(v16 a, v16 b, v16 c) { return v16_fma(a, b, c); }
WK_INLINE v16 v16_abs(v16 a) { return _mm512_abs_ps(a); }
WK_INLINE v16 v16_round(v16 a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* 2^a for whole a in -126 ... 127. */
WK_INLINE v16 v16_exp2_whole(v16 a) { return _mm512_scalef_ps(_mm512_set1_ps(1), a); }
/* a 2^n for whole n in -126 ... 127, */
WK_INLINE v16 v16_scale(v16 a, v16 n) { return _mm512_scalef_ps(a, n); }
/* and in -252 ... 254, rounded once. */
WK_INLINE v16 v16_scale_far(v16 a, v16 n) { return _mm512_scalef_ps(a, n); }

/* Rounded to the nearest integers. */
WK_INLINE void v16_store_int(int32_t *p, v16 a) { _mm512_storeu_si512(p, _mm512_cvtps_epi32(a)); }

WK_INLINE v16 v16_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* 16 times the same half. */
WK_INLINE v16 v16_set_f16(uint16_t a) { return _mm512_cvtph_ps(_mm256_set1_epi16((short)a)); }
WK_INLINE void v16_store_f16(uint16_t *p, v16 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

/* Rows become columns. */
WK_INLINE void v16_transpose(v16 a[16]) {
    __m512 b[16];
    for (int i = 0; i < 16; i += 4) { /* 4 x 4 in every lane of 128 bits */
        const __m512 t0 = _mm512_unpacklo_ps(a[i], a[i + 1]);
        const __m512 t1 = _mm512_unpackhi_ps(a[i], a[i + 1]);
        const __m512 t2 = _mm512_unpacklo_ps(a[i + 2], a[i + 3]);
        const __m512 t3 = _mm512_unpackhi_ps(a[i + 2], a[i + 3]);
        b[i] = _mm512_shuffle_ps(t0, t2, 0x44);
        b[i + 1] = _mm512_shuffle_ps(t0, t2, 0xEE);
        b[i + 2] = _mm512_shuffle_ps(t1, t3, 0x44);
        b[i + 3] = _mm512_shuffle_ps(t1, t3, 0xEE);
    }
    for (int i = 0; i < 4; i++) { /* the lanes as a 4 x 4 of their own */
        const __m512 t0 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
        const __m512 t1 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xDD);
        const __m512 t2 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        const __m512 t3 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xDD);
        a[i] = _mm512_shuffle_f32x4(t0, t2, 0x88);
        a[i + 8] = _mm512_shuffle_f32x4(t0, t2, 0xDD);
        a[i + 4] = _mm512_shuffle_f32x4(t1, t3, 0x88);
        a[i + 12] = _mm512_shuffle_f32x4(t1, t3, 0xDD);
    }
}

WK_INLINE __m256 v16_low(v16 a) { return _mm512_castps512_ps256(a); }
WK_INLINE __m256 v16_high(v16 a) { return _mm512_extractf32x8_ps(a, 1); }

/* value where x is not below bound, else 0; NaN in x keeps value. */
WK_INLINE v16 v16_zero_below(v16 value, v16 x, float bound) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_NLT_UQ), value);
}
/* value where x is not negative, else other. */
WK_INLINE v16 v16_by_sign(v16 x, v16 value, v16 other) {
    return _mm512_mask_mov_ps(value, _mm512_movepi32_mask(_mm512_castps_si512(x)), other);
}
/* Eight floats, each twice. */
WK_INLINE v16 v16_load_twice(const float *p) {
    const __m512i at = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_permutexvar_ps(at, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
/* Neighbours change places. */
WK_INLINE v16 v16_swap_pairs(v16 a) { return _mm512_permute_ps(a, 0xB1); }

WK_INLINE b64 b64_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
WK_INLINE b64 b64_low_halves(b64 a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
WK_INLINE b64 b64_high_halves(b64 a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
}
/* Byte i of every row, minus bias, exactly. The byte becomes the lowest one of 2^23 + byte. */
WK_INLINE v16 b64_float(b64 a, int i, float bias) {
    const __m512i index = _mm512_set_epi32(12, 8, 4, 0, 12, 8, 4, 0, 12, 8, 4, 0, 12, 8, 4, 0);
    const __m512i at = _mm512_add_epi32(index, _mm512_set1_epi32(i));
    const __m512i whole = _mm512_set1_epi32(0x4B000000);
    const __m512i bits = _mm512_mask_shuffle_epi8(whole, 0x1111111111111111, a, at);
    return _mm512_sub_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(8388608.0F + bias));
}

/* 16 sums in float64. */
typedef struct wide_sums {
    __m512d low, high;
} wide_sums;

WK_INLINE wide_sums wide_zero(void) {
    return (wide_sums){_mm512_setzero_pd(), _mm512_setzero_pd()};
}
WK_INLINE void wide_add(wide_sums *sums, v16 a) {
    sums->low = _mm512_add_pd(sums->low, _mm512_cvtps_pd(v16_low(a)));
    sums->high = _mm512_add_pd(sums->high, _mm512_cvtps_pd(v16_high(a)));
}
WK_INLINE __m256d simd_halves(__m512d a) {
    return _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
}
WK_INLINE __m256d wide_fours(const wide_sums *sums) {
    return _mm256_add_pd(simd_halves(sums->low), simd_halves(sums->high));
}

#include "backend/cpu/x86/simd_sums.h"

#endif
