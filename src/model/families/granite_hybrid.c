/* model/families/granite_hybrid.c: Granite 4 (IBM, 2025): Mamba 2 in most layers, attention in the
 * others, mostly without positions; experts with a shared one, or an MLP. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    wk_recurrent_spec recurrent = {.n_heads = 0};
    WK_TRY(wk_family_read_scan(meta, &recurrent));
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_find_attention(meta, hparams, layers, WK_MIXER_STATE_SPACE));
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].recurrent = recurrent;
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_family_add_rope(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    return wk_family_read_multipliers(meta, hparams, layers);
}

const wk_family wk_family_granite_hybrid = {
    .architecture = "granitehybrid", .norm = WK_NORM_RMS, .describe = describe};
