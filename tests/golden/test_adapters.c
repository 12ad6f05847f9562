/* Adapters of the tiny random models of all families: their gradients by differences, losses that
 * fall, the same ones with recomputed layers and, with --backend webgpu, on a GPU; what is saved
 * computes what was trained. Encoders say why they cannot be trained. */
#include "golden/families.h"

#include "adapter_gradients.h"
#include "model/model_struct.h"

#include <wick/convert.h>

#include <unistd.h>

static wick_device_desc chosen;

enum { N_STEPS = 6, N_STEPS_COMPARED = 3, N_EXAMPLES = 2 };

typedef struct history {
    double losses[N_STEPS + 1]; /* of step i, from 1 on */
} history;

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

/* --- Models --- */

typedef struct opened {
    wick_device *device;
    wick_model *model;
    wick_examples *examples;
} opened;

static opened open_on(const wick_device_desc *desc, const char *path, const reference *want) {
    opened o = {.device = NULL};
    wick_error error = {.status = WICK_OK};
    if (borrow_device(desc, &o.device, &error) != WICK_OK ||
        wick_model_open(o.device, path, NULL, &o.model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    o.examples = make_examples(o.model, want);
    return o;
}

static void close_all(opened *o) {
    assert_int_equal(wick_device_error(o->device, NULL), WICK_OK);
    wick_examples_free(o->examples);
    wick_model_close(o->model);
    give_back_device(o->device);
}

/* saved_as: the model's file, of which another model is made for the adapter; NULL: none is. */
static history train_checked(const opened *o, uint32_t n_steps, bool is_recomputed,
                             const char *name, const char *saved_as) {
    const wick_finetune_desc desc = {
        .rank = 2, .rate = 1e-2, .steps = n_steps, .batch = 2, .recompute = is_recomputed};
    wick_finetune *f;
    wick_error error = {.status = WICK_OK};
    history h = {{0}};
    if (wick_finetune_start(o->model, o->examples, &desc, &f, &error) != WICK_OK ||
        train(f, &h, &error) != WICK_OK)
        fail_msg("%s: %s", name, error.message);
    print_message("%s: from %.4f to %.4f\n", name, h.losses[1], h.losses[n_steps]);
    assert_true(h.losses[n_steps] < h.losses[1]);
    if (saved_as != NULL) {
        check_gradients(f, name);
        check_saved(f, saved_as);
    }
    wick_finetune_finish(f);
    return h;
}

static bool is_encoder(const opened *o) {
    return wk_model_hparams(o->model->model)->is_bidirectional;
}

static void check_refused(const opened *o, const char *name) {
    wick_finetune *f;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_finetune_start(o->model, o->examples, NULL, &f, &error),
                     WICK_ERR_UNSUPPORTED);
    print_message("%s: %s\n", name, error.message);
}

static void check_on_cpu(const char *name, const char *path, const reference *want) {
    opened o = open_on(&(wick_device_desc){.backend = WICK_BACKEND_CPU}, path, want);
    if (is_encoder(&o)) {
        check_refused(&o, name);
    } else {
        const history plain = train_checked(&o, N_STEPS, false, name, path);
        const history recomputed = train_checked(&o, N_STEPS, true, name, NULL);
        assert_memory_equal(&recomputed, &plain, sizeof plain);
    }
    close_all(&o);
}

static void check_on_gpu(const char *name, const char *path, const reference *want) {
    history h[2];
    for (int i = 0; i < 2; i++) {
        opened o = open_on(i == 0 ? &(wick_device_desc){.backend = WICK_BACKEND_CPU} : &chosen,
                           path, want);
        const bool is_refused = is_encoder(&o);
        if (is_refused)
            check_refused(&o, name);
        else
            h[i] = train_checked(&o, N_STEPS_COMPARED, false, name, NULL);
        close_all(&o);
        if (is_refused) return;
    }
    double most = 0;
    for (int i = 1; i <= N_STEPS_COMPARED; i++) {
        most = fmax(most, fabs(h[1].losses[i] / h[0].losses[i] - 1));
        /* Before the first update and after it; then differences grow: a step of AdamW is as long
         * for the smallest gradient as for the largest. */
        if (i <= 2) assert_true(most < 1e-4);
    }
    print_message("%s: on WebGPU at most %.1e off\n", name, most);
    assert_true(most < 0.1);
}

static void check(const char *name, const char *path, const reference *want) {
    if (chosen.backend == WICK_BACKEND_WEBGPU)
        check_on_gpu(name, path, want);
    else
        check_on_cpu(name, path, want);
}

/* Layers of other kinds than attention and an MLP. */
static bool is_special(const char *path) {
    wick_device *device;
    wick_model *model;
    bool is_found = false;
    assert_int_equal(wick_device_open(NULL, &device, NULL), WICK_OK);
    assert_int_equal(wick_model_open(device, path, NULL, &model, NULL), WICK_OK);
    const wk_model *const m = model->model;
    for (uint32_t i = 0; i < m->hparams.n_layers; i++)
        is_found = is_found || m->layers[i].spec.channels == WK_CHANNELS_EXPERTS ||
                   wk_layer_is_recurrent(&m->layers[i].spec);
    wick_model_close(model);
    wick_device_close(device);
    return is_found;
}

static void quantize(const char *path, const char *type, const char *to) {
    const wick_quantize_desc desc = {.type = type, .n_threads = 1};
    wick_quantizing *quantizing;
    wick_error error = {.status = WICK_OK};
    if (wick_quantize_start(path, to, &desc, &quantizing, &error) != WICK_OK)
        fail_msg("%s", error.message);
    while (wick_quantize_poll(quantizing, NULL, &error) == WICK_PENDING) continue;
    assert_int_equal(wick_quantize_finish(quantizing, true, &error), WICK_OK);
}

/* Plain models with quantized weights: unit/test_finetune. Experts whose rows do not fill the
 * panels of a GPU (deepseek2-v2: 24 rows) are computed on the CPU. */
static void check_quantized(const fixture *of, const char *path, const reference *want) {
    static const char *const types[] = {"Q8_0", "Q4_0"};
    char file[64], name[NAME_SIZE + 8];
    snprintf(file, sizeof file, "/tmp/wick-adapted-%ld.gguf", (long)getpid());
    const bool is_compared = chosen.backend == WICK_BACKEND_WEBGPU;
    const size_t n = tests_all() && !is_compared ? WK_COUNT(types) : 1;
    chosen.strict = false;
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s %s", of->name, types[i]);
        unlink(file); /* of a test that failed */
        quantize(path, types[i], file);
        check(name, file, want);
        unlink(file);
    }
    chosen.strict = true;
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    reference want;
    assert_true(read_reference(of, &want));
    free(want.file.data);
    check(of->name, of->path, &want);
    if (is_special(of->path)) check_quantized(of, of->path, &want);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const bool is_gpu = chosen.backend == WICK_BACKEND_WEBGPU; /* compiles the gradients, too */
    return test_some_fixtures("adapters", test_fixture, is_gpu ? 6 : tests_all() ? 1 : 2);
}
