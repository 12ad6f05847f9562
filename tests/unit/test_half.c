/* 16-bit floats against a slow formulation of rounding to nearest even. */
#include "core/half.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* The 16-bit format with n fraction bits and least exponent e_min; values come from ldexp alone. */
typedef struct format {
    int fraction_bits, e_min;
    uint16_t infinity;
} format;

static const format f16 = {10, -14, 0x7C00};
static const format bf16 = {7, -126, 0x7F80};

static double decode(format f, uint16_t code) {
    const int exponent = code >> f.fraction_bits;
    const int fraction = code & ((1 << f.fraction_bits) - 1);
    const int whole = exponent ? fraction + (1 << f.fraction_bits) : fraction;
    return ldexp(whole, (exponent ? exponent - 1 : 0) + f.e_min - f.fraction_bits);
}

/* Codes of positive values rise with them, so the nearest is found by bisection; infinity stands
 * where the next larger value would be. */
static uint16_t encode(format f, double d) {
    const double magnitude = fabs(d);
    const uint16_t sign = signbit(d) ? 0x8000 : 0;
    uint16_t low = 0, high = f.infinity; /* decode(low) <= magnitude < decode(high) */
    if (magnitude >= decode(f, high)) return (uint16_t)(sign | high);
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        if (decode(f, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double below = magnitude - decode(f, low), above = decode(f, high) - magnitude;
    const bool is_up = below > above || (below == above && low % 2 == 1);
    return (uint16_t)(sign | (is_up ? high : low));
}

static double f64_from_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static void test_all_codes(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0xFFFF; code++) {
        const uint16_t h = (uint16_t)code;
        const float from_f16 = wk_f16_to_f32(h), from_bf16 = wk_bf16_to_f32(h);
        const double sign = h & 0x8000 ? -1.0 : 1.0;
        if ((h & 0x7FFF) > f16.infinity) {
            assert_true(isnan(from_f16));
            assert_int_equal(wk_f32_to_f16(from_f16), h | 0x200);
            assert_int_equal(wk_f64_to_f16((double)from_f16), h | 0x200);
        } else {
            assert_int_equal(wk_f32_to_f16(from_f16), h);
            assert_int_equal(wk_f64_to_f16((double)from_f16), h);
            if ((h & 0x7FFF) == f16.infinity)
                assert_true(isinf(from_f16));
            else
                assert_true((double)from_f16 == sign * decode(f16, h & 0x7FFF));
            assert_int_equal(signbit(from_f16) != 0, h >> 15);
        }
        if ((h & 0x7FFF) > bf16.infinity) {
            assert_true(isnan(from_bf16));
            assert_int_equal(wk_f32_to_bf16(from_bf16), h | 0x40);
            assert_int_equal(wk_f64_to_bf16((double)from_bf16), h | 0x40);
        } else {
            assert_int_equal(wk_f32_to_bf16(from_bf16), h);
            assert_int_equal(wk_f64_to_bf16((double)from_bf16), h);
        }
    }
}

static void check_f32(uint32_t bits) {
    const float f = wk_f32_from_bits(bits);
    if (isnan(f)) return;
    assert_int_equal(wk_f32_to_f16(f), encode(f16, (double)f));
    assert_int_equal(wk_f32_to_bf16(f), encode(bf16, (double)f));
}

static void check_f64(double d) {
    if (isnan(d)) return;
    assert_int_equal(wk_f64_to_f16(d), encode(f16, d));
    assert_int_equal(wk_f64_to_bf16(d), encode(bf16, d));
}

/* Every midpoint between two codes, and its neighbours in float and in double: a double that lies
 * closer to a midpoint than a float can is where rounding twice goes wrong. */
static void check_midpoints(format f) {
    for (uint16_t code = 0; code < f.infinity; code++) {
        const double middle = (decode(f, code) + decode(f, (uint16_t)(code + 1))) / 2;
        const float as_float = (float)middle;
        for (int sign = -1; sign <= 1; sign += 2) {
            check_f32(wk_f32_bits((float)sign * as_float));
            check_f32(wk_f32_bits((float)sign * nextafterf(as_float, 0.0F)));
            check_f32(wk_f32_bits((float)sign * nextafterf(as_float, INFINITY)));
            check_f64(sign * middle);
            check_f64(sign * nextafter(middle, 0.0));
            check_f64(sign * nextafter(middle, (double)INFINITY));
            check_f64(sign * middle * (1 + 0x1p-30));
        }
    }
}

static void test_midpoints(void **state) {
    (void)state;
    check_midpoints(f16);
    check_midpoints(bf16);
}

static void test_random(void **state) {
    (void)state;
    wk_rng rng = {.seed = 1};
    for (int i = 0; i < 200000; i++) {
        const uint32_t bits = wk_rng_u32(&rng);
        check_f32(bits);
        /* The same significand within the range of f16. */
        check_f32((bits & 0x807FFFFF) | (100 + (bits >> 23) % 45) << 23);
    }
    for (int i = 0; i < 200000; i++) {
        const uint64_t low = wk_rng_u32(&rng);
        const uint64_t bits = (uint64_t)wk_rng_u32(&rng) << 32 | low;
        check_f64(f64_from_bits(bits));
        check_f64(f64_from_bits((bits & 0x800FFFFFFFFFFFFF) | (995 + (bits >> 52) % 46) << 52));
    }
}

static void test_limits(void **state) {
    (void)state;
    assert_int_equal(wk_f32_to_f16(65504.0F), 0x7BFF);
    assert_int_equal(wk_f32_to_f16(nextafterf(65520.0F, 0.0F)), 0x7BFF);
    assert_int_equal(wk_f32_to_f16(65520.0F), 0x7C00);
    assert_int_equal(wk_f32_to_f16(-INFINITY), 0xFC00);
    assert_int_equal(wk_f32_to_f16(-0.0F), 0x8000);
    assert_int_equal(wk_f64_to_f16(DBL_MAX), 0x7C00);
    assert_int_equal(wk_f64_to_f16(-DBL_MIN), 0x8000);
    assert_int_equal(wk_f64_to_bf16(DBL_MAX), 0x7F80);
    assert_int_equal(wk_f32_to_bf16(FLT_MAX), 0x7F80);
    assert_int_equal(wk_f64_to_f16((double)NAN) & 0x7E00, 0x7E00);
    assert_int_equal(wk_f64_to_bf16(-(double)NAN) & 0x7FC0, 0x7FC0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_codes),
        cmocka_unit_test(test_midpoints),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
