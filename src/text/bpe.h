/* text/bpe.h: byte-level byte-pair encoding (Radford et al., 2019). */
#ifndef WK_TEXT_BPE_H
#define WK_TEXT_BPE_H

#include "core/map.h"
#include "text/id_sink.h"
#include "text/merge.h"
#include "text/pretokenize.h"
#include "text/token_table.h"

typedef struct wk_bpe {
    wk_pretokenizer pretokenizer;
    uint32_t byte_ids[256]; /* WICK_NO_TOKEN: the vocabulary lacks that byte */
    wk_map64 ranks;         /* left id << 32 | right id -> rank */
    uint32_t *merged;       /* [n_merges] rank -> token */
    size_t n_merges;
    wk_map whole; /* llama3 only: what tokens write -> token; such pieces are not merged */
} wk_bpe;

/* Refused: an unknown pre-tokenizer, no merges, a merge that is not "left right" or whose parts or
 * result are no tokens. */
wick_status wk_bpe_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                        wk_bpe *out, wick_error *err);
void wk_bpe_release(wk_heap *heap, wk_bpe *bpe);

/* Appends the ids of text, less than 2^31 bytes. A byte that the vocabulary lacks is left out.
 * WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_bpe_encode(const wk_bpe *bpe, wk_merger *merger, wk_str text, wk_id_sink *out);

#endif
