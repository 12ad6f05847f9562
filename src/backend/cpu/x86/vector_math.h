/* x86/vector_math.h: reductions and functions over simd_*.h, the same bits on every width. */
#ifndef WK_X86_VECTOR_MATH_H
#define WK_X86_VECTOR_MATH_H

/* The sum of all lanes, pairwise: halves of 8, then of 4, 2 and 1. */
WK_INLINE float v16_sum(v16 a) {
    const __m256 eight = _mm256_add_ps(v16_low(a), v16_high(a));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
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

/* x / (1 + e^-x), by e^-|x|, which cannot overflow. */
WK_INLINE v16 v16_silu(v16 x) {
    const v16 e = v16_exp(v16_sub(v16_zero(), v16_abs(x)));
    const v16 top = v16_by_sign(x, x, v16_mul(x, e));
    return v16_div(top, v16_add(v16_set(1), e));
}

#endif
