/* convert/hf_unigram.c: tokenizer.json of unigram models (hf_pieces.h): pieces with their scores,
 * and what is done to a text before. */
#include "convert/hf_pieces.h"

#include <string.h>

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_BYTE = 6 };
enum { MOST_PIECES = 1 << 24 };

static bool is_text(const wk_json *item) { return item != NULL && item->kind == WK_JSON_STRING; }

static bool is_type(const wk_json *step, const char *type) {
    const wk_json *const item = wk_json_get(step, "type");
    return is_text(item) && wk_str_is(item->string, type);
}

/* The first step of a sequence, or what stands alone; item->next leads on within a sequence. */
static const wk_json *first_step(const wk_json *steps, const char *list) {
    const wk_json *const items = wk_json_get(steps, list);
    return items != NULL && items->kind == WK_JSON_ARRAY ? items->child : steps;
}

/* ---- Replacements ---- */

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Base64 (RFC 4648) with its padding. */
static wick_status decode_base64(wk_str text, wk_arena *arena, wk_str *out, wick_error *err) {
    while (text.size > 0 && text.text[text.size - 1] == '=') text.size--;
    char *const bytes = wk_arena_alloc(arena, text.size / 4 * 3 + 3);
    if (bytes == NULL) return wk_fail_memory(err, text.size, 0, "a vocabulary");
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        const int digit = digit_of(text.text[i]);
        if (digit < 0)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "tokenizer.json: precompiled_charsmap is no base64");
        bits = (bits << 6 | (uint32_t)digit) & 0xFFFFFF;
        const size_t n_bits = 6 * (i + 1);
        if (n_bits / 8 > n) bytes[n++] = (char)(bits >> n_bits % 8 & 255);
    }
    *out = (wk_str){bytes, n};
    return WICK_OK;
}

/* Several blanks become one. */
static bool removes_spaces(const wk_json *step) {
    const wk_json *const pattern = wk_json_get(wk_json_get(step, "pattern"), "Regex");
    return is_type(step, "Replace") && is_text(pattern) && wk_str_is(pattern->string, " {2,}");
}

static wick_status read_normalizer(const wk_json *root, wk_arena *arena, wk_pieces *out,
                                   wick_error *err) {
    const wk_json *const all = wk_json_get(root, "normalizer");
    if (all == NULL || all->kind != WK_JSON_OBJECT) return WICK_OK;
    const wk_json *const step = first_step(all, "normalizers");
    for (const wk_json *at = step; at != NULL; at = step == all ? NULL : at->next) {
        const wk_json *const map = wk_json_get(at, "precompiled_charsmap");
        const wk_json *const type = wk_json_get(at, "type");
        if (is_type(at, "Precompiled") && is_text(map))
            WK_TRY(decode_base64(map->string, arena, &out->charsmap, err));
        else if (removes_spaces(at) || is_type(at, "Strip"))
            out->removes_extra_spaces = true;
        else
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "tokenizer.json: the normalizer '%s' cannot be converted yet",
                           is_text(type) ? wk_str_show(type->string).text : "without a type");
    }
    return WICK_OK;
}

static void read_prefix(const wk_json *root, wk_pieces *out) {
    const wk_json *const all = wk_json_get(root, "pre_tokenizer");
    const wk_json *const step = first_step(all, "pretokenizers");
    for (const wk_json *at = step; at != NULL; at = step == all ? NULL : at->next) {
        if (!is_type(at, "Metaspace")) continue;
        const wk_json *const scheme = wk_json_get(at, "prepend_scheme");
        const wk_json *const prefix = wk_json_get(at, "add_prefix_space");
        out->has_dummy_prefix = is_text(scheme) ? !wk_str_is(scheme->string, "never")
                                                : prefix == NULL || prefix->boolean;
    }
}

/* ---- Pieces ---- */

static wick_status read_piece(const wk_json *item, bool has_bytes, wk_piece *out, wick_error *err) {
    const wk_json *const score = is_text(item->child) ? item->child->next : NULL;
    if (item->kind != WK_JSON_ARRAY || score == NULL || score->kind != WK_JSON_NUMBER)
        return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.json: a piece is no text with a score");
    const wk_str text = item->child->string;
    const bool is_byte = has_bytes && wk_str_matches(wk_str_of("<0x*>"), text);
    *out = (wk_piece){text, (float)score->number, is_byte ? TYPE_BYTE : TYPE_NORMAL};
    return WICK_OK;
}

static void mark_added(const wk_json *added, wk_pieces *out) {
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const id = wk_json_get(item, "id");
        const wk_json *const special = wk_json_get(item, "special");
        if (id == NULL || !id->is_integer || id->integer < 0 || id->integer >= out->n) continue;
        const bool is_control = special != NULL && special->boolean;
        out->items[id->integer].type = is_control ? TYPE_CONTROL : TYPE_USER_DEFINED;
    }
}

wick_status wk_pieces_from_json(const wk_json *root, wk_arena *arena, wk_pieces *out,
                                wick_error *err) {
    const wk_json *const model = wk_json_get(root, "model");
    const wk_json *const vocab = wk_json_get(model, "vocab");
    const wk_json *const unknown = wk_json_get(model, "unk_id");
    const wk_json *const bytes = wk_json_get(model, "byte_fallback");
    *out = (wk_pieces){.is_unigram = true};
    if (vocab == NULL || vocab->kind != WK_JSON_ARRAY || vocab->count == 0 ||
        vocab->count > MOST_PIECES)
        return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.json has no model.vocab");
    out->items = wk_arena_array(arena, vocab->count, sizeof *out->items);
    if (out->items == NULL) return wk_fail_memory(err, 0, 0, "a vocabulary");
    for (const wk_json *item = vocab->child; item != NULL; item = item->next)
        WK_TRY(read_piece(item, bytes != NULL && bytes->boolean, &out->items[out->n++], err));
    mark_added(wk_json_get(root, "added_tokens"), out);
    if (unknown != NULL && unknown->is_integer && unknown->integer >= 0 &&
        unknown->integer < out->n)
        out->items[unknown->integer].type = TYPE_UNKNOWN;
    read_prefix(root, out);
    return read_normalizer(root, arena, out, err);
}
