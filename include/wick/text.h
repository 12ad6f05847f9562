/* wick/text.h: tokenizers: text to token ids and back. */
#ifndef WICK_TEXT_H
#define WICK_TEXT_H

#include <wick/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to its model (wick_model_tokenizer) or was opened from a file's metadata. NULL is one
 * without tokens, with which nothing can be encoded. */
typedef struct wick_tokenizer wick_tokenizer;

enum {
    /* Puts the begin token first, and the end token last, where the model's metadata wants them. A
     * prompt that is to be continued takes the first alone. */
    WICK_TOKENIZE_ADD_BEGIN = 1,
    WICK_TOKENIZE_ADD_END = 4,
    WICK_TOKENIZE_ADD_SPECIAL = WICK_TOKENIZE_ADD_BEGIN | WICK_TOKENIZE_ADD_END,
    /* Text such as <|im_end|> becomes the special token instead of ordinary text. */
    WICK_TOKENIZE_PARSE_SPECIAL = 2,
    /* The text goes on after other text that was tokenized before: no space is put before it, as
     * SentencePiece does at the beginning and after special tokens. */
    WICK_TOKENIZE_CONTINUE = 8,
};

/* The longest text that one call takes, in bytes. */
#define WICK_TOKENIZE_MAX_SIZE ((size_t)1 << 30)

/* Number of tokens in the vocabulary. */
WICK_API uint32_t wick_tokenizer_size(const wick_tokenizer *tokenizer);

/* Writes at most capacity ids and sets *count to the number that text has (it may be larger; then
 * call again with more room). Text need not be valid UTF-8: what is not is encoded as bytes
 * (WordPiece leaves it out, the unigram model takes it as U+FFFD). What the vocabulary has no token
 * for becomes its unknown token, or is WICK_ERR_VALUE where it has none. User-defined tokens are
 * always found in text, control tokens only with WICK_TOKENIZE_PARSE_SPECIAL; the longest one that
 * begins first counts. Takes scratch memory from the tokenizer's allocator: one call at a time,
 * like all calls that belong to a device. WICK_ERR_ARGUMENT (also for more than
 * WICK_TOKENIZE_MAX_SIZE bytes), WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_tokenize(const wick_tokenizer *tokenizer, const char *text, size_t size,
                                   uint32_t flags, uint32_t *ids, size_t capacity, size_t *count);

/* A token's text as it stands in the output: bytes, not necessarily whole UTF-8 characters. Control
 * and unknown tokens give "" unless special is set; then their names. Not terminated; valid as long
 * as the tokenizer. An id out of range gives NULL and size 0. */
WICK_API const char *wick_token_bytes(const wick_tokenizer *tokenizer, uint32_t id, bool special,
                                      size_t *size);

/* Token ids by role; WICK_NO_TOKEN where the model has none. */
#define WICK_NO_TOKEN UINT32_MAX
WICK_API uint32_t wick_token_begin(const wick_tokenizer *tokenizer);
WICK_API uint32_t wick_token_end(const wick_tokenizer *tokenizer);
/* True for every token that ends a generation (end of text, end of turn ...). */
WICK_API bool wick_token_ends_generation(const wick_tokenizer *tokenizer, uint32_t id);
/* True for control and unknown tokens, which are not text. */
WICK_API bool wick_token_is_special(const wick_tokenizer *tokenizer, uint32_t id);

/* Turns tokens into text piece by piece and never splits a UTF-8 sequence: bytes of an unfinished
 * character are held back until it is whole; what can never become one is U+FFFD. Zero-initialise
 * it, or set begun when the text goes on after other text (then no leading space is dropped). */
typedef struct wick_detokenizer {
    const wick_tokenizer *tokenizer;
    bool special; /* write control tokens as text */
    bool begun;
    uint8_t pending_size;
    unsigned char pending[4];
} wick_detokenizer;

/* Feeds one token and writes the text that is complete now to buf, *size bytes, not terminated.
 * Room of wick_detokenize_bound() bytes is always enough; with less, a token that does not fit is
 * WICK_ERR_ARGUMENT and changes nothing. WICK_ERR_INDEX: the vocabulary has no such token. */
WICK_API wick_status wick_detokenize(wick_detokenizer *state, uint32_t id, char *buf,
                                     size_t capacity, size_t *size);
/* What is still held back, as one U+FFFD: 0 or 3 bytes. */
WICK_API void wick_detokenize_flush(wick_detokenizer *state, char *buf, size_t *size);
/* Bytes of buf that are enough for any token. */
WICK_API size_t wick_detokenize_bound(const wick_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif

#endif
