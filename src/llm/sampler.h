/* llm/sampler.h: from logits to a token. */
#ifndef WK_LLM_SAMPLER_H
#define WK_LLM_SAMPLER_H

#include "core/alloc.h"
#include "core/rng.h"
#include "core/status.h"

#include <wick/session.h>

typedef struct wk_candidate {
    float logit;
    uint32_t id;
} wk_candidate;

typedef struct wk_sampler {
    wick_sampler_desc desc; /* defaults resolved */
    uint32_t n_vocab;
    wk_candidate *candidates; /* [n_vocab], scratch */
    wk_rng rng;
} wk_sampler;

/* Refuses values that have no meaning (WICK_ERR_VALUE). */
wick_status wk_sampler_make(wk_heap *heap, const wick_sampler_desc *desc, uint32_t n_vocab,
                            wk_sampler *out, wick_error *err);
void wk_sampler_free(wk_heap *heap, wk_sampler *sampler);

/* logits [n_vocab]; tokens: the sequence so far, for the repetition penalty. Allocates nothing.
 * WICK_ERR_DEVICE: no logit is a finite number. */
wick_status wk_sampler_choose(wk_sampler *sampler, const float *logits, const uint32_t *tokens,
                              size_t n_tokens, uint32_t *chosen, wick_error *err);

#endif
