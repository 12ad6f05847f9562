/* text/tokenize/sentencepiece.h: vocabularies of whole characters, as SentencePiece makes them
 * (Kudo and Richardson, 2018): text is cut where no piece can reach across, and each chunk becomes
 * pieces by merging (by scores, or by a list of merges) or by the best sum of scores (unigram). A
 * character that is not a piece is spelled in bytes, or becomes the unknown token. */
#ifndef WK_TEXT_TOKENIZE_SENTENCEPIECE_H
#define WK_TEXT_TOKENIZE_SENTENCEPIECE_H

#include "text/tokenize/merge.h"
#include "text/tokenize/merges.h"
#include "text/tokenize/normalize.h"
#include "text/tokenize/unigram.h"

enum { WK_ASCII_PAIRS = 128 * 128, WK_PAIR_BITS = 18 };

typedef enum wk_sentencepiece_kind {
    WK_SENTENCEPIECE_SCORES,
    WK_SENTENCEPIECE_MERGES,
    WK_SENTENCEPIECE_UNIGRAM,
} wk_sentencepiece_kind;

typedef struct wk_sentencepiece {
    wk_sentencepiece_kind kind;
    wk_token_index pieces;
    const float *scores;      /* [n_tokens], borrowed; not for merges */
    wk_merges merges;         /* for merges alone */
    wk_normalizer normalizer; /* where normalizes is set */
    bool normalizes;          /* unigram, and scores with a table or without extra spaces */
    bool is_metaspace;        /* a text that begins with a space gets no prefix */
    float unknown_score;      /* for unigram alone */
    uint32_t byte_ids[256];   /* WICK_NO_TOKEN where the vocabulary has none */
    uint32_t ascii_ids[128];  /* pieces of one character */
    uint32_t unknown;         /* or WICK_NO_TOKEN */
    /* The pairs of neighbouring characters in all pieces: those of ASCII one bit each, then a Bloom
     * filter of the others. No piece reaches across a pair that is not in it. */
    uint64_t pairs[(WK_ASCII_PAIRS + (1 << WK_PAIR_BITS)) / 64];
} wk_sentencepiece;

/* Refused: no scores, or what wk_merges_make or wk_normalizer_make refuses. */
wick_status wk_sentencepiece_make(wk_heap *heap, wk_sentencepiece_kind kind,
                                  const wk_vocab_desc *desc, const wk_token_table *table,
                                  const wk_special *special, wk_sentencepiece *out,
                                  wick_error *err);
void wk_sentencepiece_release(wk_heap *heap, wk_sentencepiece *pieces);

/* Appends the ids of text, less than 2^30 bytes, with these edges (text/tokenize/normalize.h). What
 * the vocabulary lacks becomes the unknown token, one for all in a row; without such a token it is
 * WICK_ERR_VALUE. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_sentencepiece_encode(const wk_sentencepiece *pieces, unsigned edges, wk_str text,
                                    wk_merger *merger, wk_id_sink *out);

#endif
