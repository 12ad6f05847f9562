/* convert/hf_defaults.c: see hf_defaults.h.
 *
 * Reference: configuration_*.py of huggingface/transformers 4.57 and 5.0. Sizes have defaults
 * there, too (hidden_size of a 7B model); they are asked for here. So is rope_theta where the two
 * versions differ (cohere, olmo3). What is 10000, or 1, both there and in GGUF needs no row. */
#include "convert/hf_defaults.h"

#include "convert/hf_blocks.h"
#include "convert/hf_keys.h"
#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

/* For these model types, * for all others, where none of the keys is there: the first one has this
 * value, in JSON. NULL: they must be there. */
typedef struct row {
    const char *model_types, *keys, *value;
} row;

#define KV_HEADS "num_key_value_heads|num_kv_heads"
#define ROTATED "partial_rotary_factor|rotary_pct|rope_pct"
#define WINDOW "sliding_window|sliding_window_size"
#define POSITIONS "max_position_embeddings|n_positions"

static const row rows[] = {
    {"qwen3|glm4|afmoe|ministral3|seed_oss|cohere2_moe", "head_dim", "128"},
    {"gemma|gemma2|gemma3_text", "head_dim", "256"},
    {"qwen2|qwen3|stablelm|exaone4|exaone_moe", KV_HEADS, "32"},
    {"gemma|qwen2_moe", KV_HEADS, "16"},
    {"mistral|mixtral|ministral3", KV_HEADS, "8"},
    {"smollm3|gemma2|gemma3_text|qwen3_moe", KV_HEADS, "4"},
    {"seed_oss|falcon_h1|jamba", KV_HEADS, "8"},
    {"jamba", "num_experts", "16"},
    {"jamba", "num_experts_per_tok", "2"},
    {"jamba", "attn_layer_period", "8"},
    {"jamba", "attn_layer_offset", "4"},
    {"jamba", "mamba_d_state", "16"},
    {"jamba|falcon_h1", "mamba_d_conv", "4"},
    {"jamba", "mamba_expand", "2"},
    {"jamba", "mamba_dt_rank", "\"auto\""},
    {"nemotron_h", KV_HEADS, "8"},
    {"nemotron_h", "head_dim|attention_head_dim", "128"},
    {"nemotron_h", "n_groups|mamba_n_groups", "8"},
    {"nemotron_h", "conv_kernel|mamba_d_conv", "4"},
    {"nemotron_h", "ssm_state_size", "128"},
    {"nemotron_h", "routed_scaling_factor", "1.0"},
    {"nemotron_h", "norm_topk_prob", "true"},
    {"nemotron_h", "n_shared_experts", "1"},
    {"falcon_h1", "mamba_n_groups", "1"},
    {"falcon_h1", "mamba_d_state", "256"},
    {"falcon_h1", "mamba_n_heads", "128"},
    {"glm4|starcoder2", KV_HEADS, "2"},
    {"falcon", "multi_query", "true"},
    {"gemma3_text", "num_attention_heads", "8"}, /* Gemma 3 4B does not say its sizes */
    {"gemma3_text", "vocab_size", "262208"},
    {"gemma3_text", "rms_norm_eps", "1e-06"},
    {"gemma3_text", POSITIONS, "131072"},
    {"mixtral|gemma3_text", "rope_theta", "1000000.0"},
    {"smollm3", "rope_theta", "2000000.0"},
    {"cohere|olmo3", "rope_theta", NULL},
    {"cohere2_moe", "layer_types", NULL},
    {"apertus", "rope_scaling|rope_type",
     "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"
     " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}"},
    {"apertus", "rope_theta", "12000000.0"},
    {"phi|glm4|nemotron", ROTATED, "0.5"},
    {"gpt_neox|stablelm", ROTATED, "0.25"},
    {"phi3", "original_max_position_embeddings", "4096"},
    {"gpt2", POSITIONS, "1024"},
    {"gpt_neox|falcon", POSITIONS, "2048"},
    {"mistral|gemma2|gemma3_text|olmo3|exaone4|exaone_moe|cohere2|cohere2_moe", WINDOW, "4096"},
    {"gemma2", "attn_logit_softcapping", "50.0"},
    {"gemma2", "final_logit_softcapping", "30.0"},
    {"gemma2|gemma3_text", "query_pre_attn_scalar", "256"},
    {"olmo", "layer_norm_eps", "1e-05"}, /* a constant there */
    {"afmoe", WINDOW, "1024"},
    {"afmoe", "num_dense_layers", "1"},
    {"afmoe", "num_shared_experts", "2"},
    {"afmoe", "route_scale", "1.0"},
    {"afmoe", "route_norm", "true"}, /* what else it says is not looked at there */
    {"exaone_moe", "first_k_dense_replace|first_last_k_dense_replace|mlp_layer_types", "1"},
    {"exaone_moe", "num_shared_experts", "1"},
    {"exaone_moe", "routed_scaling_factor", "2.5"},
    {"exaone_moe", "norm_topk_prob", "true"},
    {"qwen2_moe|qwen3_moe|olmoe", "norm_topk_prob", "false"},
    {"qwen2_moe", "shared_expert_intermediate_size", "5632"},
    {"granite", "attention_multiplier", "1.0"},
    {"granite", "embedding_multiplier", "1.0"},
    {"granite", "residual_multiplier", "1.0"},
    {"granite", "logits_scaling", "1.0"},
    {"cohere|cohere2|cohere2_moe", "logit_scale", "0.0625"},
    {"cohere2_moe", "num_shared_experts", "0"},
    {"cohere2_moe", "expert_selection_fn", "\"softmax\""},
    {"cohere2_moe", "norm_topk_prob", "true"},
    {"cohere2_moe", "first_k_dense_replace|mlp_layer_types", "0"},
    {"gpt_neox", "use_parallel_residual", "true"},
    {"bert", "type_vocab_size", "2"},
    {"smollm3|gemma|gemma2|gemma3_text|cohere|cohere2|cohere2_moe|starcoder2|gpt2|falcon|bert"
     "|minicpm3",
     "tie_word_embeddings", "true"},
    {"*", "tie_word_embeddings", "false"},
};

/* Where a key can be; looking does not mean that it was read. */
static bool is_there(const wk_json *const places[], size_t n, const char *keys) {
    for (size_t i = 0; i < n; i++) {
        const bool is_object = places[i] != NULL && places[i]->kind == WK_JSON_OBJECT;
        const wk_json *item = is_object ? places[i]->child : NULL;
        for (; item != NULL; item = item->next)
            if (wk_hf_is_named(keys, item->key)) return true;
    }
    return false;
}

static wick_status add(const row *at, wk_json *config, wk_arena *arena, wick_error *err) {
    wk_json *item = NULL;
    if (at->value == NULL)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "config.json: '%s' is missing, and what that means differs from one version"
                       " of transformers to another",
                       at->keys);
    WK_TRY(wk_json_parse(arena, at->value, strlen(at->value), &item, err));
    item->key = (wk_str){at->keys, strcspn(at->keys, "|")};
    item->is_read = true;
    wk_json_append(config, item);
    return WICK_OK;
}

/* The list of layers says how many there are. */
static wick_status add_count(wk_json *config, wk_arena *arena, wick_error *err) {
    char text[16];
    wk_str blocks = {0};
    const wk_json *const places[] = {config};
    if (is_there(places, 1, "num_hidden_layers")) return WICK_OK;
    WK_TRY(wk_hf_read_blocks(config, arena, &blocks, err));
    snprintf(text, sizeof text, "%zu", blocks.size);
    wk_json *item = NULL;
    WK_TRY(wk_json_parse(arena, text, strlen(text), &item, err));
    item->key = wk_str_of("num_hidden_layers");
    item->is_read = true;
    wk_json_append(config, item);
    return WICK_OK;
}

wick_status wk_hf_add_defaults(const wk_hf_family *family, wk_json *config, wk_arena *arena,
                               wick_error *err) {
    const wk_json *const places[] = {config, wk_hf_rope_parameters(config),
                                     wk_json_get(config, "rope_scaling")};
    for (size_t i = 0; i < WK_COUNT(rows); i++) {
        if (!wk_hf_is_named(rows[i].model_types, wk_str_of(family->model_type))) continue;
        if (!is_there(places, WK_COUNT(places), rows[i].keys))
            WK_TRY(add(&rows[i], config, arena, err));
    }
    return family->traits & WK_HF_BLOCKS ? add_count(config, arena, err) : WICK_OK;
}
