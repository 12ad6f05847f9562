/* text/tokenize/pretokenize.h: cuts text into the pieces inside which byte-level BPE merges.
 *
 * A pre-tokenizer is one regular expression or several: each cuts the fragments that the one before
 * it left into its matches and what lies between them. They are written as scanners here; the
 * patterns stand in text/tokenize/cut.h. */
#ifndef WK_TEXT_TOKENIZE_PRETOKENIZE_H
#define WK_TEXT_TOKENIZE_PRETOKENIZE_H

#include "core/str.h"

enum { WK_MAX_CUTS = 6 };

/* Bytes of the first match or gap of text (size > 0), at least 1. */
typedef size_t (*wk_cut)(wk_str text);

typedef struct wk_pretokenizer {
    const char *names;        /* in tokenizer.ggml.pre, with blanks between them */
    wk_cut cuts[WK_MAX_CUTS]; /* in this order; NULL after the last */
    bool takes_whole;         /* a piece that is a token is not merged from its bytes */
    bool adds_begin;          /* its models begin with the begin token unless the file says no */
} wk_pretokenizer;

/* By the name in tokenizer.ggml.pre; NULL when it is not known. */
const wk_pretokenizer *wk_pretokenizer_find(wk_str name);

/* Walks through the pieces of a text. */
typedef struct wk_pieces {
    const wk_pretokenizer *kind;
    wk_str rest;
    const char *ends[WK_MAX_CUTS]; /* of the fragments that rest begins in */
} wk_pieces;

void wk_pieces_begin(wk_pieces *pieces, const wk_pretokenizer *kind, wk_str text);
/* The next piece, not empty, or false at the end. All pieces together are the text, and take time
 * in proportion to it. */
bool wk_pieces_next(wk_pieces *pieces, wk_str *piece);

#endif
