/* sample/candidates.h: the tokens that may be chosen, put in order only as far as somebody looks.
 *
 * What is kept of a vocabulary is usually a few tokens, so the best ones are taken off a heap one
 * after another. Rank 0 is the best; of equal keys the lower id is better. */
#ifndef WK_SAMPLE_CANDIDATES_H
#define WK_SAMPLE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wk_candidate {
    float key; /* larger is better: a logit, where nothing else is said */
    uint32_t id;
} wk_candidate;

typedef struct wk_candidates {
    wk_candidate *items; /* [n] a heap of n - n_sorted, then the best ones, the best one last */
    size_t n, n_sorted;
    bool is_heap;
    size_t begin, end; /* ranks that may be chosen */
} wk_candidates;

/* Takes the tokens whose logit is at least least and not -INFINITY; items has room for n. */
void wk_candidates_fill(wk_candidates *list, const float *logits, size_t n, double least);
/* For items that were filled by hand: any order, all may be chosen. */
void wk_candidates_begin(wk_candidates *list, size_t n);
wk_candidate wk_candidates_at(wk_candidates *list, size_t rank);
/* Those that may be chosen, side by side in any order. The list can only be filled again. */
wk_candidate *wk_candidates_kept(wk_candidates *list, size_t *n);

#endif
