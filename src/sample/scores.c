/* sample/scores.c: see scores.h. */
#include "sample/scores.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static double number(float logit) { return (double)wk_logit_of(logit); }

size_t wk_largest(const float *logits, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (number(logits[i]) > number(logits[best])) best = i;
    }
    return best;
}

double wk_log_sum_exp(const float *logits, size_t n) {
    assert(n > 0);
    const double largest = number(logits[wk_largest(logits, n)]);
    double total = 0;
    for (size_t i = 0; i < n; i++) total += exp(number(logits[i]) - largest);
    return largest + log(total);
}

double wk_kl_divergence(const float *p, double p_total, const float *q, double q_total, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_p = number(p[i]) - p_total;
        if (log_p == -INFINITY) continue; /* p log p is 0 there */
        sum += exp(log_p) * (log_p - (number(q[i]) - q_total));
    }
    return sum > 0 ? sum : 0; /* rounding alone makes it negative */
}

void wk_moments_add(wk_moments *moments, double value) {
    moments->n++;
    moments->sum += value;
    moments->sum_of_squares += value * value;
}

double wk_mean(const wk_moments *moments) {
    return moments->n > 0 ? moments->sum / (double)moments->n : 0;
}

double wk_standard_error(const wk_moments *moments) {
    if (moments->n < 2) return 0;
    const double n = (double)moments->n;
    const double squares = moments->sum_of_squares - moments->sum * wk_mean(moments);
    return sqrt((squares < 0 ? 0 : squares) / (n - 1) / n); /* below 0 by rounding alone */
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void wk_sort_doubles(double *values, size_t n) {
    if (n > 1) qsort(values, n, sizeof *values, by_value);
}

double wk_quantile(const double *sorted, size_t n, double share) {
    assert(n > 0 && share >= 0 && share <= 1);
    const double place = share * (double)(n - 1);
    const size_t below = (size_t)place;
    if (below + 1 >= n || sorted[below] == sorted[below + 1]) return sorted[below];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}
