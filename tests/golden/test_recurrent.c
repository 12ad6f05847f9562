/* Models with recurrent layers: a prompt in chunks gives the bits of single tokens; what a session
 * computes again when its tokens change; verification, fallbacks, and a device like a GPU. */
#define _POSIX_C_SOURCE 200809L /* getpid */
#include "golden/going_back.h"

#include <unistd.h>

enum { N = 40 };

static const char *const models[] = {"granite-hybrid", "lfm2",       "mamba",
                                     "mamba2",         "nemotron-h", "qwen35",
                                     "qwen35moe",      "qwen3next",  "falcon-h1"};

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
        give_back_device(device);
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
            give_back_device(device);
        }
        free(want);
    }
}

/* A copy of mamba whose steps, b and c are normed, as Falcon Mamba has them, and the weights that
 * they are made of multiplied by factor. */
static void write_normed(const char *path, float factor) {
    enum { MAX_VALUES = 64 };
    char from[1024];
    wick_file *file;
    wick_file_writer *writer;
    wick_value values[MAX_VALUES];
    wick_file_tensor tensors[MAX_VALUES];
    make_path("mamba", from, sizeof from);
    assert_int_equal(wick_file_open(from, &file, NULL), WICK_OK);
    const size_t n_values = wick_file_value_count(file), n_tensors = wick_file_tensor_count(file);
    assert_true(n_values < MAX_VALUES && n_tensors < MAX_VALUES);
    for (size_t i = 0; i < n_values; i++) values[i] = *wick_file_value(file, i);
    for (size_t i = 0; i < n_tensors; i++) tensors[i] = *wick_file_get_tensor(file, i);
    size_t n_normed = 0;
    for (size_t i = 0; i < n_values; i++) {
        if (strcmp(values[i].key.text, "mamba.ssm.dt_b_c_rms") != 0) continue;
        assert_true(values[i].u == 0);
        values[i].u = 1;
        n_normed++;
    }
    assert_int_equal(n_normed, 1);
    const wick_file_desc desc = {.values = values,
                                 .n_values = n_values,
                                 .tensors = tensors,
                                 .n_tensors = n_tensors,
                                 .replace = true};
    wick_error error = {.status = WICK_OK};
    if (wick_file_write_start(path, &desc, &writer, &error) != WICK_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < n_tensors; i++) {
        const size_t size = (size_t)tensors[i].size;
        float *const data = malloc(size);
        assert_int_equal(wick_file_read(file, tensors[i].offset, data, size, NULL), WICK_OK);
        const bool is_scaled = strstr(tensors[i].name.text, "ssm_x") != NULL;
        assert_true(!is_scaled || tensors[i].dtype == WICK_F32);
        for (size_t k = 0; is_scaled && k < size / sizeof *data; k++) data[k] *= factor;
        assert_int_equal(wick_file_write(writer, data, size, NULL), WICK_OK);
        free(data);
    }
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    wick_file_close(file);
}

static float *logits_of(const char *path, const uint32_t *ids, size_t *n) {
    const wick_device_desc desc = device_desc();
    wick_device *device;
    wick_model *const model = open_model(path, &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const logits = all_logits(model, 16, ids, N);
    *n = (size_t)N * info.n_vocab;
    wick_model_close(model);
    give_back_device(device);
    return logits;
}

/* After a norm it does not matter how large the weights before it are; without one it does. */
static void test_normed_inputs(void **state) {
    (void)state;
    char path[64], plain[1024];
    uint32_t ids[N];
    size_t n;
    make_ids(ids);
    make_path("mamba", plain, sizeof plain);
    snprintf(path, sizeof path, "/tmp/wick_normed_%ld.gguf", (long)getpid());
    write_normed(path, 64);
    float *const normed = logits_of(path, ids, &n);
    ids[0]++;
    float *const changed = logits_of(path, ids, &n); /* they are of this text */
    ids[0]--;
    write_normed(path, 4096);
    float *const larger = logits_of(path, ids, &n), *const without = logits_of(plain, ids, &n);
    float same = 0, other = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(normed[i]) && isfinite(larger[i]));
        same = fmaxf(same, fabsf(normed[i] - larger[i]));
        other = fmaxf(other, fabsf(normed[i] - without[i]));
        moved = fmaxf(moved, fabsf(normed[i] - changed[i]));
    }
    assert_true(same < 1e-3F);
    assert_true(other > 1e-2F && moved > 1e-2F);
    free(normed);
    free(changed);
    free(larger);
    free(without);
    assert_int_equal(remove(path), 0);
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
        cmocka_unit_test(test_normed_inputs),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chosen.backend == WICK_BACKEND_WEBGPU) return n_failed;
    return n_failed + cmocka_run_group_tests(others, NULL, NULL);
}
