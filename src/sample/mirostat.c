/* sample/mirostat.c: see mirostat.h. */
#include "sample/mirostat.h"

#include <math.h>

static const double ln_2 = 0.693147180559945309417;

void wk_mirostat_reset(wk_mirostat *mirostat, const wick_sampler_desc *desc) {
    *mirostat = (wk_mirostat){.tau = (double)desc->mirostat_tau,
                              .eta = (double)desc->mirostat_eta,
                              .most = 2 * (double)desc->mirostat_tau};
}

void wk_mirostat_filter(const wk_mirostat *mirostat, const float *logits, size_t n, float best,
                        double temperature, wk_candidates *list) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += exp(((double)logits[i] - (double)best) / temperature);
    /* surprise = log total - (logit - best) / temperature, at most mirostat->most bits */
    const double least = (double)best + temperature * (log(total) - mirostat->most * ln_2);
    wk_candidates_fill(list, logits, n, fmin(least, (double)best));
}

void wk_mirostat_learn(wk_mirostat *mirostat, double probability) {
    const double surprise = -log(fmax(probability, 0x1p-1000)) / ln_2;
    mirostat->most -= mirostat->eta * (surprise - mirostat->tau);
}
