/* convert/hf_family.c: see hf_family.h. */
#include "convert/hf_family.h"

#include "convert/hf_families.h"
#include "convert/hf_kinds.h"
#include "core/compiler.h"
#include "core/status.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wk_hf_is_named(const char *keys, wk_str text) {
    while (keys != NULL) {
        const size_t n = strcspn(keys, "|");
        if (wk_str_matches((wk_str){keys, n}, text)) return true;
        keys = keys[n] == '|' ? keys + n + 1 : NULL;
    }
    return false;
}

/* Of the families of a model_type one may have experts: lists and patterns of layers name them. */
static bool fits(const wk_hf_family *family, const wk_json *config) {
    const wk_json *const pattern = wk_json_get(config, "hybrid_override_pattern");
    const wk_json *const lists[] = {wk_json_get(config, "layers_block_type"),
                                    wk_json_get(config, "layer_types")};
    if (!(family->traits & WK_HF_EXPERT_BLOCKS)) return true;
    if (wk_hf_is_text(pattern)) return wk_str_matches(wk_str_of("*E*"), pattern->string);
    for (size_t i = 0; i < WK_COUNT(lists); i++)
        for (const wk_json *item = lists[i] != NULL ? lists[i]->child : NULL; item != NULL;
             item = item->next)
            if (wk_str_is(item->string, "moe")) return true;
    return false;
}

wick_status wk_hf_family_find(const wk_json *config, const wk_hf_family **out, wick_error *err) {
    const wk_json *const type = wk_json_get(config, "model_type");
    if (type == NULL || type->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "config.json has no model_type");
    char known[460] = ""; /* as many as a sentence holds */
    size_t size = 0;
    for (size_t i = 0; i < wk_hf_n_families; i++) {
        *out = &wk_hf_families[i];
        if (wk_str_is(type->string, (*out)->model_type) && fits(*out, config)) return WICK_OK;
        if ((*out)->traits & WK_HF_EXPERT_BLOCKS) continue;
        size += (size_t)snprintf(known + size, sizeof known - size, " %s",
                                 wk_hf_families[i].model_type);
        assert(size < sizeof known);
    }
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "models of the type '%s' cannot be converted yet; these can:%s",
                   wk_str_show(type->string).text, known);
}

const wk_hf_family *wk_hf_family_of(const char *architecture) {
    size_t i = 0;
    while (i < wk_hf_n_families && strcmp(wk_hf_families[i].architecture, architecture) != 0) i++;
    return i < wk_hf_n_families ? &wk_hf_families[i] : NULL;
}

/* ---- Renaming ---- */

/* Of decoders whose names go back to Llama's. */
static const wk_hf_rule decoder_rules[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"final_layernorm", "output_norm"},
    {"lm_head", "output"},
    {"layers.%.input_layernorm", "blk.%.attn_norm"},
    {"layers.%.self_attn.q_proj", "blk.%.attn_q"},
    {"layers.%.self_attn.k_proj", "blk.%.attn_k"},
    {"layers.%.self_attn.v_proj", "blk.%.attn_v"},
    {"layers.%.self_attn.qkv_proj", "blk.%.attn_qkv"},
    {"layers.%.self_attn.o_proj", "blk.%.attn_output"},
    {"layers.%.self_attn.dense", "blk.%.attn_output"},
    {"layers.%.self_attn.q_norm", "blk.%.attn_q_norm"},
    {"layers.%.self_attn.k_norm", "blk.%.attn_k_norm"},
    {"layers.%.self_attn.q_layernorm.norms.#", "blk.%.attn_q_norm"},
    {"layers.%.self_attn.k_layernorm.norms.#", "blk.%.attn_k_norm"},
    {"layers.%.post_attention_layernorm", "blk.%.ffn_norm"},
    {"layers.%.mlp.gate_proj", "blk.%.ffn_gate"},
    {"layers.%.mlp.up_proj", "blk.%.ffn_up"},
    {"layers.%.mlp.down_proj", "blk.%.ffn_down"},
    {"layers.%.mlp.gate_up_proj", "blk.%.ffn_up"},
    {"layers.%.mlp.c_fc", "blk.%.ffn_up"},
    {"layers.%.mlp.c_proj", "blk.%.ffn_down"},
    {"layers.%.mlp.fc1", "blk.%.ffn_up"},
    {"layers.%.mlp.fc2", "blk.%.ffn_down"},
    {"layers.%.feed_forward.gate_proj", "blk.%.ffn_gate"},
    {"layers.%.feed_forward.up_proj", "blk.%.ffn_up"},
    {"layers.%.feed_forward.down_proj", "blk.%.ffn_down"},
    {"layers.%.mamba.in_proj", "blk.%.ssm_in"},
    {"layers.%.mamba.conv1d", "blk.%.ssm_conv1d"},
    {"layers.%.mamba.A_log$", "blk.%.ssm_a"},
    {"layers.%.mamba.D$", "blk.%.ssm_d"},
    {"layers.%.mamba.out_proj", "blk.%.ssm_out"},
    {"layers.%.mlp.gate", "blk.%.ffn_gate_inp"},
    {"layers.%.mlp.experts.#.gate_proj", "blk.%.ffn_gate_exps"},
    {"layers.%.mlp.experts.#.up_proj", "blk.%.ffn_up_exps"},
    {"layers.%.mlp.experts.#.down_proj", "blk.%.ffn_down_exps"},
    {"layers.%.mlp.shared_expert.gate_proj", "blk.%.ffn_gate_shexp"},
    {"layers.%.mlp.shared_expert.up_proj", "blk.%.ffn_up_shexp"},
    {"layers.%.mlp.shared_expert.down_proj", "blk.%.ffn_down_shexp"},
    {"layers.%.mlp.shared_expert_gate", "blk.%.ffn_gate_inp_shexp"},
    {"layers.%.mlp.shared_experts.gate_proj", "blk.%.ffn_gate_shexp"},
    {"layers.%.mlp.shared_experts.up_proj", "blk.%.ffn_up_shexp"},
    {"layers.%.mlp.shared_experts.down_proj", "blk.%.ffn_down_shexp"},
    {"layers.%.block_sparse_moe.gate", "blk.%.ffn_gate_inp"},
    {"layers.%.block_sparse_moe.experts.#.w1", "blk.%.ffn_gate_exps"},
    {"layers.%.block_sparse_moe.experts.#.w3", "blk.%.ffn_up_exps"},
    {"layers.%.block_sparse_moe.experts.#.w2", "blk.%.ffn_down_exps"},
    {NULL, NULL},
};

/* How many digits text begins with; 0: none, or more than 6, too many for a layer or part. */
static size_t count_digits(const char *text) {
    const size_t n = strspn(text, "0123456789");
    return n <= 6 ? n : 0;
}

/* Follows text along a pattern; % takes the digits of the layer, # those of the part. What is left
 * of text, NULL: they part. */
static const char *follow(const char *pattern, const char *text, wk_str *layer,
                          wk_hf_place *place) {
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '$') return *text == '\0' ? text : NULL;
        if (*pattern != '%' && *pattern != '#') {
            if (*text++ != *pattern) return NULL;
            continue;
        }
        const size_t n = count_digits(text);
        if (n == 0) return NULL;
        if (*pattern == '%') *layer = (wk_str){text, n};
        if (*pattern == '#') {
            place->is_part = true;
            place->part = (uint32_t)strtoul(text, NULL, 10);
        }
        text += n;
    }
    return text;
}

/* The pattern with its number, and the ending. */
static void fill(const char *pattern, wk_str layer, const char *ending, char out[WK_HF_NAME]) {
    const char *const place = strchr(pattern, '%');
    if (place == NULL)
        snprintf(out, WK_HF_NAME, "%s%s", pattern, ending);
    else
        snprintf(out, WK_HF_NAME, "%.*s%.*s%s%s", (int)(place - pattern), pattern, (int)layer.size,
                 layer.text, place + 1, ending);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static wk_hf_change change_of(const wk_hf_family *family, const char *pattern, bool is_bias) {
    const uint32_t traits = family->traits;
    if ((traits & WK_HF_NORMS_FROM_ZERO) && ends_with(pattern, "norm") && !is_bias)
        return WK_HF_ADD_ONE;
    if ((traits & WK_HF_PERMUTED_HEADS) && ends_with(pattern, ".attn_q")) return WK_HF_PERMUTE_Q;
    if ((traits & WK_HF_PERMUTED_HEADS) && ends_with(pattern, ".attn_k")) return WK_HF_PERMUTE_K;
    if ((traits & WK_HF_GROUPED_QKV) && ends_with(pattern, ".attn_qkv")) return WK_HF_REGROUP_QKV;
    if (ends_with(pattern, ".ssm_a")) return WK_HF_NEGATIVE_EXP;
    if (ends_with(pattern, ".ssm_conv1d") && !is_bias) return WK_HF_SQUEEZE;
    if ((traits & WK_HF_HEAD_STEPS) && ends_with(pattern, ".ssm_d")) return WK_HF_COLUMN;
    if ((traits & WK_HF_HEAD_STEPS) && ends_with(pattern, ".ssm_norm")) return WK_HF_GROUPS;
    const bool is_layer_matrix =
        strncmp(pattern, "blk.", 4) == 0 && !ends_with(pattern, "norm") && !is_bias;
    return (traits & WK_HF_TRANSPOSED) && is_layer_matrix ? WK_HF_TRANSPOSE : WK_HF_AS_IT_IS;
}

/* Constants, heads for other tasks than ours, of which guessing further tokens is one, and what
 * sees pictures. */
static bool is_left_out(wk_str name) {
    static const char *const globs[] = {
        "*rotary_emb.inv_freq", "*embeddings.position_ids", "*pooler.dense.*", "cls.*",
        "*.attn.bias",          "*.attention.bias",         "*.masked_bias",   "mtp.*",
        "*vision_tower.*",      "*multi_modal_projector.*"};
    for (size_t i = 0; i < WK_COUNT(globs); i++)
        if (wk_str_matches(wk_str_of(globs[i]), name)) return true;
    return false;
}

static bool apply(const wk_hf_family *family, const wk_hf_rule *rules, const char *text,
                  wk_hf_place *out) {
    for (; rules->checkpoint != NULL; rules++) {
        wk_str layer = {0};
        *out = (wk_hf_place){.part = 0};
        const char *const ending = follow(rules->checkpoint, text, &layer, out);
        if (ending == NULL) continue;
        const bool is_bias = strcmp(ending, ".bias") == 0;
        const bool is_whole = ends_with(rules->checkpoint, "$");
        if (!is_whole && !is_bias && strcmp(ending, ".weight") != 0) continue;
        fill(rules->gguf, layer, ending, out->name);
        out->change = change_of(family, rules->gguf, is_bias);
        return true;
    }
    return false;
}

bool wk_hf_rename(const wk_hf_family *family, wk_str name, wk_hf_place *out) {
    static const char *const prefixes[] = {"model.",          "model.language_model.",
                                           "language_model.", "language_model.model.",
                                           "transformer.",    "gpt_neox.",
                                           "bert.",           "backbone."};
    const uint32_t traits = family->traits;
    *out = (wk_hf_place){.change = WK_HF_LEFT_OUT};
    if (is_left_out(name)) return true;
    if (traits & WK_HF_XIELU && wk_str_matches(wk_str_of("*.mlp.act_fn.*"), name)) return true;
    if (traits & WK_HF_ENCODER && wk_str_matches(wk_str_of("lm_head.*"), name)) return true;
    const char *text = name.text;
    for (size_t i = 0; i < WK_COUNT(prefixes); i++) {
        const size_t n = strlen(prefixes[i]);
        if (strncmp(name.text, prefixes[i], n) == 0) text = name.text + n;
    }
    if (family->rules != NULL && apply(family, family->rules, text, out)) return true;
    const bool is_bert = traits & WK_HF_ENCODER && traits & WK_HF_LEARNED_POSITIONS;
    return !is_bert && apply(family, decoder_rules, text, out);
}
