/* model/families/llama.c: Llama 1 to 3, Mistral, SmolLM2 and their like (Touvron et al., 2023). */
#include "core/status.h"
#include "model/families.h"
#include "model/rope.h"

#include <math.h>

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const uint32_t none = 0;
    uint32_t n_experts, n_ff, window;
    WK_TRY(wk_metadata_u32(meta, "expert_count", (wk_u32_rule){0, UINT32_MAX, &none}, &n_experts));
    if (n_experts > 0)
        return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                       "the model is a mixture of experts (%s is %u), which is not supported yet",
                       wk_metadata_key(meta, "expert_count").text, (unsigned)n_experts);
    WK_TRY(wk_metadata_u32_per_layer(meta, "feed_forward_length",
                                     (wk_u32_rule){1, WK_MAX_CHANNELS, NULL}, hparams->n_layers,
                                     &n_ff));
    WK_TRY(wk_metadata_u32(meta, "attention.sliding_window", (wk_u32_rule){0, INT32_MAX, &none},
                           &window));
    WK_TRY(wk_rope_add(meta, hparams));

    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].attention.is_rope_interleaved = true;
        layers[i].attention.scale = (float)(1.0 / sqrt((double)hparams->head_dim));
        layers[i].attention.window = (int32_t)window;
        layers[i].mlp.n_ff = n_ff;
    }
    return WICK_OK;
}

const wk_family wk_family_llama = {.architecture = "llama", .describe = describe};
