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
    ROLE_V, /* alone, or one with q and k, or what it is expanded by */
    ROLE_K,
    ROLE_ATTN_OUTPUT,
    ROLE_DOWN,
    ROLE_EXPERTS, /* any other matrix of experts */
    ROLE_OTHER,
} role;

typedef enum condition {
    ALWAYS,
    FIRST_2, /* of the tensors of the role */
    FIRST_4,
    FIRST_SIXTEENTH,
    FIRST_EIGHTH,
    FIRST_EIGHTH_GUIDED,   /* where there is an importance matrix */
    FIRST_EIGHTH_UNGUIDED, /* where there is none */
    OUTER_AND_THIRD,       /* the first and the last eighth, and every third one between */
    SHARED_HEADS,          /* 4 query heads or more to a key head: the matrix is small */
    EIGHT_EXPERTS,         /* attention is a small part of the whole */
} condition;

typedef struct rule {
    mix_id mix;
    role role;
    condition condition;
    wick_dtype dtype;
} rule;

/* The first that fits counts. */
static const rule rules[] = {
    {MIX_Q4_0, ROLE_DOWN, FIRST_EIGHTH_GUIDED, WICK_Q4_1},
    {MIX_Q5_0, ROLE_DOWN, FIRST_EIGHTH_GUIDED, WICK_Q5_1},
    {MIX_Q2_K_S, ROLE_V, SHARED_HEADS, WICK_Q4_K},
    {MIX_Q2_K_S, ROLE_DOWN, FIRST_EIGHTH, WICK_Q4_K},
    {MIX_Q2_K, ROLE_V, SHARED_HEADS, WICK_Q4_K},
    {MIX_Q2_K, ROLE_V, ALWAYS, WICK_Q3_K},
    {MIX_Q2_K, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_Q2_K, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q3_K},
    {MIX_Q2_K, ROLE_DOWN, ALWAYS, WICK_Q3_K},
    {MIX_Q3_K_S, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_V, FIRST_2, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_V, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_DOWN, FIRST_SIXTEENTH, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_DOWN, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_L, ROLE_V, ALWAYS, WICK_Q5_K},
    {MIX_Q3_K_L, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q3_K},
    {MIX_Q3_K_L, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q5_K},
    {MIX_Q3_K_L, ROLE_DOWN, ALWAYS, WICK_Q5_K},
    {MIX_Q4_K_S, ROLE_V, FIRST_4, WICK_Q5_K},
    {MIX_Q4_K_S, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_Q4_K_S, ROLE_DOWN, FIRST_EIGHTH, WICK_Q5_K},
    {MIX_Q4_K_M, ROLE_V, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q4_K_M, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_Q4_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q5_K_M, ROLE_V, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_Q5_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q6_K},
    {MIX_IQ4_NL, ROLE_V, SHARED_HEADS, WICK_Q5_K},
    {MIX_IQ4_NL, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_IQ4_NL, ROLE_DOWN, FIRST_EIGHTH_UNGUIDED, WICK_Q5_K},
    {MIX_IQ4_XS, ROLE_V, SHARED_HEADS, WICK_Q5_K},
    {MIX_IQ4_XS, ROLE_ATTN_OUTPUT, EIGHT_EXPERTS, WICK_Q5_K},
    {MIX_IQ4_XS, ROLE_DOWN, FIRST_EIGHTH_UNGUIDED, WICK_Q5_K},
    {MIX_MXFP4_MOE, ROLE_EXPERTS, ALWAYS, WICK_MXFP4},
};

/* Falcon's own, before the others. */
static const rule falcon_rules[] = {
    {MIX_Q2_K, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q2_K},
    {MIX_Q3_K_M, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q3_K},
    {MIX_Q3_K_M, ROLE_DOWN, FIRST_SIXTEENTH, WICK_Q5_K},
    {MIX_Q3_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q4_K},
    {MIX_Q3_K_M, ROLE_DOWN, ALWAYS, WICK_Q3_K},
    {MIX_Q3_K_L, ROLE_ATTN_OUTPUT, ALWAYS, WICK_Q4_K},
    {MIX_Q3_K_L, ROLE_DOWN, ALWAYS, WICK_Q4_K},
    {MIX_Q4_K_S, ROLE_DOWN, ALWAYS, WICK_Q4_K},
    {MIX_Q4_K_M, ROLE_DOWN, FIRST_SIXTEENTH, WICK_Q6_K},
    {MIX_Q4_K_M, ROLE_DOWN, OUTER_AND_THIRD, WICK_Q5_K},
    {MIX_Q4_K_M, ROLE_DOWN, ALWAYS, WICK_Q4_K},
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

static bool is_architecture(const wk_gguf *gguf, const char *name) {
    const wick_value *const value = wk_gguf_find(gguf, "general.architecture");
    return value != NULL && value->type == WICK_VALUE_STRING &&
           wk_str_is((wk_str){value->string.text, value->string.size}, name);
}

/* A number "ARCHITECTURE.NAME"; of an array (one number for each layer) the first, as others do.
 * otherwise where there is none. */
static uint32_t read_number(const wk_gguf *gguf, const char *name, uint32_t otherwise) {
    const wick_value *const architecture = wk_gguf_find(gguf, "general.architecture");
    if (architecture == NULL || architecture->type != WICK_VALUE_STRING) return otherwise;
    char key[160];
    snprintf(key, sizeof key, "%.100s.%s", architecture->string.text, name);
    const wick_value *const value = wk_gguf_find(gguf, key);
    if (value == NULL) return otherwise;
    if (value->type == WICK_VALUE_U32 || value->type == WICK_VALUE_I32) return (uint32_t)value->u;
    const bool is_list = value->type == WICK_VALUE_ARRAY && value->array.count > 0 &&
                         (value->array.element_type == WICK_VALUE_U32 ||
                          value->array.element_type == WICK_VALUE_I32);
    return is_list ? *(const uint32_t *)value->array.values : otherwise;
}

wk_mix_model wk_mix_model_of(const wk_gguf *gguf, bool is_guided) {
    const uint32_t n_heads_q = read_number(gguf, "attention.head_count", 1);
    const uint32_t n_heads_kv = read_number(gguf, "attention.head_count_kv", n_heads_q);
    const uint32_t n_layers = read_number(gguf, "block_count", 1);
    const bool is_llama = is_architecture(gguf, "llama") || is_architecture(gguf, "qwen2") ||
                          is_architecture(gguf, "deci");
    return (wk_mix_model){
        .gguf = gguf,
        .n_layers = n_layers,
        .n_experts = read_number(gguf, "expert_count", 0),
        .heads_per_kv = n_heads_kv > 0 ? n_heads_q / n_heads_kv : 0,
        .is_tied = wk_gguf_find_tensor(gguf, "output.weight") == NULL,
        .is_guided = is_guided,
        .is_falcon = is_architecture(gguf, "falcon"),
        .is_70b = is_llama && n_layers == 80 && n_heads_q != n_heads_kv,
    };
}

/* ---- The tensor ---- */

static bool is_named(const wick_file_tensor *tensor, const char *glob) {
    return wk_str_matches(wk_str_of(glob), (wk_str){tensor->name.text, tensor->name.size});
}

/* Of more than one row. */
static bool is_matrix(const wick_file_tensor *tensor) {
    bool has_rows = false;
    for (int i = 0; i + 1 < tensor->shape.rank; i++)
        has_rows = has_rows || tensor->shape.extent[i] > 1;
    return has_rows;
}

/* Matrices that are read row by row, or too small and too sensitive to be worth it. */
static bool is_left_alone(const wick_file_tensor *tensor) {
    static const char *const globs[] = {
        "*_norm.weight",
        "*ffn_gate_inp.weight",
        "*position_embd.weight",
        "token_types.weight",
        "*ssm_conv1d*",
        "*shortconv.conv.weight",
        "*time_mix_first.weight",
        "*time_mix_??.weight", /* w0, a1 ... */
        "*time_mix_decay_w?.weight",
        "*time_mix_lerp_fused.weight",
        "*attn_rel_b.weight",
        "*per_layer_model_proj*",
        "*altup*",
        "*laurel*",
        "*.patch_embd*",
        "*.patch_merger*",
        "*.rel_pos*",
        "*indexer.?_proj.weight",
    };
    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++)
        if (is_named(tensor, globs[i])) return true;
    return false;
}

static role role_of(const wick_file_tensor *tensor) {
    if (is_named(tensor, "*attn_v.weight") || is_named(tensor, "*attn_qkv.weight") ||
        is_named(tensor, "*attn_kv_b.weight"))
        return ROLE_V;
    if (is_named(tensor, "*attn_k.weight")) return ROLE_K;
    if (is_named(tensor, "*attn_output.weight")) return ROLE_ATTN_OUTPUT;
    if (is_named(tensor, "*ffn_down*.weight")) return ROLE_DOWN;
    return is_named(tensor, "*_exps.weight") ? ROLE_EXPERTS : ROLE_OTHER;
}

/* N of "blk.N."; -1 for tensors outside of blocks. */
static long layer_of(const wick_file_tensor *tensor) {
    return is_named(tensor, "blk.*") ? strtol(tensor->name.text + 4, NULL, 10) : -1;
}

/* A tensor among those of its role. */
typedef struct place {
    uint32_t index, count;
} place;

/* By layers, then by names. Experts have several tensors down in a layer, so the layer counts. */
static place place_of(const wk_mix_model *model, const wick_file_tensor *tensor, role r) {
    const long layer = layer_of(tensor);
    if (r == ROLE_DOWN && model->n_experts > 1)
        return (place){layer > 0 ? (uint32_t)layer : 0, model->n_layers};
    place found = {0, 0};
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_file_tensor *const other = &model->gguf->tensors[i];
        if (role_of(other) != r) continue;
        const long other_layer = layer_of(other);
        found.count++;
        if (other_layer < layer ||
            (other_layer == layer && strcmp(other->name.text, tensor->name.text) < 0))
            found.index++;
    }
    if (r == ROLE_DOWN) found.count = model->n_layers;
    return found;
}

static bool does_hold(condition c, const wk_mix_model *model, const wick_file_tensor *tensor) {
    if (c == ALWAYS) return true;
    if (c == SHARED_HEADS) return model->heads_per_kv >= 4;
    if (c == EIGHT_EXPERTS) return model->n_experts == 8;
    const place at = place_of(model, tensor, role_of(tensor));
    const uint32_t n = at.count, i = at.index, eighth = n / 8;
    switch (c) {
    case FIRST_2: return i < 2;
    case FIRST_4: return i < 4;
    case FIRST_SIXTEENTH: return i < n / 16;
    case FIRST_EIGHTH: return i < eighth;
    case FIRST_EIGHTH_GUIDED: return i < eighth && model->is_guided;
    case FIRST_EIGHTH_UNGUIDED: return i < eighth && !model->is_guided;
    case OUTER_AND_THIRD: return i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2;
    default: return false;
    }
}

/* *dtype stays as it is where no rule fits. */
static bool apply_rules(const rule *list, size_t n, mix_id mix, const wk_mix_model *model,
                        const wick_file_tensor *tensor, wick_dtype *dtype) {
    const role r = role_of(tensor);
    for (size_t i = 0; i < n; i++) {
        const bool is_experts = list[i].role == ROLE_EXPERTS && is_named(tensor, "*_exps.weight");
        if (list[i].mix != mix || (list[i].role != r && !is_experts)) continue;
        if (!does_hold(list[i].condition, model, tensor)) continue;
        *dtype = list[i].dtype;
        return true;
    }
    return false;
}

static wick_dtype output_dtype(const wk_mix *mix, const wk_mix_model *model) {
    return model->is_falcon && wk_dtype_is_block(mix->base) ? WICK_Q8_0 : mix->output;
}

static wick_dtype wanted_dtype(const wk_mix *mix, const wk_mix_model *model,
                               const wick_file_tensor *tensor) {
    const mix_id id = (mix_id)(mix - mixes);
    const role r = role_of(tensor);
    const bool is_embedding =
        is_named(tensor, "token_embd.weight") || is_named(tensor, "per_layer_token_embd.weight");
    if (is_named(tensor, "output.weight") || (is_embedding && model->is_tied))
        return output_dtype(mix, model);
    if (model->n_experts == 8 && wk_dtype_is_block(mix->base) && (r == ROLE_V || r == ROLE_K))
        return WICK_Q8_0;
    wick_dtype dtype = mix->base;
    const bool is_falcons =
        model->is_falcon && apply_rules(falcon_rules, sizeof falcon_rules / sizeof *falcon_rules,
                                        id, model, tensor, &dtype);
    if (!is_falcons)
        (void)apply_rules(rules, sizeof rules / sizeof *rules, id, model, tensor, &dtype);
    /* 8 query heads share each of its key heads: better values cost next to nothing. */
    const bool is_cheap = model->is_70b && r == ROLE_V;
    return is_cheap && (dtype == WICK_Q3_K || dtype == WICK_Q4_K) ? WICK_Q5_K : dtype;
}

/* What rows of k elements get instead: of blocks of 32, with as many bits or more. */
static wick_dtype fallback(wick_dtype dtype, int64_t k) {
    if (k % wk_dtype_get(dtype)->block_elements == 0) return dtype;
    switch (dtype) {
    case WICK_Q2_K:
    case WICK_Q3_K: dtype = WICK_Q4_0; break;
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
    if (!is_matrix(tensor) || !is_decodable || !is_named(tensor, "*.weight") ||
        is_left_alone(tensor))
        return tensor->dtype;
    const wick_dtype wanted = wanted_dtype(mix, model, tensor);
    const wick_dtype dtype = fallback(wanted, tensor->shape.extent[tensor->shape.rank - 1]);
    *is_fallback = dtype != wanted;
    return dtype;
}
