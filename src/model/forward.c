/* model/forward.c: from token ids to logits: reads layer specs and knows no family. */
#include "model/model_struct.h"

#include <wick/ops.h>

#include <assert.h>

/* A section of the batch descriptor, u32. */
static wick_tensor *section(const wk_batch *batch, uint32_t first, uint32_t n) {
    assert(first <= batch->layout.n_words && n <= batch->layout.n_words - first);
    return wick_narrow(batch->descriptor, 0, first, n);
}

wick_tensor *wk_scaled(wick_tensor *x, float scale) {
    return scale == 1.0F ? x : wick_affine(x, (double)scale, 0.0);
}

/* Rows of a table as activations: f32 regardless of the table's type. */
static wick_tensor *look_up(wick_tensor *table, wick_tensor *ids) {
    wick_tensor *const rows = wick_embedding(table, ids);
    if (rows == NULL || wick_tensor_dtype(rows) == WICK_F32) return rows;
    return wick_cast(rows, WICK_F32);
}

wick_tensor *wk_norm(const wk_model *model, wick_tensor *x, wick_tensor *weight,
                     wick_tensor *bias) {
    const float eps = model->hparams.norm_eps;
    if (model->hparams.norm != WK_NORM_RMS) return wick_layer_norm(x, weight, bias, eps);
    wick_tensor *const y = wick_rms_norm(x, weight, eps);
    return bias != NULL ? wick_add(y, bias) : y;
}

wick_tensor *wk_project(const wk_pass *pass, const wk_layer *layer, wk_layer_weight weight,
                        wick_tensor *x) {
    wick_tensor *const y = wick_linear(x, layer->weight[weight], layer->bias[weight]);
    return wk_adapt_rows(pass, layer, weight, x, wk_adapt(layer, weight, x, y));
}

/* ---- Embedding ---- */

static wick_tensor *stage_norm(const wk_pass *pass, int id, wick_tensor *x) {
    if (id == WK_NO_MODEL_WEIGHT) return x;
    return wk_norm(pass->model, x, pass->weights->weight[id], pass->weights->bias[id]);
}

/* x, with those rows of the batch that are given. */
static wick_tensor *put_rows(const wk_batch *batch, wick_tensor *x) {
    wick_tensor *const given =
        wick_cast(section(batch, batch->given, batch->layout.n_rows), WICK_U8);
    return wick_where(wick_unsqueeze(given, 1), batch->rows, x);
}

static wick_tensor *embed(const wk_pass *pass, wick_tensor *ids) {
    const wk_hparams *const hparams = &pass->model->hparams;
    const wk_batch_layout *const layout = &pass->batch->layout;
    wick_tensor *const *const weight = pass->weights->weight;
    wick_tensor *x = wk_scaled(look_up(weight[WK_TOKEN_EMBEDDING], ids), hparams->embedding_scale);
    if (pass->batch->rows != NULL) x = put_rows(pass->batch, x);
    if (hparams->n_positions > 0) {
        wick_tensor *const positions = section(pass->batch, layout->positions, layout->n_rows);
        x = wick_add(x, look_up(weight[WK_POSITION_EMBEDDING], positions));
    }
    if (hparams->n_token_types > 0) x = wick_add(x, wick_narrow(weight[WK_TOKEN_TYPES], 0, 0, 1));
    return stage_norm(pass, hparams->embedding_norm, x);
}

/* ---- Layers ---- */

wick_tensor *wk_norm_at(const wk_pass *pass, const wk_layer *layer, wk_norm_site site,
                        wick_tensor *x) {
    const wk_layer_weight id = layer->spec.norms[site];
    if (id == WK_NO_LAYER_WEIGHT) return x;
    return wk_norm(pass->model, x, layer->weight[id], layer->bias[id]);
}

/* The branch of the sequence mixer; x: normed. */
static wick_tensor *mix(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    wick_tensor *y = NULL;
    switch (layer->spec.mixer) {
    case WK_MIXER_ATTENTION: y = wk_mixer_attention(pass, index, x); break;
    case WK_MIXER_LATENT: y = wk_mixer_latent(pass, index, x); break;
    case WK_MIXER_CONVOLUTION: y = wk_mixer_convolution(pass, index, x); break;
    case WK_MIXER_STATE_SPACE: y = wk_mixer_state_space(pass, index, x); break;
    case WK_MIXER_DELTA_NET: y = wk_mixer_delta_net(pass, index, x); break;
    case WK_MIXER_NONE: assert(false); break;
    }
    if (layer->spec.has_state_space) y = wick_add(y, wk_mixer_state_space(pass, index, x));
    y = wk_norm_at(pass, layer, WK_MIXER_OUTPUT, y);
    return wk_scaled(y, layer->spec.residual_scale);
}

/* Likewise that of the channel mixer; begin: what the layer began with. */
static wick_tensor *mix_channels(const wk_pass *pass, const wk_layer *layer, wick_tensor *x,
                                 wick_tensor *begin) {
    wick_tensor *y = NULL;
    switch (layer->spec.channels) {
    case WK_CHANNELS_MLP: y = wk_mlp(pass, layer, x); break;
    case WK_CHANNELS_EXPERTS: y = wk_experts(pass, layer, x, begin); break;
    case WK_CHANNELS_NONE: assert(false); break;
    }
    y = wk_norm_at(pass, layer, WK_CHANNELS_OUTPUT, y);
    return wk_scaled(y, layer->spec.residual_scale);
}

static wick_tensor *run_parallel(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const bool is_shared = layer->spec.norms[WK_CHANNELS_INPUT] == WK_NO_LAYER_WEIGHT;
    wick_tensor *const mixed = wk_norm_at(pass, layer, WK_MIXER_INPUT, x);
    wick_tensor *const channels = is_shared ? mixed : wk_norm_at(pass, layer, WK_CHANNELS_INPUT, x);
    wick_tensor *const y = wick_add(x, mix(pass, index, mixed));
    return wick_add(y, mix_channels(pass, layer, channels, x));
}

static wick_tensor *run_series(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    wick_tensor *const begin = x;
    if (layer->spec.mixer != WK_MIXER_NONE) {
        x = wick_add(x, mix(pass, index, wk_norm_at(pass, layer, WK_MIXER_INPUT, x)));
        x = wk_norm_at(pass, layer, WK_MIXER_RESIDUAL, x);
    }
    if (layer->spec.channels != WK_CHANNELS_NONE) {
        wick_tensor *const normed = wk_norm_at(pass, layer, WK_CHANNELS_INPUT, x);
        x = wick_add(x, mix_channels(pass, layer, normed, begin));
        x = wk_norm_at(pass, layer, WK_CHANNELS_RESIDUAL, x);
    }
    return x;
}

static wick_tensor *run_layer(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    x = layer->spec.is_parallel ? run_parallel(pass, index, x) : run_series(pass, index, x);
    if (layer->spec.has_own_input) x = wk_layer_inputs_add(pass, index, x);
    return layer->spec.has_output_scale ? wick_mul(x, layer->weight[WK_LAYER_OUTPUT_SCALE]) : x;
}

static uint32_t stage_of(const wk_model *model, uint32_t layer) {
    assert(layer < wk_model_layers(model)); /* else no stage has it */
    uint32_t stage = 0;
    while (layer >= wk_stage_end(model, stage)) stage++;
    return stage;
}

static wick_tensor *run_layers(wk_pass *pass, uint32_t first, uint32_t count, wick_tensor *hidden) {
    const wk_batch *const batch = pass->batch;
    const bool has_inputs = pass->model->hparams.n_embd_layer > 0;
    wick_tensor *x = hidden;
    if (hidden == NULL || has_inputs) {
        wick_tensor *const ids = section(batch, batch->layout.ids, batch->layout.n_rows);
        wick_tensor *const embedded = embed(pass, ids);
        if (has_inputs) pass->layer_inputs = wk_layer_inputs_make(pass, ids, embedded);
        if (hidden == NULL) x = embedded;
    }
    for (uint32_t i = first; i < first + count && x != NULL; i++) x = run_layer(pass, i, x);
    return x;
}

wick_tensor *wk_model_forward(const wk_model *model, const wk_state *state, const wk_batch *batch,
                              uint32_t first, uint32_t count, wick_tensor *hidden) {
    wk_pass pass = {.model = model,
                    .state = state,
                    .batch = batch,
                    .weights = &model->stage_weights[stage_of(model, first)]};
    if (batch->n_adapters > 0) {
        const uint32_t n_rows = batch->layout.n_rows, n = batch->n_adapters;
        pass.adapters =
            wick_reshape(section(batch, batch->adapters, n_rows * n), WICK_SHAPE(n_rows, n));
    }
    if (state != NULL) {
        assert(first >= state->first && count <= state->n_layers);
        assert(first - state->first <= state->n_layers - count);
        return run_layers(&pass, first, count, hidden);
    }
    assert(batch->layout.n_rows % batch->layout.n_sequences == 0);
    const size_t size = sizeof *pass.whole + count * sizeof *pass.whole->kv;
    pass.whole = wk_alloc_zeroed(model->heap, size);
    if (pass.whole == NULL) {
        wick_device *const device = wick_tensor_device(batch->descriptor);
        (void)wk_fail_memory(wk_device_err(device), size, "a forward pass");
        return NULL;
    }
    pass.whole->first = first;
    wick_tensor *const y = run_layers(&pass, first, count, hidden);
    wk_free(model->heap, pass.whole, size);
    return y;
}

/* ---- Memory ---- */

static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Attention has hidden, normed and query rows, the query before and after its rotation, or keys and
 * values beside the rotated one, which stay beside the result where there is no cache; fused, it
 * has the rows of all three besides. */
static uint64_t attention_channels(const wk_attention_spec *spec, uint64_t n_embd) {
    const uint64_t n_q = (uint64_t)spec->n_heads_q * spec->head_dim;
    const uint64_t n_kv = (uint64_t)spec->n_heads_kv * (spec->head_dim + spec->head_dim_v);
    const uint64_t n_gates = spec->has_output_gate || spec->has_gate_weight ? n_q : 0;
    const uint64_t others = spec->is_bidirectional ? n_q + n_kv : most_of(n_q, n_kv);
    return 2 * n_embd + n_q + others + 2 * n_gates + (spec->is_fused ? n_q + n_kv : 0);
}

/* Hidden and normed rows, what is projected of them, the rows of the convolution before and after
 * its activation, and with a scan its inputs, result and gate. */
static uint64_t recurrent_channels(const wk_recurrent_spec *spec, uint64_t n_embd) {
    const uint64_t inner = (uint64_t)spec->n_heads * spec->head_dim;
    return 2 * n_embd + 4 * (uint64_t)spec->n_channels + 4 * inner;
}

/* The MLP has hidden rows, gate, up and their product, which the kernel that multiplies it may hold
 * a second time in its scratch memory. */
static uint64_t mlp_channels(const wk_mlp_spec *spec, uint64_t n_embd) {
    return n_embd + 4 * (uint64_t)spec->n_ff;
}

/* Latent attention has hidden and normed rows, the query as it is made, in two parts and in the
 * latent space, and keys and values in their parts. */
static uint64_t latent_channels(const wk_layer_spec *spec, uint64_t n_embd) {
    const uint64_t n_heads = spec->attention.n_heads_q, dim = spec->attention.head_dim;
    const uint64_t n_q = (uint64_t)spec->latent.n_plain + spec->latent.n_rotated;
    return 2 * n_embd + spec->latent.q_rank + n_heads * (2 * n_q + 3 * dim) + 4 * dim;
}

/* Experts have hidden and normed rows, those of the router (the layer's first ones wait for it
 * where it reads them), and for each that is used gate, up and product or product and output, and a
 * row in scratch memory. */
static uint64_t experts_channels(const wk_experts_spec *spec, uint64_t n_embd) {
    const uint64_t n_ff = spec->n_ff, chosen = 4 * n_ff + 2 * n_embd;
    const uint64_t n_begin = spec->is_routed_early ? n_embd : 0;
    return n_begin + 3 * n_embd + 4 * (uint64_t)spec->n_experts + spec->n_used * chosen +
           3 * (uint64_t)spec->n_ff_shared;
}

uint64_t wk_model_activation_bytes(const wk_model *model, uint32_t n_rows) {
    const wk_hparams *const hparams = &model->hparams;
    const uint64_t n_embd = hparams->n_embd;
    const uint64_t n_inputs = (uint64_t)hparams->n_embd_layer * hparams->n_layers;
    uint64_t most = 2 * n_inputs; /* beside these, while they are made, there is little else */
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        const wk_layer_spec *const spec = &model->layers[i].spec;
        /* A parallel layer keeps what both mixers take; of two that are added, one result waits. */
        const uint64_t more =
            n_inputs + (spec->is_parallel ? 2 * n_embd : 0) + (spec->has_state_space ? n_embd : 0);
        const bool has_mask = spec->attention.is_bidirectional && spec->attention.window > 0;
        const uint64_t mask = has_mask ? n_rows / sizeof(float) + 1 : 0; /* a byte for each row */
        if (spec->mixer == WK_MIXER_ATTENTION)
            most = most_of(most, more + mask + attention_channels(&spec->attention, n_embd));
        else if (spec->mixer == WK_MIXER_LATENT)
            most = most_of(most, more + latent_channels(spec, n_embd));
        if (wk_layer_is_recurrent(spec))
            most = most_of(most, more + recurrent_channels(&spec->recurrent, n_embd));
        if (spec->channels == WK_CHANNELS_EXPERTS)
            most = most_of(most, more + experts_channels(&spec->experts, n_embd));
        if (spec->channels == WK_CHANNELS_MLP)
            most = most_of(most, more + mlp_channels(&spec->mlp, n_embd));
    }
    return most * n_rows * sizeof(float);
}

/* ---- Output ---- */

/* What comes after the layers keeps nothing. */
static wk_pass last_pass(const wk_model *model, const wk_batch *batch) {
    return (wk_pass){.model = model,
                     .batch = batch,
                     .weights = &model->stage_weights[model->placement.n_stages - 1]};
}

wick_tensor *wk_model_outputs(const wk_model *model, const wk_batch *batch, wick_tensor *hidden) {
    const wk_pass pass = last_pass(model, batch);
    wick_tensor *const outputs = section(batch, batch->layout.outputs, batch->layout.n_outputs);
    return stage_norm(&pass, model->hparams.output_norm, wick_embedding(hidden, outputs));
}

wick_tensor *wk_model_scores(const wk_model *model, const wk_batch *batch, wick_tensor *hidden) {
    const wk_stage_weights *const w = last_pass(model, batch).weights;
    wick_tensor *x = wk_model_outputs(model, batch, hidden);
    if (w->weight[WK_CLASSIFIER] != NULL)
        x = wick_tanh(wick_linear(x, w->weight[WK_CLASSIFIER], w->bias[WK_CLASSIFIER]));
    return wick_linear(x, w->weight[WK_CLASSIFIER_OUTPUT], w->bias[WK_CLASSIFIER_OUTPUT]);
}

/* Without a matrix of its own the output's is the table of embeddings. */
static wick_tensor *project_out(const wk_pass *pass, wick_tensor *x) {
    wick_tensor *const *const weight = pass->weights->weight;
    const int id = weight[WK_OUTPUT] != NULL ? WK_OUTPUT : WK_TOKEN_EMBEDDING;
    return wick_linear(x, weight[id], pass->weights->bias[WK_OUTPUT]);
}

wick_tensor *wk_model_logits(const wk_model *model, const wk_batch *batch, wick_tensor *hidden) {
    const wk_pass pass = last_pass(model, batch);
    const float cap = model->hparams.logit_softcap;
    wick_tensor *const x = wk_model_outputs(model, batch, hidden);
    wick_tensor *const y = wk_scaled(project_out(&pass, x), model->hparams.logit_scale);
    return cap > 0.0F ? wk_scaled(wick_tanh(wk_scaled(y, 1.0F / cap)), cap) : y;
}

wick_tensor *wk_model_states(const wk_model *model, const wk_batch *batch, wick_tensor *hidden) {
    const wk_pass pass = last_pass(model, batch);
    return stage_norm(&pass, model->hparams.output_norm, hidden);
}

/* ---- The prediction head ---- */

/* Where a head has no weight of its own, it has the model's. */
static wick_tensor *head_input(const wk_pass *pass, const wk_layer *layer) {
    const wk_model *const model = pass->model;
    const wk_batch *const batch = pass->batch;
    wick_tensor *const own = layer->weight[WK_NEXTN_EMBEDDING];
    wick_tensor *const table = own != NULL ? own : pass->weights->weight[WK_TOKEN_EMBEDDING];
    wick_tensor *const ids = section(batch, batch->layout.ids, batch->layout.n_rows);
    wick_tensor *const embedded = wk_scaled(look_up(table, ids), model->hparams.embedding_scale);
    wick_tensor *const halves[] = {
        wk_norm(model, embedded, layer->weight[WK_NEXTN_EMBEDDING_NORM], NULL),
        wk_norm(model, batch->rows, layer->weight[WK_NEXTN_STATE_NORM], NULL)};
    return wk_project(pass, layer, WK_NEXTN_PROJECTION, wick_cat(halves, WK_COUNT(halves), 1));
}

wick_tensor *wk_model_guess(const wk_model *model, const wk_state *state, const wk_batch *batch) {
    const uint32_t index = model->hparams.n_layers;
    const wk_layer *const layer = &model->layers[index];
    wk_pass pass = last_pass(model, batch);
    pass.state = state;
    wick_tensor *x = run_layer(&pass, index, head_input(&pass, layer));
    if (x == NULL || batch->layout.n_outputs == 0) return x;
    x = wick_embedding(x, section(batch, batch->layout.outputs, batch->layout.n_outputs));
    /* Of Ling 2 the last norm has the other name. */
    wick_tensor *norm = layer->weight[WK_NEXTN_OUTPUT_NORM];
    if (norm == NULL) norm = layer->weight[WK_NEXTN_LAYER_NORM];
    x = norm != NULL ? wk_norm(model, x, norm, NULL)
                     : stage_norm(&pass, model->hparams.output_norm, x);
    wick_tensor *const own = layer->weight[WK_NEXTN_OUTPUT];
    wick_tensor *const logits = own != NULL ? wick_linear(x, own, NULL) : project_out(&pass, x);
    wick_tensor *const parts[] = {wick_cast(wick_argmax(logits, 1, true), WICK_F32), x};
    return wick_cat(parts, WK_COUNT(parts), 1);
}
