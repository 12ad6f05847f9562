/* Perplexity and divergence: which tokens are scored, against the logits of a session; and what is
 * refused. */
#include <wick/judge.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "small_model.h"
#include "stories_session.h"

#include <math.h>
#include <string.h>

enum { N_IDS = 40, CONTEXT = 16, N_VOCAB = 512, BEGIN = 1 };

static uint32_t ids[N_IDS];

static int setup_ids(void **state) {
    for (uint32_t i = 0; i < N_IDS; i++) ids[i] = 3 + i * 37 % 500;
    ids[0] = BEGIN;
    return setup(state);
}

static wick_judgement judge(wick_model *base, const wick_judge_desc *desc) {
    wick_judging *judging;
    wick_error error = {0};
    wick_progress progress = {0};
    if (wick_judge_start(model, base, ids, N_IDS, desc, &judging, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_status status;
    while ((status = wick_judge_poll(judging, &progress, &error)) == WICK_PENDING) {
    }
    assert_int_equal(status, WICK_OK);
    assert_true(progress.done == progress.total);
    assert_int_equal(wick_judge_poll(judging, NULL, NULL), WICK_OK);
    wick_judgement judgement;
    wick_judge_get(judging, &judgement);
    wick_judge_finish(judging);
    return judgement;
}

static double nll_of(const float *logits, uint32_t token) {
    double total = 0;
    for (int i = 0; i < N_VOCAB; i++) total += exp((double)logits[i]);
    return log(total) - (double)logits[token];
}

/* The sum over the tokens of a chunk from first on, read by a session of its own. */
static double sum_of_chunk(const uint32_t *given, uint32_t first) {
    uint32_t chunk[CONTEXT];
    memcpy(chunk, given, sizeof chunk);
    chunk[0] = BEGIN;
    const wick_session_desc desc = {.context_length = CONTEXT, .logits = WICK_LOGITS_ALL};
    wick_session *const session = open_session(&desc);
    assert_int_equal(wick_session_append_tokens(session, chunk, CONTEXT), WICK_OK);
    double sum = 0;
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        const uint32_t next = event.position + 1;
        if (next < CONTEXT && next >= first) sum += nll_of(event.logits, chunk[next]);
    }
    wick_session_close(session);
    return sum;
}

static void test_counting(void **state) {
    (void)state;
    const struct {
        uint32_t n_unscored, first;
    } cases[] = {{0, CONTEXT / 2 + 1}, {1, 1}, {CONTEXT - 1, CONTEXT - 1}};
    for (size_t i = 0; i < 3; i++) {
        const uint32_t first = cases[i].first;
        const wick_judgement j = judge(
            NULL, &(wick_judge_desc){.context_length = CONTEXT, .n_unscored = cases[i].n_unscored});
        assert_int_equal(j.n_chunks, 2); /* 8 of the 40 tokens are left */
        assert_int_equal(j.n_scored, 2 * (CONTEXT - first));
        const double sum = sum_of_chunk(ids, first) + sum_of_chunk(ids + CONTEXT, first);
        assert_true(fabs(j.model.nll - sum / (double)j.n_scored) < 1e-9);
        assert_true(fabs(j.model.perplexity - exp(j.model.nll)) < 1e-9 * j.model.perplexity);
        assert_true(j.model.nll_error > 0 && j.kl == 0);
    }
}

/* Batches and cuts of them are no matter. */
static void test_chunks_of_work(void **state) {
    (void)state;
    const wick_judgement a = judge(NULL, &(wick_judge_desc){.context_length = CONTEXT});
    const wick_judgement b =
        judge(NULL, &(wick_judge_desc){.context_length = CONTEXT, .chunk_length = 3});
    assert_true(a.model.nll == b.model.nll && a.model.nll_error == b.model.nll_error);
    const wick_judgement shortest = judge(NULL, &(wick_judge_desc){.context_length = 2});
    assert_int_equal(shortest.n_scored, N_IDS / 2);
}

static void test_base(void **state) {
    (void)state;
    const wick_judgement same = judge(model, &(wick_judge_desc){.context_length = CONTEXT});
    assert_true(same.model.nll == same.base.nll);
    assert_true(same.kl == 0 && same.kl_largest == 0 && same.log_ratio == 0 && same.same_top == 1);
    /* The type of cache is the model's alone. */
    const wick_judgement half =
        judge(model, &(wick_judge_desc){.context_length = CONTEXT, .cache = WICK_CACHE_F16});
    assert_true(half.model.nll != same.model.nll && half.base.nll == same.base.nll);
    assert_true(half.kl > 0 && half.kl < 1e-3);
}

static void refuse(wick_status status, wick_model *base, const wick_judge_desc *desc, size_t n,
                   const char *word) {
    wick_judging *judging;
    wick_error error = {0};
    assert_int_equal(wick_judge_start(model, base, ids, n, desc, &judging, &error), status);
    assert_null(judging);
    assert_non_null(strstr(error.message, word));
}

static void test_refusals(void **state) {
    (void)state;
    refuse(WICK_ERR_VALUE, NULL, NULL, N_IDS, "40 of the 512 tokens");
    refuse(WICK_ERR_VALUE, NULL, &(wick_judge_desc){.context_length = 1}, N_IDS, "one token");
    refuse(WICK_ERR_VALUE, NULL, &(wick_judge_desc){.context_length = 8, .n_unscored = 8}, N_IDS,
           "no token is scored");
    refuse(WICK_ERR_VALUE, NULL, &(wick_judge_desc){.context_length = 8, .chunk_length = 9000},
           N_IDS, "chunk");
    refuse(WICK_ERR_VALUE, NULL, &(wick_judge_desc){.context_length = 8}, 0, "0 of the 8 tokens");
    wick_judging *judging;
    assert_int_equal(wick_judge_start(NULL, NULL, ids, 1, NULL, &judging, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_judge_start(model, NULL, NULL, 1, NULL, &judging, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_judge_start(model, NULL, ids, 1, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_judge_poll(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    wick_judge_finish(NULL);
}

/* From a few KB in memory, two at a time, the last weight of the output's norm replaced. */
static wick_model *open_small(const small_model *small, float last_weight) {
    static gguf_bytes bytes[2];
    static size_t n_made;
    gguf_bytes *const file = &bytes[n_made++ % 2];
    *file = (gguf_bytes){.size = 0};
    small_write(small, true, file);
    memcpy(file->data + file->size - sizeof last_weight, &last_weight, sizeof last_weight);
    wick_model *made = NULL;
    wick_model_loading *loading = NULL;
    wick_error error = {0};
    const wick_source source = wick_source_memory(file->data, file->size);
    if (wick_model_open_start(device, source, NULL, &loading, &error) != WICK_OK)
        fail_msg("%s", error.message);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
    }
    if (wick_model_open_finish(loading, &made, &error) != WICK_OK) fail_msg("%s", error.message);
    return made;
}

static void test_vocabularies(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_model *const other = open_small(&small, 0.1F);
    refuse(WICK_ERR_VALUE, other, &(wick_judge_desc){.context_length = 8}, N_IDS,
           "512 tokens, and 6 in the base");
    wick_model_close(other);
}

static void test_no_numbers(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_model *const good = open_small(&small, 0.1F), *const bad = open_small(&small, NAN);
    const uint32_t few[] = {BEGIN, 3, 4};
    const wick_judge_desc desc = {.context_length = 3};
    wick_judging *judging;
    wick_error error = {0};
    assert_int_equal(wick_judge_start(good, bad, few, 3, &desc, &judging, &error), WICK_OK);
    wick_status status;
    while ((status = wick_judge_poll(judging, NULL, &error)) == WICK_PENDING) {
    }
    assert_int_equal(status, WICK_ERR_VALUE);
    assert_string_equal(error.message, "the logits after token 1 of the base are not numbers");
    wick_judge_finish(judging);
    wick_model_close(bad);
    wick_model_close(good);
}

static void test_bad_token(void **state) {
    (void)state;
    wick_judging *judging;
    wick_error error = {0};
    ids[5] = N_VOCAB;
    assert_int_equal(wick_judge_start(model, NULL, ids, N_IDS,
                                      &(wick_judge_desc){.context_length = CONTEXT}, &judging,
                                      &error),
                     WICK_OK);
    assert_int_equal(wick_judge_poll(judging, NULL, &error), WICK_ERR_INDEX);
    assert_non_null(strstr(error.message, "512"));
    wick_judgement judgement;
    wick_judge_get(judging, &judgement);
    assert_int_equal(judgement.n_scored, 0);
    wick_judge_finish(judging);
    ids[5] = 3;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting),     cmocka_unit_test(test_chunks_of_work),
        cmocka_unit_test(test_base),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_vocabularies), cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_bad_token),
    };
    return cmocka_run_group_tests(tests, setup_ids, teardown);
}
