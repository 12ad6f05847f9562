/* simd/vector_log.h: exponentials over the whole range, logarithms and what is made of them.
 * Figures in ulp are the largest errors over all floats, or over what a comment names
 * (docs/numerics.md). */
#ifndef WK_SIMD_VECTOR_LOG_H
#define WK_SIMD_VECTOR_LOG_H

#include "backend/cpu/simd/vector_math.h"

#include <math.h>
#include <stdbool.h>

/* a + b, unrounded; b is far smaller than a. */
typedef struct v16_pair {
    v16 high, low;
} v16_pair;

/* e^(high + low) for every high, subnormal results too. |low| is far smaller than 1. */
WK_INLINE v16 v16_exp_pair(v16 high, v16 low) {
    /* In this order NaN stays; 2^-151 rounds to 0 and 2^129 to infinity. */
    const v16 bounded = v16_min(v16_set(89.5F), v16_max(v16_set(-104.5F), high));
    const v16 n = v16_exp_whole(bounded);
    const v16 r = v16_add(v16_exp_rest(bounded, n), low);
    return v16_scale_far(v16_exp_near(r), n);
}

WK_INLINE v16 v16_exp_full(v16 x) { return v16_exp_pair(x, v16_zero()); }

/* Of large x the power of two would overflow, and 1 counts for nothing. */
WK_INLINE v16 v16_exp_minus_1_full(v16 x) {
    const m16 is_large = v16_less(v16_set(80), x);
    const v16 small = v16_exp_minus_1(v16_select(is_large, v16_zero(), x));
    return m16_any(is_large) ? v16_select(is_large, v16_exp_full(x), small) : small;
}

/* Whether some may not be normal numbers above 0. */
WK_INLINE bool v16_any_special(v16 x) {
    return SIMD_IS_SHORT != 0 || m16_any(m16_not(v16_less_equal(v16_set(0x1p-126F), x)));
}

/* v16_split, of subnormal numbers too. */
WK_INLINE v16 v16_split_all(v16 x, bool has_special, v16 *exponent) {
    if (!has_special) return v16_split(x, exponent);
    const m16 is_tiny = v16_less(x, v16_set(0x1p-126F));
    const v16 m = v16_split(v16_select(is_tiny, v16_mul(x, v16_set(0x1p24F)), x), exponent);
    *exponent = v16_sub(*exponent, v16_select(is_tiny, v16_set(24), v16_zero()));
    return m;
}

/* log of finite x > 0 as a pair that is right to about 2^-31 of itself. x = 2^n m; log m =
 * 2 artanh s = 2 s + 2 s^3 (1/3 + s^2 / 5 + ...), s = (m - 1) / (m + 1), |s| <= 0.172: the terms
 * left out are less than 1e-9 of it. */
WK_INLINE v16_pair v16_log_pair(v16 x, bool has_special) {
    v16 n;
    const v16 m = v16_split_all(x, has_special, &n);
    const v16 f = v16_sub(m, v16_set(1)), sum = v16_add(f, v16_set(2));
    const v16 sum_low = v16_sub(f, v16_sub(sum, v16_set(2)));
    const v16 inverse = v16_div(v16_set(1), sum);
    const v16 s = v16_mul(f, inverse);
    /* What s lacks: (f - s (sum + sum_low)) / sum. */
    const v16 rest = v16_sub(v16_fma_once(v16_negate(s), sum, f), v16_mul(s, sum_low));
    const v16 s_low = v16_mul(rest, inverse), z = v16_mul(s, s);
    v16 p = v16_set(2.0F / 11);
    p = v16_fma(p, z, v16_set(2.0F / 9));
    p = v16_fma(p, z, v16_set(2.0F / 7));
    p = v16_fma(p, z, v16_set(2.0F / 5));
    p = v16_fma(p, z, v16_set(2.0F / 3));
    const v16 curve = v16_mul(v16_mul(s, z), p);
    /* n ln 2 in two parts, of which the product with the first is exact. */
    const v16 whole = v16_mul(n, v16_set(0.693359375F)), twice = v16_add(s, s);
    const v16 high = v16_add(whole, twice);
    const v16 lost = v16_sub(twice, v16_sub(high, whole)); /* |whole| is the larger, or 0 */
    const v16 low =
        v16_add(v16_fma(n, v16_set(-2.12194440e-4F), v16_add(s_low, s_low)), v16_add(lost, curve));
    const v16 total = v16_add(high, low);
    return (v16_pair){total, v16_sub(low, v16_sub(total, high))};
}

/* log(2^n (1 + f) + lost) for |f| <= 0.42; lost, divided by 2^n (1 + f), is far smaller. log(1 + f)
 * = f - f^2 / 2 + f^3 P(f), P fitted to 6e-9 of it (Remez exchange): f is exact, what is added to
 * it is small. */
WK_INLINE v16 v16_log_of_parts(v16 n, v16 f, v16 lost) {
    const v16 z = v16_mul(f, f);
    v16 p = v16_set(-0.076345101F);
    p = v16_fma(p, f, v16_set(0.127615958F));
    p = v16_fma(p, f, v16_set(-0.131601855F));
    p = v16_fma(p, f, v16_set(0.142017558F));
    p = v16_fma(p, f, v16_set(-0.166233569F));
    p = v16_fma(p, f, v16_set(0.200012267F));
    p = v16_fma(p, f, v16_set(-0.250008196F));
    p = v16_fma(p, f, v16_set(0.333333313F));
    p = v16_fma(p, f, v16_set(-0.5F));
    /* n ln 2 in two parts, of which the product with the first is exact. */
    const v16 whole = v16_mul(n, v16_set(0.693359375F)), high = v16_add(whole, f);
    const v16 rest = v16_sub(f, v16_sub(high, whole)); /* |whole| is the larger, or 0 */
    const v16 low = v16_fma(n, v16_set(-2.12194440e-4F), v16_add(rest, lost));
    return v16_add(high, v16_fma(z, p, low));
}

/* log 0 is -infinity, below it NaN. */
WK_INLINE v16 v16_log(v16 x) {
    const bool has_special = v16_any_special(x);
    v16 n;
    const v16 f = v16_sub(v16_split_all(x, has_special, &n), v16_set(1));
    const v16 finite = v16_log_of_parts(n, f, v16_zero());
    const v16 value = v16_select(v16_less(x, v16_set(INFINITY)), finite, x);
    if (!has_special) return value;
    const m16 is_zero = v16_equal(x, v16_zero());
    const v16 other = v16_select(is_zero, v16_set(-INFINITY), v16_set(NAN));
    return v16_select(v16_less(v16_zero(), x), value, other);
}

/* log(1 + x) for x of 0 ... 1: 2 artanh s, s = x / (2 + x) <= 1 / 3, as above; the polynomial is
 * fitted to 1e-9 of it (Remez exchange). */
WK_INLINE v16 v16_log_plus_1(v16 x) {
    const v16 sum = v16_add(x, v16_set(2)), sum_low = v16_sub(x, v16_sub(sum, v16_set(2)));
    const v16 inverse = v16_div(v16_set(1), sum), s = v16_mul(x, inverse);
    const v16 rest = v16_sub(v16_fma_once(v16_negate(s), sum, x), v16_mul(s, sum_low));
    const v16 s_low = v16_mul(rest, inverse), z = v16_mul(s, s);
    v16 p = v16_set(0.243009329F);
    p = v16_fma(p, z, v16_set(0.214276582F));
    p = v16_fma(p, z, v16_set(0.286168844F));
    p = v16_fma(p, z, v16_set(0.39998877F));
    p = v16_fma(p, z, v16_set(0.666666746F));
    const v16 curve = v16_fma(v16_mul(s, z), p, v16_add(s_low, s_low));
    return v16_add(v16_add(s, s), curve);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). */
WK_INLINE v16 v16_softplus(v16 x) {
    const v16 e = v16_exp(v16_negate(v16_abs(x)));
    return v16_add(v16_max(v16_zero(), x), v16_log_plus_1(e)); /* in this order NaN stays */
}

/* x tanh(log(1 + u)) with u = e^x: tanh is (u^2 + 2 u) / (u^2 + 2 u + 2); above 0 both are divided
 * by u^2. */
WK_INLINE v16 v16_mish(v16 x) {
    const m16 is_below = v16_less(x, v16_zero());
    const v16 e = v16_exp_full(v16_negate(v16_abs(x))), two = v16_set(2), ee = v16_mul(e, e);
    const v16 top = v16_add(v16_select(is_below, ee, v16_set(1)), v16_mul(e, two));
    const v16 bottom = v16_add(top, v16_select(is_below, two, v16_mul(ee, two)));
    return v16_mul(x, v16_div(top, bottom));
}

/* y log|x| as a pair; zero and infinite where the power is 1, 0 or infinite. */
WK_INLINE v16_pair v16_pow_exponent(v16 x, v16 y, v16 y_low, bool has_special) {
    const v16 size = v16_abs(x);
    const v16_pair l = v16_log_pair(size, has_special);
    v16 log_size = l.high;
    if (has_special) {
        const v16 finite = v16_select(v16_less(size, v16_set(INFINITY)), l.high, size);
        log_size = v16_select(v16_equal(size, v16_zero()), v16_set(-INFINITY), finite);
    }
    const v16 product = v16_mul(y, log_size);
    const v16 rest = v16_fma_once(y, log_size, v16_negate(product));
    const v16 low = v16_add(rest, v16_fma(y, l.low, v16_mul(y_low, log_size)));
    const m16 is_bounded = v16_less(v16_abs(product), v16_set(110));
    const v16_pair all = {product, v16_select(is_bounded, low, v16_zero())};
    if (!has_special) return all;
    const m16 is_one = v16_equal(size, v16_set(1)); /* also to an infinite power */
    return (v16_pair){v16_select(is_one, v16_zero(), all.high), all.low};
}

/* x^(y + y_low), as pow of C has it for every x and y; y_low is 0 where y is whole. */
WK_INLINE v16 v16_pow(v16 x, v16 y, v16 y_low) {
    const v16 infinity = v16_set(INFINITY);
    const bool has_special =
        v16_any_special(x) || m16_any(m16_not(v16_less(v16_max(x, v16_abs(y)), infinity)));
    const v16_pair exponent = v16_pow_exponent(x, y, y_low, has_special);
    v16 p = v16_exp_pair(exponent.high, exponent.low);
    if (!has_special) return p;
    const v16 half = v16_mul(y, v16_set(0.5F));
    const m16 is_whole = v16_equal(v16_floor(y), y), is_even = v16_equal(v16_floor(half), half);
    /* Odd powers keep the sign; of a negative finite number only whole powers are defined. */
    const v16 odd = v16_select(is_even, v16_zero(), v16_set(1));
    const v16 is_odd = v16_select(is_whole, odd, v16_zero());
    p = v16_select(v16_less(v16_zero(), is_odd), v16_copy_sign(p, x), p);
    const v16 undefined = v16_select(is_whole, p, v16_set(NAN));
    const v16 of_negative = v16_select(v16_less(v16_negate(infinity), x), undefined, p);
    p = v16_select(v16_less(x, v16_zero()), of_negative, p);
    p = v16_select(v16_equal(y, v16_zero()), v16_set(1), p);
    return v16_select(v16_equal(x, v16_set(1)), v16_set(1), p);
}

#endif
