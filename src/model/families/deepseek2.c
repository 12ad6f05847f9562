/* model/families/deepseek2.c: DeepSeek V2 and V3 and their like (DeepSeek-AI, 2024), Mistral Large
 * 3 and Small 4 (Mistral AI, 2025 and 2026), of files whose latent attention is stored absorbed. */
#include "core/status.h"
#include "model/families.h"
#include "model/rope.h"

#include <inttypes.h>
#include <math.h>

/* A head as it would be without absorption. */
typedef struct head {
    uint32_t n_channels, n_values, n_rotated, n_latent;
} head;

static wick_status read_head(const wk_metadata *meta, head *out) {
    const wk_u32_rule needed = {1, WK_MAX_CHANNELS, NULL};
    WK_TRY(wk_metadata_u32(meta, "attention.key_length_mla", needed, &out->n_channels));
    WK_TRY(wk_metadata_u32(meta, "attention.value_length_mla", needed, &out->n_values));
    WK_TRY(wk_metadata_u32(meta, "attention.kv_lora_rank", needed, &out->n_latent));
    if (out->n_channels < 2)
        return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata key '%s' is %" PRIu32,
                       wk_metadata_key(meta, "attention.key_length_mla").text, out->n_channels);
    return wk_metadata_u32(meta, "rope.dimension_count",
                           (wk_u32_rule){2, out->n_channels - 1, NULL}, &out->n_rotated);
}

/* The cache holds what key_length and value_length say. */
static wick_status check_cache(const wk_metadata *meta, const head *of,
                               const wk_attention_spec *attention) {
    if (attention->n_heads_kv == 1 && attention->head_dim_v == of->n_latent &&
        attention->head_dim == of->n_latent + of->n_rotated)
        return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata keys '%s' and '%s' are %" PRIu32 " and %" PRIu32
                   ", which do not fit a latent space of %" PRIu32 " and %" PRIu32
                   " rotated channels",
                   wk_metadata_key(meta, "attention.key_length").text,
                   wk_metadata_key(meta, "attention.value_length").text, attention->head_dim,
                   attention->head_dim_v, of->n_latent, of->n_rotated);
}

/* With YaRN the scale grows; the rotary part then has no magnitude of its own. */
static wick_status find_scale(const wk_metadata *meta, const head *of, wk_hparams *hparams,
                              float *out) {
    const double none = 0.0, one = 1.0;
    double multiplier, factor;
    WK_TRY(wk_metadata_f64(meta, "rope.scaling.yarn_log_multiplier", &none, &multiplier));
    WK_TRY(wk_metadata_f64(meta, "rope.scaling.factor", &one, &factor));
    double scale = 1.0 / sqrt((double)of->n_channels);
    if (multiplier != 0.0 && factor > 1.0) {
        const double magnitude = 1.0 + multiplier * log(factor);
        scale *= magnitude * magnitude;
        hparams->rope[0].magnitude = 1.0;
    }
    *out = (float)scale;
    return WICK_OK;
}

/* Queries of Mistral's models get longer from there on: contexts end there. */
static wick_status read_temperature(const wk_metadata *meta, wk_hparams *hparams) {
    const double none = 0.0;
    const uint32_t known = hparams->rope[0].original_context;
    const uint32_t original = known > 0 ? known : hparams->context_length;
    double warmth;
    uint32_t length;
    WK_TRY(wk_metadata_f64(meta, "attention.temperature_scale", &none, &warmth));
    if (warmth == 0.0) return WICK_OK;
    WK_TRY(wk_metadata_u32(meta, "attention.temperature_length",
                           (wk_u32_rule){1, UINT32_MAX, &original}, &length));
    wk_family_end_context(hparams, length);
    return WICK_OK;
}

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    /* The first files of GLM-4.7-Flash do not say it. */
    const bool is_glm =
        hparams->n_vocab == 154880 && (hparams->n_layers == 47 || hparams->n_layers == 48);
    const wk_experts_desc experts = {.gating = is_glm ? WK_GATING_SIGMOID : WK_GATING_SOFTMAX};
    const uint32_t none = 0;
    head of;
    uint32_t q_rank;
    float scale;
    WK_TRY(read_head(meta, &of));
    WK_TRY(wk_metadata_u32(meta, "attention.q_lora_rank", (wk_u32_rule){0, WK_MAX_CHANNELS, &none},
                           &q_rank));
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_rope_add(meta, hparams, &(wk_rope_desc){.head_dim = of.n_rotated}));
    WK_TRY(find_scale(meta, &of, hparams, &scale));
    WK_TRY(read_temperature(meta, hparams));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        WK_TRY(check_cache(meta, &of, &layers[i].attention));
        layers[i].mixer = WK_MIXER_LATENT;
        layers[i].attention.scale = scale;
        layers[i].attention.is_rope_interleaved = true;
        layers[i].latent = (wk_latent_spec){.n_latent = of.n_latent,
                                            .q_rank = q_rank,
                                            .n_rotated = of.n_rotated,
                                            .n_plain = of.n_channels - of.n_rotated,
                                            .n_values = of.n_values};
    }
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_deepseek2 = {
    .architecture = "deepseek2", .norm = WK_NORM_RMS, .describe = describe};
const wk_family wk_family_mistral4 = {
    .architecture = "mistral4", .norm = WK_NORM_RMS, .describe = describe};
