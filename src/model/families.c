/* model/families.c: the table of families, and what most of them have in common. */
#include "model/families.h"

#include "core/status.h"
#include "model/rope.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const wk_family *const families[] = {
#define WK_FAMILY_ENTRY(name) &wk_family_##name,
    WK_FAMILIES(WK_FAMILY_ENTRY)
#undef WK_FAMILY_ENTRY
};

wick_status wk_family_find(wk_str architecture, const wk_family **out, wick_error *err) {
    for (size_t i = 0; i < WK_COUNT(families); i++) {
        *out = families[i];
        if (wk_str_is(architecture, families[i]->architecture)) return WICK_OK;
    }
    *out = NULL;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "models of the architecture '%s' are not supported; %zu others are "
                   "(docs/families.md)",
                   wk_str_show(architecture).text, WK_COUNT(families));
}

wk_layer_index wk_family_layer(const wk_hparams *hparams, uint32_t layer) {
    const uint32_t n_ahead = hparams->n_layers_ahead;
    return (wk_layer_index){layer, hparams->n_layers + n_ahead, n_ahead};
}

void wk_family_default_layers(const wk_hparams *hparams, wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i] = (wk_layer_spec){
            .norms = {[WK_MIXER_INPUT] = WK_ATTN_NORM, [WK_CHANNELS_INPUT] = WK_FFN_NORM},
            .residual_scale = 1.0F,
            .mixer = WK_MIXER_ATTENTION,
            .attention.kv_layer = i,
            .channels = WK_CHANNELS_MLP,
            .mlp = {.is_gated = true, .activation = WK_ACTIVATION_SILU},
        };
    }
}

static wick_status check_heads(const wk_metadata *meta, const wk_attention_spec *attention) {
    if (attention->n_heads_q % attention->n_heads_kv != 0)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %" PRIu32 ", no multiple of %" PRIu32
                       " heads of keys and values",
                       wk_metadata_key(meta, "attention.head_count").text, attention->n_heads_q,
                       attention->n_heads_kv);
    const uint32_t widest =
        attention->head_dim > attention->head_dim_v ? attention->head_dim : attention->head_dim_v;
    if ((uint64_t)attention->n_heads_q * widest <= WK_MAX_CHANNELS) return WICK_OK;
    return wk_fail(
        meta->err, WICK_ERR_FORMAT,
        "the metadata key '%s' is %" PRIu32 ", too much for heads of %" PRIu32 " channels",
        wk_metadata_key(meta, "attention.head_count").text, attention->n_heads_q, widest);
}

/* Channels of a head, where the file says nothing else: the heads share those of the model. */
static wick_status read_head_dims(const wk_metadata *meta, const wk_hparams *hparams,
                                  wk_attention_spec *out) {
    if (!wk_metadata_has(meta, "attention.key_length") && hparams->n_embd % out->n_heads_q != 0)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is missing, and %" PRIu32
                       " channels cannot be shared by %" PRIu32 " heads",
                       wk_metadata_key(meta, "attention.key_length").text, hparams->n_embd,
                       out->n_heads_q);
    const uint32_t share = hparams->n_embd / out->n_heads_q;
    WK_TRY(wk_metadata_u32(meta, "attention.key_length", (wk_u32_rule){1, WK_MAX_CHANNELS, &share},
                           &out->head_dim));
    return wk_metadata_u32(meta, "attention.value_length",
                           (wk_u32_rule){1, WK_MAX_CHANNELS, &out->head_dim}, &out->head_dim_v);
}

wick_status wk_family_read_heads(const wk_metadata *meta, const wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        const wk_layer_index at = wk_family_layer(hparams, i);
        wk_attention_spec *const out = &layers[i].attention;
        if (layers[i].mixer != WK_MIXER_ATTENTION) continue;
        WK_TRY(wk_metadata_u32_of_layer(meta, "attention.head_count",
                                        (wk_u32_rule){1, WK_MAX_CHANNELS, NULL}, at,
                                        &out->n_heads_q));
        WK_TRY(wk_metadata_u32_of_layer(meta, "attention.head_count_kv",
                                        (wk_u32_rule){1, out->n_heads_q, &out->n_heads_q}, at,
                                        &out->n_heads_kv));
        WK_TRY(read_head_dims(meta, hparams, out));
        WK_TRY(check_heads(meta, out));
        out->scale = (float)(1.0 / sqrt((double)out->head_dim));
    }
    return WICK_OK;
}

wick_status wk_family_read_ff(const wk_metadata *meta, const wk_hparams *hparams,
                              wk_layer_spec *layers, uint32_t least) {
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        WK_TRY(wk_metadata_u32_of_layer(meta, "feed_forward_length",
                                        (wk_u32_rule){least, WK_MAX_CHANNELS, NULL},
                                        wk_family_layer(hparams, i), &layers[i].mlp.n_ff));
    return WICK_OK;
}

wick_status wk_family_find_attention(const wk_metadata *meta, const wk_hparams *hparams,
                                     wk_layer_spec *layers, wk_mixer_kind other) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        uint32_t n_heads;
        WK_TRY(wk_metadata_u32_of_layer(meta, "attention.head_count_kv",
                                        (wk_u32_rule){0, WK_MAX_CHANNELS, NULL},
                                        wk_family_layer(hparams, i), &n_heads));
        if (n_heads == 0) layers[i].mixer = other;
    }
    return WICK_OK;
}

wick_status wk_family_add_rope(const wk_metadata *meta, wk_hparams *hparams,
                               const wk_layer_spec *layers) {
    uint32_t i = 0;
    while (i < hparams->n_layers && layers[i].mixer != WK_MIXER_ATTENTION) i++;
    if (i == hparams->n_layers) return WICK_OK;
    return wk_rope_add(meta, hparams, &(wk_rope_desc){.head_dim = layers[i].attention.head_dim});
}

wick_status wk_family_describe_dense(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    wk_family_default_layers(hparams, layers);
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    return wk_rope_add(meta, hparams, &(wk_rope_desc){.head_dim = layers[0].attention.head_dim});
}

/* ---- What several families do otherwise ---- */

void wk_family_interleave_ropes(const wk_hparams *hparams, wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].attention.is_rope_interleaved = true;
}

void wk_family_norm_heads(const wk_hparams *hparams, wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].attention.qk_norm = WK_QK_NORM_HEAD;
}

wick_status wk_family_read_clamp(const wk_metadata *meta, const wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        WK_TRY(wk_family_read_cap(meta, "attention.clamp_kqv", 0.0, &layers[i].attention.clamp));
    return WICK_OK;
}

void wk_family_drop_gates(const wk_hparams *hparams, wk_layer_spec *layers,
                          wk_activation activation) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].mlp.is_gated = false;
        layers[i].mlp.activation = activation;
    }
}

uint32_t wk_family_table_rows(const wk_metadata *meta, const char *name) {
    const wick_file_tensor *const table = wk_gguf_find_tensor(meta->gguf, name);
    if (table == NULL) return 0;
    const int rank = table->shape.rank;
    const int64_t rows = rank == 2 ? table->shape.extent[0] : rank == 1 ? 1 : 0;
    return rows <= INT32_MAX ? (uint32_t)rows : 0;
}

void wk_family_end_context(wk_hparams *hparams, uint32_t length) {
    hparams->most_context = length;
    if (hparams->context_length > length) hparams->context_length = length;
}

void wk_family_drop_far_ropes(const wk_hparams *hparams, wk_layer_spec *layers) {
    bool has_windows = false;
    for (uint32_t i = 0; i < hparams->n_layers; i++) has_windows |= layers[i].attention.window > 0;
    for (uint32_t i = 0; i < hparams->n_layers && has_windows; i++)
        if (layers[i].attention.window == 0) layers[i].attention.rope = WK_NO_ROPE;
}

void wk_family_drop_ropes(wk_hparams *hparams, wk_layer_spec *layers) {
    hparams->n_ropes = 0;
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].attention.rope = WK_NO_ROPE;
}

wick_status wk_family_learn_positions(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    const char name[] = "position_embd.weight";
    const uint32_t rows = wk_family_table_rows(meta, name);
    if (rows < hparams->context_length)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the tensor '%s' has %" PRIu32 " rows for a context of %" PRIu32 " tokens",
                       name, rows, hparams->context_length);
    hparams->n_positions = rows;
    wk_family_drop_ropes(hparams, layers);
    return WICK_OK;
}

void wk_family_use_alibi(wk_hparams *hparams, wk_layer_spec *layers, float most) {
    wk_family_drop_ropes(hparams, layers);
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].attention.alibi_bias = most;
}

wick_status wk_family_read_cap(const wk_metadata *meta, const char *suffix, double fallback,
                               float *out) {
    double cap;
    WK_TRY(wk_metadata_f64(meta, suffix, &fallback, &cap));
    *out = (float)cap;
    if (cap >= 0.0) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' is %g, but must not be below 0",
                   wk_metadata_key(meta, suffix).text, cap);
}

static wick_status has_window(const wk_metadata *meta, wk_window_rule rule, wk_layer_index at,
                              bool *out) {
    static const char key[] = "attention.sliding_window_pattern";
    uint32_t period = rule.period;
    if (wk_metadata_is_array(meta, key) || (period == 0 && rule.is_needed))
        return wk_metadata_bool_of_layer(meta, key, at, out);
    WK_TRY(wk_metadata_u32(meta, key, (wk_u32_rule){0, UINT32_MAX, &rule.period}, &period));
    *out = period == 0 || at.layer % period != (rule.is_first_global ? 0 : period - 1);
    return WICK_OK;
}

wick_status wk_family_read_windows(const wk_metadata *meta, const wk_hparams *hparams,
                                   wk_layer_spec *layers, wk_window_rule rule) {
    uint32_t window;
    WK_TRY(wk_metadata_u32(meta, "attention.sliding_window",
                           (wk_u32_rule){0, INT32_MAX, rule.is_needed ? NULL : &rule.window},
                           &window));
    for (uint32_t i = 0; i < hparams->n_layers && window > 0; i++) {
        bool is_windowed;
        WK_TRY(has_window(meta, rule, wk_family_layer(hparams, i), &is_windowed));
        layers[i].attention.window = is_windowed ? (int32_t)window : 0;
    }
    return WICK_OK;
}

static const char window_base[] = "rope.freq_base_swa";

wick_status wk_family_add_window_rope(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers, double base) {
    const wk_layer_spec *windowed = NULL;
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        if (layers[i].attention.window == 0) continue;
        windowed = &layers[i];
        layers[i].attention.rope = hparams->n_ropes;
    }
    if (windowed == NULL) return WICK_OK;
    const wk_rope_desc desc = {.head_dim = windowed->attention.head_dim,
                               .base_key = window_base,
                               .default_base = base,
                               .is_plain = true};
    return wk_rope_add(meta, hparams, &desc);
}

/* Of the families that wk_family_add_window_rope is not called for: the same, but scaled as the
 * other layers' rope is, where the file has the key. */
static wick_status read_window_base(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    wk_rope_desc desc = hparams->rope[0].desc;
    if (hparams->n_ropes != 1 || desc.base_key != NULL || !wk_metadata_has(meta, window_base))
        return WICK_OK;
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        if (attention->window > 0 && attention->rope == 0) attention->rope = 1;
    }
    desc.base_key = window_base;
    return wk_rope_add(meta, hparams, &desc);
}

wick_status wk_family_describe(const wk_family *family, const wk_metadata *meta,
                               wk_hparams *hparams, wk_layer_spec *layers) {
    WK_TRY(family->describe(meta, hparams, layers));
    return read_window_base(meta, hparams, layers);
}
