/* model/families/llama4.c: Llama 4 (Meta, 2025): one expert for each token, whose weight multiplies
 * what goes in, beside a shared one; every 4th layer has no rotary embedding.
 *
 * From token 8192 on attention goes by chunks and its temperature changes: contexts end there. */
#include "core/status.h"
#include "model/families.h"

enum { LAYERS_TO_PLAIN = 4, USUAL_CHUNK = 8192, EXPERTS_OF_LARGEST = 128 };

/* Every layer knows positions, and sees all tokens, where the file says that the window is 0. */
static wick_status read_chunks(const wk_metadata *meta, wk_hparams *hparams, bool *has_chunks) {
    const uint32_t usual = USUAL_CHUNK;
    uint32_t window, chunk;
    WK_TRY(wk_metadata_u32(meta, "attention.sliding_window", (wk_u32_rule){0, INT32_MAX, &usual},
                           &window));
    WK_TRY(
        wk_metadata_u32(meta, "attention.chunk_size", (wk_u32_rule){1, INT32_MAX, &usual}, &chunk));
    *has_chunks = window > 0;
    if (*has_chunks) wk_family_end_context(hparams, chunk);
    return WICK_OK;
}

/* Heads are normed after the rotation, except in the largest model, which only its expert count
 * identifies. */
static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SIGMOID, .n_shared = 1, .is_input_weighted = true};
    bool has_chunks;
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(read_chunks(meta, hparams, &has_chunks));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    const bool is_largest = layers[hparams->n_layers - 1].experts.n_experts == EXPERTS_OF_LARGEST;
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        if (has_chunks && (i + 1) % LAYERS_TO_PLAIN == 0) {
            attention->rope = WK_NO_ROPE;
            continue;
        }
        attention->is_rope_interleaved = true;
        attention->qk_norm = is_largest ? WK_QK_NORM_NONE : WK_QK_NORM_PLAIN;
        attention->is_normed_after_rope = true;
    }
    return WICK_OK;
}

const wk_family wk_family_llama4 = {
    .architecture = "llama4", .norm = WK_NORM_RMS, .describe = describe};
