/* sample/sampler.h: from logits to a token: the chain of steps that <wick/session.h> lists. */
#ifndef WK_SAMPLE_SAMPLER_H
#define WK_SAMPLE_SAMPLER_H

#include "core/alloc.h"
#include "core/rng.h"
#include "core/status.h"
#include "grammar/matcher.h"
#include "sample/candidates.h"
#include "sample/dry.h"
#include "sample/mirostat.h"

#include <wick/session.h>

typedef struct wk_sampler {
    wick_sampler_desc desc; /* defaults resolved; no pointers */
    uint32_t n_vocab;
    wick_logit_bias *biases; /* [n_bias] own copy */
    size_t n_biases;
    float *logits;            /* [n_vocab] scratch */
    wk_candidates candidates; /* scratch; room for n_vocab where something is drawn */
    uint32_t *counts;         /* [n_vocab] zero between calls; NULL: no penalty needs it */
    wk_dry dry;
    wk_mirostat mirostat;
    wk_rng rng;
    bool is_seeded;      /* by its desc, not by the system */
    wk_matcher *matcher; /* owned; put here after the sampler was made; NULL: any token will do */
} wk_sampler;

/* sampler_desc.c: refuses values that have no meaning, and ids from n_vocab on. */
wick_status wk_sampler_check(const wick_sampler_desc *desc, uint32_t n_vocab, wick_error *err);
/* sampler_desc.c: puts the defaults where desc has 0. */
void wk_sampler_resolve(wick_sampler_desc *desc);

/* tokenizer: for DRY's breakers, may be NULL. WICK_ERR_VALUE, WICK_ERR_INDEX; free it also then. */
wick_status wk_sampler_make(wk_heap *heap, const wick_sampler_desc *desc,
                            const wick_tokenizer *tokenizer, uint32_t n_vocab, wk_sampler *out,
                            wick_error *err);
void wk_sampler_free(wk_heap *heap, wk_sampler *sampler);
/* Another sequence begins. Random numbers go on. */
void wk_sampler_reset(wk_sampler *sampler);
/* Goes on as another sampler did, where that had this state; one that was seeded otherwise keeps
 * its own random numbers. */
void wk_sampler_resume(wk_sampler *sampler, wk_rng rng, double mirostat_most);
/* The next token is the first that the grammar is about. */
void wk_sampler_begin_text(wk_sampler *sampler);
/* Does what can be done before there are logits. */
wick_status wk_sampler_prepare(wk_sampler *sampler, wick_error *err);

/* How many of the largest logits decide a choice; UINT64_MAX: any may. */
uint64_t wk_sampler_reach(const wk_sampler *sampler);

/* logits [n_vocab]; tokens: the sequence so far, for the penalties. Allocates memory only for a
 * grammar. *chosen is WICK_NO_TOKEN where the grammar is at its end and the vocabulary has no token
 * for that. WICK_ERR_DEVICE: no logit is a finite number. WICK_ERR_VALUE: the biases or the grammar
 * leave no token. */
wick_status wk_sampler_choose(wk_sampler *sampler, const float *logits, const uint32_t *tokens,
                              size_t n_tokens, uint32_t *chosen, wick_error *err);

/* The random number by which the i-th choice from now on will be drawn, if all of them are. */
float wk_sampler_foresee(const wk_sampler *sampler, uint32_t i);

/* After a choice, until the next: logits [n_vocab] of the distribution that it was drawn from;
 * -INFINITY for what could not be drawn. */
const float *wk_sampler_drawn(wk_sampler *sampler, uint32_t chosen);

#endif
