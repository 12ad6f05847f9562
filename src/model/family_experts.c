/* model/family_experts.c: the numbers of mixtures of experts, which most families have by the same
 * keys. */
#include "core/status.h"
#include "model/families.h"

#include <inttypes.h>

enum { MOST_EXPERTS = 1 << 16 };

static wick_status refuse(const wk_metadata *meta, const char *suffix, uint32_t value) {
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' is %" PRIu32 ", which does not fit the number of experts",
                   wk_metadata_key(meta, suffix).text, value);
}

static wick_status read_groups(const wk_metadata *meta, wk_experts_spec *out) {
    const uint32_t one = 1;
    WK_TRY(wk_metadata_u32(meta, "expert_group_count", (wk_u32_rule){0, out->n_experts, &one},
                           &out->n_groups));
    if (out->n_groups == 0) out->n_groups = 1;
    if (out->n_experts % out->n_groups != 0)
        return refuse(meta, "expert_group_count", out->n_groups);
    WK_TRY(wk_metadata_u32(meta, "expert_group_used_count",
                           (wk_u32_rule){0, out->n_groups, &out->n_groups}, &out->n_groups_used));
    if (out->n_groups_used == 0) out->n_groups_used = out->n_groups;
    const uint32_t left = out->n_experts / out->n_groups * out->n_groups_used;
    return out->n_used <= left ? WICK_OK
                               : refuse(meta, "expert_group_used_count", out->n_groups_used);
}

static wick_status read_shared(const wk_metadata *meta, const wk_experts_desc *desc,
                               uint32_t n_ff_dense, wk_experts_spec *out) {
    uint32_t n_shared;
    WK_TRY(wk_metadata_u32(meta, "expert_shared_count",
                           (wk_u32_rule){0, MOST_EXPERTS, &desc->n_shared}, &n_shared));
    const uint64_t n_ff = (uint64_t)n_shared * out->n_ff;
    if (n_ff > WK_MAX_CHANNELS) return refuse(meta, "expert_shared_count", n_shared);
    const bool is_dense = desc->is_length_shared && desc->is_shared_gated && n_shared == 0;
    const uint32_t together = is_dense ? n_ff_dense : (uint32_t)n_ff;
    return wk_metadata_u32(meta, "expert_shared_feed_forward_length",
                           (wk_u32_rule){0, WK_MAX_CHANNELS, &together}, &out->n_ff_shared);
}

/* What becomes of the router's logits, as the format numbers it. */
static wick_status read_gating(const wk_metadata *meta, const wk_experts_desc *desc,
                               wk_gating *out) {
    static const wk_gating numbered[] = {
        [1] = WK_GATING_SOFTMAX, [2] = WK_GATING_SIGMOID, [3] = WK_GATING_SOFTMAX_OF_CHOSEN};
    const uint32_t none = 0;
    uint32_t number;
    WK_TRY(wk_metadata_u32(meta, "expert_gating_func",
                           (wk_u32_rule){0, WK_COUNT(numbered) - 1, &none}, &number));
    *out = number == 0 ? desc->gating : numbered[number];
    return WICK_OK;
}

static wick_status read_weights(const wk_metadata *meta, const wk_experts_desc *desc,
                                wk_experts_spec *out) {
    const double one = 1.0;
    double scale;
    WK_TRY(wk_metadata_f64(meta, "expert_weights_scale", &one, &scale));
    out->scale = scale == 0.0 ? 1.0F : (float)scale; /* as converters write it for none */
    WK_TRY(wk_metadata_bool(meta, "expert_weights_norm", desc->is_normalized, &out->is_normalized));
    return read_gating(meta, desc, &out->gating);
}

static wick_status read_spec(const wk_metadata *meta, const wk_experts_desc *desc, uint32_t n_ff,
                             wk_experts_spec *out) {
    WK_TRY(wk_metadata_u32(meta, "expert_used_count", (wk_u32_rule){1, out->n_experts, NULL},
                           &out->n_used));
    const uint32_t usual = desc->is_length_shared ? n_ff / out->n_used : n_ff;
    WK_TRY(wk_metadata_u32(meta, "expert_feed_forward_length",
                           (wk_u32_rule){1, WK_MAX_CHANNELS, usual > 0 ? &usual : NULL},
                           &out->n_ff));
    WK_TRY(read_groups(meta, out));
    WK_TRY(read_shared(meta, desc, n_ff, out));
    out->is_shared_gated = desc->is_shared_gated;
    out->is_input_weighted = desc->is_input_weighted;
    out->is_ungated = desc->is_ungated;
    out->is_routed_early = desc->is_routed_early;
    out->is_mean = desc->is_mean;
    out->activation = desc->activation;
    return read_weights(meta, desc, out);
}

wick_status wk_family_read_experts(const wk_metadata *meta, const wk_hparams *hparams,
                                   const wk_experts_desc *desc, wk_layer_spec *layers) {
    const uint32_t none = 0, one = 1;
    uint32_t n_experts, n_dense, step;
    WK_TRY(
        wk_metadata_u32(meta, "expert_count", (wk_u32_rule){0, MOST_EXPERTS, &none}, &n_experts));
    if (n_experts == 0) return WICK_OK;
    WK_TRY(wk_metadata_u32(meta, "leading_dense_block_count", (wk_u32_rule){0, UINT32_MAX, &none},
                           &n_dense));
    WK_TRY(wk_metadata_u32(meta, "interleave_moe_layer_step", (wk_u32_rule){1, UINT32_MAX, &one},
                           &step));
    for (uint32_t i = n_dense; i < hparams->n_layers; i++) {
        if ((i + 1) % step != 0) continue;
        layers[i].channels = WK_CHANNELS_EXPERTS;
        layers[i].experts.n_experts = n_experts;
        WK_TRY(read_spec(meta, desc, layers[i].mlp.n_ff, &layers[i].experts));
    }
    return WICK_OK;
}
