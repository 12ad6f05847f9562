/* convert/hf_config.c: see hf_config.h. */
#include "convert/hf_config.h"

#include "convert/hf_blocks.h"
#include "convert/hf_keys.h"
#include "convert/hf_rope.h"
#include "core/compiler.h"
#include "core/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wick_status add_real(wk_json *config, const wk_hf_number *number, wk_value_list *values,
                            wick_error *err) {
    double real = 0.0;
    WK_TRY(wk_hf_read_f64(config, number->config, &real, err));
    if (number->kind == WK_HF_INVERSE_ROOT) {
        if (!(real > 0.0)) return wk_hf_fail_number(err, number->config, "not positive");
        real = 1.0 / sqrt(real);
    }
    wk_value_list_f32(values, number->gguf, real);
    return WICK_OK;
}

static wick_status add_of_two(wk_json *config, const wk_hf_number *number, wk_value_list *values,
                              wick_error *err) {
    const size_t n = strcspn(number->config, "*+");
    const bool is_sum = number->config[n] == '+';
    char first[64];
    uint32_t a = 0, b = 0;
    snprintf(first, sizeof first, "%.*s", (int)n, number->config);
    WK_TRY(wk_hf_read_u32(config, first, &a, err));
    WK_TRY(wk_hf_read_u32(config, number->config + n + 1, &b, err));
    const uint64_t both = is_sum ? (uint64_t)a + b : (uint64_t)a * b;
    if (both > UINT32_MAX) return wk_hf_fail_number(err, first, "too large");
    wk_value_list_u32(values, number->gguf, (uint32_t)both);
    return WICK_OK;
}

/* A number where there is no list. */
static wick_status add_leading(wk_json *config, const wk_hf_number *number, wk_value_list *values,
                               wick_error *err) {
    char key[64];
    const char *const others = wk_hf_split_keys(number->config, key);
    const wk_json *const list = wk_hf_get(config, key);
    uint32_t n = 0, i = 0;
    if (list == NULL || list->kind != WK_JSON_ARRAY) {
        WK_TRY(wk_hf_read_u32(config, others, &n, err));
    } else {
        (void)wk_hf_find(config, others); /* the list counts */
        for (const wk_json *item = list->child; item != NULL; item = item->next, i++) {
            if (n == i && wk_str_is(item->string, "dense"))
                n++;
            else if (!wk_str_is(item->string, "sparse"))
                return wk_hf_fail_number(err, key, "not \"dense\", then \"sparse\"");
        }
    }
    wk_value_list_u32(values, number->gguf, n);
    return WICK_OK;
}

static wick_status add_step_rank(wk_json *config, const wk_json *item, const wk_hf_number *number,
                                 wk_value_list *values, wick_error *err) {
    uint32_t rank = 0;
    if (item != NULL && wk_str_is(item->string, "auto")) {
        WK_TRY(wk_hf_read_u32(config, WK_HF_N_EMBD, &rank, err));
        rank = rank / 16 + (rank % 16 > 0);
    } else {
        WK_TRY(wk_hf_read_u32(config, number->config, &rank, err));
    }
    wk_value_list_u32(values, number->gguf, rank);
    return WICK_OK;
}

/* JSON has no infinity: it is an object there, or left out. */
static wick_status check_unlimited(const wk_json *list, const wk_hf_number *number,
                                   wick_error *err) {
    const wk_json *const first = list->kind == WK_JSON_ARRAY ? list->child : NULL;
    if (first != NULL && first->kind == WK_JSON_NUMBER && first->number == 0.0 &&
        first->next != NULL && first->next->kind != WK_JSON_NUMBER)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "config.json: '%.*s' is not from 0 to infinity: such limits cannot be converted",
                   (int)strcspn(number->config, "|"), number->config);
}

static wick_status add_gating(const wk_json *item, const wk_hf_number *number,
                              wk_value_list *values, wick_error *err) {
    const bool is_softmax = item != NULL && wk_str_is(item->string, "softmax");
    if (!is_softmax && (item == NULL || !wk_str_is(item->string, "sigmoid")))
        return wk_hf_fail_number(err, number->config, "neither softmax nor sigmoid");
    wk_value_list_u32(values, number->gguf, is_softmax ? 3 : 2);
    return WICK_OK;
}

static wick_status add_true(const wk_json *item, const wk_hf_number *number, wk_value_list *values,
                            wick_error *err) {
    if (item == NULL || item->kind != WK_JSON_BOOL || !item->boolean)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: '%s' is not true, which cannot be converted yet",
                       number->config);
    if (number->gguf != NULL) wk_value_list_bool(values, number->gguf, true);
    return WICK_OK;
}

static wick_status add_number(wk_json *config, const wk_hf_number *number, wk_value_list *values,
                              wick_error *err) {
    const wk_json *const item = wk_hf_find(config, number->config);
    const bool is_null = item == NULL && wk_hf_get(config, number->config) != NULL;
    if (is_null && number->kind == WK_HF_CAP) wk_value_list_f32(values, number->gguf, 0.0);
    if (item == NULL && number->is_optional) return WICK_OK;
    uint32_t whole = 0;
    switch (number->kind) {
    case WK_HF_U32:
        WK_TRY(wk_hf_read_u32(config, number->config, &whole, err));
        wk_value_list_u32(values, number->gguf, whole);
        return WICK_OK;
    case WK_HF_F32:
    case WK_HF_CAP:
    case WK_HF_INVERSE_ROOT: return add_real(config, number, values, err);
    case WK_HF_OF_TWO: return add_of_two(config, number, values, err);
    case WK_HF_STEP_RANK: return add_step_rank(config, item, number, values, err);
    case WK_HF_UNLIMITED: return check_unlimited(item, number, err);
    case WK_HF_GATING: return add_gating(item, number, values, err);
    case WK_HF_LEADING: return add_leading(config, number, values, err);
    case WK_HF_TRUE: return add_true(item, number, values, err);
    case WK_HF_CONSTANT:
        wk_value_list_u32(values, number->gguf, (uint32_t)strtoul(number->config, NULL, 10));
        return WICK_OK;
    case WK_HF_BOOL: break;
    }
    if (item == NULL || item->kind != WK_JSON_BOOL)
        return wk_hf_fail_number(err, number->config, "neither true nor false");
    wk_value_list_bool(values, number->gguf, item->boolean);
    return WICK_OK;
}

static wick_status add_numbers(wk_json *config, const wk_hf_number *numbers, wk_value_list *values,
                               wick_error *err) {
    for (; numbers != NULL && numbers->config != NULL; numbers++)
        WK_TRY(add_number(config, numbers, values, err));
    return WICK_OK;
}

static const wk_hf_number common[] = {
    {"num_hidden_layers|n_layer", ".block_count", WK_HF_U32, false},
    {WK_HF_N_EMBD, ".embedding_length", WK_HF_U32, false},
    {WK_HF_N_HEADS, ".attention.head_count", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number context[] = {
    {"max_position_embeddings|n_positions", ".context_length", WK_HF_U32, false},
    {.config = NULL},
};
static const wk_hf_number rms_norm[] = {
    {"rms_norm_eps", ".attention.layer_norm_rms_epsilon", WK_HF_F32, false},
    {.config = NULL},
};
static const wk_hf_number layer_norm[] = {
    {"layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps", ".attention.layer_norm_epsilon",
     WK_HF_F32, false},
    {.config = NULL},
};

/* What GPT-2, GPT-NeoX and Falcon do not say is four times the channels. */
static wick_status add_sizes(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                             wick_error *err) {
    const char ff_keys[] =
        "prefix_dense_intermediate_size|intermediate_size|n_inner|ffn_hidden_size";
    const bool says_ff = wk_hf_find(config, ff_keys) != NULL;
    const bool is_old = family->traits & (WK_HF_TRANSPOSED | WK_HF_GROUPED_QKV);
    uint32_t n_ff = 0;
    if (!says_ff && is_old) {
        WK_TRY(wk_hf_read_u32(config, WK_HF_N_EMBD, &n_ff, err));
        n_ff = n_ff <= UINT32_MAX / 4 ? 4 * n_ff : 0;
    } else {
        WK_TRY(wk_hf_read_u32(config, ff_keys, &n_ff, err));
    }
    if (!(family->traits & WK_HF_BLOCKS)) wk_value_list_u32(values, ".feed_forward_length", n_ff);
    return add_numbers(config, context, values, err);
}

/* Which layers have a window: as a list, or every layer but each nth one. */
static wick_status add_windows(wk_json *config, wk_value_list *values, wick_error *err) {
    static const char key[] = ".attention.sliding_window_pattern";
    static const wk_hf_number period[] = {
        {"sliding_window_pattern|_sliding_window_pattern|global_attn_every_n_layers", key,
         WK_HF_U32, true},
        {.config = NULL},
    };
    const wk_json *const types = wk_hf_find(config, "layer_types");
    if (types == NULL) return add_numbers(config, period, values, err);
    (void)wk_hf_find(config, period->config); /* the list counts */
    if (types->kind != WK_JSON_ARRAY) return wk_hf_fail_number(err, "layer_types", "no list");
    bool *const has_window = wk_arena_array(values->arena, types->count, sizeof *has_window);
    if (has_window == NULL) return wk_fail_memory(err, types->count, "the layers of a model");
    size_t n = 0;
    for (const wk_json *item = types->child; item != NULL; item = item->next, n++) {
        has_window[n] = wk_str_is(item->string, "sliding_attention");
        if (!has_window[n] && !wk_str_is(item->string, "full_attention"))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "config.json: layers of the type '%s' cannot be converted yet",
                           wk_str_show(item->string).text);
    }
    wk_value_list_array(values, key, WICK_VALUE_BOOL, has_window, n);
    return WICK_OK;
}

static wick_status add_heads(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                             wick_error *err) {
    if (family->traits & WK_HF_SOME_ATTENTION)
        WK_TRY(wk_hf_add_blocks(family, config, values, err));
    else
        wk_value_list_u32(values, ".attention.head_count_kv", wk_hf_read_heads(config).n_kv);
    const bool is_said = wk_hf_find(config, "head_dim") != NULL;
    if (!is_said || family->traits & WK_HF_LATENT) return WICK_OK;
    uint32_t head_dim = 0;
    WK_TRY(wk_hf_head_dim(config, &head_dim, err));
    wk_value_list_u32(values, ".attention.key_length", head_dim);
    wk_value_list_u32(values, ".attention.value_length", head_dim);
    return WICK_OK;
}

static wick_status add_rotated(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                               wick_error *err) {
    const char part[] = "partial_rotary_factor|rotary_pct|rope_pct";
    double factor = 1.0;
    uint32_t head_dim = 0;
    WK_TRY(wk_hf_head_dim(config, &head_dim, err));
    if (wk_hf_find(config, part) != NULL) WK_TRY(wk_hf_read_f64(config, part, &factor, err));
    if (!(factor > 0.0 && factor <= 1.0)) return wk_hf_fail_number(err, part, "not from 0 to 1");
    if (factor < 1.0 && family->traits & WK_HF_PERMUTED_HEADS)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: '%s' is %g, but '%s' models rotate whole heads",
                       "partial_rotary_factor", factor, family->model_type);
    if (factor < 1.0 || family->traits & (WK_HF_PERMUTED_HEADS | WK_HF_ROPE_DIMENSION))
        wk_value_list_u32(values, ".rope.dimension_count", (uint32_t)(factor * head_dim));
    return WICK_OK;
}

/* ---- What no key of GGUF says ---- */

static bool is_one_of(wk_str text, const char *const *names) {
    for (; *names != NULL; names++)
        if (wk_str_is(text, *names)) return true;
    return false;
}

/* The architecture has one activation. Gemma's first files call theirs gelu, and mean the one with
 * tanh, as hidden_activation says since. */
static wick_status check_activation(const wk_hf_family *family, wk_json *config, wick_error *err) {
    static const char *const silu[] = {"silu", "swish", NULL};
    static const char *const by_erf[] = {"gelu", "gelu_python", NULL};
    static const char *const by_tanh[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast",
                                          "gelu_accurate", NULL};
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function",
                                       "activation"};
    static const char *const xielu[] = {"xielu", NULL}, *const relu_squared[] = {"relu2", NULL};
    const uint32_t traits = family->traits;
    const bool is_gemma = traits & WK_HF_NORMS_FROM_ZERO && traits & WK_HF_GELU;
    const char *const *const own = traits & WK_HF_GELU           ? by_tanh
                                   : traits & WK_HF_GELU_ERF     ? by_erf
                                   : traits & WK_HF_XIELU        ? xielu
                                   : traits & WK_HF_RELU_SQUARED ? relu_squared
                                                                 : silu;
    for (size_t i = 0; i < WK_COUNT(keys); i++) {
        const wk_json *const act = wk_hf_get(config, keys[i]);
        if (act == NULL || act->kind == WK_JSON_NULL) continue;
        if (is_one_of(act->string, own)) continue;
        if (is_gemma && i > 0 && is_one_of(act->string, by_erf)) continue;
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: '%s' models with the activation '%s' cannot be converted",
                       family->model_type, wk_str_show(act->string).text);
    }
    return WICK_OK;
}

/* SmolLM3: every fourth layer does not rotate, and is 0 in a list of all layers. */
static wick_status check_rotated_layers(wk_json *config, wick_error *err) {
    const wk_json *const list = wk_hf_get(config, "no_rope_layers");
    const wk_json *const period = wk_hf_get(config, "no_rope_layer_interval");
    const bool is_list = list != NULL && list->kind == WK_JSON_ARRAY;
    bool is_usual = is_list || period == NULL || (period->is_integer && period->integer == 4);
    int64_t i = 0;
    for (const wk_json *item = is_list ? list->child : NULL; item != NULL; item = item->next)
        is_usual &= item->is_integer && item->integer == (++i % 4 != 0);
    if (is_usual) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "config.json: '%s' must leave every fourth layer without positions: other"
                   " choices cannot be converted",
                   is_list ? "no_rope_layers" : "no_rope_layer_interval");
}

static wick_status add_positions(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                                 wick_error *err) {
    if (!(family->traits & WK_HF_LATENT)) WK_TRY(add_rotated(family, config, values, err));
    WK_TRY(wk_hf_add_rope(family, config, values, err));
    if (family->traits & WK_HF_WINDOWS) WK_TRY(add_windows(config, values, err));
    return family->traits & WK_HF_FOURTH_UNROTATED ? check_rotated_layers(config, err) : WICK_OK;
}

wick_status wk_hf_describe(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                           wick_error *err) {
    const bool has_layer_norm = family->traits & WK_HF_LAYER_NORM;
    WK_TRY(check_activation(family, config, err));
    WK_TRY(add_numbers(config, common, values, err));
    WK_TRY(add_sizes(family, config, values, err));
    WK_TRY(add_numbers(config, has_layer_norm ? layer_norm : rms_norm, values, err));
    WK_TRY(add_numbers(config, family->numbers, values, err));
    const bool is_encoder = family->traits & WK_HF_ENCODER;
    if (is_encoder) wk_value_list_bool(values, ".attention.causal", false);
    if (is_encoder && family->traits & WK_HF_LEARNED_POSITIONS) return WICK_OK;
    WK_TRY(add_heads(family, config, values, err));
    if (!(family->traits & WK_HF_LEARNED_POSITIONS))
        WK_TRY(add_positions(family, config, values, err));
    if (!(family->traits & WK_HF_PERMUTED_HEADS)) return WICK_OK;
    uint32_t n_vocab = 0;
    WK_TRY(wk_hf_read_u32(config, "vocab_size", &n_vocab, err));
    wk_value_list_u32(values, ".vocab_size", n_vocab);
    return WICK_OK;
}
