/* x86/simd_avx2.h: 16 floats as two AVX registers, with FMA and F16C. */
#ifndef WK_X86_SIMD_AVX2_H
#define WK_X86_SIMD_AVX2_H

#include "core/compiler.h"
#include "sys/cpu_features.h"

#include <immintrin.h>
#include <stdint.h>

enum {
    SIMD_NEEDS = WK_CPU_AVX2,
    /* Register tile of matrix products: TILE_PANELS x 16 rows of the weight by TILE_COLUMNS. */
    TILE_PANELS = 1,
    TILE_COLUMNS = 6,
    TILE_COLUMNS_SMALL = 2,
    HAS_PREFETCH = 1,
    ATTENTION_SUMS = 4,     /* register tile of attention, of 16 floats */
    ATTENTION_WIDENS = 0,   /* whether halves become floats first even for few queries */
    DECODE_PANELS = 2,      /* panels in flight with one column, to hide the latency of the sums */
    COLUMN_IS_UNPACKED = 0, /* exact, with one column: no code for each type */
    SIMD_IS_SHORT = 0,      /* whether less code is worth a few more instructions */
};

typedef struct v16 { /* 16 floats */
    __m256 low, high;
} v16;
typedef struct b64 { /* 16 rows of 4 bytes */
    __m256i low, high;
} b64;

WK_INLINE v16 v16_of(__m256 low, __m256 high) { return (v16){low, high}; }
WK_INLINE v16 v16_zero(void) { return v16_of(_mm256_setzero_ps(), _mm256_setzero_ps()); }
WK_INLINE v16 v16_set(float a) { return v16_of(_mm256_set1_ps(a), _mm256_set1_ps(a)); }
WK_INLINE v16 v16_load(const float *p) {
    return v16_of(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
WK_INLINE void v16_store(float *p, v16 a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
}

/* All ones in the lanes before n, which may be negative or past the end. */
WK_INLINE __m256i simd_mask(int64_t n) {
    const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}
/* The first n (0 ... 15) lanes; the others read as zero and are not written. */
WK_INLINE v16 v16_load_n(const float *p, int64_t n) {
    return v16_of(_mm256_maskload_ps(p, simd_mask(n)), _mm256_maskload_ps(p + 8, simd_mask(n - 8)));
}
WK_INLINE void v16_store_n(float *p, v16 a, int64_t n) {
    _mm256_maskstore_ps(p, simd_mask(n), a.low);
    _mm256_maskstore_ps(p + 8, simd_mask(n - 8), a.high);
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
    const __m256 other = _mm256_set1_ps(fill);
    return v16_of(_mm256_blendv_ps(other, a.low, _mm256_castsi256_ps(simd_mask(n))),
                  _mm256_blendv_ps(other, a.high, _mm256_castsi256_ps(simd_mask(n - 8))));
}

WK_INLINE v16 v16_add(v16 a, v16 b) {
    return v16_of(_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high));
}
WK_INLINE v16 v16_sub(v16 a, v16 b) {
    return v16_of(_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high));
}
WK_INLINE v16 v16_mul(v16 a, v16 b) {
    return v16_of(_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high));
}
WK_INLINE v16 v16_div(v16 a, v16 b) {
    return v16_of(_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high));
}
WK_INLINE v16 v16_max(v16 a, v16 b) {
    return v16_of(_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high));
}
WK_INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    return v16_of(_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high));
}
WK_INLINE v16 v16_fma_once(v16 a, v16 b, v16 c) { return v16_fma(a, b, c); }
WK_INLINE v16 v16_abs(v16 a) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return v16_of(_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high));
}
WK_INLINE __m256 simd_round(__m256 a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
WK_INLINE v16 v16_round(v16 a) { return v16_of(simd_round(a.low), simd_round(a.high)); }
WK_INLINE __m256 simd_exp2_whole(__m256 a) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
/* 2^a for whole a in -126 ... 127. */
WK_INLINE v16 v16_exp2_whole(v16 a) {
    return v16_of(simd_exp2_whole(a.low), simd_exp2_whole(a.high));
}

/* Rounded to the nearest integers. */
WK_INLINE void v16_store_int(int32_t *p, v16 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_cvtps_epi32(a.low));
    _mm256_storeu_si256((__m256i *)(void *)(p + 8), _mm256_cvtps_epi32(a.high));
}

WK_INLINE v16 v16_load_f16(const uint16_t *p) {
    return v16_of(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)),
                  _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 8))));
}
/* 16 times the same half. */
WK_INLINE v16 v16_set_f16(uint16_t a) {
    const __m256 all = _mm256_cvtph_ps(_mm_set1_epi16((short)a));
    return v16_of(all, all);
}
WK_INLINE void v16_store_f16(uint16_t *p, v16 a) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(void *)(p + 8),
                     _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT));
}

/* Eight rows of eight become columns. */
WK_INLINE void simd_transpose(__m256 a[8]) {
    __m256 b[8];
    for (int i = 0; i < 8; i += 4) { /* 4 x 4 in both halves */
        const __m256 t0 = _mm256_unpacklo_ps(a[i], a[i + 1]);
        const __m256 t1 = _mm256_unpackhi_ps(a[i], a[i + 1]);
        const __m256 t2 = _mm256_unpacklo_ps(a[i + 2], a[i + 3]);
        const __m256 t3 = _mm256_unpackhi_ps(a[i + 2], a[i + 3]);
        b[i] = _mm256_shuffle_ps(t0, t2, 0x44);
        b[i + 1] = _mm256_shuffle_ps(t0, t2, 0xEE);
        b[i + 2] = _mm256_shuffle_ps(t1, t3, 0x44);
        b[i + 3] = _mm256_shuffle_ps(t1, t3, 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        a[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        a[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}
/* Rows become columns. */
WK_INLINE void v16_transpose(v16 a[16]) {
    __m256 quarter[4][8]; /* upper left, upper right, lower left, lower right */
    for (int i = 0; i < 8; i++) {
        quarter[0][i] = a[i].low;
        quarter[1][i] = a[i].high;
        quarter[2][i] = a[i + 8].low;
        quarter[3][i] = a[i + 8].high;
    }
    for (int i = 0; i < 4; i++) simd_transpose(quarter[i]);
    for (int i = 0; i < 8; i++) {
        a[i] = v16_of(quarter[0][i], quarter[2][i]);
        a[i + 8] = v16_of(quarter[1][i], quarter[3][i]);
    }
}

WK_INLINE __m256 v16_low(v16 a) { return a.low; }
WK_INLINE __m256 v16_high(v16 a) { return a.high; }

WK_INLINE __m256 simd_zero_below(__m256 value, __m256 x, float bound) {
    return _mm256_and_ps(value, _mm256_cmp_ps(x, _mm256_set1_ps(bound), _CMP_NLT_UQ));
}
/* value where x is not below bound, else 0; NaN in x keeps value. */
WK_INLINE v16 v16_zero_below(v16 value, v16 x, float bound) {
    return v16_of(simd_zero_below(value.low, x.low, bound),
                  simd_zero_below(value.high, x.high, bound));
}
/* value where x is not negative, else other. */
WK_INLINE v16 v16_by_sign(v16 x, v16 value, v16 other) {
    return v16_of(_mm256_blendv_ps(value.low, other.low, x.low),
                  _mm256_blendv_ps(value.high, other.high, x.high));
}
/* Eight floats, each twice. */
WK_INLINE v16 v16_load_twice(const float *p) {
    const __m256 all = _mm256_loadu_ps(p);
    const __m256i low = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
    const __m256i high = _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4);
    return v16_of(_mm256_permutevar8x32_ps(all, low), _mm256_permutevar8x32_ps(all, high));
}
/* Neighbours change places. */
WK_INLINE v16 v16_swap_pairs(v16 a) {
    return v16_of(_mm256_permute_ps(a.low, 0xB1), _mm256_permute_ps(a.high, 0xB1));
}

WK_INLINE __m256i simd_load_bytes(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
WK_INLINE b64 b64_load(const uint8_t *p) {
    return (b64){simd_load_bytes(p), simd_load_bytes(p + 32)};
}
WK_INLINE b64 b64_low_halves(b64 a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return (b64){_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask)};
}
WK_INLINE b64 b64_high_halves(b64 a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return (b64){_mm256_and_si256(_mm256_srli_epi16(a.low, 4), mask),
                 _mm256_and_si256(_mm256_srli_epi16(a.high, 4), mask)};
}
WK_INLINE __m256 simd_byte(__m256i a, int i) {
    const __m256i byte = _mm256_and_si256(_mm256_srli_epi32(a, 8 * i), _mm256_set1_epi32(255));
    return _mm256_cvtepi32_ps(byte);
}
/* Byte i of every row, minus bias, exactly. */
WK_INLINE v16 b64_float(b64 a, int i, float bias) {
    return v16_sub(v16_of(simd_byte(a.low, i), simd_byte(a.high, i)), v16_set(bias));
}

/* 16 sums in float64. */
typedef struct wide_sums {
    __m256d part[4];
} wide_sums;

WK_INLINE wide_sums wide_zero(void) {
    const __m256d zero = _mm256_setzero_pd();
    return (wide_sums){{zero, zero, zero, zero}};
}
WK_INLINE void wide_add(wide_sums *sums, v16 a) {
    __m256d *const sum = sums->part;
    const __m256 low = v16_low(a), high = v16_high(a);
    sum[0] = _mm256_add_pd(sum[0], _mm256_cvtps_pd(_mm256_castps256_ps128(low)));
    sum[1] = _mm256_add_pd(sum[1], _mm256_cvtps_pd(_mm256_extractf128_ps(low, 1)));
    sum[2] = _mm256_add_pd(sum[2], _mm256_cvtps_pd(_mm256_castps256_ps128(high)));
    sum[3] = _mm256_add_pd(sum[3], _mm256_cvtps_pd(_mm256_extractf128_ps(high, 1)));
}
WK_INLINE __m256d wide_fours(const wide_sums *sums) {
    const __m256d *const sum = sums->part;
    return _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3]));
}

#include "backend/cpu/simd/scale.h"
#include "backend/cpu/x86/simd_sums.h"

#endif
