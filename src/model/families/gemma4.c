/* model/families/gemma4.c: Gemma 4 (Gemma Team, 2026): layers with a window have heads of another
 * width, the last ones see the keys and values of earlier layers, and each has an input of its own.
 */
#include "core/status.h"
#include "model/families.h"
#include "model/rope.h"

#include <math.h>

/* What layers with a window have otherwise: the numbers of their heads. */
static wick_status read_window_heads(const wk_metadata *meta, wk_attention_spec *out) {
    WK_TRY(wk_metadata_u32(meta, "attention.key_length_swa",
                           (wk_u32_rule){1, WK_MAX_CHANNELS / out->n_heads_q, &out->head_dim},
                           &out->head_dim));
    return wk_metadata_u32(meta, "attention.value_length_swa",
                           (wk_u32_rule){1, WK_MAX_CHANNELS / out->n_heads_q, &out->head_dim_v},
                           &out->head_dim_v);
}

/* The rotary embedding of the layers with a window, or of those without, if there are any. */
static wick_status add_rope(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers,
                            bool is_windowed) {
    wk_rope_desc desc = {.head_dim = 0};
    if (is_windowed)
        desc = (wk_rope_desc){.dimensions_key = "rope.dimension_count_swa",
                              .base_key = "rope.freq_base_swa",
                              .default_base = 10000.0,
                              .is_plain = true};
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        if ((attention->window > 0) != is_windowed) continue;
        attention->rope = hparams->n_ropes;
        desc.head_dim = attention->head_dim;
    }
    return desc.head_dim > 0 ? wk_rope_add(meta, hparams, &desc) : WICK_OK;
}

/* The last n layers see what the last layer of their kind before them sees. */
static wick_status share_keys(const wk_metadata *meta, const wk_hparams *hparams,
                              wk_layer_spec *layers) {
    static const char key[] = "attention.shared_kv_layers";
    const uint32_t none = 0;
    uint32_t n, last[2] = {UINT32_MAX, UINT32_MAX}; /* without a window, with one */
    WK_TRY(wk_metadata_u32(meta, key, (wk_u32_rule){0, hparams->n_layers, &none}, &n));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        uint32_t *const source = &last[attention->window > 0];
        attention->is_kv_shared = i >= hparams->n_layers - n;
        if (!attention->is_kv_shared) *source = i;
        attention->kv_layer = *source;
        if (*source == UINT32_MAX || layers[*source].attention.n_heads_kv != attention->n_heads_kv)
            return wk_fail(
                meta->err, WICK_ERR_FORMAT,
                "the metadata key '%s' is %u, but block %u has no earlier one whose keys "
                "it could see",
                wk_metadata_key(meta, key).text, (unsigned)n, (unsigned)i);
    }
    return WICK_OK;
}

static wick_status describe_layer(const wk_metadata *meta, const wk_hparams *hparams, uint32_t i,
                                  wk_layer_spec *layer) {
    wk_attention_spec *const attention = &layer->attention;
    layer->norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
    layer->norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
    layer->has_own_input = hparams->n_embd_layer > 0;
    layer->has_output_scale = wk_metadata_layer_has(meta, i, "layer_output_scale.weight");
    layer->mlp.activation = WK_ACTIVATION_GELU;
    attention->scale = 1.0F;
    attention->qk_norm = WK_QK_NORM_HEAD;
    attention->has_v_norm = true;
    if (attention->window > 0) WK_TRY(read_window_heads(meta, attention));
    attention->is_v_k = attention->head_dim == attention->head_dim_v &&
                        !wk_metadata_layer_has(meta, i, "attn_v.weight") &&
                        !wk_metadata_layer_has(meta, i, "attn_qkv.weight");
    return WICK_OK;
}

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    const uint32_t none = 0;
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 6}));
    WK_TRY(wk_metadata_u32(meta, "embedding_length_per_layer_input",
                           (wk_u32_rule){0, WK_MAX_CHANNELS, &none}, &hparams->n_embd_layer));
    WK_TRY(wk_family_read_cap(meta, "final_logit_softcapping", 0.0, &hparams->logit_softcap));
    hparams->embedding_scale = (float)sqrt((double)hparams->n_embd);
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        WK_TRY(describe_layer(meta, hparams, i, &layers[i]));
    WK_TRY(share_keys(meta, hparams, layers));
    WK_TRY(add_rope(meta, hparams, layers, false));
    return add_rope(meta, hparams, layers, true);
}

const wk_family wk_family_gemma4 = {
    .architecture = "gemma4", .norm = WK_NORM_RMS, .describe = describe};
