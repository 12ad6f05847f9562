/* convert/hf_family.c: see hf_family.h. */
#include "convert/hf_family.h"

#include "core/compiler.h"
#include "core/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* %: the number of the layer. */
typedef struct name_rule {
    const char *checkpoint, *gguf;
} name_rule;

struct wk_hf_family {
    const char *model_type, *architecture;
    const char *prefix; /* that checkpoints have or have not */
    const name_rule *names;
    size_t n_names;
    bool is_encoder;
    bool has_permuted_heads; /* rotary pairs are neighbours in GGUF, halves in the checkpoint */
};

/* Without ".weight" and ".bias". */
static const name_rule decoder_names[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"layers.%.input_layernorm", "blk.%.attn_norm"},
    {"layers.%.self_attn.q_proj", "blk.%.attn_q"},
    {"layers.%.self_attn.k_proj", "blk.%.attn_k"},
    {"layers.%.self_attn.v_proj", "blk.%.attn_v"},
    {"layers.%.self_attn.o_proj", "blk.%.attn_output"},
    {"layers.%.self_attn.q_norm", "blk.%.attn_q_norm"},
    {"layers.%.self_attn.k_norm", "blk.%.attn_k_norm"},
    {"layers.%.post_attention_layernorm", "blk.%.ffn_norm"},
    {"layers.%.mlp.gate_proj", "blk.%.ffn_gate"},
    {"layers.%.mlp.up_proj", "blk.%.ffn_up"},
    {"layers.%.mlp.down_proj", "blk.%.ffn_down"},
};
static const name_rule bert_names[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.%.attention.self.query", "blk.%.attn_q"},
    {"encoder.layer.%.attention.self.key", "blk.%.attn_k"},
    {"encoder.layer.%.attention.self.value", "blk.%.attn_v"},
    {"encoder.layer.%.attention.output.dense", "blk.%.attn_output"},
    {"encoder.layer.%.attention.output.LayerNorm", "blk.%.attn_output_norm"},
    {"encoder.layer.%.intermediate.dense", "blk.%.ffn_up"},
    {"encoder.layer.%.output.dense", "blk.%.ffn_down"},
    {"encoder.layer.%.output.LayerNorm", "blk.%.layer_output_norm"},
};

#define NAMES(names) names, WK_COUNT(names)
static const wk_hf_family families[] = {
    {"llama", "llama", "model.", NAMES(decoder_names), false, true},
    {"mistral", "llama", "model.", NAMES(decoder_names), false, true},
    {"qwen2", "qwen2", "model.", NAMES(decoder_names), false, false},
    {"qwen3", "qwen3", "model.", NAMES(decoder_names), false, false},
    {"bert", "bert", "bert.", NAMES(bert_names), true, false},
};

wick_status wk_hf_family_find(const wk_json *config, const wk_hf_family **out, wick_error *err) {
    const wk_json *const type = wk_json_get(config, "model_type");
    if (type == NULL || type->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "config.json has no model_type");
    char known[128] = "";
    size_t size = 0;
    for (size_t i = 0; i < WK_COUNT(families); i++) {
        *out = &families[i];
        if (wk_str_is(type->string, families[i].model_type)) return WICK_OK;
        size += (size_t)snprintf(known + size, sizeof known - size, " %s", families[i].model_type);
    }
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "models of the type '%s' cannot be converted yet; these can:%s",
                   wk_str_show(type->string).text, known);
}

const char *wk_hf_architecture(const wk_hf_family *family) { return family->architecture; }

/* ---- Numbers ---- */

static bool is_given(const wk_json *item) { return item != NULL && item->kind != WK_JSON_NULL; }

static wick_status read_u32(const wk_json *config, const char *key, uint32_t *out,
                            wick_error *err) {
    const wk_json *const item = wk_json_get(config, key);
    if (item == NULL || item->kind != WK_JSON_NUMBER || !item->is_integer || item->integer < 0 ||
        item->integer > UINT32_MAX)
        return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' is missing, or no whole number",
                       key);
    *out = (uint32_t)item->integer;
    return WICK_OK;
}

static wick_status add_u32(const wk_json *config, const char *key, wk_value_list *values,
                           const char *gguf_key, wick_error *err) {
    uint32_t number = 0;
    WK_TRY(read_u32(config, key, &number, err));
    wk_value_list_u32(values, gguf_key, number);
    return WICK_OK;
}

static wick_status add_f32(const wk_json *config, const char *key, wk_value_list *values,
                           const char *gguf_key, wick_error *err) {
    const wk_json *const item = wk_json_get(config, key);
    if (item == NULL || item->kind != WK_JSON_NUMBER || !isfinite(item->number))
        return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' is missing, or no number", key);
    wk_value_list_f32(values, gguf_key, item->number);
    return WICK_OK;
}

/* Older configs have rope_theta and rope_scaling beside everything else, newer ones both in
 * rope_parameters. */
typedef struct rope {
    const wk_json *theta_in; /* what has rope_theta */
    const wk_json *scaling;  /* NULL: none */
    wk_str type;             /* of scaling */
} rope;

static rope find_rope(const wk_json *config) {
    const wk_json *const inner = wk_json_get(config, "rope_parameters");
    rope found = {.theta_in = is_given(inner) ? inner : config,
                  .scaling = is_given(inner) ? inner : wk_json_get(config, "rope_scaling")};
    const wk_json *type = wk_json_get(found.scaling, "rope_type");
    if (!is_given(type)) type = wk_json_get(found.scaling, "type");
    const bool has_type = type != NULL && type->kind == WK_JSON_STRING;
    if (has_type) found.type = type->string;
    if (!has_type || wk_str_is(found.type, "default")) found.scaling = NULL;
    return found;
}

static wick_status add_rope(const wk_json *config, wk_value_list *values, wick_error *err) {
    const rope found = find_rope(config);
    if (is_given(wk_json_get(found.theta_in, "rope_theta")))
        WK_TRY(add_f32(found.theta_in, "rope_theta", values, ".rope.freq_base", err));
    if (found.scaling == NULL || wk_str_is(found.type, "llama3")) return WICK_OK;
    if (!wk_str_is(found.type, "linear"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: rotary scaling of the type '%s' cannot be converted yet",
                       wk_str_show(found.type).text);
    wk_value_list_text(values, ".rope.scaling.type", wk_str_of("linear"));
    return add_f32(found.scaling, "factor", values, ".rope.scaling.factor", err);
}

static wick_status read_head_dim(const wk_json *config, uint32_t *out, wick_error *err) {
    if (is_given(wk_json_get(config, "head_dim"))) return read_u32(config, "head_dim", out, err);
    uint32_t n_embd = 0, n_heads = 0;
    WK_TRY(read_u32(config, "hidden_size", &n_embd, err));
    WK_TRY(read_u32(config, "num_attention_heads", &n_heads, err));
    if (n_heads == 0) return wk_fail(err, WICK_ERR_FORMAT, "config.json: no attention heads");
    *out = n_embd / n_heads;
    return WICK_OK;
}

/* Wave lengths beyond the original context are scaled by the factor, short ones not at all, and
 * those between partly. */
typedef struct uneven_scaling {
    double theta, factor, low, high, context;
} uneven_scaling;

static float divisor_of(const uneven_scaling *s, double exponent) {
    const double two_pi = 6.283185307179586, length = two_pi * pow(s->theta, exponent);
    if (length < s->context / s->high) return 1;
    if (length > s->context / s->low) return (float)s->factor;
    const double smooth = (s->context / length - s->low) / (s->high - s->low);
    return (float)(1 / ((1 - smooth) / s->factor + smooth));
}

static wick_status read_f64(const wk_json *from, const char *key, double *out, wick_error *err) {
    const wk_json *const item = wk_json_get(from, key);
    if (item == NULL || item->kind != WK_JSON_NUMBER || !(item->number > 0) ||
        !isfinite(item->number))
        return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' is missing, or no positive number",
                       key);
    *out = item->number;
    return WICK_OK;
}

wick_status wk_hf_rope_divisors(const wk_json *config, wk_arena *arena, const float **divisors,
                                uint32_t *n, wick_error *err) {
    const rope found = find_rope(config);
    *n = 0;
    *divisors = NULL;
    if (found.scaling == NULL || !wk_str_is(found.type, "llama3")) return WICK_OK;
    uneven_scaling s = {0};
    uint32_t head_dim = 0;
    WK_TRY(read_head_dim(config, &head_dim, err));
    WK_TRY(read_f64(found.theta_in, "rope_theta", &s.theta, err));
    WK_TRY(read_f64(found.scaling, "factor", &s.factor, err));
    WK_TRY(read_f64(found.scaling, "low_freq_factor", &s.low, err));
    WK_TRY(read_f64(found.scaling, "high_freq_factor", &s.high, err));
    WK_TRY(read_f64(found.scaling, "original_max_position_embeddings", &s.context, err));
    float *const made = wk_arena_array(arena, head_dim / 2, sizeof *made);
    if (made == NULL) return wk_fail_memory(err, head_dim * 2, 0, "rotary frequencies");
    for (uint32_t i = 0; i < head_dim / 2; i++)
        made[i] = divisor_of(&s, 2.0 * (double)i / (double)head_dim);
    *n = head_dim / 2;
    *divisors = made;
    return WICK_OK;
}

static wick_status describe_decoder(const wk_hf_family *family, const wk_json *config,
                                    wk_value_list *values, wick_error *err) {
    const wk_json *const windows = wk_json_get(config, "use_sliding_window");
    if (windows != NULL && windows->kind == WK_JSON_BOOL && windows->boolean)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: use_sliding_window cannot be converted yet");
    const wk_json *const n_kv = wk_json_get(config, "num_key_value_heads");
    WK_TRY(add_u32(config, is_given(n_kv) ? "num_key_value_heads" : "num_attention_heads", values,
                   ".attention.head_count_kv", err));
    WK_TRY(add_f32(config, "rms_norm_eps", values, ".attention.layer_norm_rms_epsilon", err));
    WK_TRY(add_rope(config, values, err));
    uint32_t head_dim = 0;
    WK_TRY(read_head_dim(config, &head_dim, err));
    if (is_given(wk_json_get(config, "head_dim"))) {
        wk_value_list_u32(values, ".attention.key_length", head_dim);
        wk_value_list_u32(values, ".attention.value_length", head_dim);
    }
    if (!family->has_permuted_heads) return WICK_OK;
    wk_value_list_u32(values, ".rope.dimension_count", head_dim);
    return add_u32(config, "vocab_size", values, ".vocab_size", err);
}

wick_status wk_hf_describe(const wk_hf_family *family, const wk_json *config, wk_value_list *values,
                           wick_error *err) {
    WK_TRY(add_u32(config, "num_hidden_layers", values, ".block_count", err));
    WK_TRY(add_u32(config, "max_position_embeddings", values, ".context_length", err));
    WK_TRY(add_u32(config, "hidden_size", values, ".embedding_length", err));
    WK_TRY(add_u32(config, "intermediate_size", values, ".feed_forward_length", err));
    WK_TRY(add_u32(config, "num_attention_heads", values, ".attention.head_count", err));
    if (!family->is_encoder) return describe_decoder(family, config, values, err);
    wk_value_list_bool(values, ".attention.causal", false);
    WK_TRY(add_u32(config, "type_vocab_size", values, "tokenizer.ggml.token_type_count", err));
    return add_f32(config, "layer_norm_eps", values, ".attention.layer_norm_epsilon", err);
}

/* ---- Tensors ---- */

/* Follows text along a pattern; % takes digits, which number gets. What is left of text, NULL: they
 * part. */
static const char *follow(const char *pattern, const char *text, wk_str *number) {
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '%') {
            if (*text++ != *pattern) return NULL;
            continue;
        }
        *number = (wk_str){text, strspn(text, "0123456789")};
        if (number->size == 0 || number->size > 6) return NULL;
        text += number->size;
    }
    return text;
}

/* The pattern with its number, and the ending. */
static void fill(const char *pattern, wk_str number, const char *ending, char out[WK_HF_NAME]) {
    const char *const place = strchr(pattern, '%');
    if (place == NULL)
        snprintf(out, WK_HF_NAME, "%s%s", pattern, ending);
    else
        snprintf(out, WK_HF_NAME, "%.*s%.*s%s%s", (int)(place - pattern), pattern, (int)number.size,
                 number.text, place + 1, ending);
}

static wk_hf_change change_of(const wk_hf_family *family, const char *pattern) {
    if (!family->has_permuted_heads) return WK_HF_AS_IT_IS;
    if (strcmp(pattern, "blk.%.attn_q") == 0) return WK_HF_PERMUTE_Q;
    return strcmp(pattern, "blk.%.attn_k") == 0 ? WK_HF_PERMUTE_K : WK_HF_AS_IT_IS;
}

/* Constants, and heads for other tasks than ours. */
static bool is_left_out(wk_str name) {
    static const char *const globs[] = {"*.rotary_emb.inv_freq", "*embeddings.position_ids",
                                        "*pooler.dense.*", "cls.*"};
    for (size_t i = 0; i < WK_COUNT(globs); i++)
        if (wk_str_matches(wk_str_of(globs[i]), name)) return true;
    return false;
}

bool wk_hf_rename(const wk_hf_family *family, wk_str name, char out[WK_HF_NAME],
                  wk_hf_change *change) {
    *change = WK_HF_LEFT_OUT;
    out[0] = '\0';
    if (is_left_out(name)) return true;
    const char *text = name.text;
    const size_t prefix = strlen(family->prefix);
    if (strncmp(text, family->prefix, prefix) == 0) text += prefix;
    for (size_t i = 0; i < family->n_names; i++) {
        wk_str number = {0};
        const char *const ending = follow(family->names[i].checkpoint, text, &number);
        if (ending == NULL || (strcmp(ending, ".weight") != 0 && strcmp(ending, ".bias") != 0))
            continue;
        fill(family->names[i].gguf, number, ending, out);
        *change = change_of(family, family->names[i].gguf);
        return true;
    }
    return false;
}

uint32_t wk_hf_heads(const wk_json *config, wk_hf_change change) {
    const wk_json *const n_kv = wk_json_get(config, "num_key_value_heads");
    const bool is_k = change == WK_HF_PERMUTE_K && is_given(n_kv);
    uint32_t n = 0;
    (void)read_u32(config, is_k ? "num_key_value_heads" : "num_attention_heads", &n, NULL);
    return n;
}
