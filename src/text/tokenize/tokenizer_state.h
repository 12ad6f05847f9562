/* text/tokenize/tokenizer_state.h: what a tokenizer holds; for tokenizer.c and detokenize.c. */
#ifndef WK_TEXT_TOKENIZE_TOKENIZER_STATE_H
#define WK_TEXT_TOKENIZE_TOKENIZER_STATE_H

#include "text/tokenize/bpe.h"
#include "text/tokenize/sentencepiece.h"
#include "text/tokenize/special.h"
#include "text/tokenize/token_table.h"
#include "text/tokenize/wordpiece.h"

typedef enum wk_tokenizer_kind {
    WK_TOKENIZER_BPE,
    WK_TOKENIZER_SENTENCEPIECE,
    WK_TOKENIZER_WORDPIECE,
} wk_tokenizer_kind;

struct wick_tokenizer {
    wk_heap *heap; /* scratch comes from here */
    wk_tokenizer_kind kind;
    wk_vocab_desc desc;
    uint32_t begin, end; /* what stands first and last, or WICK_NO_TOKEN */
    bool add_begin, add_end, add_space_prefix;
    bool prefixes_first; /* only the beginning of a text */
    bool strips_after;   /* Phi-3 */
    wk_token_table table;
    wk_special special;
    wk_bpe bpe; /* the one that kind names */
    wk_sentencepiece sentencepiece;
    wk_wordpiece wordpiece;
};

/* A user-defined piece of SentencePiece's own: for the prefix it is text like that beside it. */
bool wk_is_user_piece(const wick_tokenizer *t, uint32_t id);
/* What stands before text that follows this special token (text/tokenize/normalize.h). */
unsigned wk_edges_after(const wick_tokenizer *t, uint32_t id);

/* Appends the ids of ordinary text between special tokens. */
wick_status wk_tokenize_between(const wick_tokenizer *t, wk_str text, unsigned edges,
                                wk_id_sink *out);

/* Where text that begins at from ends before the special token id at, and where text goes on that
 * follows it: some tokens take the white space beside them. */
size_t wk_text_before(const wick_tokenizer *t, wk_str text, size_t from, size_t at, uint32_t id);
size_t wk_text_after(const wick_tokenizer *t, wk_str text, size_t at, uint32_t id);

#endif
