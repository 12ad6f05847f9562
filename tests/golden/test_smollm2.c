/* SmolLM2-135M-Instruct against transformers: greedy tokens, logits, likelihood of a text. */
#include "golden/generation.h"

static bool real_model(fixture *f) {
    const char *const model = getenv("WICK_REAL_MODEL"), *const data = getenv("WICK_SHARED_DATA");
    if (!model || !data) {
        print_message("%s is not set\n", model ? "WICK_SHARED_DATA" : "WICK_REAL_MODEL");
        return false;
    }
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/real", data);
    return load_json(f, folder, "smollm2-135m-instruct-q4_1.json");
}

static void test_smollm2_greedy(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    for (int threads = 1; threads <= 2; threads++) {
        wick_device *device;
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = threads};
        wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
        const wk_json *const all = wk_json_get(f.root, "greedy");
        for (const wk_json *g = all->child; g; g = g->next) {
            uint32_t n_prompt, n_want;
            const uint32_t *const prompt = ids_of(&f, wk_json_get(g, "prompt_tokens"), &n_prompt);
            const uint32_t *const want = ids_of(&f, wk_json_get(g, "tokens"), &n_want);
            check_greedy(model, (wick_session_desc){0}, prompt, n_prompt, want, n_want);
        }
        wick_model_close(model);
        wick_device_close(device);
    }
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

/* Negative log-likelihood of each next token of a text, and its mean's exponential. */
static void check_nll(wick_math math, double most_rms, double most_relative) {
    fixture f;
    if (!real_model(&f)) skip();
    const wk_json *const reference = wk_json_get(f.root, "nll");
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(reference, "tokens"), &n);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .math = math};
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const logits = all_logits(model, 0, ids, n);
    double total = 0, square = 0;
    const wk_json *want = wk_json_get(reference, "nll_per_token")->child;
    for (uint32_t i = 0; i + 1 < n; i++, want = want->next) {
        const float *const row = logits + (size_t)i * info.n_vocab;
        double sum = 0;
        float most = row[0];
        for (uint32_t k = 1; k < info.n_vocab; k++) most = fmaxf(most, row[k]);
        for (uint32_t k = 0; k < info.n_vocab; k++) sum += exp((double)row[k] - (double)most);
        const double nll = (double)most + log(sum) - (double)row[ids[i + 1]];
        total += nll;
        square += (nll - want->number) * (nll - want->number);
    }
    const double rms = sqrt(square / (n - 1)), perplexity = exp(total / (n - 1));
    const double relative = fabs(perplexity / wk_json_get(reference, "perplexity")->number - 1);
    print_message("perplexity %.4f, off by %.1e; rms difference per token %.5f\n", perplexity,
                  relative, rms);
    assert_true(rms <= most_rms);
    assert_true(relative <= most_relative);
    free(logits);
    wick_model_close(model);
    wick_device_close(device);
    wk_arena_release(&f.arena);
}

static void test_smollm2_nll_exact(void **state) {
    (void)state;
    check_nll(WICK_MATH_EXACT, 5e-4, 1e-4);
}

/* Half of what eight-bit activations cost elsewhere: see docs/numerics.md. */
static void test_smollm2_nll_fast(void **state) {
    (void)state;
    check_nll(WICK_MATH_FAST, 0.045, 4e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2_greedy),   cmocka_unit_test(test_smollm2_same_bits),
        cmocka_unit_test(test_smollm2_logits),   cmocka_unit_test(test_smollm2_nll_exact),
        cmocka_unit_test(test_smollm2_nll_fast),
    };
    return cmocka_run_group_tests_name("smollm2", tests, NULL, NULL);
}
