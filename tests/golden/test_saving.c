/* Saved sessions: what is loaded goes on token for token, with every kind of layer; the
 * bytes are the same on every device, and with other chunks and contexts; device by device. */
#include "golden/going_back.h"

enum { N_PROMPT = 150, N_NEW = 24, CONTEXT = 512 };

/* Every kind of layer that keeps something: keys and values, windows, shared and latent ones,
 * convolutions, state spaces, delta nets. */
static const char *const models[] = {
    "llama4", "gemma3", "gemma4",         "gpt-oss", "deepseek2-v3",  "mistral",   "lfm2",
    "mamba",  "mamba2", "granite-hybrid", "qwen35",  "phi3-longrope", "qwen3next", "falcon-h1"};

/* --- Bytes in memory --- */

typedef struct bytes {
    unsigned char *data;
    size_t size, capacity;
} bytes;

static wick_status write_bytes(void *user, const void *data, size_t size, wick_error *error) {
    (void)error;
    bytes *const to = user;
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size);
        to->data = realloc(to->data, to->capacity);
        assert_non_null(to->data);
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
    return WICK_OK;
}

static bytes save(wick_session *session) {
    bytes out = {.size = 0};
    wick_session_saving *saving;
    wick_error error = {0};
    assert_int_equal(wick_session_save_start(session, write_bytes, &out, &saving, &error), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
    }
    if (wick_session_save_finish(saving, &error) != WICK_OK) fail_msg("%s", error.message);
    return out;
}

static void load(wick_session *session, const bytes *from) {
    wick_session_loading *loading;
    wick_error error = {0};
    const wick_source source = wick_source_memory(from->data, from->size);
    assert_int_equal(wick_session_load_start(session, source, &loading, &error), WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) {
    }
    if (wick_session_load_finish(loading, &error) != WICK_OK) fail_msg("%s", error.message);
}

/* --- Sessions --- */

static wick_session_desc session_desc(void) {
    return (wick_session_desc){
        .context_length = CONTEXT,
        .chunk_length = 64,
        .max_tokens = N_NEW,
        .ignore_end = true,
        .sampler = {
            .temperature = 0.9F, .seed = 5, .repeat_penalty = 1.2F, .dry_multiplier = 0.8F}};
}

static wick_session *open_session(wick_model *model, const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* Steps until this many tokens were generated, or to the end. */
static void run(wick_session *session, uint32_t n_tokens) {
    wick_event event = {0};
    while (n_tokens > 0 && event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        n_tokens -= event.kind == WICK_EVENT_TOKEN;
    }
}

static void check_same_tokens(const wick_session *a, const wick_session *b) {
    size_t n, n_other;
    const uint32_t *const tokens = wick_session_tokens(a, &n);
    const uint32_t *const others = wick_session_tokens(b, &n_other);
    assert_int_equal(n, n_other);
    assert_memory_equal(tokens, others, n * sizeof *tokens);
}

static void append_prompt(wick_session *session) {
    uint32_t ids[N_PROMPT];
    for (uint32_t i = 0; i < N_PROMPT; i++) ids[i] = (i * 37 + i / 7 + 11) % 300;
    assert_int_equal(wick_session_append_tokens(session, ids, N_PROMPT), WICK_OK);
}

/* Events until it is saved: none, some of the prompt, tokens, the end. */
static void check_at(wick_model *model, uint32_t n_events) {
    const wick_session_desc desc = session_desc();
    wick_session *const session = open_session(model, &desc);
    append_prompt(session);
    wick_event event;
    for (uint32_t i = 0; i < n_events; i++)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    bytes saved = save(session);
    run(session, UINT32_MAX);

    wick_session *const other = open_session(model, &desc);
    load(other, &saved);
    bytes again = save(other);
    assert_int_equal(again.size, saved.size);
    assert_memory_equal(again.data, saved.data, saved.size);
    run(other, UINT32_MAX);
    check_same_tokens(session, other);

    /* And on: with the prompt of the next turn. */
    wick_session_append_tokens(session, (const uint32_t[]){7, 8, 9}, 3);
    wick_session_append_tokens(other, (const uint32_t[]){7, 8, 9}, 3);
    run(session, UINT32_MAX);
    run(other, UINT32_MAX);
    check_same_tokens(session, other);
    wick_session_close(other);
    wick_session_close(session);
    free(again.data);
    free(saved.data);
}

static void test_goes_on(void **state) {
    (void)state;
    const wick_device_desc desc = device_desc();
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        wick_device *device;
        make_path(models[m], path, sizeof path);
        wick_model *const model = open_model(path, &desc, &device);
        static const uint32_t n_events[] = {10, 0, 1, 3, 100}; /* of a GPU only the first */
        const size_t n = chosen.backend == WICK_BACKEND_WEBGPU ? 1 : WK_COUNT(n_events);
        for (size_t i = 0; i < n; i++) check_at(model, n_events[i]);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* Other chunks, and with them other blocks of windows; a longer context. */
static void check_other_session(wick_model *model, const bytes *saved,
                                const wick_session *session) {
    static const struct {
        uint32_t context, chunk;
    } others[] = {{CONTEXT, 16}, {CONTEXT, 512}, {CONTEXT + 100, 64}, {N_PROMPT + N_NEW, 64}};
    for (size_t i = 0; i < WK_COUNT(others); i++) {
        wick_session_desc desc = session_desc();
        desc.context_length = others[i].context;
        desc.chunk_length = others[i].chunk;
        wick_session *const other = open_session(model, &desc);
        load(other, saved);
        run(other, UINT32_MAX);
        check_same_tokens(session, other);
        wick_session_close(other);
    }
}

static void test_other_sessions(void **state) {
    (void)state;
    static const char *const names[] = {"gemma3", "gpt-oss", "llama4"};
    const wick_device_desc desc = device_desc();
    for (size_t m = 0; m < WK_COUNT(names); m++) {
        char path[1024];
        wick_device *device;
        make_path(names[m], path, sizeof path);
        wick_model *const model = open_model(path, &desc, &device);
        const wick_session_desc with = session_desc();
        wick_session *const session = open_session(model, &with);
        append_prompt(session);
        run(session, 9);
        bytes saved = save(session);
        run(session, UINT32_MAX);
        check_other_session(model, &saved, session);
        wick_session_close(session);
        free(saved.data);
        wick_model_close(model);
        give_back_device(device);
    }
}

static void close_places(wick_model *here, wick_model *there, wick_device *const devices[2]) {
    wick_model_close(here);
    wick_model_close(there);
    give_back_device(devices[0]);
    give_back_device(devices[1]);
}

/* From the CPU to a device and back: the same bytes, for each type of cache. */
static void check_moves(const char *path, const wick_device_desc *to, wick_cache cache) {
    const wick_device_desc cpu = {.backend = WICK_BACKEND_CPU};
    wick_device *devices[2];
    wick_model *const here = open_model(path, &cpu, &devices[0]);
    wick_model *const there = open_model(path, to, &devices[1]);
    wick_session_desc desc = session_desc();
    desc.cache = cache;
    desc.sampler = (wick_sampler_desc){.temperature = 0};
    wick_session *a;
    const wick_status opened = wick_session_open(here, &desc, &a, NULL);
    if (opened == WICK_ERR_UNSUPPORTED) { /* heads that blocks do not divide */
        close_places(here, there, devices);
        return;
    }
    assert_int_equal(opened, WICK_OK);
    wick_session *const b = open_session(there, &desc);
    append_prompt(a);
    run(a, 5);
    bytes saved = save(a);
    load(b, &saved);
    bytes moved = save(b);
    assert_int_equal(moved.size, saved.size);
    assert_memory_equal(moved.data, saved.data, saved.size);
    run(b, 3);
    bytes grown = save(b);
    load(a, &grown);
    run(a, UINT32_MAX);
    run(b, UINT32_MAX);
    check_same_tokens(a, b); /* greedy, in exact math */
    wick_session_close(a);
    wick_session_close(b);
    free(saved.data);
    free(moved.data);
    free(grown.data);
    close_places(here, there, devices);
}

static void test_moves(void **state) {
    (void)state;
    static const wick_cache caches[] = {WICK_CACHE_F32, WICK_CACHE_F16, WICK_CACHE_Q8_0,
                                        WICK_CACHE_Q4_0}; /* on a GPU in turn */
    const wick_device_desc late = {.backend = WICK_BACKEND_NULL,
                                   .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER};
    const wick_device_desc to = chosen.backend == WICK_BACKEND_WEBGPU ? chosen : late;
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        make_path(models[m], path, sizeof path);
        const bool in_turn = chosen.backend == WICK_BACKEND_WEBGPU;
        const size_t step = in_turn ? WK_COUNT(caches) : 1;
        for (size_t c = m % step; c < WK_COUNT(caches); c += step)
            check_moves(path, &to, caches[c]);
    }
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_other_sessions),
        cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
