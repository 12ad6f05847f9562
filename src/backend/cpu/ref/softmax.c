/* backend/cpu/ref/softmax.c: softmax along the last dimension, and its logarithm. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

/* A row of -infinity gives NaN, as 0 / 0 does. */
static void softmax(double *x, int64_t n, bool is_log) {
    double largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > largest) largest = x[i];
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - largest);
    for (int64_t i = 0; i < n; i++)
        x[i] = is_log ? x[i] - largest - log(sum) : exp(x[i] - largest) / sum;
}

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_row x = wk_row_at(wk_src(run->op, 0), r);
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        wk_row_load(&x, 0, x.n, buf);
        softmax(buf, x.n, run->op->p.softmax.is_log);
        wk_row_store(&y, 0, y.n, buf);
    }
}

const wk_cpu_kernel wk_softmax_ref = {
    .base.name = "softmax_ref",
    .base.code = WK_OP_SOFTMAX,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_softmax,
};
