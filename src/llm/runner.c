/* llm/runner.c: a runner's life, batches through the stages, and what comes of them. See runner.h;
 * batch.c says what is in a batch. */
#include "llm/runner_struct.h"

#include "sys/clock.h"

#include <assert.h>
#include <string.h>

enum { FIRST_BLOCKS = 16 }; /* of a cache that grows: 1024 tokens */

size_t wk_runner_row_length(const wk_runner *runner) {
    const wk_hparams *const hp = runner->hparams;
    if (runner->desc.is_head) return 1 + (size_t)hp->n_embd;
    if (runner->desc.outputs == WK_OUTPUTS_SCORES) return hp->n_labels;
    return runner->desc.outputs == WK_OUTPUTS_STATES ? hp->n_embd : hp->n_vocab;
}

/* --- Making --- */

static wick_device *device_of(const wk_runner *runner, uint32_t stage) {
    return wk_model_placement(runner->net)->stages[stage].device;
}

static wick_status make_stages(wk_runner *runner) {
    for (uint32_t i = 0; i < runner->n_stages; i++) {
        const wick_status status =
            wk_stage_make(runner->net, wk_runner_first_stage(&runner->desc) + i, &runner->cache,
                          &runner->stages[i]);
        /* A device that is lost comes back when a batch is to run. */
        if (status == WICK_ERR_DEVICE_LOST)
            *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
        else if (status != WICK_OK)
            return status;
    }
    return WICK_OK;
}

wick_status wk_runner_check(const wick_model *model, const wk_runner_desc *desc, wick_error *err) {
    if (desc->chunk_length > WK_MAX_CHUNK)
        return wk_fail(err, WICK_ERR_VALUE, "a chunk of %u tokens: at most %d", desc->chunk_length,
                       (int)WK_MAX_CHUNK);
    if (desc->context_length > INT32_MAX)
        return wk_fail(err, WICK_ERR_VALUE, "a context of %u tokens: at most %d",
                       desc->context_length, INT32_MAX);
    const uint32_t most = wk_model_hparams(model->model)->most_context;
    if (most > 0 && desc->context_length > most)
        return wk_fail(
            err, WICK_ERR_UNSUPPORTED,
            "a context of %u tokens: after %u this model computes otherwise, which is not "
            "supported",
            desc->context_length, most);
    return wk_model_check_cache(model->model, desc->cache_dtype, err);
}

/* A runner of the desc that has nothing yet. */
static wk_runner begin_runner(wick_model *model, const wk_runner_desc *desc) {
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    return (wk_runner){
        .model = model,
        .device = model->device,
        .net = model->model,
        .hparams = hparams,
        .n_stages = wk_runner_count_stages(model->model, desc),
        .desc = *desc,
        .batch.math = desc->math,
        .cache = wk_cache_describe(hparams, desc),
    };
}

static wick_status make_pools(wk_runner *runner, wick_error *err) {
    wk_prefix_init(&runner->prefixes);
    runner->has_prefixes = !runner->desc.is_whole && !runner->desc.is_head;
    runner->has_snapshots =
        runner->has_prefixes && (runner->hparams->is_recurrent || runner->hparams->window > 0);
    if (runner->has_prefixes)
        WK_TRY(
            wk_prefix_grow(wk_runner_heap(runner), &runner->prefixes, runner->cache.n_blocks, err));
    const uint32_t sizes[WK_POOL_COUNT] = {
        [WK_POOL_BLOCKS] = runner->cache.n_blocks,
        [WK_POOL_WINDOW] = runner->cache.n_window_blocks,
        [WK_POOL_SLOTS] = runner->cache.n_slots,
    };
    for (int i = 0; i < WK_POOL_COUNT; i++)
        WK_TRY(wk_blocks_grow(wk_runner_heap(runner), &runner->pools[i], sizes[i], err));
    return WICK_OK;
}

wick_status wk_runner_make(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err) {
    wk_heap *const heap = wk_device_heap(model->device);
    wk_runner *const runner = wk_alloc(heap, sizeof *runner);
    *out = NULL;
    if (!runner) return wk_fail_memory(err, sizeof *runner, "a runner");
    *runner = begin_runner(model, desc);
    if (runner->cache.n_blocks > FIRST_BLOCKS) runner->cache.n_blocks = FIRST_BLOCKS;
    wick_status status = make_pools(runner, err);
    if (status == WICK_OK) {
        wick_error failure = {.status = WICK_OK};
        const wk_model_errors before = wk_model_borrow(model, &failure);
        status = wk_pass_on(err, make_stages(runner), &failure);
        wk_model_give_back(model, before);
    }
    if (status == WICK_OK)
        *out = runner;
    else
        wk_runner_free(runner);
    return status;
}

bool wk_runner_is_stale(const wk_runner *runner) {
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (wk_stage_is_stale(runner->stages[i])) return true;
    return false;
}

/* Brings back what was lost with a device, the cache empty. */
static wick_status renew(wk_runner *runner) {
    wk_runner_forget(runner);
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (wk_stage_is_stale(runner->stages[i])) WK_TRY(wk_stage_renew(runner->stages[i]));
    return WICK_OK;
}

void wk_runner_free(wk_runner *runner) {
    if (!runner) return;
    wk_heap *const heap = wk_runner_heap(runner);
    for (uint32_t i = 0; i < runner->n_parts; i++) wk_model_note_batch(runner->model, false);
    wk_snapshots_drop(runner);
    for (uint32_t i = 0; i < runner->n_stages; i++) wk_stage_free(runner->stages[i]);
    for (int i = 0; i < WK_POOL_COUNT; i++) wk_blocks_free(heap, &runner->pools[i]);
    wk_prefix_free(heap, &runner->prefixes);
    wk_batch_free_rows(runner);
    wk_free(heap, runner->batch.words, runner->max_words * sizeof *runner->batch.words);
    wk_free(heap, runner->batch.logits,
            runner->max_outputs * wk_runner_row_length(runner) * sizeof *runner->batch.logits);
    wk_free(heap, runner, sizeof *runner);
}

/* --- Rehearsal --- */

static wick_status rehearse_class(wick_model *model, wk_runner *runner, uint32_t n_rows,
                                  uint32_t n_blocks) {
    /* Without outputs, chunks may be larger. */
    const wk_outputs outputs = runner->desc.outputs;
    const bool has_outputs = wk_batch_is_used(runner, n_rows, outputs);
    const bool is_wanted = has_outputs || wk_batch_is_used(runner, n_rows, WK_OUTPUTS_NONE);
    wk_batch_lay_out(runner, (wk_batch_size){.n_rows = n_rows,
                                             .n_outputs = !has_outputs                 ? 0
                                                          : outputs == WK_OUTPUTS_LAST ? 1
                                                                                       : n_rows,
                                             .n_sequences = 1,
                                             .n_blocks = n_blocks});
    for (uint32_t i = 0; i < runner->n_stages && is_wanted; i++)
        if (wk_device_compiles(device_of(runner, i)))
            WK_TRY(wk_stage_rehearse(model->model, i, &runner->cache, &runner->batch));
    return WICK_OK;
}

wick_status wk_runner_rehearse(wick_model *model, const wk_runner_desc *desc, uint32_t *n_rows,
                               wick_error *err) {
    WK_TRY(wk_runner_check(model, desc, err));
    wk_runner runner = begin_runner(model, desc);
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(model, &failure);
    const uint32_t shortest = wk_batch_blocks(*n_rows, desc->context_length);
    const uint32_t longest = runner.cache.n_blocks;
    wick_status status = rehearse_class(model, &runner, *n_rows, shortest);
    /* A long text may have its keys shared out among more workgroups, by another program. */
    if (status == WICK_OK && shortest < longest)
        status = rehearse_class(model, &runner, *n_rows, longest);
    wk_model_give_back(model, before);
    *n_rows = *n_rows < wk_round_up_to_power(desc->chunk_length) ? 2 * *n_rows : 0;
    return wk_pass_on(err, status, &failure);
}

/* --- Failures --- */

void wk_sequence_fail(wk_sequence *sequence, wick_status status, const wick_error *why) {
    sequence->has_result = true;
    sequence->result = (wk_result){.status = status, .why = &sequence->why};
    sequence->why = *why;
}

bool wk_runner_is_loss(const wk_runner *runner, wick_status status) {
    return status == WICK_ERR_DEVICE_LOST ||
           (status < 0 && wk_device_check(runner->device) == WICK_ERR_DEVICE_LOST);
}

/* --- Rows of outputs --- */

/* To memory of its own. False: there is none. */
static bool keep_rows(wk_sequence *s) {
    const wk_runner *const runner = s->runner;
    const size_t row = wk_runner_row_length(runner) * sizeof(float);
    if (s->n_rows > s->rows_capacity) {
        float *const rows =
            wk_realloc(wk_runner_heap(runner), s->rows, s->rows_capacity * row, s->n_rows * row);
        if (!rows) return false;
        s->rows = rows;
        s->rows_capacity = s->n_rows;
    }
    memcpy(s->rows, runner->batch.logits + s->first_row * wk_runner_row_length(runner),
           s->n_rows * row);
    s->has_own_rows = true;
    return true;
}

/* Before the memory of the last batch is used again: rows that may still be wanted become the
 * sequences' own, or are lost. */
static void keep_all_rows(wk_runner *runner) {
    for (wk_sequence *s = runner->sequences; s; s = s->next)
        if (s->n_rows > 0 && !s->has_own_rows && !keep_rows(s)) s->n_rows = 0;
}

void wk_sequence_keep_rows(wk_sequence *sequence) {
    if (sequence->n_rows > 0 && !sequence->has_own_rows) (void)keep_rows(sequence);
}

const float *wk_sequence_row(const wk_sequence *sequence, uint32_t i) {
    if (i >= sequence->n_rows) return NULL;
    const float *const rows =
        sequence->has_own_rows ? sequence->rows : sequence->runner->batch.logits;
    const size_t row = sequence->has_own_rows ? i : sequence->first_row + i;
    return rows + row * wk_runner_row_length(sequence->runner);
}

bool wk_sequence_is_short(const wk_sequence *sequence) { return sequence->is_short; }

void wk_sequence_drop_rows(wk_sequence *sequence) {
    sequence->n_rows = 0;
    sequence->has_own_rows = false;
}

wick_status wk_sequence_set_logits(wk_sequence *sequence, const void *logits) {
    const wk_runner *const runner = sequence->runner;
    const size_t row = wk_runner_row_length(runner) * sizeof(float);
    if (sequence->rows_capacity == 0) {
        sequence->rows = wk_alloc(wk_runner_heap(runner), row);
        if (!sequence->rows) return wk_fail_memory(wk_runner_err(runner), row, "logits");
        sequence->rows_capacity = 1;
    }
    memcpy(sequence->rows, logits, row);
    sequence->n_rows = 1;
    sequence->has_own_rows = true;
    sequence->is_short = false;
    return WICK_OK;
}

/* --- Running --- */

/* The next device may last no longer than one that has gone in the middle of several steps. */
static void note_loss(wk_runner *runner, wick_status status) {
    if (runner->batch.n_steps > 1 && wk_runner_is_loss(runner, status)) runner->is_careful = true;
}

static wick_status start_stage(wk_runner *runner, uint32_t stage) {
    runner->at = stage;
    wick_status status;
    do {
        status = wk_stage_start(runner->stages[stage], &runner->batch, &runner->has_begun);
    } while (status == WICK_OK && wk_batch_next_step(runner));
    note_loss(runner, status);
    return status;
}

/* Those of the batch go to the end of the runner's list. */
static void queue_behind(wk_runner *runner) {
    wk_sequence *first[2] = {NULL, NULL}, **last[2] = {&first[0], &first[1]};
    for (wk_sequence *s = runner->sequences; s; s = s->next) {
        const int is_served = s->n_running > 0;
        *last[is_served] = s;
        last[is_served] = &s->next;
    }
    *last[1] = NULL;
    *last[0] = first[1];
    runner->sequences = first[0];
}

static void begin_parts(wk_runner *runner) {
    uint32_t n_rows = 0;
    runner->n_batches++;
    for (uint32_t i = 0; i < runner->n_parts; i++) n_rows += runner->parts[i].n;
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        const wk_part *const part = &runner->parts[i];
        wk_sequence *const s = part->sequence;
        wk_sequence_drop_rows(s);
        s->served = runner->n_batches;
        s->n_running = part->n;
        s->n_beside = n_rows - part->n;
        s->is_dropped = false;
        wk_sequence_note_written(s, part->first, part->n);
        wk_model_note_batch(runner->model, true);
    }
    queue_behind(runner);
    runner->is_running = true;
}

static wick_status start_parts(wk_runner *runner) {
    WK_TRY(wk_batch_describe(runner));
    WK_TRY(start_stage(runner, 0));
    begin_parts(runner);
    return WICK_OK;
}

static wick_status start_batch(wk_runner *runner) {
    runner->has_begun = false;
    runner->begun_ns = wk_clock_ns();
    WK_TRY(wk_batch_choose(runner));
    if (runner->n_parts == 0) return WICK_OK;
    keep_all_rows(runner); /* not before: without memory they are lost */
    return start_parts(runner);
}

/* WICK_OK: the last stage has run. */
static wick_status poll_stages(wk_runner *runner) {
    uint32_t at = runner->at;
    if (runner->has_begun) {
        WK_TRY(wk_stage_poll(runner->stages[at], &runner->batch));
        if (++at == runner->n_stages) return WICK_OK;
    }
    WK_TRY(start_stage(runner, at));
    return WICK_PENDING;
}

/* At the ends of prompts and, where they are long, on the way: at the ends of chunks that were cut
 * for it. */
static void take_snapshot(wk_sequence *s, const wk_part *part, bool is_due) {
    const wk_waiting *const waiting = &part->waiting;
    if (waiting->n == 1 || waiting->n_ahead > 0 || waiting->no_reuse ||
        waiting->outputs >= WK_OUTPUTS_ALL)
        return;
    if (is_due || (part->n == waiting->n && part->n >= WK_LEAST_REUSED))
        wk_sequence_snapshot(s, waiting->ids - part->first);
}

/* status WICK_PENDING: it runs again. */
static void end_part(wk_runner *runner, const wk_part *part, wick_status status) {
    wk_sequence *const s = part->sequence;
    const bool has_run_ahead = runner->batch.n_steps > 1;
    wk_model_note_batch(runner->model, false);
    if (!s) return;
    if (status == WICK_OK && has_run_ahead && !runner->batch.has_drawn) {
        s->has_no_steps = true; /* it runs again, token by token */
        wk_sequence_drop(s);
    }
    const bool is_dropped = s->is_dropped;
    s->n_running = 0;
    s->is_dropped = false;
    if (is_dropped || status == WICK_PENDING) return;
    if (status != WICK_OK) {
        wk_sequence_fail(s, status, wk_runner_err(runner));
        return;
    }
    const bool is_due = part->n == wk_sequence_until_snapshot(s);
    s->has_result = true;
    s->n_cached = part->first + part->n;
    if (s->n_cached > s->n_reached) {
        runner->has_progress = true;
        s->n_reached = s->n_cached;
    }
    const uint32_t n_known = part->waiting.n - part->waiting.n_ahead;
    s->n_ahead = part->n > n_known ? part->n - n_known : 0;
    s->result = (wk_result){.first = part->first,
                            .end = s->n_cached,
                            .n_reused = s->n_reused,
                            .ahead = has_run_ahead ? s->ahead : NULL,
                            .nanoseconds = wk_clock_ns() - runner->begun_ns};
    s->n_reused = 0;
    if (has_run_ahead) memcpy(s->ahead, runner->batch.drawn, sizeof s->ahead);
    if (part->waiting.no_reuse)
        s->is_known = false;
    else
        wk_sequence_learn(s, part->waiting.ids - part->first, part->first,
                          s->n_cached - s->n_ahead);
    take_snapshot(s, part, is_due);
    s->n_rows = part->n_outputs;
    s->is_short = runner->batch.is_short;
    s->result.has_states = part->waiting.states && runner->batch.states;
    if (s->result.has_states)
        memcpy(part->waiting.states, runner->states + part->row * runner->hparams->n_embd,
               part->n * (size_t)runner->hparams->n_embd * sizeof *runner->states);
}

/* What a failed batch has left in the cache is not known: all sequences compute theirs again. */
static void forget_cache(wk_runner *runner) {
    wk_runner_forget(runner);
    for (uint32_t i = 0; i < runner->n_stages; i++) wk_stage_forget_faults(runner->stages[i]);
}

/* After a failure smaller batches follow, without guesses: there may be memory for them, and a text
 * that fails by itself takes no others with it. False: it was as small as can be. */
static bool make_smaller(wk_runner *runner) {
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        wk_part *const part = &runner->parts[i];
        n_rows += part->n;
        if (part->sequence && part->waiting.n_ahead > 0) part->sequence->has_no_guesses = true;
    }
    runner->most_rows = n_rows > 1 ? n_rows / 2 : 1;
    return runner->n_parts > 1 || (n_rows > 1 && !runner->desc.is_whole);
}

/* Step by step back to any size, for each batch that reached further than any before: what is
 * computed again after a failure must not lead to the same failure. */
static void make_larger(wk_runner *runner) {
    if (runner->most_rows == 0 || !runner->has_progress) return;
    runner->most_rows += runner->most_rows / 8 + 1;
    if (runner->most_rows > WK_MAX_CHUNK) runner->most_rows = 0;
}

/* Falls at once and rises slowly, however late a batch was: much else may delay it. The first one
 * of its kind had to be recorded. */
static void note_cost_of(uint64_t *costs, uint32_t n, uint64_t spent) {
    uint32_t class = 0;
    while (UINT32_C(1) << class < n) class ++;
    if (class >= WK_COST_CLASSES) return;
    uint64_t *const cost = &costs[class];
    if (*cost == 0)
        *cost = WK_COST_SEEN;
    else if (*cost == WK_COST_SEEN || spent < *cost)
        *cost = spent;
    else
        *cost += (spent < 2 * *cost ? spent - *cost : *cost) / 16;
}

/* Of batches that decode. */
static void note_cost(wk_runner *runner) {
    const wk_batch_layout *const l = &runner->batch.layout;
    const uint64_t spent = wk_clock_ns() - runner->begun_ns;
    const uint32_t n_steps = runner->batch.n_steps;
    if (2 * l->n_outputs >= l->n_rows && n_steps == 1)
        note_cost_of(runner->costs[0], l->n_rows, spent);
    const bool is_class = (n_steps & (n_steps - 1)) == 0; /* there is no padding */
    if (l->n_rows == 1 && l->n_outputs == 1 && is_class)
        note_cost_of(runner->costs[1], n_steps, spent);
}

uint64_t *wk_sequence_costs(wk_sequence *sequence, bool runs_ahead) {
    return sequence->runner->costs[runs_ahead];
}

uint32_t wk_sequence_most_ahead(const wk_sequence *sequence) {
    return wk_batch_may_run_ahead(sequence->runner) ? WK_MOST_STEPS - 1 : 0;
}

uint32_t wk_sequence_beside(const wk_sequence *sequence) { return sequence->n_beside; }

wk_batch_rows wk_sequence_batch_rows(const wk_sequence *sequence) {
    const wk_runner *const runner = sequence->runner;
    assert(!runner->desc.is_whole && runner->batch.n_steps <= 1);
    uint32_t first = 0;
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        const wk_part *const part = &runner->parts[i];
        if (part->sequence == sequence) return (wk_batch_rows){first, part->n, part->first};
        first += part->n;
    }
    return (wk_batch_rows){.n = 0};
}

static void end_batch(wk_runner *runner, wick_status status) {
    runner->is_running = false;
    if (status == WICK_OK) note_cost(runner);
    const bool is_lost = wk_runner_is_loss(runner, status);
    const bool runs_again = is_lost || (status < 0 && make_smaller(runner));
    runner->has_progress = false;
    for (uint32_t i = 0; i < runner->n_parts; i++)
        end_part(runner, &runner->parts[i], runs_again ? WICK_PENDING : status);
    runner->n_parts = 0;
    if (status == WICK_OK) make_larger(runner);
    note_loss(runner, status);
    if (runner->has_progress) runner->is_careful = false;
    if (status < 0 && !is_lost) forget_cache(runner);
    wk_snapshots_poll(runner);
    if (status < 0) *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
}

static void refuse_batch(wk_runner *runner, wick_status status) {
    const bool is_lost = wk_runner_is_loss(runner, status);
    const bool runs_again = is_lost || make_smaller(runner);
    for (uint32_t i = 0; i < runner->n_parts && !runs_again; i++)
        wk_sequence_fail(runner->parts[i].sequence, status, wk_runner_err(runner));
    runner->n_parts = 0;
    if (runner->has_begun && !is_lost) forget_cache(runner);
    *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
}

/* What was lost with a device. WICK_PENDING: call again. */
static wick_status restore(wk_runner *runner) {
    WK_TRY(wk_model_restore(runner->model));
    if (!wk_runner_is_stale(runner)) return WICK_OK;
    const wick_status status = renew(runner);
    if (!wk_runner_is_loss(runner, status)) return status;
    *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    return WICK_PENDING;
}

static wick_status step_runner(wk_runner *runner) {
    if (runner->is_running) {
        const wick_status status = poll_stages(runner);
        if (status == WICK_PENDING) return WICK_PENDING;
        end_batch(runner, status);
        return WICK_OK;
    }
    WK_TRY(restore(runner)); /* a failure is final: the caller's */
    const wick_status status = start_batch(runner);
    if (status < 0) refuse_batch(runner, status);
    if (status < 0 || runner->is_running) return WICK_PENDING;
    runner->n_parts = 0; /* made up again when their kernels are compiled */
    return status;
}

wick_status wk_sequence_step(wk_sequence *sequence) { return step_runner(sequence->runner); }

static wick_status step_runners(wick_model *model) {
    wick_status status = WICK_OK;
    for (wk_runner *runner = model->runners; runner; runner = runner->next) {
        const wick_status stepped = step_runner(runner);
        if (stepped < 0) return stepped;
        if (stepped == WICK_PENDING) status = WICK_PENDING;
    }
    return status;
}

wick_status wick_model_step(wick_model *model, wick_error *error) {
    if (!model) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_step: model is NULL");
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(model, &failure);
    const wick_status status = step_runners(model);
    wk_model_give_back(model, before);
    return status < 0 ? wk_pass_on(error, status, &failure) : status;
}

bool wk_sequence_is_stale(const wk_sequence *sequence) {
    return wk_runner_is_stale(sequence->runner);
}

wick_status wk_sequence_restore(wk_sequence *sequence) {
    wk_runner *const runner = sequence->runner;
    bool is_lost = wk_runner_is_stale(runner);
    for (uint32_t i = 0; i < runner->n_stages; i++)
        is_lost = is_lost || wk_device_is_lost(device_of(runner, i));
    if (!is_lost || !runner->is_running) return restore(runner);
    const wick_status status = step_runner(runner); /* the batch that was lost ends first */
    return status < 0 ? status : WICK_PENDING;
}

/* --- Results --- */

bool wk_sequence_take(wk_sequence *sequence, wk_result *result) {
    const bool has_result = sequence->has_result;
    sequence->has_result = false;
    *result = sequence->result;
    return has_result;
}

bool wk_sequence_has_result(const wk_sequence *sequence) { return sequence->has_result; }

uint32_t wk_sequence_running(const wk_sequence *sequence) {
    return sequence->is_dropped ? 0 : sequence->n_running;
}

wick_status wk_sequence_complete(wk_sequence *sequence) {
    wk_runner *const runner = sequence->runner;
    if (sequence->n_rows == 0) return WICK_ERR_DEVICE_LOST;
    if (!sequence->is_short) return WICK_OK;
    wick_status status = WICK_ERR_DEVICE_LOST; /* others have used the memory, or later steps */
    if (!sequence->has_own_rows && !runner->is_running && sequence->n_rows == 1)
        status = wk_stage_complete(runner->stages[runner->n_stages - 1], &runner->batch);
    if (status == WICK_OK) sequence->is_short = false;
    if (status == WICK_OK || status == WICK_PENDING) return status;
    wk_sequence_drop_rows(sequence);
    if (!wk_runner_is_loss(runner, status)) return status;
    *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    return WICK_ERR_DEVICE_LOST;
}
