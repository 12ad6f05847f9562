/* finetune/start.c: what a training is made of: its description, factors and optimizer; made again
 * after the device was lost. */
#include "core/rng.h"
#include "core/str.h"
#include "finetune/finetune.h"
#include "llm/runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, "the training of an adapter");
}

/* ---- The description ---- */

static wick_status check_numbers(const wick_finetune_desc *d, wick_error *err) {
    if (d->rank > 4096)
        return wk_fail(err, WICK_ERR_VALUE, "a rank of %" PRIu32 ": at most 4096", d->rank);
    if (!(d->alpha > 0) || isinf(d->alpha))
        return wk_fail(err, WICK_ERR_VALUE, "alpha is %g: it must be positive", (double)d->alpha);
    if (!(d->rate >= 0) || isinf(d->rate))
        return wk_fail(err, WICK_ERR_VALUE, "the rate is %g: it must not be negative", d->rate);
    if ((unsigned)d->schedule > WICK_SCHEDULE_COSINE)
        return wk_fail(err, WICK_ERR_VALUE, "there is no schedule %d", (int)d->schedule);
    if (!(d->decay >= 0) || !(d->max_norm > 0))
        return wk_fail(err, WICK_ERR_VALUE,
                       "decay is %g and max_norm %g: decay must not be negative, max_norm positive",
                       d->decay, d->max_norm);
    if (!(d->dropout >= 0 && d->dropout < 1))
        return wk_fail(err, WICK_ERR_VALUE, "dropout is %g: it must be from 0 to below 1",
                       d->dropout);
    if (!(d->held_out >= 0 && d->held_out < 1))
        return wk_fail(err, WICK_ERR_VALUE, "%g of the examples cannot be held out: below 1",
                       d->held_out);
    if ((d->targets & ~(uint32_t)WICK_TARGET_ALL) != 0)
        return wk_fail(err, WICK_ERR_VALUE, "there are no targets 0x%" PRIx32, d->targets);
    if (d->resume && d->checkpoint == NULL)
        return wk_fail(err, WICK_ERR_VALUE, "there is no checkpoint to resume from");
    if (d->state != NULL && d->state_size == 0)
        return wk_fail(err, WICK_ERR_FORMAT, "the state to resume from is empty");
    if (d->resume && d->state != NULL)
        return wk_fail(err, WICK_ERR_VALUE, "there are two checkpoints to resume from");
    return WICK_OK;
}

/* Zeros that mean something else. */
static wick_finetune_desc with_defaults(wick_finetune_desc d) {
    if (d.rank == 0) d.rank = 8;
    if (d.alpha == 0) d.alpha = 16;
    if (d.targets == 0) d.targets = WICK_TARGET_ALL;
    if (d.rate == 0) d.rate = 1e-4;
    if (d.max_norm == 0) d.max_norm = 1;
    if (d.epochs == 0) d.epochs = 1;
    if (d.batch == 0) d.batch = 8;
    if (d.eval_every == 0) d.eval_every = d.every;
    return d;
}

static wick_status split_examples(wick_finetune *f, wick_error *err) {
    const size_t n = f->examples->n;
    size_t n_held = (size_t)(f->desc.held_out * (double)n + 0.5);
    if (n_held == 0 && f->desc.held_out > 0) n_held = 1;
    if (n == 0)
        return wk_fail(err, WICK_ERR_VALUE,
                       "there is nothing to learn from: there are no examples");
    if (n <= n_held)
        return wk_fail(err, WICK_ERR_VALUE,
                       "there is nothing to learn from: of %zu example%s %zu would be held out", n,
                       n == 1 ? "" : "s", n_held);
    f->n_held = n_held;
    f->n_trained = n - n_held;
    return WICK_OK;
}

static wick_status resolve(wick_finetune *f, const wick_finetune_desc *given, wick_error *err) {
    wick_finetune_desc *const d = &f->desc;
    *d = with_defaults(*given);
    WK_TRY(check_numbers(d, err));
    if (d->rank_stabilized) d->alpha *= sqrtf((float)d->rank); /* readers divide by the rank */
    WK_TRY(split_examples(f, err));
    if (d->state != NULL) {
        wk_strbuf_append(&f->kept, d->state, d->state_size);
        if (f->kept.failed) return fail_memory(err);
        d->state = NULL;
    }
    if (d->steps == 0) d->steps = ((uint64_t)f->n_trained * d->epochs + d->batch - 1) / d->batch;
    if (d->checkpoint == NULL) return WICK_OK;
    if (!d->resume) WK_TRY(wick_file_check_target(d->checkpoint, NULL, 0, err));
    const size_t size = strlen(d->checkpoint) + 1;
    char *const copy = wk_arena_alloc(&f->arena, size);
    if (copy == NULL) return fail_memory(err);
    d->checkpoint = memcpy(copy, d->checkpoint, size);
    return WICK_OK;
}

static wick_status check_model(const wick_finetune *f, wick_error *err) {
    const wick_model *const model = f->model;
    const wk_placement *const placement = wk_model_placement(model->model);
    if (f->examples->model != model)
        return wk_fail(err, WICK_ERR_ARGUMENT, "the examples are tokens of another model");
    if (wk_model_hparams(model->model)->is_bidirectional)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the model is an encoder: it does not predict tokens");
    if (placement->n_stages > 1 || placement->stages[0].device != model->device)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "some layers are on the CPU beside the device: all must be on one");
    if (model->usage.n_sessions > 0)
        return wk_fail(err, WICK_ERR_STATE, "the model has open sessions");
    return WICK_OK;
}

/* ---- Factors ---- */

/* f->params of factors number i, which the model makes again after a loss. */
static void take_params(wick_finetune *f, size_t i) {
    f->params[2 * i] = f->factors[i]->a;
    f->params[2 * i + 1] = f->factors[i]->b;
}

static wick_status name_params(wick_finetune *f, size_t i, wick_string weight, wick_error *err) {
    const size_t size = weight.size + sizeof ".lora_a";
    for (size_t k = 0; k < 2; k++) {
        char *const name = wk_arena_alloc(&f->arena, size);
        if (name == NULL) return fail_memory(err);
        snprintf(name, size, "%s%s", wk_str_show(weight).text, k == 0 ? ".lora_a" : ".lora_b");
        f->names[2 * i + k] = name;
    }
    return WICK_OK;
}

/* a: uniform in +-1 / sqrt(k), as a linear layer begins; b: zeros, so that nothing changes. */
static wick_status add_factors(wick_finetune *f, const wick_file_tensor *tensor,
                               const wick_shape *shape, wick_error *err) {
    const int64_t rank = f->desc.rank, n = shape->extent[0], k = shape->extent[1];
    const size_t count = (size_t)(rank * (n + k)), i = f->n_factors;
    if (rank > n && rank > k)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "a rank of %" PRId64 " is more than that of '%s', a matrix of %" PRId64
                       " x %" PRId64,
                       rank, wk_str_show(tensor->name).text, n, k);
    WK_TRY(name_params(f, i, tensor->name, err));
    float *const values = wk_alloc_array(&f->heap, count, sizeof *values);
    if (values == NULL) return fail_memory(err);
    wk_rng rng = {.seed = f->desc.seed, .stream = i};
    const float most = (float)(1 / sqrt((double)k));
    memset(values, 0, count * sizeof *values);
    for (int64_t j = 0; j < rank * k; j++) values[j] = (2 * wk_rng_uniform(&rng) - 1) * most;
    const wk_factors_desc desc = {.name = tensor->name,
                                  .scale = f->desc.alpha / (float)f->desc.rank,
                                  .rank = rank,
                                  .a = values,
                                  .b = values + rank * k};
    const wick_status status = wk_model_add_factors(f->model->model, &desc, &f->factors[i], err);
    wk_free(&f->heap, values, count * sizeof *values);
    if (status != WICK_OK) return status;
    f->n_factors++;
    take_params(f, i);
    return WICK_OK;
}

static wick_status make_arrays(wick_finetune *f, size_t most, wick_error *err) {
    f->factors = wk_arena_array(&f->arena, most, sizeof *f->factors);
    f->params = wk_arena_array(&f->arena, 2 * most, sizeof(wick_tensor *));
    f->sums = wk_arena_array(&f->arena, 2 * most, sizeof(wick_tensor *));
    f->names = wk_arena_array(&f->arena, 2 * most, sizeof *f->names);
    f->order = wk_arena_array(&f->arena, f->n_trained, sizeof *f->order);
    if (f->factors == NULL || f->params == NULL || f->sums == NULL || f->names == NULL ||
        f->order == NULL)
        return fail_memory(err);
    if (!f->desc.recompute) return WICK_OK;
    const uint32_t n_layers = wk_model_hparams(f->model->model)->n_layers;
    f->segments = wk_arena_array(&f->arena, n_layers, sizeof *f->segments);
    if (f->segments == NULL) return fail_memory(err);
    f->n_segments = wk_layer_segments(f->model, f->segments);
    return WICK_OK;
}

static wick_status make_factors(wick_finetune *f, wick_error *err) {
    const wk_gguf *const gguf = f->model->gguf;
    _Static_assert((int)WICK_TARGET_Q == WK_PART_Q && (int)WICK_TARGET_K == WK_PART_K &&
                       (int)WICK_TARGET_V == WK_PART_V && (int)WICK_TARGET_O == WK_PART_O &&
                       (int)WICK_TARGET_GATE == WK_PART_GATE && (int)WICK_TARGET_UP == WK_PART_UP &&
                       (int)WICK_TARGET_DOWN == WK_PART_DOWN && (int)WICK_TARGET_IN == WK_PART_IN &&
                       (int)WICK_TARGET_OUT == WK_PART_OUT,
                   "targets are parts");
    WK_TRY(make_arrays(f, gguf->n_tensors, err));
    wk_runners_drop(f->model);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        wick_shape shape;
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        if (wk_model_can_adapt(f->model->model, tensor->name, &shape) & f->desc.targets)
            WK_TRY(add_factors(f, tensor, &shape, err));
    }
    if (f->n_factors > 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "the model has no matrices of these targets to adapt");
}

/* ---- The optimizer ---- */

static wick_status make_optimizer(wick_finetune *f, wick_error *err) {
    const wick_optimizer_desc adamw = {.kind = WICK_OPTIMIZER_ADAMW, .weight_decay = f->desc.decay};
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    const wick_status status =
        wick_optimizer_make(&adamw, f->params, f->names, 2 * f->n_factors, &f->optimizer);
    wk_model_give_back(f->model, before);
    return wk_pass_on(err, status, &failure);
}

/* The optimizer's names are the same ones after a loss, its tensors are not. */
static wick_status list_stored(wick_finetune *f, wick_error *err) {
    const size_t n_params = 2 * f->n_factors;
    const size_t n = n_params + wick_optimizer_n_states(f->optimizer);
    if (f->stored.n == 0) {
        f->stored.names = wk_arena_array(&f->arena, n, sizeof *f->stored.names);
        f->stored.tensors = wk_arena_array(&f->arena, n, sizeof(wick_tensor *));
        if (f->stored.names == NULL || f->stored.tensors == NULL) return fail_memory(err);
        f->stored.n = n;
    }
    for (size_t i = 0; i < n; i++) {
        const bool is_param = i < n_params;
        f->stored.names[i] =
            is_param ? f->names[i] : wick_optimizer_state_name(f->optimizer, i - n_params);
        f->stored.tensors[i] =
            is_param ? f->params[i] : wick_optimizer_state(f->optimizer, i - n_params);
    }
    return WICK_OK;
}

/* ---- Starting and finishing ---- */

static void enter_first(wick_finetune *f) {
    if (f->step == 0 && f->n_held > 0)
        wk_finetune_enter(f, WK_FINETUNE_MEASURING);
    else
        wk_finetune_go_on(f);
}

/* What there is beside the factors. */
static wick_status begin(wick_finetune *f, wick_error *err) {
    f->generation = wk_device_generation(f->device);
    f->epoch = UINT64_MAX;
    f->step = 0;
    WK_TRY(make_optimizer(f, err));
    WK_TRY(list_stored(f, err));
    if (f->has_checkpoint || f->kept.size > 0) WK_TRY(wk_finetune_load(f, err));
    f->n_tokens = wk_finetune_tokens_before(f);
    enter_first(f);
    return WICK_OK;
}

/* The model comes back first where its device was lost before, also where that was given up. */
static wick_status restore_model(wick_finetune *f, wick_error *err) {
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    wick_status status;
    wk_device_settle(f->device);
    while ((status = wk_model_restore(f->model)) == WICK_PENDING) wick_pause(f->device);
    wk_model_give_back(f->model, before);
    return wk_pass_on(err, status, &failure);
}

static wick_status start(wick_finetune *f, const wick_finetune_desc *desc, wick_error *err) {
    WK_TRY(resolve(f, desc, err));
    WK_TRY(check_model(f, err));
    WK_TRY(restore_model(f, err));
    WK_TRY(make_factors(f, err));
    f->has_checkpoint = f->desc.resume;
    return begin(f, err);
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
    wk_strbuf_init(&made->kept, &made->heap);
    made->model = model;
    made->device = model->device;
    made->examples = examples;
    const wick_status status = start(made, desc != NULL ? desc : &defaults, error);
    if (status == WICK_OK)
        *finetune = made;
    else
        wick_finetune_finish(made);
    return status;
}

wick_status wk_finetune_begin_again(wick_finetune *f) {
    for (size_t i = 0; i < f->n_factors; i++) take_params(f, i);
    return begin(f, &f->failure);
}

void wk_finetune_drop(wick_finetune *f) {
    if (f->reading != NULL) (void)wick_read_finish(f->reading, NULL, 0);
    f->reading = NULL;
    wk_finetune_drop_saving(f);
    for (size_t i = 0; i < 2 * f->n_factors; i++) {
        wick_release(f->sums[i]);
        f->sums[i] = NULL;
    }
    wick_optimizer_free(f->optimizer);
    f->optimizer = NULL;
}

void wick_finetune_finish(wick_finetune *finetune) {
    if (finetune == NULL) return;
    wick_finetune *const f = finetune;
    wick_error ignored = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &ignored);
    wk_finetune_drop(f);
    wk_runners_drop(f->model);
    for (size_t i = 0; i < f->n_factors; i++)
        wk_model_remove_factors(f->model->model, f->factors[i]);
    (void)wick_synchronize(f->device); /* else what is queued would keep its memory */
    wk_model_give_back(f->model, before);
    wk_strbuf_release(&f->kept);
    wk_arena_release(&f->arena);
    wk_heap heap = f->heap; /* f lies in it */
    wk_free(&heap, f, sizeof *f);
}
