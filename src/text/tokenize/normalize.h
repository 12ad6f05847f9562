/* text/tokenize/normalize.h: what SentencePiece does with text before a model sees it: replacements
 * from a table in the file, and white space at the ends and in a row left out. */
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

/* What stands at the ends of a text. */
enum {
    WK_EDGE_PREFIX = 1, /* a space goes in front of it */
    WK_EDGE_AFTER = 2,  /* it follows a user-defined piece: spaces at its beginning stay */
    WK_EDGE_BEFORE = 4, /* it is followed by such a piece: spaces at its end stay */
};

/* Refused: a table whose parts are larger than it. */
wick_status wk_normalizer_make(const wk_vocab_desc *desc, wk_normalizer *out, wick_error *err);

/* Appends text as it should be to out, after its prefix where anything is left or follows.
 * out->failed: out of memory. */
void wk_normalize(const wk_normalizer *normalizer, unsigned edges, wk_str text, wk_strbuf *out);

#endif
