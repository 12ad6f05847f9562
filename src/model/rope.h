/* model/rope.h: rotary embeddings of a model: frequencies from its metadata, rows for positions. */
#ifndef WK_MODEL_ROPE_H
#define WK_MODEL_ROPE_H

#include "model/hparams.h"

/* Adds the rotary embedding that the rope.* keys describe: hparams->rope[hparams->n_ropes++]. */
wick_status wk_rope_add(const wk_metadata *meta, wk_hparams *hparams, const wk_rope_desc *desc);
/* Divides frequencies by divisors [n] of a kind (WK_ROPE_DIVISORS...), which must all be positive,
 * in every rope that has some. */
wick_status wk_rope_divide(wk_arena *arena, wk_hparams *hparams, int kind, const float *divisors,
                           wick_error *err);
/* Pairs of the ropes that the file's divisors are for; 0: there is none. */
uint32_t wk_rope_divided_pairs(const wk_hparams *hparams);

/* Whether a context of that length uses the frequencies for long contexts. */
bool wk_rope_is_long(const wk_rope *rope, uint32_t context_length);
/* Fills cos and sin rows [n, n_pairs] of n positions in a context of context_length tokens, in
 * float64, rounded once. */
typedef struct wk_rope_positions {
    const uint32_t *positions;
    uint32_t n, context_length;
} wk_rope_positions;
void wk_rope_rows(const wk_rope *rope, wk_rope_positions at, float *cos_rows, float *sin_rows);

#endif
