/* text/tokenize/unigram.h: the unigram language model (Kudo, 2018): of all ways to cut a text into
 * pieces, the one whose scores (logarithms of probabilities) have the greatest sum. */
#ifndef WK_TEXT_TOKENIZE_UNIGRAM_H
#define WK_TEXT_TOKENIZE_UNIGRAM_H

#include "text/tokenize/id_sink.h"
#include "text/tokenize/token_index.h"

typedef struct wk_unigram {
    const wk_token_index *pieces;
    const float *scores; /* [n_tokens] */
    float unknown_score; /* of a character that is not a piece */
    /* Puts the ids that stand for such a character. */
    wick_status (*spell)(const void *context, wk_str text, wk_id_sink *out);
    const void *context;
} wk_unigram;

/* Appends the ids of text, whose pieces may have longest bytes. WICK_ERR_OUT_OF_MEMORY, or what
 * spell says. */
wick_status wk_unigram_encode(const wk_unigram *model, wk_heap *heap, wk_str text, wk_id_sink *out);

#endif
