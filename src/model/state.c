/* model/state.c: what layers keep between batches: the cache of keys and values, recurrent states.
 */
#include "core/dtype.h"
#include "model/model_struct.h"
#include "quant/encode.h"

#include <wick/ops.h>

#include <assert.h>

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

/* Blocks of a layer's keys and values. */
static uint32_t count_blocks(const wk_layer_spec *spec, const wk_cache_desc *desc) {
    const bool has_fewer = desc->n_window_blocks > 0 && wk_layer_forgets(spec);
    return has_fewer ? desc->n_window_blocks : desc->n_blocks;
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

/* States of one sequence; what they hold before position 0 does not matter. */
static bool make_recurrent(wick_device *device, const wk_recurrent_spec *spec,
                           wk_layer_cache *out) {
    assert(spec->n_taps > 0 && spec->n_channels > 0);
    const wick_shape inputs = WICK_SHAPE(1, spec->n_taps - 1, spec->n_channels);
    const wick_shape numbers = WICK_SHAPE(1, spec->n_heads, spec->n_numbers, spec->head_dim);
    out->inputs = make_cache(device, WICK_F32, &inputs);
    if (out->inputs == NULL || spec->n_heads == 0) return out->inputs != NULL;
    out->numbers = make_cache(device, WICK_F32, &numbers);
    return out->numbers != NULL;
}

static bool make_layer(const wk_model *model, wick_device *device, uint32_t layer,
                       const wk_cache_desc *desc, wk_layer_cache *out) {
    const wk_layer_spec *const spec = &model->layers[layer].spec;
    if (has_kv(model, layer)) return make_kv(device, spec, desc, out);
    return !wk_layer_is_recurrent(spec) || make_recurrent(device, &spec->recurrent, out);
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
    assert(stage < model->placement.n_stages);
    assert(wk_model_check_cache(model, desc->dtype, NULL) == WICK_OK);
    *out = NULL;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    wick_device *const device = layers->device;
    wk_heap *const heap = wk_device_heap(device);
    const size_t size = layers->count * sizeof(wk_layer_cache);
    wk_state *const state = wk_alloc_zeroed(heap, sizeof *state + size);
    if (state == NULL)
        return wk_fail_memory(wk_device_err(device), sizeof *state + size, 0, "a cache");
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
    for (uint32_t i = 0; i < state->n_layers; i++) {
        wick_release(state->layers[i].k);
        wick_release(state->layers[i].v);
        wick_release(state->layers[i].inputs);
        wick_release(state->layers[i].numbers);
    }
    wk_free(state->heap, state, sizeof *state + state->n_layers * sizeof *state->layers);
}

void wk_state_forget_faults(wk_state *state) {
    for (uint32_t i = 0; i < state->n_layers; i++) {
        const wk_layer_cache *const layer = &state->layers[i];
        wick_tensor *const tensors[] = {layer->k, layer->v, layer->inputs, layer->numbers};
        for (size_t k = 0; k < sizeof tensors / sizeof *tensors; k++)
            if (tensors[k] != NULL) wk_tensor_forget_fault(tensors[k]);
    }
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
    return n_bytes + n_numbers * sizeof(float);
}
