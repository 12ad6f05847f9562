/* finetune/finetune.c: training, in slices: the gradients of some examples at a time are summed up,
 * and at the end of a batch the factors make a step. */
#include "finetune/finetune.h"

#include "core/rng.h"
#include "core/str.h"
#include "finetune/batch.h"

#include <wick/grad.h>
#include <wick/ops.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SLICE_ROWS = 512, MOST_EXAMPLES = 64 /* of a slice */ };

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, 0, "the training of an adapter");
}

/* ---- Starting ---- */

static wick_status check_numbers(const wick_finetune_desc *d, wick_error *err) {
    if (d->rank > 4096)
        return wk_fail(err, WICK_ERR_VALUE, "a rank of %" PRIu32 ": at most 4096", d->rank);
    if (!(d->alpha > 0) || isinf(d->alpha))
        return wk_fail(err, WICK_ERR_VALUE, "alpha is %g: it must be positive", (double)d->alpha);
    if (!(d->rate >= 0) || isinf(d->rate))
        return wk_fail(err, WICK_ERR_VALUE, "the rate is %g: it must not be negative", d->rate);
    if (!(d->decay >= 0) || !(d->max_norm > 0))
        return wk_fail(err, WICK_ERR_VALUE,
                       "decay is %g and max_norm %g: decay must not be negative, max_norm positive",
                       d->decay, d->max_norm);
    if (!(d->held_out >= 0 && d->held_out < 1))
        return wk_fail(err, WICK_ERR_VALUE, "%g of the examples cannot be held out: below 1",
                       d->held_out);
    if (d->resume && d->checkpoint == NULL)
        return wk_fail(err, WICK_ERR_VALUE, "there is no checkpoint to resume from");
    return WICK_OK;
}

static wick_status resolve(wick_finetune *f, const wick_finetune_desc *given, wick_error *err) {
    wick_finetune_desc d = *given;
    if (d.rank == 0) d.rank = 8;
    if (d.alpha == 0) d.alpha = 16;
    if (d.rate == 0) d.rate = 1e-4;
    if (d.max_norm == 0) d.max_norm = 1;
    if (d.batch == 0) d.batch = 8;
    WK_TRY(check_numbers(&d, err));
    const size_t n = f->examples->n;
    size_t n_held = (size_t)(d.held_out * (double)n + 0.5);
    if (n_held == 0 && d.held_out > 0) n_held = 1;
    if (n <= n_held)
        return wk_fail(err, WICK_ERR_VALUE,
                       "there is nothing to learn from: %zu examples, of which %zu are held out", n,
                       n_held);
    f->n_held = n_held;
    f->n_trained = n - n_held;
    if (d.epochs == 0) d.epochs = 1;
    if (d.steps == 0) d.steps = ((uint64_t)f->n_trained * d.epochs + d.batch - 1) / d.batch;
    if (d.checkpoint != NULL) {
        const size_t size = strlen(d.checkpoint) + 1;
        char *const copy = wk_arena_alloc(&f->arena, size);
        if (copy == NULL) return fail_memory(err);
        d.checkpoint = memcpy(copy, d.checkpoint, size);
    }
    f->desc = d;
    return WICK_OK;
}

static wick_status check_model(const wick_finetune *f, wick_error *err) {
    const wick_model *const model = f->model;
    const wk_placement *const placement = wk_model_placement(model->model);
    if (f->examples->model != model)
        return wk_fail(err, WICK_ERR_ARGUMENT, "the examples are tokens of another model");
    if (wk_model_hparams(model->model)->is_bidirectional)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the model is an encoder: it foretells nothing");
    if (placement->n_stages > 1 || placement->stages[0].device != model->device)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "some layers are on the CPU beside the device: all must be on one");
    if (model->usage.n_sessions > 0)
        return wk_fail(err, WICK_ERR_STATE, "the model has open sessions");
    return WICK_OK;
}

/* a: uniform in +-1 / sqrt(k), as a linear layer begins; b: zeros, so that nothing changes. */
static wick_status add_factors(wick_finetune *f, const wick_file_tensor *tensor,
                               const wick_shape *shape, wick_error *err) {
    const int64_t rank = f->desc.rank, n = shape->extent[0], k = shape->extent[1];
    const size_t count = (size_t)(rank * (n + k));
    float *const values = wk_alloc_array(&f->heap, count, sizeof *values);
    if (values == NULL) return fail_memory(err);
    wk_rng rng = {.seed = f->desc.seed, .stream = f->n_factors};
    const float most = (float)(1 / sqrt((double)k));
    for (int64_t i = 0; i < rank * k; i++) values[i] = (2 * wk_rng_uniform(&rng) - 1) * most;
    const wk_factors_desc desc = {.name = tensor->name,
                                  .scale = f->desc.alpha / (float)f->desc.rank,
                                  .rank = rank,
                                  .a = values,
                                  .b = values + rank * k};
    const wick_status status =
        wk_model_add_factors(f->model->model, &desc, &f->factors[f->n_factors], err);
    wk_free(&f->heap, values, count * sizeof *values);
    if (status != WICK_OK) return status;
    const wk_factors *const made = f->factors[f->n_factors];
    for (size_t i = 0; i < 2; i++) {
        const size_t at = 2 * f->n_factors + i, size = tensor->name.size + sizeof ".lora_a";
        char *const name = wk_arena_alloc(&f->arena, size);
        f->params[at] = i == 0 ? made->a : made->b;
        f->names[at] = name;
        if (name != NULL)
            snprintf(name, size, "%s%s", tensor->name.text, i == 0 ? ".lora_a" : ".lora_b");
    }
    f->n_factors++;
    return f->names[2 * f->n_factors - 2] != NULL && f->names[2 * f->n_factors - 1] != NULL
               ? WICK_OK
               : fail_memory(err);
}

static wick_status make_factors(wick_finetune *f, wick_error *err) {
    const wk_gguf *const gguf = f->model->gguf;
    const size_t most = gguf->n_tensors;
    f->factors = wk_arena_array(&f->arena, most, sizeof *f->factors);
    f->params = wk_arena_array(&f->arena, 2 * most, sizeof(wick_tensor *));
    f->sums = wk_arena_array(&f->arena, 2 * most, sizeof(wick_tensor *));
    f->names = wk_arena_array(&f->arena, 2 * most, sizeof *f->names);
    f->order = wk_arena_array(&f->arena, f->n_trained, sizeof *f->order);
    if (f->factors == NULL || f->params == NULL || f->sums == NULL || f->names == NULL ||
        f->order == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < most; i++) {
        wick_shape shape;
        if (wk_model_can_adapt(f->model->model, gguf->tensors[i].name, &shape))
            WK_TRY(add_factors(f, &gguf->tensors[i], &shape, err));
    }
    if (f->n_factors > 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "the model has no matrices of attention or of an MLP to adapt");
}

static wick_status list_stored(wick_finetune *f, wick_error *err) {
    const size_t n_params = 2 * f->n_factors;
    const size_t n = n_params + wick_optimizer_n_states(f->optimizer);
    f->stored.names = wk_arena_array(&f->arena, n, sizeof *f->stored.names);
    f->stored.tensors = wk_arena_array(&f->arena, n, sizeof(wick_tensor *));
    if (f->stored.names == NULL || f->stored.tensors == NULL) return fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const bool is_param = i < n_params;
        f->stored.names[i] =
            is_param ? f->names[i] : wick_optimizer_state_name(f->optimizer, i - n_params);
        f->stored.tensors[i] =
            is_param ? f->params[i] : wick_optimizer_state(f->optimizer, i - n_params);
    }
    f->stored.n = n;
    return WICK_OK;
}

static wick_status start(wick_finetune *f, const wick_finetune_desc *desc, wick_error *err) {
    WK_TRY(resolve(f, desc, err));
    WK_TRY(check_model(f, err));
    WK_TRY(make_factors(f, err));
    const wick_optimizer_desc adamw = {.kind = WICK_OPTIMIZER_ADAMW, .weight_decay = f->desc.decay};
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    const wick_status status =
        wick_optimizer_make(&adamw, f->params, f->names, 2 * f->n_factors, &f->optimizer);
    wk_model_give_back(f->model, before);
    if (status != WICK_OK) return wk_pass_on(err, status, &failure);
    WK_TRY(list_stored(f, err));
    f->phase = f->n_held > 0 ? WK_FINETUNE_MEASURING : WK_FINETUNE_LEARNING;
    return f->desc.resume ? wk_finetune_load(f, err) : WICK_OK;
}

wick_status wick_finetune_start(wick_model *model, const wick_examples *examples,
                                const wick_finetune_desc *desc, wick_finetune **finetune,
                                wick_error *error) {
    static const wick_finetune_desc defaults;
    if (finetune != NULL) *finetune = NULL;
    if (model == NULL || examples == NULL || finetune == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_start: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_finetune *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return fail_memory(error);
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    made->model = model;
    made->device = model->device;
    made->generation = wk_device_generation(model->device);
    made->examples = examples;
    made->epoch = UINT64_MAX;
    const wick_status status = start(made, desc != NULL ? desc : &defaults, error);
    if (status == WICK_OK)
        *finetune = made;
    else
        wick_finetune_finish(made);
    return status;
}

static void drop_sums(wick_finetune *f) {
    for (size_t i = 0; i < 2 * f->n_factors; i++) {
        wick_release(f->sums[i]);
        f->sums[i] = NULL;
    }
}

void wick_finetune_finish(wick_finetune *finetune) {
    if (finetune == NULL) return;
    wick_finetune *const f = finetune;
    if (f->reading != NULL) (void)wick_read_finish(f->reading, NULL, 0);
    drop_sums(f);
    wick_optimizer_free(f->optimizer);
    for (size_t i = 0; i < f->n_factors; i++)
        wk_model_remove_factors(f->model->model, f->factors[i]);
    (void)wick_synchronize(f->device); /* else what is queued would keep its memory */
    wk_arena_release(&f->arena);
    wk_heap heap = f->heap; /* f lies in it */
    wk_free(&heap, f, sizeof *f);
}

/* ---- Which examples ---- */

/* Each epoch has an order of its own (Fisher and Yates), which only the seed decides. */
static void shuffle(wick_finetune *f, uint64_t epoch) {
    wk_rng rng = {.seed = f->desc.seed, .stream = (UINT64_C(1) << 32) + epoch};
    for (size_t i = 0; i < f->n_trained; i++) f->order[i] = (uint32_t)i;
    for (size_t i = f->n_trained - 1; i > 0; i--) {
        const size_t other = (size_t)wk_rng_below(&rng, (int64_t)i + 1);
        const uint32_t kept = f->order[i];
        f->order[i] = f->order[other];
        f->order[other] = kept;
    }
    f->epoch = epoch;
}

/* Of the batch of this step, or of those held out. */
static size_t count_examples(const wick_finetune *f) {
    return f->phase == WK_FINETUNE_LEARNING ? f->desc.batch : f->n_held;
}

static wk_example example_of(wick_finetune *f, size_t i) {
    if (f->phase != WK_FINETUNE_LEARNING) return wk_example_at(f->examples, f->n_trained + i);
    const uint64_t number = f->step * f->desc.batch + i;
    if (number / f->n_trained != f->epoch) shuffle(f, number / f->n_trained);
    return wk_example_at(f->examples, f->order[number % f->n_trained]);
}

/* As many of the next ones as make a slice of rows of one length. */
static size_t gather(wick_finetune *f, wk_example *examples) {
    const size_t left = count_examples(f) - f->at;
    size_t n = 0;
    for (uint32_t length = 0; n < left && n < MOST_EXAMPLES; n++) {
        examples[n] = example_of(f, f->at + n);
        if (examples[n].n > length) length = examples[n].n;
        if (n > 0 && (n + 1) * length > SLICE_ROWS) break;
    }
    return n;
}

/* ---- Computing ---- */

static uint64_t count_targets(wick_finetune *f) {
    uint64_t n = 0;
    for (size_t i = 0; i < count_examples(f); i++) n += example_of(f, i).n_learned;
    return n;
}

static wick_status add_gradients(wick_finetune *f, wick_tensor *const *gradients) {
    for (size_t i = 0; i < 2 * f->n_factors; i++) {
        wick_tensor *const sum =
            f->sums[i] != NULL ? wick_add(f->sums[i], gradients[i]) : gradients[i];
        if (sum == NULL) return wk_device_err(f->device)->status;
        wick_retain(sum);
        wick_release(f->sums[i]);
        f->sums[i] = sum;
    }
    return WICK_OK;
}

/* The loss of examples; the gradient of the batch's mean grows by their part. */
static wick_tensor *learn(wick_finetune *f, const wk_example *examples, size_t n,
                          wick_tensor **gradients) {
    wick_tape *tape;
    if (wick_tape_begin(f->device, &tape) != WICK_OK) return NULL;
    wick_status status = WICK_OK;
    for (size_t i = 0; i < 2 * f->n_factors && status == WICK_OK; i++)
        status = wick_tape_watch(tape, f->params[i]);
    wick_tensor *const loss =
        status == WICK_OK ? wk_examples_loss(f->model, examples, n, f->examples->context_length)
                          : NULL;
    wick_tensor *const share =
        wick_full(f->device, WICK_F32, WICK_SCALAR, 1.0 / (double)count_targets(f));
    status = loss != NULL && share != NULL
                 ? wick_grad(tape, loss, share, f->params, 2 * f->n_factors, gradients)
                 : WICK_ERR_ARGUMENT;
    wick_tape_end(tape);
    return status == WICK_OK && add_gradients(f, gradients) == WICK_OK ? loss : NULL;
}

static wick_status begin_slice(wick_finetune *f) {
    wk_example examples[MOST_EXAMPLES];
    const size_t n = gather(f, examples), size = 2 * f->n_factors * sizeof(wick_tensor *);
    wick_tensor **const gradients = wk_alloc_zeroed(&f->heap, size);
    if (gradients == NULL) return fail_memory(wk_device_err(f->device));
    const wick_scope scope = wick_scope_begin(f->device);
    wick_tensor *const loss =
        f->phase == WK_FINETUNE_LEARNING
            ? learn(f, examples, n, gradients)
            : wk_examples_loss(f->model, examples, n, f->examples->context_length);
    const wick_status status =
        loss != NULL ? wick_read_start(loss, &f->reading) : wk_device_err(f->device)->status;
    wick_scope_end(scope);
    wk_free(&f->heap, gradients, size);
    f->next = f->at + n;
    for (size_t i = 0; i < n; i++) {
        f->n_learned += examples[i].n_learned;
        if (f->phase == WK_FINETUNE_LEARNING) f->n_tokens += examples[i].n;
    }
    return status;
}

/* WICK_PENDING: it is still computed. */
static wick_status end_slice(wick_finetune *f) {
    float loss = 0;
    if (wick_read_poll(f->reading) == WICK_PENDING) return WICK_PENDING;
    wick_reading *const reading = f->reading;
    f->reading = NULL;
    WK_TRY(wick_read_finish(reading, &loss, sizeof loss));
    if (!isfinite(loss))
        return wk_device_fail(f->device, WICK_ERR_VALUE,
                              "the loss of step %" PRIu64 " is not a number: a lower rate may help",
                              f->step + 1);
    f->loss += (double)loss;
    f->at = f->next;
    return WICK_OK;
}

static wick_status make_step(wick_finetune *f) {
    const size_t n = 2 * f->n_factors;
    const wick_scope scope = wick_scope_begin(f->device);
    wick_status status = wick_clip_grad_norm(f->sums, n, f->desc.max_norm) != NULL
                             ? WICK_OK
                             : wk_device_err(f->device)->status;
    if (status == WICK_OK) status = wick_optimizer_step(f->optimizer, f->sums, f->desc.rate);
    wick_scope_end(scope);
    drop_sums(f);
    f->step++;
    return status;
}

/* ---- One thing after the other ---- */

static void enter(wick_finetune *f, wk_finetune_phase phase) {
    f->phase = phase;
    f->at = f->next = 0;
    f->n_learned = 0;
    f->loss = 0;
}

/* After a checkpoint, or where none is due. */
static void go_on(wick_finetune *f) {
    enter(f, f->step < f->desc.steps ? WK_FINETUNE_LEARNING : WK_FINETUNE_DONE);
}

static void after_measuring(wick_finetune *f) {
    if (f->step > 0 && f->desc.checkpoint != NULL)
        enter(f, WK_FINETUNE_STORING);
    else
        go_on(f);
}

static void after_step(wick_finetune *f) {
    const bool is_due = f->desc.every > 0 && f->step % f->desc.every == 0;
    if (!is_due && f->step < f->desc.steps)
        go_on(f);
    else if (f->n_held > 0)
        enter(f, WK_FINETUNE_MEASURING);
    else
        after_measuring(f);
}

static void tell(const wick_finetune *f, wick_finetune_event_kind kind,
                 wick_finetune_event *event) {
    *event = (wick_finetune_event){
        .kind = kind, .step = f->step, .steps = f->desc.steps, .n_tokens = f->n_tokens};
    if (kind != WICK_FINETUNE_STEP && kind != WICK_FINETUNE_HELD_OUT) return;
    event->loss = f->loss / (double)f->n_learned;
    event->perplexity = exp(event->loss);
}

static wick_status do_slice(wick_finetune *f, wick_finetune_event *event) {
    if (f->reading == NULL) return begin_slice(f);
    const wick_status status = end_slice(f);
    if (status == WICK_PENDING) return WICK_OK;
    WK_TRY(status);
    if (f->at < count_examples(f)) return WICK_OK;
    if (f->phase == WK_FINETUNE_LEARNING) {
        WK_TRY(make_step(f));
        tell(f, WICK_FINETUNE_STEP, event);
        after_step(f);
    } else {
        tell(f, WICK_FINETUNE_HELD_OUT, event);
        after_measuring(f);
    }
    return WICK_OK;
}

static void compute(wick_finetune *f, wick_finetune_event *event) {
    const wk_model_errors before = wk_model_borrow(f->model, &f->failure);
    wick_status status;
    if (wk_device_generation(f->device) == f->generation && !wk_device_is_lost(f->device))
        status = do_slice(f, event);
    else
        status = wk_device_fail(f->device, WICK_ERR_DEVICE_LOST,
                                "the device was lost, and with it the training since its last "
                                "checkpoint");
    wk_model_give_back(f->model, before);
    if (status != WICK_OK && f->failure.status == WICK_OK) /* without a sentence of its own */
        (void)wk_fail(&f->failure, status, "the training failed: %s", wick_status_text(status));
}

/* A slice, or a checkpoint. */
static wick_status go(wick_finetune *f, wick_finetune_event *event, wick_error *err) {
    if (f->phase == WK_FINETUNE_DONE) return WICK_OK;
    if (f->phase == WK_FINETUNE_STORING) {
        WK_TRY(wick_finetune_checkpoint(f, err));
        tell(f, WICK_FINETUNE_CHECKPOINT, event);
        go_on(f);
        return WICK_PENDING;
    }
    if (f->failure.status == WICK_OK) compute(f, event);
    return f->failure.status == WICK_OK ? WICK_PENDING
                                        : wk_pass_on(err, f->failure.status, &f->failure);
}

wick_status wick_finetune_poll(wick_finetune *finetune, wick_finetune_event *event,
                               wick_error *error) {
    if (finetune == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_poll: finetune is NULL");
    wick_finetune *const f = finetune;
    wick_finetune_event told;
    tell(f, f->phase == WK_FINETUNE_DONE ? WICK_FINETUNE_END : WICK_FINETUNE_WORKING, &told);
    const wick_status status = go(f, &told, error);
    if (event != NULL) *event = told;
    return status;
}
