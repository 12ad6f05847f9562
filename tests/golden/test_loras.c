/* Sessions of one model with adapters of their own: in one batch each gives the tokens, and the
 * bits of their probabilities, that it gives alone; what is exchanged in the middle of a text, as
 * if the text had been read with it; applied to the whole model the same numbers. */
#include "golden/going_back.h"

#include "golden/lora_files.h"

#include <wick/lora.h>

#include <unistd.h>

enum {
    N_LORAS = 3,
    N_KINDS = 6,
    N_PROMPTS = 3,
    MOST_PROMPT = 70,
    N_TOKENS = 12,
    N_ACTORS = 8,
    CONTEXT = 128,
    CHUNK = 16
};

static const char *const models[] = {
    "llama",  "gemma3",    "gemma2",         "mistral", "deepseek2-v3", "mamba2",        "lfm2",
    "qwen35", "qwen3next", "granite-hybrid", "gpt-oss", "qwen3moe",     "phi3-longrope", "gpt2"};

static wick_lora *loras[N_LORAS];

/* What a session computes with. */
typedef struct kind {
    size_t n;
    struct {
        int lora;
        float scale;
    } uses[N_LORAS];
} kind;
static const kind kinds[N_KINDS] = {
    {.n = 0},
    {.n = 1, .uses = {{0, 1}}},
    {.n = 1, .uses = {{1, 0.5F}}},
    {.n = 1, .uses = {{2, -2}}},
    {.n = 2, .uses = {{2, 1}, {0, 0.3F}}},
    {.n = 3, .uses = {{0, 1}, {1, 1}, {2, 1}}},
};

/* What a prompt gives alone. */
typedef struct text {
    const kind *kind;
    uint32_t prompt[MOST_PROMPT], n_prompt;
    wick_logprob tokens[N_TOKENS];
} text;
static text texts[N_KINDS][N_PROMPTS];

typedef struct actor {
    wick_session *session; /* NULL: it is not on the stage */
    const text *follows;
    uint32_t n_told;
} actor;

static uint32_t below(uint32_t n) { return (uint32_t)(random_bits() % n); }

static void choose(wick_session *session, const kind *k) {
    wick_lora_use uses[N_LORAS];
    for (size_t i = 0; i < k->n; i++)
        uses[i] = (wick_lora_use){loras[k->uses[i].lora], k->uses[i].scale};
    if (wick_session_set_loras(session, uses, k->n) != WICK_OK) fail_with_error(session);
}

static wick_session *open_empty(wick_model *model, const kind *k) {
    wick_session *session;
    wick_error error = {0};
    const wick_session_desc desc = {.context_length = CONTEXT,
                                    .chunk_length = CHUNK,
                                    .max_tokens = N_TOKENS,
                                    .ignore_end = true,
                                    .n_logprobs = 1};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    choose(session, k);
    return session;
}

static wick_session *open_actor(wick_model *model, const text *t) {
    wick_session *const session = open_empty(model, t->kind);
    assert_int_equal(wick_session_append_tokens(session, t->prompt, t->n_prompt), WICK_OK);
    return session;
}

static uint32_t finish(wick_session *session, wick_logprob *tokens) {
    uint32_t n = 0;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_TOKEN) tokens[n++] = event.logprobs[0];
    }
    return n;
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

/* The same prompts for all kinds, which must not share what was computed of them. */
static void make_texts(wick_model *model) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    for (uint32_t i = 0; i < N_PROMPTS; i++) {
        text of = {.n_prompt = 1 + below(i % 2 ? MOST_PROMPT : 8)};
        for (uint32_t k = 0; k < of.n_prompt; k++) of.prompt[k] = below(info.n_vocab);
        for (uint32_t k = 0; k < N_KINDS; k++) {
            text *const t = &texts[k][i];
            *t = of;
            t->kind = &kinds[k];
            wick_session *const session = open_actor(model, t);
            assert_int_equal(finish(session, t->tokens), N_TOKENS);
            wick_session_close(session);
            if (k > 0) assert_memory_not_equal(t->tokens, texts[0][i].tokens, sizeof t->tokens);
        }
    }
}

static const text *any_text(void) { return &texts[below(N_KINDS)][below(N_PROMPTS)]; }

static void act(wick_model *model, actor *actors) {
    actor *const a = &actors[below(N_ACTORS)];
    const uint32_t what = below(64);
    if (a->session == NULL) {
        if (what > 15) return;
        *a = (actor){.follows = any_text()};
        a->session = open_actor(model, a->follows);
    } else if (what == 0) {
        wick_session_close(a->session);
        a->session = NULL;
    } else if (what == 1) {
        wick_session_reset(a->session);
        *a = (actor){.session = a->session, .follows = any_text()};
        choose(a->session, a->follows->kind);
        assert_int_equal(
            wick_session_append_tokens(a->session, a->follows->prompt, a->follows->n_prompt),
            WICK_OK);
    } else if (what == 2) {
        wick_session_cancel(a->session);
    } else if (what < 30) {
        wick_error error = {0};
        if (wick_model_step(model, &error) < 0) fail_msg("%s", error.message);
    } else {
        step_actor(a);
    }
}

/* In the middle of a text, while others compute: the tokens to come are those of a session that
 * reads all with the new adapters. */
static void exchange(wick_model *model, const kind *from, const kind *to) {
    wick_logprob want[N_TOKENS], found[N_TOKENS];
    wick_session *const session = open_empty(model, from);
    wick_event event = {.kind = WICK_EVENT_PENDING};
    uint32_t n = 0;
    assert_int_equal(wick_session_append_tokens(session, texts[0][1].prompt, texts[0][1].n_prompt),
                     WICK_OK);
    while (n < 4) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        n += event.kind == WICK_EVENT_TOKEN;
    }
    choose(session, to);
    size_t n_read;
    const uint32_t *const ids = wick_session_tokens(session, &n_read);
    wick_session *const other = open_empty(model, to);
    assert_int_equal(wick_session_append_tokens(other, ids, n_read), WICK_OK);
    assert_int_equal(finish(session, found), N_TOKENS - 4);
    assert_int_equal(finish(other, want), N_TOKENS);
    assert_memory_equal(found, want, (N_TOKENS - 4) * sizeof *want);
    wick_session_close(session);
    wick_session_close(other);
}

static void check_use(wick_model *model) {
    wick_error error = {0};
    wick_lora_info info;
    wick_session *const session = open_empty(model, &kinds[5]);
    wick_lora_get_info(loras[1], &info);
    assert_int_equal(info.n_sessions, 1);
    assert_int_equal(wick_lora_close(loras[1], &error), WICK_ERR_STATE);
    print_message("%s\n", error.message);
    wick_session *fork;
    assert_int_equal(wick_session_fork(session, NULL, &fork, NULL), WICK_OK);
    wick_session_close(session);
    wick_lora_get_info(loras[1], &info);
    assert_int_equal(info.n_sessions, 1);
    wick_session_close(fork);
}

static void make_loras(const wick_model *model, char paths[N_LORAS][64]) {
    static lora_values values;
    static const int64_t ranks[N_LORAS] = {4, 20, 3};
    for (size_t i = 0; i < N_LORAS; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/wick-loras-%ld-%zu.gguf", (long)getpid(), i);
        lora_make(model, ranks[i], i % 2, 1 + i, &values);
        lora_write(model, &values, i == 2 ? 0 : 8, NULL, paths[i]);
        lora_free(&values);
    }
}

static void open_lora(wick_model *model, const char *path, wick_lora **out) {
    wick_error error = {0};
    if (wick_lora_open(model, path, out, &error) != WICK_OK) fail_msg("%s", error.message);
}

static void merge(const char *path, const char *lora, const char *to) {
    const wick_merge adapter = {lora, 1};
    const wick_quantize_desc desc = {
        .type = "F32", .adapters = &adapter, .n_adapters = 1, .n_threads = 1, .replace = true};
    wick_quantizing *quantizing;
    wick_error error = {.status = WICK_OK};
    if (wick_quantize_start(path, to, &desc, &quantizing, &error) != WICK_OK)
        fail_msg("%s", error.message);
    while (wick_quantize_poll(quantizing, NULL, &error) == WICK_PENDING) continue;
    assert_int_equal(wick_quantize_finish(quantizing, true, &error), WICK_OK);
}

/* Another model that has the first adapter whole, or in its weights. */
static void check_whole(wick_device *device, const char *path, const char *lora, bool is_merged) {
    wick_model *model;
    char merged[80];
    snprintf(merged, sizeof merged, "/tmp/wick-merged-%ld.gguf", (long)getpid());
    if (is_merged) merge(path, lora, merged);
    assert_int_equal(wick_model_open(device, is_merged ? merged : path, NULL, &model, NULL),
                     WICK_OK);
    if (!is_merged) assert_int_equal(wick_model_add_adapter(model, lora, 1, NULL), WICK_OK);
    double most = 0;
    for (size_t i = 0; i < N_PROMPTS; i++) {
        text t = texts[1][i];
        t.kind = &kinds[0];
        wick_logprob found[N_TOKENS];
        wick_session *const session = open_actor(model, &t);
        assert_int_equal(finish(session, found), N_TOKENS);
        wick_session_close(session);
        for (size_t k = 0; k < N_TOKENS && found[k].id == t.tokens[k].id; k++)
            most = fmax(most, fabs((double)(found[k].logprob - t.tokens[k].logprob)));
        assert_int_equal(found[0].id, t.tokens[0].id);
    }
    print_message("%s: %s at most %.1e off\n", path, is_merged ? "merged" : "for all sessions",
                  most);
    assert_true(most < 1e-4);
    wick_model_close(model);
    if (is_merged) unlink(merged);
}

static void check_model(const char *path, const wick_device_desc *desc, uint32_t n_acts) {
    wick_device *device;
    wick_model *const model = open_model(path, desc, &device);
    char files[N_LORAS][64];
    make_loras(model, files);
    for (size_t i = 0; i < N_LORAS; i++) open_lora(model, files[i], &loras[i]);
    actor actors[N_ACTORS] = {{.session = NULL}};
    make_texts(model);
    for (uint32_t i = 0; i < n_acts; i++) {
        act(model, actors);
        if (i == n_acts / 2) exchange(model, &kinds[1], &kinds[2]);
        if (i == n_acts / 3) exchange(model, &kinds[0], &kinds[5]);
        if (i == n_acts / 4) exchange(model, &kinds[4], &kinds[0]);
        /* Another one comes and goes, and takes the memory of all. */
        wick_lora *more[3];
        for (size_t k = 0; k < 3 && i % 300 == 100; k++) open_lora(model, files[k], &more[k]);
        for (size_t k = 0; k < 3 && i % 300 == 100; k++)
            assert_int_equal(wick_lora_close(more[k], NULL), WICK_OK);
    }
    for (uint32_t i = 0; i < N_ACTORS; i++) wick_session_close(actors[i].session);
    check_use(model);
    if (desc->math == WICK_MATH_EXACT) {
        check_whole(device, path, files[0], false);
        check_whole(device, path, files[0], true);
    }
    for (size_t i = 0; i < N_LORAS; i++) {
        if (i < 2) assert_int_equal(wick_lora_close(loras[i], NULL), WICK_OK);
        unlink(files[i]);
    }
    wick_device_stats stats;
    wick_model_close(model);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
    wick_device_get_stats(device, &stats);
    if (desc->backend == WICK_BACKEND_CPU) assert_int_equal(stats.buffer_bytes, 0);
    give_back_device(device);
}

static void check_models(wick_device_desc desc, uint32_t n_acts) {
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        make_path(models[m], path, sizeof path);
        print_message("%s\n", models[m]);
        check_model(path, &desc, n_acts);
    }
}

static void test_exact(void **state) {
    (void)state;
    wick_device_desc desc = device_desc();
    desc.math = WICK_MATH_EXACT;
    check_models(desc, desc.backend == WICK_BACKEND_WEBGPU ? 150 : 400);
}

static void test_fast(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST}, 400);
}

static void test_late(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_NULL,
                                    .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
                 60);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact)};
    const struct CMUnitTest others[] = {cmocka_unit_test(test_fast), cmocka_unit_test(test_late)};
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chosen.backend == WICK_BACKEND_WEBGPU) return n_failed;
    return n_failed + cmocka_run_group_tests(others, NULL, NULL);
}
