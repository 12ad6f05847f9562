/* grammar/json_number: which numbers the grammars of bounds and multiples read. What schemas make
 * of them: test_json_schema.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/compiler.h"
#include "grammar_reading.h"
#include "grammar/json_number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double random_bound(bool is_integer) {
    static const double scales[] = {1, 10, 1000, 0.01, 1e6};
    const double scale = scales[rand() % 5];
    const double value = (double)(rand() % 401 - 200) / 8 * scale;
    return is_integer ? (double)(long)value : value;
}

static bool lies_within(const wk_number_bound bounds[2], double x) {
    const wk_number_bound a = bounds[0], b = bounds[1];
    return (!a.is_set || (a.is_exclusive ? x > a.value : x >= a.value)) &&
           (!b.is_set || (b.is_exclusive ? x < b.value : x <= b.value));
}

/* False: there are no such numbers, and nothing to close. */
static bool start_numbers(reading *r, const wk_number_bound bounds[2], double multiple,
                          bool is_integer) {
    wick_error error = {0};
    begin_reading(r, NULL);
    (void)wk_rules_add(&r->rules, wk_str_of("root"));
    wk_expr *body = NULL;
    wick_status status = (is_integer ? wk_json_integer : wk_json_number)(
        &r->rules, bounds[0], bounds[1], multiple, &body, &error);
    r->rules.items[0].body = body;
    status = start_reading(r, status, &error);
    if (status != WICK_ERR_VALUE) assert_int_equal(status, WICK_OK);
    return status == WICK_OK;
}

/* multiple 0: any. */
static void fail_number(const char *text, const wk_number_bound bounds[2], double multiple,
                        bool expected) {
    fail_msg("%s between %s%.17g and %s%.17g, of %.17g: expected %d", text,
             bounds[0].is_exclusive ? ">" : ">=", bounds[0].is_set ? bounds[0].value : -1e99,
             bounds[1].is_exclusive ? "<" : "<=", bounds[1].is_set ? bounds[1].value : 1e99,
             multiple, expected);
}

/* Every number near the bounds is one of the grammar exactly if it lies between them. */
static void check_bounds(const wk_number_bound bounds[2], bool is_integer) {
    reading r;
    if (!start_numbers(&r, bounds, 0, is_integer)) return;
    for (int i = 0; i < 400; i++) {
        char text[64];
        const double near = bounds[i % 2].is_set ? bounds[i % 2].value : 0;
        const double step = is_integer ? 1 : (double[]){0.125, 0.5, 7, 0.001}[rand() % 4];
        const double value = near + (double)(rand() % 21 - 10) * step;
        snprintf(text, sizeof text, "%.*f", is_integer ? 0 : 3 + rand() % 3, value);
        const double read = strtod(text, NULL);
        if (is_integer && strcmp(text, "-0") == 0) continue;
        const bool is_in = lies_within(bounds, read);
        if (reads(&r, wk_str_of(text)) != is_in) fail_number(text, bounds, 0, is_in);
    }
    close_reading(&r);
}

static void test_bounds(void **state) {
    (void)state;
    srand(1);
    for (int i = 0; i < 600; i++) {
        const bool is_integer = i % 2;
        wk_number_bound bounds[2];
        for (int k = 0; k < 2; k++)
            bounds[k] = (wk_number_bound){.is_set = rand() % 4 != 0,
                                          .is_exclusive = rand() % 3 == 0,
                                          .value = random_bound(is_integer && rand() % 4)};
        check_bounds(bounds, is_integer);
    }
}

/* Bounds whose digits agree for a while, and those beside a power of ten. */
static void test_near_bounds(void **state) {
    (void)state;
    static const double pairs[][2] = {{1.5, 1.57},    {0.5, 0.5625}, {-1.57, -1.5}, {0, 0.001},
                                      {-0.001, 0},    {0.099, 0.1},  {9.99, 10},    {99, 100.5},
                                      {-10.01, -9.9}, {7, 7},        {2.25, 2.25},  {-0.5, 0.5},
                                      {8.005, 8.05},  {0.009, 0.01}, {-100, -99}};
    for (size_t i = 0; i < 8 * WK_COUNT(pairs); i++) {
        wk_number_bound bounds[2];
        for (size_t k = 0; k < 2; k++)
            bounds[k] = (wk_number_bound){
                .is_set = true, .is_exclusive = i >> k & 1, .value = pairs[i / 8][k]};
        check_bounds(bounds, i >> 2 & 1);
    }
}

/* units times 10^-n_fraction. */
static void write_number(char *text, size_t size, int64_t units, int n_fraction) {
    char digits[32];
    const int n =
        snprintf(digits, sizeof digits, "%0*lld", n_fraction + 1 + (units < 0), (long long)units);
    const int n_whole = n - n_fraction;
    snprintf(text, size, "%.*s%s%s", n_whole, digits, n_fraction > 0 ? "." : "", digits + n_whole);
}

/* Every number near the bounds is one of the grammar exactly if it lies between them and divides;
 * step and n_fraction: 25 and 2 for 0.25. */
static void check_multiples(const wk_number_bound bounds[2], int64_t step, int n_fraction,
                            bool is_integer) {
    static const int64_t powers[] = {1, 10, 100, 1000};
    reading r;
    const double multiple = (double)step / (double)powers[n_fraction];
    const bool has_any = start_numbers(&r, bounds, multiple, is_integer);
    for (int i = 0; i < 300; i++) {
        char text[64];
        const int n = is_integer ? 0 : rand() % (n_fraction + 1);
        const double near = bounds[i % 2].is_set ? bounds[i % 2].value : 0;
        int64_t units = (int64_t)(near * (double)powers[n]) + rand() % 61 - 30;
        if (rand() % 4 == 0) units = units / step * step;
        write_number(text, sizeof text, units, n);
        const bool is_one =
            lies_within(bounds, strtod(text, NULL)) && units * powers[n_fraction - n] % step == 0;
        if (has_any ? reads(&r, wk_str_of(text)) != is_one : is_one)
            fail_number(text, bounds, multiple, is_one);
    }
    if (has_any) close_reading(&r);
}

static void test_multiples(void **state) {
    (void)state;
    static const struct {
        int64_t step;
        int n_fraction;
    } steps[] = {{2, 0},    {3, 0},  {5, 0},  {7, 0},  {10, 0},  {60, 0},   {97, 0},
                 {1000, 0}, {1, 0},  {1, 1},  {1, 2},  {5, 1},   {25, 2},   {3, 1},
                 {125, 3},  {12, 2}, {15, 1}, {75, 2}, {128, 0}, {4096, 0}, {100000, 0}};
    srand(2);
    for (size_t i = 0; i < 12 * WK_COUNT(steps); i++) {
        wk_number_bound bounds[2];
        const bool is_integer = i % 3 == 0;
        for (int k = 0; k < 2; k++)
            bounds[k] = (wk_number_bound){.is_set = rand() % 4 != 0,
                                          .is_exclusive = rand() % 3 == 0,
                                          .value = random_bound(rand() % 2)};
        if (i % 4 == 0) bounds[0].is_set = bounds[1].is_set = false;
        check_multiples(bounds, steps[i / 12].step, steps[i / 12].n_fraction, is_integer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_near_bounds),
        cmocka_unit_test(test_multiples),
    };
    return cmocka_run_group_tests_name("json_number", tests, NULL, NULL);
}
