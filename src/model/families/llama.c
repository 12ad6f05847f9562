/* model/families/llama.c: Llama 1 to 3, Mistral, SmolLM2 and their like (Touvron et al., 2023),
 * Mixtral (Jiang et al., 2024), InternLM2 (Cai et al., 2024), XVERSE, ERNIE 4.5 (Baidu, 2025),
 * Arcee's AFM (2025) with squared ReLU, Baichuan (2023), whose larger model has linear biases,
 * SmolLM3, whose every fourth layer knows no positions, Maincoder (2025), which norms heads after
 * the rotation, Ministral 3 (Mistral AI, 2025) and Nemotron Super and Ultra (NVIDIA, 2025), whose
 * layers may lack attention or the MLP, and BitNet b1.58 (Ma et al., 2024), with norms before the
 * last matrix of each branch. */
#include "core/status.h"
#include "model/families.h"

#include <math.h>

static wick_status describe_internlm2(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return WICK_OK;
}

static wick_status describe_llama(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(describe_internlm2(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    return wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 0});
}

static wick_status describe_arcee(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_RELU_SQUARED);
    return WICK_OK;
}

/* The 13B model, which uses ALiBi, is recognised by its layer count. */
static wick_status describe_baichuan(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    if (hparams->n_layers == 40) wk_family_use_alibi(hparams, layers, 8.0F);
    return WICK_OK;
}

static wick_status describe_smollm3(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    for (uint32_t i = 3; i < hparams->n_layers; i += 4) layers[i].attention.rope = WK_NO_ROPE;
    return WICK_OK;
}

static wick_status describe_maincoder(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.is_normed_after_rope = true;
    return WICK_OK;
}

/* Queries far into a text are longer: they have a rotary embedding of their own. */
static wick_status warm_queries(const wk_metadata *meta, wk_hparams *hparams,
                                wk_layer_spec *layers) {
    static const char key[] = "attention.temperature_scale";
    const double none = 0.0;
    wk_rope *const rope = hparams->rope;
    double warmth;
    WK_TRY(wk_metadata_f64(meta, key, &none, &warmth));
    if (warmth == 0.0) return WICK_OK;
    if (warmth < 0.0 || rope->original_context == 0 ||
        2 * rope->n_pairs != layers[0].attention.head_dim)
        return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                       "the metadata key '%s' is %g, which is not supported beside heads that are "
                       "rotated in part or an unknown original context",
                       wk_metadata_key(meta, key).text, warmth);
    rope[1] = rope[0];
    rope[1].warmth = warmth;
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.query_rope = hparams->n_ropes;
    hparams->n_ropes++;
    return WICK_OK;
}

/* Of YaRN's magnitude the share that the key says is taken back. */
static wick_status describe_mistral3(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    const double one = 1.0;
    double factor;
    float multiplier;
    wk_str type;
    WK_TRY(describe_llama(meta, hparams, layers));
    WK_TRY(wk_family_read_cap(meta, "rope.scaling.yarn_log_multiplier", 0.0, &multiplier));
    WK_TRY(wk_metadata_f64(meta, "rope.scaling.factor", &one, &factor));
    WK_TRY(wk_metadata_string(meta, "rope.scaling.type", &type));
    if (wk_str_is(type, "yarn"))
        hparams->rope[0].magnitude /= 1.0 + 0.1 * (double)multiplier * log(fmax(factor, 1.0));
    return warm_queries(meta, hparams, layers);
}

static wick_status describe_deci(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_find_attention(meta, hparams, layers, WK_MIXER_NONE));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 0));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_layer_spec *const layer = &layers[i];
        if (layer->mixer == WK_MIXER_NONE) layer->norms[WK_MIXER_INPUT] = WK_NO_LAYER_WEIGHT;
        if (layer->mlp.n_ff > 0) continue;
        layer->channels = WK_CHANNELS_NONE;
        layer->norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
    }
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return wk_family_add_rope(meta, hparams, layers);
}

static wick_status describe_bitnet(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_INNER] = WK_ATTN_SUB_NORM;
        layers[i].norms[WK_CHANNELS_INNER] = WK_FFN_SUB_NORM;
    }
    return WICK_OK;
}

const wk_family wk_family_llama = {
    .architecture = "llama", .norm = WK_NORM_RMS, .describe = describe_llama};
const wk_family wk_family_internlm2 = {
    .architecture = "internlm2", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_xverse = {
    .architecture = "xverse", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_ernie4_5 = {
    .architecture = "ernie4_5", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_arcee = {
    .architecture = "arcee", .norm = WK_NORM_RMS, .describe = describe_arcee};
const wk_family wk_family_baichuan = {
    .architecture = "baichuan", .norm = WK_NORM_RMS, .describe = describe_baichuan};
const wk_family wk_family_smollm3 = {
    .architecture = "smollm3", .norm = WK_NORM_RMS, .describe = describe_smollm3};
const wk_family wk_family_maincoder = {
    .architecture = "maincoder", .norm = WK_NORM_RMS, .describe = describe_maincoder};
const wk_family wk_family_mistral3 = {
    .architecture = "mistral3", .norm = WK_NORM_RMS, .describe = describe_mistral3};
const wk_family wk_family_deci = {
    .architecture = "deci", .norm = WK_NORM_RMS, .describe = describe_deci};
const wk_family wk_family_bitnet = {
    .architecture = "bitnet", .norm = WK_NORM_RMS, .describe = describe_bitnet};
