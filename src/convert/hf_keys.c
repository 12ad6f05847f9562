/* convert/hf_keys.c: see hf_keys.h. */
#include "convert/hf_keys.h"

#include "core/compiler.h"
#include "core/status.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *wk_hf_split_keys(const char *keys, char out[64]) {
    const size_t n = strcspn(keys, "|");
    assert(n < 64);
    memcpy(out, keys, n);
    out[n] = '\0';
    return keys[n] == '|' ? keys + n + 1 : NULL;
}

wk_json *wk_hf_get(wk_json *object, const char *key) {
    wk_json *found = NULL;
    const bool is_object = object != NULL && object->kind == WK_JSON_OBJECT;
    for (wk_json *item = is_object ? object->child : NULL; item != NULL; item = item->next) {
        if (!wk_str_is(item->key, key)) continue;
        item->is_read = true;
        found = item; /* of several the last one counts, as in Python */
    }
    return found;
}

static bool is_object(const wk_json *item) { return item != NULL && item->kind == WK_JSON_OBJECT; }

wk_json *wk_hf_rope_parameters(wk_json *config) {
    wk_json *const all = wk_hf_get(config, "rope_parameters");
    wk_json *const full = wk_hf_get(all, "full_attention");
    return is_object(full) ? full : is_object(all) ? all : NULL;
}

static bool is_same(const wk_json *a, const wk_json *b) {
    return a->kind == b->kind && a->boolean == b->boolean && a->number == b->number &&
           wk_str_equal(a->string, b->string);
}

/* Another name with another value is not read: which of them counts is not known. */
const wk_json *wk_hf_find(wk_json *config, const char *keys) {
    wk_json *const rope = wk_hf_rope_parameters(config);
    const wk_json *found = NULL;
    while (keys != NULL) {
        char key[64];
        keys = wk_hf_split_keys(keys, key);
        wk_json *const places[] = {wk_hf_get(config, key), wk_hf_get(rope, key)};
        for (size_t i = 0; i < WK_COUNT(places); i++) {
            if (places[i] == NULL || places[i]->kind == WK_JSON_NULL) continue;
            if (found == NULL) found = places[i];
            places[i]->is_read = is_same(found, places[i]);
        }
    }
    return found;
}

wick_status wk_hf_fail_number(wick_error *err, const char *keys, const char *kind) {
    char key[64];
    (void)wk_hf_split_keys(keys, key);
    return wk_fail(err, WICK_ERR_FORMAT, "config.json: '%s' is missing, or %s", key, kind);
}

wick_status wk_hf_read_u32(wk_json *config, const char *keys, uint32_t *out, wick_error *err) {
    const wk_json *const item = wk_hf_find(config, keys);
    *out = 0;
    if (item == NULL || item->kind != WK_JSON_NUMBER || !item->is_integer || item->integer < 0 ||
        item->integer > UINT32_MAX)
        return wk_hf_fail_number(err, keys, "no whole number");
    *out = (uint32_t)item->integer;
    return WICK_OK;
}

wick_status wk_hf_read_f64(wk_json *config, const char *keys, double *out, wick_error *err) {
    const wk_json *const item = wk_hf_find(config, keys);
    *out = 0.0;
    if (item == NULL || item->kind != WK_JSON_NUMBER || !isfinite(item->number))
        return wk_hf_fail_number(err, keys, "no number");
    *out = item->number;
    return WICK_OK;
}

static bool is_true(wk_json *config, const char *key) {
    const wk_json *const item = wk_hf_get(config, key);
    return item != NULL && item->kind == WK_JSON_BOOL && item->boolean;
}

static const char n_kv_keys[] = "num_key_value_heads|num_kv_heads";

/* The first Falcons say so otherwise: one head of keys if they are multi_query. */
wk_hf_heads wk_hf_read_heads(wk_json *config) {
    wk_hf_heads heads = {0};
    (void)wk_hf_read_u32(config, WK_HF_N_HEADS, &heads.n_q, NULL);
    heads.n_kv = heads.n_q;
    const bool is_new = is_true(config, "new_decoder_architecture");
    const bool says_kv = wk_hf_find(config, n_kv_keys) != NULL;
    if (is_true(config, "multi_query") && !is_new)
        heads.n_kv = 1;
    else if (says_kv)
        (void)wk_hf_read_u32(config, n_kv_keys, &heads.n_kv, NULL);
    return heads;
}

wick_status wk_hf_head_dim(wk_json *config, uint32_t *out, wick_error *err) {
    if (wk_hf_find(config, "head_dim") != NULL) return wk_hf_read_u32(config, "head_dim", out, err);
    uint32_t n_embd = 0, n_heads = 0;
    WK_TRY(wk_hf_read_u32(config, WK_HF_N_EMBD, &n_embd, err));
    WK_TRY(wk_hf_read_u32(config, WK_HF_N_HEADS, &n_heads, err));
    if (n_heads == 0) return wk_fail(err, WICK_ERR_FORMAT, "config.json: no attention heads");
    *out = n_embd / n_heads;
    return WICK_OK;
}
