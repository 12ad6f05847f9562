/* model/families/nemotron_h.c: Nemotron-H (NVIDIA, 2025): each block is one of Mamba 2, attention
 * without positions, and an MLP of squared ReLU, instead of which Nemotron 3 Nano has experts. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    wk_recurrent_spec recurrent = {.n_heads = 0};
    WK_TRY(wk_family_read_scan(meta, &recurrent));
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_find_attention(meta, hparams, layers, WK_MIXER_STATE_SPACE));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 0));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_layer_spec *const layer = &layers[i];
        const bool is_mlp = layer->mlp.n_ff > 0;
        layer->norms[WK_MIXER_INPUT] = is_mlp ? WK_NO_LAYER_WEIGHT : WK_ATTN_NORM;
        layer->norms[WK_CHANNELS_INPUT] = is_mlp ? WK_ATTN_NORM : WK_NO_LAYER_WEIGHT;
        if (is_mlp) layer->mixer = WK_MIXER_NONE;
        if (!is_mlp) layer->channels = WK_CHANNELS_NONE;
        layer->mlp.is_gated = false;
        layer->mlp.activation = WK_ACTIVATION_RELU_SQUARED;
        layer->recurrent = recurrent;
        layer->attention.rope = WK_NO_ROPE;
    }
    return wk_family_read_heads(meta, hparams, layers);
}

static wick_status describe_moe(const wk_metadata *meta, wk_hparams *hparams,
                                wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SIGMOID, .activation = WK_ACTIVATION_RELU_SQUARED, .is_ungated = true};
    WK_TRY(describe(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (layers[i].mixer != WK_MIXER_NONE) layers[i].channels = WK_CHANNELS_NONE;
    return WICK_OK;
}

const wk_family wk_family_nemotron_h = {
    .architecture = "nemotron_h", .norm = WK_NORM_RMS, .describe = describe};
const wk_family wk_family_nemotron_h_moe = {
    .architecture = "nemotron_h_moe", .norm = WK_NORM_RMS, .describe = describe_moe};
