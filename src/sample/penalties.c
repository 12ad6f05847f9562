/* sample/penalties.c: see penalties.h. */
#include "sample/penalties.h"

#include <assert.h>
#include <float.h>
#include <math.h>

void wk_logit_add(float *logit, double change) {
    if (!(*logit > -INFINITY)) return;
    *logit = (float)fmax(-FLT_MAX, fmin(FLT_MAX, (double)*logit + change));
}

bool wk_has_penalties(const wick_sampler_desc *desc) {
    return desc->repeat_penalty != 1 || desc->frequency_penalty != 0 || desc->presence_penalty != 0;
}

/* A factor above 1 lowers a logit of either sign. */
static double repetition_change(float logit, double factor) {
    const double value = (double)logit;
    return (value > 0 ? value / factor : value * factor) - value;
}

void wk_penalize(const wick_sampler_desc *desc, const uint32_t *tokens, size_t n_tokens,
                 uint32_t *counts, float *logits, uint32_t n_vocab) {
    assert(counts && desc->repeat_penalty > 0);
    const size_t last = desc->repeat_last < n_tokens ? desc->repeat_last : n_tokens;
    const uint32_t *const recent = tokens + (n_tokens - last);
    for (size_t i = 0; i < last; i++)
        if (recent[i] < n_vocab) counts[recent[i]]++;
    for (size_t i = 0; i < last; i++) {
        const uint32_t id = recent[i];
        if (id >= n_vocab || counts[id] == 0) continue;
        wk_logit_add(&logits[id], repetition_change(logits[id], (double)desc->repeat_penalty));
        wk_logit_add(&logits[id], -(double)desc->frequency_penalty * counts[id] -
                                      (double)desc->presence_penalty);
        counts[id] = 0; /* each once */
    }
}
