/* model/families/gpt_oss.c: gpt-oss (OpenAI, 2025): attention sinks, windows on every other layer,
 * experts with biases and a clamped gate. */
#include "core/status.h"
#include "model/families.h"
#include "model/rope.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX_OF_CHOSEN,
                                     .activation = WK_ACTIVATION_SILU_CLAMPED};
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_family_read_windows(meta, hparams, layers,
                                  (wk_window_rule){.period = 2, .is_needed = true}));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_CHANNELS_INPUT] = WK_POST_ATTENTION_NORM;
        layers[i].attention.has_sinks = true;
    }
    const wk_rope_desc rope = {.head_dim = layers[0].attention.head_dim, .is_ramp_exact = true};
    WK_TRY(wk_rope_add(meta, hparams, &rope));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_gpt_oss = {.architecture = "gpt-oss",
                                     .norm = WK_NORM_RMS,
                                     .biases = WK_BIASES_MATRICES,
                                     .describe = describe};
