/* SmolLM2-135M-Instruct against transformers: greedy tokens, logits, likelihood of a text. */
#include "golden/real_model.h"

#include <wick/judge.h>

static void test_smollm2_greedy(void **state) {
    (void)state;
    real_model m;
    if (!find_smollm2(&m)) skip();
    /* In `make test` only by as many threads as most have. */
    for (int threads = tests_all() ? 1 : 2; threads <= 2; threads++)
        check_real_greedy(&m,
                          &(wick_device_desc){.backend = WICK_BACKEND_CPU, .n_threads = threads});
    release_real_model(&m);
}

static void test_smollm2_same_bits(void **state) {
    (void)state;
    skip_unless_all(); /* smaller models have them */
    real_model m;
    if (!find_smollm2(&m)) skip();
    uint32_t n;
    const uint32_t *const ids = ids_of_text(&m, &n);
    check_same_bits(m.path, ids, 40);
    release_real_model(&m);
}

/* Rows of the reference's npy, float32, whose positions are listed beside it. */
static void test_smollm2_logits(void **state) {
    (void)state;
    real_model m;
    if (!find_smollm2(&m)) skip();
    char path[1024];
    wk_file *file;
    snprintf(path, sizeof path, "%s/real/smollm2-135m-instruct-q4_1.logits.npy",
             getenv("WICK_SHARED_DATA"));
    assert_int_equal(wk_file_open(&m.reference.heap, path, &file, NULL), WICK_OK);
    uint32_t n, n_rows;
    const uint32_t *const ids = ids_of_text(&m, &n);
    const wk_json *const positions = wk_json_get(m.reference.root, "logits_positions");
    const uint32_t *const rows = ids_of(&m.reference, positions, &n_rows);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    wick_model *const model = open_model(m.path, &desc, &device);
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
    give_back_device(device);
    wk_file_close(&m.reference.heap, file);
    release_real_model(&m);
}

static void test_smollm2_nll_exact(void **state) {
    (void)state;
    skip_unless_all(); /* the logits above are exact, too */
    real_model m;
    if (!find_smollm2(&m)) skip();
    check_real_nll(&m, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, 5e-4, 1e-4);
    release_real_model(&m);
}

/* Half of what eight-bit activations cost elsewhere: see docs/numerics.md. */
static void test_smollm2_nll_fast(void **state) {
    (void)state;
    real_model m;
    if (!find_smollm2(&m)) skip();
    const wick_device_desc fast = {.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST};
    check_real_nll(&m, &fast, 0.045, 4e-3);
    release_real_model(&m);
}

/* KL divergence of the model with a type of cache from itself with a float32 one. */
static double judge_cache(wick_model *model, const uint32_t *ids, size_t n, wick_cache cache,
                          uint32_t chunk) {
    const wick_judge_desc desc = {
        .context_length = (uint32_t)n, .n_unscored = 1, .chunk_length = chunk, .cache = cache};
    wick_judging *judging;
    wick_judgement judgement;
    wick_status status;
    assert_int_equal(wick_judge_start(model, model, ids, n, &desc, &judging, NULL), WICK_OK);
    while ((status = wick_judge_poll(judging, NULL, NULL)) == WICK_PENDING) {
    }
    assert_int_equal(status, WICK_OK);
    wick_judge_get(judging, &judgement);
    wick_judge_finish(judging);
    return judgement.kl;
}

/* What a type of cache changes, see docs/numerics.md: the same in chunks of any size. */
static void test_smollm2_cache_types(void **state) {
    (void)state;
    enum { N = 100 };
    static const struct {
        wick_cache cache;
        const char *name;
        double most;
    } types[] = {{WICK_CACHE_F16, "f16", 1e-6},
                 {WICK_CACHE_Q8_0, "q8_0", 1e-3},
                 {WICK_CACHE_Q4_0, "q4_0", 0.2}};
    real_model m;
    if (!find_smollm2(&m)) skip();
    uint32_t n;
    const uint32_t *const ids = ids_of_text(&m, &n);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    wick_model *const model = open_model(m.path, &desc, &device);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const double kl = judge_cache(model, ids, N, types[i].cache, 0);
        print_message("cache of %s: KL divergence %.2g\n", types[i].name, kl);
        assert_true(kl > 0 && kl <= types[i].most);
        if (types[i].cache == WICK_CACHE_Q8_0 || tests_all())
            assert_true(judge_cache(model, ids, N, types[i].cache, 7) == kl);
    }
    wick_model_close(model);
    give_back_device(device);
    release_real_model(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2_greedy),   cmocka_unit_test(test_smollm2_same_bits),
        cmocka_unit_test(test_smollm2_logits),   cmocka_unit_test(test_smollm2_nll_exact),
        cmocka_unit_test(test_smollm2_nll_fast), cmocka_unit_test(test_smollm2_cache_types),
    };
    return cmocka_run_group_tests_name("smollm2", tests, NULL, NULL);
}
