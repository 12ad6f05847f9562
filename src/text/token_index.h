/* text/token_index.h: the tokens of a vocabulary by their text in the file; for making tokenizers.
 *
 * A vocabulary is looked up some hundred thousand times while it is loaded, so a slot is as small
 * as it can be: the texts stay where they are. */
#ifndef WK_TEXT_TOKEN_INDEX_H
#define WK_TEXT_TOKEN_INDEX_H

#include "core/alloc.h"
#include "core/str.h"

typedef struct wk_token_slot wk_token_slot;

typedef struct wk_token_index {
    const wk_str *tokens; /* not owned */
    wk_token_slot *slots;
    size_t capacity; /* a power of two */
} wk_token_index;

/* tokens [n] must outlive the index; of equal ones the last is found. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_token_index_make(wk_heap *heap, const wk_str *tokens, uint32_t n,
                                wk_token_index *out);
void wk_token_index_release(wk_heap *heap, wk_token_index *index);
/* False when absent; *id is then untouched. */
bool wk_token_index_find(const wk_token_index *index, wk_str text, uint32_t *id);

#endif
