/* small_vocab.h: vocabularies small enough to reason about, for tests and the fuzzer. */
#ifndef SMALL_VOCAB_H
#define SMALL_VOCAB_H

#include "text/tokenize/byte_level.h"
#include "text/tokenize/tokenizer.h"
#include "text/unicode/unicode.h"

#include <assert.h>
#include <stdio.h>

enum { SMALL_VOCAB_TOKENS = 384, SMALL_VOCAB_MERGES = 32 };

typedef struct small_vocab {
    wk_vocab_desc desc;
    wk_str tokens[SMALL_VOCAB_TOKENS];
    int32_t kinds[SMALL_VOCAB_TOKENS];
    float scores[SMALL_VOCAB_TOKENS];
    wk_str merges[SMALL_VOCAB_MERGES];
    char byte_names[256][8];
} small_vocab;

/* text must outlive the vocabulary. Returns the id. */
static inline uint32_t small_vocab_add(small_vocab *v, const char *text, wk_token_kind kind,
                                       float score) {
    const uint32_t id = v->desc.n_tokens++;
    assert(id < SMALL_VOCAB_TOKENS);
    v->tokens[id] = wk_str_of(text);
    v->kinds[id] = (int32_t)kind;
    v->scores[id] = score;
    return id;
}

static inline void small_vocab_merge(small_vocab *v, const char *merge) {
    assert(v->desc.n_merges < SMALL_VOCAB_MERGES);
    v->merges[v->desc.n_merges++] = wk_str_of(merge);
}

static inline void small_vocab_begin(small_vocab *v, const char *model, const char *pre) {
    *v = (small_vocab){.desc = {.model = wk_str_of(model),
                                .pre = wk_str_of(pre),
                                .begin = WICK_NO_TOKEN,
                                .end = WICK_NO_TOKEN,
                                .unknown = WICK_NO_TOKEN,
                                .end_of_turn = WICK_NO_TOKEN,
                                .end_of_message = WICK_NO_TOKEN,
                                .classify = WICK_NO_TOKEN,
                                .separator = WICK_NO_TOKEN}};
    v->desc.tokens = v->tokens;
    v->desc.kinds = v->kinds;
    v->desc.scores = v->scores;
    v->desc.merges = v->merges;
}

/* Byte-level BPE. Tokens 0 to 255 are the bytes; then those of the merges, <|end|> (control, 262)
 * and <tool> (user-defined, 263). */
static inline void small_vocab_bpe(small_vocab *v, const char *pre) {
    static const char *const joined[] = {"he", "ll", "hell", "hello", "\xC4\xA0h", "\xC4\xA0hello"};
    static const char *const merges[] = {"h e",    "l l",        "he ll",
                                         "hell o", "\xC4\xA0 h", "\xC4\xA0 hello"};
    small_vocab_begin(v, "gpt2", pre);
    wk_byte_alphabet alphabet;
    wk_byte_alphabet_init(&alphabet);
    for (int byte = 0; byte < 256; byte++) {
        const size_t size = wk_utf8_encode(alphabet.char_of[byte], v->byte_names[byte]);
        v->byte_names[byte][size] = '\0';
        small_vocab_add(v, v->byte_names[byte], WK_TOKEN_NORMAL, 0);
    }
    for (size_t i = 0; i < WK_COUNT(joined); i++) {
        small_vocab_add(v, joined[i], WK_TOKEN_NORMAL, 0);
        small_vocab_merge(v, merges[i]);
    }
    v->desc.end = small_vocab_add(v, "<|end|>", WK_TOKEN_CONTROL, 0);
    small_vocab_add(v, "<tool>", WK_TOKEN_USER_DEFINED, 0);
}

/* SentencePiece. 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes; then pieces from 259 on and the
 * user-defined <tool> at the end. */
static inline void small_vocab_sentencepiece(small_vocab *v) {
    static const char *const pieces[] = {
        "\xE2\x96\x81",
        "h",
        "e",
        "l",
        "o",
        "he",
        "ll",
        "hell",
        "hello",
        "\xE2\x96\x81hello",
        "\xE2\x96\x81h",
        "\xC3\xA9",
        "\xE2\x96\x81\xE2\x96\x81",
    };
    small_vocab_begin(v, "llama", "");
    v->desc.unknown = small_vocab_add(v, "<unk>", WK_TOKEN_UNKNOWN, 0);
    v->desc.begin = small_vocab_add(v, "<s>", WK_TOKEN_CONTROL, 0);
    v->desc.end = small_vocab_add(v, "</s>", WK_TOKEN_CONTROL, 0);
    for (int byte = 0; byte < 256; byte++) {
        snprintf(v->byte_names[byte], sizeof v->byte_names[byte], "<0x%02X>", (unsigned)byte);
        small_vocab_add(v, v->byte_names[byte], WK_TOKEN_BYTE, 0);
    }
    for (size_t i = 0; i < WK_COUNT(pieces); i++) {
        small_vocab_add(v, pieces[i], WK_TOKEN_NORMAL, -(float)i);
    }
    small_vocab_add(v, "<tool>", WK_TOKEN_USER_DEFINED, 0);
}

#endif
