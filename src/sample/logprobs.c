/* sample/logprobs.c: see logprobs.h. */
#include "sample/logprobs.h"

#include "sample/scores.h"

#include <math.h>
#include <string.h>

/* Puts a token into the ordered [n] of at most [room]; better than the last one where it is full.
 */
static size_t insert(wick_logprob *best, size_t n, size_t room, wick_logprob item) {
    if (n == room) n--;
    size_t i = n;
    while (i > 0 && best[i - 1].logprob < item.logprob) i--;
    memmove(best + i + 1, best + i, (n - i) * sizeof *best);
    best[i] = item;
    return n + 1;
}

void wk_logprobs_find(const float *logits, size_t n, uint32_t chosen, size_t n_best,
                      wick_logprob *out) {
    wick_logprob *const best = out + 1;
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        const float logit = wk_logit_of(logits[i]);
        if (n_best == 0 || (n_found == n_best && !(logit > best[n_best - 1].logprob))) continue;
        n_found =
            insert(best, n_found, n_best, (wick_logprob){.id = (uint32_t)i, .logprob = logit});
    }
    const double log_total = wk_log_sum_exp(logits, n);
    out[0] = (wick_logprob){.id = chosen, .logprob = wk_logit_of(logits[chosen])};
    for (size_t i = 0; i <= n_best; i++)
        out[i].logprob = (float)((double)out[i].logprob - log_total);
}
