/* text/token_index.c: open addressing with linear probing, at most half full. */
#include "text/token_index.h"

#include "core/hash.h"

struct wk_token_slot {
    uint32_t hash; /* 0: empty */
    uint32_t id;
};

static uint32_t hash_of(wk_str text) {
    const uint32_t hash = (uint32_t)(wk_hash(text.text, text.size) >> 32);
    return hash ? hash : 1;
}

/* The slot of text, or the empty one where it belongs. */
static wk_token_slot *find(const wk_token_index *index, wk_str text, uint32_t hash) {
    const size_t mask = index->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        wk_token_slot *const slot = &index->slots[i];
        if (slot->hash == 0) return slot;
        if (slot->hash == hash && wk_str_equal(index->tokens[slot->id], text)) return slot;
    }
}

wick_status wk_token_index_make(wk_heap *heap, const wk_str *tokens, uint32_t n,
                                wk_token_index *out) {
    *out = (wk_token_index){.tokens = tokens, .capacity = 16};
    while (out->capacity / 2 < n && out->capacity <= SIZE_MAX / 2) out->capacity *= 2;
    out->slots = wk_alloc_array(heap, out->capacity, sizeof *out->slots);
    if (!out->slots) return WICK_ERR_OUT_OF_MEMORY;
    for (uint32_t id = 0; id < n; id++) {
        const uint32_t hash = hash_of(tokens[id]);
        *find(out, tokens[id], hash) = (wk_token_slot){.hash = hash, .id = id};
    }
    return WICK_OK;
}

void wk_token_index_release(wk_heap *heap, wk_token_index *index) {
    wk_free(heap, index->slots, index->capacity * sizeof *index->slots);
    *index = (wk_token_index){.capacity = 0};
}

bool wk_token_index_find(const wk_token_index *index, wk_str text, uint32_t *id) {
    const wk_token_slot *const slot = find(index, text, hash_of(text));
    if (slot->hash == 0) return false;
    *id = slot->id;
    return true;
}
