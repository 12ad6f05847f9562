/* backend/cpu/ref/reduce.c: sums, means, extremes and their indices over the last dimensions of x,
 * those that y does not have. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- Index of an extreme --- */

/* The first one: -0 and +0 tie, so that only more counts. */
static int64_t index_of_float(const wk_row *x, bool is_max) {
    int64_t best = 0;
    double most, value;
    wk_row_load(x, 0, 1, &most);
    for (int64_t i = 1; i < x->n; i++) {
        wk_row_load(x, i, 1, &value);
        if (is_max ? value > most : value < most) {
            most = value;
            best = i;
        }
    }
    return best;
}

static int64_t index_of_integer(const wk_row *x, bool is_max) {
    int64_t best = 0;
    for (int64_t i = 1; i < x->n; i++) {
        const int64_t value = wk_row_integer_at(x, i), most = wk_row_integer_at(x, best);
        if (is_max ? value > most : value < most) best = i;
    }
    return best;
}

/* --- Values --- */

/* The part of x that becomes element r of y. */
static wk_view part_of(const wk_op *op, int64_t r) {
    const wk_view *x = wk_src(op, 0);
    const int kept = wk_dst(op, 0)->rank;
    wk_view part = *x;
    part.rank = x->rank - kept;
    int64_t offset = 0;
    for (int d = kept - 1; d >= 0; d--) {
        offset += r % x->extent[d] * x->stride[d];
        r /= x->extent[d];
    }
    part.offset += (uint64_t)(offset * wk_dtype_get(x->dtype)->block_bytes);
    for (int d = 0; d < part.rank; d++) {
        part.extent[d] = x->extent[kept + d];
        part.stride[d] = x->stride[kept + d];
    }
    return part;
}

static double fold_float(wk_reduce_fn fn, double so_far, double x, double mean) {
    switch (fn) {
    case WK_REDUCE_MAX: return isnan(x) || x > so_far ? x : so_far;
    case WK_REDUCE_MIN: return isnan(x) || x < so_far ? x : so_far;
    case WK_REDUCE_VAR: return so_far + (x - mean) * (x - mean);
    default: return so_far + x;
    }
}

static double fold_floats(wk_reduce_fn fn, const wk_view *x, double start, double mean) {
    double buf[WK_REF_CHUNK], so_far = start;
    const int64_t n_rows = wk_row_count(x);
    for (int64_t r = 0; r < n_rows; r++) {
        const wk_row row = wk_row_at(x, r);
        for (int64_t i = 0; i < row.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, row.n - i);
            wk_row_load(&row, i, n, buf);
            for (int64_t j = 0; j < n; j++) so_far = fold_float(fn, so_far, buf[j], mean);
        }
    }
    return so_far;
}

/* As a significand and an exponent, which does not overflow before all are taken. */
static double product_of_floats(const wk_view *x) {
    double product = 1, value;
    int64_t exponent = 0;
    const int64_t n_rows = wk_row_count(x);
    for (int64_t r = 0; r < n_rows; r++) {
        const wk_row row = wk_row_at(x, r);
        for (int64_t i = 0; i < row.n; i++) {
            int more = 0;
            wk_row_load(&row, i, 1, &value);
            product *= value;
            if (isfinite(product)) product = frexp(product, &more);
            exponent += more;
        }
    }
    return ldexp(product, (int)fmax(-4096, fmin((double)exponent, 4096)));
}

static double reduce_floats(const wk_params *p, const wk_view *x) {
    const wk_reduce_fn fn = p->reduce.fn;
    const double n = (double)wk_view_count(x);
    if (fn == WK_REDUCE_PROD) return product_of_floats(x);
    if (fn == WK_REDUCE_MAX) return fold_floats(fn, x, -(double)INFINITY, 0);
    if (fn == WK_REDUCE_MIN) return fold_floats(fn, x, (double)INFINITY, 0);
    const double sum = fold_floats(WK_REDUCE_SUM, x, 0, 0);
    if (fn == WK_REDUCE_SUM) return sum;
    if (fn == WK_REDUCE_MEAN) return sum / n;
    return fold_floats(fn, x, 0, sum / n) / fmax(0, n - p->reduce.correction);
}

static int64_t start_of(wk_reduce_fn fn) {
    switch (fn) {
    case WK_REDUCE_MAX: return INT64_MIN;
    case WK_REDUCE_MIN: return INT64_MAX;
    default: return fn == WK_REDUCE_PROD;
    }
}

/* Sums and products modulo 2^64: storing keeps the low bits, so every narrower integer wraps as
 * well. */
static int64_t reduce_integers(wk_reduce_fn fn, const wk_view *x) {
    int64_t so_far = start_of(fn);
    const int64_t n_rows = wk_row_count(x);
    for (int64_t r = 0; r < n_rows; r++) {
        const wk_row row = wk_row_at(x, r);
        for (int64_t i = 0; i < row.n; i++) {
            const int64_t value = wk_row_integer_at(&row, i);
            if (fn == WK_REDUCE_SUM) {
                so_far = (int64_t)((uint64_t)so_far + (uint64_t)value);
            } else if (fn == WK_REDUCE_PROD) {
                so_far = (int64_t)((uint64_t)so_far * (uint64_t)value);
            } else if (fn == WK_REDUCE_MAX ? value > so_far : value < so_far) {
                so_far = value;
            }
        }
    }
    return so_far;
}

static void run_reduce(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *y = wk_dst(run->op, 0);
    const wk_params *p = &run->op->p;
    const wk_reduce_fn fn = p->reduce.fn;
    const int64_t n = y->rank > 0 ? y->extent[y->rank - 1] : 1;
    for (int64_t r = begin; r < end; r++) {
        const wk_view x = part_of(run->op, r);
        const wk_row to = wk_row_at(y, r / n);
        const bool is_float = wk_dtype_is_float(x.dtype);
        if (fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN) {
            const wk_row row = wk_row_at(&x, 0);
            const bool is_max = fn == WK_REDUCE_ARGMAX;
            const int64_t index =
                is_float ? index_of_float(&row, is_max) : index_of_integer(&row, is_max);
            wk_row_store_integer(&to, r % n, 1, &index);
        } else if (is_float) {
            const double value = reduce_floats(p, &x);
            wk_row_store(&to, r % n, 1, &value);
        } else {
            const int64_t value = reduce_integers(fn, &x);
            wk_row_store_integer(&to, r % n, 1, &value);
        }
    }
}

static int64_t reduce_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_view_count(wk_dst(op, 0));
}

static bool accepts_reduce(const wk_op *op) {
    const wk_view *x = wk_src(op, 0), *y = wk_dst(op, 0);
    const wk_reduce_fn fn = op->p.reduce.fn;
    if (fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN) {
        return wk_dtype_is_scalar(x->dtype) && x->rank == y->rank + 1 &&
               x->extent[x->rank - 1] > 0 && y->dtype == WICK_U32;
    }
    const bool is_integer = wk_dtype_get(x->dtype)->dtype_class == WK_CLASS_INTEGER;
    return fn < WK_REDUCE_COUNT_ && y->dtype == x->dtype && y->rank <= x->rank &&
           (wk_ref_is_float(op) || (is_integer && wk_reduce_takes_integers(fn)));
}

const wk_cpu_kernel wk_reduce_ref = {
    .base.name = "reduce_ref",
    .base.code = WK_OP_REDUCE,
    .base.is_reference = true,
    .base.accepts = accepts_reduce,
    .n_phases = 1,
    .items = reduce_items,
    .run = run_reduce,
};
