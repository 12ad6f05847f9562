/* simd/vector_math.h: reductions and functions over simd_*.h, the same bits on every width. */
#ifndef WK_SIMD_VECTOR_MATH_H
#define WK_SIMD_VECTOR_MATH_H

/* The sum of all lanes, pairwise: halves of 8, then of 4, 2 and 1. */
WK_INLINE float v16_sum(v16 a) {
    const __m256 eight = _mm256_add_ps(v16_low(a), v16_high(a));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* Adds 16 floats to 16 sums in float64. */
WK_INLINE void v16_add_wide(__m256d sum[4], v16 a) {
    const __m256 low = v16_low(a), high = v16_high(a);
    sum[0] = _mm256_add_pd(sum[0], _mm256_cvtps_pd(_mm256_castps256_ps128(low)));
    sum[1] = _mm256_add_pd(sum[1], _mm256_cvtps_pd(_mm256_extractf128_ps(low, 1)));
    sum[2] = _mm256_add_pd(sum[2], _mm256_cvtps_pd(_mm256_castps256_ps128(high)));
    sum[3] = _mm256_add_pd(sum[3], _mm256_cvtps_pd(_mm256_extractf128_ps(high, 1)));
}

WK_INLINE double v16_sum_wide(const __m256d sum[4]) {
    const __m256d four =
        _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3]));
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

/* e^x for x <= 88; 0 below -87.3, where floats get subnormal. e^x = 2^n e^r with |r| <= ln 2 / 2,
 * ln 2 in two parts (Cody and Waite, 1980), e^r by its Taylor polynomial: the remainder r^8 / 8! is
 * less than 6e-9. */
WK_INLINE v16 v16_exp(v16 x) {
    const float lowest = -87.3365F;
    const v16 bounded = v16_max(v16_set(lowest), x); /* in this order NaN stays */
    const v16 n = v16_round(v16_mul(bounded, v16_set(1.44269504F)));
    v16 r = v16_fma(n, v16_set(-0.693359375F), bounded);
    r = v16_fma(n, v16_set(2.12194440e-4F), r);
    v16 p = v16_set(1.0F / 5040);
    p = v16_fma(p, r, v16_set(1.0F / 720));
    p = v16_fma(p, r, v16_set(1.0F / 120));
    p = v16_fma(p, r, v16_set(1.0F / 24));
    p = v16_fma(p, r, v16_set(1.0F / 6));
    p = v16_fma(p, r, v16_set(0.5F));
    p = v16_fma(p, r, v16_set(1));
    p = v16_fma(p, r, v16_set(1));
    return v16_zero_below(v16_mul(p, v16_exp2_whole(n)), x, lowest);
}

WK_INLINE v16 v16_negate(v16 x) { return v16_mul(x, v16_set(-1)); }

/* e^x for every x, as the square of e^(x / 2), whose halves are exact; e^100 is infinite. */
WK_INLINE v16 v16_exp_full(v16 x) {
    const v16 half = v16_mul(x, v16_set(-0.5F));
    const v16 root = v16_exp(v16_negate(v16_max(v16_set(-50), half))); /* NaN stays */
    return v16_mul(root, root);
}

/* 1 / (1 + e^-x), by e^-|x|. */
WK_INLINE v16 v16_sigmoid(v16 x) {
    const v16 e = v16_exp(v16_sub(v16_zero(), v16_abs(x)));
    return v16_div(v16_by_sign(x, v16_set(1), e), v16_add(v16_set(1), e));
}

/* By e^-2|x|; near 0, where that cancels, by a polynomial (Moshier's Cephes, 1989). */
WK_INLINE v16 v16_tanh(v16 x) {
    const v16 magnitude = v16_abs(x), square = v16_mul(x, x);
    const v16 e = v16_exp(v16_mul(magnitude, v16_set(-2)));
    const v16 far = v16_div(v16_sub(v16_set(1), e), v16_add(v16_set(1), e));
    v16 p = v16_set(-5.70498872745e-3F);
    p = v16_fma(p, square, v16_set(2.06390887954e-2F));
    p = v16_fma(p, square, v16_set(-5.37397155531e-2F));
    p = v16_fma(p, square, v16_set(1.33314422036e-1F));
    p = v16_fma(p, square, v16_set(-3.33332819422e-1F));
    const v16 near = v16_fma(v16_mul(p, square), x, x);
    return v16_by_sign(v16_sub(magnitude, v16_set(0.625F)), v16_by_sign(x, far, v16_negate(far)),
                       near);
}

/* (1 + tanh u) / 2 is sigmoid(2 u). */
WK_INLINE v16 v16_gelu(v16 x) {
    const v16 cubic = v16_fma(v16_mul(x, x), v16_set(0.044715F), v16_set(1));
    return v16_mul(x, v16_sigmoid(v16_mul(v16_mul(x, v16_set(1.59576912F)), cubic)));
}

/* x / (1 + e^-x), by e^-|x|, which cannot overflow. */
WK_INLINE v16 v16_silu(v16 x) {
    const v16 e = v16_exp(v16_sub(v16_zero(), v16_abs(x)));
    const v16 top = v16_by_sign(x, x, v16_mul(x, e));
    return v16_div(top, v16_add(v16_set(1), e));
}

#endif
