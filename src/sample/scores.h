/* sample/scores.h: numbers about logits: probabilities, divergences, and what samples of them say.
 * All in float64. */
#ifndef WK_SAMPLE_SCORES_H
#define WK_SAMPLE_SCORES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* NaN and +infinity count as probability 0. */
static inline float wk_logit_of(float logit) { return logit < INFINITY ? logit : -INFINITY; }

/* log(sum(exp(logits))), [n]: a logit less it is the logarithm of a probability. */
double wk_log_sum_exp(const float *logits, size_t n);

/* Kullback-Leibler divergence KL(p || q) in nats of the distributions that two rows [n] of logits
 * stand for: the information lost where q is taken for p. Each comes with its wk_log_sum_exp.
 * +infinity: p has what q excludes. */
double wk_kl_divergence(const float *p, double p_total, const float *q, double q_total, size_t n);

/* The first of the largest, [n]. */
size_t wk_largest(const float *logits, size_t n);

/* Sums over a sample. Begins with zeros. */
typedef struct wk_moments {
    uint64_t n;
    double sum, sum_of_squares;
} wk_moments;

void wk_moments_add(wk_moments *moments, double value);
double wk_mean(const wk_moments *moments);
/* Of the mean, were the values independent: s / sqrt(n), s^2 being the unbiased variance. 0 for
 * less than two values. */
double wk_standard_error(const wk_moments *moments);

void wk_sort_doubles(double *values, size_t n);
/* The quantile, share from 0 to 1, of sorted [n > 0], linear between two of them (type 7 of Hyndman
 * and Fan, 1996, what NumPy does). */
double wk_quantile(const double *sorted, size_t n, double share);

#endif
