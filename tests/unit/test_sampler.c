/* llm/sampler: every filter against a direct computation over the sorted distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200, DRAWS = 20000 };

static wk_heap heap;

static void fill_logits(float *logits) {
    for (int i = 0; i < N; i++) logits[i] = (float)((i * 73) % N) * 0.05f;
}

static wk_sampler make(wick_sampler_desc desc) {
    wk_sampler sampler;
    wick_error error = {0};
    if (wk_sampler_make(&heap, &desc, N, &sampler, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return sampler;
}

static void test_greedy_takes_the_first_largest(void **state) {
    (void)state;
    float logits[N] = {0};
    logits[7] = logits[9] = 3;
    wk_sampler sampler = make((wick_sampler_desc){0});
    uint32_t id;
    assert_int_equal(wk_sampler_choose(&sampler, logits, NULL, 0, &id, NULL), WICK_OK);
    assert_int_equal(id, 7);
    wk_sampler_free(&heap, &sampler);
}

/* Sorted by logit, best first; the fixture has no ties. */
static int by_logit(const void *a, const void *b) {
    const float x = ((const wk_candidate *)a)->logit, y = ((const wk_candidate *)b)->logit;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The probabilities that the desc should give, by the definition of each filter. */
static void expected(const float *logits, const wick_sampler_desc *desc, double *p) {
    wk_candidate sorted[N];
    double weight[N], total = 0, sum = 0;
    for (int i = 0; i < N; i++) sorted[i] = (wk_candidate){logits[i], (uint32_t)i};
    qsort(sorted, N, sizeof *sorted, by_logit);
    const int k = desc->top_k && desc->top_k < N ? (int)desc->top_k : N;
    for (int i = 0; i < N; i++) {
        weight[i] = exp((double)(sorted[i].logit - sorted[0].logit) / (double)desc->temperature);
        if (i < k) total += weight[i];
    }
    memset(p, 0, N * sizeof *p);
    const double top_p = desc->top_p > 0 ? (double)desc->top_p : 1;
    double kept = 0;
    for (int i = 0; i < k && sum < top_p * total; i++) {
        sum += weight[i];
        if (i > 0 && weight[i] < (double)desc->min_p) break;
        p[sorted[i].id] = weight[i];
        kept += weight[i];
    }
    for (int i = 0; i < N; i++) p[i] /= kept;
}

static void test_draws_follow_the_distribution(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.temperature = 1, .seed = 1},
        {.temperature = 0.5f, .seed = 2},
        {.temperature = 1, .top_k = 5, .seed = 3},
        {.temperature = 1, .top_k = 1, .seed = 3},
        {.temperature = 0.7f, .top_p = 0.5f, .seed = 4},
        {.temperature = 2, .min_p = 0.3f, .seed = 5},
        {.temperature = 1.3f, .top_k = 40, .top_p = 0.9f, .min_p = 0.1f, .seed = 6},
        {.temperature = 1, .top_p = 1e-6f, .seed = 7},
        {.temperature = 1, .top_k = 1000, .seed = 8},
    };
    float logits[N];
    fill_logits(logits);
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        double p[N];
        int counts[N] = {0};
        expected(logits, &descs[d], p);
        wk_sampler sampler = make(descs[d]);
        for (int i = 0; i < DRAWS; i++) {
            uint32_t id;
            assert_int_equal(wk_sampler_choose(&sampler, logits, NULL, 0, &id, NULL), WICK_OK);
            counts[id]++;
        }
        for (int i = 0; i < N; i++) {
            const double sigma = sqrt(p[i] * (1 - p[i]) / DRAWS);
            if (p[i] == 0) assert_int_equal(counts[i], 0);
            if (fabs((double)counts[i] / DRAWS - p[i]) > 5 * sigma + 2.0 / DRAWS)
                fail_msg("desc %zu: token %d drawn %d times of %d, probability %g", d, i, counts[i],
                         DRAWS, p[i]);
        }
        wk_sampler_free(&heap, &sampler);
    }
}

static void test_a_seed_repeats(void **state) {
    (void)state;
    float logits[N];
    fill_logits(logits);
    wk_sampler a = make((wick_sampler_desc){.temperature = 1, .seed = 42});
    wk_sampler b = make((wick_sampler_desc){.temperature = 1, .seed = 42});
    wk_sampler c = make((wick_sampler_desc){.temperature = 1});
    wk_sampler d = make((wick_sampler_desc){.temperature = 1});
    int same = 0;
    for (int i = 0; i < 64; i++) {
        uint32_t x, y, z, w;
        assert_int_equal(wk_sampler_choose(&a, logits, NULL, 0, &x, NULL), WICK_OK);
        assert_int_equal(wk_sampler_choose(&b, logits, NULL, 0, &y, NULL), WICK_OK);
        assert_int_equal(wk_sampler_choose(&c, logits, NULL, 0, &z, NULL), WICK_OK);
        assert_int_equal(wk_sampler_choose(&d, logits, NULL, 0, &w, NULL), WICK_OK);
        assert_int_equal(x, y);
        same += z == w;
    }
    assert_true(same < 60); /* two seeds from the system */
    wk_sampler_free(&heap, &a);
    wk_sampler_free(&heap, &b);
    wk_sampler_free(&heap, &c);
    wk_sampler_free(&heap, &d);
}

static void test_repetition_is_penalized_once(void **state) {
    (void)state;
    float logits[N];
    for (int i = 0; i < N; i++) logits[i] = -10;
    logits[3] = 2;
    logits[4] = 1.5f;
    logits[5] = -0.5f;
    const uint32_t tokens[] = {3, 3, 3, 9};
    uint32_t id;
    wk_sampler sampler = make((wick_sampler_desc){.repeat_penalty = 1.2f});
    assert_int_equal(wk_sampler_choose(&sampler, logits, tokens, 4, &id, NULL), WICK_OK);
    assert_int_equal(id, 3); /* 2 / 1.2 is still the largest: three occurrences count once */
    wk_sampler_free(&heap, &sampler);
    sampler = make((wick_sampler_desc){.repeat_penalty = 1.5f});
    assert_int_equal(wk_sampler_choose(&sampler, logits, tokens, 4, &id, NULL), WICK_OK);
    assert_int_equal(id, 4);
    wk_sampler_free(&heap, &sampler);
    sampler = make((wick_sampler_desc){.repeat_penalty = 1.5f, .repeat_last = 1});
    assert_int_equal(wk_sampler_choose(&sampler, logits, tokens, 4, &id, NULL), WICK_OK);
    assert_int_equal(id, 3);
    wk_sampler_free(&heap, &sampler);
}

static void test_bad_values_are_refused(void **state) {
    (void)state;
    static const wick_sampler_desc bad[] = {
        {.temperature = -1}, {.temperature = NAN},   {.top_p = 1.5f}, {.top_p = -0.1f},
        {.min_p = 2},        {.repeat_penalty = -1}, {.top_p = NAN},  {.temperature = INFINITY},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wk_sampler sampler;
        wick_error error = {0};
        assert_int_equal(wk_sampler_make(&heap, &bad[i], N, &sampler, &error), WICK_ERR_VALUE);
        assert_true(error.message[0] != 0);
        wk_sampler_free(&heap, &sampler);
    }
}

static void test_numbers_that_are_none(void **state) {
    (void)state;
    float logits[N];
    for (int i = 0; i < N; i++) logits[i] = NAN;
    wk_sampler sampler = make((wick_sampler_desc){.temperature = 1, .top_k = 3});
    uint32_t id;
    wick_error error = {0};
    assert_int_equal(wk_sampler_choose(&sampler, logits, NULL, 0, &id, &error), WICK_ERR_DEVICE);
    logits[5] = 1; /* one good number is enough */
    logits[6] = INFINITY;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(wk_sampler_choose(&sampler, logits, NULL, 0, &id, NULL), WICK_OK);
        assert_int_equal(id, 5);
    }
    wk_sampler_free(&heap, &sampler);
}

int main(void) {
    wk_heap_init(&heap, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_takes_the_first_largest),
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_a_seed_repeats),
        cmocka_unit_test(test_repetition_is_penalized_once),
        cmocka_unit_test(test_bad_values_are_refused),
        cmocka_unit_test(test_numbers_that_are_none),
    };
    const int failed = cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
    return failed + (heap.live_bytes != 0);
}
