/* sample/penalties.h: what changes logits because of the tokens before. */
#ifndef WK_SAMPLE_PENALTIES_H
#define WK_SAMPLE_PENALTIES_H

#include <wick/session.h>

/* Adds to a logit and keeps it finite; one of -INFINITY (never chosen) stays. */
void wk_logit_add(float *logit, double change);

bool wk_has_penalties(const wick_sampler_desc *desc);

/* Repetition, frequency and presence penalty by the last desc->repeat_last of n_tokens tokens.
 * counts [n_vocab]: zero before and after. */
void wk_penalize(const wick_sampler_desc *desc, const uint32_t *tokens, size_t n_tokens,
                 uint32_t *counts, float *logits, uint32_t n_vocab);

#endif
