/* text/tokenize/wordpiece.h: WordPiece as BERT has it (Devlin et al., 2018): words, folded to lower
 * case without accents unless the vocabulary has capitals, cut into the longest pieces there are.
 */
#ifndef WK_TEXT_TOKENIZE_WORDPIECE_H
#define WK_TEXT_TOKENIZE_WORDPIECE_H

#include "text/tokenize/id_sink.h"
#include "text/tokenize/token_index.h"

typedef struct wk_wordpiece {
    wk_token_index pieces; /* those that begin a word have a space before them */
    uint32_t unknown;
    bool is_cased;
} wk_wordpiece;

/* Refused: no unknown token. */
wick_status wk_wordpiece_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                              wk_wordpiece *out, wick_error *err);
void wk_wordpiece_release(wk_heap *heap, wk_wordpiece *pieces);

/* Appends the ids of text. Invalid UTF-8 bytes are left out, as are control characters. */
void wk_wordpiece_encode(const wk_wordpiece *pieces, wk_str text, wk_id_sink *out);

#endif
