/* Numbers about logits, against values worked out by hand. */
#include "sample/scores.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

static void assert_near(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-14 * (1 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* Logits are float32: log 1/2 and such carry its rounding. */
static void assert_nearly(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-7)) fail_msg("%.17g, expected %.17g", got, expected);
}

static void test_log_sum_exp(void **state) {
    (void)state;
    const float same[] = {2, 2, 2, 2}, far[] = {1000, 0}, deep[] = {-1000, -1000};
    assert_near(wk_log_sum_exp(same, 4), 2 + log(4));
    assert_near(wk_log_sum_exp(far, 2), 1000);
    assert_near(wk_log_sum_exp(deep, 2), -1000 + log(2));
    const float odd[] = {1, NAN, INFINITY, -INFINITY}, none[] = {NAN, INFINITY};
    assert_near(wk_log_sum_exp(odd, 4), 1);
    assert_true(!isfinite(wk_log_sum_exp(none, 2)));
}

static double kl_divergence(const float *p, const float *q, size_t n) {
    return wk_kl_divergence(p, wk_log_sum_exp(p, n), q, wk_log_sum_exp(q, n), n);
}

static void test_kl_divergence(void **state) {
    (void)state;
    /* p = (1/2, 1/2), q = (1/4, 3/4): log 2 / 2 + log(2/3) / 2; the other way round
     * log(1/2) / 4 + 3 log(3/2) / 4. A constant added to logits changes nothing. */
    const float p[] = {5, 5}, q[] = {0, (float)log(3)};
    assert_nearly(kl_divergence(p, q, 2), 0.5 * log(2) + 0.5 * log(2.0 / 3));
    assert_nearly(kl_divergence(q, p, 2), 0.25 * log(0.5) + 0.75 * log(1.5));
    assert_near(kl_divergence(q, q, 2), 0);
    const float sure[] = {0, -INFINITY};
    assert_near(kl_divergence(sure, p, 2), log(2));
    assert_true(kl_divergence(p, sure, 2) == INFINITY);
}

static void test_largest(void **state) {
    (void)state;
    const float logits[] = {-1, 3, NAN, 3, INFINITY};
    assert_int_equal(wk_largest(logits, 5), 1);
    assert_int_equal(wk_largest(logits, 1), 0);
}

static void test_moments(void **state) {
    (void)state;
    wk_moments m = {0};
    assert_near(wk_mean(&m), 0);
    assert_near(wk_standard_error(&m), 0);
    wk_moments_add(&m, 2);
    assert_near(wk_mean(&m), 2);
    assert_near(wk_standard_error(&m), 0);
    wk_moments_add(&m, 4);
    wk_moments_add(&m, 9); /* mean 5, variance (9 + 1 + 16) / 2 = 13 */
    assert_near(wk_mean(&m), 5);
    assert_near(wk_standard_error(&m), sqrt(13.0 / 3));
    wk_moments constant = {0};
    for (int i = 0; i < 10; i++) wk_moments_add(&constant, 0.1);
    assert_true(wk_standard_error(&constant) < 1e-8);
    wk_moments_add(&m, INFINITY);
    assert_true(wk_mean(&m) == INFINITY);
    assert_true(isnan(wk_standard_error(&m)));
}

static void test_quantile(void **state) {
    (void)state;
    double values[] = {4, 1, INFINITY, 2};
    wk_sort_doubles(values, 4);
    assert_near(values[0], 1);
    assert_near(values[2], 4);
    assert_near(wk_quantile(values, 4, 0), 1);
    assert_near(wk_quantile(values, 4, 0.5), 3);
    assert_near(wk_quantile(values, 4, 0.25), 1.75);
    assert_true(wk_quantile(values, 4, 1) == INFINITY);
    assert_near(wk_quantile(values, 1, 0.99), 1);
    const double endless[] = {INFINITY, INFINITY};
    assert_true(wk_quantile(endless, 2, 0.5) == INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_sum_exp), cmocka_unit_test(test_kl_divergence),
        cmocka_unit_test(test_largest),     cmocka_unit_test(test_moments),
        cmocka_unit_test(test_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
