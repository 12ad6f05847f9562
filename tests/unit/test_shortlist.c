/* llm/shortlist: the best logits and what a sampler makes of them alone: the same choice as of
 * the whole row wherever wk_sampler_reach says so; and what a device draws from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/compiler.h"
#include "core/rng.h"
#include "sample/sampler.h"
#include "llm/shortlist.h"

#include <wick/wick.h>

#include <math.h>
#include <string.h>

enum { N = 1000, N_TOKENS = 200 };

static wk_heap heap;
static wick_device *device;

static int open_device(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    return wick_device_open(&(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device, NULL);
}

static int close_device(void **state) {
    (void)state;
    wick_device_close(device);
    return 0;
}

static void make_list(const float *logits, float *list) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1, N), logits, N * sizeof *logits);
    wick_tensor *const made = wk_shortlist_make(x);
    assert_int_equal(wick_read(made, list, WK_SHORTLIST_WORDS * sizeof *list), WICK_OK);
    wick_scope_end(scope);
}

/* Of few values: most are there many times. */
static void fill_row(wk_rng *rng, float *row) {
    const uint32_t n_values = 3 + wk_rng_u32(rng) % 500;
    for (int i = 0; i < N; i++) {
        const uint32_t word = wk_rng_u32(rng);
        row[i] = word % 97 == 0 ? -INFINITY : (float)(word % n_values) * 0.05F - 4;
    }
}

static void test_spread_has_the_best(void **state) {
    (void)state;
    wk_rng rng = {.seed = 1};
    float row[N], list[WK_SHORTLIST_WORDS], spread[N];
    fill_row(&rng, row);
    make_list(row, list);
    assert_true(wk_shortlist_spread(list, spread, N));
    size_t n = 0;
    for (int i = 0; i < N; i++) {
        if (!(spread[i] > -INFINITY)) continue;
        assert_true(spread[i] == row[i]);
        n++;
    }
    assert_int_equal(n, WK_SHORTLIST);
    for (int i = 0; i < N; i++) /* of those left out none is better than the last of the list */
        if (!(spread[i] > -INFINITY)) assert_true(row[i] <= list[WK_SHORTLIST - 1]);
}

static void test_no_numbers_decide_nothing(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY};
    wk_rng rng = {.seed = 2};
    float row[N], list[WK_SHORTLIST_WORDS], spread[N];
    for (size_t i = 0; i < WK_COUNT(odd); i++) {
        fill_row(&rng, row);
        row[N - 1] = odd[i];
        make_list(row, list);
        assert_false(wk_shortlist_spread(list, spread, N));
    }
    for (int i = 0; i < N; i++) row[i] = -INFINITY;
    make_list(row, list);
    assert_true(wk_shortlist_spread(list, spread, N));
    for (int i = 0; i < N; i++) assert_true(spread[i] == -INFINITY);
}

/* Id i of a list: bits of u32. */
static uint32_t id_of(const float *list, size_t i) {
    uint32_t id;
    memcpy(&id, &list[WK_SHORTLIST + i], sizeof id);
    return id;
}

/* As a broken driver may write them. */
static void test_ids_outside_are_refused(void **state) {
    (void)state;
    static const uint32_t wrong[] = {N, 1U << 31, UINT32_MAX};
    float list[WK_SHORTLIST_WORDS] = {0}, spread[N];
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        memcpy(&list[WK_SHORTLIST_WORDS - 1], &wrong[i], sizeof wrong[i]);
        assert_false(wk_shortlist_spread(list, spread, N));
    }
}

static void test_fits(void **state) {
    (void)state;
    assert_false(wk_shortlist_fits(WK_SHORTLIST));
    assert_true(wk_shortlist_fits(WK_SHORTLIST + 1));
}

/* --- The same choice --- */

static float one_of(wk_rng *rng, const float *values, size_t n) {
    return values[wk_rng_u32(rng) % n];
}

#define ONE_OF(rng, ...)                                                                           \
    one_of(rng, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static wick_sampler_desc random_desc(wk_rng *rng) {
    return (wick_sampler_desc){.temperature = ONE_OF(rng, 0, 0.3F, 1, 2),
                               .top_k = (uint32_t)ONE_OF(rng, 0, 1, 40, 64, 128, 400),
                               .top_p = ONE_OF(rng, 0, 0.5F, 0.95F),
                               .typical_p = ONE_OF(rng, 0, 0, 0.5F),
                               .min_p = ONE_OF(rng, 0, 0.05F),
                               .xtc_probability = ONE_OF(rng, 0, 0, 0.5F),
                               .repeat_last = (uint32_t)ONE_OF(rng, 0, 10, 88, 1000),
                               .repeat_penalty = ONE_OF(rng, 0, 0, 1.3F, 0.8F),
                               .frequency_penalty = ONE_OF(rng, 0, 0, 0.4F, -0.4F),
                               .presence_penalty = ONE_OF(rng, 0, 0, 0.4F, -0.4F),
                               .mirostat_tau = ONE_OF(rng, 0, 0, 0, 0, 5),
                               .dry_multiplier = ONE_OF(rng, 0, 0, 0, 0, 0.8F),
                               .seed = 1 + wk_rng_u32(rng)};
}

static uint32_t choose(const wick_sampler_desc *desc, const float *row, const uint32_t *tokens) {
    wk_sampler sampler;
    wick_error error = {0};
    uint32_t id = N;
    if (wk_sampler_make(&heap, desc, NULL, N, &sampler, &error) != WICK_OK ||
        wk_sampler_choose(&sampler, row, tokens, N_TOKENS, &id, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wk_sampler_free(&heap, &sampler);
    return id;
}

static uint64_t reach(const wick_sampler_desc *desc) {
    wk_sampler sampler;
    assert_int_equal(wk_sampler_make(&heap, desc, NULL, N, &sampler, NULL), WICK_OK);
    const uint64_t found = wk_sampler_reach(&sampler);
    wk_sampler_free(&heap, &sampler);
    return found;
}

/* The best are forbidden or have just been there: the worst case. */
static void test_same_choice(void **state) {
    (void)state;
    wk_rng rng = {.seed = 3};
    float row[N], list[WK_SHORTLIST_WORDS], spread[N];
    int n_short = 0;
    for (int round = 0; round < 4000; round++) {
        fill_row(&rng, row);
        make_list(row, list);
        assert_true(wk_shortlist_spread(list, spread, N));
        uint32_t tokens[N_TOKENS];
        for (size_t i = 0; i < N_TOKENS; i++)
            tokens[i] = i % 4 == 0 ? wk_rng_u32(&rng) % N : id_of(list, wk_rng_u32(&rng) % 90);
        wick_logit_bias bias[8];
        wick_sampler_desc desc = random_desc(&rng);
        desc.bias = bias;
        desc.n_bias = wk_rng_u32(&rng) % 8;
        for (size_t i = 0; i < desc.n_bias; i++)
            bias[i] = (wick_logit_bias){.id = id_of(list, i),
                                        .bias = ONE_OF(&rng, -INFINITY, -3, -0.05F, 0)};
        if (reach(&desc) > WK_SHORTLIST) continue;
        n_short++;
        assert_int_equal(choose(&desc, spread, tokens), choose(&desc, row, tokens));
    }
    assert_true(n_short > 400);
}

static void test_reach(void **state) {
    (void)state;
    static const wick_logit_bias lower[] = {{.id = 1, .bias = -1}, {.id = 2, .bias = -INFINITY}};
    static const wick_logit_bias raise[] = {{.id = 1, .bias = 0.5F}};
    const wick_sampler_desc any[] = {
        {.temperature = 1},
        {.bias = raise, .n_bias = 1},
        {.repeat_penalty = 0.9F},
        {.frequency_penalty = -1},
        {.presence_penalty = -1},
        {.dry_multiplier = 1},
        {.temperature = 1, .top_k = 10, .mirostat_tau = 5},
    };
    for (size_t i = 0; i < WK_COUNT(any); i++) assert_true(reach(&any[i]) == UINT64_MAX);
    assert_int_equal(reach(&(wick_sampler_desc){.temperature = 0}), 1);
    assert_int_equal(reach(&(wick_sampler_desc){.temperature = 1, .top_k = 40}), 40);
    assert_int_equal(reach(&(wick_sampler_desc){.bias = lower, .n_bias = 2}), 3);
    assert_int_equal(
        reach(&(wick_sampler_desc){.temperature = 1, .top_k = 40, .repeat_penalty = 1.1F}), 104);
    assert_int_equal(reach(&(wick_sampler_desc){.repeat_last = UINT32_MAX, .presence_penalty = 1}),
                     (uint64_t)UINT32_MAX + 1);
}

/* --- A draw --- */

/* Of list, kept as number 1 of two, after which another tensor gets the id. */
static uint32_t draw_id(const float *list, const wk_draw *draw) {
    enum { AT = 5, N_WORDS = 7 };
    static float zeros[2 * WK_SHORTLIST_KEPT];
    float both[2][WK_SHORTLIST_KEPT];
    uint32_t words[N_WORDS] = {0}, id;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1, WK_SHORTLIST_WORDS), list,
                              WK_SHORTLIST_WORDS * sizeof *list);
    wick_tensor *const kept = wick_tensor_from_data(
        device, WICK_F32, WICK_SHAPE(2, WK_SHORTLIST_KEPT), zeros, sizeof zeros);
    wick_tensor *const to =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(N_WORDS), words, sizeof words);
    assert_int_equal(wk_shortlist_keep(x, kept, 1, draw), WICK_OK);
    assert_int_equal(wk_shortlist_give(kept, 1, to, AT), WICK_OK);
    assert_int_equal(wick_read(kept, both, sizeof both), WICK_OK);
    assert_int_equal(wick_read(to, words, sizeof words), WICK_OK);
    wick_scope_end(scope);
    assert_memory_equal(both[1], list, WK_SHORTLIST_WORDS * sizeof *list);
    assert_memory_equal(both[0], zeros, sizeof both[0]);
    memcpy(&id, &both[1][WK_SHORTLIST_WORDS], sizeof id);
    for (int i = 0; i < N_WORDS; i++) assert_int_equal(words[i], i == AT ? id : 0);
    return id;
}

/* What the device draws is what the sampler chooses by the same number. */
static void test_same_draw(void **state) {
    (void)state;
    wk_rng rng = {.seed = 4};
    float row[N], list[WK_SHORTLIST_WORDS];
    int n_drawn = 0;
    for (int round = 0; round < 1000; round++) {
        fill_row(&rng, row);
        make_list(row, list);
        const wick_sampler_desc desc = {.temperature = ONE_OF(&rng, 0, 0.3F, 1, 2, 5),
                                        .top_k = (uint32_t)ONE_OF(&rng, 1, 2, 40, 127, 128),
                                        .top_p = ONE_OF(&rng, 1, 0.1F, 0.95F),
                                        .min_p = ONE_OF(&rng, 0, 0.02F, 0.5F),
                                        .seed = 1 + wk_rng_u32(&rng)};
        wk_sampler sampler;
        const uint32_t nth = wk_rng_u32(&rng) % 3;
        assert_int_equal(wk_sampler_make(&heap, &desc, NULL, N, &sampler, NULL), WICK_OK);
        const wk_draw draw = {.temperature = desc.temperature,
                              .top_p = desc.top_p,
                              .min_p = desc.min_p,
                              .u = wk_sampler_foresee(&sampler, nth),
                              .k = desc.top_k};
        uint32_t want = N;
        for (uint32_t i = 0; i <= nth; i++)
            assert_int_equal(wk_sampler_choose(&sampler, row, NULL, 0, &want, NULL), WICK_OK);
        wk_sampler_free(&heap, &sampler);
        n_drawn += want != id_of(list, 0);
        assert_int_equal(draw_id(list, &draw), want);
    }
    assert_true(n_drawn > 300);
}

/* Logits that decide nothing give an id of the list. */
static void test_draw_from_nothing(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < WK_COUNT(odd); i++) {
        for (uint32_t n = 0; n <= WK_SHORTLIST; n += WK_SHORTLIST / 2) {
            float list[WK_SHORTLIST_WORDS];
            for (uint32_t k = 0; k < WK_SHORTLIST; k++) {
                const uint32_t id = 1000 + k;
                list[k] = k < n ? odd[i] : 1;
                memcpy(&list[WK_SHORTLIST + k], &id, sizeof id);
            }
            const wk_draw draw = {
                .temperature = 1, .top_p = 0.5F, .min_p = 0.1F, .u = 0.5F, .k = WK_SHORTLIST};
            const uint32_t id = draw_id(list, &draw);
            assert_true(id >= 1000 && id < 1000 + WK_SHORTLIST);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread_has_the_best),
                                       cmocka_unit_test(test_no_numbers_decide_nothing),
                                       cmocka_unit_test(test_ids_outside_are_refused),
                                       cmocka_unit_test(test_fits),
                                       cmocka_unit_test(test_same_choice),
                                       cmocka_unit_test(test_reach),
                                       cmocka_unit_test(test_same_draw),
                                       cmocka_unit_test(test_draw_from_nothing)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
