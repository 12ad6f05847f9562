/* text/tokenize/token_index.c: open addressing with linear probing, at most three quarters full. */
#include "text/tokenize/token_index.h"

#include <assert.h>

enum { BATCH = 32 }; /* tokens that are put in together, so that their cache misses overlap */

/* The slot of text, or the empty one where it belongs. */
static wk_token_slot *find(const wk_token_index *index, wk_str text, uint32_t hash) {
    assert(hash != 0 && index->capacity > index->table->n_tokens); /* a slot is empty */
    const size_t mask = index->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        wk_token_slot *const slot = &index->slots[i];
        if (slot->hash == 0) return slot;
        if (slot->hash == hash && wk_str_equal(wk_token_text(index->table, slot->id), text)) {
            return slot;
        }
    }
}

static bool is_indexed(const wk_token_table *table, uint32_t id, bool is_normal) {
    if ((table->kinds[id] == WK_TOKEN_NORMAL) != is_normal) return false;
    return wk_token_is_text(table, id) && table->kinds[id] != WK_TOKEN_BYTE &&
           wk_token_text(table, id).size > 0;
}

static void insert_batch(wk_token_index *index, const uint32_t *ids, size_t n) {
    uint32_t hashes[BATCH];
    for (size_t i = 0; i < n; i++) {
        hashes[i] = wk_token_hash(wk_token_text(index->table, ids[i]));
        wk_token_index_prefetch(index, hashes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        *find(index, wk_token_text(index->table, ids[i]), hashes[i]) =
            (wk_token_slot){.hash = hashes[i], .id = ids[i]};
    }
}

/* Normal tokens, or the others. */
static void insert(wk_token_index *index, bool normal) {
    uint32_t ids[BATCH];
    size_t n = 0;
    for (uint32_t id = 0; id < index->table->n_tokens; id++) {
        if (!is_indexed(index->table, id, normal)) continue;
        ids[n++] = id;
        if (n < BATCH) continue;
        insert_batch(index, ids, n);
        n = 0;
    }
    insert_batch(index, ids, n);
}

wick_status wk_token_index_make(wk_heap *heap, const wk_token_table *table, wk_token_index *out) {
    *out = (wk_token_index){.table = table, .capacity = 16};
    while (out->capacity / 4 * 3 < table->n_tokens && out->capacity <= SIZE_MAX / 2) {
        out->capacity *= 2;
    }
    out->slots = wk_alloc_array(heap, out->capacity, sizeof *out->slots);
    if (!out->slots) return WICK_ERR_OUT_OF_MEMORY;
    insert(out, false);
    insert(out, true);
    return WICK_OK;
}

void wk_token_index_release(wk_heap *heap, wk_token_index *index) {
    wk_free(heap, index->slots, index->capacity * sizeof *index->slots);
    *index = (wk_token_index){.capacity = 0};
}

bool wk_token_index_find_hashed(const wk_token_index *index, wk_str text, uint32_t hash,
                                uint32_t *id) {
    const wk_token_slot *const slot = find(index, text, hash);
    if (slot->hash == 0) return false;
    *id = slot->id;
    return true;
}
