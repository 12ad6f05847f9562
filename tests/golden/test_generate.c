/* Generation against fixtures of other implementations: token for token, on every instruction set,
 * with any chunking; and what must hold beside it: equal bits, no allocation while decoding. */
#include "golden/generation.h"

static const char *stories_path(char *path, size_t size) {
    snprintf(path, size, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return path;
}

static void test_stories_greedy(void **state) {
    (void)state;
    static const uint32_t chunks[] = {0, 1, 3, 4, 64};
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!has_isa(isas[i])) {
            print_message("this processor lacks instruction set %d\n", (int)isas[i]);
            continue;
        }
        for (int threads = 1; threads <= 2; threads++) {
            wick_device *device;
            const wick_device_desc desc = {
                .backend = WICK_BACKEND_CPU, .isa = isas[i], .n_threads = threads};
            wick_model *const model = open_model(stories_path(path, sizeof path), &desc, &device);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
                check_greedy(model, (wick_session_desc){.chunk_length = chunks[c]}, prompt,
                             n_prompt, want, n_want);
            wick_model_close(model);
            give_back_device(device);
        }
    }
    wk_arena_release(&f.arena);
}

/* Products that a batch of one token takes. */
static uint64_t count_products(wick_fusion fusion, uint32_t *n_layers) {
    char path[1024];
    wick_device *device;
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .profile = true, .fusion = fusion};
    wick_model *const model = open_model(stories_path(path, sizeof path), &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    *n_layers = info.n_layers;
    wick_session *session = NULL;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    assert_int_equal(
        wick_session_open(model, &(wick_session_desc){.max_tokens = 1}, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, &(uint32_t){1}, 1), WICK_OK);
    while (event.kind != WICK_EVENT_END)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    wick_kernel_stats kernels[32];
    const size_t n = wick_device_get_profile(device, kernels, 32);
    uint64_t calls = 0;
    assert_true(n <= 32);
    for (size_t i = 0; i < n; i++)
        if (strncmp(kernels[i].name, "linear", 6) == 0) calls += kernels[i].calls;
    wick_session_close(session);
    wick_model_close(model);
    give_back_device(device);
    return calls;
}

/* Queries, keys and values are one product; gate and up would be, did they fill their panels. */
static void test_products_of_the_same_x(void **state) {
    (void)state;
    uint32_t n_layers = 0;
    const uint64_t apart = count_products(WICK_FUSION_OFF, &n_layers);
    const uint64_t joined = count_products(WICK_FUSION_AUTO, &n_layers);
    assert_int_equal(apart, 7 * n_layers + 1);
    assert_int_equal(joined, 5 * n_layers + 1);
}

static void test_stories_on_the_null_backend(void **state) {
    (void)state;
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_FUSED},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
        {.backend = WICK_BACKEND_CPU, .verify = true},
    };
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++) {
        wick_device *device;
        wick_model *const model = open_model(stories_path(path, sizeof path), &descs[i], &device);
        check_greedy(model, (wick_session_desc){.chunk_length = 4}, prompt, n_prompt, want, 40);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_true((stats.n_fallbacks > 0) == !!(descs[i].null_flags & WICK_NULL_NO_KERNELS));
        wick_model_close(model);
        give_back_device(device);
    }
    assert_true(n_want >= 40);
    wk_arena_release(&f.arena);
}

static void test_stories_same_bits(void **state) {
    (void)state;
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(f.root, "tokens"), &n);
    check_same_bits(stories_path(path, sizeof path), ids, n < 150 ? n : 150);
    wk_arena_release(&f.arena);
}

/* With every sampler. */
static void check_no_allocation(wick_math math, bool with_mirostat) {
    char path[1024];
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 2, .math = math};
    wick_model *const model = open_model(stories_path(path, sizeof path), &desc, &device);
    wick_session *session;
    const char *const stop[] = {"never in a story"};
    const wick_logit_bias bias = {2, -INFINITY}; /* the end token: it must go on */
    const wick_session_desc with = {.stop = stop,
                                    .n_stop = 1,
                                    .n_logprobs = 5,
                                    .sampler = {.seed = 1,
                                                .temperature = 0.8f,
                                                .top_k = 40,
                                                .typical_p = 0.95f,
                                                .top_p = 0.95f,
                                                .min_p = 0.01f,
                                                .repeat_penalty = 1.1f,
                                                .frequency_penalty = 0.1f,
                                                .presence_penalty = 0.1f,
                                                .bias = &bias,
                                                .n_bias = 1,
                                                .dry_multiplier = 0.8f,
                                                .xtc_probability = 0.5f,
                                                .mirostat_tau = with_mirostat ? 5 : 0},
                                    .max_tokens = 100};
    assert_int_equal(wick_session_open(model, &with, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_event event = {0};
    wick_device_stats before = {0}, after;
    for (int i = 0; i < 100 && event.kind != WICK_EVENT_END; i++) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (i == 4) wick_device_get_stats(device, &before);
    }
    wick_device_get_stats(device, &after);
    assert_true(before.n_allocations > 0);
    assert_int_equal(after.n_allocations, before.n_allocations);
    wick_session_close(session);
    wick_model_close(model);
    give_back_device(device);
}

static void test_decode_does_not_allocate(void **state) {
    (void)state;
    for (wick_math math = WICK_MATH_EXACT; math <= WICK_MATH_FAST; math++) {
        check_no_allocation(math, false);
        check_no_allocation(math, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories_greedy),
        cmocka_unit_test(test_products_of_the_same_x),
        cmocka_unit_test(test_stories_on_the_null_backend),
        cmocka_unit_test(test_stories_same_bits),
        cmocka_unit_test(test_decode_does_not_allocate),
    };
    return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}
