/* simd/vector_inverse.h: circular and hyperbolic functions, their inverses, and the exponentials
 * and logarithms of other bases; remainders. */
#ifndef WK_SIMD_VECTOR_INVERSE_H
#define WK_SIMD_VECTOR_INVERSE_H

#include "backend/cpu/ref/ref.h"
#include "backend/cpu/simd/vector_log.h"
#include "backend/cpu/simd/vector_trig.h"

static const float half_pi = 1.57079637F, whole_pi = 3.14159274F, ln_2 = 0.693147182F;

/* --- Circular functions --- */

/* x + x^3 P(x^2) for |x| <= 1/2, P fitted to 2e-8 of itself. */
WK_INLINE v16 v16_asin_near(v16 x) {
    const v16 z = v16_mul(x, x);
    v16 p = v16_set(0.0337995961F);
    p = v16_fma(p, z, v16_set(0.0170817338F));
    p = v16_fma(p, z, v16_set(0.031115301F));
    p = v16_fma(p, z, v16_set(0.04459811F));
    p = v16_fma(p, z, v16_set(0.0750009865F));
    p = v16_fma(p, z, v16_set(0.166666657F));
    return v16_fma(v16_mul(x, z), p, x);
}

/* asin(sqrt((1 - size) / 2)), of which there are pi / 2 - asin(size) in two. */
WK_INLINE v16 v16_asin_rest(v16 size) {
    const v16 left = v16_mul(v16_sub(v16_set(1), size), v16_set(0.5F));
    return v16_asin_near(v16_sqrt(left)); /* NaN above 1 */
}

WK_INLINE v16 v16_asin(v16 x) {
    const v16 size = v16_abs(x), rest = v16_asin_rest(size);
    const v16 far = v16_sub(v16_set(half_pi), v16_add(rest, rest));
    const v16 value = v16_select(v16_less(v16_set(0.5F), size), far, v16_asin_near(size));
    return v16_copy_sign(value, x);
}

WK_INLINE v16 v16_acos(v16 x) {
    const v16 size = v16_abs(x), rest = v16_asin_rest(size), twice = v16_add(rest, rest);
    const v16 far = v16_select(v16_less(x, v16_zero()), v16_sub(v16_set(whole_pi), twice), twice);
    const v16 near = v16_sub(v16_set(half_pi), v16_asin_near(x));
    return v16_select(v16_less(v16_set(0.5F), size), far, near);
}

/* The angle of top / bottom, both 0 or more: of the quotient, or from tan(pi / 8) up to tan(3 pi /
 * 8) of what it lacks of pi / 4, or above of what it lacks of pi / 2. The polynomial of the square
 * up to tan(pi / 8)^2 is fitted to 5e-8 of itself. */
WK_INLINE v16 v16_angle(v16 top, v16 bottom) {
    const m16 is_above = v16_less(v16_mul(bottom, v16_set(0.414213562F)), top);
    const m16 is_far = v16_less(v16_mul(bottom, v16_set(2.41421356F)), top);
    const v16 middle = v16_select(is_above, v16_sub(top, bottom), top);
    const v16 below = v16_select(is_above, v16_add(top, bottom), bottom);
    const v16 t =
        v16_div(v16_select(is_far, v16_negate(bottom), middle), v16_select(is_far, top, below));
    const v16 z = v16_mul(t, t);
    v16 p = v16_set(-0.0645619407F);
    p = v16_fma(p, z, v16_set(0.107452132F));
    p = v16_fma(p, z, v16_set(-0.142641172F));
    p = v16_fma(p, z, v16_set(0.199995458F));
    p = v16_fma(p, z, v16_set(-0.333333313F));
    const v16 angle = v16_fma(v16_mul(t, z), p, t);
    const v16 first = v16_select(is_above, v16_set(0.5F * half_pi), v16_zero());
    return v16_add(v16_select(is_far, v16_set(half_pi), first), angle);
}

WK_INLINE v16 v16_atan(v16 x) { return v16_copy_sign(v16_angle(v16_abs(x), v16_set(1)), x); }

/* The ratio is taken of numbers that are no more than 1, so that it is neither 0 / 0 nor too large;
 * a zero x counts as tiny, since only its sign matters. */
WK_INLINE v16 v16_atan2(v16 y, v16 x) {
    const v16 high = v16_abs(y), wide = v16_abs(x);
    const m16 is_nan = m16_not(v16_equal(v16_add(high, wide), v16_add(high, wide)));
    const m16 is_steep = v16_less(wide, high);
    const v16 large = v16_select(is_steep, high, wide), small = v16_select(is_steep, wide, high);
    const v16 ratio = v16_div(small, large);
    const v16 bounded = v16_select(v16_less(large, v16_set(INFINITY)), ratio,
                                   v16_select(v16_equal(small, large), v16_set(1), v16_zero()));
    const v16 t = v16_select(v16_equal(large, v16_zero()), v16_zero(), bounded);
    v16 angle = v16_angle(t, v16_set(1));
    angle = v16_select(is_steep, v16_sub(v16_set(half_pi), angle), angle);
    const v16 left = v16_sub(v16_set(whole_pi), angle);
    angle = v16_copy_sign(v16_by_sign(x, angle, left), y);
    return v16_select(is_nan, v16_set(NAN), angle);
}

WK_INLINE v16 v16_tan(v16 x) {
    const v16 cosine = v16_sine_full(x, true);
    return v16_div(v16_sine_full(x, false), cosine);
}

/* --- Logarithms --- */

/* log(1 + x) for every x. */
WK_INLINE v16 v16_log1p(v16 x) {
    const v16 sum = v16_add(x, v16_set(1)), lost = v16_sub(x, v16_sub(sum, v16_set(1)));
    v16 n;
    const v16 f = v16_sub(v16_split(sum, &n), v16_set(1));
    const v16 value = v16_log_of_parts(n, f, v16_div(lost, sum));
    const m16 is_inside = v16_less(v16_zero(), sum);
    const v16 bounded = v16_select(v16_less(x, v16_set(INFINITY)), value, x);
    const v16 other = v16_select(v16_equal(sum, v16_zero()), v16_set(-INFINITY), v16_set(NAN));
    const m16 is_tiny = v16_less(v16_abs(x), v16_set(0x1p-24F)); /* the sign of 0 stays */
    return v16_select(is_tiny, x, v16_select(is_inside, bounded, other));
}

/* log x times c + c_low, whose product is exact for whole powers of the base. */
WK_INLINE v16 v16_log_of_base(v16 x, float c, float c_low) {
    const bool has_special = v16_any_special(x);
    const v16_pair l = v16_log_pair(x, has_special);
    const v16 high = v16_mul(l.high, v16_set(c));
    const v16 rest = v16_fma_once(l.high, v16_set(c), v16_negate(high));
    const v16 more = v16_fma(l.low, v16_set(c), v16_mul(l.high, v16_set(c_low)));
    const v16 value = v16_add(high, v16_add(rest, more));
    const v16 bounded = v16_select(v16_less(x, v16_set(INFINITY)), value, x);
    if (!has_special) return bounded;
    const m16 is_inside = v16_less(v16_zero(), x);
    const v16 other = v16_select(v16_equal(x, v16_zero()), v16_set(-INFINITY), v16_set(NAN));
    return v16_select(is_inside, bounded, other);
}

WK_INLINE v16 v16_log2(v16 x) { return v16_log_of_base(x, 1.44269502F, 1.92596299e-08F); }
WK_INLINE v16 v16_log10(v16 x) { return v16_log_of_base(x, 0.434294492F, -1.01030501e-08F); }

/* Above 80 only whether it is finite matters to the low part. */
WK_INLINE v16 v16_exp2(v16 x) {
    const v16 high = v16_mul(x, v16_set(ln_2));
    const v16 low =
        v16_fma(x, v16_set(-1.90465432e-09F), v16_fma_once(x, v16_set(ln_2), v16_negate(high)));
    const m16 is_bounded = v16_less(v16_abs(x), v16_set(160));
    return v16_exp_pair(high, v16_select(is_bounded, low, v16_zero()));
}

/* log(e^a + e^b); two infinities of one sign have no difference. */
WK_INLINE v16 v16_logaddexp(v16 a, v16 b) {
    const v16 less = v16_exp(v16_negate(v16_abs(v16_sub(a, b))));
    const v16 larger = v16_select(v16_less(a, b), b, a);
    const v16 value = v16_add(larger, v16_log_plus_1(less)); /* NaN stays: of b in less */
    return v16_select(v16_equal(a, b), v16_add(a, v16_set(ln_2)), value);
}

/* --- Hyperbolic functions --- */

/* e^size / 2 in two factors, for it overflows later than e^size. */
WK_INLINE v16 v16_half_exp(v16 size) {
    const v16 root = v16_exp_full(v16_mul(size, v16_set(0.5F)));
    return v16_mul(v16_mul(root, v16_set(0.5F)), root);
}

WK_INLINE v16 v16_sinh(v16 x) {
    const v16 size = v16_abs(x), bounded = v16_min(v16_set(20), size); /* NaN stays */
    const v16 e = v16_exp_minus_1(bounded);
    const v16 near = v16_add(e, v16_div(e, v16_add(e, v16_set(1))));
    const m16 is_far = v16_less(v16_set(20), size);
    v16 value = v16_mul(near, v16_set(0.5F));
    if (m16_any(is_far)) value = v16_select(is_far, v16_half_exp(size), value);
    return v16_copy_sign(value, x);
}

WK_INLINE v16 v16_cosh(v16 x) {
    const v16 half = v16_half_exp(v16_abs(x));
    return v16_add(half, v16_div(v16_set(0.25F), half));
}

/* Far out it is log(2 size). */
WK_INLINE v16 v16_asinh(v16 x) {
    const v16 size = v16_abs(x), square = v16_mul(size, size);
    const v16 root = v16_sqrt(v16_add(square, v16_set(1)));
    const v16 over = v16_add(size, v16_div(square, v16_add(root, v16_set(1))));
    const m16 is_far = v16_less(v16_set(8192), size);
    const v16 value = v16_log1p(v16_select(is_far, v16_sub(size, v16_set(1)), over));
    return v16_copy_sign(v16_add(value, v16_select(is_far, v16_set(ln_2), v16_zero())), x);
}

WK_INLINE v16 v16_acosh(v16 x) {
    const v16 over = v16_sub(x, v16_set(1));
    const v16 root = v16_sqrt(v16_mul(over, v16_add(over, v16_set(2))));
    const m16 is_far = v16_less(v16_set(8192), x);
    const v16 value = v16_log1p(v16_select(is_far, over, v16_add(over, root)));
    const v16 all = v16_add(value, v16_select(is_far, v16_set(ln_2), v16_zero()));
    return v16_select(v16_less(x, v16_set(1)), v16_set(NAN), all);
}

WK_INLINE v16 v16_atanh(v16 x) {
    const v16 size = v16_abs(x), rest = v16_sub(v16_set(1), size);
    const v16 value = v16_log1p(v16_div(v16_add(size, size), rest));
    const v16 inside = v16_select(v16_less(v16_set(1), size), v16_set(NAN), value);
    return v16_copy_sign(v16_mul(inside, v16_set(0.5F)), x);
}

WK_INLINE v16 v16_hypot(v16 a, v16 b) {
    const v16 x = v16_abs(a), y = v16_abs(b);
    const m16 is_steep = v16_less(x, y);
    const v16 large = v16_select(is_steep, y, x), small = v16_select(is_steep, x, y);
    const v16 t = v16_div(small, v16_select(v16_equal(large, v16_zero()), v16_set(1), large));
    const v16 value = v16_mul(large, v16_sqrt(v16_fma(t, t, v16_set(1))));
    const v16 infinity = v16_set(INFINITY); /* also next to NaN */
    const v16 of_y = v16_select(v16_equal(y, infinity), infinity, value);
    return v16_select(v16_equal(x, infinity), infinity, of_y);
}

/* The float next to a toward b. */
WK_INLINE v16 v16_next_after(v16 a, v16 b) {
    const m16 is_smaller = v16_less(v16_by_sign(a, b, v16_negate(b)), v16_abs(a));
    const v16 least = v16_copy_sign(v16_set(0x1p-149F), b);
    const v16 next = v16_select(v16_equal(a, v16_zero()), least, v16_next(a, is_smaller));
    const v16 moved = v16_select(v16_equal(a, b), b, next);
    const v16 of_b = v16_select(v16_equal(b, b), moved, b); /* NaN where either is */
    return v16_select(v16_equal(a, a), of_b, a);
}

/* --- Remainders --- */

/* How the quotient of a remainder is rounded. */
typedef enum quotient_kind { QUOTIENT_DOWN, QUOTIENT_TO_ZERO } quotient_kind;

/* The quotient, whole, and a less b times it, which float32 holds while the quotient is below 2^22.
 * The estimate may have been rounded up to a whole number, which the sign of the rest shows. */
WK_INLINE v16 v16_divide_whole(v16 a, v16 b, const quotient_kind kind, v16 *rest) {
    const v16 estimate = v16_div(a, b), one = v16_copy_sign(v16_set(1), estimate);
    const v16 toward_zero = v16_copy_sign(v16_floor(v16_abs(estimate)), estimate);
    const v16 q = kind == QUOTIENT_DOWN ? v16_floor(estimate) : toward_zero;
    const v16 r = v16_fma_once(v16_negate(q), b, a);
    const v16 like = kind == QUOTIENT_DOWN ? b : a, step = kind == QUOTIENT_DOWN ? v16_set(1) : one;
    const m16 is_over = v16_less(v16_by_sign(like, r, v16_negate(r)), v16_zero());
    const v16 over = v16_select(is_over, step, v16_zero());
    const v16 left = v16_fma_once(over, b, r);
    *rest = v16_select(v16_equal(left, v16_zero()), v16_copy_sign(v16_zero(), like), left);
    return v16_sub(q, over);
}

/* Whether the quotient is small enough, and nothing under- or overflows. */
WK_INLINE m16 v16_divides(v16 a, v16 b) {
    const v16 size = v16_abs(b), infinity = v16_set(INFINITY);
    const v16 above =
        v16_select(v16_less(v16_set(0x1p-100F), size), v16_abs(v16_div(a, b)), infinity);
    return v16_less(v16_select(v16_less(size, v16_set(0x1p100F)), above, infinity),
                    v16_set(0x1p22F));
}

typedef double (*two_fn)(double a, double b);

/* One by one, in float64. */
static v16 of_two_by_one(v16 a, v16 b, two_fn fn) {
    float x[16], y[16];
    v16_store(x, a);
    v16_store(y, b);
    for (int i = 0; i < 16; i++) x[i] = (float)fn((double)x[i], (double)y[i]);
    return v16_load(x);
}

WK_INLINE v16 v16_where_divides(v16 a, v16 b, v16 value, two_fn fn) {
    const m16 divides = v16_divides(a, b);
    if (!m16_any(m16_not(divides))) return value;
    return v16_select(divides, value, of_two_by_one(a, b, fn));
}

WK_INLINE v16 v16_remainder(v16 a, v16 b) {
    v16 rest;
    (void)v16_divide_whole(a, b, QUOTIENT_DOWN, &rest);
    return v16_where_divides(a, b, rest, wk_ref_remainder);
}

WK_INLINE v16 v16_fmod(v16 a, v16 b) {
    v16 rest;
    (void)v16_divide_whole(a, b, QUOTIENT_TO_ZERO, &rest);
    return v16_where_divides(a, b, rest, fmod);
}

WK_INLINE v16 v16_floor_divide(v16 a, v16 b) {
    v16 rest;
    const v16 quotient = v16_divide_whole(a, b, QUOTIENT_DOWN, &rest);
    return v16_where_divides(a, b, quotient, wk_ref_floor_divide);
}

#endif
