/* text/sentencepiece.h: SentencePiece's BPE (Kudo and Richardson, 2018): characters joined to the
 * piece of the best score; what is no piece is spelled in bytes. */
#ifndef WK_TEXT_SENTENCEPIECE_H
#define WK_TEXT_SENTENCEPIECE_H

#include "core/map.h"
#include "text/id_sink.h"
#include "text/merge.h"
#include "text/token_table.h"

enum { WK_PAIR_BITS = 16 };

typedef struct wk_sentencepiece {
    wk_map pieces;          /* text as in the file -> token, of tokens that merging may make */
    size_t longest;         /* bytes of the longest of them */
    const float *scores;    /* [n_tokens], borrowed */
    uint32_t byte_ids[256]; /* WICK_NO_TOKEN where the vocabulary has none */
    uint32_t unknown;       /* or WICK_NO_TOKEN */
    /* Bloom filter of the pairs of neighbouring characters in all pieces. No piece reaches across a
     * pair that is not in it, so text is cut there. */
    uint64_t pairs[(1 << WK_PAIR_BITS) / 64];
} wk_sentencepiece;

/* Scratch for one call. */
typedef struct wk_sentencepiece_scratch {
    wk_merger merger;
    wk_strbuf chunk; /* text without a cut, spaces as U+2581 */
    size_t n_chars;  /* in chunk */
} wk_sentencepiece_scratch;

/* Refused: no scores. */
wick_status wk_sentencepiece_make(wk_heap *heap, const wk_vocab_desc *desc,
                                  const wk_token_table *table, wk_sentencepiece *out,
                                  wick_error *err);
void wk_sentencepiece_release(wk_sentencepiece *pieces);

/* Appends the ids of text, less than 2^30 bytes, after a space where prefix is set. A byte that the
 * vocabulary lacks becomes the unknown token. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_sentencepiece_encode(const wk_sentencepiece *pieces, bool prefix, wk_str text,
                                    wk_sentencepiece_scratch *scratch, wk_id_sink *out);

#endif
