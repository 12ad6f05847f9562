/* model/families/gpt_oss.c: gpt-oss (OpenAI, 2025): attention sinks, windows on every other layer,
 * experts with biases and a clamped gate. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX_OF_CHOSEN,
                                     .activation = WK_ACTIVATION_SILU_CLAMPED};
    uint32_t window;
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_metadata_u32(meta, "attention.sliding_window", (wk_u32_rule){1, INT32_MAX, NULL},
                           &window));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_CHANNELS_INPUT] = WK_POST_ATTENTION_NORM;
        layers[i].attention.has_sinks = true;
        layers[i].attention.window = i % 2 == 0 ? (int32_t)window : 0;
    }
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_gpt_oss = {
    .architecture = "gpt-oss", .norm = WK_NORM_RMS, .describe = describe};
