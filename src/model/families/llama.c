/* model/families/llama.c: Llama 1 to 3, Mistral, SmolLM2 and their like (Touvron et al., 2023);
 * Mixtral (Jiang et al., 2024). */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const uint32_t none = 0;
    uint32_t window;
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    WK_TRY(wk_metadata_u32(meta, "attention.sliding_window", (wk_u32_rule){0, INT32_MAX, &none},
                           &window));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].attention.is_rope_interleaved = true;
        layers[i].attention.window = (int32_t)window;
    }
    return WICK_OK;
}

const wk_family wk_family_llama = {
    .architecture = "llama", .norm = WK_NORM_RMS, .describe = describe};
