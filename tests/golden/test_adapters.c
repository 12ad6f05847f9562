/* Adapters of the tiny random models of all families: their gradients by differences, losses that
 * fall, the same ones with recomputed layers; what is saved computes what was trained. Models that
 * cannot be trained say why. */
#include "golden/families.h"

#include "adapter_gradients.h"
#include "model/model_struct.h"

#include <unistd.h>

enum { N_STEPS = 6, N_EXAMPLES = 2 };

typedef struct history {
    double losses[N_STEPS + 1]; /* of step i, from 1 on */
} history;

/* The operations of mixtures of experts and of recurrent layers have no gradients. */
static bool has_no_gradients(const wick_model *model) {
    const wk_model *const m = model->model;
    for (uint32_t i = 0; i < m->hparams.n_layers; i++)
        if (m->layers[i].spec.channels == WK_CHANNELS_EXPERTS ||
            wk_layer_is_recurrent(&m->layers[i].spec))
            return true;
    return false;
}

/* The tokens of the reference in two halves, all of which are learned. */
static wick_examples *make_examples(const wick_model *model, const reference *want) {
    const uint32_t half = want->n / N_EXAMPLES;
    wick_examples *examples;
    assert_int_equal(wick_examples_make(model, half, &examples, NULL), WICK_OK);
    examples->n_ids = examples->capacity = (size_t)N_EXAMPLES * half;
    examples->ids = wk_alloc(&examples->heap, examples->n_ids * sizeof *examples->ids);
    examples->is_learned = wk_alloc(&examples->heap, examples->n_ids);
    examples->places = wk_alloc(&examples->heap, N_EXAMPLES * sizeof *examples->places);
    examples->n = examples->n_places = N_EXAMPLES;
    memcpy(examples->ids, want->ids, examples->n_ids * sizeof *examples->ids);
    for (size_t i = 0; i < N_EXAMPLES; i++) {
        memset(examples->is_learned + i * half, 1, half);
        examples->is_learned[i * half] = 0;
        examples->places[i] = (wk_example_place){i * half, half, half - 1};
    }
    return examples;
}

/* --- Training --- */

static wick_status train(wick_finetune *f, history *h, wick_error *error) {
    wick_finetune_event event;
    wick_status status = WICK_PENDING;
    while (status == WICK_PENDING) {
        status = wick_finetune_poll(f, &event, error);
        if (event.kind == WICK_FINETUNE_STEP) h->losses[event.step] = event.loss;
    }
    return status;
}

/* Another model with the adapter has the trained model's loss. */
static void check_saved(wick_finetune *f, const char *path) {
    char adapter[64];
    wick_model *other;
    wick_error error = {.status = WICK_OK};
    snprintf(adapter, sizeof adapter, "/tmp/wick-adapters-%ld.gguf", (long)getpid());
    const wk_example example = wk_example_at(f->examples, 1);
    const uint32_t context = f->examples->context_length;
    assert_int_equal(wick_finetune_save(f, adapter, &error), WICK_OK);
    assert_int_equal(wick_model_open(f->device, path, NULL, &other, &error), WICK_OK);
    if (wick_model_add_adapter(other, adapter, 1, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_true(loss_of(other, &example, context) == loss_of(f->model, &example, context));
    wick_model_close(other);
    unlink(adapter);
}

static void train_model(wick_model *model, const fixture *of, const reference *want,
                        const char *path) {
    wick_examples *const examples = make_examples(model, want);
    wick_finetune_desc desc = {.rank = 2, .rate = 1e-2, .steps = N_STEPS, .batch = 2};
    wick_finetune *f;
    wick_error error = {.status = WICK_OK};
    history plain = {{0}}, recomputed = {{0}};
    wick_status status = wick_finetune_start(model, examples, &desc, &f, &error);
    if (status == WICK_OK) {
        status = train(f, &plain, &error);
        if (status == WICK_OK) {
            check_gradients(f, of->name);
            check_saved(f, path);
        }
        wick_finetune_finish(f);
    }
    if (status != WICK_OK) {
        print_message("%s: %s\n", of->name, error.message);
        assert_int_equal(status, WICK_ERR_UNSUPPORTED);
        assert_true(of->is_encoder || has_no_gradients(model));
    } else {
        print_message("%s: from %.4f to %.4f\n", of->name, plain.losses[1], plain.losses[N_STEPS]);
        assert_true(plain.losses[N_STEPS] < plain.losses[1]);
        desc.recompute = true;
        assert_int_equal(wick_finetune_start(model, examples, &desc, &f, &error), WICK_OK);
        assert_int_equal(train(f, &recomputed, &error), WICK_OK);
        assert_memory_equal(&recomputed, &plain, sizeof plain);
        wick_finetune_finish(f);
    }
    wick_examples_free(examples);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    reference want;
    char path[1024], file[128];
    snprintf(file, sizeof file, "families/%s.gguf", of->name);
    assert_true(read_reference(of, &want));
    assert_true(fixture_path("WICK_SHARED_DATA", file, path, sizeof path));
    wick_device *device;
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    assert_int_equal(wick_device_open(&desc, &device, &error), WICK_OK);
    if (wick_model_open(device, path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    train_model(model, of, &want, path);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    free(want.file.data);
    wick_model_close(model);
    wick_device_close(device);
}

int main(void) { return test_each_fixture("adapters", test_fixture, false); }
