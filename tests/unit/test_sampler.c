/* sample/sampler: every filter against a direct computation over the sorted distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample/filters.h"
#include "sample/sampler.h"

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
    if (wk_sampler_make(&heap, &desc, NULL, N, &sampler, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return sampler;
}

static uint32_t choose(wk_sampler *sampler, const float *logits) {
    uint32_t id = N;
    wick_error error = {0};
    if (wk_sampler_choose(sampler, logits, NULL, 0, &id, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return id;
}

static void test_greedy_takes_the_first_largest(void **state) {
    (void)state;
    float logits[N] = {0};
    logits[7] = logits[9] = 3;
    wk_sampler sampler = make((wick_sampler_desc){0});
    assert_int_equal(choose(&sampler, logits), 7);
    wk_sampler_free(&heap, &sampler);
}

/* --- What each filter should leave, by its definition --- */

/* weight 0: filtered out; probabilities at temperature 1 are weight / total(). */
typedef struct token {
    double logit, weight, key;
    int id;
} token;

/* The larger key first; the fixture has no ties. */
static int by_key(const void *a, const void *b) {
    const double x = ((const token *)a)->key, y = ((const token *)b)->key;
    return x < y ? 1 : x > y ? -1 : 0;
}

static double total(const token *tokens) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += tokens[i].weight;
    return sum;
}

/* Keeps the first tokens that make up share of what there is. */
static void keep_share(token *tokens, double share) {
    const double all = total(tokens);
    double sum = 0;
    for (int i = 0; i < N; i++) {
        const bool is_kept = sum < share * all;
        sum += tokens[i].weight;
        if (!is_kept) tokens[i].weight = 0;
    }
}

static void sort_by_logit(token *tokens) {
    for (int i = 0; i < N; i++) tokens[i].key = tokens[i].weight > 0 ? tokens[i].logit : -1e9;
    qsort(tokens, N, sizeof *tokens, by_key);
}

static void keep_typical(token *tokens, double share) {
    const double all = total(tokens);
    double entropy = 0;
    for (int i = 0; i < N; i++)
        if (tokens[i].weight > 0) entropy -= tokens[i].weight / all * log(tokens[i].weight / all);
    for (int i = 0; i < N; i++)
        tokens[i].key = tokens[i].weight > 0 ? -fabs(-log(tokens[i].weight / all) - entropy) : -1e9;
    qsort(tokens, N, sizeof *tokens, by_key);
    keep_share(tokens, share);
    sort_by_logit(tokens);
}

static void drop_top(token *tokens, double threshold) {
    const double all = total(tokens);
    for (int i = 0; i + 1 < N && tokens[i + 1].weight / all >= threshold; i++) tokens[i].weight = 0;
}

static void fill_tokens(const float *logits, token *tokens) {
    for (int i = 0; i < N; i++)
        tokens[i] = (token){.logit = (double)logits[i], .weight = exp((double)logits[i]), .id = i};
    sort_by_logit(tokens);
}

/* Adds the probabilities that the desc should give, times share. */
static void add_expected(const float *logits, const wick_sampler_desc *desc, bool drops_top,
                         double share, double *p) {
    token tokens[N];
    fill_tokens(logits, tokens);
    for (int i = 0; i < N; i++)
        if (desc->top_k > 0 && i >= (int)desc->top_k) tokens[i].weight = 0;
    if (desc->typical_p > 0) keep_typical(tokens, (double)desc->typical_p);
    if (desc->top_p > 0 && desc->top_p < 1) keep_share(tokens, (double)desc->top_p);
    for (int i = N; i-- > 0;)
        if (tokens[i].weight < (double)desc->min_p * tokens[0].weight) tokens[i].weight = 0;
    if (drops_top) drop_top(tokens, desc->xtc_threshold > 0 ? (double)desc->xtc_threshold : 0.1);
    for (int i = 0; i < N; i++)
        if (tokens[i].weight > 0)
            tokens[i].weight = exp(tokens[i].logit / (double)desc->temperature);
    const double kept = total(tokens);
    for (int i = 0; i < N; i++) p[tokens[i].id] += share * tokens[i].weight / kept;
}

static void expected(const float *logits, const wick_sampler_desc *desc, double *p) {
    const double xtc = (double)desc->xtc_probability;
    memset(p, 0, N * sizeof *p);
    add_expected(logits, desc, false, 1 - xtc, p);
    if (xtc > 0) add_expected(logits, desc, true, xtc, p);
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
        {.temperature = 1.5f, .top_p = 0.6f, .min_p = 0.2f, .seed = 9},
        {.temperature = 1, .typical_p = 0.3f, .seed = 10},
        {.temperature = 0.6f, .top_k = 20, .typical_p = 0.7f, .seed = 11},
        {.temperature = 2, .typical_p = 0.8f, .top_p = 0.7f, .min_p = 0.4f, .seed = 12},
        {.temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.02f, .seed = 13},
        {.temperature = 1, .xtc_probability = 0.4f, .xtc_threshold = 0.03f, .seed = 14},
        {.temperature = 1, .top_k = 12, .xtc_probability = 0.5f, .seed = 15},
        {.temperature = 0.5f,
         .min_p = 0.5f,
         .xtc_probability = 0.7f,
         .xtc_threshold = 1,
         .seed = 16},
        {.temperature = 1.2f,
         .top_k = 50,
         .typical_p = 0.9f,
         .top_p = 0.9f,
         .min_p = 0.1f,
         .xtc_probability = 0.3f,
         .xtc_threshold = 0.05f,
         .seed = 17},
    };
    float logits[N];
    fill_logits(logits);
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        double p[N];
        int counts[N] = {0};
        expected(logits, &descs[d], p);
        wk_sampler sampler = make(descs[d]);
        for (int i = 0; i < DRAWS; i++) counts[choose(&sampler, logits)]++;
        for (int i = 0; i < N; i++) {
            const double sigma = sqrt(p[i] * (1 - p[i]) / (double)DRAWS);
            if (p[i] == 0) assert_int_equal(counts[i], 0);
            if (fabs((double)counts[i] / (double)DRAWS - p[i]) > 5 * sigma + 2.0 / (double)DRAWS)
                fail_msg("desc %zu: token %d drawn %d times of %d, probability %g", d, i, counts[i],
                         DRAWS, p[i]);
        }
        wk_sampler_free(&heap, &sampler);
    }
}

/* --- Mirostat --- */

/* Follows the paper's algorithm 2 beside the sampler. */
static void test_mirostat_follows_the_paper(void **state) {
    (void)state;
    const wick_sampler_desc desc = {
        .temperature = 0.8f, .mirostat_tau = 3, .mirostat_eta = 0.2f, .top_k = 1, .seed = 5};
    float logits[N];
    fill_logits(logits);
    wk_sampler sampler = make(desc);
    double mu = 2 * (double)desc.mirostat_tau, mean = 0;
    token tokens[N];
    fill_tokens(logits, tokens);
    for (int i = 0; i < N; i++) tokens[i].weight = exp(tokens[i].logit / (double)desc.temperature);
    const double all = total(tokens);
    for (int step = 0; step < 2000; step++) {
        double kept = 0, weight = -1;
        const int id = (int)choose(&sampler, logits);
        for (int i = 0; i < N && (i == 0 || -log2(tokens[i].weight / all) <= mu); i++) {
            kept += tokens[i].weight;
            if (tokens[i].id == id) weight = tokens[i].weight;
        }
        assert_true(weight > 0); /* among what may be chosen */
        const double surprise = -log2(weight / kept);
        mu -= (double)desc.mirostat_eta * (surprise - (double)desc.mirostat_tau);
        if (fabs(mu - sampler.mirostat.most) > 1e-4)
            fail_msg("step %d: mu is %g, expected %g", step, sampler.mirostat.most, mu);
        mean += surprise / 2000;
    }
    assert_true(fabs(mean - (double)desc.mirostat_tau) < 0.1);
    wk_sampler_reset(&sampler);
    assert_true(sampler.mirostat.most == 2 * (double)desc.mirostat_tau);
    wk_sampler_free(&heap, &sampler);
}

/* --- The rest --- */

/* Where the vocabulary is large, bounds keep most of it out of the list: nothing may get lost. */
static void test_a_large_vocabulary(void **state) {
    (void)state;
    enum { LARGE = 20011 };
    static const wick_sampler_desc descs[] = {
        {.temperature = 1, .top_k = 7},     {.temperature = 1, .top_k = 1250},
        {.temperature = 1, .top_k = 1251},  {.temperature = 1, .top_p = 0.5f},
        {.temperature = 1, .top_p = 0.99f}, {.temperature = 1, .min_p = 0.5f},
    };
    static const size_t n_kept[] = {7, 1250, 1251, 0, 0, 0};
    float *const logits = malloc(LARGE * sizeof *logits);
    wk_candidate *const items = malloc(LARGE * sizeof *items);
    assert_true(logits && items);
    /* A permutation: logits k * 0.002, each once. */
    for (uint32_t i = 0; i < LARGE; i++) logits[i] = (float)(i * 7919 % LARGE) * 0.002f;
    const float best = (float)(LARGE - 1) * 0.002f;
    const double factor = exp(-0.002), all = (1 - pow(factor, LARGE)) / (1 - factor);
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        wk_candidates list = {.items = items};
        wk_rng rng = {0};
        wick_sampler_desc desc = descs[d];
        wk_sampler_resolve(&desc);
        wk_filter(&desc, logits, LARGE, best, &list, &rng);
        size_t n;
        const wk_candidate *const kept = wk_candidates_kept(&list, &n);
        double sum = 0, least = INFINITY;
        for (size_t i = 0; i < n; i++) {
            sum += exp((double)kept[i].key - (double)best);
            least = fmin(least, (double)kept[i].key);
        }
        /* As many as there are from the worst one kept on: the best n, without a gap. */
        assert_int_equal(n, (size_t)lround((double)(best - (float)least) / 0.002) + 1);
        if (n_kept[d] > 0) assert_int_equal(n, n_kept[d]);
        if (desc.top_p < 1) assert_true(fabs(sum / all - (double)desc.top_p) < 0.003);
        if (desc.min_p > 0) assert_int_equal(n, (size_t)(log(2) / 0.002) + 1);
    }
    free(logits);
    free(items);
}

/* A token that is exactly min_p times as likely as the best one stays. With min_p 1 that is decided
 * without rounding: what is as likely as the best stays, what is the least bit less so goes. */
static void test_ties_at_min_p(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.temperature = 1, .min_p = 1},
        {.temperature = 1, .min_p = 1, .top_k = 20},
        {.temperature = 1, .min_p = 1, .top_k = 4},
        {.temperature = 1, .min_p = 1, .top_p = 0.999f},
        {.temperature = 1, .min_p = 1, .typical_p = 0.999f},
    };
    float logits[N];
    wk_candidate items[N];
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        for (size_t i = 0; i < N; i++) logits[i] = -3;
        for (size_t i = 0; i < 5; i++) logits[3 * i] = 2.5f;
        logits[1] = logits[4] = nextafterf(2.5f, 0);
        wk_candidates list = {.items = items};
        wk_rng rng = {0};
        wick_sampler_desc desc = descs[d];
        size_t n;
        wk_sampler_resolve(&desc);
        wk_filter(&desc, logits, N, 2.5f, &list, &rng);
        const wk_candidate *const kept = wk_candidates_kept(&list, &n);
        assert_int_equal(n, desc.top_k == 4 ? 4 : 5);
        for (size_t i = 0; i < n; i++) assert_true(kept[i].id % 3 == 0 && kept[i].id < 15);
    }
}

/* Of four tokens that are as likely as each other two make up a half, not three. */
static void test_shares_that_are_met(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {{.temperature = 1, .top_p = 0.5f},
                                              {.temperature = 1, .typical_p = 0.5f}};
    static const float logits[4] = {0};
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        wk_candidate items[4];
        wk_candidates list = {.items = items};
        wk_rng rng = {0};
        wick_sampler_desc desc = descs[d];
        size_t n;
        wk_sampler_resolve(&desc);
        wk_filter(&desc, logits, 4, 0, &list, &rng);
        (void)wk_candidates_kept(&list, &n);
        assert_int_equal(n, 2);
    }
}

static void test_a_seed_repeats(void **state) {
    (void)state;
    static const wick_sampler_desc descs[] = {
        {.temperature = 1, .seed = 42},
        {.temperature = 1, .seed = 43, .mirostat_tau = 4},
        {.temperature = 1, .seed = 44, .typical_p = 0.9f, .xtc_probability = 0.5f, .top_k = 30},
    };
    float logits[N];
    fill_logits(logits);
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++) {
        wk_sampler a = make(descs[d]), b = make(descs[d]);
        for (int i = 0; i < 64; i++) assert_int_equal(choose(&a, logits), choose(&b, logits));
        wk_sampler_free(&heap, &a);
        wk_sampler_free(&heap, &b);
    }
    wk_sampler c = make((wick_sampler_desc){.temperature = 1});
    wk_sampler d = make((wick_sampler_desc){.temperature = 1});
    int same = 0;
    for (int i = 0; i < 64; i++) same += choose(&c, logits) == choose(&d, logits);
    assert_true(same < 60); /* two seeds from the system */
    wk_sampler_free(&heap, &c);
    wk_sampler_free(&heap, &d);
}

static void test_bad_values_are_refused(void **state) {
    (void)state;
    const wick_logit_bias nan = {3, NAN}, infinite = {3, INFINITY}, outside = {N, 1};
    const char *const empty[] = {""};
    const wick_sampler_desc bad[] = {
        {.temperature = -1},
        {.temperature = NAN},
        {.temperature = INFINITY},
        {.top_p = 1.5f},
        {.top_p = -0.1f},
        {.top_p = NAN},
        {.min_p = 2},
        {.typical_p = 1.1f},
        {.typical_p = NAN},
        {.repeat_penalty = -1},
        {.repeat_penalty = INFINITY},
        {.frequency_penalty = NAN},
        {.frequency_penalty = 101},
        {.presence_penalty = -101},
        {.dry_multiplier = -1},
        {.dry_multiplier = INFINITY},
        {.dry_multiplier = 1, .dry_base = 0.5f},
        {.dry_multiplier = 1, .dry_base = 1e9f},
        {.dry_multiplier = 1, .dry_allowed = 51},
        {.dry_multiplier = 1, .dry_breakers = empty, .n_dry_breakers = 1},
        {.n_dry_breakers = 1},
        {.xtc_probability = 1.5f},
        {.xtc_threshold = NAN},
        {.mirostat_tau = -1},
        {.mirostat_tau = 1, .mirostat_eta = 11},
        {.n_bias = 1},
        {.n_bias = SIZE_MAX},
        {.bias = &nan, .n_bias = 1},
        {.bias = &infinite, .n_bias = 1},
        {.bias = &outside, .n_bias = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wk_sampler sampler;
        wick_error error = {0};
        const wick_status status = wk_sampler_make(&heap, &bad[i], NULL, N, &sampler, &error);
        if (status != (bad[i].bias == &outside ? WICK_ERR_INDEX : WICK_ERR_VALUE))
            fail_msg("desc %zu: status %d", i, (int)status);
        assert_true(error.message[0] != 0);
        wk_sampler_free(&heap, &sampler);
    }
}

/* The ends of every range are inside, the next number is outside. */
static void test_ends_of_ranges(void **state) {
    (void)state;
    static wick_sampler_desc desc;
    static const struct {
        float *field, least, most;
    } ranges[] = {
        {&desc.typical_p, 0, 1},
        {&desc.top_p, 0, 1},
        {&desc.min_p, 0, 1},
        {&desc.temperature, 0, INFINITY},
        {&desc.repeat_penalty, 0, INFINITY},
        {&desc.dry_multiplier, 0, INFINITY},
        {&desc.frequency_penalty, -100, 100},
        {&desc.presence_penalty, -100, 100},
        {&desc.dry_base, 1, 100},
        {&desc.xtc_probability, 0, 1},
        {&desc.xtc_threshold, 0, 1},
        {&desc.mirostat_tau, 0, 100},
        {&desc.mirostat_eta, 0, 10},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const float values[] = {
            ranges[i].least, nextafterf(ranges[i].most, 0), nextafterf(ranges[i].least, -INFINITY),
            isinf(ranges[i].most) ? INFINITY : nextafterf(ranges[i].most, INFINITY)};
        desc = (wick_sampler_desc){.temperature = 1};
        for (size_t v = 0; v < 5; v++) {
            *ranges[i].field = v < 4 ? values[v] : isinf(ranges[i].most) ? 0 : ranges[i].most;
            const bool is_outside = v == 2 || v == 3;
            const wick_status status = wk_sampler_check(&desc, N, NULL);
            if (status != (is_outside ? WICK_ERR_VALUE : WICK_OK))
                fail_msg("range %zu, value %g: status %d", i, (double)*ranges[i].field,
                         (int)status);
        }
    }
    desc = (wick_sampler_desc){.dry_allowed = 50};
    assert_int_equal(wk_sampler_check(&desc, N, NULL), WICK_OK);
    desc.dry_allowed = 51;
    assert_int_equal(wk_sampler_check(&desc, N, NULL), WICK_ERR_VALUE);
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
        assert_int_equal(choose(&sampler, logits), 5);
    }
    wk_sampler_free(&heap, &sampler);
}

int main(void) {
    wk_heap_init(&heap, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_takes_the_first_largest),
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_a_seed_repeats),
        cmocka_unit_test(test_mirostat_follows_the_paper),
        cmocka_unit_test(test_a_large_vocabulary),
        cmocka_unit_test(test_ties_at_min_p),
        cmocka_unit_test(test_shares_that_are_met),
        cmocka_unit_test(test_ends_of_ranges),
        cmocka_unit_test(test_bad_values_are_refused),
        cmocka_unit_test(test_numbers_that_are_none),
    };
    const int failed = cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
    return failed + (heap.live_bytes != 0);
}
