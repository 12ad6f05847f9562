/* model/families/stablelm.c: Stable LM 2 (Bellagente et al., 2024). The larger ones are parallel
 * and have a LayerNorm for each head of q and k. PLaMo (Preferred Networks, 2023) is parallel. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        if (wk_metadata_layer_has(meta, i, "attn_q_norm.weight"))
            layers[i].attention.qk_norm = WK_QK_NORM_OWN;
        if (wk_metadata_layer_has(meta, i, "ffn_norm.weight")) continue;
        layers[i].is_parallel = true;
        layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
    }
    return WICK_OK;
}

const wk_family wk_family_stablelm = {.architecture = "stablelm",
                                      .norm = WK_NORM_LAYER,
                                      .biases = WK_BIASES_NORMS,
                                      .describe = describe};
const wk_family wk_family_plamo = {
    .architecture = "plamo", .norm = WK_NORM_RMS, .describe = describe};
