/* llm/runner.c: see runner.h. */
#include "llm/runner.h"

#include "model/rope.h"
#include "tensor/plan.h"

#include <wick/ops.h>

#include <assert.h>
#include <string.h>

enum {
    MAX_CLASSES = 48, /* kinds of outputs x powers of two up to the largest chunk */
    MAX_CHUNK = 8192,
    LOGITS_BYTES = 16 * 1024 * 1024, /* most that a batch of logits may take, one row excepted */
    CHEAP_ROWS =
        32, /* a batch up to this size costs one reading of the weights, whatever its size */
};

/* All batches of one shape: recorded once, replayed from then on. */
typedef struct shape_class {
    uint32_t n_rows;
    wk_outputs outputs;
    wk_batch batch;
    wick_tensor *logits; /* [n_outputs, n_vocab]; NULL without outputs */
    wk_plan *plan;
} shape_class;

struct wk_runner {
    wick_device *device;
    const wk_model *net;
    const wk_hparams *hparams;
    wk_runner_desc desc;
    uint32_t n_blocks;
    uint32_t generation; /* of the device that holds what follows */
    wk_state *state;     /* NULL: to be renewed */
    wk_plan_pool *pool;
    shape_class classes[MAX_CLASSES];
    uint32_t n_classes;

    /* The inputs and outputs of a batch on the host, as large as the largest class needs. */
    uint32_t max_rows, max_outputs, max_words;
    size_t max_table;
    uint32_t *words;  /* [max_words] */
    float *cos, *sin; /* [max_table] */
    float *logits;    /* [max_outputs, n_vocab] */

    shape_class *running; /* NULL: idle */
    wick_reading *reading;
};

static uint32_t round_up_to_power(uint32_t n) {
    uint32_t power = 1;
    while (power < n) power *= 2;
    return power;
}

static uint32_t max_output_rows(const wk_runner *runner) {
    const uint64_t row_bytes = (uint64_t)runner->hparams->n_vocab * sizeof(float);
    const uint64_t rows = LOGITS_BYTES / row_bytes;
    const uint32_t most = rows < 1 ? 1 : rows > MAX_CHUNK ? MAX_CHUNK : (uint32_t)rows;
    const uint32_t power = round_up_to_power(most);
    return power > most ? power / 2 : power;
}

/* --- Making --- */

/* Sections of a descriptor, one after the other. */
static wk_batch_layout lay_out(const wk_runner *runner, uint32_t n_rows, uint32_t n_outputs) {
    wk_batch_layout l = {.n_rows = n_rows,
                         .n_outputs = n_outputs,
                         .n_sequences = 1,
                         .n_blocks = runner->n_blocks,
                         .block_size = WK_BLOCK_SIZE};
    l.positions = l.ids + n_rows;
    l.sequences = l.positions + n_rows;
    l.slots = l.sequences + n_rows;
    l.outputs = l.slots + n_rows;
    l.lengths = l.outputs + n_outputs;
    l.tables = l.lengths + l.n_sequences;
    l.n_words = l.tables + l.n_sequences * l.n_blocks;
    return l;
}

static wick_status make_host_memory(wk_runner *runner, wick_error *err) {
    wk_heap *const heap = wk_device_heap(runner->device);
    const wk_hparams *const hp = runner->hparams;
    for (uint32_t i = 0; i < hp->n_ropes; i++) {
        const size_t n_table = (size_t)hp->rope[i].n_pairs * runner->max_rows;
        if (n_table > runner->max_table) runner->max_table = n_table;
    }
    runner->max_words = lay_out(runner, runner->max_rows, runner->max_rows).n_words;
    runner->words = wk_alloc_array(heap, runner->max_words, sizeof *runner->words);
    if (runner->max_table > 0) {
        runner->cos = wk_alloc_array(heap, runner->max_table, sizeof *runner->cos);
        runner->sin = wk_alloc_array(heap, runner->max_table, sizeof *runner->sin);
    }
    if (!runner->words || (runner->max_table > 0 && (!runner->cos || !runner->sin)))
        return wk_fail_memory(err, runner->max_words * sizeof *runner->words, 0, "a batch");
    return WICK_OK;
}

/* The cache is taken at once but touched token by token: a system that gives more than it has would
 * fail in the middle of a text. */
static wick_status check_memory(const wk_runner *runner, wick_error *err) {
    wick_device_info info;
    wick_device_get_info(runner->device, &info);
    const uint64_t needed = wk_runner_cache_bytes(runner);
    if (info.memory_available == 0 || needed <= info.memory_available) return WICK_OK;
    return wk_fail_memory(err, needed, info.memory_available, "the cache of this context length");
}

static wick_status make_device_memory(wk_runner *runner) {
    WK_TRY(wk_state_make(runner->net, runner->device, runner->n_blocks, WK_BLOCK_SIZE,
                         runner->desc.cache_dtype, &runner->state));
    runner->generation = wk_device_generation(runner->device);
    return wk_plan_pool_make(runner->device, &runner->pool);
}

wk_runner_desc wk_runner_describe(const wick_model *model, const wick_session_desc *desc) {
    static const wick_session_desc defaults;
    if (!desc) desc = &defaults;
    const bool is_fast = wick_device_math(model->device) == WICK_MATH_FAST;
    const bool is_half =
        desc->cache == WICK_CACHE_F16 || (desc->cache == WICK_CACHE_AUTO && is_fast);
    return (wk_runner_desc){
        .context_length = wk_context_length(wk_model_hparams(model->model), desc->context_length),
        .chunk_length = desc->chunk_length ? desc->chunk_length : WK_DEFAULT_CHUNK,
        .cache_dtype = is_half ? WICK_F16 : WICK_F32,
        .outputs = desc->logits == WICK_LOGITS_ALL ? WK_OUTPUTS_ALL : WK_OUTPUTS_LAST};
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
    *runner = (wk_runner){
        .device = model->device,
        .net = model->model,
        .hparams = wk_model_hparams(model->model),
        .desc = *desc,
        .n_blocks = (desc->context_length + WK_BLOCK_SIZE - 1) / WK_BLOCK_SIZE,
        .max_rows = round_up_to_power(desc->chunk_length),
    };
    return WICK_OK;
}

/* What the device says of a failure. */
static wick_status take_error(wick_device *device, wick_status status, wick_error *err) {
    wick_error sticky;
    if (wick_device_error(device, &sticky) != WICK_OK && err && err->status == WICK_OK)
        *err = sticky;
    return status;
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
    if (status == WICK_OK) status = make_device_memory(runner);
    /* A device that is lost comes back when a batch is to run. */
    if (status == WICK_ERR_DEVICE_LOST) {
        (void)wick_device_error(runner->device, NULL);
        status = WICK_OK;
    }
    if (status != WICK_OK) {
        wk_runner_free(runner);
        return take_error(model->device, status, err);
    }
    *out = runner;
    return WICK_OK;
}

static void free_class(shape_class *class) {
    wick_release(class->logits);
    wick_release(class->batch.descriptor);
    for (int i = 0; i < WK_MAX_ROPES; i++) {
        wick_release(class->batch.cos[i]);
        wick_release(class->batch.sin[i]);
    }
    wk_plan_free(class->plan);
}

static void drop_reading(wk_runner *runner) {
    if (runner->reading) (void)wick_read_finish(runner->reading, NULL, 0);
    runner->reading = NULL;
}

static void free_device_memory(wk_runner *runner) {
    drop_reading(runner);
    for (uint32_t i = 0; i < runner->n_classes; i++) free_class(&runner->classes[i]);
    runner->n_classes = 0;
    runner->running = NULL;
    wk_plan_pool_free(runner->pool);
    runner->pool = NULL;
    wk_state_free(runner->state);
    runner->state = NULL;
}

bool wk_runner_is_stale(const wk_runner *runner) {
    return !runner->pool || runner->generation != wk_device_generation(runner->device);
}

wick_status wk_runner_renew(wk_runner *runner) {
    free_device_memory(runner);
    return make_device_memory(runner);
}

void wk_runner_free(wk_runner *runner) {
    if (!runner) return;
    wk_heap *const heap = wk_device_heap(runner->device);
    free_device_memory(runner);
    wk_free(heap, runner->words, runner->max_words * sizeof *runner->words);
    wk_free(heap, runner->cos, runner->max_table * sizeof *runner->cos);
    wk_free(heap, runner->sin, runner->max_table * sizeof *runner->sin);
    wk_free(heap, runner->logits,
            (size_t)runner->max_outputs * runner->hparams->n_vocab * sizeof *runner->logits);
    wk_free(heap, runner, sizeof *runner);
}

/* --- Shape classes --- */

static wick_status make_inputs(wk_runner *runner, shape_class *class) {
    wick_device *const device = runner->device;
    wk_batch *const batch = &class->batch;
    batch->descriptor = wick_empty(device, WICK_U32, WICK_SHAPE(batch->layout.n_words));
    bool complete = batch->descriptor != NULL;
    for (uint32_t i = 0; i < runner->hparams->n_ropes && complete; i++) {
        const wick_shape shape = WICK_SHAPE(class->n_rows, runner->hparams->rope[i].n_pairs);
        batch->cos[i] = wick_empty(device, WICK_F32, shape);
        batch->sin[i] = wick_empty(device, WICK_F32, shape);
        complete = batch->cos[i] && batch->sin[i];
    }
    return complete ? WICK_OK : wk_device_sticky(device)->status;
}

/* The whole forward pass of a batch of this class, into the recording that is open. */
static wick_status compute(wk_runner *runner, shape_class *class) {
    wick_tensor *const hidden = wk_model_forward(runner->net, runner->state, &class->batch, 0,
                                                 runner->hparams->n_layers, NULL);
    if (hidden && class->outputs != WK_OUTPUTS_NONE)
        class->logits = wick_retain(wk_model_logits(runner->net, &class->batch, hidden));
    const bool is_complete = hidden && (class->logits || class->outputs == WK_OUTPUTS_NONE);
    return is_complete ? WICK_OK : wk_device_sticky(runner->device)->status;
}

/* Once, as a plan. */
static wick_status record(wk_runner *runner, shape_class *class) {
    wick_device *const device = runner->device;
    WK_TRY(wk_plan_begin(device, runner->pool));
    const wick_scope scope = wick_scope_begin(device);
    wick_status status = compute(runner, class);
    if (status == WICK_OK)
        status = wk_plan_end(device, &class->logits, class->logits ? 1 : 0, &class->plan);
    else
        wk_plan_abort(device, &class->plan);
    wick_scope_end(scope);
    return status;
}

static wick_status reserve_logits(wk_runner *runner, uint32_t n_outputs) {
    if (n_outputs <= runner->max_outputs) return WICK_OK;
    wk_heap *const heap = wk_device_heap(runner->device);
    const size_t row = runner->hparams->n_vocab * sizeof *runner->logits;
    float *const larger =
        wk_realloc(heap, runner->logits, runner->max_outputs * row, n_outputs * row);
    if (!larger)
        return wk_fail_memory(wk_device_sticky(runner->device), n_outputs * row, 0, "logits");
    runner->logits = larger;
    runner->max_outputs = n_outputs;
    return WICK_OK;
}

static shape_class describe_class(const wk_runner *runner, uint32_t n_rows, wk_outputs outputs) {
    const uint32_t n_outputs = outputs == WK_OUTPUTS_ALL ? n_rows : outputs == WK_OUTPUTS_LAST;
    return (shape_class){.n_rows = n_rows,
                         .outputs = outputs,
                         .batch = {.layout = lay_out(runner, n_rows, n_outputs)}};
}

static wick_status get_class(wk_runner *runner, uint32_t n_rows, wk_outputs outputs,
                             shape_class **out) {
    for (uint32_t i = 0; i < runner->n_classes; i++) {
        *out = &runner->classes[i];
        if ((*out)->n_rows == n_rows && (*out)->outputs == outputs) return WICK_OK;
    }
    assert(runner->n_classes < MAX_CLASSES);
    shape_class class = describe_class(runner, n_rows, outputs);
    wick_status status = make_inputs(runner, &class);
    if (status == WICK_OK) status = reserve_logits(runner, class.batch.layout.n_outputs);
    if (status == WICK_OK) status = record(runner, &class);
    if (status != WICK_OK) {
        free_class(&class);
        return status;
    }
    *out = &runner->classes[runner->n_classes++];
    **out = class;
    return WICK_OK;
}

/* --- Rehearsal --- */

/* Everything but the weights, where there are some, belongs to the recording: nothing takes memory
 * of the device. Plans without outputs are the beginning of those with them. */
static wick_status rehearse_class(wick_model *model, wk_runner *runner, shape_class *class) {
    wick_device *const device = runner->device;
    const bool has_weights = wk_model_has_weights(model->model);
    WK_TRY(wk_plan_begin(device, NULL));
    const wick_scope scope = wick_scope_begin(device);
    wick_status status = has_weights ? WICK_OK : wk_model_place_weights(model->model, device);
    if (status == WICK_OK)
        status = wk_state_make(runner->net, device, runner->n_blocks, WK_BLOCK_SIZE,
                               runner->desc.cache_dtype, &runner->state);
    if (status == WICK_OK) status = make_inputs(runner, class);
    if (status == WICK_OK) status = compute(runner, class);
    if (status == WICK_OK)
        status = wk_plan_rehearse(device, &class->plan);
    else
        wk_plan_abort(device, &class->plan);
    wick_release(class->logits);
    wk_state_free(runner->state);
    wick_scope_end(scope);
    if (!has_weights) wk_model_drop_weights(model->model);
    wk_plan_free(class->plan);
    return status;
}

/* Whether some batch of outputs has this many rows. */
static bool is_used(const wk_runner *runner, uint32_t n_rows, wk_outputs outputs) {
    const uint32_t n = wk_runner_chunk(runner, n_rows, outputs);
    return round_up_to_power(n) == n_rows;
}

wick_status wk_runner_rehearse(wick_model *model, const wk_runner_desc *desc, uint32_t *n_rows,
                               wick_error *err) {
    wk_runner runner;
    wick_status status = begin_runner(model, desc, &runner, err);
    if (status != WICK_OK) return status;
    /* Without outputs, chunks may be larger. */
    const bool has_outputs = is_used(&runner, *n_rows, desc->outputs);
    shape_class class =
        describe_class(&runner, *n_rows, has_outputs ? desc->outputs : WK_OUTPUTS_NONE);
    if (has_outputs || is_used(&runner, *n_rows, WK_OUTPUTS_NONE))
        status = rehearse_class(model, &runner, &class);
    *n_rows = *n_rows < runner.max_rows ? 2 * *n_rows : 0;
    return status == WICK_OK ? WICK_OK : take_error(model->device, status, err);
}

/* --- Running --- */

uint32_t wk_runner_chunk(const wk_runner *runner, uint32_t n_waiting, wk_outputs outputs) {
    uint32_t most = runner->desc.chunk_length;
    if (outputs == WK_OUTPUTS_ALL && max_output_rows(runner) < most) most = max_output_rows(runner);
    if (n_waiting > most) n_waiting = most;
    const uint32_t up = round_up_to_power(n_waiting);
    /* Padding is worth it while it is a quarter at most; else the lower power of two goes first. */
    if (up <= CHEAP_ROWS || (up - n_waiting) * 4 <= up) return n_waiting;
    return up / 2;
}

static void describe(const wk_runner *runner, const wk_batch_layout *l, const uint32_t *ids,
                     uint32_t n, uint32_t first) {
    uint32_t *const words = runner->words;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const bool is_padding = i >= n;
        words[l->ids + i] = is_padding ? 0 : ids[i];
        words[l->positions + i] = is_padding ? 0 : first + i;
        words[l->sequences + i] = is_padding ? WK_NO_ROW : 0;
        words[l->slots + i] = is_padding ? WK_NO_ROW : first + i; /* blocks are in order */
    }
    for (uint32_t i = 0; i < l->n_outputs; i++)
        words[l->outputs + i] = l->n_outputs == 1 ? n - 1 : (i < n ? i : 0);
    words[l->lengths] = first + n;
    for (uint32_t i = 0; i < l->n_blocks; i++) words[l->tables + i] = i;
}

static wick_status write_inputs(wk_runner *runner, const shape_class *class) {
    const wk_batch *const batch = &class->batch;
    const uint32_t *const positions = runner->words + batch->layout.positions;
    WK_TRY(wick_write(batch->descriptor, runner->words,
                      batch->layout.n_words * sizeof *runner->words));
    for (uint32_t i = 0; i < runner->hparams->n_ropes; i++) {
        const size_t bytes =
            (size_t)class->n_rows * runner->hparams->rope[i].n_pairs * sizeof(float);
        wk_rope_rows(runner->hparams, i, positions, class->n_rows, runner->cos, runner->sin);
        WK_TRY(wick_write(batch->cos[i], runner->cos, bytes));
        WK_TRY(wick_write(batch->sin[i], runner->sin, bytes));
    }
    return WICK_OK;
}

wick_status wk_runner_start(wk_runner *runner, const uint32_t *ids, uint32_t n, uint32_t first,
                            wk_outputs outputs) {
    assert(!runner->running && n > 0 && n <= runner->max_rows);
    assert(first + n <= runner->n_blocks * WK_BLOCK_SIZE);
    shape_class *class = NULL;
    WK_TRY(get_class(runner, round_up_to_power(n), outputs, &class));
    WK_TRY(wk_device_compiled(runner->device));
    describe(runner, &class->batch.layout, ids, n, first);
    WK_TRY(write_inputs(runner, class));
    WK_TRY(wk_plan_run(class->plan));
    if (class->logits) WK_TRY(wick_read_start(class->logits, &runner->reading));
    runner->running = class;
    return WICK_OK;
}

wick_status wk_runner_poll(wk_runner *runner) {
    shape_class *const class = runner->running;
    if (!class) return WICK_OK;
    if (wk_runner_is_stale(runner)) {
        drop_reading(runner);
        runner->running = NULL;
        return wk_device_fail(runner->device, WICK_ERR_DEVICE_LOST,
                              "the batch was lost with its device");
    }
    if (!runner->reading) {
        const wick_status status = wick_poll(runner->device);
        if (status != WICK_PENDING) runner->running = NULL;
        return status;
    }
    const wick_status polled = wick_read_poll(runner->reading);
    if (polled == WICK_PENDING) return WICK_PENDING;
    const wick_status status =
        wick_read_finish(runner->reading, runner->logits, wick_tensor_bytes(class->logits));
    runner->reading = NULL;
    runner->running = NULL;
    return status;
}

const float *wk_runner_logits(const wk_runner *runner, uint32_t i) {
    assert(i < runner->max_outputs);
    return runner->logits + (size_t)i * runner->hparams->n_vocab;
}

uint64_t wk_runner_cache_bytes(const wk_runner *runner) {
    return wk_state_bytes(runner->net, runner->n_blocks, WK_BLOCK_SIZE, runner->desc.cache_dtype);
}
