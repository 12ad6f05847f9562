/* model/families/mamba.c: Mamba (Gu and Dao, 2023), Falcon Mamba with it, and Mamba 2 (Dao and Gu,
 * 2024): layers of nothing but a selective state space. Jamba (Lieber et al., 2024) mixes those of
 * Mamba with attention, and MLPs with experts. */
#include "core/status.h"
#include "model/families.h"

#include <inttypes.h>

enum { MAX_TAPS = 16, MAX_NUMBERS = 1024 };

static wick_status check_multiple(const wk_metadata *meta, const char *suffix, uint32_t n,
                                  uint32_t of) {
    if (n % of == 0) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' is %" PRIu32 ", no multiple of %" PRIu32,
                   wk_metadata_key(meta, suffix).text, n, of);
}

wick_status wk_family_read_taps(const wk_metadata *meta, const char *suffix,
                                wk_recurrent_spec *out) {
    return wk_metadata_u32(meta, suffix, (wk_u32_rule){2, MAX_TAPS, NULL}, &out->n_taps);
}

wick_status wk_family_read_scan(const wk_metadata *meta, wk_recurrent_spec *out) {
    const wk_u32_rule channels = {1, WK_MAX_CHANNELS, NULL};
    uint32_t inner;
    WK_TRY(wk_family_read_taps(meta, "ssm.conv_kernel", out));
    WK_TRY(wk_metadata_u32(meta, "ssm.inner_size", channels, &inner));
    WK_TRY(wk_metadata_u32(meta, "ssm.time_step_rank", channels, &out->n_heads));
    WK_TRY(wk_metadata_u32(meta, "ssm.group_count", channels, &out->n_groups));
    WK_TRY(wk_metadata_u32(meta, "ssm.state_size", (wk_u32_rule){1, MAX_NUMBERS, NULL},
                           &out->n_numbers));
    WK_TRY(check_multiple(meta, "ssm.inner_size", inner, out->n_heads));
    WK_TRY(check_multiple(meta, "ssm.time_step_rank", out->n_heads, out->n_groups));
    out->head_dim = inner / out->n_heads;
    out->n_channels = inner + 2 * out->n_groups * out->n_numbers;
    if ((uint64_t)out->n_groups * out->n_numbers <= WK_MAX_CHANNELS) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' is %" PRIu32 ", too much for %" PRIu32 " groups",
                   wk_metadata_key(meta, "ssm.state_size").text, out->n_numbers, out->n_groups);
}

static void describe_layers(const wk_hparams *hparams, const wk_recurrent_spec *recurrent,
                            wk_layer_spec *layers) {
    wk_family_default_layers(hparams, layers);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
        layers[i].mixer = WK_MIXER_STATE_SPACE;
        layers[i].channels = WK_CHANNELS_NONE;
        layers[i].recurrent = *recurrent;
    }
}

/* All channels are one head, for each of them has its own step. */
static wick_status read_channel_scan(const wk_metadata *meta, wk_recurrent_spec *out) {
    const wk_u32_rule channels = {1, WK_MAX_CHANNELS, NULL};
    *out = (wk_recurrent_spec){.n_heads = 1, .n_groups = 1};
    WK_TRY(wk_family_read_taps(meta, "ssm.conv_kernel", out));
    WK_TRY(wk_metadata_u32(meta, "ssm.inner_size", channels, &out->head_dim));
    WK_TRY(wk_metadata_u32(meta, "ssm.time_step_rank", channels, &out->step_rank));
    out->n_channels = out->head_dim;
    return wk_metadata_u32(meta, "ssm.state_size", (wk_u32_rule){1, MAX_NUMBERS, NULL},
                           &out->n_numbers);
}

static wick_status describe_mamba(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    wk_recurrent_spec spec;
    WK_TRY(read_channel_scan(meta, &spec));
    WK_TRY(wk_metadata_bool(meta, "ssm.dt_b_c_rms", false, &spec.has_norms));
    describe_layers(hparams, &spec, layers);
    return WICK_OK;
}

/* Which layers have experts only their router says. */
static wick_status describe_jamba(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX};
    wk_recurrent_spec spec;
    WK_TRY(read_channel_scan(meta, &spec));
    spec.has_norms = spec.has_norm_weights = true;
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_find_attention(meta, hparams, layers, WK_MIXER_STATE_SPACE));
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].recurrent = spec;
        layers[i].attention.rope = WK_NO_ROPE;
        if (!wk_metadata_layer_has(meta, i, "ffn_gate_inp.weight"))
            layers[i].channels = WK_CHANNELS_MLP;
    }
    return WICK_OK;
}

static wick_status describe_mamba2(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    wk_recurrent_spec spec = {.n_heads = 0};
    WK_TRY(wk_family_read_scan(meta, &spec));
    describe_layers(hparams, &spec, layers);
    return WICK_OK;
}

const wk_family wk_family_mamba = {
    .architecture = "mamba", .norm = WK_NORM_RMS, .describe = describe_mamba};
const wk_family wk_family_mamba2 = {
    .architecture = "mamba2", .norm = WK_NORM_RMS, .describe = describe_mamba2};
const wk_family wk_family_jamba = {
    .architecture = "jamba", .norm = WK_NORM_RMS, .describe = describe_jamba};
