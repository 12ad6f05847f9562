/* sample/mirostat.h: mirostat, version 2: Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural
 * text decoding algorithm that directly controls perplexity", ICLR 2021. */
#ifndef WK_SAMPLE_MIROSTAT_H
#define WK_SAMPLE_MIROSTAT_H

#include "sample/candidates.h"

#include <wick/session.h>

typedef struct wk_mirostat {
    double tau, eta; /* bits; tau 0: off */
    double most;     /* surprise that a token may have now, mu in the paper */
} wk_mirostat;

/* At the beginning of a sequence. */
void wk_mirostat_reset(wk_mirostat *mirostat, const wick_sampler_desc *desc);
/* Fills list from logits [n] with the tokens that surprise by no more than allowed, or the best. */
void wk_mirostat_filter(const wk_mirostat *mirostat, const float *logits, size_t n, float best,
                        double temperature, wk_candidates *list);
/* probability: of the token that was chosen, among those of the list. */
void wk_mirostat_learn(wk_mirostat *mirostat, double probability);

#endif
