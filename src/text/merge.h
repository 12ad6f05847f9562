/* text/merge.h: the loop that both kinds of BPE share: join the best pair of neighbours until none
 * is left. A linked list of symbols and a heap of candidates: O(n log n) in the symbols. */
#ifndef WK_TEXT_MERGE_H
#define WK_TEXT_MERGE_H

#include "core/alloc.h"

#define WK_NO_SYMBOL UINT32_MAX

typedef struct wk_symbol {
    uint32_t start, size; /* bytes of the text; size 0: joined to the symbol before it */
    uint32_t prev, next;  /* indices, WK_NO_SYMBOL at the ends */
    uint32_t id;          /* its token, or WICK_NO_TOKEN */
} wk_symbol;

typedef struct wk_merge_candidate {
    uint64_t key; /* rank, then position: the least is joined first */
    uint32_t id, size;
} wk_merge_candidate;

/* Scratch memory that is used for one piece of text after the other. */
typedef struct wk_merger {
    wk_heap *heap;
    wk_symbol *symbols; /* symbols[0] is the first one of the list */
    wk_merge_candidate *queue;
    size_t n_symbols, n_queue;
    size_t capacity; /* of symbols; queue has twice that */
} wk_merger;

/* False when the two may not be joined. Otherwise their token, and its rank: least first, equal
 * ones from the left. */
typedef bool (*wk_merge_find)(const void *context, const wk_symbol *left, const wk_symbol *right,
                              uint32_t *rank, uint32_t *id);

void wk_merger_init(wk_merger *merger, wk_heap *heap);
void wk_merger_release(wk_merger *merger);

/* Begins a text of at most n_symbols symbols (less than 2^31). WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_merger_begin(wk_merger *merger, size_t n_symbols);
/* Appends a symbol of size bytes, 1 or more. */
void wk_merger_push(wk_merger *merger, uint32_t size, uint32_t id);
/* Joins until nothing is left to join. */
void wk_merger_run(wk_merger *merger, wk_merge_find find, const void *context);

#endif
