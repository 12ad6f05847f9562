/* convert/hf_rope.c: see hf_rope.h. */
#include "convert/hf_rope.h"

#include "convert/hf_keys.h"
#include "core/compiler.h"
#include "core/status.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_object(const wk_json *item) { return item != NULL && item->kind == WK_JSON_OBJECT; }

static const char theta_keys[] = "rope_theta|rotary_emb_base";
static const char original_key[] = "original_max_position_embeddings";

typedef struct scaling {
    wk_json *from; /* NULL: none */
    wk_str type;
} scaling;

static bool is_longrope(wk_str type) {
    return wk_str_is(type, "longrope") || wk_str_is(type, "su");
}

/* A second name with another value, or a value that is not a name, stays unread: it is refused. */
static scaling find_scaling(wk_json *config) {
    wk_json *const inner = wk_hf_rope_parameters(config);
    scaling found = {.from = inner != NULL ? inner : wk_hf_get(config, "rope_scaling")};
    wk_json *const names[] = {wk_hf_get(found.from, "rope_type"), wk_hf_get(found.from, "type")};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (names[i] == NULL || names[i]->kind == WK_JSON_NULL) continue;
        const wk_str type = names[i]->string;
        if (found.type.size == 0) found.type = type;
        names[i]->is_read = type.size > 0 && (wk_str_equal(type, found.type) ||
                                              (is_longrope(type) && is_longrope(found.type)));
    }
    if (found.from != NULL) found.from->is_read = is_object(found.from);
    if (found.type.size == 0 || wk_str_is(found.type, "default")) found.from = NULL;
    return found;
}

static wick_status read_positive(wk_json *from, const char *key, double *out, wick_error *err) {
    WK_TRY(wk_hf_read_f64(from, key, out, err));
    if (*out > 0.0) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%.*s' is %g, but must be positive",
                   (int)strcspn(key, "|"), key, *out);
}

/* The context before it was scaled: with the scaling, or beside it. */
static wick_status read_original(wk_json *config, wk_json *from, double *out, wick_error *err) {
    const bool is_inside = wk_hf_find(from, original_key) != NULL;
    return read_positive(is_inside ? from : config, original_key, out, err);
}

/* ---- Numbers ---- */

static wick_status add_positive(wk_json *from, const char *key, wk_value_list *values,
                                const char *gguf_key, wick_error *err) {
    double number = 0.0;
    WK_TRY(read_positive(from, key, &number, err));
    wk_value_list_f32(values, gguf_key, number);
    return WICK_OK;
}

static wick_status add_original(wk_json *config, wk_json *from, wk_value_list *values,
                                double *original, wick_error *err) {
    WK_TRY(read_original(config, from, original, err));
    wk_value_list_u32(values, ".rope.scaling.original_context_length",
                      (uint32_t)fmin(*original, INT32_MAX));
    return WICK_OK;
}

/* Of cos and sin: GGUF has what the paper's 1 + 0.1 ln(factor) is multiplied by. */
static wick_status add_magnitude(wk_json *from, wk_value_list *values, wick_error *err) {
    static const char key[] = "attention_factor";
    double magnitude = 0.0, factor = 0.0;
    if (wk_hf_find(from, key) == NULL) return WICK_OK;
    WK_TRY(read_positive(from, key, &magnitude, err));
    WK_TRY(read_positive(from, "factor", &factor, err));
    const double share = magnitude / (1.0 + 0.1 * log(fmax(factor, 1.0)));
    if (fabs(share - 1.0) > 1e-6) wk_value_list_f32(values, ".rope.scaling.attn_factor", share);
    return WICK_OK;
}

/* Ministral 3 takes YaRN's magnitude back, and its queries have a temperature instead. */
static wick_status add_warmth(wk_json *from, wk_value_list *values, wick_error *err) {
    double magnitude = 0.0;
    WK_TRY(read_positive(from, "mscale", &magnitude, err));
    if (magnitude != 1.0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: YaRN with an 'mscale' of %g cannot be converted yet",
                       magnitude);
    WK_TRY(add_positive(from, "mscale_all_dim", values, ".rope.scaling.yarn_log_multiplier", err));
    return add_positive(from, "llama_4_scaling_beta", values, ".attention.temperature_scale", err);
}

static wick_status add_yarn(const wk_hf_family *family, wk_json *config, wk_json *from,
                            wk_value_list *values, wick_error *err) {
    static const char *const betas[][2] = {{"beta_fast", ".rope.scaling.yarn_beta_fast"},
                                           {"beta_slow", ".rope.scaling.yarn_beta_slow"}};
    static const char *const others[] = {"mscale", "mscale_all_dim"};
    double original = 0.0;
    WK_TRY(add_original(config, from, values, &original, err));
    WK_TRY(add_magnitude(from, values, err));
    for (size_t i = 0; i < WK_COUNT(betas); i++)
        if (wk_hf_find(from, betas[i][0]) != NULL)
            WK_TRY(add_positive(from, betas[i][0], values, betas[i][1], err));
    if (family->traits & WK_HF_WARM_QUERIES) return add_warmth(from, values, err);
    for (size_t i = 0; i < WK_COUNT(others); i++)
        if (wk_hf_find(from, others[i]) != NULL)
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "config.json: YaRN with '%s' cannot be converted yet", others[i]);
    return WICK_OK;
}

/* LongRoPE is for a context that many times longer than the original, whatever else factor says. */
static wick_status check_ratio(wk_json *from, double ratio, wick_error *err) {
    double factor = 0.0;
    WK_TRY(read_positive(from, "factor", &factor, err));
    if (fabs(factor - ratio) <= 1e-6 * ratio) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "config.json: LongRoPE with a 'factor' of %g cannot be converted: the contexts"
                   " say %g",
                   factor, ratio);
}

/* Su's magnitude of cos and sin for a context that many times longer (Ding et al., 2024). */
static wick_status add_longrope(wk_json *config, wk_json *from, wk_value_list *values,
                                wick_error *err) {
    double original = 0.0, longest = 0.0;
    WK_TRY(add_original(config, from, values, &original, err));
    if (wk_hf_find(from, "attention_factor") != NULL) {
        (void)wk_hf_find(from, "factor"); /* counts only where attention_factor is missing */
        return add_positive(from, "attention_factor", values, ".rope.scaling.attn_factor", err);
    }
    WK_TRY(read_positive(config, "max_position_embeddings", &longest, err));
    const double ratio = longest / original;
    if (wk_hf_find(from, "factor") != NULL) WK_TRY(check_ratio(from, ratio, err));
    if (ratio > 1.0 && original > 1.0)
        wk_value_list_f32(values, ".rope.scaling.attn_factor",
                          sqrt(1.0 + log(ratio) / log(original)));
    return WICK_OK;
}

/* Of layers with a window, which may rotate otherwise than the others: Gemma 3's do, without a key
 * by 10000, which is GGUF's default, too. */
static wick_status add_window_theta(const wk_hf_family *family, wk_json *config,
                                    wk_value_list *values, wick_error *err) {
    static const char key[] = ".rope.freq_base_swa", local_key[] = "rope_local_base_freq";
    wk_json *const windowed = wk_hf_get(wk_hf_get(config, "rope_parameters"), "sliding_attention");
    const wk_json *const theta = wk_hf_find(windowed, "rope_theta");
    wk_json *const local = wk_hf_get(config, local_key);
    if (theta != NULL && local != NULL) local->is_read = local->number == theta->number;
    if (theta != NULL) return add_positive(windowed, "rope_theta", values, key, err);
    if (wk_hf_find(config, local_key) != NULL)
        return add_positive(config, local_key, values, key, err);
    if (family->traits & WK_HF_NORMS_FROM_ZERO || wk_hf_find(config, theta_keys) == NULL)
        return WICK_OK;
    return add_positive(config, theta_keys, values, key, err);
}

wick_status wk_hf_add_rope(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                           wick_error *err) {
    const scaling found = find_scaling(config);
    double original = 0.0;
    if (wk_hf_find(config, theta_keys) != NULL)
        WK_TRY(add_positive(config, theta_keys, values, ".rope.freq_base", err));
    if (family->traits & WK_HF_WINDOW_ROPE) WK_TRY(add_window_theta(family, config, values, err));
    if (found.from == NULL && wk_hf_find(config, original_key) != NULL)
        return add_original(config, NULL, values, &original, err); /* Phi-3 for short contexts */
    if (found.from == NULL || wk_str_is(found.type, "llama3")) return WICK_OK;
    if (is_longrope(found.type)) return add_longrope(config, found.from, values, err);
    const bool is_yarn = wk_str_is(found.type, "yarn");
    if (!is_yarn && !wk_str_is(found.type, "linear"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: rotary scaling of the type '%s' cannot be converted yet",
                       wk_str_show(found.type).text);
    wk_value_list_text(values, ".rope.scaling.type", found.type);
    WK_TRY(add_positive(found.from, "factor", values, ".rope.scaling.factor", err));
    return is_yarn ? add_yarn(family, config, found.from, values, err) : WICK_OK;
}

/* ---- Divisors ---- */

/* Llama 3: wave lengths beyond the original context are scaled by the factor, short ones not at
 * all, and those between partly. */
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

static float *make_divisors(wk_arena *arena, uint32_t n, const char *name, wk_hf_divisors *out) {
    float *const made = wk_arena_array(arena, n, sizeof *made);
    *out = (wk_hf_divisors){name, made, n};
    return made;
}

static wick_status uneven_divisors(wk_json *config, wk_json *from, wk_arena *arena,
                                   wk_hf_divisors *out, wick_error *err) {
    uneven_scaling s = {0};
    uint32_t head_dim = 0;
    WK_TRY(wk_hf_head_dim(config, &head_dim, err));
    WK_TRY(read_positive(config, theta_keys, &s.theta, err));
    WK_TRY(read_positive(from, "factor", &s.factor, err));
    WK_TRY(read_positive(from, "low_freq_factor", &s.low, err));
    WK_TRY(read_positive(from, "high_freq_factor", &s.high, err));
    WK_TRY(read_original(config, from, &s.context, err));
    float *const made = make_divisors(arena, head_dim / 2, "rope_freqs.weight", out);
    if (made == NULL) return wk_fail_memory(err, head_dim * 2, "rotary frequencies");
    for (uint32_t i = 0; i < head_dim / 2; i++)
        made[i] = divisor_of(&s, 2.0 * (double)i / (double)head_dim);
    return WICK_OK;
}

static wick_status listed_divisors(wk_json *from, const char *key, wk_arena *arena,
                                   const char *name, wk_hf_divisors *out, wick_error *err) {
    wk_json *const list = wk_hf_get(from, key);
    if (list == NULL || list->kind != WK_JSON_ARRAY || list->count > UINT16_MAX)
        return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' is missing, or no list", key);
    float *made = make_divisors(arena, (uint32_t)list->count, name, out);
    if (made == NULL) return wk_fail_memory(err, 0, "rotary frequencies");
    for (wk_json *item = list->child; item != NULL; item = item->next) {
        if (item->kind != WK_JSON_NUMBER)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "config.json: '%s' holds a value that is not a number", key);
        *made++ = (float)item->number;
    }
    return WICK_OK;
}

static wick_status make_all(wk_json *config, wk_arena *arena,
                            wk_hf_divisors out[WK_HF_MAX_DIVISORS], size_t *n, wick_error *err) {
    const scaling found = find_scaling(config);
    *n = 0;
    if (found.from != NULL && wk_str_is(found.type, "llama3")) {
        *n = 1;
        return uneven_divisors(config, found.from, arena, &out[0], err);
    }
    if (found.from == NULL || !is_longrope(found.type)) return WICK_OK;
    *n = 2;
    WK_TRY(listed_divisors(found.from, "long_factor", arena, "rope_factors_long.weight", &out[0],
                           err));
    return listed_divisors(found.from, "short_factor", arena, "rope_factors_short.weight", &out[1],
                           err);
}

wick_status wk_hf_rope_divisors(wk_json *config, wk_arena *arena,
                                wk_hf_divisors out[WK_HF_MAX_DIVISORS], size_t *n,
                                wick_error *err) {
    WK_TRY(make_all(config, arena, out, n, err));
    for (size_t i = 0; i < *n; i++) {
        for (uint32_t k = 0; k < out[i].n; k++) {
            const float divisor = out[i].values[k];
            if (isfinite(divisor) && divisor > 0.0F) continue;
            return wk_fail(err, WICK_ERR_FORMAT,
                           "config.json: the rotary scaling divides a frequency by %g ('%s', number"
                           " %" PRIu32 "), but divisors must be positive",
                           (double)divisor, out[i].name, k);
        }
    }
    return WICK_OK;
}
