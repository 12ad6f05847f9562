/* text/tokenize/tokenizer.h: one interface over the tokenizer kinds.
 *
 * A vocabulary is described by plain arrays (from GGUF metadata, by llm/vocabulary); nothing here
 * knows a file format. Algorithms: byte-level BPE (text/tokenize/bpe.h), SentencePiece's merging
 * and unigram model (text/tokenize/sentencepiece.h), WordPiece (text/tokenize/wordpiece.h). */
#ifndef WK_TEXT_TOKENIZE_TOKENIZER_H
#define WK_TEXT_TOKENIZE_TOKENIZER_H

#include "core/arena.h"
#include "core/status.h"
#include "core/str.h"

#include <wick/text.h>

/* Numbers as in GGUF's tokenizer.ggml.token_type. */
typedef enum wk_token_kind {
    WK_TOKEN_NORMAL = 1,
    WK_TOKEN_UNKNOWN = 2,
    WK_TOKEN_CONTROL = 3,
    WK_TOKEN_USER_DEFINED = 4,
    WK_TOKEN_UNUSED = 5,
    WK_TOKEN_BYTE = 6,
} wk_token_kind;

typedef enum wk_tristate { WK_UNSET, WK_NO, WK_YES } wk_tristate;

/* All arrays are borrowed and must outlive the tokenizer (they are those of the file). */
typedef struct wk_vocab_desc {
    /* tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE by scores),
     * "gemma4" (the same by merges), "t5" (unigram), "bert" (WordPiece) */
    wk_str model;
    wk_str pre; /* tokenizer.ggml.pre, of "gpt2" alone; empty: "default" */
    /* general.name and general.architecture: Phi-3's special tokens take the white space after
     * them, by either. */
    wk_str name, architecture;
    uint32_t n_tokens;
    const wk_str *tokens; /* [n_tokens] */
    const float *scores;  /* [n_tokens] or NULL */
    const int32_t *kinds; /* [n_tokens] wk_token_kind, 0 as normal; or NULL */
    uint32_t n_merges;
    const wk_str *merges; /* [n_merges] "left right", best first */
    /* Ids, or WICK_NO_TOKEN where the metadata has none. */
    uint32_t begin, end, unknown, end_of_turn, end_of_message;
    uint32_t n_other_ends;
    const uint32_t *other_ends;   /* [n_other_ends] ids, or WICK_NO_TOKEN, that end a text, too */
    uint32_t classify, separator; /* BERT's begin and end */
    size_t n_suppressed;
    const uint32_t *suppressed; /* [n_suppressed] ids that are never chosen */
    /* unset: the model kind's default */
    wk_tristate add_begin, add_end, add_separator, add_space_prefix, removes_extra_spaces;
    /* tokenizer.ggml.ignore_merges; unset: as pre says */
    wk_tristate takes_whole;
    wk_str charsmap; /* tokenizer.ggml.precompiled_charsmap (text/tokenize/normalize.h), of "t5" and
                        "llama" */
    /* tokenizer.ggml.prepend_scheme: where the space prefix stands that tokenizer.json's Metaspace
     * puts before what does not begin with a space: "first" (the beginning of the text alone) or
     * "always" (after every special and user-defined token, too). Empty: before any text at the
     * beginning and after special tokens, as in SentencePiece */
    wk_str prepend_scheme;
} wk_vocab_desc;

/* Validates and indexes the vocabulary. Refused with a sentence: an unknown model or pre-tokenizer
 * (by name), ids out of range, a merge that names no token or has no space, no tokens, token types
 * that do not exist, what the kind needs and lacks (scores, merges, an unknown token), a token to
 * be added at the beginning or end that is not named. heap must outlive the tokenizer:
 * wick_tokenize takes its scratch memory from it. Without kinds, the ids above are control tokens
 * and <0xXX> is a byte. */
wick_status wk_tokenizer_make(wk_heap *heap, const wk_vocab_desc *desc, wick_tokenizer **out,
                              wick_error *err);
void wk_tokenizer_free(wk_heap *heap, wick_tokenizer *tokenizer);
/* Those of its description. */
const uint32_t *wk_tokenizer_suppressed(const wick_tokenizer *tokenizer, size_t *n);
/* The heap it was made with. */
wk_heap *wk_tokenizer_heap(const wick_tokenizer *tokenizer);

#endif
