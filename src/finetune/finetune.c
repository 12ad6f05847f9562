/* finetune/finetune.c: training, in slices: the gradients of some examples at a time are summed up,
 * and at the end of a batch the factors make a step. */
#include "finetune/finetune.h"

#include "core/hash.h"
#include "core/rng.h"
#include "llm/runner.h"

#include <wick/ops.h>

#include <inttypes.h>
#include <math.h>

enum { SLICE_ROWS = 512, MOST_EXAMPLES = 64 /* of a slice */ };

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

/* Each epoch reads every example once, the last one of these a part of them. */
uint64_t wk_finetune_tokens_before(wick_finetune *f) {
    const uint64_t n = f->step * f->desc.batch, epochs = n / f->n_trained;
    uint64_t all = 0, last = 0;
    shuffle(f, epochs);
    for (size_t i = 0; i < f->n_trained; i++) {
        const uint32_t size = wk_example_at(f->examples, f->order[i]).n;
        all += size;
        if (i < n % f->n_trained) last += size;
    }
    return epochs * all + last;
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
static wick_tensor *learn(wick_finetune *f, const wk_loss_batch *batch, wick_tensor **gradients) {
    const size_t n = 2 * f->n_factors;
    wick_tape *tape;
    if (wick_tape_begin(f->device, &tape) != WICK_OK) return NULL;
    wick_status status = WICK_OK;
    for (size_t i = 0; i < n && status == WICK_OK; i++)
        status = wick_tape_watch(tape, f->params[i]);
    wick_tensor *loss = NULL;
    if (status == WICK_OK && f->segments != NULL)
        loss = wk_loss_batch_sum_by_segments(batch, tape, f->segments, f->n_segments);
    else if (status == WICK_OK)
        loss = wk_loss_batch_sum(batch);
    wick_tensor *const share =
        wick_full(f->device, WICK_F32, WICK_SCALAR, 1.0 / (double)f->n_targets);
    if (loss != NULL && share != NULL &&
        wick_grad(tape, loss, share, f->params, n, gradients) != WICK_OK)
        loss = NULL;
    wick_tape_end(tape);
    if (loss == NULL || share == NULL || add_gradients(f, gradients) != WICK_OK) return NULL;
    return loss;
}

/* The same with dropout: its random numbers follow from the seed, the step and the place in the
 * batch, so that a training that is resumed draws what it would have drawn. */
static wick_tensor *learn_with_dropout(wick_finetune *f, const wk_loss_batch *batch,
                                       wick_tensor **gradients) {
    uint64_t *const streams = wk_device_streams(f->device);
    const uint64_t kept = *streams;
    *streams = wk_hash_u64(f->desc.seed + wk_hash_u64(f->step + wk_hash_u64(f->at)));
    for (size_t i = 0; i < f->n_factors; i++) f->factors[i]->dropout = (float)f->desc.dropout;
    wick_tensor *const loss = learn(f, batch, gradients);
    for (size_t i = 0; i < f->n_factors; i++) f->factors[i]->dropout = 0;
    *streams = kept;
    return loss;
}

static wick_tensor *compute_loss(wick_finetune *f, const wk_example *examples, size_t n,
                                 wick_tensor **gradients) {
    wk_loss_batch batch;
    if (!wk_loss_batch_make(f->model, examples, n, f->examples->context_length, &batch))
        return NULL;
    if (f->phase != WK_FINETUNE_LEARNING) return wk_loss_batch_sum(&batch);
    return f->desc.dropout > 0 ? learn_with_dropout(f, &batch, gradients)
                               : learn(f, &batch, gradients);
}

static wick_status begin_slice(wick_finetune *f) {
    wk_example examples[MOST_EXAMPLES];
    if (f->phase == WK_FINETUNE_LEARNING && f->at == 0) f->n_targets = count_targets(f);
    const size_t n = gather(f, examples), size = 2 * f->n_factors * sizeof(wick_tensor *);
    wick_tensor **const gradients = wk_alloc_zeroed(&f->heap, size);
    if (gradients == NULL)
        return wk_fail_memory(wk_device_err(f->device), size, "the gradients of an adapter");
    const wick_scope scope = wick_scope_begin(f->device);
    wick_tensor *const loss = compute_loss(f, examples, n, gradients);
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

static double rate_of(const wick_finetune *f, uint64_t step) {
    const wick_schedule schedule = {.kind = f->desc.schedule,
                                    .rate = f->desc.rate,
                                    .warmup = f->desc.warmup,
                                    .steps = f->desc.steps};
    return wick_schedule_rate(&schedule, step);
}

static wick_status make_step(wick_finetune *f) {
    const size_t n = 2 * f->n_factors;
    const wick_scope scope = wick_scope_begin(f->device);
    wick_status status = wick_clip_grad_norm(f->sums, n, f->desc.max_norm) != NULL
                             ? WICK_OK
                             : wk_device_err(f->device)->status;
    if (status == WICK_OK) status = wick_optimizer_step(f->optimizer, f->sums, rate_of(f, f->step));
    wick_scope_end(scope);
    for (size_t i = 0; i < n; i++) {
        wick_release(f->sums[i]);
        f->sums[i] = NULL;
    }
    f->step++;
    wk_runners_drop(f->model); /* what they have computed is not the model's any more */
    return status;
}

/* ---- Phases ---- */

void wk_finetune_enter(wick_finetune *f, wk_finetune_phase phase) {
    f->phase = phase;
    f->at = f->next = 0;
    f->n_learned = 0;
    f->loss = 0;
}

static bool is_due(const wick_finetune *f, uint64_t every) {
    return f->step > 0 && (f->step == f->desc.steps || (every > 0 && f->step % every == 0));
}

void wk_finetune_go_on(wick_finetune *f) {
    wk_finetune_enter(f, f->step < f->desc.steps ? WK_FINETUNE_LEARNING : WK_FINETUNE_DONE);
}

static void after_measuring(wick_finetune *f) {
    if (f->desc.checkpoint != NULL && is_due(f, f->desc.every))
        wk_finetune_enter(f, WK_FINETUNE_STORING);
    else
        wk_finetune_go_on(f);
}

static void after_step(wick_finetune *f) {
    if (f->n_held > 0 && is_due(f, f->desc.eval_every))
        wk_finetune_enter(f, WK_FINETUNE_MEASURING);
    else
        after_measuring(f);
}

static void report(const wick_finetune *f, wick_finetune_event_kind kind,
                   wick_finetune_event *event) {
    *event = (wick_finetune_event){
        .kind = kind, .step = f->step, .steps = f->desc.steps, .n_tokens = f->n_tokens};
    if (kind != WICK_FINETUNE_STEP && kind != WICK_FINETUNE_HELD_OUT) return;
    event->loss = f->loss / (double)f->n_learned;
    event->perplexity = exp(event->loss);
    if (kind == WICK_FINETUNE_STEP) event->rate = rate_of(f, f->step - 1);
}

static wick_status do_slice(wick_finetune *f, wick_finetune_event *event) {
    if (f->reading == NULL) return begin_slice(f);
    const wick_status status = end_slice(f);
    if (status == WICK_PENDING) return WICK_OK;
    WK_TRY(status);
    if (f->at < count_examples(f)) return WICK_OK;
    if (f->phase == WK_FINETUNE_LEARNING) {
        WK_TRY(make_step(f));
        report(f, WICK_FINETUNE_STEP, event);
        after_step(f);
    } else {
        report(f, WICK_FINETUNE_HELD_OUT, event);
        after_measuring(f);
    }
    return WICK_OK;
}

/* ---- A device that is lost ---- */

/* A device may refuse a call before it says that it is lost. */
static bool has_lost_device(const wick_finetune *f) {
    wick_error ignored = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(f->device, &ignored);
    const bool is_lost = wk_device_check(f->device) == WICK_ERR_DEVICE_LOST;
    wk_device_give_back(f->device, before);
    return is_lost || wk_device_generation(f->device) != f->generation;
}

/* After a failure: whether it is one of a device that is to come back. */
static bool begin_restoring(wick_finetune *f) {
    if (!has_lost_device(f)) return false;
    wk_finetune_drop(f);
    wk_finetune_enter(f, WK_FINETUNE_RESTORING);
    return true;
}

/* The status of the slice, or WICK_PENDING where the device was lost. */
static wick_status do_slice_or_restore(wick_finetune *f, wick_finetune_event *event) {
    const bool is_restoring = f->phase == WK_FINETUNE_RESTORING;
    if (is_restoring) WK_TRY(wk_model_restore(f->model)); /* which gives up in the end */
    wick_status status = is_restoring ? wk_finetune_begin_again(f) : do_slice(f, event);
    if (status == WICK_OK) status = f->failure.status; /* an operation that is queued has failed */
    if (status != WICK_OK && begin_restoring(f)) {
        f->failure = (wick_error){.status = WICK_OK};
        return WICK_PENDING;
    }
    if (status == WICK_OK && is_restoring) report(f, WICK_FINETUNE_RESTORED, event);
    return status;
}

static void compute(wick_finetune *f, wick_finetune_event *event) {
    const wk_model_errors before = wk_model_borrow(f->model, &f->failure);
    const wick_status status = do_slice_or_restore(f, event);
    wk_model_give_back(f->model, before);
    if (status < 0 && f->failure.status == WICK_OK) /* without a sentence of its own */
        (void)wk_fail(&f->failure, status, "the training failed: %s", wick_status_text(status));
}

/* A failure to write is not final, for there may be room for the file later. */
static wick_status store(wick_finetune *f, wick_finetune_event *event, wick_error *err) {
    wick_error reason = {.status = WICK_OK};
    const wick_status status = wick_finetune_checkpoint(f, &reason);
    if (status != WICK_OK)
        return begin_restoring(f) ? WICK_PENDING : wk_pass_on(err, status, &reason);
    wk_device_settle(f->device);
    report(f, WICK_FINETUNE_CHECKPOINT, event);
    wk_finetune_go_on(f);
    return WICK_PENDING;
}

/* ---- Polling ---- */

static wick_status advance(wick_finetune *f, wick_finetune_event *event, wick_error *err) {
    if (f->phase == WK_FINETUNE_DONE) return WICK_OK;
    if (f->phase == WK_FINETUNE_STORING) return store(f, event, err);
    if (f->failure.status == WICK_OK) compute(f, event);
    return f->failure.status == WICK_OK ? WICK_PENDING
                                        : wk_pass_on(err, f->failure.status, &f->failure);
}

wick_status wick_finetune_poll(wick_finetune *finetune, wick_finetune_event *event,
                               wick_error *error) {
    if (finetune == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_poll: finetune is NULL");
    wick_finetune *const f = finetune;
    wick_finetune_event found;
    report(f, f->phase == WK_FINETUNE_DONE ? WICK_FINETUNE_END : WICK_FINETUNE_WORKING, &found);
    const wick_status status = advance(f, &found, error);
    if (event != NULL) *event = found;
    return status;
}
