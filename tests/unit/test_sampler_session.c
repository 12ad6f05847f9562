/* sample/sampler in a session: log probabilities against the logits, breakers as text, repeatable
 * draws with everything switched on, refusals. On the small model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "sample/logprobs.h"
#include "sample/sampler.h"
#include "stories_session.h"

#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 512, MOST_TOKENS = 64 };

/* --- Log probabilities --- */

/* Log softmax of the logits after each token, and the best of them, one after another. */
static void check_logprobs(const float *logits, uint32_t token, const wick_logprob *got,
                           size_t n_best) {
    double total = 0;
    for (int i = 0; i < N_VOCAB; i++) total += exp((double)logits[i]);
    bool seen[N_VOCAB] = {0};
    assert_int_equal(got[0].id, token);
    for (size_t i = 0; i <= n_best; i++) {
        const double want = (double)logits[got[i].id] - log(total);
        if (fabs(want - (double)got[i].logprob) > 1e-4)
            fail_msg("log probability %zu is %g, expected %g", i, (double)got[i].logprob, want);
        if (i == 0) continue;
        int best = -1;
        for (int k = 0; k < N_VOCAB; k++)
            if (!seen[k] && (best < 0 || logits[k] > logits[best])) best = k;
        seen[best] = true;
        assert_int_equal(got[i].id, best);
    }
}

static void test_logprobs_are_the_models(void **state) {
    (void)state;
    static wick_logprob got[MOST_TOKENS][8];
    const wick_session_desc desc = {
        .max_tokens = 20,
        .n_logprobs = 5,
        .sampler = {.temperature = 1.5f, .repeat_penalty = 1.3f, .top_k = 30, .seed = 4}};
    wick_session *session = open_session(&desc);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_event event = {0};
    size_t n_got = 0, n;
    while (event.kind != WICK_EVENT_END) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        assert_int_equal(event.n_logprobs, event.kind == WICK_EVENT_TOKEN ? 6 : 0);
        if (event.n_logprobs > 0) memcpy(got[n_got++], event.logprobs, 6 * sizeof **got);
    }
    uint32_t ids[MOST_TOKENS];
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    assert_int_equal(n, 25);
    memcpy(ids, tokens, n * sizeof *ids);
    wick_session_close(session);
    assert_int_equal(n_got, 20);
    session = open_session(&(wick_session_desc){.logits = WICK_LOGITS_ALL});
    assert_int_equal(wick_session_append_tokens(session, ids, n), WICK_OK);
    for (event.kind = WICK_EVENT_PENDING; event.kind != WICK_EVENT_END;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        const uint32_t at = event.position;
        if (event.kind == WICK_EVENT_LOGITS && at >= 4 && at + 1 < n)
            check_logprobs(event.logits, ids[at + 1], got[at - 4], 5);
    }
    wick_session_close(session);
}

static void next_token(wick_session *session, wick_event *event) {
    event->kind = WICK_EVENT_PROMPT;
    while (event->kind == WICK_EVENT_PROMPT)
        assert_int_equal(wick_session_next(session, event), WICK_OK);
    assert_int_equal(event->kind, WICK_EVENT_TOKEN);
}

/* What a sampler with a temperature and top_k draws by, beside the model's own probabilities. */
static void test_drawn_logprobs(void **state) {
    (void)state;
    enum { TOP_K = 3 };
    const double temperature = 1.5;
    wick_session_desc desc = {
        .max_tokens = 12,
        .n_logprobs = 5,
        .sampler = {.temperature = (float)temperature, .top_k = TOP_K, .seed = 4}};
    wick_session *const plain = open_session(&desc);
    desc.drawn_logprobs = true;
    wick_session *const drawn = open_session(&desc);
    wick_event models = {0}, event = {0};
    assert_int_equal(wick_session_append_text(plain, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_append_text(drawn, "Once upon a time"), WICK_OK);
    for (int n = 0; n < 12; n++) {
        next_token(plain, &models);
        next_token(drawn, &event);
        assert_int_equal(event.n_logprobs, 1 + TOP_K);
        assert_int_equal(event.logprobs[0].id, event.token);
        double total = 0, sum = 0;
        for (size_t i = 1; i <= TOP_K; i++)
            total += exp((double)models.logprobs[i].logprob / temperature);
        for (size_t i = 1; i <= TOP_K; i++) {
            const double want = exp((double)models.logprobs[i].logprob / temperature) / total;
            const double got = exp((double)event.logprobs[i].logprob);
            assert_int_equal(event.logprobs[i].id, models.logprobs[i].id);
            assert_true(fabs(got - want) < 1e-5);
            sum += got;
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    wick_session_close(plain);
    wick_session_close(drawn);
}

static void test_drawn_logprobs_of_the_best(void **state) {
    (void)state;
    wick_session *const session = open_session(
        &(wick_session_desc){.max_tokens = 3, .n_logprobs = 5, .drawn_logprobs = true});
    wick_event event = {0};
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    next_token(session, &event);
    assert_int_equal(event.n_logprobs, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(event.logprobs[i].id, event.token);
        assert_true(event.logprobs[i].logprob == 0);
    }
    wick_session_close(session);
}

static void test_logprobs_of_all_and_of_none(void **state) {
    (void)state;
    static float logits[N_VOCAB];
    static wick_logprob out[N_VOCAB + 1];
    for (int i = 0; i < N_VOCAB; i++) logits[i] = (float)(i * 73 % N_VOCAB / 2) * 0.01f; /* ties */
    for (size_t n = 0; n <= N_VOCAB; n += n < 4 ? 1 : 127) {
        wk_logprobs_find(logits, N_VOCAB, 9, n, out);
        check_logprobs(logits, 9, out, n);
    }
    logits[3] = NAN;
    logits[4] = INFINITY;
    wk_logprobs_find(logits, N_VOCAB, 9, N_VOCAB, out);
    double sum = 0;
    for (int i = 1; i <= N_VOCAB; i++) sum += exp((double)out[i].logprob);
    assert_true(fabs(sum - 1) < 1e-5);
    assert_true(out[N_VOCAB].logprob == -INFINITY && out[N_VOCAB - 1].logprob == -INFINITY);
}

static void test_too_many_logprobs(void **state) {
    (void)state;
    wick_session *session;
    wick_event event = {0};
    const wick_session_desc many = {.n_logprobs = UINT32_MAX};
    assert_int_equal(wick_session_open(model, &many, &session, NULL), WICK_ERR_VALUE);
    /* More than there are tokens: all of them. An end token has some, too. */
    const wick_logit_bias ends = {wick_token_end(wick_model_tokenizer(model)), 1000};
    session = open_session(
        &(wick_session_desc){.n_logprobs = 1000, .sampler = {.bias = &ends, .n_bias = 1}});
    assert_int_equal(wick_session_append_text(session, "Once"), WICK_OK);
    while (event.kind != WICK_EVENT_END)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.reason, WICK_END_TOKEN);
    assert_int_equal(event.n_logprobs, N_VOCAB + 1);
    assert_int_equal(event.logprobs[0].id, event.token);
    wick_session_close(session);
}

/* --- Sampling --- */

static const char *const breakers[] = {"\n", " time"};

static const wick_session_desc everything = {.max_tokens = 60,
                                             .n_logprobs = 2,
                                             .sampler = {.temperature = 0.9f,
                                                         .top_k = 100,
                                                         .typical_p = 0.98f,
                                                         .top_p = 0.95f,
                                                         .min_p = 0.02f,
                                                         .repeat_penalty = 1.05f,
                                                         .frequency_penalty = 0.1f,
                                                         .presence_penalty = 0.1f,
                                                         .dry_multiplier = 0.8f,
                                                         .dry_breakers = breakers,
                                                         .n_dry_breakers = 2,
                                                         .xtc_probability = 0.5f,
                                                         .xtc_threshold = 0.1f,
                                                         .seed = 12}};

static void generate(wick_session *session, uint32_t *ids, size_t *n) {
    wick_event event = {0};
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    while (event.kind != WICK_EVENT_END)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    const uint32_t *const tokens = wick_session_tokens(session, n);
    assert_true(*n <= 2 * MOST_TOKENS);
    memcpy(ids, tokens, *n * sizeof *ids);
}

static void test_everything_repeats(void **state) {
    (void)state;
    uint32_t ids[3][2 * MOST_TOKENS];
    size_t n[3];
    for (int i = 0; i < 3; i++) {
        wick_session_desc desc = everything;
        if (i == 2) desc.sampler.seed++;
        wick_session *const session = open_session(&desc);
        generate(session, ids[i], &n[i]);
        wick_session_close(session);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(ids[0], ids[1], n[0] * sizeof **ids);
    assert_true(n[2] != n[0] || memcmp(ids[2], ids[0], n[0] * sizeof **ids) != 0);
}

/* The last token of "a" and the text. */
static void test_breakers_are_tokens(void **state) {
    (void)state;
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(model);
    uint32_t want[16];
    size_t n;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_sampler sampler;
    assert_int_equal(
        wk_sampler_make(&heap, &everything.sampler, tokenizer, N_VOCAB, &sampler, NULL), WICK_OK);
    int n_bits = 0;
    for (uint32_t id = 0; id < N_VOCAB; id++) n_bits += sampler.dry.breakers[id / 8] >> id % 8 & 1;
    assert_int_equal(n_bits, 2);
    for (int i = 0; i < 2; i++) {
        char text[16];
        const int size = snprintf(text, sizeof text, "a%s", breakers[i]);
        assert_int_equal(wick_tokenize(tokenizer, text, (size_t)size, 0, want, 16, &n), WICK_OK);
        const uint32_t id = want[n - 1];
        assert_true(sampler.dry.breakers[id / 8] >> id % 8 & 1);
    }
    wk_sampler_free(&heap, &sampler);

    /* What the text joins to: "and" is one token. */
    const wick_sampler_desc joined = {
        .dry_multiplier = 1, .dry_breakers = (const char *const[]){"nd"}, .n_dry_breakers = 1};
    assert_int_equal(wick_tokenize(tokenizer, "and", 3, 0, want, 16, &n), WICK_OK);
    assert_int_equal(n, 1);
    assert_int_equal(wk_sampler_make(&heap, &joined, tokenizer, N_VOCAB, &sampler, NULL), WICK_OK);
    for (uint32_t id = 0; id < N_VOCAB; id++)
        assert_int_equal(sampler.dry.breakers[id / 8] >> id % 8 & 1, id == want[0]);
    wk_sampler_free(&heap, &sampler);
    assert_int_equal(heap.live_bytes, 0);
}

/* Greedy, the small model repeats itself before long; DRY ends that. */
static void test_dry_ends_a_repetition(void **state) {
    (void)state;
    static const uint32_t loop[] = {403, 407, 261, 378};
    uint32_t ids[48];
    for (size_t i = 0; i < 48; i++) ids[i] = loop[i % 4];
    const wick_logit_bias wants[] = {{loop[0], 20}, {loop[1], 10}};
    wick_session_desc desc = {.max_tokens = 1, .sampler = {.bias = wants, .n_bias = 2}};
    for (int i = 0; i < 2; i++) {
        wick_event event = {0};
        wick_session *const session = open_session(&desc);
        assert_int_equal(wick_session_append_tokens(session, ids, 48), WICK_OK);
        while (event.kind != WICK_EVENT_TOKEN)
            assert_int_equal(wick_session_next(session, &event), WICK_OK);
        assert_int_equal(event.token == loop[0], i == 0);
        wick_session_close(session);
        desc.sampler.dry_multiplier = 1;
    }
}

static void test_a_reset_forgets_mirostat(void **state) {
    (void)state;
    uint32_t ids[2][2 * MOST_TOKENS];
    size_t n[2];
    /* What may surprise by nothing is the best token alone; only mu could let others in. */
    const wick_session_desc desc = {
        .max_tokens = 40,
        .sampler = {.temperature = 1, .mirostat_tau = 0.01f, .mirostat_eta = 10, .seed = 3}};
    for (int i = 0; i < 2; i++) {
        wick_session *const session = open_session(&desc);
        generate(session, ids[i], &n[i]);
        if (i == 1) {
            wick_session_reset(session);
            uint32_t again[2 * MOST_TOKENS];
            size_t n_again;
            generate(session, again, &n_again);
            assert_int_equal(again[5], ids[0][5]); /* the first one after the prompt */
        }
        wick_session_close(session);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(ids[0], ids[1], n[0] * sizeof **ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logprobs_are_the_models),
        cmocka_unit_test(test_drawn_logprobs),
        cmocka_unit_test(test_drawn_logprobs_of_the_best),
        cmocka_unit_test(test_logprobs_of_all_and_of_none),
        cmocka_unit_test(test_too_many_logprobs),
        cmocka_unit_test(test_everything_repeats),
        cmocka_unit_test(test_breakers_are_tokens),
        cmocka_unit_test(test_dry_ends_a_repetition),
        cmocka_unit_test(test_a_reset_forgets_mirostat),
    };
    return cmocka_run_group_tests_name("sampler_session", tests, setup, teardown);
}
