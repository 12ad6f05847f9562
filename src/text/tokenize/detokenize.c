/* text/tokenize/detokenize.c: tokens to text, whole characters only. Allocates nothing. */
#include "text/tokenize/tokenizer_state.h"
#include "text/unicode/unicode.h"

#include <assert.h>
#include <string.h>

/* U+FFFD REPLACEMENT CHARACTER, one for each maximal subpart of an ill-formed sequence (the Unicode
 * Standard, section 3.9, "U+FFFD Substitution of Maximal Subparts"). */
static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};

/* data NULL: only counts. */
typedef struct text_sink {
    char *data;
    size_t size;
} text_sink;

static void put(text_sink *out, const void *bytes, size_t size) {
    if (out->data) memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

static void feed_byte(wick_detokenizer *state, unsigned char byte, text_sink *out) {
    if (state->pending_size == 0 && byte < 0x80) {
        put(out, &byte, 1);
        return;
    }
    assert(state->pending_size < sizeof state->pending);
    state->pending[state->pending_size++] = byte;
    wk_utf8_state found = wk_utf8_classify(state->pending, state->pending_size);
    if (found == WK_UTF8_INVALID && state->pending_size > 1) {
        /* The pending bytes stay incomplete; the byte may begin a character. */
        put(out, replacement, sizeof replacement);
        state->pending[0] = byte;
        state->pending_size = 1;
        found = wk_utf8_classify(state->pending, 1);
    }
    if (found == WK_UTF8_PARTIAL) return;
    if (found == WK_UTF8_COMPLETE) {
        put(out, state->pending, state->pending_size);
    } else {
        put(out, replacement, sizeof replacement);
    }
    state->pending_size = 0;
}

static void feed(wick_detokenizer *state, wk_str text, text_sink *out) {
    for (size_t i = 0; i < text.size; i++) feed_byte(state, (unsigned char)text.text[i], out);
}

/* What a token writes here: the first text of all loses the space that tokenizing put before it. */
static wk_str next_text(wick_detokenizer *state, uint32_t id) {
    const wick_tokenizer *const t = state->tokenizer;
    wk_str text;
    text.text = wick_token_bytes(t, id, state->special, &text.size);
    if (!wk_token_is_text(&t->table, id)) return text;
    const bool is_first = !state->begun;
    state->begun = true;
    const bool is_prefixed = is_first && t->add_space_prefix && text.size > 0 &&
                             text.text[0] == ' ' && t->table.kinds[id] != WK_TOKEN_BYTE;
    return is_prefixed ? (wk_str){text.text + 1, text.size - 1} : text;
}

wick_status wick_detokenize(wick_detokenizer *state, uint32_t id, char *buf, size_t capacity,
                            size_t *size) {
    if (!state || !state->tokenizer || !size || (!buf && capacity > 0)) return WICK_ERR_ARGUMENT;
    if (state->pending_size > 3) return WICK_ERR_ARGUMENT;
    if (id >= state->tokenizer->table.n_tokens) return WICK_ERR_INDEX;
    wick_detokenizer after = *state;
    const wk_str text = next_text(&after, id);
    /* At most three bytes for each byte; where that may be too much, count first. */
    if (capacity / 3 < text.size + state->pending_size) {
        wick_detokenizer trial = after;
        text_sink counted = {.data = NULL};
        feed(&trial, text, &counted);
        if (counted.size > capacity) return WICK_ERR_ARGUMENT;
    }
    text_sink out = {.data = buf};
    feed(&after, text, &out);
    *state = after;
    *size = out.size;
    return WICK_OK;
}

void wick_detokenize_flush(wick_detokenizer *state, char *buf, size_t *size) {
    if (size) *size = 0;
    if (!state || !buf || !size || state->pending_size == 0) return;
    memcpy(buf, replacement, sizeof replacement);
    *size = sizeof replacement;
    state->pending_size = 0;
}

size_t wick_detokenize_bound(const wick_tokenizer *tokenizer) {
    return tokenizer ? 3 * (tokenizer->table.longest + 3) : 0;
}
