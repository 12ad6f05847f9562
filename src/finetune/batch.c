/* finetune/batch.c: see batch.h. */
#include "finetune/batch.h"

#include "model/rope.h"

#include <wick/nn.h>

enum { ROW_MULTIPLE = 8 }; /* rows of an example, so that kernels compile for fewer shapes */

/* The rows of an example are its tokens except the last one: row i predicts token i + 1. All
 * examples of a batch have as many rows as the longest one, rounded up.
 *
 *   tokens    7 4 9 2 | 7 5 8      ids       7 4 9 - - - - -   7 5 - - - - - -
 *   learned     x x x |     x      targets   4 9 2             8 */
typedef struct rows {
    const wk_example *examples;
    uint32_t n_examples, length;
    wk_batch_layout layout;
    uint32_t targets; /* where they begin, after the words of the layout */
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
            (void)wk_fail_memory(wk_device_err(model->device), 2 * size, "a batch");
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

static wick_tensor *upload(const wick_model *model, const uint32_t *words, uint32_t n) {
    return wick_tensor_from_data(model->device, WICK_U32, WICK_SHAPE(n), words, n * sizeof *words);
}

bool wk_loss_batch_make(const wick_model *model, const wk_example *examples, size_t n,
                        uint32_t context_length, wk_loss_batch *out) {
    const rows r = lay_out(examples, n);
    uint32_t *const words = wk_alloc_array(model->heap, r.n_words, sizeof *words);
    if (words == NULL) {
        (void)wk_fail_memory(wk_device_err(model->device), r.n_words * sizeof *words, "a batch");
        return false;
    }
    fill(&r, words);
    *out = (wk_loss_batch){.model = model, .batch.layout = r.layout};
    out->batch.descriptor = upload(model, words, r.layout.n_words);
    out->targets = upload(model, words + r.targets, r.layout.n_outputs);
    const bool has_tables = make_tables(model, words + r.layout.positions, r.layout.n_rows,
                                        context_length, &out->batch);
    wk_free(model->heap, words, r.n_words * sizeof *words);
    return out->batch.descriptor != NULL && out->targets != NULL && has_tables;
}

/* ---- The loss ---- */

static wick_tensor *sum_of(const wk_loss_batch *b, wick_tensor *hidden) {
    const wick_cross_entropy_desc desc = {.reduction = WICK_REDUCTION_SUM};
    if (hidden == NULL) return NULL;
    return wick_cross_entropy(wk_model_logits(b->model->model, &b->batch, hidden), b->targets,
                              &desc);
}

wick_tensor *wk_loss_batch_sum(const wk_loss_batch *batch) {
    const wk_model *const model = batch->model->model;
    const uint32_t n_layers = wk_model_hparams(model)->n_layers;
    return sum_of(batch, wk_model_forward(model, NULL, &batch->batch, 0, n_layers, NULL));
}

/* x: the hidden rows; nothing before the first layer. What is queued keeps its memory, so that it
 * is computed here: the forward pass of this segment, and the gradients of the one after it. */
static wick_tensor *run_segment(void *user, wick_tensor *const *x) {
    const wk_layer_segment *const s = user;
    const wick_model *const model = s->batch->model;
    wick_tensor *const y = wk_model_forward(model->model, NULL, &s->batch->batch, s->first,
                                            s->count, s->first > 0 ? x[0] : NULL);
    return y != NULL && wick_synchronize(model->device) == WICK_OK ? y : NULL;
}

wick_tensor *wk_loss_batch_sum_by_segments(const wk_loss_batch *batch, wick_tape *tape,
                                           wk_layer_segment *segments, size_t n_segments) {
    wick_tensor *hidden = NULL;
    for (size_t i = 0; i < n_segments && (i == 0 || hidden != NULL); i++) {
        segments[i].batch = batch;
        hidden = wick_recompute(tape, run_segment, &segments[i], &hidden, i > 0);
    }
    return sum_of(batch, hidden);
}

size_t wk_layer_segments(const wick_model *model, wk_layer_segment *segments) {
    const uint32_t n_layers = wk_model_hparams(model->model)->n_layers;
    size_t n = 0;
    for (uint32_t i = 0; i < n_layers; i++) {
        const uint32_t left = n_layers - i;
        const bool begins = wk_model_separable_layers(model->model, left) == left;
        if (begins) segments[n++] = (wk_layer_segment){.first = i};
        segments[n - 1].count++;
    }
    return n;
}
