/* backend/cpu/ref/ref.c: arithmetic and answers that many reference kernels share. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

/* --- Arithmetic --- */

/* Four sums side by side, since one would wait for its own last addition at every step. */
double wk_ref_dot(const double *a, const double *b, int64_t n) {
    double sum[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int j = 0; j < 4; j++) sum[j] += a[i + j] * b[i + j];
    }
    for (; i < n; i++) sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double wk_ref_softcap(double logit, double cap) {
    return cap > 0 ? cap * tanh(logit / cap) : logit;
}

double wk_ref_of_head(const wk_view *view, int64_t head) {
    const wk_row row = wk_row_at(view, 0);
    double value;
    wk_row_load(&row, head, 1, &value);
    return value;
}

void wk_ref_attention_weights(double *logits, int64_t n, const double *sink) {
    double largest = sink ? *sink : -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (logits[i] > largest) largest = logits[i];
    }
    if (largest == -INFINITY) largest = 0; /* nothing is seen: every exponential below is 0 */
    double sum = sink ? exp(*sink - largest) : 0;
    for (int64_t i = 0; i < n; i++) {
        logits[i] = exp(logits[i] - largest);
        sum += logits[i];
    }
    if (sum == 0) return;
    for (int64_t i = 0; i < n; i++) logits[i] /= sum;
}

/* --- Answers that many kernels share --- */

bool wk_ref_is_float(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!wk_dtype_is_float(op->view[i].dtype)) return false;
    }
    return true;
}

int64_t wk_ref_dst_rows(const wk_op *op, int phase) {
    (void)phase;
    return wk_row_count(wk_dst(op, 0));
}

uint64_t wk_ref_row_bytes(const wk_op *op) {
    const wk_view *y = wk_dst(op, 0);
    return y->rank > 0 ? (uint64_t)y->extent[y->rank - 1] * sizeof(double) : sizeof(double);
}
