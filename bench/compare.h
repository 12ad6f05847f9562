/* bench/compare.h: what compare.c measures beside Wick: one function for each library that may be
 * there. Each returns false where the library, or the case in it, is missing. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

/* c [batch, m, n] = a [batch, m, k] b [batch, k, n]; transposed ones lie as [n, k] or [k, m]. */
typedef struct product {
    const char *name;
    int64_t batch, m, n, k;
    bool a_is_transposed, b_is_transposed;
} product;

/* x [n, c, h, h] to y [n, m, o, o]. A pool has no m and no groups. */
typedef struct windows {
    const char *name;
    int64_t n, c, h, m, kernel, stride, padding, groups;
    bool is_max; /* of a pool: the largest, else the mean without padding */
} windows;

static inline int64_t windows_out(const windows *w) {
    return (w->h + 2 * w->padding - w->kernel) / w->stride + 1;
}

/* compare_blas.c: OpenBLAS, opened when it is first asked for. */
bool blas_product(const product *p, int n_threads, const float *a, const float *b, float *c);

/* compare_onednn.c or compare_none.c: data in the order of the tensors, the filters in an order of
 * its own, made ahead. done frees it. */
typedef struct other_windows other_windows;
bool onednn_make(const windows *w, int n_threads, const float *x, const float *weight, float *y,
                 other_windows **out);
void onednn_run(other_windows *other);
void onednn_done(other_windows *other);

#endif
