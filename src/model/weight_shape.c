/* model/weight_shape.c: the shape of each weight, from what a model and its layers are. */
#include "model/weight_kind.h"

static int64_t attention_extent(const wk_attention_spec *attention, wk_weight_extent which) {
    const int64_t dim = attention->head_dim, dim_v = attention->head_dim_v;
    const int64_t n_q = attention->n_heads_q, n_kv = attention->n_heads_kv;
    const bool is_own = attention->qk_norm == WK_QK_NORM_OWN;
    const bool has_all = attention->qk_norm == WK_QK_NORM_CHANNELS;
    switch (which) {
    case Q: return n_q * dim * (attention->has_output_gate ? 2 : 1);
    case K: return n_kv * dim;
    case V: return n_kv * dim_v;
    case QKV: return n_q * dim + n_kv * (dim + dim_v);
    case HEADS: return n_q * dim_v;
    case Q_NORMS: return is_own ? n_q : 0;
    case K_NORMS: return is_own ? n_kv : 0;
    case Q_NORM: return has_all ? n_q * dim : dim;
    case K_NORM: return has_all ? n_kv * dim : dim;
    case HEADS_Q: return n_q;
    default: return 0;
    }
}

static int64_t latent_extent(const wk_layer_spec *spec, wk_weight_extent which) {
    const wk_latent_spec *const latent = &spec->latent;
    const int64_t n_heads = spec->attention.n_heads_q;
    switch (which) {
    case Q_RANK: return latent->q_rank;
    case LATENT_RANK: return latent->n_latent;
    case LATENT_KV: return (int64_t)latent->n_latent + latent->n_rotated;
    case LATENT_KVS: return n_heads * ((int64_t)latent->n_plain + latent->n_values);
    case LATENT_QS: return n_heads * ((int64_t)latent->n_plain + latent->n_rotated);
    case LATENT_PLAIN: return latent->n_plain;
    case LATENT_VALUE: return latent->n_values;
    case LATENT_VALUES: return n_heads * latent->n_values;
    default: return attention_extent(&spec->attention, which);
    }
}

/* Extents of the convolution and of the scan after it. Where each channel has a step, all are one
 * head. */
static int64_t recurrent_extent(const wk_layer_spec *spec, wk_weight_extent which) {
    const wk_recurrent_spec *const recurrent = &spec->recurrent;
    const int64_t n_heads = recurrent->n_heads, inner = n_heads * recurrent->head_dim;
    const int64_t n_channels = recurrent->n_channels, rank = recurrent->step_rank;
    const bool is_delta = spec->mixer == WK_MIXER_DELTA_NET;
    switch (which) {
    case CONV_INPUTS: return 3 * n_channels;
    case CONV_CHANNELS: return n_channels;
    case CONV_TAPS: return recurrent->n_taps;
    case SCAN_HEADS: return n_heads;
    case INNER: return inner;
    case STEP_RANK: return rank;
    case SSM_INPUTS: return inner + n_channels + (rank > 0 ? 0 : n_heads);
    case SSM_STEP_B_C: return rank + 2 * (int64_t)recurrent->n_numbers;
    case SSM_RATES: return rank > 0 ? inner : n_heads;
    case SSM_RATE: return rank > 0 ? recurrent->n_numbers : is_delta ? 0 : 1;
    case SSM_D: return rank > 0 ? 0 : 1;
    case SSM_NORMS: return is_delta ? 0 : recurrent->n_groups;
    case SSM_NORM: return is_delta ? recurrent->head_dim : inner / recurrent->n_groups;
    case SSM_GATES: return 2 * n_heads;
    default: return 0;
    }
}

static int64_t extent_of(const wk_model *model, const wk_weight_place *at, wk_weight_extent which) {
    const wk_hparams *const hparams = &model->hparams;
    const wk_layer_spec *const spec = at->is_in_layer ? &model->layers[at->layer].spec : NULL;
    switch (which) {
    case VOCAB: return hparams->n_vocab;
    case EMBD: return hparams->n_embd;
    case EMBD_TWICE: return 2 * (int64_t)hparams->n_embd;
    case LABELS: return hparams->n_labels;
    case POSITION: return hparams->n_positions;
    case TYPE: return hparams->n_token_types;
    case ONE: return 1;
    case LAYER_INPUT: return hparams->n_embd_layer;
    case LAYERS_INPUTS: return (int64_t)hparams->n_embd_layer * hparams->n_layers;
    case FF: return spec->mlp.n_ff;
    case FF_UP: return (int64_t)spec->mlp.n_ff * (spec->mlp.is_fused ? 2 : 1);
    case EXPERT: return spec->experts.n_experts;
    case EXPERT_FF: return spec->experts.n_ff;
    case EXPERT_GATE_UP: return 2 * (int64_t)spec->experts.n_ff;
    case SHARED_FF: return spec->experts.n_ff_shared;
    case SHARED_UP:
        return (int64_t)spec->experts.n_ff_shared * (spec->experts.is_shared_fused ? 2 : 1);
    default:
        return which >= CONV_INPUTS && which <= SSM_GATES ? recurrent_extent(spec, which)
                                                          : latent_extent(spec, which);
    }
}

/* A matrix's bias has one number for each of its rows. */
wick_shape wk_weight_shape(const wk_model *model, const wk_weight_place *at) {
    const wk_weight_kind *const kind = wk_weight_kind_at(at);
    wick_shape shape = {.rank = 0};
    for (int i = 0; i < MAX_EXTENTS && kind->extents[i] != END; i++) {
        const int64_t n = extent_of(model, at, kind->extents[i]);
        if (n != 0) shape.extent[shape.rank++] = n;
    }
    if (at->is_bias && kind->uses == WK_USE_LINEAR) shape.extent[--shape.rank] = 0;
    return shape;
}
