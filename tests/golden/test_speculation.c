/* Guesses at the tokens to come change nothing: every event of a text, however its tokens are
 * chosen, is that of the same session without guesses. Greedy texts of several families, and all
 * kinds of choice on a model that tells stories. */
#include "golden/going_back.h"

#include "amount.h"
#include "llm/session_struct.h"
#include "random_bits.h"

enum { MOST_EVENTS = 320, N_TEXT = 2048, CONTEXT = 256 };

/* What a session said. */
typedef struct story {
    uint32_t tokens[MOST_EVENTS], n;
    char text[N_TEXT];
    size_t size;
    float logprobs[MOST_EVENTS];
    wick_end_reason reason;
    wick_session_stats stats;
} story;

static void take(story *out, const wick_event *event) {
    assert_true(out->size + event->text_size < N_TEXT);
    memcpy(out->text + out->size, event->text, event->text_size);
    out->size += event->text_size;
    if (event->kind == WICK_EVENT_END) out->reason = event->reason;
    if (event->logprobs == NULL) return;
    assert_true(out->n < MOST_EVENTS);
    out->logprobs[out->n] = event->logprobs[0].logprob;
    out->tokens[out->n++] = event->token;
}

/* With wick_session_prepare after every third token. */
static void tell(wick_model *model, wick_session_desc desc, const uint32_t *ids, uint32_t n,
                 story *out) {
    wick_session *session;
    wick_error error = {0};
    wick_event event = {.kind = WICK_EVENT_PENDING};
    desc.n_logprobs = 1;
    *out = (story){.n = 0};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_tokens(session, ids, n), WICK_OK);
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        take(out, &event);
        wick_status status = WICK_PENDING;
        while (out->n % 3 == 0 && status == WICK_PENDING) status = wick_session_prepare(session);
    }
    /* A second turn goes on from where the first one ended, if the context has room for it. */
    const bool has_room = wick_session_append_tokens(session, ids, n < 3 ? n : 3) != WICK_ERR_STATE;
    assert_true(has_room || out->reason == WICK_END_CONTEXT_FULL);
    for (uint32_t i = 0; i < 8 && has_room; i++) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_END) break;
        take(out, &event);
    }
    wick_session_get_stats(session, &out->stats);
    wick_session_close(session);
}

static void expect_same(const story *got, const story *want) {
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->tokens, want->tokens, want->n * sizeof *want->tokens);
    assert_memory_equal(got->logprobs, want->logprobs, want->n * sizeof *want->logprobs);
    assert_int_equal(got->size, want->size);
    assert_memory_equal(got->text, want->text, want->size);
    assert_int_equal(got->reason, want->reason);
    assert_int_equal(got->stats.n_generated, want->stats.n_generated);
    assert_int_equal(got->stats.n_context, want->stats.n_context);
}

static uint32_t n_drafted, n_accepted;

/* All ways to guess beside none. draft: NULL, there is no such model. */
static void compare(wick_model *model, wick_model *draft, wick_session_desc desc,
                    const uint32_t *ids, uint32_t n) {
    static story want, got;
    desc.speculate = WICK_SPECULATE_NONE;
    tell(model, desc, ids, n, &want);
    assert_int_equal(want.stats.n_drafted, 0);
    desc.draft = draft;
    for (int mode = 0; mode <= (draft ? WICK_SPECULATE_DRAFT : WICK_SPECULATE_NGRAM); mode++) {
        if (mode == WICK_SPECULATE_NONE) continue;
        desc.speculate = (wick_speculate)mode;
        tell(model, desc, ids, n, &got);
        expect_same(&got, &want);
        n_drafted += got.stats.n_drafted;
        n_accepted += got.stats.n_accepted;
    }
}

/* --- Families --- */

static void test_families(void **state) {
    (void)state;
    static const char *const names[] = {"llama",  "gemma3", "deepseek2-v3",
                                        "qwen35", "mamba2", "granite-hybrid"};
    const uint32_t n_prompts = tests_all() ? 40 : 8;
    for (size_t m = 0; m < WK_COUNT(names); m++) {
        char path[1024];
        wick_device *device;
        make_path(names[m], path, sizeof path);
        const wick_device_desc desc = device_desc();
        wick_model *const model = open_model(path, &desc, &device);
        wick_model_info info;
        wick_model_get_info(model, &info);
        const bool is_recurrent = m > 2;
        n_drafted = n_accepted = 0;
        for (uint32_t p = 0; p < n_prompts; p++) {
            uint32_t ids[40];
            const uint32_t n = 1 + (uint32_t)(random_bits() % 40), n_kinds = 2 + p % 9;
            /* Few kinds of tokens, so that there are runs to find. */
            for (uint32_t i = 0; i < n; i++)
                ids[i] = (uint32_t)(7 + random_bits() % n_kinds) % info.n_vocab;
            compare(model, is_recurrent ? NULL : model,
                    (wick_session_desc){
                        .context_length = 128, .max_tokens = 48, .chunk_length = p % 2 ? 16 : 0},
                    ids, n);
        }
        assert_true(n_drafted > n_accepted);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* --- Kinds of choice --- */

static const char grammar[] = "root ::= (word \" \")+\nword ::= [a-z]+ | [A-Z] [a-z]*";
static const char *const stops[] = {"the end", " she said"};
static const char *const breakers[] = {"."};

static const wick_session_desc kinds[] = {
    {.max_tokens = 60},
    {.ignore_end = true}, /* to the end of the context */
    {.max_tokens = 60, .sampler = {.temperature = 0.7F, .seed = 3}},
    {.max_tokens = 60, .sampler = {.temperature = 1.2F, .top_k = 5, .top_p = 0.9F, .seed = 4}},
    {.max_tokens = 60,
     .sampler = {.temperature = 0.5F, .min_p = 0.1F, .typical_p = 0.9F, .seed = 5}},
    {.max_tokens = 60, .sampler = {.temperature = 1, .mirostat_tau = 2, .seed = 6}},
    {.max_tokens = 60,
     .sampler = {.temperature = 1, .xtc_probability = 0.5F, .xtc_threshold = 0.05F, .seed = 7}},
    {.max_tokens = 60, .sampler = {.repeat_penalty = 1.2F, .frequency_penalty = 0.2F}},
    {.max_tokens = 60,
     .sampler = {.dry_multiplier = 0.8F, .dry_breakers = breakers, .n_dry_breakers = 1}},
    {.max_tokens = 60, .sampler = {.grammar = grammar}},
    {.max_tokens = 60, .sampler = {.grammar = grammar, .temperature = 1, .seed = 8}},
    {.max_tokens = 100, .stop = stops, .n_stop = WK_COUNT(stops)},
    {.max_tokens = 1},
};

/* A story that the prompt has and begins again: its tokens are guessed right, until they are not.
 */
static uint32_t make_prompt(wick_model *model, uint32_t number, uint32_t *ids) {
    static const char *const beginnings[] = {"Once upon a time", "One day, Tom", "The dog",
                                             "Lily and her mom"};
    wick_session *session;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    const wick_session_desc desc = {.max_tokens = 70,
                                    .sampler = {.temperature = 0.3F, .seed = 1 + number}};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, beginnings[number % WK_COUNT(beginnings)]),
                     WICK_OK);
    while (event.kind != WICK_EVENT_END)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    size_t n;
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    const uint32_t half = (uint32_t)n / 2;
    memcpy(ids, tokens, n * sizeof *ids);
    memcpy(ids + n, tokens + 1, half * sizeof *ids);
    wick_session_close(session);
    return (uint32_t)n + half;
}

static void test_choices(void **state) {
    (void)state;
    char path[1024];
    wick_device *device;
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_device_desc desc = device_desc();
    for (int math = WICK_MATH_EXACT; math <= WICK_MATH_FAST; math++) {
        desc.math = (wick_math)math;
        if (desc.math == WICK_MATH_FAST && desc.backend == WICK_BACKEND_WEBGPU) continue;
        wick_model *const model = open_model(path, &desc, &device);
        n_drafted = n_accepted = 0;
        for (uint32_t p = 0; p < (tests_all() ? 8U : 2U); p++) {
            uint32_t ids[CONTEXT];
            const uint32_t n = make_prompt(model, p, ids);
            for (size_t k = 0; k < WK_COUNT(kinds); k++) {
                wick_session_desc kind = kinds[k];
                kind.context_length = CONTEXT;
                compare(model, model, kind, ids, n);
            }
        }
        assert_true(n_accepted > 0 && n_drafted > n_accepted);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* A text that is longer than its context is guessed to its end, and no further. */
static void test_shifted(void **state) {
    (void)state;
    enum { LENGTH = 300, HALF = LENGTH / 2 };
    static story want, got;
    char path[1024];
    wick_device *device;
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_device_desc of_device = device_desc();
    wick_model *const model = open_model(path, &of_device, &device);
    wick_session_desc desc = {.context_length = 64,
                              .context_shift = true,
                              .ignore_end = true,
                              .speculate = WICK_SPECULATE_NONE};
    const uint32_t ids[] = {403, 407, 261, 378, 403, 407, 261, 378, 403, 407, 261};
    uint32_t drafted[2];
    for (uint32_t half = 0; half < 2; half++) {
        desc.max_tokens = half == 0 ? HALF : LENGTH;
        desc.speculate = WICK_SPECULATE_NONE;
        tell(model, desc, ids, WK_COUNT(ids), &want);
        assert_true(want.n >= desc.max_tokens);
        desc.speculate = WICK_SPECULATE_NGRAM;
        tell(model, desc, ids, WK_COUNT(ids), &got);
        expect_same(&got, &want);
        drafted[half] = got.stats.n_drafted;
    }
    assert_true(drafted[1] > drafted[0] + 7);
    wick_model_close(model);
    give_back_device(device);
}

/* --- A batch that others have begun --- */

/* Tokens are added while guesses of the session are being computed: they take the guesses' place.
 */
static void test_added(void **state) {
    (void)state;
    char path[1024];
    wick_device *device;
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_device_desc of_device = device_desc();
    wick_model *const model = open_model(path, &of_device, &device);
    const uint32_t ids[] = {403, 407, 261, 378, 403, 407, 261, 378, 403, 407, 261};
    const uint32_t added[] = {270, 310, 290};
    wick_session_desc desc = {.ignore_end = true, .speculate = WICK_SPECULATE_NGRAM};
    wick_session *session, *plain;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, ids, WK_COUNT(ids)), WICK_OK);
    while (event.kind != WICK_EVENT_TOKEN || session->n_ahead < 2)
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
    while (wk_sequence_running(session->sequence) == 0)
        assert_true(wick_model_step(model, NULL) >= 0);
    assert_int_equal(wick_session_append_tokens(session, added, WK_COUNT(added)), WICK_OK);

    desc.speculate = WICK_SPECULATE_NONE;
    size_t n;
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    assert_int_equal(wick_session_open(model, &desc, &plain, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(plain, tokens, n), WICK_OK);
    for (uint32_t i = 0; i < 20; i++) {
        wick_event want = {.kind = WICK_EVENT_PENDING};
        event.kind = WICK_EVENT_PENDING;
        while (want.kind != WICK_EVENT_TOKEN)
            if (wick_session_next(plain, &want) != WICK_OK) fail_with_error(plain);
        while (event.kind != WICK_EVENT_TOKEN)
            if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        assert_int_equal(event.token, want.token);
    }
    wick_session_close(plain);
    wick_session_close(session);
    wick_model_close(model);
    give_back_device(device);
}

/* --- Memory --- */

/* Several rows of logits of the model that tells stories: once armed, there is none for them. */
enum { ROW_BYTES = 512 * sizeof(float) };
typedef struct memory {
    bool is_armed;
    uint32_t n_refused;
} memory;

static void *allocate(void *user, size_t size) {
    memory *const m = user;
    const bool is_refused = m->is_armed && (size == 2 * ROW_BYTES || size == 4 * ROW_BYTES ||
                                            size == 8 * ROW_BYTES || size == 16 * ROW_BYTES);
    m->n_refused += is_refused;
    return is_refused ? NULL : malloc(size);
}

static void release(void *user, void *given, size_t size) {
    (void)user, (void)size;
    free(given);
}

/* A batch that fails with its guesses is tried without them, and no more are made. */
static void test_no_memory(void **state) {
    (void)state;
    char path[1024];
    wick_device *device;
    memory m = {.is_armed = false};
    wick_device_desc desc = device_desc();
    desc.allocator = (wick_allocator){allocate, release, &m};
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_model *const model = open_model(path, &desc, &device);
    static story want, got;
    uint32_t ids[CONTEXT];
    const uint32_t n = make_prompt(model, 0, ids);
    wick_session_desc kind = {.context_length = CONTEXT, .max_tokens = 60};
    kind.speculate = WICK_SPECULATE_NONE;
    tell(model, kind, ids, n, &want);
    kind.speculate = WICK_SPECULATE_NGRAM;
    m.is_armed = true;
    tell(model, kind, ids, n, &got);
    m.is_armed = false;
    expect_same(&got, &want);
    assert_int_equal(m.n_refused, 1);
    assert_int_equal(got.stats.n_drafted, 0);
    wick_model_close(model);
    give_back_device(device);
}

/* --- Refusals --- */

static void test_refused(void **state) {
    (void)state;
    char path[1024];
    wick_device *device;
    wick_error error = {0};
    wick_session *session = NULL;
    const wick_device_desc desc = device_desc();
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_model *const model = open_model(path, &desc, &device);
    make_path("bert", path, sizeof path);
    wick_model *other = NULL;
    assert_int_equal(wick_model_open(device, path, NULL, &other, NULL), WICK_OK);
    assert_int_equal(
        wick_session_open(model, &(wick_session_desc){.draft = other}, &session, &error),
        WICK_ERR_MISMATCH);
    assert_null(session);
    assert_non_null(strstr(error.message, "has another vocabulary than 'stories260K'"));
    assert_int_equal(wick_session_open(model,
                                       &(wick_session_desc){.speculate = WICK_SPECULATE_DRAFT},
                                       &session, &error),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_open(model, &(wick_session_desc){.speculate = (wick_speculate)9},
                                       &session, &error),
                     WICK_ERR_VALUE);
    wick_model_close(other);
    wick_model_close(model);
    give_back_device(device);
}

/* --- What is guessed, and how much of it --- */

static void check_guess(const uint32_t *tokens, uint32_t n, uint32_t length, uint32_t at) {
    wk_speculation s;
    wk_speculate_begin(&s, WICK_SPECULATE_AUTO);
    for (uint32_t i = 1; i <= n; i++) wk_speculate_learn(&s, tokens, i);
    assert_int_equal(s.length, length);
    if (length > 0) assert_int_equal(s.at, at);
}

/* What followed the longest run that the text ends with, of equal ones the latest. */
static void test_look_up(void **state) {
    (void)state;
    static const uint32_t again[] = {1, 2, 3, 1, 2, 3, 9};
    check_guess(again, 4, 0, 0);
    check_guess(again, 5, 2, 2);
    check_guess(again, 6, 3, 3); /* it was right: one more */
    check_guess(again, 7, 0, 0);
    check_guess((const uint32_t[]){1, 2, 3, 4, 9, 2, 3, 5, 8, 1, 2, 3}, 12, 3, 3);
    check_guess((const uint32_t[]){1, 2, 5, 1, 2, 6, 1, 2}, 8, 2, 5);
    check_guess((const uint32_t[]){7, 7}, 2, 0, 0);
    check_guess((const uint32_t[]){7, 7, 7}, 3, 2, 2);
    uint32_t same[40];
    for (uint32_t i = 0; i < WK_COUNT(same); i++) same[i] = 7;
    check_guess(same, 32, 31, 31);
    check_guess(same, 33, 32, 32);
    check_guess(same, 40, 32, 39);
}

/* Each length has its own share of right guesses: 2, 4, 8, 16 and 32 tokens begin one. */
static void test_shares(void **state) {
    (void)state;
    static const uint32_t lengths[] = {2, 3, 4, 7, 8, 15, 16, 31, 32};
    static const uint32_t of_length[] = {0, 0, 1, 1, 2, 2, 3, 3, 4};
    static const uint32_t tokens[] = {5, 6, 5};
    for (size_t i = 0; i < WK_COUNT(lengths); i++) {
        wk_speculation s, before;
        for (uint32_t is_hit = 0; is_hit < 2; is_hit++) {
            wk_speculate_begin(&s, WICK_SPECULATE_AUTO);
            s.length = lengths[i];
            s.at = is_hit ? 0 : 1;
            before = s;
            wk_speculate_learn(&s, tokens, 3);
            for (uint32_t k = 0; k < WK_GUESS_KINDS; k++) {
                const bool is_noted = k == of_length[i];
                assert_true((s.tries[k] != before.tries[k]) == is_noted);
                assert_true((s.hits[k] > before.hits[k]) == (is_noted && is_hit));
            }
        }
    }
}

/* This share of the guesses of any length is right. */
static wk_speculation known(wick_speculate mode, float share) {
    wk_speculation s;
    wk_speculate_begin(&s, mode);
    for (uint32_t k = 0; k < WK_GUESS_KINDS; k++) s.hits[k] = share * (s.tries[k] = 100);
    return s;
}

static void check_depth(double step_ns, const uint64_t *costs, uint32_t n_beside, uint32_t most,
                        uint32_t want) {
    wk_speculation s = known(WICK_SPECULATE_AUTO, 1);
    uint64_t own[WK_COST_CLASSES];
    memcpy(own, costs, sizeof own);
    const uint32_t length = step_ns > 0 ? 0 : 2;
    assert_int_equal(wk_speculate_depth(&s, length, step_ns, own, n_beside, most), want);
}

/* As many guesses as give the most tokens for the time, where that is a twentieth more than without
 * them: costs are those of 1, 2, 4, ... rows. */
static void test_depth(void **state) {
    (void)state;
    static const uint64_t flat[WK_COST_CLASSES] = {100, 100, 100, 100, 100, 100};
    static const uint64_t steep[WK_COST_CLASSES] = {100, 200, 400, 800, 1600, 3200};
    static const uint64_t at_bound[WK_COST_CLASSES] = {100, 190, 400, 800, 1600, 3200};
    static const uint64_t above[WK_COST_CLASSES] = {100, 191, 400, 800, 1600, 3200};
    static const uint64_t unknown[WK_COST_CLASSES] = {100, 0, 0, 0, 0, 0};
    static const uint64_t nothing[WK_COST_CLASSES] = {WK_COST_SEEN};
    static const uint64_t later[WK_COST_CLASSES] = {100, 100, WK_COST_SEEN, 100, 100, 100};
    check_depth(0, flat, 0, 31, 31);
    check_depth(0, flat, 0, 5, 5);
    check_depth(0, flat, 0, 0, 0);
    check_depth(0, flat, 3, 31, 28);
    check_depth(0, flat, 15, 31, 16);
    check_depth(0, flat, 30, 31, 0);
    check_depth(0, flat, 31, 31, 0);
    check_depth(0, steep, 0, 31, 0);
    check_depth(0, at_bound, 0, 31, 1);
    check_depth(0, above, 0, 31, 0);
    check_depth(0, unknown, 0, 31, 1); /* tried, and no larger one yet */
    check_depth(0, later, 0, 31, 3);
    check_depth(0, nothing, 0, 31, 0);
    check_depth(90, flat, 0, 31, 31); /* of a draft model, which takes time for each */
    check_depth(100, flat, 0, 31, 0);
    for (uint32_t most = 6; most <= 8; most++) { /* where it is not asked what pays */
        wk_speculation forced = known(WICK_SPECULATE_NGRAM, 0);
        uint64_t costs[WK_COST_CLASSES] = {0};
        assert_int_equal(wk_speculate_depth(&forced, 2, 0, costs, 0, most), most < 7 ? most : 7);
    }
}

/* What did not pay 128 times is measured again, where the guesses are good enough to pay. */
static void test_refusals(void **state) {
    (void)state;
    for (int is_good = 0; is_good < 2; is_good++) {
        wk_speculation s = known(WICK_SPECULATE_AUTO, is_good ? 1.0F : 0.0F);
        uint64_t costs[WK_COST_CLASSES] = {100, 200, 400, 800, 1600, 3200};
        for (int i = 1; i <= 128; i++) {
            assert_int_equal(costs[1], 200);
            assert_int_equal(wk_speculate_depth(&s, 2, 0, costs, 0, 31), 0);
        }
        assert_int_equal(costs[0], 100);
        for (int i = 1; i < WK_COST_CLASSES; i++)
            assert_int_equal(costs[i], is_good ? WK_COST_SEEN : 100 << i);
    }
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_up),  cmocka_unit_test(test_shares),
        cmocka_unit_test(test_depth),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_families), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_shifted),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
