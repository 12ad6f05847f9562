/* convert/mix.c: see mix.h. The mixes and their numbers are those of llama.cpp's quantize, so that
 * a name means the same everywhere: sensitive tensors get more bits than the rest. */
#include "convert/mix.h"

#include "core/dtype.h"
#include "quant/encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum mix_id {
    MIX_F32,
    MIX_F16,
    MIX_BF16,
    MIX_Q8_0,
    MIX_Q4_0,
    MIX_Q4_1,
    MIX_Q5_0,
    MIX_Q5_1,
    MIX_Q2_K_S,
    MIX_Q2_K,
    MIX_Q3_K_S,
    MIX_Q3_K_M,
    MIX_Q3_K_L,
    MIX_Q4_K_S,
    MIX_Q4_K_M,
    MIX_Q5_K_S,
    MIX_Q5_K_M,
    MIX_Q6_K,
    MIX_IQ4_NL,
    MIX_IQ4_XS,
    MIX_MXFP4_MOE,
    MIX_COUNT,
} mix_id;

struct wk_mix {
    const char *name;
    uint32_t file_type;
    wick_dtype base;   /* of matrices without a rule */
    wick_dtype output; /* of the output matrix */
};

static const wk_mix mixes[MIX_COUNT] = {
    [MIX_F32] = {"F32", 0, WICK_F32, WICK_F32},
    [MIX_F16] = {"F16", 1, WICK_F16, WICK_F16},
    [MIX_BF16] = {"BF16", 32, WICK_BF16, WICK_BF16},
    [MIX_Q8_0] = {"Q8_0", 7, WICK_Q8_0, WICK_Q8_0},
    [MIX_Q4_0] = {"Q4_0", 2, WICK_Q4_0, WICK_Q6_K},
    [MIX_Q4_1] = {"Q4_1", 3, WICK_Q4_1, WICK_Q6_K},
    [MIX_Q5_0] = {"Q5_0", 8, WICK_Q5_0, WICK_Q6_K},
    [MIX_Q5_1] = {"Q5_1", 9, WICK_Q5_1, WICK_Q6_K},
    [MIX_Q2_K_S] = {"Q2_K_S", 21, WICK_Q2_K, WICK_Q6_K},
    [MIX_Q2_K] = {"Q2_K", 10, WICK_Q2_K, WICK_Q6_K},
    [MIX_Q3_K_S] = {"Q3_K_S", 11, WICK_Q3_K, WICK_Q6_K},
    [MIX_Q3_K_M] = {"Q3_K_M", 12, WICK_Q3_K, WICK_Q6_K},
    [MIX_Q3_K_L] = {"Q3_K_L", 13, WICK_Q3_K, WICK_Q6_K},
    [MIX_Q4_K_S] = {"Q4_K_S", 14, WICK_Q4_K, WICK_Q6_K},
    [MIX_Q4_K_M] = {"Q4_K_M", 15, WICK_Q4_K, WICK_Q6_K},
    [MIX_Q5_K_S] = {"Q5_K_S", 16, WICK_Q5_K, WICK_Q6_K},
    [MIX_Q5_K_M] = {"Q5_K_M", 17, WICK_Q5_K, WICK_Q6_K},
    [MIX_Q6_K] = {"Q6_K", 18, WICK_Q6_K, WICK_Q6_K},
    [MIX_IQ4_NL] = {"IQ4_NL", 25, WICK_IQ4_NL, WICK_Q6_K},
    [MIX_IQ4_XS] = {"IQ4_XS", 30, WICK_IQ4_XS, WICK_Q6_K},
    [MIX_MXFP4_MOE] = {"MXFP4_MOE", 38, WICK_Q8_0, WICK_Q8_0},
};

typedef enum role {
    ROLE_V,
    ROLE_K,
    ROLE_QKV,
    ROLE_ATTN_OUTPUT,
    ROLE_DOWN,
    ROLE_EXPERTS, /* any other matrix of experts */
    ROLE_OTHER,
} role;

typedef enum condition {
    ALWAYS,
    FIRST_2, /* layers */
    FIRST_4,
    FIRST_SIXTEENTH,
    FIRST_EIGHTH,
    OUTER_AND_THIRD, /* the first and the last eighth, and every third one between */
    SHARED_HEADS,    /* 4 query heads or more to a key head: the matrix is small */
} condition;

typedef struct rule {
    mix_id mix;
    role role;
    condition condition;
    wick_dtype dtype;
} rule;

/* The first that fits counts. */
static const rule rules[] = {
    {MIX_Q2_K_S, ROLE_V, SHARED_HEADS, WICK_Q4_K},
    {MIX_Q2_K_S, ROLE_DOWN, FIRST_EIGHTH, WICK_Q4_K},
    {MIX_Q2_K, ROLE_V, SHARED_HEADS, WICK_Q4_K},
    {MIX_Q2_K, ROLE_V, ALWAYS, WICK_Q3_K},
    {MIX_Q2_K, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q3_K},
    {MIX_Q2_K, ROLE_DOWN, ALWAYS, WICK_Q3_K},
    {MIX_Q3_K_M, ROLE_V, FIRST_2, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_V, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_QKV, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_DOWN, FIRST_SIXTEENTH, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_DOWN, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_L, ROLE_V, ALWAYS, WICK_Q5_K},
    {MIX_Q3_K_L, ROLE_QKV, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_L, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q5_K},
    {MIX_Q3_K_L, ROLE_DOWN, ALWAYS, WICK_Q5_K},
    {MIX_Q4_K_S, ROLE_V, FIRST_4, WICK_Q5_K},
    {MIX_Q4_K_S, ROLE_DOWN, FIRST_EIGHTH, WICK_Q5_K},
    {MIX_Q4_K_M, ROLE_V, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q4_K_M, ROLE_QKV, ALWAYS, WICK_Q5_K},
    {MIX_Q4_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q5_K_M, ROLE_V, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q5_K_M, ROLE_QKV, ALWAYS, WICK_Q6_K},
    {MIX_Q5_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_IQ4_NL, ROLE_V, SHARED_HEADS, WICK_Q5_K},
    {MIX_IQ4_NL, ROLE_DOWN, FIRST_EIGHTH, WICK_Q5_K},
    {MIX_IQ4_XS, ROLE_V, SHARED_HEADS, WICK_Q5_K},
    {MIX_IQ4_XS, ROLE_DOWN, FIRST_EIGHTH, WICK_Q5_K},
    {MIX_MXFP4_MOE, ROLE_EXPERTS, ALWAYS, WICK_MXFP4},
};

const wk_mix *wk_mix_get(size_t index) { return index < MIX_COUNT ? &mixes[index] : NULL; }

static char upper(char c) { return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c); }

const wk_mix *wk_mix_find(const char *name) {
    for (size_t i = 0; i < MIX_COUNT; i++) {
        const char *a = name, *b = mixes[i].name;
        while (*a != '\0' && upper(*a) == *b) a++, b++;
        if (*a == *b) return &mixes[i];
    }
    return NULL;
}

const char *wk_mix_name(const wk_mix *mix) { return mix->name; }

uint32_t wk_mix_file_type(const wk_mix *mix) { return mix->file_type; }

/* ---- The model ---- */

/* A number "ARCHITECTURE.NAME"; of an array (one number for each layer) the largest, as others do.
 * otherwise where there is none. */
static uint32_t read_number(const wk_gguf *gguf, const char *name, uint32_t otherwise) {
    const wick_value *const architecture = wk_gguf_find(gguf, "general.architecture");
    if (architecture == NULL || architecture->type != WICK_VALUE_STRING) return otherwise;
    char key[160];
    snprintf(key, sizeof key, "%.100s.%s", architecture->string.text, name);
    const wick_value *const value = wk_gguf_find(gguf, key);
    if (value == NULL) return otherwise;
    if (value->type == WICK_VALUE_U32 || value->type == WICK_VALUE_I32) return (uint32_t)value->u;
    if (value->type != WICK_VALUE_ARRAY || (value->array.element_type != WICK_VALUE_U32 &&
                                            value->array.element_type != WICK_VALUE_I32))
        return otherwise;
    uint32_t largest = 0;
    const uint32_t *const numbers = value->array.values;
    for (uint64_t i = 0; i < value->array.count; i++)
        largest = numbers[i] > largest ? numbers[i] : largest;
    return largest;
}

wk_mix_model wk_mix_model_of(const wk_gguf *gguf) {
    const uint32_t n_heads_q = read_number(gguf, "attention.head_count", 1);
    const uint32_t n_heads_kv = read_number(gguf, "attention.head_count_kv", n_heads_q);
    return (wk_mix_model){
        .n_layers = read_number(gguf, "block_count", 1),
        .n_experts = read_number(gguf, "expert_count", 0),
        .heads_per_kv = n_heads_kv > 0 ? n_heads_q / n_heads_kv : 1,
        .is_tied = wk_gguf_find_tensor(gguf, "output.weight") == NULL,
    };
}

/* ---- The tensor ---- */

static bool is_named(const wick_file_tensor *tensor, const char *glob) {
    return wk_str_matches(wk_str_of(glob), (wk_str){tensor->name.text, tensor->name.size});
}

/* Matrices that are read row by row, or too small and too sensitive to be worth it. */
static bool is_left_alone(const wick_file_tensor *tensor) {
    static const char *const globs[] = {
        "*_norm.weight",          "*ffn_gate_inp*",    "position_embd.*", "token_types.*",
        "*ssm_conv1d*",           "*shortconv.conv.*", "*time_mix_*",     "*attn_rel_b*",
        "per_layer_model_proj.*", "*altup*",           "*laurel*",        "*.patch_embd.*",
        "*indexer.proj*",         "*ffn_latent_*",
    };
    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++)
        if (is_named(tensor, globs[i])) return true;
    return false;
}

static role role_of(const wick_file_tensor *tensor) {
    if (is_named(tensor, "*attn_v.weight") || is_named(tensor, "*attn_v_b.weight")) return ROLE_V;
    if (is_named(tensor, "*attn_k.weight")) return ROLE_K;
    if (is_named(tensor, "*attn_qkv.weight")) return ROLE_QKV;
    if (is_named(tensor, "*attn_output.weight")) return ROLE_ATTN_OUTPUT;
    if (is_named(tensor, "*ffn_down*")) return ROLE_DOWN;
    return is_named(tensor, "*_exps.weight") ? ROLE_EXPERTS : ROLE_OTHER;
}

/* N of "blk.N."; 0 for tensors outside of blocks. */
static uint32_t layer_of(const wick_file_tensor *tensor) {
    if (!is_named(tensor, "blk.*")) return 0;
    return (uint32_t)strtoul(tensor->name.text + 4, NULL, 10);
}

static bool does_hold(condition c, uint32_t layer, const wk_mix_model *model) {
    const uint32_t n = model->n_layers, eighth = n / 8;
    switch (c) {
    case ALWAYS: return true;
    case FIRST_2: return layer < 2;
    case FIRST_4: return layer < 4;
    case FIRST_SIXTEENTH: return layer < n / 16;
    case FIRST_EIGHTH: return layer < eighth;
    case OUTER_AND_THIRD: return layer < eighth || layer >= 7 * n / 8 || (layer - eighth) % 3 == 2;
    case SHARED_HEADS: return model->heads_per_kv >= 4;
    }
    return false;
}

static wick_dtype wanted_dtype(const wk_mix *mix, const wk_mix_model *model,
                               const wick_file_tensor *tensor) {
    const mix_id id = (mix_id)(mix - mixes);
    const role r = role_of(tensor);
    const bool is_embedding = is_named(tensor, "token_embd.weight");
    if (is_named(tensor, "output.weight") || (is_embedding && model->is_tied)) return mix->output;
    /* With experts, attention is a small part of the whole. */
    const bool is_quantized = wk_dtype_is_block(mix->base);
    if (model->n_experts == 8 && is_quantized && (r == ROLE_V || r == ROLE_K)) return WICK_Q8_0;
    const uint32_t layer = layer_of(tensor);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const bool is_experts = rules[i].role == ROLE_EXPERTS && is_named(tensor, "*_exps.weight");
        if (rules[i].mix == id && (rules[i].role == r || is_experts) &&
            does_hold(rules[i].condition, layer, model))
            return rules[i].dtype;
    }
    return mix->base;
}

/* What rows of k elements get instead: of blocks of 32, with as many bits or more. */
static wick_dtype fallback(wick_dtype dtype, int64_t k) {
    if (k % wk_dtype_get(dtype)->block_elements == 0) return dtype;
    switch (dtype) {
    case WICK_Q2_K:
    case WICK_Q3_K:
    case WICK_IQ4_XS: dtype = WICK_IQ4_NL; break;
    case WICK_Q4_K: dtype = WICK_Q5_0; break;
    case WICK_Q5_K: dtype = WICK_Q5_1; break;
    case WICK_Q6_K: dtype = WICK_Q8_0; break;
    default: return WICK_F16;
    }
    return k % wk_dtype_get(dtype)->block_elements == 0 ? dtype : WICK_F16;
}

wick_dtype wk_mix_dtype(const wk_mix *mix, const wk_mix_model *model,
                        const wick_file_tensor *tensor, bool *is_fallback) {
    *is_fallback = false;
    const bool is_decodable = wk_dtype_is_block(tensor->dtype) || wk_can_encode(tensor->dtype);
    if (tensor->shape.rank < 2 || !is_decodable || !is_named(tensor, "*.weight") ||
        is_left_alone(tensor))
        return tensor->dtype;
    const wick_dtype wanted = wanted_dtype(mix, model, tensor);
    const wick_dtype dtype = fallback(wanted, tensor->shape.extent[tensor->shape.rank - 1]);
    *is_fallback = dtype != wanted;
    return dtype;
}
