/* sample/candidates.c: see candidates.h. */
#include "sample/candidates.h"

#include <assert.h>
#include <math.h>

static bool is_better(wk_candidate a, wk_candidate b) {
    return a.key > b.key || (a.key == b.key && a.id < b.id);
}

static void sift_down(wk_candidate *heap, size_t n, size_t at) {
    const wk_candidate moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_better(heap[child + 1], heap[child])) child++;
        if (!is_better(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* The best one of a heap of n goes to its end; the others stay a heap. */
static void take_best(wk_candidate *heap, size_t n) {
    assert(n > 0);
    const wk_candidate best = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = best;
    sift_down(heap, n - 1, 0);
}

void wk_candidates_begin(wk_candidates *list, size_t n) {
    *list = (wk_candidates){.items = list->items, .n = n, .end = n};
}

void wk_candidates_fill(wk_candidates *list, const float *logits, size_t n, double least) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        list->items[count] = (wk_candidate){.key = logits[i], .id = (uint32_t)i};
        count += logits[i] > -INFINITY && (double)logits[i] >= least;
    }
    wk_candidates_begin(list, count);
}

static void sort_to(wk_candidates *list, size_t n_sorted) {
    assert(n_sorted <= list->n);
    if (!list->is_heap)
        for (size_t i = list->n / 2; i-- > 0;) sift_down(list->items, list->n, i);
    list->is_heap = true;
    for (; list->n_sorted < n_sorted; list->n_sorted++)
        take_best(list->items, list->n - list->n_sorted);
}

wk_candidate wk_candidates_at(wk_candidates *list, size_t rank) {
    if (rank >= list->n_sorted) sort_to(list, rank + 1);
    return list->items[list->n - 1 - rank];
}

wk_candidate *wk_candidates_kept(wk_candidates *list, size_t *n) {
    assert(list->begin <= list->end && list->end <= list->n);
    *n = list->end - list->begin;
    const size_t needed = list->end < list->n ? list->end : list->begin;
    if (needed > list->n_sorted) sort_to(list, needed);
    return list->items + (list->n - list->end);
}
