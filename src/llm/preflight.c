/* llm/preflight.c: what a model will need, from its header alone. */
#include "llm/llm.h"
#include "source/file.h"

#include "sys/clock.h"

#include <inttypes.h>
#include <stdio.h>

static wick_dtype cache_dtype(wick_cache cache, wick_math math) {
    switch (cache) {
    case WICK_CACHE_F32: return WICK_F32;
    case WICK_CACHE_F16: return WICK_F16;
    case WICK_CACHE_Q8_0: return WICK_Q8_0;
    case WICK_CACHE_Q4_0: return WICK_Q4_0;
    default: return math == WICK_MATH_FAST ? WICK_F16 : WICK_F32;
    }
}

/* Layers with a window keep no keys older than it: they have blocks for the window of a chunk's
 * first token and the chunk, at any position in a block. */
static uint64_t count_window_blocks(uint32_t window, uint32_t chunk_length) {
    const uint64_t n_seen = (uint64_t)window + chunk_length - 1;
    return (n_seen - 1 + WK_BLOCK_SIZE - 1) / WK_BLOCK_SIZE + 1;
}

wk_cache_desc wk_cache_describe(const wk_hparams *hparams, const wk_runner_desc *session) {
    const uint32_t n_blocks = session->is_whole ? 0 : wk_blocks_for(session->context_length);
    wk_cache_desc cache = {n_blocks, WK_BLOCK_SIZE, session->cache_dtype, 0, 0};
    if (session->is_whole || session->is_head) return cache;
    cache.n_slots = hparams->is_recurrent;
    if (hparams->window == 0) return cache;
    const uint64_t n_window = count_window_blocks(hparams->window, session->chunk_length);
    cache.n_window_blocks = (uint32_t)(n_window < n_blocks ? n_window : n_blocks);
    return cache;
}

static uint64_t predict_cache(const wk_model *model, uint32_t stage,
                              const wk_runner_desc *session) {
    const wk_hparams *const hparams = wk_model_hparams(model);
    const wk_cache_desc cache = wk_cache_describe(hparams, session);
    const uint64_t bytes = wk_state_bytes(model, stage, &cache);
    const bool is_last = stage + 1 == wk_model_placement(model)->n_stages;
    if (!is_last || !wk_model_has_head(model) || session->is_whole) return bytes;
    wk_runner_desc head = *session;
    head.is_head = true;
    const wk_cache_desc of_head = wk_cache_describe(hparams, &head);
    return bytes + wk_state_bytes(model, WK_HEAD_STAGE, &of_head);
}

static uint64_t predict_whole_cache(const wk_model *model, const wk_runner_desc *session) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < wk_model_placement(model)->n_stages; i++)
        bytes += predict_cache(model, i, session);
    return bytes;
}

/* The longest context, most tokens at most, whose cache takes no more than budget; in whole blocks,
 * and one of them in any case. */
static uint32_t fit_context(const wk_model *model, wk_runner_desc session, uint32_t most,
                            uint64_t budget) {
    uint32_t fits = 1, too_many = most / WK_BLOCK_SIZE + 2; /* blocks */
    while (too_many - fits > 1) {
        const uint32_t n = fits + (too_many - fits) / 2;
        session.context_length = n * WK_BLOCK_SIZE;
        if (predict_whole_cache(model, &session) <= budget)
            fits = n;
        else
            too_many = n;
    }
    return fits * WK_BLOCK_SIZE < most ? fits * WK_BLOCK_SIZE : most;
}

/* An encoder has no cache: what it computes at once grows with the context. With LongRoPE a longer
 * context than the original one changes the answers to short texts, too: it has to be asked for. */
static uint32_t default_context(const wk_model *model, const wk_runner_desc *session,
                                uint64_t budget) {
    const wk_hparams *const hparams = wk_model_hparams(model);
    const bool is_known = budget > 0 && !hparams->is_bidirectional;
    const uint32_t cap = is_known ? WK_DEFAULT_CONTEXT_KNOWN : WK_DEFAULT_CONTEXT;
    uint32_t most = hparams->context_length < cap ? hparams->context_length : cap;
    if (hparams->short_context > 0 && hparams->short_context < most) most = hparams->short_context;
    return is_known ? fit_context(model, *session, most, budget) : most;
}

wk_runner_desc wk_runner_describe(const wk_model *model, wick_math math, uint64_t cache_budget,
                                  const wick_session_desc *desc) {
    static const wick_session_desc defaults;
    if (desc == NULL) desc = &defaults;
    wk_runner_desc runner = {.context_length = desc->context_length,
                             .chunk_length =
                                 desc->chunk_length > 0 ? desc->chunk_length : WK_DEFAULT_CHUNK,
                             .cache_dtype = cache_dtype(desc->cache, math),
                             .math = math,
                             .outputs = WK_OUTPUTS_LAST};
    if (runner.context_length == 0)
        runner.context_length = default_context(model, &runner, cache_budget);
    /* What sees the whole text cannot read it in parts, or go on with it. */
    runner.is_whole = wk_model_hparams(model)->is_bidirectional;
    if (runner.is_whole) runner.chunk_length = runner.context_length;
    if (desc->logits == WICK_LOGITS_ALL) runner.outputs = WK_OUTPUTS_ALL;
    if (desc->logits == WICK_LOGITS_STATES) runner.outputs = WK_OUTPUTS_STATES;
    if (desc->logits == WICK_LOGITS_SCORES) runner.outputs = WK_OUTPUTS_SCORES;
    return runner;
}

/* The process itself and an open device: code, stacks, the queue of operations. Measured. */
enum { PROCESS_BYTES = 5 << 20 };

typedef uint64_t (*weight_size)(const wick_device *device, wick_dtype dtype,
                                const wick_shape *shape, uint32_t uses);
static uint64_t predict_weights(const wk_model *model, const wk_gguf *gguf,
                                const wick_device *device, uint32_t stage, weight_size size_of) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        const uint32_t uses = wk_model_weight_uses(model, tensor, stage);
        if (uses != 0) bytes += size_of(device, tensor->dtype, &tensor->shape, uses);
    }
    return bytes;
}

uint64_t wk_snapshot_budget(const wick_model_desc *desc) {
    if (desc && desc->snapshot_limit > 0) return desc->snapshot_limit;
    return (uint64_t)(wk_memory_is_machine() ? 256 : 64) << 20;
}

uint64_t wk_cache_budget(const wk_model *model, const wk_gguf *gguf, const wick_device *device) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    const uint64_t free_bytes = info.memory_available;
    if (free_bytes == 0 || !wk_memory_is_machine()) return 0;
    const bool is_cpu = info.backend == WICK_BACKEND_CPU;
    const uint64_t weights =
        predict_weights(model, gguf, device, 0, is_cpu ? wk_weight_bytes : wk_weight_footprint);
    /* Weights that do not fit share the memory with the cache: layers move to the CPU, pages back
     * to the file. */
    const uint64_t beside = weights < free_bytes ? free_bytes - weights : free_bytes;
    return beside / 4 > 0 ? beside / 4 : 1;
}

/* A full chunk, its rotary tables on the host and on the device, and a row of logits on both. */
static uint64_t predict_activations(const wk_model *model, const wk_runner_desc *session) {
    const wk_hparams *const hparams = wk_model_hparams(model);
    const uint32_t n_rows = session->context_length < session->chunk_length
                                ? session->context_length
                                : session->chunk_length;
    uint64_t n_table = 0;
    for (uint32_t i = 0; i < hparams->n_ropes; i++)
        n_table += 2 * (uint64_t)hparams->rope[i].n_pairs * n_rows;
    return wk_model_activation_bytes(model, n_rows) +
           2 * sizeof(float) * (n_table + hparams->n_vocab);
}

/* Kernels of a GPU share a query's keys out to spans, whose results they keep for a moment, in each
 * plan in memory of its own (backend/webgpu/kernels/kernel_attention.c). Plans are of 1, 2, 4, ...
 * rows and of 256, 512, ... keys: those of all rows take twice what the largest one takes, and with
 * those of all key lengths twice that. */
static uint64_t predict_scratch(const wk_model *model, const wk_runner_desc *session) {
    enum { SPAN = 128, MOST = 16 << 20, PLANS = 4 };
    const wk_hparams *const hparams = wk_model_hparams(model);
    const uint64_t n_spans = ((uint64_t)session->context_length + SPAN - 1) / SPAN;
    const uint64_t n_results = (uint64_t)session->chunk_length * hparams->n_heads_q * n_spans;
    const uint64_t bytes = n_results * (hparams->head_dim_v + 2) * sizeof(float);
    return PLANS * (bytes < MOST ? bytes : (uint64_t)MOST);
}

wick_status wk_check_room(const wick_model *model, uint32_t stage, bool is_mapped,
                          const wk_runner_desc *session, wick_error *err) {
    wick_device_info info;
    wick_device_get_info(wk_model_placement(model->model)->stages[stage].device, &info);
    if (info.backend != WICK_BACKEND_CPU || info.memory_available == 0) return WICK_OK;
    uint64_t needed = wk_model_weight_room(model->model, stage, is_mapped);
    if (needed > info.memory_available)
        return wk_fail_memory_of(err, needed, info.memory_available, "the weights");
    if (session == NULL) return WICK_OK;
    needed +=
        predict_cache(model->model, stage, session) + predict_activations(model->model, session);
    if (needed <= info.memory_available) return WICK_OK;
    char what[80];
    snprintf(what, sizeof what, "the weights and a context of %" PRIu32 " tokens",
             session->context_length);
    return wk_fail_memory_of(err, needed, info.memory_available, what);
}

/* ---- Placement ---- */

wk_placement wk_placement_of(const wk_model *model, uint32_t n, wick_device *host,
                             wick_device *device) {
    const uint32_t n_layers = wk_model_hparams(model)->n_layers;
    wk_placement placement = {.n_stages = 0};
    if (n < n_layers)
        placement.stages[placement.n_stages++] =
            (wk_model_stage){.device = host, .count = n_layers - n};
    if (n > 0)
        placement.stages[placement.n_stages++] =
            (wk_model_stage){.device = device, .first = n_layers - n, .count = n};
    return placement;
}

uint64_t wk_bytes_needed(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                         uint32_t n, const wk_runner_desc *session) {
    enum { ROUNDED = 8 }; /* a pool's buffers are at most 1/ROUNDED larger */
    if (n == 0) return 0;
    const wk_placement placement = wk_placement_of(model, n, NULL, NULL);
    const uint32_t last = placement.n_stages - 1;
    wk_model_place(model, &placement);
    const uint64_t others = predict_cache(model, last, session) +
                            predict_activations(model, session) + predict_scratch(model, session);
    return predict_weights(model, gguf, device, last, wk_weight_footprint) + others +
           others / ROUNDED;
}

uint32_t wk_layers_that_fit(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                            uint32_t most, uint64_t budget, const wk_runner_desc *session) {
    uint32_t fits = 0, too_many = most + 1; /* more layers need more bytes */
    while (too_many - fits > 1) {
        const uint32_t n = fits + (too_many - fits) / 2;
        if (wk_bytes_needed(model, gguf, device, n, session) <= budget)
            fits = n;
        else
            too_many = n;
    }
    return fits;
}

/* The longest context with which all layers fit, in whole blocks of the cache. */
static uint32_t find_whole_context(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                                   uint64_t budget, wk_runner_desc session) {
    const wk_hparams *const hparams = wk_model_hparams(model);
    uint32_t fits = 0, too_many = hparams->context_length / WK_BLOCK_SIZE + 2; /* blocks */
    while (too_many - fits > 1) {
        const uint32_t n = fits + (too_many - fits) / 2;
        session.context_length = n * WK_BLOCK_SIZE;
        if (wk_bytes_needed(model, gguf, device, hparams->n_layers, &session) <= budget)
            fits = n;
        else
            too_many = n;
    }
    const uint32_t length = fits * WK_BLOCK_SIZE;
    return length < hparams->context_length ? length : hparams->context_length;
}

/* What stays of the metadata: arrays, and for each text of the vocabulary its characters, its place
 * in two arrays, and the tokenizer's own index. */
static uint64_t predict_metadata(const wk_gguf *gguf) {
    enum { INDEX_BYTES = 22 };
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf->n_values; i++) {
        const wick_value *const value = &gguf->values[i];
        if (value->type != WICK_VALUE_ARRAY) continue;
        if (value->array.element_type != WICK_VALUE_STRING) {
            bytes += value->array.count * sizeof(uint32_t);
            continue;
        }
        const wick_string *const texts = value->array.values;
        for (uint64_t t = 0; t < value->array.count; t++)
            bytes += 2 * (texts[t].size + sizeof *texts) + INDEX_BYTES;
    }
    return bytes;
}

/* ---- Refusing ---- */

/* On all devices: weights, which two stages may both have, the cache, and what no stage has. */
wick_status wk_check_limit(const wick_model *model, uint64_t limit, wick_error *err) {
    const wk_placement *const placement = wk_model_placement(model->model);
    uint64_t cache = 0, needed = predict_activations(model->model, &model->warm) +
                                 predict_metadata(model->gguf) + PROCESS_BYTES;
    for (uint32_t i = 0; i < placement->n_stages; i++) {
        needed += model->low_memory
                      ? wk_model_weight_room(model->model, i, true)
                      : predict_weights(model->model, model->gguf, placement->stages[i].device, i,
                                        wk_weight_bytes);
        cache += predict_cache(model->model, i, &model->warm);
    }
    needed += cache;
    if (needed <= limit) return WICK_OK;
    if (err == NULL || err->status != WICK_OK) return WICK_ERR_OUT_OF_MEMORY;
    (void)wk_fail(err, WICK_ERR_OUT_OF_MEMORY,
                  "the model needs %s with a context of %" PRIu32
                  " tokens, but the limit is %s: choose %s",
                  wk_show_size(needed, true).text, model->warm.context_length,
                  wk_show_size(limit, false).text,
                  needed - cache < limit ? "a shorter context"
                                         : "a smaller model, or one with fewer bits per weight");
    err->bytes_requested = needed;
    err->bytes_available = limit;
    return WICK_ERR_OUT_OF_MEMORY;
}

/* ---- Prediction ---- */

/* What of a weight is copied nevertheless. */
static uint64_t low_memory_size(const wick_device *device, wick_dtype dtype,
                                const wick_shape *shape, uint32_t uses) {
    const wk_weight_desc desc = {.dtype = dtype, .shape = *shape, .uses = uses | WK_USE_IN_PLACE};
    return wk_weight_room(device, &desc, true);
}

static void predict_placement(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                              const wk_runner_desc *session, wick_prediction *prediction) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    const uint32_t n_layers = wk_model_hparams(model)->n_layers;
    prediction->n_layers = prediction->device_layers = n_layers;
    prediction->available_bytes = info.memory_available;
    if (info.backend != WICK_BACKEND_CPU) prediction->low_bytes = 0;
    if (info.memory_available == 0) return;
    if (info.backend != WICK_BACKEND_CPU)
        prediction->device_layers =
            wk_layers_that_fit(model, gguf, device, n_layers, info.memory_available, session);
    prediction->whole_context_length =
        find_whole_context(model, gguf, device, info.memory_available, *session);
}

static void predict(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                    const wk_runner_desc *session, wick_prediction *prediction) {
    prediction->context_length = session->context_length;
    prediction->weight_bytes = predict_weights(model, gguf, device, 0, wk_weight_bytes);
    prediction->cache_bytes = predict_cache(model, 0, session);
    prediction->activation_bytes = predict_activations(model, session);
    prediction->total_bytes = prediction->weight_bytes + prediction->cache_bytes +
                              prediction->activation_bytes + predict_metadata(gguf) + PROCESS_BYTES;
    prediction->low_bytes = prediction->total_bytes - prediction->weight_bytes +
                            predict_weights(model, gguf, device, 0, low_memory_size);
    predict_placement(model, gguf, device, session, prediction);
}

wick_status wick_predict(const wick_file *file, const wick_device *device,
                         const wick_session_desc *desc, wick_prediction *prediction,
                         wick_error *error) {
    if (file == NULL || device == NULL || prediction == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_predict: an argument is NULL");
    *prediction = (wick_prediction){0};
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    const wk_gguf *const gguf = wk_file_gguf(file);
    wk_model *model;
    WK_TRY(wk_model_make(&heap, gguf, &model, error));

    const wk_runner_desc session = wk_runner_describe(model, wick_device_math(device),
                                                      wk_cache_budget(model, gguf, device), desc);
    const wick_status status = wk_model_check_cache(model, session.cache_dtype, error);
    if (status == WICK_OK) predict(model, gguf, device, &session, prediction);
    wk_model_free(model);
    return status;
}
