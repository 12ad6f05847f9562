/* Models with recurrent layers: a prompt in chunks gives the bits of single tokens; what a session
 * computes again when its tokens change; verification, fallbacks, and a device like a GPU. */
#include "golden/going_back.h"

enum { N = 40 };

static const char *const models[] = {"granite-hybrid", "lfm2",   "mamba",     "mamba2",
                                     "nemotron-h",     "qwen35", "qwen35moe", "qwen3next"};

static void make_ids(uint32_t ids[N]) {
    for (uint32_t i = 0; i < N; i++) ids[i] = (i * 37 + 11) % 300;
}

static void test_same_bits(void **state) {
    (void)state;
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        uint32_t ids[N];
        make_ids(ids);
        make_path(models[m], path, sizeof path);
        check_chunks(path, ids, N);
    }
}

static void test_sync(void **state) {
    (void)state;
    const wick_device_desc desc = device_desc();
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        uint32_t ids[N];
        wick_device *device;
        wick_session *session;
        make_ids(ids);
        make_path(models[m], path, sizeof path);
        wick_model *const model = open_model(path, &desc, &device);
        const wick_session_desc four = {.max_tokens = 4, .ignore_end = true};
        assert_int_equal(wick_session_open(model, &four, &session, NULL), WICK_OK);
        sync_and_compare(model, session, ids, 10, 0);
        size_t n;
        const uint32_t *const tokens = wick_session_tokens(session, &n);
        memcpy(ids, tokens, n * sizeof *ids); /* its own answer, and more */
        sync_and_compare(model, session, ids, (uint32_t)n + 5, n - 1);
        sync_and_compare(model, session, ids, 12, 0); /* backwards: from the start */
        ids[2]++;
        sync_and_compare(model, session, ids, 12, 0);
        wick_session_reset(session);
        sync_and_compare(model, session, ids, 12, 0);
        wick_session_close(session);
        wick_model_close(model);
        wick_device_close(device);
    }
}

/* On every kind of device that this processor can be: one token after the other as the reference
 * kernels have it. */
static void test_devices(void **state) {
    (void)state;
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
        {.backend = WICK_BACKEND_CPU, .verify = true},
    };
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        uint32_t ids[N];
        make_ids(ids);
        make_path(models[m], path, sizeof path);
        float *want = NULL;
        for (size_t d = 0; d < WK_COUNT(descs); d++) {
            wick_device *device;
            wick_model *const model = open_model(path, &descs[d], &device);
            wick_model_info info;
            wick_model_get_info(model, &info);
            float *const found = all_logits(model, 16, ids, N);
            for (size_t i = 0; want != NULL && i < (size_t)N * info.n_vocab; i++)
                assert_true(fabsf(found[i] - want[i]) < 1e-3F);
            if (want != NULL)
                free(found);
            else
                want = found;
            wick_model_close(model);
            wick_device_close(device);
        }
        free(want);
    }
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_sync),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_devices),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chosen.backend == WICK_BACKEND_WEBGPU) return n_failed;
    return n_failed + cmocka_run_group_tests(others, NULL, NULL);
}
