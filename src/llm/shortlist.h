/* llm/shortlist.h: the best of a row of logits, found where they are: most choices of a token
 * look at no others, so that a few words come back from a GPU instead of a row as long as the
 * vocabulary. */
#ifndef WK_LLM_SHORTLIST_H
#define WK_LLM_SHORTLIST_H

#include "tensor/tensor.h"

/* Enough for the usual top_k of 40 after penalties of the usual last 64 tokens. */
enum { WK_SHORTLIST = 128, WK_SHORTLIST_WORDS = 2 * WK_SHORTLIST };

/* Whether a row of n logits can have a shortlist, and is longer than it. */
bool wk_shortlist_fits(size_t n);
/* f32 [1, WK_SHORTLIST_WORDS] of f32 logits [1, n]: the largest ones, in falling order, then their
 * ids, as the bits of u32. NULL: failed. Intermediate results belong to the caller's scope. */
wick_tensor *wk_shortlist_make(wick_tensor *logits);
/* A row [n] that has these logits, -infinity for all others. false: they decide nothing, the whole
 * row has to; +infinity or NaN, which are never chosen, came first. */
bool wk_shortlist_spread(const float *list, float *row, size_t n);

/* Lists that stay on the device, each with the id that is drawn from it: f32
 * [n, WK_SHORTLIST_KEPT], the id, as the bits of u32, after the words of the list. */
enum { WK_SHORTLIST_KEPT = WK_SHORTLIST_WORDS + 1 };
/* As number `at`; draw: NULL, none is. */
wick_status wk_shortlist_keep(wick_tensor *list, wick_tensor *kept, uint32_t at,
                              const wk_draw *draw);
/* Its id becomes number `word` of dense u32 words. */
wick_status wk_shortlist_give(wick_tensor *kept, uint32_t at, wick_tensor *words, uint32_t word);

#endif
