/* model/families/phi.c: Phi-2 (Microsoft, 2023), parallel and with biases everywhere, Phi-3 and 4
 * (Abdin et al., 2024), Llama's network with fused weights and, for long contexts, LongRoPE, and
 * Phi-3.5 with experts, whose norms have biases. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_phi2(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].is_parallel = true;
        layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
    }
    return WICK_OK;
}

static wick_status describe_phi3(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    return wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 0});
}

/* The norms are RMSNorm, as llama.cpp has them: the model was trained with LayerNorm. */
static wick_status describe_phimoe(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(describe_phi3(meta, hparams, layers));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_phi2 = {.architecture = "phi2",
                                  .norm = WK_NORM_LAYER,
                                  .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                  .describe = describe_phi2};
const wk_family wk_family_phi3 = {
    .architecture = "phi3", .norm = WK_NORM_RMS, .describe = describe_phi3};
const wk_family wk_family_phimoe = {.architecture = "phimoe",
                                    .norm = WK_NORM_RMS,
                                    .biases = WK_BIASES_QKV | WK_BIASES_NORMS,
                                    .describe = describe_phimoe};
