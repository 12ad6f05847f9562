/* model/families/mixtures.c: mixtures of experts whose attention is Llama's or Qwen3's: DeepSeek
 * MoE (Dai et al., 2024), Ling 1 and 2 (Inclusion AI, 2025), ERNIE 4.5 (Baidu, 2025), OLMoE
 * (Muennighoff et al., 2024), dots.llm1 (Xiaohongshu, 2025), Hunyuan A13B (Tencent, 2025), GLM-4.5
 * (Zhipu AI, 2025), DBRX (Databricks, 2024), Trinity (Arcee AI, 2025), SmallThinker (Song et
 * al., 2025) and MiMo V2 (Xiaomi, 2025). */
#include "core/status.h"
#include "model/families.h"

#include <math.h>

/* Rotary pairs side by side, as in Llama's files. */
static wick_status describe_like_llama(const wk_metadata *meta, wk_hparams *hparams,
                                       const wk_experts_desc *experts, wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return wk_family_read_experts(meta, hparams, experts, layers);
}

static wick_status describe_like_qwen3(const wk_metadata *meta, wk_hparams *hparams,
                                       const wk_experts_desc *experts, wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    return wk_family_read_experts(meta, hparams, experts, layers);
}

/* Also of Ling: whether weights are divided by their sum is a key of the file. */
static wick_status describe_deepseek(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX};
    return describe_like_llama(meta, hparams, &experts, layers);
}

static wick_status describe_ernie(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    return describe_like_llama(meta, hparams, &experts, layers);
}

static wick_status describe_olmoe(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX};
    WK_TRY(describe_like_qwen3(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.qk_norm = WK_QK_NORM_CHANNELS;
    return WICK_OK;
}

static wick_status describe_ling2(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID};
    return describe_like_qwen3(meta, hparams, &experts, layers);
}

static wick_status describe_dots(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID};
    return describe_like_qwen3(meta, hparams, &experts, layers);
}

static wick_status describe_hunyuan(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SOFTMAX, .n_shared = 1, .is_normalized = true};
    WK_TRY(describe_like_qwen3(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.is_normed_after_rope = true;
    return WICK_OK;
}

static wick_status describe_glm(const wk_metadata *meta, wk_hparams *hparams,
                                wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID};
    WK_TRY(describe_like_qwen3(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_CHANNELS_INPUT] = WK_POST_ATTENTION_NORM;
        if (!wk_metadata_layer_has(meta, i, "attn_q_norm.weight"))
            layers[i].attention.qk_norm = WK_QK_NORM_NONE;
    }
    return WICK_OK;
}

static wick_status describe_dbrx(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_clamp(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].norms[WK_CHANNELS_INPUT] = WK_ATTN_OUTPUT_NORM;
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

/* Layers without a window know no positions. */
static wick_status describe_trinity(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID};
    WK_TRY(describe_like_qwen3(meta, hparams, &experts, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 4}));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
        layers[i].norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
        layers[i].attention.has_gate_weight = true;
        if (layers[i].attention.window == 0) layers[i].attention.rope = WK_NO_ROPE;
    }
    hparams->embedding_scale = (float)sqrt((double)hparams->n_embd);
    return WICK_OK;
}

/* Experts are chosen before the attention, so that they could be read meanwhile. */
static wick_status describe_smallthinker(const wk_metadata *meta, wk_hparams *hparams,
                                         wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX,
                                     .activation = WK_ACTIVATION_RELU,
                                     .is_normalized = true,
                                     .is_routed_early = true};
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers,
                                  (wk_window_rule){.period = 4, .is_first_global = true}));
    wk_family_drop_far_ropes(hparams, layers);
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

/* Layers with a window, and those without, may have sinks; those without a router have an MLP. */
static wick_status describe_mimo2(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID, .is_normalized = true};
    bool has_sinks[2] = {false, false}; /* without a window, with one */
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.is_needed = true}));
    WK_TRY(wk_family_add_window_rope(meta, hparams, layers, 10000.0));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        has_sinks[layers[i].attention.window > 0] |=
            wk_metadata_layer_has(meta, i, "attn_sinks.weight");
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        attention->has_sinks = has_sinks[attention->window > 0];
        WK_TRY(wk_family_read_cap(meta, "attention.value_scale", 0.0, &attention->value_scale));
        if (!wk_metadata_layer_has(meta, i, "ffn_gate_inp.weight"))
            layers[i].channels = WK_CHANNELS_MLP;
    }
    return WICK_OK;
}

const wk_family wk_family_deepseek = {
    .architecture = "deepseek", .norm = WK_NORM_RMS, .describe = describe_deepseek};
const wk_family wk_family_bailingmoe = {
    .architecture = "bailingmoe", .norm = WK_NORM_RMS, .describe = describe_deepseek};
const wk_family wk_family_bailingmoe2 = {
    .architecture = "bailingmoe2", .norm = WK_NORM_RMS, .describe = describe_ling2};
const wk_family wk_family_ernie4_5_moe = {
    .architecture = "ernie4_5-moe", .norm = WK_NORM_RMS, .describe = describe_ernie};
const wk_family wk_family_olmoe = {
    .architecture = "olmoe", .norm = WK_NORM_RMS, .describe = describe_olmoe};
const wk_family wk_family_dots1 = {
    .architecture = "dots1", .norm = WK_NORM_RMS, .describe = describe_dots};
const wk_family wk_family_hunyuan_moe = {
    .architecture = "hunyuan-moe", .norm = WK_NORM_RMS, .describe = describe_hunyuan};
const wk_family wk_family_glm4moe = {
    .architecture = "glm4moe", .norm = WK_NORM_RMS, .describe = describe_glm};
const wk_family wk_family_dbrx = {
    .architecture = "dbrx", .norm = WK_NORM_LAYER, .describe = describe_dbrx};
const wk_family wk_family_afmoe = {
    .architecture = "afmoe", .norm = WK_NORM_RMS, .describe = describe_trinity};
const wk_family wk_family_smallthinker = {
    .architecture = "smallthinker", .norm = WK_NORM_RMS, .describe = describe_smallthinker};
const wk_family wk_family_mimo2 = {
    .architecture = "mimo2", .norm = WK_NORM_RMS, .describe = describe_mimo2};
