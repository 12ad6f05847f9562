/* model/families/granite.c: Granite 3 (IBM, 2024) and MiniCPM (Hu et al., 2024): Llama's network
 * with multipliers; Granite with windows (IBM, 2026) has attention sinks and may rotate some layers
 * alone, MiniCPM 3 (OpenBMB, 2024) has latent attention. */
#include "core/status.h"
#include "model/families.h"
#include "model/rope.h"

#include <math.h>

/* The number at key into *out, which holds the fallback; 0 is none, too. */
static wick_status read_scale(const wk_metadata *meta, const char *key, float *out) {
    const double fallback = (double)*out;
    double value;
    WK_TRY(wk_metadata_f64(meta, key, &fallback, &value));
    if (value != 0.0) *out = (float)value;
    return WICK_OK;
}

/* The file's logit_scale divides. */
static wick_status read_logit_scale(const wk_metadata *meta, wk_hparams *hparams) {
    WK_TRY(read_scale(meta, "logit_scale", &hparams->logit_scale));
    hparams->logit_scale = 1.0F / hparams->logit_scale;
    return WICK_OK;
}

static wick_status read_multipliers(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    wk_family_interleave_ropes(hparams, layers);
    WK_TRY(read_scale(meta, "embedding_scale", &hparams->embedding_scale));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        WK_TRY(read_scale(meta, "residual_scale", &layers[i].residual_scale));
        WK_TRY(read_scale(meta, "attention.scale", &layers[i].attention.scale));
    }
    return read_logit_scale(meta, hparams);
}

wick_status wk_family_read_multipliers(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers) {
    bool has_rope;
    WK_TRY(wk_metadata_bool(meta, "rope.scaling.finetuned", true, &has_rope));
    if (!has_rope) wk_family_drop_ropes(hparams, layers);
    return read_multipliers(meta, hparams, layers);
}

static wick_status describe_granite(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    return wk_family_read_multipliers(meta, hparams, layers);
}

static wick_status describe_granitemoe(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(describe_granite(meta, hparams, layers));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

/* With experts, or an MLP where the file counts none. */
static wick_status describe_granite_swa(const wk_metadata *meta, wk_hparams *hparams,
                                        wk_layer_spec *layers) {
    static const char rotated[] = "attention.rope_pattern";
    const wk_window_rule windows = {.period = 4, .is_first_global = true, .is_needed = true};
    WK_TRY(describe_granitemoe(meta, hparams, layers));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, windows));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        bool has_rope = true;
        if (wk_metadata_has(meta, rotated))
            WK_TRY(
                wk_metadata_bool_of_layer(meta, rotated, wk_family_layer(hparams, i), &has_rope));
        if (!has_rope) layers[i].attention.rope = WK_NO_ROPE;
        layers[i].attention.has_sinks = true;
    }
    return WICK_OK;
}

/* Of all MiniCPMs; logit_scale divides. */
static void set_multipliers(wk_hparams *hparams, wk_layer_spec *layers) {
    hparams->embedding_scale = 12.0F;
    hparams->logit_scale = (float)hparams->n_embd / 256.0F;
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].residual_scale = (float)(1.4 / sqrt((double)hparams->n_layers));
}

/* Files of the first models lack the keys. */
static wick_status describe_minicpm(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    set_multipliers(hparams, layers);
    return read_multipliers(meta, hparams, layers);
}

/* Where the file does not say how many channels a value has, the heads share those of the model. */
static wick_status read_latent(const wk_metadata *meta, const wk_hparams *hparams,
                               wk_layer_spec *layer) {
    const wk_u32_rule needed = {1, WK_MAX_CHANNELS, NULL};
    wk_attention_spec *const attention = &layer->attention;
    wk_latent_spec *const latent = &layer->latent;
    const uint32_t share = hparams->n_embd / attention->n_heads_q;
    WK_TRY(wk_metadata_u32(meta, "attention.q_lora_rank", needed, &latent->q_rank));
    WK_TRY(wk_metadata_u32(meta, "attention.kv_lora_rank", needed, &latent->n_latent));
    WK_TRY(wk_metadata_u32(meta, "rope.dimension_count",
                           (wk_u32_rule){2, attention->head_dim - 1, NULL}, &latent->n_rotated));
    WK_TRY(wk_metadata_u32(meta, "attention.value_length",
                           (wk_u32_rule){1, attention->head_dim, share > 0 ? &share : NULL},
                           &latent->n_values));
    latent->is_expanded = true;
    latent->n_plain = attention->head_dim - latent->n_rotated;
    attention->n_heads_kv = attention->n_heads_q;
    attention->head_dim_v = latent->n_values;
    layer->mixer = WK_MIXER_LATENT;
    return WICK_OK;
}

static wick_status describe_minicpm3(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    set_multipliers(hparams, layers);
    hparams->logit_scale = 1.0F / hparams->logit_scale;
    for (uint32_t i = 0; i < hparams->n_layers; i++) WK_TRY(read_latent(meta, hparams, &layers[i]));
    return wk_rope_add(meta, hparams, &(wk_rope_desc){.head_dim = layers[0].latent.n_rotated});
}

const wk_family wk_family_granite = {
    .architecture = "granite", .norm = WK_NORM_RMS, .describe = describe_granite};
const wk_family wk_family_granitemoe = {
    .architecture = "granitemoe", .norm = WK_NORM_RMS, .describe = describe_granitemoe};
const wk_family wk_family_granite_swa = {
    .architecture = "granite_swa", .norm = WK_NORM_RMS, .describe = describe_granite_swa};
const wk_family wk_family_minicpm = {
    .architecture = "minicpm", .norm = WK_NORM_RMS, .describe = describe_minicpm};
const wk_family wk_family_minicpm3 = {
    .architecture = "minicpm3", .norm = WK_NORM_RMS, .describe = describe_minicpm3};
