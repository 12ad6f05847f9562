/* text/tokenize/wordpiece.c: words, and the longest pieces first. */
#include "text/tokenize/wordpiece.h"

#include "text/unicode/unicode.h"

#include <assert.h>

enum { LONGEST_WORD = 100 }; /* characters; a longer one is unknown */

wick_status wk_wordpiece_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                              wk_wordpiece *out, wick_error *err) {
    *out = (wk_wordpiece){.unknown = desc->unknown};
    if (desc->unknown == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the vocabulary has no tokenizer.ggml.unknown_token_id");
    }
    const wick_status status = wk_token_index_make(heap, table, &out->pieces);
    if (status != WICK_OK) return wk_fail(err, status, "not enough memory to index the vocabulary");
    uint32_t id;
    out->is_cased = wk_token_index_find(&out->pieces, wk_str_of(" A"), &id);
    return WICK_OK;
}

void wk_wordpiece_release(wk_heap *heap, wk_wordpiece *pieces) {
    wk_token_index_release(heap, &pieces->pieces);
}

/* --- Characters --- */

/* The characters that the original removes: all of Cc except for tab and line ends, which are white
 * space, Cf, Co, and the ones that replace invalid bytes. */
static bool is_dropped(uint32_t code) {
    if (code == '\t' || code == '\n' || code == '\r') return false;
    if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;
    return code == 0xFFFD || code == WK_CHAR_INVALID || wk_char_class_of(code) == WK_CHAR_CONTROL;
}

/* The blocks of CJK ideographs that the original makes words of. */
static bool is_ideograph(uint32_t code) {
    static const uint32_t blocks[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                         {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF},
                                         {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    if (code < 0x3400) return false;
    for (size_t i = 0; i < WK_COUNT(blocks); i++) {
        if (code >= blocks[i][0] && code <= blocks[i][1]) return true;
    }
    return false;
}

/* All signs of ASCII count, those that Unicode calls symbols as well. */
static bool is_punctuation(uint32_t code) {
    const wk_char_class class_of = wk_char_class_of(code);
    return class_of == WK_CHAR_PUNCTUATION || (code < 0x80 && class_of == WK_CHAR_SYMBOL);
}

/* --- Words --- */

typedef struct word {
    char bytes[1 + 4 * LONGEST_WORD]; /* a space before it */
    size_t size;                      /* 1: there is none */
    size_t n_chars;
} word;

/* Bytes of the longest piece of the word at this place; 0: none. The first is more than the space.
 */
static size_t find_piece(const wk_wordpiece *pieces, const word *w, size_t at, uint32_t *id) {
    assert(at < w->size);
    const size_t longest = pieces->pieces.table->longest, rest = w->size - at;
    const size_t least = at == 0 ? 2 : 1;
    for (size_t size = rest < longest ? rest : longest; size >= least; size--) {
        if (wk_token_index_find(&pieces->pieces, (wk_str){w->bytes + at, size}, id)) return size;
    }
    return 0;
}

/* Puts the pieces of the word, or the unknown token when a part of the word is not a piece. */
static void put_word(const wk_wordpiece *pieces, word *w, wk_id_sink *out) {
    const wk_id_sink before = *out;
    bool is_known = w->n_chars <= LONGEST_WORD;
    for (size_t at = 0; w->size > 1 && is_known && at < w->size;) {
        uint32_t id;
        const size_t size = find_piece(pieces, w, at, &id);
        is_known = size > 0;
        if (is_known) wk_id_sink_put(out, id);
        at += size;
    }
    if (!is_known) {
        *out = before;
        wk_id_sink_put(out, pieces->unknown);
    }
    w->size = 1;
    w->n_chars = 0;
}

static void add_char(const wk_wordpiece *pieces, uint32_t code, bool alone, word *w,
                     wk_id_sink *out) {
    alone = alone || is_punctuation(code);
    if (alone) put_word(pieces, w, out);
    if (w->n_chars < LONGEST_WORD) w->size += wk_utf8_encode(code, w->bytes + w->size);
    w->n_chars++;
    if (alone) put_word(pieces, w, out);
}

static void encode_char(const wk_wordpiece *pieces, uint32_t code, word *w, wk_id_sink *out) {
    if (is_dropped(code)) return;
    if (wk_char_class_of(code) == WK_CHAR_SPACE) {
        put_word(pieces, w, out);
        return;
    }
    uint32_t folded[WK_FOLD_MOST] = {code};
    const size_t n = pieces->is_cased ? 1 : wk_char_fold(code, folded);
    for (size_t i = 0; i < n; i++) add_char(pieces, folded[i], is_ideograph(code), w, out);
}

void wk_wordpiece_encode(const wk_wordpiece *pieces, wk_str text, wk_id_sink *out) {
    word w = {.bytes = " ", .size = 1};
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        at += wk_utf8_decode(text.text + at, text.size - at, &code);
        encode_char(pieces, code, &w, out);
    }
    put_word(pieces, &w, out);
}
