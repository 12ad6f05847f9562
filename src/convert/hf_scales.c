/* convert/hf_scales.c: see hf_scales.h. */
#include "convert/hf_scales.h"

#include "convert/hf_kinds.h"
#include "core/compiler.h"
#include "core/status.h"

#include <math.h>

/* A weight's multiplier is the product of all that name it. list: the key is that of a list, of
 * which this is the item. */
static const struct {
    const char *tensor, *key;
    int item; /* -1: no list */
} scales[] = {
    {"token_embd.weight", "embedding_multiplier", -1},
    {"output.weight", "lm_head_multiplier", -1},
    {"*.attn_q.weight", "attention_in_multiplier", -1},
    {"*.attn_k.weight", "attention_in_multiplier", -1},
    {"*.attn_k.weight", "key_multiplier", -1},
    {"*.attn_v.weight", "attention_in_multiplier", -1},
    {"*.attn_output.weight", "attention_out_multiplier", -1},
    {"*.ffn_gate.weight", "mlp_multipliers", 0},
    {"*.ffn_down.weight", "mlp_multipliers", 1},
    {"*.ssm_in.weight", "ssm_in_multiplier", -1},
    {"*.ssm_out.weight", "ssm_out_multiplier", -1},
};

/* 1 where the key, or the list, is missing or null. */
static wick_status read_scale(wk_json *config, const char *key, int at, float *out,
                              wick_error *err) {
    const wk_json *item = wk_hf_find(config, key);
    *out = 1.0F;
    if (item == NULL) return WICK_OK;
    if (at >= 0) item = item->kind == WK_JSON_ARRAY ? item->child : NULL;
    for (; item != NULL && at > 0; at--) item = item->next;
    if (item != NULL && item->kind == WK_JSON_NUMBER && isfinite(item->number)) {
        *out = (float)item->number;
        if (*out != 0.0F) return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' must be numbers other than 0", key);
}

/* Rows of the first matrix of Mamba 2: the gate, x, B and C of all groups, and a step for each
 * head. */
static wick_status read_row_scales(wk_json *config, wk_arena *arena, int64_t n_rows,
                                   const float **out, wick_error *err) {
    uint32_t inner = 0, n_groups = 0, n_numbers = 0;
    WK_TRY(wk_hf_read_u32(config, "mamba_d_ssm", &inner, err));
    WK_TRY(wk_hf_read_u32(config, "mamba_n_groups", &n_groups, err));
    WK_TRY(wk_hf_read_u32(config, "mamba_d_state", &n_numbers, err));
    const int64_t n_b = (int64_t)n_groups * n_numbers;
    const int64_t ends[] = {inner, 2 * (int64_t)inner, 2 * (int64_t)inner + n_b,
                            2 * (int64_t)inner + 2 * n_b};
    float *const made = wk_arena_array(arena, (size_t)n_rows, sizeof *made);
    if (made == NULL) return wk_fail_memory(err, 0, "multipliers of rows");
    int part = 0;
    float scale = 1.0F;
    WK_TRY(read_scale(config, "ssm_multipliers", 0, &scale, err));
    for (int64_t row = 0; row < n_rows; row++) {
        while (part < (int)WK_COUNT(ends) && row >= ends[part])
            WK_TRY(read_scale(config, "ssm_multipliers", ++part, &scale, err));
        made[row] = scale;
    }
    *out = made;
    return WICK_OK;
}

/* What stands beside a scaled matrix, or is it and another one, would not be scaled rightly. */
static wick_status check(wk_json *config, wk_str name, wick_error *err) {
    static const char *const biases[] = {"*.attn_*.bias", "*.ffn_*.bias", "*.ssm_in.bias",
                                         "*.ssm_out.bias"};
    for (size_t i = 0; i < WK_COUNT(biases); i++)
        if (wk_str_matches(wk_str_of(biases[i]), name))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "the bias '%s' beside a matrix with a multiplier cannot be converted",
                           wk_str_show(name).text);
    const wk_json *const before = wk_hf_get(config, "mamba_norm_before_gate");
    const bool is_after = before != NULL && before->kind == WK_JSON_BOOL && !before->boolean;
    if (is_after || !wk_str_matches(wk_str_of("*.ssm_norm.weight"), name)) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "config.json: 'mamba_norm_before_gate' is true, or missing, which means true:"
                   " models with this setting and mamba_rms_norm cannot be converted");
}

static wick_status add_scale(wk_json *config, size_t at, wk_str name, wk_hf_source *source,
                             wick_error *err) {
    float scale = 1.0F;
    if (!wk_str_matches(wk_str_of(scales[at].tensor), name)) return WICK_OK;
    WK_TRY(read_scale(config, scales[at].key, scales[at].item, &scale, err));
    source->scale = source->scale != 0.0F ? source->scale * scale : scale;
    return WICK_OK;
}

wick_status wk_hf_add_scales(wk_json *config, wk_hf_plan *plan, wk_arena *arena, wick_error *err) {
    const wk_json *const tied = wk_hf_get(config, "tie_word_embeddings");
    if (tied != NULL && tied->kind == WK_JSON_BOOL && tied->boolean)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: 'tie_word_embeddings' is true: the multipliers of embedding"
                       " and output cannot be part of one matrix");
    for (size_t i = 0; i < plan->n; i++) {
        const wk_str name = {plan->tensors[i].name.text, plan->tensors[i].name.size};
        wk_hf_source *const source = &plan->sources[i];
        WK_TRY(check(config, name, err));
        for (size_t k = 0; k < WK_COUNT(scales); k++)
            WK_TRY(add_scale(config, k, name, source, err));
        const wick_shape *const shape = &source->parts[0]->shape;
        if (wk_str_matches(wk_str_of("*.ssm_in.weight"), name) && shape->rank == 2)
            WK_TRY(read_row_scales(config, arena, shape->extent[0], &source->scales, err));
    }
    return WICK_OK;
}
