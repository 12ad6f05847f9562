/* Logits, or for encoders hidden states, of tiny random models against those that PyTorch computes
 * for them: families/README.md of the shared fixtures, which states the bounds. */
#include "golden/families.h"

/* Families whose recurrences and small norms amplify the rounding of float32. */
static double bound_of(const fixture *of) {
    static const char *const coarse[] = {"gemma4", "qwen35", "qwen35moe", "qwen3next"};
    for (size_t i = 0; i < WK_COUNT(coarse); i++)
        if (strcmp(of->name, coarse[i]) == 0) return 3e-4;
    return 1e-4;
}

/* The whole sequence as one batch of one sequence, after n_padding rows that belong to none. */
static void compute(wick_model *model, const reference *want, uint32_t n_padding, bool is_encoder,
                    float *values) {
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
    const wick_scope scope = wick_scope_begin(device);
    wk_state *state;
    const wk_cache_desc cache = {n_blocks, BLOCK, WICK_F32, 0, 1};
    assert_int_equal(wk_state_make(model->model, 0, &cache, &state), WICK_OK);
    batch.descriptor = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(at->n_words), words,
                                             at->n_words * sizeof *words);
    const wk_rope_positions positions = {words + at->positions, n_rows, n};
    for (uint32_t i = 0; i < hparams->n_ropes; i++)
        make_tables(device, i, positions, &batch, hparams);
    /* In two pieces, as several devices would. */
    const uint32_t first = hparams->n_layers / 2;
    wick_tensor *hidden = wk_model_forward(model->model, state, &batch, 0, first, NULL);
    hidden =
        wk_model_forward(model->model, state, &batch, first, hparams->n_layers - first, hidden);
    wick_tensor *const result = is_encoder ? wk_model_outputs(model->model, &batch, hidden)
                                           : wk_model_logits(model->model, &batch, hidden);
    const uint32_t width = is_encoder ? hparams->n_embd : hparams->n_vocab;
    const wick_status status = wick_read(result, values, (size_t)n * width * sizeof(float));
    wick_error error;
    if (status != WICK_OK && wick_device_error(device, &error) != WICK_OK)
        print_message("%s\n", error.message);
    assert_int_equal(status, WICK_OK);
    wick_scope_end(scope);
    wk_state_free(state);
    free(words);
}

static void check(const fixture *of, const wick_device_desc *desc, uint32_t n_padding) {
    reference want;
    assert_true(read_reference(of, &want));

    wick_device *device;
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(borrow_device(desc, &device, &error), WICK_OK);
    const wick_status status = wick_model_open(device, of->path, NULL, &model, &error);
    if (status != WICK_OK) print_message("%s: %s\n", of->name, error.message);
    assert_int_equal(status, WICK_OK);
    const size_t n = (size_t)want.n * (of->is_encoder ? model->info.n_embd : model->info.n_vocab);
    assert_true(want.file.size >= n * sizeof(float));
    float *const values = malloc(n * sizeof *values);
    compute(model, &want, n_padding, of->is_encoder, values);
    const double found = worst(values, want.values, n);
    const double bound = bound_of(of);
    print_message("%s: %.1e of %.0e\n", of->name, found, bound);
    assert_true(found <= bound);

    free(values);
    free(want.file.data);
    wick_model_close(model);
    give_back_device(device);
}

/* What the options ask for; WICK_BACKEND_AUTO: the CPU and the null backend. */
static wick_device_desc chosen;

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        check(of, &chosen, 3);
        return;
    }
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF}, 0);
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, 3);
    check(of,
          &(wick_device_desc){.backend = WICK_BACKEND_NULL,
                              .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
          1);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const bool does_part = chosen.backend == WICK_BACKEND_WEBGPU && !tests_all();
    return test_some_fixtures("families", test_fixture, does_part ? 6 : 1);
}
