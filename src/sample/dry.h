/* sample/dry.h: DRY, a penalty for going on with a repetition: p-e-w, 2024,
 * github.com/oobabooga/text-generation-webui/pull/5677. */
#ifndef WK_SAMPLE_DRY_H
#define WK_SAMPLE_DRY_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/session.h>
#include <wick/text.h>

/* Longer repetitions count as one of WK_DRY_MOST tokens, as in the proposal. */
enum { WK_DRY_MOST = 50 };

typedef struct wk_dry {
    double multiplier, base;
    uint32_t allowed, last, n_vocab;
    uint8_t *breakers; /* a bit for each token */
} wk_dry;

/* Nothing where desc->dry_multiplier is 0. tokenizer: for the breakers; NULL: there are none. */
wick_status wk_dry_make(wk_heap *heap, const wick_sampler_desc *desc,
                        const wick_tokenizer *tokenizer, uint32_t n_vocab, wk_dry *out,
                        wick_error *err);
void wk_dry_free(wk_heap *heap, wk_dry *dry);

/* Time is linear in the tokens looked at. longest [n_vocab]: zero before and after. */
void wk_dry_apply(const wk_dry *dry, const uint32_t *tokens, size_t n_tokens, uint32_t *longest,
                  float *logits);

#endif
