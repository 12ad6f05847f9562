/* convert/hf_unigram.c: tokenizer.json of unigram models (hf_pieces.h): pieces with their scores,
 * and what is done to a text before. */
#include "convert/hf_kinds.h"
#include "convert/hf_pieces.h"
#include "text/tokenize/normalize.h"

#include <string.h>

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_BYTE = 6 };
enum { MOST_PIECES = 1 << 24 };

/* Characters that tokenizers takes for white space: U+0009 to U+000D, U+00A0, U+2003, U+2028,
 * U+3000 */
#define WHITE_SPACE "\t\n\v\f\r\xC2\xA0\xE2\x80\x83\xE2\x80\xA8\xE3\x80\x80"

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
    if (bytes == NULL) return wk_fail_memory(err, text.size, "a vocabulary");
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        const int digit = digit_of(text.text[i]);
        if (digit < 0)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "tokenizer.json: precompiled_charsmap is not base64");
        bits = (bits << 6 | (uint32_t)digit) & 0xFFFFFF;
        const size_t n_bits = 6 * (i + 1);
        if (n_bits / 8 > n) bytes[n++] = (char)(bits >> n_bits % 8 & 255);
    }
    *out = (wk_str){bytes, n};
    return WICK_OK;
}

/* ---- White space that is removed ---- */

/* The steps that remove it; NULL: not there. */
typedef struct spaces {
    const wk_json *strip, *replace, *split;
} spaces;

/* Several blanks become one. */
static bool joins_blanks(const wk_json *step) {
    const wk_json *const pattern = wk_json_get(wk_json_get(step, "pattern"), "Regex");
    return wk_hf_is_type(step, "Replace") && wk_hf_is_text(pattern) &&
           wk_str_is(pattern->string, " {2,}");
}

/* SentencePiece removes blanks alone, these steps all white space: that is the same where the table
 * makes blanks of it or removes it. */
static bool makes_blanks(wk_str charsmap, wk_heap *heap) {
    const wk_vocab_desc desc = {.charsmap = charsmap};
    wk_normalizer normalizer;
    wk_strbuf left;
    if (wk_normalizer_make(&desc, &normalizer, NULL) != WICK_OK) return false;
    wk_strbuf_init(&left, heap);
    wk_normalize(&normalizer, 0, wk_str_of(WHITE_SPACE), &left);
    const bool is_empty = left.size == 0;
    wk_strbuf_release(&left);
    return is_empty;
}

/* Together the steps must do what SentencePiece does: no blanks at the ends or in a row. At the
 * beginning Metaspace "always" sees to it: "  a" and "a" are both U+2581 and a. */
static wick_status read_spaces(const spaces *s, wk_heap *heap, wk_hf_pieces *out, wick_error *err) {
    const wk_json *const any = s->split != NULL ? s->split : s->strip ? s->strip : s->replace;
    bool strips_end = false;
    wk_str blank;
    if (any == NULL) return WICK_OK;
    WK_TRY(wk_hf_read_switch(s->strip, "strip_right", s->strip != NULL, &strips_end, err));
    WK_TRY(wk_hf_read_text(s->replace, "content", &blank, err));
    const bool is_blank = wk_str_is(blank, " ") || (!s->split && wk_str_is(blank, "\xE2\x96\x81"));
    const bool is_both =
        s->replace == NULL ? s->split != NULL : is_blank && (s->split || strips_end);
    out->removes_extra_spaces = is_both && out->has_dummy_prefix &&
                                wk_str_is(wk_str_of(out->scheme), "always") &&
                                makes_blanks(out->charsmap, heap);
    if (out->removes_extra_spaces) return WICK_OK;
    return wk_fail(
        err, WICK_ERR_UNSUPPORTED,
        "tokenizer.json: %s removes other white space here than SentencePiece does, which"
        " cannot be converted",
        wk_str_show(wk_json_get(any, "type")->string).text);
}

static wick_status read_normalizer(const wk_json *root, wk_arena *arena, spaces *found,
                                   wk_hf_pieces *out, wick_error *err) {
    wk_hf_steps s;
    WK_TRY(wk_hf_first_step(root, "normalizer", "normalizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s)) {
        const wk_json *const map = wk_json_get(s.at, "precompiled_charsmap");
        const bool is_first = found->strip == NULL && found->replace == NULL;
        if (is_first && wk_hf_is_type(s.at, "Precompiled") && wk_hf_is_text(map))
            WK_TRY(decode_base64(map->string, arena, &out->charsmap, err));
        else if (is_first && wk_hf_is_type(s.at, "Strip"))
            found->strip = s.at;
        else if (found->replace == NULL && joins_blanks(s.at))
            found->replace = s.at;
        else
            return wk_hf_refuse_step("normalizer", s.at, err);
    }
    return WICK_OK;
}

/* A blank is U+2581 in GGUF, too. */
static wick_status read_metaspace(const wk_json *step, wk_hf_pieces *out, wick_error *err) {
    wk_str scheme, sign;
    bool has_prefix = true;
    WK_TRY(wk_hf_read_text(step, "prepend_scheme", &scheme, err));
    WK_TRY(wk_hf_read_text(step, "replacement", &sign, err));
    WK_TRY(wk_hf_read_switch(step, "add_prefix_space", true, &has_prefix, err));
    if (sign.text != NULL && !wk_str_is(sign, "\xE2\x96\x81"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: Metaspace with the replacement '%s' cannot be converted",
                       wk_str_show(sign).text);
    if (scheme.text == NULL) scheme = wk_str_of(has_prefix ? "always" : "never");
    out->has_dummy_prefix = !wk_str_is(scheme, "never");
    out->scheme = wk_str_is(scheme, "first") ? "first" : "always";
    return WICK_OK;
}

static bool is_false(const wk_json *object, const char *key) {
    const wk_json *const item = wk_json_get(object, key);
    return item != NULL && item->kind == WK_JSON_BOOL && !item->boolean;
}

wick_status wk_hf_pieces_read_prefix(const wk_json *root, const wk_json *config, wk_hf_pieces *out,
                                     wick_error *err) {
    wk_hf_steps s;
    if (!out->has_dummy_prefix) return WICK_OK;
    if (is_false(config, "add_prefix_space")) {
        out->has_dummy_prefix = false;
        return WICK_OK;
    }
    WK_TRY(wk_hf_first_step(root, "pre_tokenizer", "pretokenizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s))
        if (wk_hf_is_type(s.at, "Metaspace")) return read_metaspace(s.at, out, err);
    WK_TRY(wk_hf_first_step(root, "normalizer", "normalizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s))
        if (wk_hf_is_type(s.at, "Prepend")) return WICK_OK; /* as SentencePiece does */
    if (is_false(config, "legacy")) out->scheme = "first";
    return WICK_OK;
}

static wick_status read_prefix(const wk_json *root, spaces *found, wk_hf_pieces *out,
                               wick_error *err) {
    wk_hf_steps s;
    WK_TRY(wk_hf_first_step(root, "pre_tokenizer", "pretokenizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s)) {
        if (wk_hf_is_type(s.at, "Metaspace"))
            WK_TRY(read_metaspace(s.at, out, err));
        else if (wk_hf_is_type(s.at, "WhitespaceSplit") && !out->has_dummy_prefix)
            found->split = s.at;
        else
            return wk_hf_refuse_step("pre-tokenizer", s.at, err);
    }
    return WICK_OK;
}

/* ---- Pieces ---- */

static wick_status read_piece(const wk_json *item, bool has_bytes, wk_hf_piece *out,
                              wick_error *err) {
    const wk_json *const score = wk_hf_is_text(item->child) ? item->child->next : NULL;
    if (item->kind != WK_JSON_ARRAY || score == NULL || score->kind != WK_JSON_NUMBER)
        return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.json: a piece must be [text, score]");
    const wk_str text = item->child->string;
    const bool is_byte = has_bytes && wk_str_matches(wk_str_of("<0x*>"), text);
    *out = (wk_hf_piece){text, (float)score->number, is_byte ? TYPE_BYTE : TYPE_NORMAL};
    return WICK_OK;
}

static wick_status mark_added(const wk_json *root, wk_hf_pieces *out, wick_error *err) {
    const wk_json *added = NULL;
    WK_TRY(wk_hf_read_list(root, "added_tokens", &added, err));
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const id = wk_json_get(item, "id");
        bool is_control = false;
        WK_TRY(wk_hf_read_switch(item, "special", false, &is_control, err));
        if (id == NULL || !id->is_integer || id->integer < 0 || id->integer >= out->n) continue;
        out->items[id->integer].type = is_control ? TYPE_CONTROL : TYPE_USER_DEFINED;
    }
    return WICK_OK;
}

wick_status wk_hf_pieces_from_json(const wk_json *root, wk_arena *arena, wk_hf_pieces *out,
                                   wick_error *err) {
    const wk_json *const model = wk_json_get(root, "model");
    const wk_json *const vocab = wk_json_get(model, "vocab");
    const wk_json *const unknown = wk_json_get(model, "unk_id");
    bool has_bytes = false;
    *out = (wk_hf_pieces){.is_unigram = true};
    if (vocab == NULL || vocab->kind != WK_JSON_ARRAY || vocab->count == 0 ||
        vocab->count > MOST_PIECES)
        return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.json has no model.vocab");
    WK_TRY(wk_hf_read_switch(model, "byte_fallback", false, &has_bytes, err));
    out->items = wk_arena_array(arena, vocab->count, sizeof *out->items);
    if (out->items == NULL) return wk_fail_memory(err, 0, "a vocabulary");
    for (const wk_json *item = vocab->child; item != NULL; item = item->next)
        WK_TRY(read_piece(item, has_bytes, &out->items[out->n++], err));
    WK_TRY(mark_added(root, out, err));
    if (unknown != NULL && unknown->is_integer && unknown->integer >= 0 &&
        unknown->integer < out->n)
        out->items[unknown->integer].type = TYPE_UNKNOWN;
    spaces found = {.strip = NULL};
    WK_TRY(read_normalizer(root, arena, &found, out, err));
    WK_TRY(read_prefix(root, &found, out, err));
    return read_spaces(&found, arena->heap, out, err);
}
