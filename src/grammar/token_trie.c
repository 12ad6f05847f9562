/* grammar/token_trie.c: sorts the tokens by their texts; each then adds the bytes that it does not
 * share with the one before. */
#include "grammar/token_trie.h"

#include "core/str.h"

#include <assert.h>
#include <string.h>

enum { MAX_DEPTH = UINT16_MAX - 1 };

static wk_str text_of(const wick_tokenizer *tokenizer, uint32_t id) {
    wk_str text = {.text = NULL};
    text.text = wick_token_bytes(tokenizer, id, false, &text.size);
    return text;
}

static bool is_kept(const wick_tokenizer *tokenizer, uint32_t id) {
    const size_t size = text_of(tokenizer, id).size;
    return size > 0 && size <= MAX_DEPTH && !wick_token_ends_generation(tokenizer, id);
}

/* --- Sorting --- */

typedef struct sort_item {
    wk_str text;
    uint32_t id;
} sort_item;

/* -1: the text ends before. */
static int byte_at(const sort_item *item, size_t depth) {
    return depth < item->text.size ? (unsigned char)item->text.text[depth] : -1;
}

static void swap(sort_item *items, size_t i, size_t k) {
    const sort_item kept = items[i];
    items[i] = items[k];
    items[k] = kept;
}

static int middle_byte(const sort_item *items, size_t n, size_t depth) {
    assert(n > 0);
    const int a = byte_at(&items[0], depth), b = byte_at(&items[n / 2], depth),
              c = byte_at(&items[n - 1], depth);
    if ((a <= b) == (b <= c)) return b;
    return (b <= a) == (a <= c) ? a : c;
}

/* Puts those with a lesser byte first and those with a greater one last. */
static void part(sort_item *items, size_t n, size_t depth, size_t *n_less, size_t *n_up_to) {
    const int middle = middle_byte(items, n, depth);
    size_t less = 0, at = 0, greater = n;
    while (at < greater) {
        const int byte = byte_at(&items[at], depth);
        if (byte < middle)
            swap(items, less++, at++);
        else if (byte > middle)
            swap(items, at, --greater);
        else
            at++;
    }
    *n_less = less;
    *n_up_to = greater;
}

/* Items with the first depth bytes in common, by multikey quicksort (Bentley and Sedgewick, 1997).
 * The largest part is sorted in place of the whole, so recursion is as deep as log2(n). */
static void sort(sort_item *items, size_t n, size_t depth) {
    while (n > 1) {
        size_t less, up_to;
        part(items, n, depth, &less, &up_to);
        const bool ends = byte_at(&items[less], depth) < 0; /* equal texts */
        const size_t n_same = ends ? 0 : up_to - less, n_greater = n - up_to;
        if (n_same >= less && n_same >= n_greater) {
            sort(items, less, depth);
            sort(items + up_to, n_greater, depth);
            items += less;
            n = n_same;
            depth++;
        } else {
            if (n_same > 0) sort(items + less, n_same, depth + 1);
            const bool first = less >= n_greater;
            sort(first ? items + up_to : items, first ? n_greater : less, depth);
            if (!first) items += up_to;
            n = first ? less : n_greater;
        }
    }
}

/* --- Nodes --- */

static size_t common_size(wk_str a, wk_str b) {
    size_t n = 0;
    while (n < a.size && n < b.size && a.text[n] == b.text[n]) n++;
    return n;
}

static wick_status take_nodes(wk_token_trie *trie, const sort_item *items) {
    size_t n = 0;
    wk_str before = {.text = NULL};
    for (uint32_t i = 0; i < trie->n_tokens; i++) {
        n += items[i].text.size - common_size(before, items[i].text);
        before = items[i].text;
        if (before.size > trie->depth) trie->depth = (uint32_t)before.size;
    }
    if (n >= UINT32_MAX) return WICK_ERR_OUT_OF_MEMORY;
    trie->n_nodes = (uint32_t)n;
    trie->bytes = wk_alloc_array(trie->heap, n, sizeof *trie->bytes);
    trie->depths = wk_alloc_array(trie->heap, n, sizeof *trie->depths);
    trie->skips = wk_alloc_array(trie->heap, n, sizeof *trie->skips);
    trie->firsts = wk_alloc_array(trie->heap, n + 1, sizeof *trie->firsts);
    trie->ids = wk_alloc_array(trie->heap, trie->n_tokens, sizeof *trie->ids);
    const bool is_done = n == 0 || (trie->bytes && trie->depths && trie->skips && trie->ids);
    return is_done && trie->firsts ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

/* path [depth]: scratch, the nodes of the last token. */
static void fill_nodes(wk_token_trie *trie, const sort_item *items, uint32_t *path) {
    uint32_t n = 0;
    wk_str before = {.text = NULL};
    for (uint32_t i = 0; i < trie->n_tokens; i++) {
        const wk_str text = items[i].text;
        const size_t same = common_size(before, text);
        for (size_t k = same; k < before.size; k++) trie->skips[path[k]] = n;
        for (size_t k = same; k < text.size; k++, n++) {
            trie->bytes[n] = (uint8_t)text.text[k];
            assert(n < trie->n_nodes && k < UINT16_MAX);
            trie->depths[n] = (uint16_t)k;
            trie->firsts[n] = i;
            path[k] = n;
        }
        trie->ids[i] = items[i].id;
        before = text;
    }
    for (size_t k = 0; k < before.size; k++) trie->skips[path[k]] = n;
    trie->firsts[n] = trie->n_tokens;
}

static wick_status make_nodes(wk_token_trie *trie, sort_item *items) {
    sort(items, trie->n_tokens, 0);
    WK_TRY(take_nodes(trie, items));
    uint32_t *const path = wk_alloc_array(trie->heap, trie->depth + 1, sizeof *path);
    if (!path) return WICK_ERR_OUT_OF_MEMORY;
    fill_nodes(trie, items, path);
    wk_free(trie->heap, path, (trie->depth + 1) * sizeof *path);
    return WICK_OK;
}

static wick_status find_ends(wk_token_trie *trie, const wick_tokenizer *tokenizer) {
    for (uint32_t id = 0; id < trie->n_vocab; id++)
        trie->n_ends += wick_token_ends_generation(tokenizer, id);
    if (trie->n_ends == 0) return WICK_OK;
    trie->ends = wk_alloc_array(trie->heap, trie->n_ends, sizeof *trie->ends);
    if (!trie->ends) return WICK_ERR_OUT_OF_MEMORY;
    uint32_t n = 0;
    for (uint32_t id = 0; id < trie->n_vocab; id++)
        if (wick_token_ends_generation(tokenizer, id)) trie->ends[n++] = id;
    return WICK_OK;
}

wick_status wk_token_trie_make(wk_heap *heap, const wick_tokenizer *tokenizer, wk_token_trie *out) {
    *out = (wk_token_trie){.heap = heap, .n_vocab = wick_tokenizer_size(tokenizer)};
    const size_t size = ((size_t)out->n_vocab + 1) * sizeof(sort_item);
    sort_item *const items = wk_alloc(heap, size);
    if (!items) {
        wk_token_trie_free(out);
        return WICK_ERR_OUT_OF_MEMORY;
    }
    for (uint32_t id = 0; id < out->n_vocab; id++)
        if (is_kept(tokenizer, id))
            items[out->n_tokens++] = (sort_item){.text = text_of(tokenizer, id), .id = id};
    wick_status status = make_nodes(out, items);
    if (status == WICK_OK) status = find_ends(out, tokenizer);
    wk_free(heap, items, size);
    if (status != WICK_OK) wk_token_trie_free(out);
    return status;
}

void wk_token_trie_free(wk_token_trie *trie) {
    const size_t n = trie->n_nodes;
    if (!trie->heap) return;
    wk_free(trie->heap, trie->bytes, n * sizeof *trie->bytes);
    wk_free(trie->heap, trie->depths, n * sizeof *trie->depths);
    wk_free(trie->heap, trie->skips, n * sizeof *trie->skips);
    wk_free(trie->heap, trie->firsts, (n + 1) * sizeof *trie->firsts);
    wk_free(trie->heap, trie->ids, trie->n_tokens * sizeof *trie->ids);
    wk_free(trie->heap, trie->ends, trie->n_ends * sizeof *trie->ends);
    *trie = (wk_token_trie){0};
}
