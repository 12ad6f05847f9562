/* Mathematics of web/libc within the bounds that its math.h states, beside the system's in long
 * double; what is exact there is the same. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "random_bits.h"

double web_acos(double x);
double web_acosh(double x);
double web_asin(double x);
double web_asinh(double x);
double web_atan(double x);
double web_atan2(double y, double x);
double web_atanh(double x);
double web_cos(double x);
double web_cosh(double x);
double web_erf(double x);
double web_erfc(double x);
double web_exp(double x);
double web_exp2(double x);
double web_expm1(double x);
double web_fmax(double a, double b);
double web_fmin(double a, double b);
double web_fmod(double x, double y);
double web_frexp(double x, int *exponent);
double web_hypot(double x, double y);
double web_ldexp(double x, int exponent);
double web_log(double x);
double web_log10(double x);
double web_log1p(double x);
double web_log2(double x);
double web_nextafter(double x, double to);
double web_pow(double x, double y);
double web_round(double x);
double web_sin(double x);
double web_sinh(double x);
double web_tan(double x);
double web_tanh(double x);
float web_expf(float x);
float web_fmaxf(float a, float b);
float web_fminf(float a, float b);
float web_ldexpf(float x, int exponent);
float web_logf(float x);
float web_nextafterf(float x, float to);
float web_powf(float x, float y);
float web_roundf(float x);
int web_ilogbf(float x);

enum { N_SAMPLES = 100000 };

static double random_between(double from, double to) {
    return from + (to - from) * (double)(random_bits() >> 11) * 0x1p-53;
}

/* Any double, infinities and NaN (never a signaling one) among them. */
static double random_double(void) {
    const uint64_t bits = random_bits();
    double x;
    memcpy(&x, &bits, sizeof x);
    return isnan(x) ? (double)NAN : x;
}

static float random_float(void) {
    const uint32_t bits = (uint32_t)(random_bits() >> 32);
    float x;
    memcpy(&x, &bits, sizeof x);
    return isnan(x) ? NAN : x;
}

static const double special[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    1.5,
    -1.5,
    2.5,
    1 + 0x1p-52,
    INFINITY,
    -INFINITY,
    NAN,
    1e300,
    -1e300,
    DBL_MAX,
    -DBL_MAX,
    5e-324,
    DBL_MIN,
    0x1p53,
    -0x1p70,
    0x1p53 + 2.0,
    4503599627370495.5,
    0.49999999999999994,
};
enum { N_SPECIAL = sizeof special / sizeof *special };

/* Also where a zero's sign or NaN is all there is to compare. */
static bool is_same(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

/* How far a result is from the true one, in units of the last place. */
static double error_in_ulps(double got, long double true_value) {
    const double rounded = (double)true_value;
    if (!isfinite(got) || !isfinite(rounded) || (got == 0 && rounded == 0))
        return is_same(got, rounded) ? 0 : INFINITY;
    const double size = fabs(rounded);
    const double ulp = size < DBL_MAX ? nextafter(size, INFINITY) - size : 0x1p971;
    return (double)(fabsl((long double)got - true_value) / ulp);
}

static void skip_without_long_double(void) {
    if (LDBL_MANT_DIG >= 64) return;
    print_message("long double is no more exact than double here\n");
    skip();
}

/* --- Functions of one number --- */

typedef struct function {
    const char *name;
    double (*ours)(double);
    long double (*theirs)(long double);
    double bound;        /* ulps */
    double ranges[4][2]; /* beside any double and the special ones; {0, 0}: none */
} function;

static const function functions[] = {
    {"exp", web_exp, expl, 1.5, {{-750, 750}, {-1, 1}, {-1e-3, 1e-3}}},
    {"expm1", web_expm1, expm1l, 1.5, {{-750, 750}, {-2, 2}, {-1e-3, 1e-3}}},
    {"log", web_log, logl, 1.5, {{0, 1e300}, {0.5, 1.5}, {1 - 1e-3, 1 + 1e-3}, {0, DBL_MIN}}},
    {"log1p", web_log1p, log1pl, 1.5, {{-1, 1}, {-1e-3, 1e-3}, {0, 1e300}}},
    {"sin", web_sin, sinl, 1.5, {{-5, 5}, {-5e5, 5e5}, {-5e17, 5e17}}},
    {"cos", web_cos, cosl, 1.5, {{-5, 5}, {-5e5, 5e5}, {-5e17, 5e17}}},
    {"tanh", web_tanh, tanhl, 2.5, {{-1, 1}, {-25, 25}, {-1e-3, 1e-3}}},
    {"erf", web_erf, erfl, 2.5, {{-1, 1}, {-7, 7}}},
    {"erfc", web_erfc, erfcl, 5, {{-1.5, 1.5}, {0, 27}}},
    {"exp2", web_exp2, exp2l, 1.5, {{-1080, 1030}, {-1, 1}}},
    {"log2", web_log2, log2l, 1.5, {{0, 1e300}, {0.5, 1.5}, {0, DBL_MIN}}},
    {"log10", web_log10, log10l, 1.5, {{0, 1e300}, {0.5, 1.5}, {0, DBL_MIN}}},
    {"tan", web_tan, tanl, 5, {{-5, 5}, {-5e5, 5e5}, {-5e17, 5e17}}},
    {"asin", web_asin, asinl, 5, {{-1, 1}, {-1e-3, 1e-3}, {1 - 1e-6, 1}}},
    {"acos", web_acos, acosl, 5, {{-1, 1}, {-1e-3, 1e-3}, {1 - 1e-6, 1}}},
    {"atan", web_atan, atanl, 5, {{-1, 1}, {-1e-3, 1e-3}, {-50, 50}}},
    {"sinh", web_sinh, sinhl, 5, {{-1, 1}, {-25, 25}, {-715, 715}}},
    {"cosh", web_cosh, coshl, 5, {{-1, 1}, {-25, 25}, {-715, 715}}},
    {"asinh", web_asinh, asinhl, 5, {{-1, 1}, {-1e-3, 1e-3}, {-1e10, 1e10}}},
    {"acosh", web_acosh, acoshl, 5, {{1, 2}, {1, 1 + 1e-6}, {1, 1e10}}},
    {"atanh", web_atanh, atanhl, 5, {{-1, 1}, {-1e-3, 1e-3}, {1 - 1e-6, 1}}},
};

static void check(const function *f, double x) {
    const double got = f->ours(x);
    const long double want = f->theirs((long double)x);
    const double error = error_in_ulps(got, want);
    if (!(error <= f->bound))
        fail_msg("%s(%a) is %a, not %La: %g ulps", f->name, x, got, want, error);
}

static void test_functions_are_within_their_bounds(void **state) {
    (void)state;
    skip_without_long_double();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *const f = &functions[i];
        for (int s = 0; s < N_SPECIAL; s++) check(f, special[s]);
        for (int n = 0; n < N_SAMPLES; n++) check(f, random_double());
        for (int r = 0; r < 4 && f->ranges[r][0] != f->ranges[r][1]; r++)
            for (int n = 0; n < N_SAMPLES; n++)
                check(f, random_between(f->ranges[r][0], f->ranges[r][1]));
    }
}

/* --- pow --- */

static void check_pow(double x, double y) {
    const double got = web_pow(x, y);
    const double error = error_in_ulps(got, powl((long double)x, (long double)y));
    if (!(error <= 1.5)) fail_msg("pow(%a, %a) is %a: %g ulps", x, y, got, error);
}

static void test_pow_is_within_its_bound(void **state) {
    (void)state;
    skip_without_long_double();
    for (int i = 0; i < N_SAMPLES; i++) {
        check_pow(exp(random_between(-50, 50)), random_between(-15, 15));
        check_pow(exp(random_between(-0.005, 0.005)), random_double());
        check_pow(random_double(), random_double());
        check_pow(random_between(-9, 9), (double)(int)random_between(-300, 300));
    }
    for (int i = 0; i < N_SPECIAL; i++)
        for (int j = 0; j < N_SPECIAL; j++) check_pow(special[i], special[j]);
}

/* --- Two numbers --- */

static void check_pair(double x, double y) {
    const double angle = web_atan2(x, y), side = web_hypot(x, y);
    const long double wide_x = (long double)x, wide_y = (long double)y;
    const double errors[] = {error_in_ulps(angle, atan2l(wide_x, wide_y)),
                             error_in_ulps(side, hypotl(wide_x, wide_y))};
    if (!(errors[0] <= 5)) fail_msg("atan2(%a, %a) is %a: %g ulps", x, y, angle, errors[0]);
    if (!(errors[1] <= 5)) fail_msg("hypot(%a, %a) is %a: %g ulps", x, y, side, errors[1]);
}

static void test_functions_of_two_are_within_their_bounds(void **state) {
    (void)state;
    skip_without_long_double();
    for (int i = 0; i < N_SAMPLES; i++) {
        check_pair(random_between(-9, 9), random_between(-9, 9));
        check_pair(random_double(), random_double());
    }
    for (int i = 0; i < N_SPECIAL; i++)
        for (int j = 0; j < N_SPECIAL; j++) check_pair(special[i], special[j]);
}

/* --- What is exact --- */

static void check_exact(double x, double y, int exponent) {
    if (!is_same(web_fmod(x, y), fmod(x, y))) fail_msg("fmod(%a, %a)", x, y);
    if (!is_same(web_nextafter(x, y), nextafter(x, y))) fail_msg("nextafter(%a, %a)", x, y);
    if (!is_same(web_round(x), round(x))) fail_msg("round(%a)", x);
    if (!is_same(web_ldexp(x, exponent), ldexp(x, exponent)))
        fail_msg("ldexp(%a, %d)", x, exponent);
    int got_exponent = 0, true_exponent = 0;
    const double got = web_frexp(x, &got_exponent), significand = frexp(x, &true_exponent);
    if (!is_same(got, significand) || (isfinite(x) && got_exponent != true_exponent))
        fail_msg("frexp(%a)", x);
    /* Which zero is free where both are. */
    if (x == 0 && y == 0) return;
    if (!is_same(web_fmin(x, y), fmin(x, y))) fail_msg("fmin(%a, %a)", x, y);
    if (!is_same(web_fmax(x, y), fmax(x, y))) fail_msg("fmax(%a, %a)", x, y);
}

static void check_exact_float(float x, float y, int exponent) {
    if (!is_same((double)web_nextafterf(x, y), (double)nextafterf(x, y)))
        fail_msg("nextafterf(%a, %a)", (double)x, (double)y);
    if (!is_same((double)web_roundf(x), (double)roundf(x))) fail_msg("roundf(%a)", (double)x);
    if (!is_same((double)web_ldexpf(x, exponent), (double)ldexpf(x, exponent)))
        fail_msg("ldexpf(%a, %d)", (double)x, exponent);
    if (x != 0 && isfinite(x) && web_ilogbf(x) != ilogbf(x)) fail_msg("ilogbf(%a)", (double)x);
    if (x == 0 && y == 0) return;
    if (!is_same((double)web_fminf(x, y), (double)fminf(x, y)) ||
        !is_same((double)web_fmaxf(x, y), (double)fmaxf(x, y)))
        fail_msg("fminf or fmaxf of %a, %a", (double)x, (double)y);
}

static void test_what_is_exact(void **state) {
    (void)state;
    for (int i = 0; i < N_SPECIAL; i++) {
        for (int j = 0; j < N_SPECIAL; j++) {
            check_exact(special[i], special[j], 3 * j - 40);
            check_exact_float((float)special[i], (float)special[j], 3 * j - 40);
        }
    }
    for (int i = 0; i < N_SAMPLES; i++) {
        const double x = random_double();
        const int exponent = (int)(random_bits() % 5000) - 2500;
        check_exact(x, random_double(), exponent);
        check_exact(x, x * exp(random_between(-10, 10)), exponent);
        check_exact(random_between(-1000, 1000), random_between(-1, 1), exponent);
        check_exact_float(random_float(), random_float(), exponent / 8);
    }
}

/* Rounded from double: the nearest float, except for a case in a million that lies half-way. */
static void test_floats_are_rounded_from_double(void **state) {
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        const float x = random_float(), y = (float)random_between(-20, 20);
        assert_true(is_same((double)web_expf(y), (double)(float)web_exp((double)y)));
        assert_true(is_same((double)web_logf(x), (double)(float)web_log((double)x)));
        assert_true(is_same((double)web_powf(x, y), (double)(float)web_pow((double)x, (double)y)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_are_within_their_bounds),
        cmocka_unit_test(test_pow_is_within_its_bound),
        cmocka_unit_test(test_functions_of_two_are_within_their_bounds),
        cmocka_unit_test(test_what_is_exact),
        cmocka_unit_test(test_floats_are_rounded_from_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
