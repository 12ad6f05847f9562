/* llm/stage.c: see stage.h. All batches of one shape are one plan. */
#include "llm/stage.h"

#include "llm/shortlist.h"
#include "tensor/plan.h"

#include <wick/ops.h>

#include <assert.h>
#include <string.h>

/* Two kinds of outputs x powers of two up to the largest chunk x classes of key lengths; or of
 * whole texts four sizes for most of those powers. Beyond that the one makes room that ran longest
 * ago. */
enum { MAX_CLASSES = 96 };

/* All batches of one shape: recorded once, replayed from then on. */
typedef struct shape_class {
    wk_outputs outputs;
    wick_math math;
    bool has_rows;     /* in place of embedded tokens */
    bool has_states;   /* see wk_stage_batch */
    uint32_t version;  /* of the model's adapters, where it has some */
    uint64_t begun_as; /* number of its latest batch, of the stage's */
    wk_batch batch;
    wick_tensor *hidden; /* [rows, n_embd] that come in; NULL in the first stage */
    wick_tensor *result; /* hidden rows, states or logits; NULL in the last stage without outputs */
    wick_tensor *shortlist; /* of the one row of logits, where that is far away; else NULL */
    wick_tensor *states;    /* where has_states; else NULL */
    wk_plan *plan;
} shape_class;

struct wk_stage {
    wick_device *device;
    const wk_model *net;
    uint32_t index;
    wk_cache_desc cache;
    uint32_t generation; /* of the device that holds what follows */
    wk_state *state;     /* NULL: to be renewed, or batches are whole texts */
    wk_plan_pool *pool;
    shape_class classes[MAX_CLASSES];
    uint32_t n_classes;
    uint64_t n_begun;     /* batches */
    shape_class *running; /* NULL: idle */
    shape_class *last;    /* that ran or runs */
    wick_tensor *wanted;  /* what is being read of it */
    wick_tensor *lists;   /* the shortlists of all steps; NULL: there were no batches of several */
    wick_reading *reading;
};

static bool is_head(const wk_stage *stage) { return stage->index == WK_HEAD_STAGE; }

static bool is_last(const wk_stage *stage) {
    return is_head(stage) || stage->index + 1 == wk_model_placement(stage->net)->n_stages;
}

/* --- Making --- */

static wick_status make_state(const wk_stage *stage, wk_state **out) {
    *out = NULL;
    if (stage->cache.n_blocks == 0) return WICK_OK;
    return wk_state_make(stage->net, stage->index, &stage->cache, out);
}

static wick_status make_device_memory(wk_stage *stage) {
    WK_TRY(make_state(stage, &stage->state));
    stage->generation = wk_device_generation(stage->device);
    return wk_plan_pool_make(stage->device, &stage->pool);
}

wick_status wk_stage_make(const wk_model *net, uint32_t index, const wk_cache_desc *cache,
                          wk_stage **out) {
    wick_device *const device = wk_model_placement(net)->stages[index].device;
    wk_stage *const stage = wk_alloc_zeroed(wk_device_heap(device), sizeof *stage);
    *out = NULL;
    if (!stage) return wk_fail_memory(wk_device_err(device), sizeof *stage, "a stage");
    stage->device = device;
    stage->net = net;
    stage->index = index;
    stage->cache = *cache;
    const wick_status status = make_device_memory(stage);
    if (status == WICK_OK || status == WICK_ERR_DEVICE_LOST)
        *out = stage;
    else
        wk_stage_free(stage);
    return status;
}

static void free_class(shape_class *class) {
    wick_release(class->result);
    wick_release(class->shortlist);
    wick_release(class->states);
    wick_release(class->hidden);
    wick_release(class->batch.descriptor);
    wick_release(class->batch.rows);
    wick_release(class->batch.scales);
    for (int i = 0; i < WK_MAX_ROPES; i++) {
        wick_release(class->batch.cos[i]);
        wick_release(class->batch.sin[i]);
    }
    wk_plan_free(class->plan);
}

static void drop_reading(wk_stage *stage) {
    if (stage->reading) (void)wick_read_finish(stage->reading, NULL, 0);
    stage->reading = NULL;
}

static void free_classes(wk_stage *stage) {
    drop_reading(stage);
    for (uint32_t i = 0; i < stage->n_classes; i++) free_class(&stage->classes[i]);
    stage->n_classes = 0;
    stage->running = stage->last = NULL;
}

static void free_device_memory(wk_stage *stage) {
    free_classes(stage);
    wick_release(stage->lists);
    stage->lists = NULL;
    wk_plan_pool_free(stage->pool);
    stage->pool = NULL;
    wk_state_free(stage->state);
    stage->state = NULL;
}

bool wk_stage_is_stale(const wk_stage *stage) {
    return !stage->pool || stage->generation != wk_device_generation(stage->device);
}

/* Plans are recorded with the tensors of the state. */
wick_status wk_stage_grow(wk_stage *stage, const wk_cache_desc *cache) {
    assert(!stage->running);
    free_classes(stage);
    WK_TRY(wk_state_grow(stage->net, stage->state, cache));
    stage->cache = *cache;
    return WICK_OK;
}

wick_status wk_stage_copy(const wk_stage *stage, wk_state_kind kind, uint32_t from, uint32_t to) {
    return wk_state_copy(stage->net, stage->state, kind, from, to);
}

const wk_state *wk_stage_state(const wk_stage *stage) {
    return wk_stage_is_stale(stage) ? NULL : stage->state;
}

void wk_stage_forget_faults(wk_stage *stage) {
    if (stage->state) wk_state_forget_faults(stage->state);
}

wick_status wk_stage_renew(wk_stage *stage) {
    free_device_memory(stage);
    return make_device_memory(stage);
}

void wk_stage_free(wk_stage *stage) {
    if (!stage) return;
    free_device_memory(stage);
    wk_free(wk_device_heap(stage->device), stage, sizeof *stage);
}

/* --- Shape classes --- */

static shape_class class_of(const wk_stage_batch *batch) {
    return (shape_class){.outputs = batch->outputs,
                         .math = batch->math,
                         .has_rows = batch->rows != NULL,
                         .has_states = batch->states != NULL,
                         .batch = {.layout = batch->layout,
                                   .given = batch->given,
                                   .adapters = batch->adapters,
                                   .n_adapters = batch->n_adapters,
                                   .window_slots = batch->window_slots,
                                   .window_tables = batch->window_tables}};
}

/* Words [*at, *at + extent[0] * stride[0]) of all. */
static wick_tensor *words_of(wick_tensor *all, wick_dtype dtype, int rank, const int64_t *extent,
                             uint64_t *at) {
    const wick_shape shape = wick_shape_of(rank, extent);
    wk_view view;
    uint64_t bytes;
    if (!wk_view_dense(dtype, &shape, &view, &bytes)) return NULL;
    view.buf = all->view.buf;
    view.offset = *at * sizeof(uint32_t);
    *at += bytes / sizeof(uint32_t);
    return wk_tensor_of_view(all->device, &view);
}

/* The descriptor and the rotations of its rows lie in one buffer: kernels bind few. */
static bool make_batch_inputs(wick_device *device, const wk_hparams *hparams, wk_batch *batch) {
    const int64_t n_rows = batch->layout.n_rows, n_words = batch->layout.n_words;
    int64_t n_all = n_words;
    for (uint32_t i = 0; i < hparams->n_ropes; i++) n_all += 2 * n_rows * hparams->rope[i].n_pairs;
    wick_tensor *const all = wick_empty(device, WICK_U32, WICK_SHAPE(n_all));
    if (!all) return false;
    uint64_t at = 0;
    batch->descriptor = words_of(all, WICK_U32, 1, &n_words, &at);
    bool complete = batch->descriptor != NULL;
    for (uint32_t i = 0; i < hparams->n_ropes && complete; i++) {
        const int64_t extent[] = {n_rows, hparams->rope[i].n_pairs};
        batch->cos[i] = words_of(all, WICK_F32, 2, extent, &at);
        batch->sin[i] = words_of(all, WICK_F32, 2, extent, &at);
        complete = batch->cos[i] && batch->sin[i];
    }
    wick_release(all);
    return complete;
}

static wick_status make_inputs(const wk_stage *stage, shape_class *class) {
    wick_device *const device = stage->device;
    const wk_hparams *const hparams = wk_model_hparams(stage->net);
    wk_batch *const batch = &class->batch;
    const uint32_t n_rows = batch->layout.n_rows;
    bool complete = make_batch_inputs(device, hparams, batch);
    if (complete && class->has_rows && (stage->index == 0 || is_head(stage))) {
        batch->rows = wick_empty(device, WICK_F32, WICK_SHAPE(n_rows, hparams->n_embd));
        complete = batch->rows != NULL;
    }
    if (complete && batch->n_adapters > 0) {
        batch->scales = wick_empty(device, WICK_F32, WICK_SHAPE(n_rows, batch->n_adapters, 1));
        complete = batch->scales != NULL;
    }
    if (complete && stage->index > 0 && !is_head(stage)) {
        class->hidden = wick_empty(device, WICK_F32, WICK_SHAPE(n_rows, hparams->n_embd));
        complete = class->hidden != NULL;
    }
    return complete ? WICK_OK : wk_device_err(device)->status;
}

static wick_tensor *result_of(const wk_stage *stage, const shape_class *class,
                              wick_tensor *hidden) {
    if (!is_last(stage)) return hidden;
    return class->outputs == WK_OUTPUTS_SCORES ? wk_model_scores(stage->net, &class->batch, hidden)
           : class->outputs == WK_OUTPUTS_STATES
               ? wk_model_outputs(stage->net, &class->batch, hidden)
               : wk_model_logits(stage->net, &class->batch, hidden);
}

/* On the host a row of logits is as near as its best. */
static bool has_shortlist(const wk_stage *stage, wk_outputs outputs) {
    return is_last(stage) && !is_head(stage) && outputs == WK_OUTPUTS_LAST &&
           wk_device_is_apart(stage->device) &&
           wk_shortlist_fits(wk_model_hparams(stage->net)->n_vocab);
}

/* A draw that is verified may differ where rounding does. */
bool wk_stage_takes_steps(const wk_stage *stage) {
    return stage->index == 0 && has_shortlist(stage, WK_OUTPUTS_LAST) &&
           !wk_device_verifies(stage->device);
}

static bool make_guess(const wk_stage *stage, shape_class *class) {
    wick_tensor *const guess = wk_model_guess(stage->net, stage->state, &class->batch);
    if (class->outputs != WK_OUTPUTS_NONE) class->result = wick_retain(guess);
    return guess != NULL;
}

static bool make_results(const wk_stage *stage, shape_class *class) {
    if (is_head(stage)) return make_guess(stage, class);
    const wk_model_stage *const layers = &wk_model_placement(stage->net)->stages[stage->index];
    wick_tensor *const hidden = wk_model_forward(stage->net, stage->state, &class->batch,
                                                 layers->first, layers->count, class->hidden);
    const bool has_result = !is_last(stage) || class->outputs != WK_OUTPUTS_NONE;
    if (hidden && has_result) class->result = wick_retain(result_of(stage, class, hidden));
    if (!hidden || (has_result && !class->result)) return false;
    if (class->has_states && is_last(stage)) {
        class->states = wick_retain(wk_model_states(stage->net, &class->batch, hidden));
        if (!class->states) return false;
    }
    if (!has_shortlist(stage, class->outputs)) return true;
    class->shortlist = wick_retain(wk_shortlist_make(class->result));
    return class->shortlist != NULL;
}

/* The forward pass of a batch of this class through the stage, into the recording that is open, in
 * the session's math. */
static wick_status compute(const wk_stage *stage, shape_class *class) {
    const wick_math before = wick_device_math(stage->device);
    wick_device_set_math(stage->device, class->math);
    const bool is_complete = make_results(stage, class);
    wick_device_set_math(stage->device, before);
    return is_complete ? WICK_OK : wk_device_err(stage->device)->status;
}

/* Once, as a plan. */
static wick_status record(wk_stage *stage, shape_class *class) {
    wick_device *const device = stage->device;
    WK_TRY(wk_plan_begin(device, stage->pool));
    const wick_scope scope = wick_scope_begin(device);
    wick_status status = compute(stage, class);
    wick_tensor *results[3];
    size_t n = 0;
    if (class->result) results[n++] = class->result;
    if (class->shortlist) results[n++] = class->shortlist;
    if (class->states) results[n++] = class->states;
    if (status == WICK_OK)
        status = wk_plan_end(device, results, n, &class->plan);
    else
        wk_plan_abort(device, &class->plan);
    wick_scope_end(scope);
    return status;
}

static void drop_class(wk_stage *stage, shape_class *class) {
    assert(stage->n_classes > 0 && !stage->running && !stage->reading);
    free_class(class);
    *class = stage->classes[--stage->n_classes];
    stage->last = NULL;
}

static void make_room(wk_stage *stage) {
    if (stage->n_classes < MAX_CLASSES) return;
    shape_class *oldest = &stage->classes[0];
    for (uint32_t i = 1; i < stage->n_classes; i++)
        if (stage->classes[i].begun_as < oldest->begun_as) oldest = &stage->classes[i];
    drop_class(stage, oldest);
}

static bool is_of_class(const shape_class *class, const wk_stage_batch *batch) {
    const wk_batch_layout *const layout = &class->batch.layout;
    return layout->n_rows == batch->layout.n_rows && layout->n_blocks == batch->layout.n_blocks &&
           layout->n_sequences == batch->layout.n_sequences &&
           layout->n_outputs == batch->layout.n_outputs && class->outputs == batch->outputs &&
           class->has_rows == (batch->rows != NULL) &&
           class->has_states == (batch->states != NULL) &&
           class->batch.n_adapters == batch->n_adapters;
}

static wick_status get_class(wk_stage *stage, const wk_stage_batch *batch, shape_class **out) {
    const uint32_t version = wk_model_adapters_version(stage->net);
    for (uint32_t i = 0; i < stage->n_classes; i++) {
        *out = &stage->classes[i];
        if (!is_of_class(*out, batch)) continue;
        if (batch->n_adapters == 0 || (*out)->version == version) return WICK_OK;
        drop_class(stage, *out);
        break;
    }
    make_room(stage);
    shape_class class = class_of(batch);
    class.version = version;
    wick_status status = make_inputs(stage, &class);
    if (status == WICK_OK) status = record(stage, &class);
    if (status != WICK_OK) {
        free_class(&class);
        return status;
    }
    *out = &stage->classes[stage->n_classes++];
    **out = class;
    return WICK_OK;
}

/* Like get_class, with kernels that are compiled: a class whose plan has one that the compiler
 * refused is recorded again, with what takes its place. WICK_PENDING: they compile. */
static wick_status get_compiled_class(wk_stage *stage, const wk_stage_batch *batch,
                                      shape_class **out) {
    for (;;) {
        WK_TRY(get_class(stage, batch, out));
        WK_TRY(wk_device_compiled(stage->device));
        if (!wk_plan_is_outdated((*out)->plan)) return WICK_OK;
        drop_class(stage, *out);
    }
}

/* --- Rehearsal --- */

/* What moves a part of the cache is not of any plan: copies of a block and of a slot. */
static wick_status rehearse_copies(const wk_stage *stage) {
    const uint32_t counts[] = {[WK_STATE_BLOCKS] = stage->cache.n_blocks,
                               [WK_STATE_WINDOW_BLOCKS] = stage->cache.n_window_blocks,
                               [WK_STATE_SLOTS] = stage->cache.n_slots};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] > 0) WK_TRY(wk_stage_copy(stage, (wk_state_kind)i, 0, counts[i] - 1));
    return WICK_OK;
}

/* Nor is what steps of a batch hand on. */
static wick_status rehearse_steps(const wk_stage *stage, const shape_class *class) {
    if (!class->shortlist || class->batch.layout.n_rows > 1) return WICK_OK;
    wick_tensor *const lists =
        wick_empty(stage->device, WICK_F32, WICK_SHAPE(1, WK_SHORTLIST_KEPT));
    if (!lists) return wk_device_err(stage->device)->status;
    WK_TRY(wk_shortlist_keep(class->shortlist, lists, 0, &(wk_draw){.k = 1}));
    return wk_shortlist_give(lists, 0, class->batch.descriptor, class->batch.layout.ids);
}

/* Everything but the weights, where there are some, belongs to the recording: nothing takes memory
 * of the device. Plans without outputs are the beginning of those with them. */
wick_status wk_stage_rehearse(wk_model *net, uint32_t index, const wk_cache_desc *cache,
                              const wk_stage_batch *batch) {
    wick_device *const device = wk_model_placement(net)->stages[index].device;
    wk_stage stage = {.device = device, .net = net, .index = index, .cache = *cache};
    shape_class class = class_of(batch);
    const bool has_weights = wk_model_has_weights(net, index);
    WK_TRY(wk_plan_begin(device, NULL));
    const wick_scope scope = wick_scope_begin(device);
    wick_status status = has_weights ? WICK_OK : wk_model_place_weights(net, index);
    if (status == WICK_OK) status = make_state(&stage, &stage.state);
    if (status == WICK_OK) status = make_inputs(&stage, &class);
    if (status == WICK_OK) status = compute(&stage, &class);
    if (status == WICK_OK) status = rehearse_copies(&stage);
    if (status == WICK_OK) status = rehearse_steps(&stage, &class);
    if (status == WICK_OK)
        status = wk_plan_rehearse(device, &class.plan);
    else
        wk_plan_abort(device, &class.plan);
    wick_release(class.result);
    wick_release(class.shortlist);
    wick_release(class.states);
    wk_state_free(stage.state);
    wick_scope_end(scope); /* with the inputs */
    if (!has_weights) wk_model_drop_weights(net, index);
    wk_plan_free(class.plan);
    return status;
}

/* --- Running --- */

static wick_status write_inputs(const wk_stage *stage, const shape_class *class,
                                const wk_stage_batch *from) {
    const wk_batch *const to = &class->batch;
    const uint32_t n_ropes = wk_model_hparams(stage->net)->n_ropes;
    wk_tensor_forget_fault(to->descriptor); /* what follows writes to all of its buffer */
    WK_TRY(wick_write(to->descriptor, from->words, to->layout.n_words * sizeof *from->words));
    for (uint32_t i = 0; i < n_ropes; i++) {
        WK_TRY(wick_write(to->cos[i], from->cos[i], wick_tensor_bytes(to->cos[i])));
        WK_TRY(wick_write(to->sin[i], from->sin[i], wick_tensor_bytes(to->sin[i])));
    }
    if (to->scales) WK_TRY(wick_write(to->scales, from->scales, wick_tensor_bytes(to->scales)));
    if (to->rows) WK_TRY(wick_write(to->rows, from->rows, wick_tensor_bytes(to->rows)));
    if (!class->hidden) return WICK_OK;
    return wick_write(class->hidden, from->hidden, wick_tensor_bytes(class->hidden));
}

static wick_status start_reading(wk_stage *stage, wick_tensor *wanted) {
    stage->wanted = wanted;
    return wick_read_start(wanted, &stage->reading);
}

/* The token of a step was drawn by the step before. */
static wick_status run_step(wk_stage *stage, const wk_stage_batch *batch) {
    const shape_class *const class = stage->last;
    const uint32_t step = batch->step;
    if (step > 0)
        WK_TRY(wk_shortlist_give(stage->lists, step - 1, class->batch.descriptor,
                                 class->batch.layout.ids));
    WK_TRY(wk_plan_run(class->plan));
    if (batch->n_steps == 1) return WICK_OK;
    return wk_shortlist_keep(class->shortlist, stage->lists, step,
                             step + 1 < batch->n_steps ? &batch->draws[step] : NULL);
}

static wick_status prepare_steps(wk_stage *stage) {
    if (!stage->lists)
        stage->lists =
            wick_empty(stage->device, WICK_F32, WICK_SHAPE(WK_MOST_STEPS, WK_SHORTLIST_KEPT));
    if (!stage->lists) return wk_device_err(stage->device)->status;
    wk_tensor_forget_fault(stage->lists); /* of a batch before */
    return WICK_OK;
}

static wick_status begin(wk_stage *stage, const wk_stage_batch *batch) {
    assert(!stage->running);
    drop_reading(stage); /* of a completion that was not waited for */
    shape_class *class = NULL;
    WK_TRY(get_compiled_class(stage, batch, &class));
    if (batch->n_steps > 1) WK_TRY(prepare_steps(stage));
    class->begun_as = ++stage->n_begun;
    stage->last = class;
    stage->wanted = NULL;
    return WICK_OK;
}

wick_status wk_stage_start(wk_stage *stage, const wk_stage_batch *batch, bool *has_begun) {
    *has_begun = batch->step > 0;
    if (batch->step == 0) WK_TRY(begin(stage, batch));
    shape_class *const class = stage->last;
    WK_TRY(write_inputs(stage, class, batch));
    *has_begun = true;
    WK_TRY(run_step(stage, batch));
    if (batch->step + 1 < batch->n_steps) return WICK_OK;
    wick_tensor *const wanted = batch->n_steps > 1 ? stage->lists
                                : batch->is_short  ? class->shortlist
                                                   : NULL;
    if (class->result) WK_TRY(start_reading(stage, wanted ? wanted : class->result));
    stage->running = class;
    return WICK_OK;
}

static wick_status take_lists(wk_stage *stage, wk_stage_batch *batch) {
    const size_t n_vocab = wk_model_hparams(stage->net)->n_vocab;
    assert(batch->is_short);
    float lists[WK_MOST_STEPS][WK_SHORTLIST_KEPT];
    const wick_status status = wick_read_finish(stage->reading, lists, sizeof lists);
    stage->reading = NULL;
    batch->has_drawn = status == WICK_OK;
    for (uint32_t i = 0; i < batch->n_steps && batch->has_drawn; i++) {
        memcpy(&batch->drawn[i], &lists[i][WK_SHORTLIST_WORDS], sizeof batch->drawn[i]);
        const bool is_id = batch->drawn[i] < n_vocab || i + 1 == batch->n_steps;
        batch->has_drawn =
            is_id && wk_shortlist_spread(lists[i], batch->logits + i * n_vocab, n_vocab);
    }
    return status;
}

static wick_status take_shortlist(wk_stage *stage, wk_stage_batch *batch) {
    assert(batch->is_short && stage->last->shortlist);
    float list[WK_SHORTLIST_WORDS];
    const wick_status status = wick_read_finish(stage->reading, list, sizeof list);
    stage->reading = NULL;
    if (status != WICK_OK) return status;
    if (wk_shortlist_spread(list, batch->logits, wk_model_hparams(stage->net)->n_vocab))
        return WICK_OK;
    WK_TRY(start_reading(stage, stage->last->result));
    return WICK_PENDING;
}

static wick_status take_result(wk_stage *stage, wk_stage_batch *batch) {
    if (stage->wanted == stage->lists) return take_lists(stage, batch);
    if (stage->wanted == stage->last->shortlist) return take_shortlist(stage, batch);
    const bool are_states = stage->wanted == stage->last->states;
    const wick_status status = wick_read_finish(stage->reading,
                                                are_states       ? batch->states
                                                : is_last(stage) ? batch->logits
                                                                 : batch->hidden,
                                                wick_tensor_bytes(stage->wanted));
    stage->reading = NULL;
    if (status == WICK_OK && is_last(stage) && !are_states) batch->is_short = false;
    return status;
}

static wick_status poll_reading(wk_stage *stage, wk_stage_batch *batch) {
    const wick_status polled = wick_read_poll(stage->reading);
    return polled == WICK_PENDING ? WICK_PENDING : take_result(stage, batch);
}

static wick_status fail_lost(wk_stage *stage) {
    drop_reading(stage);
    stage->running = NULL;
    return wk_device_fail(stage->device, WICK_ERR_DEVICE_LOST,
                          "the batch was lost with its device");
}

wick_status wk_stage_poll(wk_stage *stage, wk_stage_batch *batch) {
    assert(stage->running);
    if (wk_stage_is_stale(stage)) return fail_lost(stage);
    wick_status status = stage->reading ? poll_reading(stage, batch) : wick_poll(stage->device);
    if (status == WICK_OK && stage->last->states && stage->wanted != stage->last->states) {
        status = start_reading(stage, stage->last->states);
        if (status == WICK_OK) return WICK_PENDING;
    }
    if (status != WICK_PENDING) stage->running = NULL;
    return status;
}

wick_status wk_stage_complete(wk_stage *stage, wk_stage_batch *batch) {
    if (!batch->is_short) return WICK_OK;
    /* With the device, or because the cache has grown since. */
    if (wk_stage_is_stale(stage) || !stage->last) return fail_lost(stage);
    assert(!stage->running);
    if (stage->reading) return poll_reading(stage, batch);
    WK_TRY(start_reading(stage, stage->last->result));
    return WICK_PENDING;
}
