/* model/mixer_attention.c: self-attention with rotary embedding over the cache of keys and values
 * (Vaswani et al., 2017; grouped heads: Ainslie et al., 2023). */
#include "model/model_struct.h"
#include "ops/cached.h"

#include <wick/ops.h>

/* [rows, n_embd] through a projection to [rows, heads, dim]. */
static wick_tensor *project(const wk_layer *layer, wick_tensor *x, int weight, int64_t n_heads,
                            int64_t dim) {
    /* Each bias follows its weight in the list. */
    wick_tensor *const y = wick_linear(x, layer->weight[weight], layer->weight[weight + 1]);
    return wick_reshape(y, WICK_SHAPE(-1, n_heads, dim));
}

/* Heads of q or k [rows, heads, dim] as they are compared: normed where the model does so, and
 * rotated. */
static wick_tensor *prepare_heads(const wk_model *model, const wk_layer *layer,
                                  const wk_batch *batch, wick_tensor *x, int norm) {
    const uint32_t rope = layer->spec.attention.rope;
    if (layer->spec.attention.has_qk_norm)
        x = wick_rms_norm(x, layer->weight[norm], model->hparams.norm_eps);
    return wick_rope_table(x, batch->cos[rope], batch->sin[rope],
                           layer->spec.attention.is_rope_interleaved, WICK_ROPE_BTHD);
}

wick_tensor *wk_mixer_attention(const wk_model *model, const wk_layer *layer,
                                const wk_layer_cache *cache, const wk_batch *batch,
                                wick_tensor *hidden) {
    const wk_hparams *const hparams = &model->hparams;
    const int64_t n_heads_q = hparams->n_heads_q, n_heads_kv = hparams->n_heads_kv;
    const int64_t dim = hparams->head_dim, dim_v = hparams->head_dim_v;
    const wk_params params = {
        .cached = {.scale = layer->spec.attention.scale,
                   .window = layer->spec.attention.window,
                   .batch = batch->layout},
    };

    wick_tensor *const x = wick_rms_norm(hidden, layer->weight[WK_ATTN_NORM], hparams->norm_eps);
    wick_tensor *const q = prepare_heads(
        model, layer, batch, project(layer, x, WK_ATTN_Q, n_heads_q, dim), WK_ATTN_Q_NORM);
    const wk_kv_rows fresh = {
        .k = prepare_heads(model, layer, batch, project(layer, x, WK_ATTN_K, n_heads_kv, dim),
                           WK_ATTN_K_NORM),
        .v = project(layer, x, WK_ATTN_V, n_heads_kv, dim_v),
    };
    if (wk_kv_append_cached(cache->k, cache->v, fresh, batch->descriptor, &params) != WICK_OK)
        return NULL;
    wick_tensor *const y = wk_attention_cached(q, cache->k, cache->v, batch->descriptor, &params);
    return wick_linear(wick_reshape(y, WICK_SHAPE(-1, n_heads_q * dim_v)),
                       layer->weight[WK_ATTN_OUTPUT], layer->weight[WK_ATTN_OUTPUT_BIAS]);
}
