/* SmolLM2-135M-Instruct against transformers: greedy tokens, logits, likelihood of a text. */
#include "golden/smollm2.h"

static void test_smollm2_greedy(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    for (int threads = 1; threads <= 2; threads++)
        check_real_greedy(&f,
                          &(wick_device_desc){.backend = WICK_BACKEND_CPU, .n_threads = threads});
    wk_arena_release(&f.arena);
}

static void test_smollm2_same_bits(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(wk_json_get(f.root, "nll"), "tokens"), &n);
    check_same_bits(getenv("WICK_REAL_MODEL"), ids, 40);
    wk_arena_release(&f.arena);
}

/* Rows of the reference's npy, float32, whose positions are listed beside it. */
static void test_smollm2_logits(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    char path[1024];
    wk_file *file;
    snprintf(path, sizeof path, "%s/real/smollm2-135m-instruct-q4_1.logits.npy",
             getenv("WICK_SHARED_DATA"));
    assert_int_equal(wk_file_open(&f.heap, path, &file, NULL), WICK_OK);
    uint32_t n, n_rows;
    const uint32_t *const ids = ids_of(&f, wk_json_get(wk_json_get(f.root, "nll"), "tokens"), &n);
    const uint32_t *const rows = ids_of(&f, wk_json_get(f.root, "logits_positions"), &n_rows);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const got = all_logits(model, 0, ids, n);
    float *const want = malloc(info.n_vocab * sizeof *want);
    const uint64_t bytes = info.n_vocab * sizeof *want;
    const uint64_t data = wk_file_size(file) - n_rows * bytes;
    double worst = 0;
    for (uint32_t r = 0; r < n_rows; r++) {
        assert_int_equal(wk_file_read_at(file, data + r * bytes, want, bytes, NULL), WICK_OK);
        for (uint32_t i = 0; i < info.n_vocab; i++)
            worst = fmax(worst,
                         fabs((double)want[i] - (double)got[(size_t)rows[r] * info.n_vocab + i]));
    }
    print_message("largest difference of a logit: %.2g\n", worst);
    assert_true(worst <= 2e-3);
    free(want);
    free(got);
    wick_model_close(model);
    wick_device_close(device);
    wk_file_close(&f.heap, file);
    wk_arena_release(&f.arena);
}

static void test_smollm2_nll_exact(void **state) {
    (void)state;
    check_nll(&(wick_device_desc){.backend = WICK_BACKEND_CPU}, 5e-4, 1e-4);
}

/* Half of what eight-bit activations cost elsewhere: see docs/numerics.md. */
static void test_smollm2_nll_fast(void **state) {
    (void)state;
    check_nll(&(wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST}, 0.045,
              4e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2_greedy),   cmocka_unit_test(test_smollm2_same_bits),
        cmocka_unit_test(test_smollm2_logits),   cmocka_unit_test(test_smollm2_nll_exact),
        cmocka_unit_test(test_smollm2_nll_fast),
    };
    return cmocka_run_group_tests_name("smollm2", tests, NULL, NULL);
}
