/* model/families/phi.c: Phi-2 (Microsoft, 2023), parallel and with biases everywhere, and Phi-3 and
 * 4 (Abdin et al., 2024), Llama's network with fused weights and, for long contexts, LongRoPE. */
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

const wk_family wk_family_phi2 = {.architecture = "phi2",
                                  .norm = WK_NORM_LAYER,
                                  .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                  .describe = describe_phi2};
const wk_family wk_family_phi3 = {
    .architecture = "phi3", .norm = WK_NORM_RMS, .describe = describe_phi3};
