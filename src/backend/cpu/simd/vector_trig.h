/* simd/vector_trig.h: sine and cosine, and the error function. */
#ifndef WK_SIMD_VECTOR_TRIG_H
#define WK_SIMD_VECTOR_TRIG_H

#include "backend/cpu/simd/vector_math.h"

#include <math.h>

/* Beyond this the three parts of pi / 2 would not do; also NaN and infinities. */
static const float trig_bound = 65536;

/* sin(x + quarter pi / 2) for |x| up to trig_bound, quarter 0 or 1: x less the nearest multiple of
 * pi / 2, which is taken in three parts (Cody and Waite, 1980), then the Taylor polynomials of sine
 * and cosine for |r| <= pi / 4: the terms left out are less than 3e-9. */
WK_INLINE v16 v16_sine(v16 x, float quarter) {
    const v16 signed_n = v16_round(v16_mul(x, v16_set(0.636619772F)));
    /* Adding 0 turns -0 into 0: the parts of -0 are -0 then, as its sine is. */
    const v16 n = v16_add(signed_n, v16_zero());
    v16 r = v16_fma_once(n, v16_set(-1.57079637F), x);
    r = v16_fma_once(signed_n, v16_set(4.37113883e-8F), r);
    r = v16_fma_once(signed_n, v16_set(1.71512451e-15F), r);
    const v16 z = v16_mul(r, r);
    v16 sine = v16_set(1.0F / 362880);
    sine = v16_fma(sine, z, v16_set(-1.0F / 5040));
    sine = v16_fma(sine, z, v16_set(1.0F / 120));
    sine = v16_fma(sine, z, v16_set(-1.0F / 6));
    sine = v16_mul(r, v16_fma(sine, z, v16_set(1)));
    v16 cosine = v16_set(-1.0F / 3628800);
    cosine = v16_fma(cosine, z, v16_set(1.0F / 40320));
    cosine = v16_fma(cosine, z, v16_set(-1.0F / 720));
    cosine = v16_fma(cosine, z, v16_set(1.0F / 24));
    cosine = v16_fma(cosine, z, v16_set(-0.5F));
    cosine = v16_fma(cosine, z, v16_set(1));
    /* Of the quarter's number, modulo 4, the lowest bit chooses and the other one negates. */
    const v16 number = v16_add(n, v16_set(quarter)), half = v16_mul(number, v16_set(0.5F));
    const v16 pairs = v16_floor(half), fours = v16_floor(v16_mul(pairs, v16_set(0.5F)));
    const v16 value = v16_select(v16_equal(pairs, half), sine, cosine);
    const m16 is_even = v16_equal(v16_add(fours, fours), pairs);
    return v16_select(is_even, value, v16_negate(value));
}

/* With numbers beyond the bound: the C library's, in float64. */
static v16 sine_of_large(v16 x, bool is_cosine) {
    float lanes[16];
    v16_store(lanes, x);
    for (int i = 0; i < 16; i++) {
        const double lane = (double)lanes[i];
        lanes[i] = (float)(is_cosine ? cos(lane) : sin(lane));
    }
    return v16_load(lanes);
}

WK_INLINE v16 v16_sine_full(v16 x, bool is_cosine) {
    const m16 is_near = v16_less_equal(v16_abs(x), v16_set(trig_bound));
    const v16 value = v16_sine(x, is_cosine ? 1 : 0);
    if (!m16_any(m16_not(is_near))) return value;
    return v16_select(is_near, value, sine_of_large(x, is_cosine));
}

/* erfc(z) / gauss for z >= 0, gauss = e^-z^2: t P(t), t = 2 / (2 + z). P is fitted to 6.5e-9 of
 * itself (Remez exchange). */
WK_INLINE v16 v16_erfc_factor(v16 z) {
    const v16 t = v16_div(v16_set(2), v16_add(z, v16_set(2)));
    v16 p = v16_set(0.0436463525739F);
    p = v16_fma(p, t, v16_set(-0.236654300501F));
    p = v16_fma(p, t, v16_set(0.496816290009F));
    p = v16_fma(p, t, v16_set(-0.457047844589F));
    p = v16_fma(p, t, v16_set(0.131950899213F));
    p = v16_fma(p, t, v16_set(-0.0579082670272F));
    p = v16_fma(p, t, v16_set(0.0925423518669F));
    p = v16_fma(p, t, v16_set(0.175635698575F));
    p = v16_fma(p, t, v16_set(0.246824900434F));
    p = v16_fma(p, t, v16_set(0.282099329515F));
    p = v16_fma(p, t, v16_set(0.282094596358F));
    return v16_mul(t, p);
}

/* Up to 1 by x P(x^2), fitted to 1.3e-9 of itself (Remez exchange); above, 1 - erfc. */
WK_INLINE v16 v16_erf(v16 x) {
    const v16 size = v16_abs(x), square = v16_mul(x, x);
    v16 p = v16_set(7.85386063158e-5F);
    p = v16_fma(p, square, v16_set(-0.000801019365851F));
    p = v16_fma(p, square, v16_set(0.00518832772938F));
    p = v16_fma(p, square, v16_set(-0.0268538119903F));
    p = v16_fma(p, square, v16_set(0.112835851512F));
    p = v16_fma(p, square, v16_set(-0.376126258247F));
    p = v16_fma(p, square, v16_set(1.12837916573F));
    const v16 bounded = v16_min(v16_set(9), size); /* NaN stays */
    const v16 gauss = v16_exp(v16_negate(v16_mul(bounded, bounded)));
    const v16 far = v16_sub(v16_set(1), v16_mul(gauss, v16_erfc_factor(bounded)));
    return v16_select(v16_less(size, v16_set(1)), v16_mul(x, p), v16_copy_sign(far, x));
}

/* x / 2 erfc(-x / sqrt 2). The exponent x^2 / 2 as a pair, since below 0 its error is the result's.
 */
WK_INLINE_FOR_TENSORS v16 v16_gelu_erf(v16 x) {
    const v16 size = v16_min(v16_set(15), v16_abs(x)); /* NaN stays */
    const v16 half = v16_mul(size, v16_set(0.5F)), high = v16_mul(half, size);
    const v16 low = v16_fma_once(half, size, v16_negate(high));
    const v16 gauss = v16_exp_pair(v16_negate(high), v16_negate(low));
    const v16 z = v16_mul(size, v16_set(0.707106781F));
    const v16 tail = v16_mul(v16_set(0.5F), v16_mul(gauss, v16_erfc_factor(z)));
    return v16_mul(x, v16_by_sign(x, v16_sub(v16_set(1), tail), tail));
}

#endif
