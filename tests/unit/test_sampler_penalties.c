/* sample/sampler: biases, penalties and DRY against direct computations, through the logits that
 * the sampler has changed before it chooses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/rng.h"
#include "sample/penalties.h"
#include "sample/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200 };

static wk_heap heap;

static wk_sampler make(wick_sampler_desc desc) {
    wk_sampler sampler;
    wick_error error = {0};
    if (wk_sampler_make(&heap, &desc, NULL, N, &sampler, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return sampler;
}

static uint32_t choose(wk_sampler *sampler, const float *logits, const uint32_t *tokens, size_t n) {
    uint32_t id = N;
    wick_error error = {0};
    if (wk_sampler_choose(sampler, logits, tokens, n, &id, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return id;
}

static void check_logits(const wk_sampler *sampler, const double *want) {
    for (int i = 0; i < N; i++) {
        const double got = (double)sampler->logits[i];
        if (!(fabs(got - want[i]) <= 1e-5 * fmax(1, fabs(want[i]))))
            fail_msg("logit %d is %g, expected %g", i, got, want[i]);
    }
}

/* --- Penalties --- */

/* By the definitions, over the last `last` tokens. */
static void penalize(const wick_sampler_desc *desc, const uint32_t *tokens, size_t n, size_t last,
                     double *logits) {
    const size_t first = n > last ? n - last : 0;
    for (uint32_t id = 0; id < N; id++) {
        int count = 0;
        for (size_t i = first; i < n; i++) count += tokens[i] == id;
        if (count == 0) continue;
        if (desc->repeat_penalty > 0)
            logits[id] = logits[id] > 0 ? logits[id] / (double)desc->repeat_penalty
                                        : logits[id] * (double)desc->repeat_penalty;
        logits[id] -= count * (double)desc->frequency_penalty + (double)desc->presence_penalty;
    }
}

static void test_penalties(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.repeat_penalty = 1.3f},
        {.repeat_penalty = 0.8f, .repeat_last = 7},
        {.frequency_penalty = 0.5f},
        {.frequency_penalty = -0.5f, .repeat_last = 1000},
        {.presence_penalty = 1.5f, .repeat_last = 3},
        {.repeat_penalty = 1.1f, .frequency_penalty = 0.2f, .presence_penalty = -0.4f},
    };
    wk_rng rng = {.seed = 3};
    float logits[N];
    uint32_t tokens[150];
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        wk_sampler sampler = make(descs[d]);
        for (int round = 0; round < 20; round++) {
            const size_t n = wk_rng_u32(&rng) % 150;
            double want[N];
            for (int i = 0; i < N; i++)
                want[i] = (double)(logits[i] = wk_rng_uniform(&rng) * 10 - 5);
            for (size_t i = 0; i < n; i++) tokens[i] = wk_rng_u32(&rng) % 20;
            if (n > 0) tokens[n / 2] = N + 7; /* what the vocabulary lacks does no harm */
            const size_t last = descs[d].repeat_last > 0 ? descs[d].repeat_last : 64;
            penalize(&descs[d], tokens, n, last, want);
            choose(&sampler, logits, tokens, n);
            check_logits(&sampler, want);
        }
        wk_sampler_free(&heap, &sampler);
    }
}

/* Ids past the vocabulary stand for rows without a token. */
static void test_ids_that_are_none(void **state) {
    (void)state;
    enum { N_IDS = 3 };
    static const uint32_t tokens[] = {N_IDS, UINT32_MAX, N_IDS - 1};
    const wick_sampler_desc desc = {.repeat_penalty = 2, .repeat_last = 3};
    float logits[N_IDS + 1] = {1, 1, 1, 1};
    uint32_t counts[N_IDS + 1] = {0, 0, 0, 1};
    wk_penalize(&desc, tokens, 3, counts, logits, N_IDS);
    for (uint32_t i = 0; i <= N_IDS; i++) assert_true(logits[i] == (i == N_IDS - 1 ? 0.5F : 1));
}

static void test_repetition_is_penalized_once(void **state) {
    (void)state;
    float logits[N];
    for (int i = 0; i < N; i++) logits[i] = -10;
    logits[3] = 2;
    logits[4] = 1.5f;
    const uint32_t tokens[] = {3, 3, 3, 9};
    static const wick_sampler_desc descs[] = {{.repeat_penalty = 1.2f},
                                              {.repeat_penalty = 1.5f},
                                              {.repeat_penalty = 1.5f, .repeat_last = 1}};
    static const uint32_t want[] = {3, 4, 3};
    for (size_t i = 0; i < 3; i++) {
        wk_sampler sampler = make(descs[i]);
        assert_int_equal(choose(&sampler, logits, tokens, 4), want[i]);
        wk_sampler_free(&heap, &sampler);
    }
}

/* With any factors, something finite is left to choose from. */
static void test_extreme_factors(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.repeat_penalty = FLT_MAX},
        {.repeat_penalty = FLT_MIN},
        {.dry_multiplier = FLT_MAX, .dry_base = 100, .dry_allowed = 1},
    };
    float logits[N];
    uint32_t tokens[N];
    for (int i = 0; i < N; i++) logits[i] = i % 2 ? -FLT_MAX : FLT_MAX;
    for (int i = 0; i < N; i++) tokens[i] = 5;
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        wick_sampler_desc desc = descs[d];
        for (desc.temperature = 0; desc.temperature <= 1; desc.temperature++) {
            wk_sampler sampler = make(desc);
            assert_true(choose(&sampler, logits, tokens, N) < N);
            for (int i = 0; i < N; i++) assert_true(isfinite(sampler.logits[i]));
            wk_sampler_free(&heap, &sampler);
        }
    }
}

/* --- Biases --- */

static void test_biases(void **state) {
    (void)state;
    wick_logit_bias biases[] = {{1, 2.5f}, {2, -1}, {1, 0.5f}, {0, -INFINITY}};
    float logits[N] = {9};
    wk_sampler sampler = make((wick_sampler_desc){.bias = biases, .n_bias = 4});
    biases[0].bias = -100; /* it has a copy */
    assert_int_equal(choose(&sampler, logits, NULL, 0), 1);
    assert_true(sampler.logits[0] == -INFINITY && sampler.logits[1] == 3);
    assert_true(sampler.logits[2] == -1 && sampler.logits[3] == 0);
    wk_sampler_free(&heap, &sampler);
    wick_logit_bias none[N];
    for (uint32_t i = 0; i < N; i++) none[i] = (wick_logit_bias){i, -INFINITY};
    sampler = make((wick_sampler_desc){.bias = none, .n_bias = N});
    uint32_t id;
    assert_int_equal(wk_sampler_choose(&sampler, logits, NULL, 0, &id, NULL), WICK_ERR_VALUE);
    wk_sampler_free(&heap, &sampler);
    sampler = make((wick_sampler_desc){.bias = none, .n_bias = N - 1, .temperature = 1});
    for (int i = 0; i < 20; i++) assert_int_equal(choose(&sampler, logits, NULL, 0), N - 1);
    wk_sampler_free(&heap, &sampler);
}

/* --- DRY --- */

/* As the proposal describes it, place by place. */
static void dry(const wick_sampler_desc *desc, const bool *breakers, const uint32_t *tokens,
                size_t n, double *logits) {
    const size_t first = desc->dry_last > 0 && desc->dry_last < n ? n - desc->dry_last : 0;
    const size_t allowed = desc->dry_allowed > 0 ? desc->dry_allowed : 2;
    const double base = desc->dry_base > 0 ? (double)desc->dry_base : 1.75;
    size_t longest[N] = {0};
    for (size_t i = first; i + 1 < n; i++) {
        size_t match = 0;
        while (match < 50 && i >= first + match && tokens[i - match] == tokens[n - 1 - match] &&
               !breakers[tokens[i - match]])
            match++;
        const uint32_t next = tokens[i + 1];
        if (!breakers[next] && match > longest[next]) longest[next] = match;
    }
    for (size_t i = 0; i < N; i++)
        if (longest[i] >= allowed)
            logits[i] -= (double)desc->dry_multiplier * pow(base, (double)(longest[i] - allowed));
}

static void check_dry(const wick_sampler_desc *desc, uint32_t n_letters, wk_rng *rng) {
    enum { LONGEST = 400 };
    uint32_t tokens[LONGEST];
    float logits[N];
    bool breakers[N] = {0};
    wk_sampler sampler = make(*desc);
    for (int round = 0; round < 200; round++) {
        const size_t n = wk_rng_u32(rng) % LONGEST;
        double want[N];
        for (int i = 0; i < N; i++) want[i] = (double)(logits[i] = wk_rng_uniform(rng));
        for (size_t i = 0; i < n; i++) tokens[i] = wk_rng_u32(rng) % n_letters;
        /* Long repetitions: a part is copied to the end. */
        const size_t part = n / 3;
        if (round % 2) memmove(tokens + (n - part), tokens + n / 5, part * sizeof *tokens);
        const uint32_t breaker = wk_rng_u32(rng) % (2 * n_letters);
        breakers[breaker] = true;
        sampler.dry.breakers[breaker / 8] = (uint8_t)(1U << (breaker % 8));
        dry(desc, breakers, tokens, n, want);
        choose(&sampler, logits, tokens, n);
        check_logits(&sampler, want);
        breakers[breaker] = false;
        sampler.dry.breakers[breaker / 8] = 0;
    }
    wk_sampler_free(&heap, &sampler);
}

static void test_dry(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.dry_multiplier = 0.8f},
        {.dry_multiplier = 0.5f, .dry_base = 1.1f, .dry_allowed = 1},
        {.dry_multiplier = 1, .dry_base = 1.2f, .dry_allowed = 5, .dry_last = 60},
        {.dry_multiplier = 2, .dry_base = 1, .dry_allowed = 50},
    };
    wk_rng rng = {.seed = 11};
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++)
        for (uint32_t n_letters = 1; n_letters <= 9; n_letters += 2)
            check_dry(&descs[d], n_letters, &rng);
}

/* --- Making --- */

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    const wick_logit_bias bias = {3, 1};
    const wick_sampler_desc desc = {
        .temperature = 1, .bias = &bias, .n_bias = 1, .repeat_penalty = 2, .dry_multiplier = 1};
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    for (uint64_t n = 0; status != WICK_OK; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wk_sampler sampler;
        wick_error error = {0};
        status = wk_sampler_make(&checked.heap, &desc, NULL, N, &sampler, &error);
        assert_int_equal(status, n < 5 ? WICK_ERR_OUT_OF_MEMORY : WICK_OK);
        assert_int_equal(error.status, status);
        wk_sampler_free(&checked.heap, &sampler);
        assert_true(checked_heap_is_clean(&checked));
    }
}

int main(void) {
    wk_heap_init(&heap, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_repetition_is_penalized_once),
        cmocka_unit_test(test_ids_that_are_none),
        cmocka_unit_test(test_extreme_factors),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_dry),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    const int failed = cmocka_run_group_tests_name("sampler_penalties", tests, NULL, NULL);
    return failed + (heap.live_bytes != 0);
}
