/* text/tokenize/normalize.c: SentencePiece's normalization, spaces being spaces. */
#include "text/tokenize/normalize.h"

#include "text/unicode/unicode.h"

#include <string.h>

enum { LONGEST_ENTRY = 256 }; /* bytes: a trie that leads back into itself has no end */

wick_status wk_normalizer_make(const wk_vocab_desc *desc, wk_normalizer *out, wick_error *err) {
    *out = (wk_normalizer){.removes_extra_spaces = desc->removes_extra_spaces != WK_NO};
    const wk_str map = desc->charsmap;
    if (map.size == 0) return WICK_OK;
    const unsigned char *const bytes = (const unsigned char *)map.text;
    size_t units_size = 0;
    for (size_t i = 0; i < 4 && i < map.size; i++) units_size |= (size_t)bytes[i] << (8 * i);
    if (map.size < 4 || units_size > map.size - 4 || units_size % 4 != 0) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tokenizer.ggml.precompiled_charsmap is not as long as it says");
    }
    out->units = bytes + 4;
    out->n_units = units_size / 4;
    out->replacements = (wk_str){map.text + 4 + units_size, map.size - 4 - units_size};
    return WICK_OK;
}

/* --- The trie --- */

/* A unit: bits 0-7 the label, bit 8 whether a leaf follows, bits 10-30 the offset of its children,
 * in units of 256 where bit 9 is set. A leaf: bit 31 and the value. Beyond the end: no label. */
static uint32_t unit_at(const wk_normalizer *n, size_t at) {
    if (at >= n->n_units) return UINT32_C(1) << 31;
    const unsigned char *const bytes = n->units + 4 * at;
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static size_t children_of(uint32_t unit) {
    const size_t offset = unit >> 10 & 0x1FFFFF;
    return unit >> 9 & 1 ? offset << 8 : offset;
}

/* Bytes of the longest entry that text begins with, or 0; *value is where its replacement is. */
static size_t find_longest(const wk_normalizer *n, wk_str text, uint32_t *value) {
    size_t longest = 0, at = children_of(unit_at(n, 0));
    for (size_t i = 0; i < text.size && i < LONGEST_ENTRY; i++) {
        const uint32_t label = (unsigned char)text.text[i];
        at ^= label;
        const uint32_t unit = unit_at(n, at);
        if ((unit & (UINT32_C(1) << 31 | 0xFF)) != label) break;
        at ^= children_of(unit);
        if (unit >> 8 & 1) {
            *value = unit_at(n, at) & 0x7FFFFFFF;
            longest = i + 1;
        }
    }
    return longest;
}

/* What stands for the beginning of text, and how many bytes of it. */
static size_t normalize_first(const wk_normalizer *n, wk_str text, wk_str *out) {
    uint32_t value = 0;
    const size_t size = n->n_units > 0 ? find_longest(n, text, &value) : 0;
    if (size > 0 && value < n->replacements.size) {
        const char *const from = n->replacements.text + value;
        const char *const end = memchr(from, '\0', n->replacements.size - value);
        *out = (wk_str){from, end ? (size_t)(end - from) : n->replacements.size - value};
        return size;
    }
    uint32_t code;
    const size_t char_size = wk_utf8_decode(text.text, text.size, &code);
    *out = (wk_str){text.text, char_size};
    if (code == WK_CHAR_INVALID) *out = wk_str_of("\xEF\xBF\xBD");
    return char_size;
}

/* --- The text --- */

/* U+2581 is how files write a space: it is one, but it does not count as white space. */
static void put(wk_strbuf *out, wk_str text) {
    const bool is_sign = wk_str_is(text, WK_SPACE_SIGN);
    wk_strbuf_append(out, is_sign ? " " : text.text, is_sign ? 1 : text.size);
}

void wk_normalize(const wk_normalizer *n, unsigned edges, wk_str text, wk_strbuf *out) {
    const size_t before = out->size;
    bool after_space = n->removes_extra_spaces && !(edges & WK_EDGE_AFTER);
    bool needs_prefix = edges & WK_EDGE_PREFIX;
    while (text.size > 0 && !out->failed) {
        wk_str part;
        const size_t size = normalize_first(n, text, &part);
        text.text += size;
        text.size -= size;
        while (after_space && part.size > 0 && part.text[0] == ' ') {
            part.text++;
            part.size--;
        }
        if (part.size == 0) continue;
        if (needs_prefix) wk_strbuf_append(out, " ", 1);
        needs_prefix = false;
        put(out, part);
        after_space = n->removes_extra_spaces && part.text[part.size - 1] == ' ';
    }
    if (edges & WK_EDGE_BEFORE) {
        if (needs_prefix) wk_strbuf_append(out, " ", 1);
        return;
    }
    while (n->removes_extra_spaces && out->size > before && out->data[out->size - 1] == ' ') {
        out->size--;
    }
}
