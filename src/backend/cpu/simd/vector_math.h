/* simd/vector_math.h: functions over simd_*.h, the same bits on every width. */
#ifndef WK_SIMD_VECTOR_MATH_H
#define WK_SIMD_VECTOR_MATH_H

static const float log2_e = 1.44269504F;

/* The whole number next to x log2 e, for |x| <= 2^20: a float of 1.5 2^23 has no fraction. */
WK_INLINE v16 v16_exp_whole(v16 x) {
    const v16 shift = v16_set(0x1.8p23F);
    if (SIMD_IS_SHORT != 0) return v16_round(v16_mul(x, v16_set(log2_e)));
    return v16_sub(v16_fma(x, v16_set(log2_e), shift), shift);
}

/* x - n ln 2, ln 2 in two parts (Cody and Waite, 1980). */
WK_INLINE v16 v16_exp_rest(v16 x, v16 n) {
    return v16_fma(n, v16_set(2.12194440e-4F), v16_fma(n, v16_set(-0.693359375F), x));
}

/* (e^r - 1 - r) / r^2, fitted to 4e-9 of e^r for |r| <= ln 2 / 2 (Remez exchange). */
WK_INLINE v16 v16_exp_tail(v16 r) {
    v16 p = v16_set(0.00138145837F);
    p = v16_fma(p, r, v16_set(0.00836872403F));
    p = v16_fma(p, r, v16_set(0.041668389F));
    p = v16_fma(p, r, v16_set(0.166665211F));
    return v16_fma(p, r, v16_set(0.49999994F));
}
WK_INLINE v16 v16_exp_near(v16 r) {
    return v16_fma(v16_fma(v16_exp_tail(r), r, v16_set(1)), r, v16_set(1));
}

/* e^x for x <= 88; 0 below -87.3, where floats get subnormal. e^x = 2^n e^r, |r| <= ln 2 / 2. */
WK_INLINE v16 v16_exp(v16 x) {
    const float lowest = -87.3365F;
    const v16 bounded = v16_max(v16_set(lowest), x); /* in this order NaN stays */
    const v16 n = v16_exp_whole(bounded);
    const v16 p = v16_exp_near(v16_exp_rest(bounded, n));
    return v16_zero_below(v16_scale(p, n), x, lowest);
}

WK_INLINE v16 v16_negate(v16 x) { return v16_mul(x, v16_set(-1)); }

/* 1 / (1 + e^-x), by e^-|x|. */
WK_INLINE_FOR_TENSORS v16 v16_sigmoid(v16 x) {
    const v16 e = v16_exp(v16_sub(v16_zero(), v16_abs(x)));
    return v16_div(v16_by_sign(x, v16_set(1), e), v16_add(v16_set(1), e));
}

/* e^x - 1 for x <= 87: 2^n (e^r - 1) + (2^n - 1). */
WK_INLINE v16 v16_exp_minus_1(v16 x) {
    const v16 bounded = v16_max(v16_set(-87), x); /* in this order NaN stays */
    const v16 n = v16_exp_whole(bounded);
    const v16 r = v16_exp_rest(bounded, n), power = v16_exp2_whole(n);
    const v16 p = v16_fma(v16_mul(r, r), v16_exp_tail(r), r);
    return v16_fma(power, p, v16_sub(power, v16_set(1)));
}

/* By e^-2|x| - 1, which does not cancel near 0. */
WK_INLINE_FOR_TENSORS v16 v16_tanh(v16 x) {
    const v16 t = v16_exp_minus_1(v16_mul(v16_abs(x), v16_set(-2)));
    const v16 size = v16_abs(v16_div(t, v16_add(v16_set(2), t)));
    return v16_by_sign(x, size, v16_negate(size));
}

/* (1 + tanh u) / 2 is sigmoid(2 u). */
WK_INLINE_FOR_TENSORS v16 v16_gelu(v16 x) {
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
