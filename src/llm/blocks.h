/* llm/blocks.h: a free list with reference counts: which blocks of a pool are in use, and by how
 * many sequences. Pure: the memory of the blocks is the state's. */
#ifndef WK_LLM_BLOCKS_H
#define WK_LLM_BLOCKS_H

#include "core/alloc.h"

#define WK_NO_BLOCK UINT32_MAX

typedef struct wk_blocks {
    uint32_t n, n_free;
    uint32_t *refs; /* [n] sequences that have the block */
    uint32_t *free; /* [n], a stack of n_free; a new pool gives its lowest ones first, so that
                     * memory which is not needed is never touched */
} wk_blocks;

void wk_blocks_free(wk_heap *heap, wk_blocks *blocks);
/* To n of them, no fewer than there are. WICK_ERR_OUT_OF_MEMORY: nothing has changed. */
wick_status wk_blocks_grow(wk_heap *heap, wk_blocks *blocks, uint32_t n, wick_error *err);
/* A free one; WK_NO_BLOCK: there is none. */
uint32_t wk_blocks_take(wk_blocks *blocks);
/* One more has it. */
void wk_blocks_share(wk_blocks *blocks, uint32_t block);
/* One fewer has it. */
void wk_blocks_give(wk_blocks *blocks, uint32_t block);
bool wk_blocks_is_shared(const wk_blocks *blocks, uint32_t block);

#endif
