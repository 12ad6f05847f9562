/* llm/runner.c: see runner.h. */
#include "llm/runner.h"

#include "model/rope.h"

#include <assert.h>
#include <string.h>

enum {
    MAX_CHUNK = 8192,
    LOGITS_BYTES = 16 * 1024 * 1024, /* most that a batch of logits may take, one row excepted */
    LEAST_KEYS = 256,                /* that the plans of short texts are made for */
    CHEAP_ROWS = 32, /* batches of up to this size cost the same: the weights are read once */
};

struct wk_runner {
    wick_device *device; /* the model's: it holds the errors of all */
    const wk_model *net;
    const wk_hparams *hparams;
    wk_runner_desc desc;
    wk_cache_desc cache;
    uint32_t window_begin; /* from this position on, layers with a window have keys and values */
    wk_stage *stages[WK_MAX_STAGES];
    uint32_t n_stages;

    /* A batch on the host, as large as the largest one that there was. */
    wk_stage_batch batch;
    uint32_t max_rows, max_outputs, max_words;
    size_t n_tables, n_hidden; /* floats of all rotary tables, and of hidden rows */
    float *tables;
    float *rows; /* [max_rows, n_embd] of batch.rows; NULL: there was none yet */

    bool is_running;
    uint32_t at;    /* the stage that is computing */
    bool has_begun; /* else its kernels compile */
};

static uint32_t round_up_to_power(uint32_t n) {
    assert(n <= UINT32_C(1) << 31); /* else there is none */
    uint32_t power = 1;
    while (power < n) power *= 2;
    return power;
}

static bool has_window_blocks(const wk_runner *runner) { return runner->cache.n_window_blocks > 0; }

static bool gives_states(const wk_runner *runner) {
    return runner->desc.outputs == WK_OUTPUTS_STATES;
}

/* Numbers in a row of results. */
static size_t row_length(const wk_runner *runner) {
    return gives_states(runner) ? runner->hparams->n_embd : runner->hparams->n_vocab;
}

static uint32_t max_output_rows(const wk_runner *runner) {
    const uint64_t row_bytes = row_length(runner) * sizeof(float);
    const uint64_t rows = LOGITS_BYTES / row_bytes;
    const uint32_t most = rows < 1 ? 1 : rows > MAX_CHUNK ? MAX_CHUNK : (uint32_t)rows;
    const uint32_t power = round_up_to_power(most);
    return power > most ? power / 2 : power;
}

/* --- Making --- */

/* Blocks of the class of key lengths that n_keys are in: 256, 512, 1024, ... keys, or all that the
 * cache has room for. What a plan dispatches, and what it is expected to cost, follows its class.
 */
static uint32_t class_blocks(const wk_runner *runner, uint32_t n_keys) {
    uint64_t n = LEAST_KEYS;
    while (n < n_keys) n *= 2;
    const uint64_t blocks = n / WK_BLOCK_SIZE;
    return blocks < runner->cache.n_blocks ? (uint32_t)blocks : runner->cache.n_blocks;
}

/* Sections of a descriptor, one after the other. */
static void lay_out(const wk_runner *runner, uint32_t n_rows, uint32_t n_outputs, uint32_t n_blocks,
                    wk_stage_batch *batch) {
    wk_batch_layout l = {.n_rows = n_rows,
                         .n_outputs = n_outputs,
                         .n_sequences = 1,
                         .n_blocks = n_blocks,
                         .block_size = WK_BLOCK_SIZE};
    l.positions = l.ids + n_rows;
    l.sequences = l.positions + n_rows;
    l.slots = l.sequences + n_rows;
    l.outputs = l.slots + n_rows;
    l.lengths = l.outputs + n_outputs;
    l.states = l.lengths + l.n_sequences;
    l.tables = l.states + l.n_sequences;
    l.n_words = l.tables + l.n_sequences * l.n_blocks;
    if (has_window_blocks(runner)) {
        batch->window_slots = l.n_words;
        batch->window_tables = batch->window_slots + n_rows;
        l.n_words = batch->window_tables + l.n_sequences * l.n_blocks;
    }
    batch->given = l.n_words;
    if (batch->rows) l.n_words += n_rows;
    batch->layout = l;
}

static wick_status make_tables(wk_runner *runner, wick_error *err) {
    const wk_hparams *const hp = runner->hparams;
    for (uint32_t i = 0; i < hp->n_ropes; i++)
        runner->n_tables += 2 * (size_t)hp->rope[i].n_pairs * runner->max_rows;
    if (runner->n_tables == 0) return WICK_OK;
    runner->tables =
        wk_alloc_array(wk_device_heap(runner->device), runner->n_tables, sizeof *runner->tables);
    if (!runner->tables)
        return wk_fail_memory(err, runner->n_tables * sizeof *runner->tables, 0, "a batch");
    float *at = runner->tables;
    for (uint32_t i = 0; i < hp->n_ropes; i++) {
        const size_t n = (size_t)hp->rope[i].n_pairs * runner->max_rows;
        runner->batch.cos[i] = at;
        runner->batch.sin[i] = at + n;
        at += 2 * n;
    }
    return WICK_OK;
}

static wick_status make_host_memory(wk_runner *runner, wick_error *err) {
    wk_heap *const heap = wk_device_heap(runner->device);
    wk_stage_batch *const batch = &runner->batch;
    WK_TRY(make_tables(runner, err));
    lay_out(runner, runner->max_rows, runner->max_rows, runner->cache.n_blocks, batch);
    runner->max_words = batch->layout.n_words + runner->max_rows; /* with batch.given */
    batch->words = wk_alloc_array(heap, runner->max_words, sizeof *batch->words);
    if (!batch->words)
        return wk_fail_memory(err, runner->max_words * sizeof *batch->words, 0, "a batch");
    if (runner->n_stages == 1) return WICK_OK;
    runner->n_hidden = (size_t)runner->max_rows * runner->hparams->n_embd;
    batch->hidden = wk_alloc_array(heap, runner->n_hidden, sizeof *batch->hidden);
    if (batch->hidden) return WICK_OK;
    return wk_fail_memory(err, runner->n_hidden * sizeof *batch->hidden, 0, "a batch");
}

static wick_device *device_of(const wk_runner *runner, uint32_t stage) {
    return wk_model_placement(runner->net)->stages[stage].device;
}

static uint64_t stage_cache_bytes(const wk_runner *runner, uint32_t stage) {
    return wk_state_bytes(runner->net, stage, &runner->cache);
}

/* The cache is taken at once but touched token by token: a system that gives more than it has would
 * fail in the middle of a text. */
static wick_status check_memory(const wk_runner *runner, wick_error *err) {
    for (uint32_t i = 0; i < runner->n_stages; i++) {
        wick_device_info info;
        wick_device_get_info(device_of(runner, i), &info);
        const uint64_t needed = stage_cache_bytes(runner, i);
        if (info.memory_available > 0 && needed > info.memory_available)
            return wk_fail_memory(err, needed, info.memory_available, "the cache of this context");
    }
    return WICK_OK;
}

static wick_status make_stages(wk_runner *runner) {
    for (uint32_t i = 0; i < runner->n_stages; i++) {
        const wick_status status =
            wk_stage_make(runner->net, i, &runner->cache, &runner->stages[i]);
        /* A device that is lost comes back when a batch is to run. */
        if (status == WICK_ERR_DEVICE_LOST)
            *wk_device_err(runner->device) = (wick_error){.status = WICK_OK};
        else if (status != WICK_OK)
            return status;
    }
    return WICK_OK;
}

/* A runner of the desc that has nothing yet. */
static wick_status begin_runner(const wick_model *model, const wk_runner_desc *desc,
                                wk_runner *runner, wick_error *err) {
    if (desc->chunk_length > MAX_CHUNK)
        return wk_fail(err, WICK_ERR_VALUE, "a chunk of %u tokens: at most %d", desc->chunk_length,
                       (int)MAX_CHUNK);
    if (desc->context_length > INT32_MAX)
        return wk_fail(err, WICK_ERR_VALUE, "a context of %u tokens: at most %d",
                       desc->context_length, INT32_MAX);
    WK_TRY(wk_model_check_cache(model->model, desc->cache_dtype, err));
    *runner = (wk_runner){
        .device = model->device,
        .net = model->model,
        .hparams = wk_model_hparams(model->model),
        .n_stages = wk_model_placement(model->model)->n_stages,
        .desc = *desc,
        .batch.math = desc->math,
        .cache = wk_cache_describe(wk_model_hparams(model->model), desc),
        .max_rows = round_up_to_power(desc->chunk_length),
    };
    return WICK_OK;
}

wick_status wk_runner_make(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err) {
    *out = NULL;
    wk_heap *const heap = wk_device_heap(model->device);
    wk_runner *const runner = wk_alloc(heap, sizeof *runner);
    if (!runner) return wk_fail_memory(err, sizeof *runner, 0, "a runner");
    wick_status status = begin_runner(model, desc, runner, err);
    if (status != WICK_OK) {
        wk_free(heap, runner, sizeof *runner);
        return status;
    }
    status = check_memory(runner, err);
    if (status == WICK_OK) status = make_host_memory(runner, err);
    if (status == WICK_OK) {
        wick_error failure = {.status = WICK_OK};
        const wk_model_errors before = wk_model_borrow(model, &failure);
        status = wk_pass_on(err, make_stages(runner), &failure);
        wk_model_give_back(model, before);
    }
    if (status != WICK_OK) {
        wk_runner_free(runner);
        return status;
    }
    *out = runner;
    return WICK_OK;
}

bool wk_runner_is_stale(const wk_runner *runner) {
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (wk_stage_is_stale(runner->stages[i])) return true;
    return false;
}

wick_status wk_runner_renew(wk_runner *runner) {
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (wk_stage_is_stale(runner->stages[i])) WK_TRY(wk_stage_renew(runner->stages[i]));
    return WICK_OK;
}

static size_t rows_bytes(const wk_runner *runner) {
    return (size_t)runner->max_rows * runner->hparams->n_embd * sizeof(float);
}

void wk_runner_free(wk_runner *runner) {
    if (!runner) return;
    wk_heap *const heap = wk_device_heap(runner->device);
    for (uint32_t i = 0; i < runner->n_stages; i++) wk_stage_free(runner->stages[i]);
    wk_stage_batch *const batch = &runner->batch;
    wk_free(heap, batch->words, runner->max_words * sizeof *batch->words);
    wk_free(heap, runner->rows, runner->rows ? rows_bytes(runner) : 0);
    wk_free(heap, runner->tables, runner->n_tables * sizeof *runner->tables);
    wk_free(heap, batch->hidden, runner->n_hidden * sizeof *batch->hidden);
    wk_free(heap, batch->logits, runner->max_outputs * row_length(runner) * sizeof *batch->logits);
    wk_free(heap, runner, sizeof *runner);
}

/* --- Running --- */

/* Rows of a batch of n tokens. Whole texts cannot be cut, and padding is read as keys: they are
 * rounded up to eighths of a power of two (40, 48, 56, 64, 80, 96, ...). */
static uint32_t round_up_rows(const wk_runner *runner, uint32_t n) {
    const uint32_t power = round_up_to_power(n);
    if (!runner->desc.is_whole || power <= CHEAP_ROWS) return power;
    const uint32_t step = power / 8;
    return (n + step - 1) / step * step;
}

static wick_status reserve_logits(wk_runner *runner, uint32_t n_outputs) {
    if (n_outputs <= runner->max_outputs) return WICK_OK;
    wk_heap *const heap = wk_device_heap(runner->device);
    wk_stage_batch *const batch = &runner->batch;
    const size_t row = row_length(runner) * sizeof *batch->logits;
    float *const larger =
        wk_realloc(heap, batch->logits, runner->max_outputs * row, n_outputs * row);
    if (!larger) return wk_fail_memory(wk_device_err(runner->device), n_outputs * row, 0, "logits");
    batch->logits = larger;
    runner->max_outputs = n_outputs;
    return WICK_OK;
}

bool wk_runner_can_return(const wk_runner *runner, uint32_t first) {
    const uint32_t begin = runner->window_begin;
    return begin == 0 || begin + runner->hparams->window <= first + 1;
}

uint32_t wk_runner_chunk(const wk_runner *runner, uint32_t n_waiting, wk_outputs outputs) {
    assert(n_waiting > 0 && runner->desc.chunk_length > 0);
    uint32_t most = runner->desc.chunk_length;
    if (runner->desc.is_whole) return n_waiting < most ? n_waiting : most;
    if (outputs >= WK_OUTPUTS_ALL && max_output_rows(runner) < most) most = max_output_rows(runner);
    if (n_waiting > most) n_waiting = most;
    const uint32_t up = round_up_to_power(n_waiting);
    /* Padding is worth it while it is a quarter at most; else the lower power of two goes first. */
    if (up <= CHEAP_ROWS || (up - n_waiting) * 4 <= up) return n_waiting;
    return up / 2;
}

static void choose_class(wk_runner *runner, uint32_t n_rows, uint32_t n_blocks,
                         wk_outputs outputs) {
    const uint32_t n_outputs = outputs >= WK_OUTPUTS_ALL ? n_rows : outputs == WK_OUTPUTS_LAST;
    lay_out(runner, n_rows, n_outputs, n_blocks, &runner->batch);
    runner->batch.outputs = outputs;
}

/* Whether some batch of outputs has this many rows. */
static bool is_used(const wk_runner *runner, uint32_t n_rows, wk_outputs outputs) {
    return round_up_to_power(wk_runner_chunk(runner, n_rows, outputs)) == n_rows;
}

static wick_status rehearse_class(wick_model *model, wk_runner *runner, uint32_t n_rows,
                                  uint32_t n_blocks) {
    /* Without outputs, chunks may be larger. */
    const bool has_outputs = is_used(runner, n_rows, runner->desc.outputs);
    const bool is_wanted = has_outputs || is_used(runner, n_rows, WK_OUTPUTS_NONE);
    choose_class(runner, n_rows, n_blocks, has_outputs ? runner->desc.outputs : WK_OUTPUTS_NONE);
    for (uint32_t i = 0; i < runner->n_stages && is_wanted; i++)
        if (wk_device_compiles(device_of(runner, i)))
            WK_TRY(wk_stage_rehearse(model->model, i, &runner->cache, &runner->batch));
    return WICK_OK;
}

wick_status wk_runner_rehearse(wick_model *model, const wk_runner_desc *desc, uint32_t *n_rows,
                               wick_error *err) {
    wk_runner runner;
    WK_TRY(begin_runner(model, desc, &runner, err));
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(model, &failure);
    const uint32_t shortest = class_blocks(&runner, *n_rows), longest = runner.cache.n_blocks;
    wick_status status = rehearse_class(model, &runner, *n_rows, shortest);
    /* A long text may have its keys shared out among more workgroups, by another program. */
    if (status == WICK_OK && shortest < longest)
        status = rehearse_class(model, &runner, *n_rows, longest);
    wk_model_give_back(model, before);
    *n_rows = *n_rows < runner.max_rows ? 2 * *n_rows : 0;
    return wk_pass_on(err, status, &failure);
}

/* Of layers with a window: a block that one of a later position needs is given to it. */
static void describe_windows(wk_runner *runner, uint32_t n, uint32_t first) {
    if (!has_window_blocks(runner)) return;
    const wk_stage_batch *const batch = &runner->batch;
    const uint32_t n_blocks = runner->cache.n_window_blocks, n_slots = n_blocks * WK_BLOCK_SIZE;
    for (uint32_t i = 0; i < batch->layout.n_rows; i++)
        batch->words[batch->window_slots + i] = i < n ? (first + i) % n_slots : WK_NO_ROW;
    for (uint32_t i = 0; i < batch->layout.n_blocks; i++)
        batch->words[batch->window_tables + i] = i % n_blocks;
}

/* Whether some are rows, which then have memory in a batch; or no memory. */
static wick_status find_rows(wk_runner *runner, const wk_runner_input *input) {
    uint32_t i = 0;
    while (i < input->n && input->ids[i] != WICK_NO_TOKEN) i++;
    runner->batch.rows = NULL;
    if (i == input->n) return WICK_OK;
    if (!runner->rows)
        runner->rows = wk_alloc_zeroed(wk_device_heap(runner->device), rows_bytes(runner));
    if (!runner->rows)
        return wk_fail_memory(wk_device_err(runner->device), rows_bytes(runner), 0,
                              "rows of embeddings");
    runner->batch.rows = runner->rows;
    return WICK_OK;
}

/* Rows to where their tokens would be; what stands in the others is not used. */
static void place_rows(wk_runner *runner, const wk_runner_input *input) {
    const wk_stage_batch *const batch = &runner->batch;
    const size_t n_embd = runner->hparams->n_embd;
    const float *from = input->rows;
    for (uint32_t i = 0; i < batch->layout.n_rows; i++) {
        const bool is_row = i < input->n && input->ids[i] == WICK_NO_TOKEN;
        batch->words[batch->given + i] = is_row;
        if (!is_row) continue;
        batch->words[batch->layout.ids + i] = 0; /* any: it is looked up for nothing */
        memcpy(runner->rows + i * n_embd, from, n_embd * sizeof *from);
        from += n_embd;
    }
}

static void describe(wk_runner *runner, const wk_runner_input *input) {
    const wk_batch_layout *const l = &runner->batch.layout;
    const uint32_t n = input->n, first = input->first;
    uint32_t *const words = runner->batch.words;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const bool is_padding = i >= n;
        words[l->ids + i] = is_padding ? 0 : input->ids[i];
        words[l->positions + i] = is_padding ? 0 : first + i;
        words[l->sequences + i] = is_padding ? WK_NO_ROW : 0;
        words[l->slots + i] = is_padding ? WK_NO_ROW : first + i; /* blocks are in order */
    }
    for (uint32_t i = 0; i < l->n_outputs; i++)
        words[l->outputs + i] = l->n_outputs == 1 ? n - 1 : (i < n ? i : 0);
    words[l->lengths] = first + n;
    words[l->states] = 0; /* the one slot there is */
    for (uint32_t i = 0; i < l->n_blocks; i++) words[l->tables + i] = i;
    describe_windows(runner, n, first);
    if (runner->batch.rows) place_rows(runner, input);
    wk_runner_resume(runner, first + n, first > 0 ? runner->window_begin : 0);
    for (uint32_t i = 0; i < runner->hparams->n_ropes; i++)
        wk_rope_rows(
            &runner->hparams->rope[i],
            (wk_rope_positions){words + l->positions, l->n_rows, runner->desc.context_length},
            runner->batch.cos[i], runner->batch.sin[i]);
}

static wick_status start_stage(wk_runner *runner, uint32_t stage) {
    runner->at = stage;
    runner->has_begun = false;
    WK_TRY(wk_stage_start(runner->stages[stage], &runner->batch));
    runner->has_begun = true;
    return WICK_OK;
}

wick_status wk_runner_start(wk_runner *runner, const wk_runner_input *input, wk_outputs outputs,
                            bool is_short) {
    const uint32_t n = input->n, first = input->first;
    assert(!runner->is_running && n > 0 && n <= runner->max_rows);
    assert(first + n <= runner->desc.context_length && (first == 0 || !runner->desc.is_whole));
    assert(first == 0 || wk_runner_can_return(runner, first));
    WK_TRY(find_rows(runner, input));
    choose_class(runner, round_up_rows(runner, n), class_blocks(runner, first + n), outputs);
    runner->batch.is_short = is_short;
    WK_TRY(reserve_logits(runner, runner->batch.layout.n_outputs));
    describe(runner, input);
    for (uint32_t i = 0; i < runner->n_stages && first == 0; i++)
        wk_stage_forget_faults(runner->stages[i]);
    WK_TRY(start_stage(runner, 0));
    runner->is_running = true;
    return WICK_OK;
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

wick_status wk_runner_poll(wk_runner *runner) {
    if (!runner->is_running) return WICK_OK;
    const wick_status status = poll_stages(runner);
    if (status != WICK_PENDING) runner->is_running = false;
    return status;
}

const float *wk_runner_logits(const wk_runner *runner, uint32_t i) {
    assert(i < runner->max_outputs);
    return runner->batch.logits + i * row_length(runner);
}

wick_status wk_runner_complete(wk_runner *runner) {
    assert(!runner->is_running);
    const uint32_t last = runner->n_stages - 1;
    return wk_stage_complete(runner->stages[last], &runner->batch);
}

/* --- What it holds --- */

wk_cache_desc wk_runner_cache(const wk_runner *runner) { return runner->cache; }

const wk_state *wk_runner_state(const wk_runner *runner, uint32_t layer) {
    const wk_model_stage *const stages = wk_model_placement(runner->net)->stages;
    uint32_t i = 0;
    while (layer >= stages[i].first + stages[i].count) i++;
    return wk_stage_state(runner->stages[i]);
}

uint32_t wk_runner_window_begin(const wk_runner *runner) { return runner->window_begin; }

uint32_t wk_runner_window_room(const wk_runner *runner, uint32_t n) {
    const uint32_t n_blocks = runner->cache.n_window_blocks;
    const uint32_t n_used = (n + WK_BLOCK_SIZE - 1) / WK_BLOCK_SIZE;
    return n_blocks > 0 && n_used > n_blocks ? (n_used - n_blocks) * WK_BLOCK_SIZE : 0;
}

void wk_runner_resume(wk_runner *runner, uint32_t n, uint32_t window_begin) {
    const uint32_t least = wk_runner_window_room(runner, n);
    runner->window_begin = window_begin > least ? window_begin : least;
}

wick_status wk_runner_set_logits(wk_runner *runner, const void *logits) {
    assert(!runner->is_running && !gives_states(runner));
    WK_TRY(reserve_logits(runner, 1));
    runner->batch.is_short = false;
    memcpy(runner->batch.logits, logits, row_length(runner) * sizeof *runner->batch.logits);
    return WICK_OK;
}

uint64_t wk_runner_cache_bytes(const wk_runner *runner) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < runner->n_stages; i++) bytes += stage_cache_bytes(runner, i);
    return bytes;
}
