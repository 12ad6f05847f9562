/* convert/hf_kinds.c: see hf_kinds.h. */
#include "convert/hf_kinds.h"

bool wk_hf_is_text(const wk_json *item) { return item != NULL && item->kind == WK_JSON_STRING; }

bool wk_hf_is_type(const wk_json *object, const char *type) {
    const wk_json *const item = wk_json_get(object, "type");
    return wk_hf_is_text(item) && wk_str_is(item->string, type);
}

/* ---- Members ---- */

/* owner: its type, or the text of an added token. */
static wick_status fail_kind(const wk_json *object, const char *key, const char *wanted,
                             wick_error *err) {
    const wk_json *owner = wk_json_get(object, "type");
    if (!wk_hf_is_text(owner)) owner = wk_json_get(object, "content");
    const bool is_named = wk_hf_is_text(owner);
    return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.json: '%s'%s%s is not %s", key,
                   is_named ? " of " : "", is_named ? wk_str_show(owner->string).text : "", wanted);
}

wick_status wk_hf_read_switch(const wk_json *object, const char *key, bool otherwise, bool *out,
                              wick_error *err) {
    const wk_json *const item = wk_json_get(object, key);
    *out = otherwise;
    if (item == NULL) return WICK_OK;
    if (item->kind != WK_JSON_BOOL) return fail_kind(object, key, "true or false", err);
    *out = item->boolean;
    return WICK_OK;
}

wick_status wk_hf_read_text(const wk_json *object, const char *key, wk_str *out, wick_error *err) {
    const wk_json *const item = wk_json_get(object, key);
    *out = (wk_str){.text = NULL};
    if (item == NULL || item->kind == WK_JSON_NULL) return WICK_OK;
    if (!wk_hf_is_text(item)) return fail_kind(object, key, "a text", err);
    *out = item->string;
    return WICK_OK;
}

wick_status wk_hf_read_list(const wk_json *object, const char *key, const wk_json **out,
                            wick_error *err) {
    *out = wk_json_get(object, key);
    if (*out == NULL || (*out)->kind == WK_JSON_ARRAY) return WICK_OK;
    return fail_kind(object, key, "a list", err);
}

/* ---- Steps ---- */

wick_status wk_hf_first_step(const wk_json *root, const char *part, const char *list,
                             wk_hf_steps *out, wick_error *err) {
    const wk_json *const all = wk_json_get(root, part);
    *out = (wk_hf_steps){.at = NULL};
    if (all == NULL || all->kind == WK_JSON_NULL) return WICK_OK;
    if (all->kind != WK_JSON_OBJECT) return fail_kind(root, part, "an object", err);
    if (!wk_hf_is_type(all, "Sequence")) {
        out->at = all;
        return WICK_OK;
    }
    const wk_json *items = NULL;
    WK_TRY(wk_hf_read_list(all, list, &items, err));
    if (items == NULL) return fail_kind(all, list, "there", err);
    *out = (wk_hf_steps){.at = items->child, .is_sequence = true};
    return WICK_OK;
}

void wk_hf_next_step(wk_hf_steps *steps) {
    steps->at = steps->is_sequence ? steps->at->next : NULL;
}

wick_status wk_hf_refuse_step(const char *what, const wk_json *step, wick_error *err) {
    const wk_json *const type = wk_json_get(step, "type");
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "tokenizer.json: the %s '%s' cannot be converted yet",
                   what, wk_hf_is_text(type) ? wk_str_show(type->string).text : "without a type");
}
