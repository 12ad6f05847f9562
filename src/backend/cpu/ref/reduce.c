/* backend/cpu/ref/reduce.c: argmax and softmax along the last dimension. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

/* --- Argmax --- */

/* The first largest one: -0 and +0 tie, so that only > counts. */
static int64_t argmax_float(const wk_ref_row *x) {
    int64_t best = 0;
    double largest, value;
    wk_ref_load(x, 0, 1, &largest);
    for (int64_t i = 1; i < x->n; i++) {
        wk_ref_load(x, i, 1, &value);
        if (value > largest) {
            largest = value;
            best = i;
        }
    }
    return best;
}

static int64_t argmax_integer(const wk_ref_row *x) {
    int64_t best = 0;
    for (int64_t i = 1; i < x->n; i++) {
        if (wk_ref_integer_at(x, i) > wk_ref_integer_at(x, best)) best = i;
    }
    return best;
}

static int64_t reduce_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_ref_n_rows(wk_src(op, 0));
}

/* Element r of y in row-major order: its place in y's last row-like split. */
static void store_index(const wk_view *y, int64_t r, int64_t index) {
    const int64_t n = y->rank > 0 ? y->extent[y->rank - 1] : 1;
    const wk_ref_row row = wk_ref_row_at(y, r / n);
    wk_ref_store_integer(&row, r % n, 1, &index);
}

static void run_reduce(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) {
        const wk_ref_row x = wk_ref_row_at(wk_src(run->op, 0), r);
        const bool is_float = wk_dtype_is_float(x.dtype);
        store_index(wk_dst(run->op, 0), r, is_float ? argmax_float(&x) : argmax_integer(&x));
    }
}

static bool accepts_reduce(const wk_op *op) {
    const wk_view *x = wk_src(op, 0);
    return op->p.reduce == WK_REDUCE_ARGMAX && !wk_dtype_is_block(x->dtype) && x->rank > 0 &&
           x->extent[x->rank - 1] > 0 && wk_dst(op, 0)->dtype == WICK_U32;
}

const wk_cpu_kernel wk_reduce_ref = {
    .base = {.name = "reduce_ref", .is_reference = true},
    .code = WK_OP_REDUCE,
    .accepts = accepts_reduce,
    .n_phases = 1,
    .items = reduce_items,
    .run = run_reduce,
};

/* --- Softmax --- */

/* A row of -infinity gives NaN, as 0 / 0 does. */
static void softmax(double *x, int64_t n) {
    double largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > largest) largest = x[i];
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = exp(x[i] - largest);
        sum += x[i];
    }
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_ref_row x = wk_ref_row_at(wk_src(run->op, 0), r);
        const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), r);
        wk_ref_load(&x, 0, x.n, buf);
        softmax(buf, x.n);
        wk_ref_store(&y, 0, y.n, buf);
    }
}

const wk_cpu_kernel wk_softmax_ref = {
    .base = {.name = "softmax_ref", .is_reference = true},
    .code = WK_OP_SOFTMAX,
    .accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_softmax,
};
