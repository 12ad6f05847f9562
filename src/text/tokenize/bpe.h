/* text/tokenize/bpe.h: byte-level byte-pair encoding (Radford et al., 2019). */
#ifndef WK_TEXT_TOKENIZE_BPE_H
#define WK_TEXT_TOKENIZE_BPE_H

#include "text/tokenize/merge.h"
#include "text/tokenize/merges.h"
#include "text/tokenize/pretokenize.h"

typedef struct wk_bpe {
    const wk_pretokenizer *pretokenizer;
    uint32_t byte_ids[256];  /* WICK_NO_TOKEN: the vocabulary lacks that byte */
    uint32_t replacement[3]; /* what stands for such bytes: */
    uint32_t n_replacement;  /* the unknown token, or U+FFFD in one token or three; or nothing */
    wk_merges merges;
    bool takes_whole;     /* a piece that is a token is not merged from its bytes */
    wk_token_index whole; /* where takes_whole is set */
} wk_bpe;

/* Refused: an unknown pre-tokenizer, and what wk_merges_make refuses. */
wick_status wk_bpe_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                        const wk_special *special, wk_bpe *out, wick_error *err);
void wk_bpe_release(wk_heap *heap, wk_bpe *bpe);

/* Appends the ids of text, less than 2^31 bytes. WICK_ERR_OUT_OF_MEMORY; WICK_ERR_VALUE for a byte
 * that the vocabulary lacks, where it has neither an unknown token nor U+FFFD. */
wick_status wk_bpe_encode(const wk_bpe *bpe, wk_merger *merger, wk_str text, wk_id_sink *out);

#endif
