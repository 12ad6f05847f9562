/* model/families/cohere.c: Command R (Cohere, 2024), parallel branches on one LayerNorm, and
 * Command R7B and A (2025), whose layers without a window know no positions; those with experts
 * (2026) may have RMSNorm, and know positions in the first layers, too, which have none. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_command_r(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    static const double one = 1.0;
    double scale;
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_metadata_f64(meta, "logit_scale", &one, &scale));
    if (scale != 0.0) hparams->logit_scale = (float)scale; /* 0 is none */
    wk_family_interleave_ropes(hparams, layers);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].is_parallel = true;
        layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
        if (wk_metadata_layer_has(meta, i, "attn_q_norm.weight")) /* Command R+ */
            layers[i].attention.qk_norm = WK_QK_NORM_OWN;
    }
    return WICK_OK;
}

static wick_status describe_cohere2(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(describe_command_r(meta, hparams, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 4}));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (layers[i].attention.window == 0) layers[i].attention.rope = WK_NO_ROPE;
    return WICK_OK;
}

static wick_status describe_cohere2moe(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID, .is_mean = true};
    if (wk_metadata_has(meta, "attention.layer_norm_rms_epsilon")) {
        hparams->norm = WK_NORM_RMS;
        WK_TRY(wk_hparams_read(meta, hparams));
    }
    WK_TRY(describe_command_r(meta, hparams, layers));
    const wk_window_rule windows = {.period = 4, .is_first_global = true, .is_needed = true};
    WK_TRY(wk_family_read_windows(meta, hparams, layers, windows));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (layers[i].attention.window == 0 && layers[i].channels == WK_CHANNELS_EXPERTS)
            layers[i].attention.rope = WK_NO_ROPE;
    return WICK_OK;
}

const wk_family wk_family_command_r = {
    .architecture = "command-r", .norm = WK_NORM_LAYER, .describe = describe_command_r};
const wk_family wk_family_cohere2 = {
    .architecture = "cohere2", .norm = WK_NORM_LAYER, .describe = describe_cohere2};
const wk_family wk_family_cohere2moe = {
    .architecture = "cohere2moe", .norm = WK_NORM_LAYER, .describe = describe_cohere2moe};
