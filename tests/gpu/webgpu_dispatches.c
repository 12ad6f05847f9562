/* usage: webgpu_dispatches [--backend webgpu] [options of webgpu_options.h] How many dispatches a
 * generated token takes, by family (tensor/join.c); and that ops of a plan give the same bits
 * together as one by one. Needs WICK_SHARED_DATA. */
#include "golden/real_model.h"
#include "webgpu_options.h"

static wick_device_desc chosen = {.backend = WICK_BACKEND_WEBGPU, .strict = true};

enum { WARM = 2, STEPS = 4, TOKENS = 24 };

/* most: dispatches of a token. Those of llama, qwen3 and gemma3 are 8 for each layer and some. */
typedef struct family {
    const char *name;
    uint32_t layers, most;
} family;

static const family families[] = {
    {"llama", 2, 22}, {"qwen3", 2, 22}, {"gemma3", 6, 56}, {"gpt-oss", 3, 48}, {"mamba", 2, 42}};

static wick_model *open_family(const family *f, wick_device_desc desc, wick_device **device) {
    char path[1024];
    snprintf(path, sizeof path, "%s/families/%s.gguf", getenv("WICK_SHARED_DATA"), f->name);
    return open_model(path, &desc, device);
}

static double dispatches_per_token(const family *f) {
    wick_device *device;
    wick_model *const model = open_family(f, chosen, &device);
    wick_session *session;
    const wick_session_desc desc = {.max_tokens = WARM + STEPS, .ignore_end = true};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    static const uint32_t prompt[] = {5, 12, 19};
    assert_int_equal(wick_session_append_tokens(session, prompt, 3), WICK_OK);
    wick_device_stats before = {0}, after;
    wick_event event = {0};
    for (uint32_t n = 0; event.kind != WICK_EVENT_END;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind == WICK_EVENT_TOKEN && ++n == WARM) wick_device_get_stats(device, &before);
    }
    wick_device_get_stats(device, &after);
    assert_int_equal(after.n_fallbacks, 0);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(device);
    return (double)(after.n_dispatches - before.n_dispatches) / STEPS;
}

static void test_dispatches(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const double n = dispatches_per_token(&families[i]);
        print_message("%s, %u layers: %.2f dispatches a token\n", families[i].name,
                      (unsigned)families[i].layers, n);
        assert_true(n <= families[i].most);
    }
}

/* In chunks of one row and of several: with and without fusion. */
static void test_same_bits(void **state) {
    (void)state;
    static const uint32_t chunks[] = {1, 24};
    uint32_t ids[TOKENS];
    for (uint32_t i = 0; i < TOKENS; i++) ids[i] = (5 + 7 * i) % 200;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        wick_device_desc apart = chosen;
        apart.fusion = WICK_FUSION_OFF;
        wick_device *devices[2];
        wick_model *const together = open_family(&families[i], chosen, &devices[0]);
        wick_model *const one_by_one = open_family(&families[i], apart, &devices[1]);
        wick_model_info info;
        wick_model_get_info(together, &info);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            float *const a = all_logits(together, chunks[c], ids, TOKENS);
            float *const b = all_logits(one_by_one, chunks[c], ids, TOKENS);
            assert_memory_equal(a, b, (size_t)TOKENS * info.n_vocab * sizeof *a);
            free(a);
            free(b);
        }
        wick_model_close(together);
        wick_model_close(one_by_one);
        wick_device_close(devices[0]);
        wick_device_close(devices[1]);
    }
}

int main(int argc, char **argv) {
    if (!getenv("WICK_SHARED_DATA")) {
        printf("skipped: WICK_SHARED_DATA is not set\n");
        return 77;
    }
    if (!parse_device(argc, argv, &chosen)) return 2;
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_dispatches),
                                              cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
