/* text/merge.c: merging by priority. */
#include "text/merge.h"

#include <assert.h>

enum { LEAST_CAPACITY = 64 };

void wk_merger_init(wk_merger *merger, wk_heap *heap) { *merger = (wk_merger){.heap = heap}; }

void wk_merger_release(wk_merger *merger) {
    wk_free(merger->heap, merger->symbols, merger->capacity * sizeof *merger->symbols);
    wk_free(merger->heap, merger->queue, 2 * merger->capacity * sizeof *merger->queue);
    wk_merger_init(merger, merger->heap);
}

/* The queue never holds more than two candidates a symbol: it begins with one for each pair, and
 * every join takes one out and puts at most two in. */
wick_status wk_merger_begin(wk_merger *merger, size_t n_symbols) {
    merger->n_symbols = merger->n_queue = 0;
    if (n_symbols <= merger->capacity) return WICK_OK;
    size_t capacity = LEAST_CAPACITY;
    while (capacity < n_symbols) capacity *= 2;
    wk_heap *const heap = merger->heap;
    wk_merger_release(merger);
    merger->symbols = wk_alloc_array(heap, capacity, sizeof *merger->symbols);
    if (!merger->symbols) return WICK_ERR_OUT_OF_MEMORY;
    merger->queue = wk_alloc_array(heap, capacity, 2 * sizeof *merger->queue);
    if (!merger->queue) {
        wk_free(heap, merger->symbols, capacity * sizeof *merger->symbols);
        wk_merger_init(merger, heap);
        return WICK_ERR_OUT_OF_MEMORY;
    }
    merger->capacity = capacity;
    return WICK_OK;
}

void wk_merger_push(wk_merger *merger, uint32_t size, uint32_t id) {
    assert(size > 0 && merger->n_symbols < merger->capacity);
    const uint32_t at = (uint32_t)merger->n_symbols++;
    wk_symbol *const symbol = &merger->symbols[at];
    *symbol = (wk_symbol){.size = size, .prev = WK_NO_SYMBOL, .next = WK_NO_SYMBOL, .id = id};
    if (at == 0) return;
    symbol[-1].next = at;
    symbol->prev = at - 1;
    symbol->start = symbol[-1].start + symbol[-1].size;
}

static void queue_push(wk_merger *merger, wk_merge_candidate candidate) {
    assert(merger->n_queue < 2 * merger->capacity);
    wk_merge_candidate *const queue = merger->queue;
    size_t at = merger->n_queue++;
    while (at > 0 && queue[(at - 1) / 2].key > candidate.key) {
        queue[at] = queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue[at] = candidate;
}

static wk_merge_candidate queue_pop(wk_merger *merger) {
    wk_merge_candidate *const queue = merger->queue;
    const wk_merge_candidate best = queue[0];
    const size_t n = --merger->n_queue;
    const wk_merge_candidate moved = queue[n];
    size_t at = 0;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && queue[child + 1].key < queue[child].key) child++;
        if (queue[child].key >= moved.key) break;
        queue[at] = queue[child];
        at = child;
    }
    queue[at] = moved;
    return best;
}

/* Queues left and the symbol after it, where they may be joined. */
static void consider(wk_merger *merger, uint32_t left, wk_merge_find find, const void *context) {
    const wk_symbol *const a = &merger->symbols[left];
    if (a->next == WK_NO_SYMBOL) return;
    const wk_symbol *const b = &merger->symbols[a->next];
    uint32_t rank, id;
    if (!find(context, a, b, &rank, &id)) return;
    queue_push(merger, (wk_merge_candidate){
                           .key = (uint64_t)rank << 32 | left,
                           .id = id,
                           .size = a->size + b->size,
                       });
}

void wk_merger_run(wk_merger *merger, wk_merge_find find, const void *context) {
    wk_symbol *const symbols = merger->symbols;
    for (size_t i = 0; i + 1 < merger->n_symbols; i++) {
        consider(merger, (uint32_t)i, find, context);
    }
    while (merger->n_queue > 0) {
        const wk_merge_candidate best = queue_pop(merger);
        const uint32_t at = (uint32_t)best.key;
        wk_symbol *const left = &symbols[at];
        /* A candidate is out of date when one of its two has grown since or is gone: then the sizes
         * no longer add up (a symbol that took in its neighbour is larger than the pair was). */
        if (left->size == 0 || left->next == WK_NO_SYMBOL) continue;
        wk_symbol *const right = &symbols[left->next];
        if (left->size + right->size != best.size) continue;

        left->size = best.size;
        left->id = best.id;
        left->next = right->next;
        right->size = 0;
        if (left->next != WK_NO_SYMBOL) symbols[left->next].prev = at;
        if (left->prev != WK_NO_SYMBOL) consider(merger, left->prev, find, context);
        consider(merger, at, find, context);
    }
}
