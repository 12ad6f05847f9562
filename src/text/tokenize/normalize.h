/* text/tokenize/normalize.h: what SentencePiece does with text before a unigram model sees it:
 * replacements from a table in the file, and white space at the ends and in a row left out. */
#ifndef WK_TEXT_TOKENIZE_NORMALIZE_H
#define WK_TEXT_TOKENIZE_NORMALIZE_H

#include "text/tokenize/tokenizer.h"

/* The table is a trie as a double array (Aoe, 1989), in the layout of Darts-clone, and the
 * replacements as terminated texts. All is borrowed. */
typedef struct wk_normalizer {
    const unsigned char *units; /* [n_units] 4 bytes each, little endian, unaligned */
    size_t n_units;
    wk_str replacements;
    bool removes_extra_spaces;
} wk_normalizer;

/* Refused: a table whose parts are larger than it. */
wick_status wk_normalizer_make(const wk_vocab_desc *desc, wk_normalizer *out, wick_error *err);

/* Appends text as it should be to out, after a space where prefix is set and anything is left.
 * out->failed: out of memory. */
void wk_normalize(const wk_normalizer *normalizer, bool prefix, wk_str text, wk_strbuf *out);

#endif
