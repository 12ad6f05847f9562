/* text/tokenize/merges.c: from the merges of a file, which are text, to pairs of ids. */
#include "text/tokenize/merges.h"

#include <assert.h>
#include <string.h>

enum { BATCH = 32 }; /* merges that are looked up together, so that their cache misses overlap */

/* Each text is what the tokens write, not how the file spells them. */
typedef struct merge {
    wk_str left, right, both;
    uint32_t left_hash, right_hash;
    wk_merge_slot found; /* no id: it names a special token, and cannot be used */
} merge;

typedef struct resolving {
    const wk_vocab_desc *desc;
    const wk_token_index *index;
    const wk_special *special;
    wk_strbuf bytes; /* of the batch */
    merge batch[BATCH];
    uint32_t last; /* what the last merge made */
    wick_error *err;
} resolving;

static wick_status fail_memory(wick_error *err) {
    return wk_fail(err, WICK_ERR_OUT_OF_MEMORY, "not enough memory to index the merges");
}

static wick_status fail_merge(const resolving *r, size_t rank, const char *why) {
    return wk_fail(r->err, WICK_ERR_FORMAT, "merge %zu, '%s', %s", rank,
                   wk_str_show(r->desc->merges[rank]).text, why);
}

/* Appends the bytes of one side to those of the batch; there is room. */
static wk_str decode_side(resolving *r, wk_str side) {
    assert(side.size < r->bytes.capacity - r->bytes.size);
    char *const to = r->bytes.data + r->bytes.size;
    const size_t size = wk_token_decode(r->index->table, side, to);
    r->bytes.size += size;
    return (wk_str){to, size};
}

static wick_status decode_merge(resolving *r, size_t rank, merge *m) {
    const wk_str text = r->desc->merges[rank];
    const char *const space = text.size >= 3 ? memchr(text.text + 1, ' ', text.size - 1) : NULL;
    if (!space) return fail_merge(r, rank, "is not two tokens and a space");
    const wk_str left = {text.text, (size_t)(space - text.text)};
    m->left = decode_side(r, left);
    m->right = decode_side(r, (wk_str){space + 1, text.size - left.size - 1});
    m->both = (wk_str){m->left.text, m->left.size + m->right.size};
    m->left_hash = wk_token_hash(m->left);
    m->right_hash = wk_token_hash(m->right);
    wk_token_index_prefetch(r->index, m->left_hash);
    wk_token_index_prefetch(r->index, m->right_hash);
    return WICK_OK;
}

static wick_status decode_batch(resolving *r, size_t rank, size_t n) {
    size_t room = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t size = r->desc->merges[rank + i].size;
        if (size > SIZE_MAX - room) return fail_memory(r->err);
        room += size;
    }
    wk_strbuf_clear(&r->bytes);
    if (!wk_strbuf_reserve(&r->bytes, room)) return fail_memory(r->err);
    for (size_t i = 0; i < n; i++) WK_TRY(decode_merge(r, rank + i, &r->batch[i]));
    return WICK_OK;
}

static bool writes(const wk_token_table *table, uint32_t id, wk_str text) {
    return id < table->n_tokens && table->kinds[id] == WK_TOKEN_NORMAL &&
           wk_str_equal(wk_token_text(table, id), text);
}

/* What left and right make. Most vocabularies have the results in the order of the merges, some
 * with all the ways to make one in a row, so that looking at two guesses saves the search. */
static bool find_both(resolving *r, const merge *m, uint32_t *id) {
    uint32_t found = r->last;
    if (!writes(r->index->table, found, m->both) && !writes(r->index->table, ++found, m->both) &&
        !wk_token_index_find(r->index, m->both, &found)) {
        return false;
    }
    *id = r->last = found;
    return true;
}

static bool names_special(const resolving *r, const merge *m) {
    return wk_special_is(r->special, m->left) || wk_special_is(r->special, m->right) ||
           wk_special_is(r->special, m->both);
}

static void put(wk_merges *merges, wk_merge_slot slot) {
    const uint64_t hash = wk_merges_hash(slot.pair);
    const size_t bit = (size_t)hash & (WK_MERGE_FILTER * merges->capacity - 1);
    merges->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    size_t i = (size_t)hash & (merges->capacity - 1);
    for (; merges->slots[i].id != WICK_NO_TOKEN; i = (i + 1) & (merges->capacity - 1)) {
        if (merges->slots[i].pair == slot.pair) return; /* the better rank stays */
    }
    merges->slots[i] = slot;
}

static wick_status find_ids(resolving *r, size_t rank, merge *m) {
    uint32_t left, right;
    m->found = (wk_merge_slot){.rank = (uint32_t)rank, .id = WICK_NO_TOKEN};
    if (wk_token_index_find_hashed(r->index, m->left, m->left_hash, &left) &&
        wk_token_index_find_hashed(r->index, m->right, m->right_hash, &right) &&
        find_both(r, m, &m->found.id)) {
        m->found.pair = (uint64_t)left << 32 | right;
        return WICK_OK;
    }
    if (names_special(r, m)) return WICK_OK;
    return fail_merge(r, rank, "names a token that the vocabulary does not have");
}

static wick_status resolve_batch(resolving *r, size_t rank, size_t n, wk_merges *merges) {
    WK_TRY(decode_batch(r, rank, n));
    for (size_t i = 0; i < n; i++) {
        wk_token_index_prefetch_text(r->index, r->batch[i].left_hash);
        wk_token_index_prefetch_text(r->index, r->batch[i].right_hash);
    }
    for (size_t i = 0; i < n; i++) {
        WK_TRY(find_ids(r, rank + i, &r->batch[i]));
        const size_t hash = (size_t)wk_merges_hash(r->batch[i].found.pair);
        wk_prefetch(&merges->slots[hash & (merges->capacity - 1)]);
        wk_prefetch(&merges->filter[(hash & (WK_MERGE_FILTER * merges->capacity - 1)) / 64]);
    }
    for (size_t i = 0; i < n; i++) {
        if (r->batch[i].found.id != WICK_NO_TOKEN) put(merges, r->batch[i].found);
    }
    return WICK_OK;
}

wick_status wk_merges_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_index *index,
                           const wk_special *special, wk_merges *out, wick_error *err) {
    *out = (wk_merges){.capacity = 16};
    if (desc->n_merges == 0) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the vocabulary has no merges (tokenizer.ggml.merges is missing)");
    }
    while (out->capacity - out->capacity / 4 < desc->n_merges) out->capacity *= 2;
    out->slots = wk_alloc(heap, out->capacity * sizeof *out->slots);
    out->filter = wk_alloc_array(heap, out->capacity, WK_MERGE_FILTER / 8);
    if (!out->slots || !out->filter) {
        wk_merges_release(heap, out);
        return fail_memory(err);
    }
    for (size_t i = 0; i < out->capacity; i++) out->slots[i].id = WICK_NO_TOKEN;
    resolving r = {.desc = desc, .index = index, .special = special, .err = err};
    wk_strbuf_init(&r.bytes, heap);
    wick_status status = WICK_OK;
    for (size_t rank = 0; rank < desc->n_merges && status == WICK_OK; rank += BATCH) {
        const size_t left = desc->n_merges - rank;
        status = resolve_batch(&r, rank, left < BATCH ? left : BATCH, out);
    }
    wk_strbuf_release(&r.bytes);
    if (status != WICK_OK) wk_merges_release(heap, out);
    return status;
}

void wk_merges_release(wk_heap *heap, wk_merges *merges) {
    wk_free(heap, merges->slots, merges->capacity * sizeof *merges->slots);
    wk_free(heap, merges->filter, merges->capacity * WK_MERGE_FILTER / 8);
    *merges = (wk_merges){.capacity = 0};
}
