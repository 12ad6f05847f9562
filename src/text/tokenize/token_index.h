/* text/tokenize/token_index.h: the tokens of a vocabulary by what they write.
 *
 * A vocabulary is looked up some hundred thousand times while it is loaded, so a slot is as small
 * as it can be: the texts stay in the token table. */
#ifndef WK_TEXT_TOKENIZE_TOKEN_INDEX_H
#define WK_TEXT_TOKENIZE_TOKEN_INDEX_H

#include "core/compiler.h"
#include "core/hash.h"
#include "text/tokenize/token_table.h"

typedef struct wk_token_slot {
    uint32_t hash; /* 0: empty */
    uint32_t id;
} wk_token_slot;

typedef struct wk_token_index {
    const wk_token_table *table; /* not owned */
    wk_token_slot *slots;
    size_t capacity; /* a power of two */
} wk_token_index;

/* Tokens that text may be made of: all text tokens except for bytes such as <0x0A>. Among equal
 * tokens normal ones come first, then the last one is found. The table must outlive the index.
 * WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_token_index_make(wk_heap *heap, const wk_token_table *table, wk_token_index *out);
void wk_token_index_release(wk_heap *heap, wk_token_index *index);

/* For those who look up many at once, so that cache misses overlap: hash and prefetch the slots of
 * all, then the tokens that the slots name, then find them. */
static inline uint32_t wk_token_hash(wk_str text) {
    const uint32_t hash = (uint32_t)(wk_hash(text.text, text.size) >> 32);
    return hash ? hash : 1;
}
static inline void wk_token_index_prefetch(const wk_token_index *index, uint32_t hash) {
    wk_prefetch(&index->slots[hash & (index->capacity - 1)]);
}
static inline void wk_token_index_prefetch_text(const wk_token_index *index, uint32_t hash) {
    const wk_token_slot slot = index->slots[hash & (index->capacity - 1)];
    wk_prefetch(wk_token_text(index->table, slot.id).text); /* of an empty slot: that of token 0 */
}
/* False when absent; *id is then untouched. */
bool wk_token_index_find_hashed(const wk_token_index *index, wk_str text, uint32_t hash,
                                uint32_t *id);

static inline bool wk_token_index_find(const wk_token_index *index, wk_str text, uint32_t *id) {
    return wk_token_index_find_hashed(index, text, wk_token_hash(text), id);
}

#endif
