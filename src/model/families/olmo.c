/* model/families/olmo.c: OLMo 2 and 3 (Ai2, 2024 and 2025): norms behind the branches only, and of
 * all channels of q and k at once; layers with a window do not scale their positions. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_INPUT] = layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
        layers[i].norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
        layers[i].norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
        layers[i].attention.qk_norm = WK_QK_NORM_CHANNELS;
    }
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 4}));
    return wk_family_add_window_rope(meta, hparams, layers, 500000.0);
}

const wk_family wk_family_olmo2 = {
    .architecture = "olmo2", .norm = WK_NORM_RMS, .describe = describe};
