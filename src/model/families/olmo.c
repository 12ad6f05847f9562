/* model/families/olmo.c: OLMo (Groeneveld et al., 2024), whose norms have no weights, OLMo 2 and 3
 * (Ai2, 2024 and 2025): norms only after the branches, and one norm over all channels of q and of
 * k; layers with a window do not scale their positions. EXAONE 4 and K-EXAONE (LG AI Research,
 * 2025), which norm heads of q and k; the latter has experts, and norms before the branches. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers,
                            wk_qk_norm qk_norm, uint32_t window) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_INPUT] = layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
        layers[i].norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
        layers[i].norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
        layers[i].attention.qk_norm = qk_norm;
    }
    return wk_family_read_windows(meta, hparams, layers,
                                  (wk_window_rule){.period = 4, .window = window});
}

static wick_status describe_olmo2(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe(meta, hparams, layers, WK_QK_NORM_CHANNELS, 0));
    return wk_family_add_window_rope(meta, hparams, layers, 0.0);
}

static wick_status describe_exaone4(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    const uint32_t window = hparams->n_layers == 64 ? 4096 : 0; /* of the large one */
    WK_TRY(describe(meta, hparams, layers, WK_QK_NORM_HEAD, window));
    wk_family_drop_far_ropes(hparams, layers);
    return WICK_OK;
}

static wick_status describe_exaone_moe(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID, .n_shared = 1};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    WK_TRY(wk_family_read_windows(meta, hparams, layers,
                                  (wk_window_rule){.period = 4, .window = 128}));
    wk_family_drop_far_ropes(hparams, layers);
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

static wick_status describe_olmo(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_clamp(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return WICK_OK;
}

const wk_family wk_family_olmo2 = {
    .architecture = "olmo2", .norm = WK_NORM_RMS, .describe = describe_olmo2};
const wk_family wk_family_exaone4 = {
    .architecture = "exaone4", .norm = WK_NORM_RMS, .describe = describe_exaone4};
const wk_family wk_family_exaone_moe = {
    .architecture = "exaone-moe", .norm = WK_NORM_RMS, .describe = describe_exaone_moe};
const wk_family wk_family_olmo = {
    .architecture = "olmo", .norm = WK_NORM_LAYER_PLAIN, .describe = describe_olmo};
