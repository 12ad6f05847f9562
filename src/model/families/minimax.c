/* model/families/minimax.c: MiniMax-M2 (MiniMax, 2025): all heads of q and of k are normed at once,
 * experts are chosen by sigmoids with a bias. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID, .is_normalized = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.qk_norm = WK_QK_NORM_CHANNELS;
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_minimax_m2 = {
    .architecture = "minimax-m2", .norm = WK_NORM_RMS, .describe = describe};
