/* usage: webgpu_models [--real] [--backend webgpu] [options of webgpu_options.h]
 * Models on WebGPU, exact math, no operation on the CPU: the tokens of the fixtures whatever the
 * chunks, and how often a step of generation submits and reads. --real: SmolLM2 instead. */
#include "golden/smollm2.h"
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
    wick_device_close(device);
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
    wick_device_close(device);
    wk_arena_release(&f.arena);
}

/* Beyond the first tokens nothing is recorded, compiled or allocated any more. */
static void test_counters(void **state) {
    (void)state;
    enum { WARM = 8, STEPS = 32 };
    wick_device *device;
    wick_model *const model = open_stories(&device);
    wick_session *session;
    const wick_session_desc desc = {.max_tokens = WARM + STEPS};
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
    assert_in_range(n_reads, STEPS - 1, STEPS);
    assert_int_equal(after.n_allocations, before.n_allocations);
    assert_int_equal(after.n_fallbacks, 0);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(device);
}

static void test_real_nll(void **state) {
    (void)state;
    check_nll(&chosen, 5e-4, 1e-4);
}

static void test_real_greedy(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    check_real_greedy(&f, &chosen);
    wk_arena_release(&f.arena);
}

int main(int argc, char **argv) {
    const bool is_real = argc > 1 && strcmp(argv[1], "--real") == 0;
    if (!parse_device(argc - is_real, argv + is_real, &chosen)) return 2;
    const struct CMUnitTest stories[] = {cmocka_unit_test(test_stories_greedy),
                                         cmocka_unit_test(test_same_bits),
                                         cmocka_unit_test(test_counters)};
    const struct CMUnitTest real[] = {cmocka_unit_test(test_real_nll),
                                      cmocka_unit_test(test_real_greedy)};
    return is_real ? cmocka_run_group_tests_name("SmolLM2 on WebGPU", real, NULL, NULL)
                   : cmocka_run_group_tests_name("stories on WebGPU", stories, NULL, NULL);
}
