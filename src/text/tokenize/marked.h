/* text/tokenize/marked.h: tokenizing text of which only parts may hold special tokens. */
#ifndef WK_TEXT_TOKENIZE_MARKED_H
#define WK_TEXT_TOKENIZE_MARKED_H

#include "text/tokenize/tokenizer.h"

/* origin: [text.size] 1 where a byte is data, else 0; NULL: none is. A special token counts where
 * no byte of it is data, elsewhere it is text. The begin token comes first where the vocabulary
 * wants it and the text does not begin with it. ids, capacity and count as for wick_tokenize. */
wick_status wk_tokenize_marked(const wick_tokenizer *tokenizer, wk_str text, const uint8_t *origin,
                               uint32_t *ids, size_t capacity, size_t *count);

#endif
