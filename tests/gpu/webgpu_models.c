/* usage: webgpu_models [--tokens|--real|--fast|--gemma] [--backend webgpu] [options of
 * webgpu_options.h] Models on WebGPU, exact math, no operation on the CPU: the tokens of the
 * fixtures with chunks of any size, and how often a step of generation submits and reads; that is
 * all with --tokens, else also when kernels compile, and layers on the CPU. --real: SmolLM2
 * instead;
 * --fast: in fast math, by the kernels of GPUs; --gemma: Gemma 3 270M. */
#include "golden/real_model.h"
#include "sys/thread.h"
#include "webgpu_options.h"

static wick_device_desc chosen = {.backend = WICK_BACKEND_WEBGPU, .strict = true};

static wick_model *open_stories(wick_device **device) {
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return open_model(path, &chosen, device);
}

static void test_stories_greedy(void **state) {
    (void)state;
    static const uint32_t chunks[] = {0, 1, 3};
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    wick_device *device;
    wick_model *const model = open_stories(&device);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
        check_greedy(model, (wick_session_desc){.chunk_length = chunks[c]}, prompt, n_prompt, want,
                     c == 0 ? n_want : 40);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.n_fallbacks, 0);
    wick_model_close(model);
    give_back_device(device);
    wk_arena_release(&f.arena);
}

/* A prompt in chunks gives the bits of single steps: so do the forms of kernels for few rows and
 * for many. */
static void test_same_bits(void **state) {
    (void)state;
    static const uint32_t chunks[] = {3, 40};
    enum { TOKENS = 40 };
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(f.root, "tokens"), &n);
    assert_true(n >= TOKENS);
    wick_device *device;
    wick_model *const model = open_stories(&device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const single = all_logits(model, 1, ids, TOKENS);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        float *const chunked = all_logits(model, chunks[c], ids, TOKENS);
        assert_memory_equal(chunked, single, (size_t)TOKENS * info.n_vocab * sizeof *single);
        free(chunked);
    }
    free(single);
    wick_model_close(model);
    give_back_device(device);
    wk_arena_release(&f.arena);
}

/* Beyond the first tokens nothing is recorded, compiled or allocated any more. Each token is a
 * read, or several are one. */
static void check_counters(wick_model *model, wick_device *device, wick_speculate speculate) {
    enum { WARM = 32, STEPS = 32 };
    wick_session *session;
    const wick_session_desc desc = {
        .max_tokens = WARM + STEPS, .ignore_end = true, .speculate = speculate};
    const bool is_ahead = speculate == WICK_SPECULATE_AHEAD;
    const uint64_t most = is_ahead ? STEPS / 8 + 1 : STEPS;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_device_stats before = {0}, after;
    wick_event event = {0};
    for (uint32_t n = 0; event.kind != WICK_EVENT_END;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind == WICK_EVENT_TOKEN && ++n == WARM) wick_device_get_stats(device, &before);
    }
    wick_device_get_stats(device, &after);
    const uint64_t n_submits = after.n_submits - before.n_submits;
    const uint64_t n_reads = after.n_reads - before.n_reads;
    print_message("%d tokens: %d submits, %d reads, %d bytes read, %d allocations\n", STEPS,
                  (int)n_submits, (int)n_reads, (int)(after.bytes_read - before.bytes_read),
                  (int)(after.n_allocations - before.n_allocations));
    assert_in_range(n_submits, STEPS - 1, 4 * STEPS);
    assert_in_range(n_reads, is_ahead ? most - 2 : most - 1, most);
    /* No row of logits. */
    assert_true(after.bytes_read - before.bytes_read <= n_reads * (is_ahead ? 8 * 1028 : 1024));
    assert_int_equal(after.n_allocations, before.n_allocations);
    assert_int_equal(after.n_fallbacks, 0);
    wick_session_close(session);
}

static void test_counters(void **state) {
    (void)state;
    wick_device *device;
    wick_model *const model = open_stories(&device);
    check_counters(model, device, WICK_SPECULATE_NONE);
    check_counters(model, device, WICK_SPECULATE_AHEAD);
    wick_model_close(model);
    give_back_device(device);
}

/* Reads a long prompt and generates some tokens. Returns how many kernels there were when the
 * session had been opened; none may come later, and no submit may wait for one. */
static uint64_t run_compiled(wick_model *model, const wick_session_desc *desc) {
    enum { PROMPT = 150, STEPS = 50 };
    wick_device *const device = wick_model_device(model);
    uint32_t prompt[PROMPT], n = 0;
    for (uint32_t i = 0; i < PROMPT; i++) prompt[i] = 1 + i * 7 % 400;
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    wick_device_stats before, after;
    wick_device_get_stats(device, &before);
    assert_int_equal(wick_session_append_tokens(session, prompt, PROMPT), WICK_OK);
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END && n < STEPS) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind == WICK_EVENT_TOKEN) n++;
    }
    assert_int_equal(n, desc->logits == WICK_LOGITS_ALL ? 0 : STEPS);
    wick_device_get_stats(device, &after);
    assert_int_equal(after.n_pipelines, before.n_pipelines);
    assert_int_equal(after.n_pipeline_failures, 0);
    assert_true(after.compile_wait_seconds == 0);
    wick_session_close(session);
    return before.n_pipelines;
}

/* Loading a model compiles what its sessions will need; opening another kind of session compiles
 * the rest. */
static void test_nothing_compiles_later(void **state) {
    (void)state;
    const wick_session_desc first = {.chunk_length = 64, .ignore_end = true};
    const wick_session_desc others[] = {
        {.chunk_length = 100, .cache = WICK_CACHE_F16, .ignore_end = true},
        {.context_length = 256, .chunk_length = 5, .ignore_end = true},
        {.logits = WICK_LOGITS_ALL},
    };
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_device *device;
    wick_model *model;
    wick_error error = {0};
    if (wick_device_open(&chosen, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    if (wick_model_open(device, path, &(wick_model_desc){.sessions = &first}, &model, &error) !=
        WICK_OK)
        fail_msg("%s", error.message);
    wick_device_stats loaded;
    wick_device_get_stats(device, &loaded);
    print_message("%d kernels, %.2f s\n", (int)loaded.n_pipelines, loaded.compile_seconds);
    assert_true(loaded.n_pipelines > 0);
    assert_int_equal(run_compiled(model, &first), loaded.n_pipelines);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) run_compiled(model, &others[i]);
    wick_model_close(model);
    wick_device_close(device);
}

/* A session that is closed while the kernels of its first batch compile has never run one. */
static void close_while_compiling(wick_model *model) {
    wick_session *session;
    wick_event event;
    wick_model_usage usage;
    assert_int_equal(wick_session_open(model, NULL, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_PENDING);
    wick_session_close(session);
    wick_model_trim(model);
    wick_model_get_usage(model, &usage);
    assert_int_equal(usage.n_running, 0);
}

/* Without it the same tokens come, and kernels when they are needed. */
static void test_no_warm_up(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_device *device;
    wick_model *model;
    wick_session *session;
    wick_device_stats loaded, after;
    wick_event event = {0};
    assert_int_equal(wick_device_open(&chosen, &device, NULL), WICK_OK);
    const wick_model_desc desc = {.no_warm_up = true};
    assert_int_equal(wick_model_open(device, path, &desc, &model, NULL), WICK_OK);
    wick_device_get_stats(device, &loaded);
    assert_int_equal(loaded.n_pipelines, 0);
    close_while_compiling(model);
    assert_int_equal(wick_session_open(model, NULL, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    while (event.kind != WICK_EVENT_TOKEN)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.token, 432); /* "," */
    wick_device_get_stats(device, &after);
    assert_true(after.n_pipelines > 0);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(device);
}

/* What one device leaves for the next, by key. */
typedef struct kept {
    wk_mutex *lock; /* threads of the implementation load and store */
    struct {
        void *key, *value;
        size_t key_size, size;
    } entries[256];
    size_t n, n_loaded;
} kept;

static size_t load_kept(void *user, const void *key, size_t key_size, void *value,
                        size_t capacity) {
    kept *const k = user;
    size_t size = 0;
    wk_mutex_lock(k->lock);
    for (size_t i = 0; i < k->n && size == 0; i++) {
        if (k->entries[i].key_size != key_size || memcmp(k->entries[i].key, key, key_size) != 0)
            continue;
        size = k->entries[i].size;
        if (size > capacity) continue;
        memcpy(value, k->entries[i].value, size);
        k->n_loaded++;
    }
    wk_mutex_unlock(k->lock);
    return size;
}

static void store_kept(void *user, const void *key, size_t key_size, const void *value,
                       size_t size) {
    kept *const k = user;
    wk_mutex_lock(k->lock);
    const size_t at = k->n;
    if (at < sizeof k->entries / sizeof *k->entries) {
        k->n++;
        k->entries[at].key = memcpy(malloc(key_size), key, key_size);
        k->entries[at].value = memcpy(malloc(size), value, size);
        k->entries[at].key_size = key_size;
        k->entries[at].size = size;
    }
    wk_mutex_unlock(k->lock);
}

static void test_kernel_cache(void **state) {
    (void)state;
    static kept k;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    assert_int_equal(wk_mutex_make(&heap, &k.lock), WICK_OK);
    wick_device_desc desc = chosen;
    desc.webgpu.cache = (wick_kernel_cache){.load = load_kept, .store = store_kept, .user = &k};
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    size_t n_stored = 0;
    wick_device_info info;
    for (int round = 0; round < 2; round++) {
        wick_device *device;
        wick_model *const model = open_model(path, &desc, &device);
        wick_device_get_info(device, &info);
        wick_model_close(model);
        give_back_device(device);
        if (round == 0) n_stored = k.n;
    }
    print_message("%s: %d entries stored, %d loaded\n", info.adapter.implementation, (int)n_stored,
                  (int)k.n_loaded);
    const bool has_cache = strcmp(info.adapter.implementation, "Dawn") == 0;
    assert_true(has_cache ? n_stored > 0 && k.n_loaded > 0 : k.n == 0);
    for (size_t i = 0; i < k.n; i++) {
        free(k.entries[i].key);
        free(k.entries[i].value);
    }
    wk_mutex_free(&heap, k.lock);
}

/* The first layers on the CPU: as many as were asked for, or as the memory wants. */
static void check_split(int32_t device_layers, uint64_t memory, fixture *f) {
    enum { TOKENS = 24, LAYERS = 5 };
    char path[1024];
    wick_device *device;
    wick_model *model = NULL;
    wick_model_info info;
    wick_device_stats stats;
    wick_error error = {0};
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(f, wk_json_get(f->root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(f, wk_json_get(f->root, "tokens"), &n_want);
    wick_device_desc desc = chosen;
    desc.webgpu.pool.max_bytes = memory;
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_session_desc session = {.context_length = 128, .chunk_length = 4};
    const wick_model_desc split = {.device_layers = device_layers, .sessions = &session};
    if (wick_device_open(&desc, &device, &error) != WICK_OK ||
        wick_model_open(device, path, &split, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_model_get_info(model, &info);
    if (device_layers != 0)
        assert_int_equal(info.host_layers, device_layers < 0 ? LAYERS : LAYERS - device_layers);
    else
        assert_in_range(info.host_layers, 1, LAYERS - 1);
    check_greedy(model, session, prompt, n_prompt, want, TOKENS);
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.n_fallbacks, 0);
    assert_true((stats.n_dispatches > 0) == (device_layers >= 0));
    if (memory > 0) assert_true(stats.pool_peak_bytes <= memory);
    wick_model_close(model);
    wick_device_close(device);
}

static void test_layers_on_the_cpu(void **state) {
    (void)state;
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    check_split(WICK_NO_LAYERS, 0, &f);
    check_split(1, 0, &f);
    check_split(3, 0, &f);
    check_split(0, 1 << 20, &f);
    wk_arena_release(&f.arena);
}

static bool (*find_chosen)(real_model *m) = find_smollm2;

static void check_chosen_nll(double most_rms, double most_relative) {
    real_model m;
    if (!find_chosen(&m)) skip();
    check_real_nll(&m, &chosen, most_rms, most_relative);
    release_real_model(&m);
}

static void test_real_nll(void **state) {
    (void)state;
    check_chosen_nll(5e-4, 1e-4);
}

static void test_real_greedy(void **state) {
    (void)state;
    real_model m;
    if (!find_chosen(&m)) skip();
    check_real_greedy(&m, &chosen);
    release_real_model(&m);
}

/* The bounds of fast math on the CPU. */
static void test_fast_nll(void **state) {
    (void)state;
    chosen.math = WICK_MATH_FAST;
    chosen.webgpu.as_gpu = true;
    check_chosen_nll(0.04, 0.01);
}

int main(int argc, char **argv) {
    const char *const first = argc > 1 ? argv[1] : "";
    const bool is_tokens = strcmp(first, "--tokens") == 0, is_real = strcmp(first, "--real") == 0;
    const bool is_fast = strcmp(first, "--fast") == 0, is_gemma = strcmp(first, "--gemma") == 0;
    const int n_own = is_tokens || is_real || is_fast || is_gemma;
    if (is_gemma) find_chosen = find_gemma3;
    if (!parse_device(argc - n_own, argv + n_own, &chosen)) return 2;
    const struct CMUnitTest tokens[] = {cmocka_unit_test(test_stories_greedy),
                                        cmocka_unit_test(test_same_bits),
                                        cmocka_unit_test(test_counters)};
    const struct CMUnitTest rest[] = {
        cmocka_unit_test(test_nothing_compiles_later), cmocka_unit_test(test_no_warm_up),
        cmocka_unit_test(test_kernel_cache), cmocka_unit_test(test_layers_on_the_cpu)};
    const struct CMUnitTest real[] = {cmocka_unit_test(test_real_nll),
                                      cmocka_unit_test(test_real_greedy)};
    const struct CMUnitTest fast[] = {cmocka_unit_test(test_fast_nll)};
    if (is_fast) return cmocka_run_group_tests_name("SmolLM2, fast", fast, NULL, NULL);
    if (is_real || is_gemma)
        return cmocka_run_group_tests_name("real model on WebGPU", real, NULL, NULL);
    const int n_failed = cmocka_run_group_tests_name("stories on WebGPU", tokens, NULL, NULL);
    if (is_tokens) return n_failed;
    return n_failed + cmocka_run_group_tests_name("stories, further", rest, NULL, NULL);
}
