/* model/families/llama4.c: Llama 4 (Meta, 2025): one expert for each token, whose weight multiplies
 * what goes in, beside a shared one; every 4th layer has no rotary embedding.
 *
 * From token 8192 on attention goes by chunks and its temperature changes: contexts end there. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    enum { PLAIN_LAYER = 4 };
    const uint32_t usual = 8192;
    const wk_experts_desc experts = {
        .gating = WK_GATING_SIGMOID, .n_shared = 1, .is_input_weighted = true};
    uint32_t chunk;
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(
        wk_metadata_u32(meta, "attention.chunk_size", (wk_u32_rule){1, INT32_MAX, &usual}, &chunk));
    if (hparams->context_length > chunk) hparams->context_length = chunk;
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        if ((i + 1) % PLAIN_LAYER == 0) {
            attention->rope = WK_NO_ROPE;
            continue;
        }
        attention->is_rope_interleaved = true;
        attention->qk_norm = WK_QK_NORM_PLAIN;
        attention->is_normed_after_rope = true;
    }
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_llama4 = {
    .architecture = "llama4", .norm = WK_NORM_RMS, .describe = describe};
