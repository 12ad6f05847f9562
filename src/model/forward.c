/* model/forward.c: from token ids to logits: reads layer specs and knows no family. */
#include "model/model_struct.h"

#include <wick/ops.h>

#include <assert.h>

/* A section of the batch descriptor, u32. */
static wick_tensor *section(const wk_batch *batch, uint32_t first, uint32_t n) {
    return wick_narrow(batch->descriptor, 0, first, n);
}

/* Activations are f32 whatever the type of the table. */
static wick_tensor *embed(const wk_model *model, const wk_batch *batch) {
    wick_tensor *const ids = section(batch, batch->layout.ids, batch->layout.n_rows);
    wick_tensor *const rows = wick_embedding(model->weight[WK_TOKEN_EMBEDDING], ids);
    if (rows == NULL || wick_tensor_dtype(rows) == WICK_F32) return rows;
    return wick_cast(rows, WICK_F32);
}

wick_tensor *wk_model_forward(const wk_model *model, wk_state *state, const wk_batch *batch,
                              uint32_t first, uint32_t count, wick_tensor *hidden) {
    assert(first >= state->first && count <= state->n_layers);
    assert(first - state->first <= state->n_layers - count);
    wick_tensor *x = hidden != NULL ? hidden : embed(model, batch);
    for (uint32_t i = first; i < first + count && x != NULL; i++) {
        const wk_layer *const layer = &model->layers[i];
        const wk_layer_cache *const cache = &state->layers[i - state->first];
        x = wick_add(x, wk_mixer_attention(model, layer, cache, batch, x));
        x = wick_add(x, wk_mlp(model, layer, x));
    }
    return x;
}

/* Attention has hidden, normed and query rows, the query before and after its rotation, or keys and
 * values beside the rotated one; the MLP has hidden rows, gate, up and their product, which the
 * kernel that multiplies it may hold a second time in its scratch memory. */
uint64_t wk_model_activation_bytes(const wk_model *model, uint32_t n_rows) {
    const wk_hparams *const hparams = &model->hparams;
    const uint64_t n_embd = hparams->n_embd;
    const uint64_t n_q = (uint64_t)hparams->n_heads_q * hparams->head_dim;
    const uint64_t n_kv = (uint64_t)hparams->n_heads_kv * (hparams->head_dim + hparams->head_dim_v);
    uint64_t most = 2 * n_embd + n_q + (n_q > n_kv ? n_q : n_kv);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        const uint64_t mlp = n_embd + 4 * (uint64_t)model->layers[i].spec.mlp.n_ff;
        if (mlp > most) most = mlp;
    }
    return most * n_rows * sizeof(float);
}

wick_tensor *wk_model_logits(const wk_model *model, const wk_batch *batch, wick_tensor *hidden) {
    wick_tensor *const outputs = section(batch, batch->layout.outputs, batch->layout.n_outputs);
    wick_tensor *const rows = wick_embedding(hidden, outputs);
    wick_tensor *const x =
        wick_rms_norm(rows, model->weight[WK_OUTPUT_NORM], model->hparams.norm_eps);
    return wick_linear(x, model->weight[WK_OUTPUT], NULL);
}
