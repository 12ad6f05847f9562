/* model/rope.h: rotary embeddings of a model: frequencies from its metadata, rows for positions. */
#ifndef WK_MODEL_ROPE_H
#define WK_MODEL_ROPE_H

#include "model/hparams.h"

/* Adds the rotary embedding that the rope.* keys describe. */
wick_status wk_rope_add(const wk_metadata *meta, wk_hparams *hparams);
/* Divides the frequencies of every rope by divisors [n], which must all be positive. */
wick_status wk_rope_divide(wk_arena *arena, wk_hparams *hparams, const float *divisors, uint32_t n,
                           wick_error *err);
/* Fills cos and sin rows [n, n_pairs] of n positions for rope number i, in float64, rounded once.
 */
void wk_rope_rows(const wk_hparams *hparams, uint32_t i, const uint32_t *positions, uint32_t n,
                  float *cos_rows, float *sin_rows);

#endif
