/* finetune/batch.c: see batch.h. */
#include "finetune/batch.h"

#include "model/rope.h"

#include <wick/nn.h>
#include <wick/ops.h>

enum { ROW_MULTIPLE = 8 }; /* of an example: fewer shapes, whose kernels compile */

/* Inputs are all tokens but the last one, in rows of one length: row i of an example foretells its
 * token i + 1. */
typedef struct rows {
    const wk_example *examples;
    uint32_t n_examples, length;
    wk_batch_layout layout;
    uint32_t targets; /* a section beside those of the layout */
    uint32_t n_words;
} rows;

static rows lay_out(const wk_example *examples, size_t n) {
    rows r = {.examples = examples, .n_examples = (uint32_t)n};
    wk_batch_layout *const l = &r.layout;
    for (size_t i = 0; i < n; i++) {
        if (examples[i].n - 1 > r.length) r.length = examples[i].n - 1;
        l->n_outputs += examples[i].n_learned;
    }
    r.length = (r.length + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
    l->n_sequences = r.n_examples;
    l->n_rows = r.length * r.n_examples;
    l->block_size = WK_BLOCK_SIZE;
    l->positions = l->ids + l->n_rows;
    l->sequences = l->positions + l->n_rows;
    l->slots = l->sequences; /* there is no cache */
    l->outputs = l->sequences + l->n_rows;
    l->lengths = l->outputs + l->n_outputs;
    l->states = l->lengths;
    l->tables = l->states + l->n_sequences;
    l->n_words = l->tables;
    r.targets = l->n_words;
    r.n_words = l->n_words + l->n_outputs;
    return r;
}

static void fill(const rows *r, uint32_t *words) {
    const wk_batch_layout *const l = &r->layout;
    uint32_t *output = words + l->outputs, *target = words + r->targets;
    for (uint32_t s = 0; s < r->n_examples; s++) {
        const wk_example *const example = &r->examples[s];
        words[l->states + s] = s;
        for (uint32_t t = 0; t < r->length; t++) {
            const uint32_t row = s * r->length + t;
            const bool is_padding = t + 1 >= example->n;
            words[l->ids + row] = is_padding ? 0 : example->ids[t];
            words[l->positions + row] = is_padding ? 0 : t;
            words[l->sequences + row] = is_padding ? WK_NO_ROW : s;
            if (is_padding || !example->is_learned[t + 1]) continue;
            *output++ = row;
            *target++ = example->ids[t + 1];
        }
    }
}

/* The rotary tables of all rows. */
static bool make_tables(const wick_model *model, const uint32_t *positions, uint32_t n,
                        uint32_t context_length, wk_batch *batch) {
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    for (uint32_t i = 0; i < hparams->n_ropes; i++) {
        const wk_rope *const rope = &hparams->rope[i];
        const size_t count = (size_t)n * rope->n_pairs, size = count * sizeof(float);
        float *const both = wk_alloc_array(model->heap, count, 2 * sizeof *both);
        if (both == NULL) {
            (void)wk_fail_memory(wk_device_err(model->device), 2 * size, 0, "a batch");
            return false;
        }
        wk_rope_rows(rope, (wk_rope_positions){positions, n, context_length}, both, both + count);
        const wick_shape shape = WICK_SHAPE(n, rope->n_pairs);
        batch->cos[i] = wick_tensor_from_data(model->device, WICK_F32, shape, both, size);
        batch->sin[i] = wick_tensor_from_data(model->device, WICK_F32, shape, both + count, size);
        wk_free(model->heap, both, 2 * size);
        if (batch->cos[i] == NULL || batch->sin[i] == NULL) return false;
    }
    return true;
}

wick_tensor *wk_examples_loss(const wick_model *model, const wk_example *examples, size_t n,
                              uint32_t context_length) {
    const rows r = lay_out(examples, n);
    wk_batch batch = {.layout = r.layout};
    wick_tensor *targets = NULL;
    uint32_t *const words = wk_alloc_array(model->heap, r.n_words, sizeof *words);
    if (words == NULL) {
        (void)wk_fail_memory(wk_device_err(model->device), r.n_words * sizeof *words, 0, "a batch");
        return NULL;
    }
    fill(&r, words);
    batch.descriptor = wick_tensor_from_data(model->device, WICK_U32, WICK_SHAPE(r.layout.n_words),
                                             words, r.layout.n_words * sizeof *words);
    targets = wick_tensor_from_data(model->device, WICK_U32, WICK_SHAPE(r.layout.n_outputs),
                                    words + r.targets, r.layout.n_outputs * sizeof *words);
    const bool has_tables =
        make_tables(model, words + r.layout.positions, r.layout.n_rows, context_length, &batch);
    wk_free(model->heap, words, r.n_words * sizeof *words);
    if (batch.descriptor == NULL || targets == NULL || !has_tables) return NULL;
    const uint32_t n_layers = wk_model_hparams(model->model)->n_layers;
    wick_tensor *const hidden = wk_model_forward(model->model, NULL, &batch, 0, n_layers, NULL);
    const wick_cross_entropy_desc desc = {.reduction = WICK_REDUCTION_SUM};
    return hidden == NULL
               ? NULL
               : wick_cross_entropy(wk_model_logits(model->model, &batch, hidden), targets, &desc);
}
