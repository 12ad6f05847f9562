/* model/families/qwen_moe.c: mixtures of experts with the attention of Qwen2 (Qwen Team, 2024),
 * beside a gated shared expert, and of Qwen3 (Qwen Team, 2025). */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_qwen2moe(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SOFTMAX, .is_shared_gated = true, .is_length_shared = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

static wick_status describe_qwen3moe(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SOFTMAX, .is_normalized = true, .is_length_shared = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

/* Mellum 2 (JetBrains, 2026): windows, whose layers do not scale their positions. */
static wick_status describe_mellum(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(describe_qwen3moe(meta, hparams, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 4}));
    return wk_family_add_window_rope(meta, hparams, layers, 0.0);
}

const wk_family wk_family_mellum = {
    .architecture = "mellum", .norm = WK_NORM_RMS, .describe = describe_mellum};
const wk_family wk_family_qwen2moe = {.architecture = "qwen2moe",
                                      .norm = WK_NORM_RMS,
                                      .biases = WK_BIASES_QKV,
                                      .describe = describe_qwen2moe};
const wk_family wk_family_qwen3moe = {
    .architecture = "qwen3moe", .norm = WK_NORM_RMS, .describe = describe_qwen3moe};
const wk_family wk_family_qwen3vlmoe = {
    .architecture = "qwen3vlmoe", .norm = WK_NORM_RMS, .describe = describe_qwen3moe};
