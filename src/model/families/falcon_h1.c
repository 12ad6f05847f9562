/* model/families/falcon_h1.c: Falcon-H1 (Technology Innovation Institute, 2025): attention and
 * Mamba 2 beside each other in every layer, then an MLP. Its multipliers are part of the weights.
 */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    wk_recurrent_spec recurrent = {.n_heads = 0};
    WK_TRY(wk_family_read_scan(meta, &recurrent));
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].has_state_space = true;
        layers[i].recurrent = recurrent;
        layers[i].norms[WK_CHANNELS_INPUT] = WK_FFN_NORM_BARE;
    }
    return WICK_OK;
}

const wk_family wk_family_falcon_h1 = {
    .architecture = "falcon-h1", .norm = WK_NORM_RMS, .describe = describe};
