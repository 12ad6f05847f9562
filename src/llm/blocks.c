/* llm/blocks.c: see blocks.h. */
#include "llm/blocks.h"

#include "core/status.h"

#include <assert.h>
#include <string.h>

void wk_blocks_free(wk_heap *heap, wk_blocks *blocks) {
    wk_free(heap, blocks->refs, blocks->n * sizeof *blocks->refs);
    wk_free(heap, blocks->free, blocks->n * sizeof *blocks->free);
    *blocks = (wk_blocks){.n = 0};
}

wick_status wk_blocks_grow(wk_heap *heap, wk_blocks *blocks, uint32_t n, wick_error *err) {
    assert(n >= blocks->n);
    if (n == blocks->n) return WICK_OK;
    const wk_blocks before = *blocks;
    uint32_t *const refs = wk_alloc_array(heap, n, sizeof *refs);
    uint32_t *const free = wk_alloc_array(heap, n, sizeof *free);
    if (!refs || !free) {
        wk_free(heap, refs, n * sizeof *refs);
        wk_free(heap, free, n * sizeof *free);
        return wk_fail_memory(err, 2 * (uint64_t)n * sizeof *refs, "the blocks of a cache");
    }
    /* The new ones below those that are free already: these are taken first. */
    *blocks = (wk_blocks){.n = n, .refs = refs, .free = free};
    for (uint32_t i = n; i > before.n; i--) free[blocks->n_free++] = i - 1;
    if (before.n > 0) memcpy(refs, before.refs, before.n * sizeof *refs);
    if (before.n_free > 0) memcpy(free + blocks->n_free, before.free, before.n_free * sizeof *free);
    blocks->n_free += before.n_free;
    wk_free(heap, before.refs, before.n * sizeof *refs);
    wk_free(heap, before.free, before.n * sizeof *free);
    return WICK_OK;
}

uint32_t wk_blocks_take(wk_blocks *blocks) {
    if (blocks->n_free == 0) return WK_NO_BLOCK;
    const uint32_t block = blocks->free[--blocks->n_free];
    assert(blocks->refs[block] == 0);
    blocks->refs[block] = 1;
    return block;
}

void wk_blocks_share(wk_blocks *blocks, uint32_t block) {
    assert(block < blocks->n && blocks->refs[block] > 0);
    blocks->refs[block]++;
}

void wk_blocks_give(wk_blocks *blocks, uint32_t block) {
    assert(block < blocks->n && blocks->refs[block] > 0);
    if (--blocks->refs[block] == 0) blocks->free[blocks->n_free++] = block;
}

bool wk_blocks_is_shared(const wk_blocks *blocks, uint32_t block) {
    assert(block < blocks->n && blocks->refs[block] > 0);
    return blocks->refs[block] > 1;
}
