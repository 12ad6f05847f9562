/* model/state.c: what layers keep between batches: the cache of keys and values, recurrent states.
 */
#include "core/dtype.h"
#include "model/model_struct.h"
#include "quant/encode.h"

#include <wick/ops.h>

#include <assert.h>

enum { TENSORS = 4 }; /* of a layer */

/* Whether a layer has keys and values of its own. */
static bool has_kv(const wk_model *model, uint32_t layer) {
    const wk_layer_spec *const spec = &model->layers[layer].spec;
    const bool attends = spec->mixer == WK_MIXER_ATTENTION || spec->mixer == WK_MIXER_LATENT;
    return attends && !spec->attention.is_kv_shared;
}

/* The state keeps its tensors beyond the scope that may be open. */
static wick_tensor *keep(wick_tensor *tensor) {
    return tensor != NULL && tensor->scope != 0 ? wick_retain(tensor) : tensor;
}

static wick_tensor *make_cache(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    return keep(wk_tensor_new(device, dtype, shape));
}

/* Keys lie [.., dim, block_size] and are seen as [.., block_size, dim]: a query meets many keys at
 * once, element by element, so neighbouring keys are what a vector register wants to hold. Keys of
 * a block type lie in rows, as blocks do. */
static wick_tensor *make_key_cache(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    if (wk_dtype_is_block(dtype)) return make_cache(device, dtype, shape);
    wick_shape lying = *shape;
    lying.extent[2] = shape->extent[3];
    lying.extent[3] = shape->extent[2];
    wick_tensor *const cache = make_cache(device, dtype, &lying);
    wick_tensor *const keys = keep(wick_transpose(cache, 2, 3));
    wick_release(cache);
    return keys;
}

static bool has_window_blocks(const wk_layer_spec *spec, const wk_cache_desc *desc) {
    return desc->n_window_blocks > 0 && wk_layer_forgets(spec);
}

/* Blocks of a layer's keys and values. */
static uint32_t count_blocks(const wk_layer_spec *spec, const wk_cache_desc *desc) {
    return has_window_blocks(spec, desc) ? desc->n_window_blocks : desc->n_blocks;
}

/* On failure the device holds the sentence. */
static bool make_kv(wick_device *device, const wk_layer_spec *layer, const wk_cache_desc *desc,
                    wk_layer_cache *out) {
    assert(desc->block_size > 0 && count_blocks(layer, desc) > 0);
    const wk_attention_spec *const spec = &layer->attention;
    wick_shape shape = {
        .rank = 4,
        .extent = {count_blocks(layer, desc), spec->n_heads_kv, desc->block_size, spec->head_dim}};
    out->k = make_key_cache(device, desc->dtype, &shape);
    if (out->k == NULL) return false;
    shape.extent[3] = spec->head_dim_v;
    out->v = make_cache(device, desc->dtype, &shape);
    return out->v != NULL;
}

/* What they hold before position 0 of a sequence does not matter. */
static bool make_recurrent(wick_device *device, const wk_recurrent_spec *spec, uint32_t n_slots,
                           wk_layer_cache *out) {
    assert(spec->n_taps > 0 && spec->n_channels > 0 && n_slots > 0);
    const wick_shape inputs = WICK_SHAPE(n_slots, spec->n_taps - 1, spec->n_channels);
    const wick_shape numbers = WICK_SHAPE(n_slots, spec->n_heads, spec->n_numbers, spec->head_dim);
    out->inputs = make_cache(device, WICK_F32, &inputs);
    if (out->inputs == NULL || spec->n_heads == 0) return out->inputs != NULL;
    out->numbers = make_cache(device, WICK_F32, &numbers);
    return out->numbers != NULL;
}

static bool make_layer(const wk_model *model, wick_device *device, uint32_t layer,
                       const wk_cache_desc *desc, wk_layer_cache *out) {
    const wk_layer_spec *const spec = &model->layers[layer].spec;
    if (has_kv(model, layer) && !make_kv(device, spec, desc, out)) return false;
    return !wk_layer_is_recurrent(spec) ||
           make_recurrent(device, &spec->recurrent, desc->n_slots, out);
}

static void free_layer(wk_layer_cache *layer) {
    wick_release(layer->k);
    wick_release(layer->v);
    wick_release(layer->inputs);
    wick_release(layer->numbers);
    *layer = (wk_layer_cache){.k = NULL};
}

wick_status wk_model_check_cache(const wk_model *model, wick_dtype dtype, wick_error *err) {
    assert(dtype == WICK_F32 || dtype == WICK_F16 || wk_can_encode_quickly(dtype));
    const uint32_t block = (uint32_t)wk_dtype_get(dtype)->block_elements;
    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        const wk_attention_spec *const spec = &model->layers[i].spec.attention;
        if (!has_kv(model, i) || (spec->head_dim % block == 0 && spec->head_dim_v % block == 0))
            continue;
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "a cache of %s takes heads of a multiple of %u channels; in layer %u those "
                       "of keys have %u and those of values %u: take an f16 cache",
                       wick_dtype_name(dtype), block, i, spec->head_dim, spec->head_dim_v);
    }
    return WICK_OK;
}

wick_status wk_state_make(const wk_model *model, uint32_t stage, const wk_cache_desc *desc,
                          wk_state **out) {
    assert(stage < model->placement.n_stages || stage == WK_HEAD_STAGE);
    assert(wk_model_check_cache(model, desc->dtype, NULL) == WICK_OK);
    *out = NULL;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    wick_device *const device = layers->device;
    wk_heap *const heap = wk_device_heap(device);
    const size_t size = layers->count * sizeof(wk_layer_cache);
    wk_state *const state = wk_alloc_zeroed(heap, sizeof *state + size);
    if (state == NULL)
        return wk_fail_memory(wk_device_err(device), sizeof *state + size, "a cache");
    state->heap = heap;
    state->stage = stage;
    state->first = layers->first;
    state->n_layers = layers->count;
    state->has_window_blocks = desc->n_window_blocks > 0;

    for (uint32_t i = 0; i < state->n_layers; i++) {
        if (make_layer(model, device, state->first + i, desc, &state->layers[i])) continue;
        wk_state_free(state);
        return wk_device_err(device)->status;
    }
    *out = state;
    return WICK_OK;
}

void wk_state_free(wk_state *state) {
    if (state == NULL) return;
    for (uint32_t i = 0; i < state->n_layers; i++) free_layer(&state->layers[i]);
    wk_free(state->heap, state, sizeof *state + state->n_layers * sizeof *state->layers);
}

/* ---- Growing ---- */

/* The first n blocks or slots of a cache, as words: they are copied whatever their type is. */
static wick_tensor *words_of(wick_tensor *cache, int64_t n) {
    const int64_t n_words =
        (int64_t)(wick_tensor_bytes(cache) / sizeof(uint32_t)) / cache->view.extent[0];
    assert(n <= cache->view.extent[0]);
    const wk_view words = {.buf = cache->view.buf,
                           .offset = cache->view.offset,
                           .dtype = WICK_U32,
                           .rank = 2,
                           .extent = {n, n_words},
                           .stride = {n_words, 1}};
    return wk_tensor_of_view(cache->device, &words);
}

/* from NULL: the layer has no such part. */
static bool copy_all(wick_tensor *from, wick_tensor *to) {
    return from == NULL || wick_copy(words_of(to, from->view.extent[0]),
                                     words_of(from, from->view.extent[0])) != NULL;
}

static bool has_room(const wk_model *model, uint32_t layer, const wk_layer_cache *cache,
                     const wk_cache_desc *desc) {
    const wk_layer_spec *const spec = &model->layers[layer].spec;
    if (cache->k != NULL && cache->k->view.extent[0] < count_blocks(spec, desc)) return false;
    return cache->inputs == NULL || cache->inputs->view.extent[0] >= desc->n_slots;
}

/* After a call that failed, a layer may have more blocks than desc, which asks for more slots. */
static wk_cache_desc no_less(const wk_layer_spec *spec, const wk_layer_cache *cache,
                             const wk_cache_desc *desc) {
    wk_cache_desc room = *desc;
    if (cache->k != NULL && cache->k->view.extent[0] > count_blocks(spec, desc))
        *(has_window_blocks(spec, desc) ? &room.n_window_blocks : &room.n_blocks) =
            (uint32_t)cache->k->view.extent[0];
    if (cache->inputs != NULL && cache->inputs->view.extent[0] > desc->n_slots)
        room.n_slots = (uint32_t)cache->inputs->view.extent[0];
    return room;
}

static bool grow_layer(const wk_model *model, uint32_t layer, const wk_cache_desc *wanted,
                       wk_layer_cache *cache) {
    if (has_room(model, layer, cache, wanted)) return true;
    const wk_cache_desc room = no_less(&model->layers[layer].spec, cache, wanted);
    const wk_cache_desc *const desc = &room;
    wick_tensor *const any = cache->k != NULL ? cache->k : cache->inputs;
    wk_layer_cache larger = {.k = NULL};
    const wick_scope scope = wick_scope_begin(any->device);
    const bool is_grown = make_layer(model, any->device, layer, desc, &larger) &&
                          copy_all(cache->k, larger.k) && copy_all(cache->v, larger.v) &&
                          copy_all(cache->inputs, larger.inputs) &&
                          copy_all(cache->numbers, larger.numbers);
    wick_scope_end(scope);
    free_layer(is_grown ? cache : &larger);
    if (is_grown) *cache = larger;
    return is_grown;
}

/* Layer by layer, each copied before the next one takes memory: the peak is the larger cache and
 * one smaller layer. */
wick_status wk_state_grow(const wk_model *model, wk_state *state, const wk_cache_desc *desc) {
    wick_device *const device = model->placement.stages[state->stage].device;
    for (uint32_t i = 0; i < state->n_layers; i++) {
        if (!grow_layer(model, state->first + i, desc, &state->layers[i]))
            return wk_device_err(device)->status;
        const wick_status status = wick_poll(device);
        if (status < 0) return status;
    }
    return WICK_OK;
}

void wk_state_forget_faults(wk_state *state) {
    for (uint32_t i = 0; i < state->n_layers; i++) {
        const wk_layer_cache *const layer = &state->layers[i];
        wick_tensor *const tensors[] = {layer->k, layer->v, layer->inputs, layer->numbers};
        for (size_t k = 0; k < sizeof tensors / sizeof *tensors; k++)
            if (tensors[k] != NULL) wk_tensor_forget_fault(tensors[k]);
    }
}

/* ---- Copying ---- */

/* Tensor number i of a state whose cells are of this kind; NULL: it is of another one. */
static wick_tensor *cells_of(const wk_model *model, const wk_state *state, wk_state_kind kind,
                             uint32_t i) {
    const uint32_t layer = i / TENSORS;
    const wk_layer_cache *const cache = &state->layers[layer];
    wick_tensor *const tensors[TENSORS] = {cache->k, cache->v, cache->inputs, cache->numbers};
    wick_tensor *const tensor = tensors[i % TENSORS];
    const bool is_slot = tensor == cache->inputs || tensor == cache->numbers;
    const bool has_window =
        state->has_window_blocks && wk_layer_forgets(&model->layers[state->first + layer].spec);
    const wk_state_kind own = is_slot      ? WK_STATE_SLOTS
                              : has_window ? WK_STATE_WINDOW_BLOCKS
                                           : WK_STATE_BLOCKS;
    return own == kind ? tensor : NULL;
}

/* By way of another tensor, as no kernel reads and writes one buffer; each copy is computed by
 * itself, so that no chain of the two has to be compiled. */
static bool copy_one(wick_tensor *cells, uint32_t from, uint32_t to) {
    wick_tensor *const words = words_of(cells, cells->view.extent[0]);
    if (words == NULL) return false;
    wick_tensor *const between =
        wick_empty(cells->device, WICK_U32, WICK_SHAPE(1, words->view.extent[1]));
    return wick_copy(between, wick_narrow(words, 0, from, 1)) != NULL &&
           wick_poll(cells->device) >= 0 &&
           wick_copy(wick_narrow(words, 0, to, 1), between) != NULL;
}

wick_status wk_state_copy(const wk_model *model, const wk_state *state, wk_state_kind kind,
                          uint32_t from, uint32_t to) {
    wick_device *const device = model->placement.stages[state->stage].device;
    const wick_scope scope = wick_scope_begin(device);
    bool is_copied = true;
    for (uint32_t i = 0; i < state->n_layers * TENSORS && is_copied; i++) {
        wick_tensor *const cells = cells_of(model, state, kind, i);
        is_copied = cells == NULL || copy_one(cells, from, to);
    }
    wick_scope_end(scope);
    return is_copied ? WICK_OK : wk_device_err(device)->status;
}

/* ---- Packing ---- */

static size_t cell_bytes(const wick_tensor *cells) {
    return wick_tensor_bytes(cells) / (size_t)cells->view.extent[0];
}

size_t wk_state_cell_bytes(const wk_model *model, const wk_state *state, wk_state_kind kind) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < state->n_layers * TENSORS; i++) {
        const wick_tensor *const cells = cells_of(model, state, kind, i);
        if (cells != NULL) bytes += cell_bytes(cells);
    }
    return bytes;
}

static wick_tensor *one_cell(wick_tensor *cells, uint32_t cell) {
    return wick_narrow(words_of(cells, cells->view.extent[0]), 0, cell, 1);
}

bool wk_state_pack(const wk_model *model, const wk_state *state, wk_state_kind kind, uint32_t cell,
                   wick_tensor *packed, int64_t *at) {
    for (uint32_t i = 0; i < state->n_layers * TENSORS; i++) {
        wick_tensor *const cells = cells_of(model, state, kind, i);
        if (cells == NULL) continue;
        const int64_t n = (int64_t)(cell_bytes(cells) / sizeof(uint32_t));
        if (wick_copy(wick_narrow(packed, 1, *at, n), one_cell(cells, cell)) == NULL) return false;
        *at += n;
    }
    return true;
}

wick_status wk_state_unpack(const wk_model *model, const wk_state *state, wk_state_kind kind,
                            uint32_t cell, const unsigned char *bytes) {
    wick_device *const device = model->placement.stages[state->stage].device;
    const wick_scope scope = wick_scope_begin(device);
    wick_status status = WICK_OK;
    for (uint32_t i = 0; i < state->n_layers * TENSORS && status == WICK_OK; i++) {
        wick_tensor *const cells = cells_of(model, state, kind, i);
        if (cells == NULL) continue;
        wick_tensor *const one = one_cell(cells, cell);
        status =
            one == NULL ? wk_device_err(device)->status : wick_write(one, bytes, cell_bytes(cells));
        bytes += cell_bytes(cells);
    }
    wick_scope_end(scope);
    return status;
}

/* Of a row of n elements, up to whole blocks. */
static uint64_t row_bytes(wick_dtype dtype, uint64_t n) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    const uint64_t block = (uint64_t)info->block_elements;
    return (n + block - 1) / block * (uint64_t)info->block_bytes;
}

uint64_t wk_state_bytes(const wk_model *model, uint32_t stage, const wk_cache_desc *desc) {
    const wk_model_stage *const layers = &model->placement.stages[stage];
    uint64_t n_bytes = 0, n_numbers = 0;
    for (uint32_t i = layers->first; i < layers->first + layers->count; i++) {
        const wk_layer_spec *const spec = &model->layers[i].spec;
        const wk_attention_spec *const attention = &spec->attention;
        const wk_recurrent_spec *const recurrent = &spec->recurrent;
        if (has_kv(model, i))
            n_bytes += (uint64_t)count_blocks(spec, desc) * desc->block_size *
                       attention->n_heads_kv *
                       (row_bytes(desc->dtype, attention->head_dim) +
                        row_bytes(desc->dtype, attention->head_dim_v));
        if (wk_layer_is_recurrent(spec))
            n_numbers += (uint64_t)(recurrent->n_taps - 1) * recurrent->n_channels +
                         (uint64_t)recurrent->n_heads * recurrent->head_dim * recurrent->n_numbers;
    }
    return n_bytes + n_numbers * desc->n_slots * sizeof(float);
}
