/* simd/vector_reduce.h: sums, means, variances, extremes and their indices over any dimensions and
 * strides. Sums are in float64.
 *
 * Either the elements of one result are taken together, 16 at a time (rows), or many results side
 * by side take one element each (columns), whichever reads memory in its order. */
#ifndef WK_SIMD_VECTOR_REDUCE_H
#define WK_SIMD_VECTOR_REDUCE_H

#include "backend/cpu/simd/vector_rows.h"

#include <stdalign.h>

enum {
    REDUCE_RESULTS = 1024,             /* computed side by side */
    REDUCE_FEW = 16,                   /* least elements of a row, and least results of columns */
    HAS_TENSORS = 0 WK_OF_TENSORS(+1), /* whether what no model needs is there */
};

typedef struct reduction {
    walk kept;        /* of y and x, in x's order */
    walk reduced;     /* of one result's elements of x */
    int64_t row, end; /* those of them that count: all, or a part of sums and extremes */
    wk_reduce_fn fn;
    double correction;
    bool is_by_columns;
} reduction;

/* Results of at most REDUCE_RESULTS. */
typedef union results {
    alignas(64) float values[REDUCE_RESULTS];
    uint32_t indices[REDUCE_RESULTS];
} results;

static bool is_index_of(wk_reduce_fn fn) {
    return fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
}

static bool is_largest_of(wk_reduce_fn fn) { return fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_MAX; }

static void reduction_of(reduction *r, const wk_op *op) {
    const int n_kept = wk_dst(op, 0)->rank;
    walk_over(&r->kept, op->view, 2, 1, 0, n_kept);
    walk_over(&r->reduced, wk_src(op, 0), 1, 0, n_kept, wk_src(op, 0)->rank);
    r->row = 0;
    r->end = r->reduced.count;
    r->fn = op->p.reduce.fn;
    r->correction = op->p.reduce.correction;
    const walk_line *const kept = &r->kept.line[1], *const reduced = &r->reduced.line[0];
    const int64_t along = kept->stride[kept->rank - 1];
    const int64_t across = reduced->stride[reduced->rank - 1];
    r->is_by_columns = r->reduced.count < REDUCE_FEW ||
                       (along < across && kept->extent[kept->rank - 1] >= REDUCE_FEW);
}

static double sum_or_mean(const reduction *r, double sum) {
    return r->fn == WK_REDUCE_SUM ? sum : sum / (double)r->reduced.count;
}

static double variance_of(const reduction *r, double sum_of_squared) {
    return sum_of_squared / fmax(0, (double)r->reduced.count - r->correction);
}

/* --- Rows: one result, or what elements [begin, end) give of it --- */

static double row_sum(const walk *w, int64_t begin, int64_t end, float *buf) {
    double sum = 0;
    for (int64_t i = begin, n; i < end; i += n) {
        n = walk_step(w, i, end);
        sum += sum_of(load_floats(w, 0, i, n, buf), n);
    }
    return sum;
}

/* The sum of (x - mean)^2: less the mean as a float, in float32 for a chunk at a time, then without
 * what that float is off by. */
static double row_squares(const walk *w, double mean, float *buf) {
    const v16 near = v16_set((float)mean);
    const double off = mean - (double)(float)mean;
    double sum = 0;
    for (int64_t i = 0, n; i < w->count; i += n) {
        n = walk_step(w, i, w->count);
        if (n > WALK_CHUNK) n = WALK_CHUNK;
        const float *const x = load_floats(w, 0, i, n, buf);
        sum += (double)sum_of_squares(x, near, n, READ_AHEAD);
    }
    sum -= (double)w->count * off * off;
    return sum < 0 ? 0 : sum; /* NaN stays */
}

/* The largest or, with sign -1, the least number; *has_nan: whether one is no number. */
static float row_extreme(const walk *w, int64_t begin, int64_t end, float sign, float *buf,
                         bool *has_nan) {
    v16 best = v16_set(-INFINITY), ordered = v16_zero();
    for (int64_t i = begin, n; i < end; i += n) {
        n = walk_step(w, i, end);
        const float *const x = load_floats(w, 0, i, n, buf);
        for (int64_t j = 0; j < n; j += 16) {
            const v16 all = v16_fill_from(load_next(x, j, n), n - j, x[0]);
            const v16 part = v16_mul(all, v16_set(sign));
            ordered = v16_select(v16_equal(part, part), ordered, v16_set(1));
            best = v16_max(part, best); /* in this order NaN goes */
        }
    }
    *has_nan = m16_any(v16_less(v16_zero(), ordered));
    return sign * v16_largest(best);
}

/* The first element of this value. */
static int64_t row_find(const walk *w, int64_t begin, int64_t end, float value, float *buf) {
    for (int64_t i = begin, n; i < end; i += n) {
        n = walk_step(w, i, end);
        const float *const x = load_floats(w, 0, i, n, buf);
        int64_t j = 0;
        while (j + 16 <= n && !m16_any(v16_equal(v16_load(x + j), v16_set(value)))) j += 16;
        for (; j < n; j++)
            if (x[j] == value) return i + j;
    }
    return 0;
}

/* A first element that is no number is the extreme, others are passed over. */
static bool starts_with_nan(const walk *w, float *buf) {
    const float first = *load_floats(w, 0, 0, 1, buf);
    return first != first;
}

static int64_t row_index(const walk *w, float sign, float *buf) {
    bool has_nan;
    if (starts_with_nan(w, buf)) return 0;
    return row_find(w, 0, w->count, row_extreme(w, 0, w->count, sign, buf, &has_nan), buf);
}

/* One after the other. */
static double product_in_order(const walk *w, float *buf) {
    double product = 1;
    for (int64_t i = 0, n; i < w->count; i += n) {
        n = walk_step(w, i, w->count);
        const float *const x = load_floats(w, 0, i, n, buf);
        for (int64_t j = 0; j < n; j++) product *= (double)x[j];
    }
    return product;
}

/* Multiplies n elements into 16 products; false: one leaves 2^-400 ... 2^400, from where 4 more
 * factors could leave the range of float64. */
static bool multiply_lanes(double lane[16], const float *x, int64_t n) {
    int64_t i = 0;
    while (i + 64 <= n) {
        for (const int64_t end = i + 64; i < end; i += 16)
            for (int j = 0; j < 16; j++) lane[j] *= (double)x[i + j];
        int n_left = 0;
        for (int j = 0; j < 16; j++)
            n_left += !(fabs(lane[j]) > 0x1p-400 && fabs(lane[j]) < 0x1p400);
        if (n_left > 0) return false;
    }
    for (; i < n; i++) lane[i % 16] *= (double)x[i];
    return true;
}

static double row_product(const walk *w, float *buf) {
    double lane[16], product = 1;
    for (int j = 0; j < 16; j++) lane[j] = 1;
    for (int64_t i = 0, n; i < w->count; i += n) {
        n = walk_step(w, i, w->count);
        if (!multiply_lanes(lane, load_floats(w, 0, i, n, buf), n)) return product_in_order(w, buf);
    }
    int exponent, sum = 0;
    for (int j = 0; j < 16; j++) {
        product *= frexp(lane[j], &exponent);
        sum += exponent;
    }
    return ldexp(product, sum);
}

static void reduce_row(const reduction *r, const walk *w, results *out, int64_t at) {
    alignas(64) float buf[WALK_CHUNK];
    const float sign = is_largest_of(r->fn) ? 1 : -1;
    if (is_index_of(r->fn)) {
        out->indices[at] = (uint32_t)row_index(w, sign, buf);
    } else if (r->fn == WK_REDUCE_MAX || r->fn == WK_REDUCE_MIN) {
        bool has_nan;
        const float extreme = row_extreme(w, 0, w->count, sign, buf, &has_nan);
        out->values[at] = has_nan ? (float)NAN : extreme;
    } else if (r->fn == WK_REDUCE_VAR) {
        const double mean = row_sum(w, 0, w->count, buf) / (double)w->count;
        out->values[at] = (float)variance_of(r, row_squares(w, mean, buf));
    } else if (HAS_TENSORS && r->fn == WK_REDUCE_PROD) {
        out->values[at] = (float)row_product(w, buf);
    } else {
        out->values[at] = (float)sum_or_mean(r, row_sum(w, 0, w->count, buf));
    }
}

static void reduce_rows(const reduction *r, int64_t begin, int64_t n, results *out) {
    walk one = r->reduced;
    cursor x = cursor_at(&r->kept, 1, begin);
    for (int64_t i = 0; i < n; i++) {
        one.line[0].data = cursor_data(&x);
        reduce_row(r, &one, out, i);
        cursor_skip(&x, 1);
    }
}

/* --- Columns: n results from `begin` on --- */

/* Element x[i] of each, for one place in the reduced dimensions after the other. */
typedef struct column_step {
    const reduction *r;
    walk shifted; /* kept, at this place */
    cursor place;
    int64_t begin, n;
    alignas(64) float buf[REDUCE_RESULTS];
} column_step;

static void first_place(column_step *s, const reduction *r, int64_t begin, int64_t n) {
    s->r = r;
    s->shifted = r->kept;
    s->place = cursor_at(&r->reduced, 0, r->row);
    s->begin = begin;
    s->n = n;
}

/* The next ones are far from these where rows are long, and the processor does not guess that. */
static const float *next_place(column_step *s) {
    unsigned char *const here = cursor_data(&s->place);
    s->shifted.line[1].data = here;
    cursor_skip(&s->place, 1);
    const float *const x = load_floats(&s->shifted, 1, s->begin, s->n, s->buf);
    const ptrdiff_t step = cursor_data(&s->place) - here;
    for (int64_t i = 0; HAS_PREFETCH != 0 && i < s->n && x != s->buf; i += 16)
        wk_prefetch((const char *)(x + i) + step);
    return x;
}

static void column_sums(const reduction *r, int64_t begin, int64_t n, double *sum) {
    column_step step;
    first_place(&step, r, begin, n);
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t k = r->row; k < r->end; k++) {
        const float *const x = next_place(&step);
        for (int64_t i = 0; i < n; i++) sum[i] += (double)x[i];
    }
}

/* mean becomes the sum of (x - mean)^2. */
static void column_squares(const reduction *r, int64_t begin, int64_t n, double *mean) {
    column_step step;
    first_place(&step, r, begin, n);
    double sum[REDUCE_RESULTS] = {0};
    for (int64_t k = 0; k < r->reduced.count; k++) {
        const float *const x = next_place(&step);
        for (int64_t i = 0; i < n; i++)
            sum[i] += ((double)x[i] - mean[i]) * ((double)x[i] - mean[i]);
    }
    memcpy(mean, sum, (size_t)n * sizeof *sum);
}

static void column_products(const reduction *r, int64_t begin, int64_t n, double *product) {
    column_step step;
    first_place(&step, r, begin, n);
    for (int64_t i = 0; i < n; i++) product[i] = 1;
    for (int64_t k = 0; k < r->reduced.count; k++) {
        const float *const x = next_place(&step);
        for (int64_t i = 0; i < n; i++) product[i] *= (double)x[i];
    }
}

static void column_extremes(const reduction *r, int64_t begin, int64_t n, float *best) {
    column_step step;
    first_place(&step, r, begin, n);
    const v16 sign = v16_set(is_largest_of(r->fn) ? 1 : -1);
    memcpy(best, next_place(&step), (size_t)n * sizeof *best);
    for (int64_t k = r->row + 1; k < r->end; k++) {
        const float *const x = next_place(&step);
        for (int64_t i = 0; i < n; i += 16) {
            const v16 old = load_at(best, i, n), part = load_at(x, i, n);
            const m16 is_new = v16_less(v16_mul(old, sign), v16_mul(part, sign));
            const v16 more = v16_select(is_new, part, old); /* NaN in old stays */
            store_at(best, i, n, v16_select(v16_equal(part, part), more, part));
        }
    }
}

static void column_indices(const reduction *r, int64_t begin, int64_t n, uint32_t *index) {
    column_step step;
    first_place(&step, r, begin, n);
    alignas(64) float best[REDUCE_RESULTS];
    memcpy(best, next_place(&step), (size_t)n * sizeof *best);
    memset(index, 0, (size_t)n * sizeof *index);
    for (int64_t k = 1; k < r->reduced.count; k++) {
        const float *const x = next_place(&step);
        for (int64_t i = 0; i < n; i++) {
            const bool is_new = r->fn == WK_REDUCE_ARGMAX ? x[i] > best[i] : x[i] < best[i];
            best[i] = is_new ? x[i] : best[i];
            index[i] = is_new ? (uint32_t)k : index[i];
        }
    }
}

static void reduce_columns(const reduction *r, int64_t begin, int64_t n, results *out) {
    double sum[REDUCE_RESULTS];
    if (is_index_of(r->fn)) {
        column_indices(r, begin, n, out->indices);
        return;
    }
    if (r->fn == WK_REDUCE_MAX || r->fn == WK_REDUCE_MIN) {
        column_extremes(r, begin, n, out->values);
        return;
    }
    if (HAS_TENSORS && r->fn == WK_REDUCE_PROD) {
        column_products(r, begin, n, sum);
        for (int64_t i = 0; i < n; i++) out->values[i] = (float)sum[i];
        return;
    }
    column_sums(r, begin, n, sum);
    if (r->fn == WK_REDUCE_VAR) {
        for (int64_t i = 0; i < n; i++) sum[i] /= (double)r->reduced.count;
        column_squares(r, begin, n, sum);
        for (int64_t i = 0; i < n; i++) out->values[i] = (float)variance_of(r, sum[i]);
    } else {
        for (int64_t i = 0; i < n; i++) out->values[i] = (float)sum_or_mean(r, sum[i]);
    }
}

/* --- The kernel --- */

static bool accepts_reduce(const wk_op *op) {
    const wk_reduce_fn fn = op->p.reduce.fn;
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (fn > (HAS_TENSORS ? WK_REDUCE_PROD : WK_REDUCE_VAR) || !is_narrow_float(x) ||
        y->rank > x->rank)
        return false;
    return is_index_of(fn) ? y->dtype == WICK_U32 : y->dtype == x->dtype;
}

static int64_t reduced_count(const wk_op *op) {
    int64_t n = 1;
    for (int d = op->view[0].rank; d < op->view[1].rank; d++) n *= op->view[1].extent[d];
    return n;
}

/* A few thousand elements, and of columns, whose rows lie far from each other, many or an eighth.
 */
static int64_t reduce_grain(const wk_op *op, int phase) {
    (void)phase;
    const int64_t some = 1 + 4096 / (1 + reduced_count(op));
    const int64_t part = wk_view_count(&op->view[0]) / 8 / 16 * 16;
    if (HAS_TENSORS == 0 || part <= some) return some;
    reduction r;
    reduction_of(&r, op);
    if (!r.is_by_columns) return some;
    return part < REDUCE_RESULTS ? part : REDUCE_RESULTS;
}

static void store_result(const reduction *r, int64_t begin, int64_t n, const results *out) {
    if (is_index_of(r->fn)) {
        store_bits(&r->kept, 0, begin, n, out->indices);
    } else {
        store_floats(&r->kept, 0, begin, n, out->values);
    }
}

static void run_reduce(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    reduction r;
    reduction_of(&r, run->op);
    results out;
    for (int64_t n; begin < end; begin += n) {
        n = walk_step(&r.kept, begin, end);
        if (n > REDUCE_RESULTS) n = REDUCE_RESULTS;
        if (r.is_by_columns) {
            reduce_columns(&r, begin, n, &out);
        } else {
            reduce_rows(&r, begin, n, &out);
        }
        store_result(&r, begin, n, &out);
    }
}

#endif
