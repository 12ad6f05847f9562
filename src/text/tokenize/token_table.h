/* text/tokenize/token_table.h: what each token of a vocabulary is and what it writes. */
#ifndef WK_TEXT_TOKENIZE_TOKEN_TABLE_H
#define WK_TEXT_TOKENIZE_TOKEN_TABLE_H

#include "text/tokenize/byte_level.h"
#include "text/tokenize/tokenizer.h"

/* How a vocabulary spells the bytes of its tokens. */
typedef enum wk_token_spelling {
    WK_SPELLING_SENTENCEPIECE, /* U+2581 is a space, <0xXX> a byte */
    WK_SPELLING_BYTE_LEVEL,    /* one character for each byte (text/tokenize/byte_level.h) */
} wk_token_spelling;

typedef struct wk_token_table {
    uint32_t n_tokens;
    wk_token_spelling spelling;
    wk_byte_alphabet alphabet;
    char *bytes;       /* what the tokens write, one after the other */
    uint32_t *offsets; /* [n_tokens + 1] into bytes */
    uint8_t *kinds;    /* [n_tokens] wk_token_kind */
    bool *ends;        /* [n_tokens] ends a generation */
    size_t bytes_size; /* as allocated */
    size_t longest;    /* bytes of the longest token, control tokens' names included */
} wk_token_table;

/* The ids of desc must have been checked. Refused: a kind that is not known, a byte token of
 * another form than <0xXX>, more than 4 GiB of text. */
wick_status wk_token_table_make(wk_heap *heap, const wk_vocab_desc *desc,
                                wk_token_spelling spelling, wk_token_table *out, wick_error *err);
void wk_token_table_release(wk_heap *heap, wk_token_table *table);

/* Control and unknown tokens are not text. */
static inline bool wk_token_is_text(const wk_token_table *table, uint32_t id) {
    return table->kinds[id] != WK_TOKEN_CONTROL && table->kinds[id] != WK_TOKEN_UNKNOWN;
}

/* Writes what a text of the file's spelling stands for, at most its size, and returns how much. */
size_t wk_token_decode(const wk_token_table *table, wk_str text, char *out);

/* The bytes that a token writes; none for tokens that are not text. id must be in range. */
static inline wk_str wk_token_text(const wk_token_table *table, uint32_t id) {
    return (wk_str){table->bytes + table->offsets[id], table->offsets[id + 1] - table->offsets[id]};
}

/* The byte that "<0xXX>" names, or -1. */
int wk_byte_token_value(wk_str token);

#endif
