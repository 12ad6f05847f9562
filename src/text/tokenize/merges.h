/* text/tokenize/merges.h: which two tokens make which third one, and in which order: the merges of
 * a file.
 */
#ifndef WK_TEXT_TOKENIZE_MERGES_H
#define WK_TEXT_TOKENIZE_MERGES_H

#include "text/tokenize/special.h"
#include "text/tokenize/token_index.h"

#include <assert.h>

typedef struct wk_merge_slot {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    uint32_t id; /* what the two make; WICK_NO_TOKEN: the slot is empty */
} wk_merge_slot;

typedef struct wk_merges {
    wk_merge_slot *slots;
    size_t capacity; /* a power of two */
    /* A Bloom filter of the pairs, WK_MERGE_FILTER bits a slot: most pairs that are looked up have
     * no merge, and the slots are too many for the nearest caches. */
    uint64_t *filter;
} wk_merges;

enum { WK_MERGE_FILTER = 8 };

/* index: of the same table. Refused: no merges, a merge that is not "left right", or whose parts or
 * result are not tokens. A merge that would make a special token is left out: text must not turn
 * into one. */
wick_status wk_merges_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_index *index,
                           const wk_special *special, wk_merges *out, wick_error *err);
void wk_merges_release(wk_heap *heap, wk_merges *merges);

static inline uint64_t wk_merges_hash(uint64_t pair) {
    const uint64_t mixed = (pair ^ pair >> 29) * UINT64_C(0xD6E8FEB86659FD93);
    return mixed ^ mixed >> 32;
}

static inline bool wk_merges_find(const wk_merges *merges, uint32_t left, uint32_t right,
                                  uint32_t *rank, uint32_t *id) {
    assert(merges->capacity > 0);
    const uint64_t pair = (uint64_t)left << 32 | right, hash = wk_merges_hash(pair);
    const size_t bit = (size_t)hash & (WK_MERGE_FILTER * merges->capacity - 1);
    if (!(merges->filter[bit / 64] >> (bit % 64) & 1)) return false;
    size_t i = (size_t)hash & (merges->capacity - 1);
    while (merges->slots[i].id != WICK_NO_TOKEN && merges->slots[i].pair != pair) {
        i = (i + 1) & (merges->capacity - 1);
    }
    if (merges->slots[i].id == WICK_NO_TOKEN) return false;
    *rank = merges->slots[i].rank;
    *id = merges->slots[i].id;
    return true;
}

#endif
