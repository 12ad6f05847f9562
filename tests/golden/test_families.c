/* Logits of tiny random models against those that PyTorch computes for them: families/README.md of
 * the shared fixtures, which states the bound. */
#include "llm/llm.h"
#include "model/rope.h"

#include <wick/ops.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"
#include "webgpu_options.h"

#include <math.h>
#include <string.h>

enum { MAX_TOKENS = 128 };

typedef struct reference {
    uint32_t ids[MAX_TOKENS], n;
    fixture_file file;   /* of the logits */
    const float *logits; /* [n, n_vocab] */
} reference;

static bool read_reference(const char *name, reference *out) {
    char path[128];
    snprintf(path, sizeof path, "families/%s.tokens", name);
    *out = (reference){.n = 0};
    fixture_file tokens;
    if (!fixture_read("WICK_SHARED_DATA", path, &tokens)) return false;
    for (size_t i = 0; i < tokens.size; i++) {
        const bool is_digit = tokens.data[i] >= '0' && tokens.data[i] <= '9';
        const bool was_digit = i > 0 && tokens.data[i - 1] >= '0' && tokens.data[i - 1] <= '9';
        if (is_digit && !was_digit) assert_true(++out->n <= MAX_TOKENS);
        if (is_digit) out->ids[out->n - 1] = out->ids[out->n - 1] * 10 + tokens.data[i] - '0';
    }
    free(tokens.data);
    snprintf(path, sizeof path, "families/%s.logits.npy", name);
    if (!fixture_read("WICK_SHARED_DATA", path, &out->file)) return false;
    /* .npy 1.0: magic, version, then the size of a header that pads the data to 64 bytes. */
    const size_t header = 10 + (size_t)out->file.data[8] + ((size_t)out->file.data[9] << 8);
    out->logits = (const float *)(const void *)(out->file.data + header);
    return true;
}

/* The whole sequence as one batch of one sequence, after n_padding rows that belong to none. */
static void compute(wick_model *model, const reference *want, uint32_t n_padding, float *logits) {
    enum { BLOCK = 16 };
    const uint32_t n = want->n, n_rows = n + n_padding, n_blocks = (n + BLOCK - 1) / BLOCK;
    wk_batch batch = {.layout = {.n_rows = n_rows,
                                 .n_outputs = n,
                                 .n_sequences = 1,
                                 .n_blocks = n_blocks,
                                 .block_size = BLOCK}};
    wk_batch_layout *const at = &batch.layout;
    at->positions = n_rows;
    at->sequences = 2 * n_rows;
    at->slots = 3 * n_rows;
    at->outputs = 4 * n_rows;
    at->lengths = at->outputs + n;
    at->states = at->lengths + 1;
    at->tables = at->states + 1;
    at->n_words = at->tables + n_blocks;

    uint32_t *const words = calloc(at->n_words, sizeof *words);
    for (uint32_t i = 0; i < n_padding; i++) words[at->sequences + i] = WK_NO_ROW;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = n_padding + i, block = n_blocks - 1 - i / BLOCK; /* in any order */
        words[at->ids + row] = want->ids[i];
        words[at->positions + row] = i;
        words[at->slots + row] = block * BLOCK + i % BLOCK;
        words[at->outputs + i] = row;
    }
    words[at->lengths] = n;
    for (uint32_t i = 0; i < n_blocks; i++) words[at->tables + i] = n_blocks - 1 - i;

    wick_device *const device = model->device;
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    const uint32_t n_pairs = hparams->rope[0].n_pairs;
    const size_t table_size = (size_t)n_rows * n_pairs * sizeof(float);
    float *const cos_rows = malloc(table_size), *const sin_rows = malloc(table_size);
    wk_rope_rows(&hparams->rope[0], (wk_rope_positions){words + at->positions, n_rows, n}, cos_rows,
                 sin_rows);

    const wick_scope scope = wick_scope_begin(device);
    wk_state *state;
    const wk_cache_desc cache = {n_blocks, BLOCK, WICK_F32};
    assert_int_equal(wk_state_make(model->model, 0, &cache, &state), WICK_OK);
    batch.descriptor = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(at->n_words), words,
                                             at->n_words * sizeof *words);
    const wick_shape table = WICK_SHAPE(n_rows, n_pairs);
    batch.cos[0] = wick_tensor_from_data(device, WICK_F32, table, cos_rows, table_size);
    batch.sin[0] = wick_tensor_from_data(device, WICK_F32, table, sin_rows, table_size);
    /* In two pieces, as several devices would. */
    const uint32_t first = hparams->n_layers / 2;
    wick_tensor *hidden = wk_model_forward(model->model, state, &batch, 0, first, NULL);
    hidden =
        wk_model_forward(model->model, state, &batch, first, hparams->n_layers - first, hidden);
    wick_tensor *const result = wk_model_logits(model->model, &batch, hidden);
    const size_t size = (size_t)n * hparams->n_vocab * sizeof(float);
    const wick_status status = wick_read(result, logits, size);
    wick_error error;
    if (status != WICK_OK && wick_device_error(device, &error) != WICK_OK)
        print_message("%s\n", error.message);
    assert_int_equal(status, WICK_OK);
    wick_scope_end(scope);
    wk_state_free(state);
    free(words);
    free(cos_rows);
    free(sin_rows);
}

/* Largest difference over the standard deviation of all reference logits. */
static double worst(const float *found, const float *want, size_t n) {
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)want[i];
        squares += (double)want[i] * (double)want[i];
        const double difference = fabs((double)found[i] - (double)want[i]);
        if (!(difference <= largest)) largest = difference;
    }
    const double mean = sum / (double)n;
    return largest / sqrt(squares / (double)n - mean * mean);
}

static void check(const char *name, const wick_device_desc *desc, uint32_t n_padding) {
    reference want;
    char path[1024], file[128];
    snprintf(file, sizeof file, "families/%s.gguf", name);
    if (!read_reference(name, &want) || !fixture_path("WICK_SHARED_DATA", file, path, sizeof path))
        skip();

    wick_device *device;
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_device_open(desc, &device, &error), WICK_OK);
    const wick_status status = wick_model_open(device, path, NULL, &model, &error);
    if (status != WICK_OK) print_message("%s: %s\n", name, error.message);
    assert_int_equal(status, WICK_OK);
    const size_t n = (size_t)want.n * model->info.n_vocab;
    assert_true(want.file.size >= n * sizeof(float));
    float *const logits = malloc(n * sizeof *logits);
    compute(model, &want, n_padding, logits);
    const double found = worst(logits, want.logits, n);
    print_message("%s: %.1e of 1e-4\n", name, found);
    assert_true(found <= 1e-4);

    free(logits);
    free(want.file.data);
    wick_model_close(model);
    wick_device_close(device);
}

/* What the options ask for; WICK_BACKEND_AUTO: the CPU and the null backend. */
static wick_device_desc chosen;

static void check_all_levels(const char *name) {
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        check(name, &chosen, 3);
        return;
    }
    check(name, &(wick_device_desc){.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF}, 0);
    check(name, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, 3);
    check(name,
          &(wick_device_desc){.backend = WICK_BACKEND_NULL,
                              .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
          1);
}

static void test_llama(void **state) {
    (void)state;
    check_all_levels("llama");
}

static void test_llama_bias_tied(void **state) {
    (void)state;
    check_all_levels("llama-bias-tied");
}

static void test_llama_rope_linear(void **state) {
    (void)state;
    check_all_levels("llama-rope-linear");
}

static void test_llama_rope_llama3(void **state) {
    (void)state;
    check_all_levels("llama-rope-llama3");
}

static void test_llama_rope_yarn(void **state) {
    (void)state;
    check_all_levels("llama-rope-yarn");
}

static void test_mistral(void **state) {
    (void)state;
    check_all_levels("mistral");
}

static void test_qwen2(void **state) {
    (void)state;
    check_all_levels("qwen2");
}

static void test_qwen3(void **state) {
    (void)state;
    check_all_levels("qwen3");
}

static void test_mixtral(void **state) {
    (void)state;
    check_all_levels("mixtral");
}

static void test_qwen2moe(void **state) {
    (void)state;
    check_all_levels("qwen2moe");
}

static void test_qwen3moe(void **state) {
    (void)state;
    check_all_levels("qwen3moe");
}

static void test_gpt_oss(void **state) {
    (void)state;
    check_all_levels("gpt-oss");
}

static void test_minimax_m2(void **state) {
    (void)state;
    check_all_levels("minimax-m2");
}

static void test_llama4(void **state) {
    (void)state;
    check_all_levels("llama4");
}

static void test_deepseek2_lite(void **state) {
    (void)state;
    check_all_levels("deepseek2-lite");
}

static void test_deepseek2_v2(void **state) {
    (void)state;
    check_all_levels("deepseek2-v2");
}

static void test_deepseek2_v3(void **state) {
    (void)state;
    check_all_levels("deepseek2-v3");
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_llama_bias_tied),
        cmocka_unit_test(test_llama_rope_linear),
        cmocka_unit_test(test_llama_rope_llama3),
        cmocka_unit_test(test_llama_rope_yarn),
        cmocka_unit_test(test_mistral),
        cmocka_unit_test(test_qwen2),
        cmocka_unit_test(test_qwen3),
        cmocka_unit_test(test_mixtral),
        cmocka_unit_test(test_qwen2moe),
        cmocka_unit_test(test_qwen3moe),
        cmocka_unit_test(test_gpt_oss),
        cmocka_unit_test(test_minimax_m2),
        cmocka_unit_test(test_llama4),
        cmocka_unit_test(test_deepseek2_lite),
        cmocka_unit_test(test_deepseek2_v2),
        cmocka_unit_test(test_deepseek2_v3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
