/* sample/logprobs.h: log probabilities by the model itself. */
#ifndef WK_SAMPLE_LOGPROBS_H
#define WK_SAMPLE_LOGPROBS_H

#include <wick/session.h>

enum { WK_MAX_LOGPROBS = 1024 };

/* Writes the chosen token to out[0], then the n_best <= n likeliest ones, best first; of equal ones
 * the lower id first. logits [n]: NaN counts as probability 0; at least one is finite. */
void wk_logprobs_find(const float *logits, size_t n, uint32_t chosen, size_t n_best,
                      wick_logprob *out);

#endif
