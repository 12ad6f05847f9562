/* Many sessions of one model: opened, stepped alone or together, forked, cancelled, reset and
 * closed at random, each gives the tokens, and the bits of their probabilities, that its prompt
 * gives alone. */
#include "golden/going_back.h"

#include "random_bits.h"

enum { N_PROMPTS = 5, MOST_PROMPT = 80, N_TOKENS = 20, N_ACTORS = 6, CONTEXT = 128, CHUNK = 16 };

static const char *const models[] = {
    "llama",  "gemma3",    "gemma2",         "mistral", "deepseek2-v3", "mamba2",        "lfm2",
    "qwen35", "qwen3next", "granite-hybrid", "gpt-oss", "qwen3moe",     "phi3-longrope", "gpt2"};

/* What a prompt gives alone. */
typedef struct text {
    uint32_t prompt[MOST_PROMPT], n_prompt;
    wick_logprob tokens[N_TOKENS];
} text;
static text texts[N_PROMPTS];

typedef struct actor {
    wick_session *session; /* NULL: it is not on the stage */
    const text *follows;
    uint32_t n_told;
} actor;

static uint32_t below(uint32_t n) { return (uint32_t)(random_bits() % n); }

static wick_session *open_actor(wick_model *model, const text *t) {
    wick_session *session;
    wick_error error = {0};
    const wick_session_desc desc = {.context_length = CONTEXT,
                                    .chunk_length = CHUNK,
                                    .max_tokens = N_TOKENS,
                                    .ignore_end = true,
                                    .n_logprobs = 1};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_tokens(session, t->prompt, t->n_prompt), WICK_OK);
    return session;
}

/* One step; what it tells has to be what the text says. */
static void step_actor(actor *a) {
    wick_event event;
    if (wick_session_step(a->session, &event) != WICK_OK) fail_with_error(a->session);
    if (event.kind != WICK_EVENT_TOKEN) {
        if (event.kind == WICK_EVENT_END) assert_int_equal(a->n_told, N_TOKENS);
        return;
    }
    assert_true(a->n_told < N_TOKENS);
    const wick_logprob *const want = &a->follows->tokens[a->n_told++];
    assert_int_equal(event.token, want->id);
    assert_memory_equal(&event.logprobs[0].logprob, &want->logprob, sizeof want->logprob);
}

static void make_texts(wick_model *model) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    for (uint32_t i = 0; i < N_PROMPTS; i++) {
        text *const t = &texts[i];
        t->n_prompt = 1 + below(i % 2 ? MOST_PROMPT : 8);
        for (uint32_t k = 0; k < t->n_prompt; k++) t->prompt[k] = below(info.n_vocab);
        wick_session *const session = open_actor(model, t);
        uint32_t n = 0;
        wick_event event = {.kind = WICK_EVENT_PENDING};
        while (event.kind != WICK_EVENT_END) {
            if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
            if (event.kind == WICK_EVENT_TOKEN) t->tokens[n++] = event.logprobs[0];
        }
        assert_int_equal(n, N_TOKENS);
        wick_session_close(session);
    }
}

static void fork_actor(const actor *from, actor *to) {
    const wick_session_desc desc = {.max_tokens = N_TOKENS, .ignore_end = true, .n_logprobs = 1};
    if (!from->session || to->session) return;
    const wick_status status = wick_session_fork(from->session, &desc, &to->session, NULL);
    if (status == WICK_ERR_STATE) return; /* it is computing */
    assert_int_equal(status, WICK_OK);
    to->follows = from->follows;
    to->n_told = from->n_told;
}

static void begin_again(actor *a) {
    wick_session_reset(a->session);
    a->follows = &texts[below(N_PROMPTS)];
    a->n_told = 0;
    assert_int_equal(
        wick_session_append_tokens(a->session, a->follows->prompt, a->follows->n_prompt), WICK_OK);
}

static void act(wick_model *model, actor *actors) {
    actor *const a = &actors[below(N_ACTORS)];
    const uint32_t what = below(64);
    if (!a->session) {
        if (what > 7) return;
        *a = (actor){.follows = &texts[below(N_PROMPTS)]};
        a->session = open_actor(model, a->follows);
    } else if (what == 0) {
        wick_session_close(a->session);
        a->session = NULL;
    } else if (what == 1) {
        begin_again(a);
    } else if (what == 2) {
        wick_session_cancel(a->session);
    } else if (what == 3) {
        fork_actor(a, &actors[below(N_ACTORS)]);
    } else if (what < 30) {
        wick_error error = {0};
        if (wick_model_step(model, &error) < 0) fail_msg("%s", error.message);
    } else {
        step_actor(a);
    }
}

static void check_model(const char *path, const wick_device_desc *desc, uint64_t cache_limit,
                        uint32_t n_acts) {
    wick_device *device;
    wick_model *model;
    wick_error error = {0};
    const wick_model_desc model_desc = {.cache_limit = cache_limit};
    assert_int_equal(wick_device_open(desc, &device, NULL), WICK_OK);
    if (wick_model_open(device, path, &model_desc, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    actor actors[N_ACTORS] = {{.session = NULL}};
    make_texts(model);
    for (uint32_t i = 0; i < n_acts; i++) act(model, actors);
    for (uint32_t i = 0; i < N_ACTORS; i++) wick_session_close(actors[i].session);
    wick_device_stats stats;
    wick_model_close(model);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
    wick_device_get_stats(device, &stats);
    if (desc->backend == WICK_BACKEND_CPU) assert_int_equal(stats.buffer_bytes, 0);
    wick_device_close(device);
}

static void check_models(wick_device_desc desc, uint64_t cache_limit, uint32_t n_acts) {
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        make_path(models[m], path, sizeof path);
        check_model(path, &desc, cache_limit, n_acts);
    }
}

static void test_exact(void **state) {
    (void)state;
    wick_device_desc desc = device_desc();
    desc.math = WICK_MATH_EXACT;
    check_models(desc, 0, desc.backend == WICK_BACKEND_WEBGPU ? 200 : 1000);
}

static void test_fast(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST}, 0, 1000);
}

/* Room for the longest session alone: others lose what they have in the cache again and again. */
static void test_little_room(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_EXACT}, 1, 1000);
}

static void test_late(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_NULL,
                                    .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
                 0, 200);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact)};
    const struct CMUnitTest others[] = {cmocka_unit_test(test_fast),
                                        cmocka_unit_test(test_little_room),
                                        cmocka_unit_test(test_late)};
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chosen.backend == WICK_BACKEND_WEBGPU) return n_failed;
    return n_failed + cmocka_run_group_tests(others, NULL, NULL);
}
