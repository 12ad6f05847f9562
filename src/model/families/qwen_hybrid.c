/* model/families/qwen_hybrid.c: Qwen3-Next and Qwen3.5 (Qwen Team, 2025 and 2026): a gated delta
 * net in most layers, gated attention in the others. */
#include "core/status.h"
#include "model/families.h"

/* Every interval-th layer is one of attention, where the file has no list of the others. */
static wick_status find_mixers(const wk_metadata *meta, const wk_hparams *hparams,
                               wk_layer_spec *layers) {
    static const char list[] = "attention.recurrent_layers";
    const uint32_t fallback = 4;
    const bool has_list = wk_metadata_has(meta, list);
    uint32_t interval;
    WK_TRY(wk_metadata_u32(meta, "full_attention_interval", (wk_u32_rule){1, UINT32_MAX, &fallback},
                           &interval));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        bool is_recurrent = (i + 1) % interval != 0;
        if (has_list)
            WK_TRY(
                wk_metadata_bool_of_layer(meta, list, wk_family_layer(hparams, i), &is_recurrent));
        if (is_recurrent) layers[i].mixer = WK_MIXER_DELTA_NET;
    }
    return WICK_OK;
}

/* A gate has the channels of a query, and is for those of a value. */
static wick_status check_gates(const wk_metadata *meta, const wk_hparams *hparams,
                               const wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (layers[i].attention.head_dim != layers[i].attention.head_dim_v)
            return wk_fail(meta->err, WICK_ERR_FORMAT,
                           "the metadata key '%s' is %u, but heads of queries have %u channels",
                           wk_metadata_key(meta, "attention.value_length").text,
                           layers[i].attention.head_dim_v, layers[i].attention.head_dim);
    return WICK_OK;
}

/* Value heads are of key head i mod n, or neighbours share one. */
static wick_status describe_hybrid(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers, bool is_tiled) {
    wk_recurrent_spec recurrent = {.is_tiled = is_tiled};
    WK_TRY(wk_family_read_scan(meta, &recurrent));
    wk_family_default_layers(hparams, layers);
    WK_TRY(find_mixers(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_CHANNELS_INPUT] = WK_POST_ATTENTION_NORM;
        layers[i].recurrent = recurrent;
        layers[i].attention.qk_norm = WK_QK_NORM_HEAD;
        layers[i].attention.has_output_gate = true;
    }
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(check_gates(meta, hparams, layers));
    return wk_family_add_rope(meta, hparams, layers);
}

static wick_status describe_qwen35(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(describe_hybrid(meta, hparams, layers, true));
    return wk_family_read_ff(meta, hparams, layers, 1);
}

static wick_status describe_experts(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers, bool is_tiled) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SOFTMAX, .is_normalized = true, .is_shared_gated = true};
    WK_TRY(describe_hybrid(meta, hparams, layers, is_tiled));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

static wick_status describe_qwen3next(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    return describe_experts(meta, hparams, layers, false);
}

static wick_status describe_qwen35moe(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    return describe_experts(meta, hparams, layers, true);
}

const wk_family wk_family_qwen35 = {
    .architecture = "qwen35", .norm = WK_NORM_RMS, .describe = describe_qwen35};
const wk_family wk_family_qwen3next = {
    .architecture = "qwen3next", .norm = WK_NORM_RMS, .describe = describe_qwen3next};
const wk_family wk_family_qwen35moe = {
    .architecture = "qwen35moe", .norm = WK_NORM_RMS, .describe = describe_qwen35moe};
