/* model/state.c: the cache of keys and values. */
#include "core/dtype.h"
#include "model/model_struct.h"

#include <wick/ops.h>

#include <assert.h>

static wick_shape cache_shape(const wk_hparams *hparams, uint32_t n_blocks, uint32_t block_size,
                              uint32_t dim) {
    return (wick_shape){.rank = 4, .extent = {n_blocks, hparams->n_heads_kv, block_size, dim}};
}

/* The state keeps its tensors beyond the scope that may be open. */
static wick_tensor *keep(wick_tensor *tensor) {
    return tensor != NULL && tensor->scope != 0 ? wick_retain(tensor) : tensor;
}

static wick_tensor *make_cache(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    return keep(wk_tensor_new(device, dtype, shape));
}

/* Keys lie [.., dim, block_size] and are seen as [.., block_size, dim]: a query meets many keys at
 * once, element by element, so neighbouring keys are what a vector register wants to hold. */
static wick_tensor *make_key_cache(wick_device *device, wick_dtype dtype, const wick_shape *shape) {
    wick_shape lying = *shape;
    lying.extent[2] = shape->extent[3];
    lying.extent[3] = shape->extent[2];
    wick_tensor *const cache = make_cache(device, dtype, &lying);
    wick_tensor *const keys = keep(wick_transpose(cache, 2, 3));
    wick_release(cache);
    return keys;
}

wick_status wk_state_make(const wk_model *model, uint32_t stage, uint32_t n_blocks,
                          uint32_t block_size, wick_dtype dtype, wk_state **out) {
    assert(dtype == WICK_F32 || dtype == WICK_F16);
    *out = NULL;
    const wk_hparams *const hparams = &model->hparams;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    wick_device *const device = layers->device;
    wk_heap *const heap = wk_device_heap(device);
    const size_t size = layers->count * sizeof(wk_layer_cache);
    wk_state *const state = wk_alloc_zeroed(heap, sizeof *state + size);
    if (state == NULL)
        return wk_fail_memory(wk_device_sticky(device), sizeof *state + size, 0, "a cache");
    state->heap = heap;
    state->first = layers->first;
    state->n_layers = layers->count;

    const wick_shape k = cache_shape(hparams, n_blocks, block_size, hparams->head_dim);
    const wick_shape v = cache_shape(hparams, n_blocks, block_size, hparams->head_dim_v);
    for (uint32_t i = 0; i < state->n_layers; i++) {
        wk_layer_cache *const layer = &state->layers[i];
        layer->k = make_key_cache(device, dtype, &k);
        layer->v = layer->k != NULL ? make_cache(device, dtype, &v) : NULL;
        if (layer->v != NULL) continue;
        wk_state_free(state);
        return wk_device_sticky(device)->status;
    }
    *out = state;
    return WICK_OK;
}

void wk_state_free(wk_state *state) {
    if (state == NULL) return;
    for (uint32_t i = 0; i < state->n_layers; i++) {
        wick_release(state->layers[i].k);
        wick_release(state->layers[i].v);
    }
    wk_free(state->heap, state, sizeof *state + state->n_layers * sizeof *state->layers);
}

uint64_t wk_state_bytes(const wk_model *model, uint32_t stage, uint32_t n_blocks,
                        uint32_t block_size, wick_dtype dtype) {
    const wk_hparams *const hparams = &model->hparams;
    const uint64_t n_slots = (uint64_t)n_blocks * block_size;
    const uint64_t n_channels =
        (uint64_t)hparams->n_heads_kv * ((uint64_t)hparams->head_dim + hparams->head_dim_v);
    const uint64_t element = (uint64_t)wk_dtype_get(dtype)->block_bytes;
    return n_slots * n_channels * element * model->placement.stages[stage].count;
}
