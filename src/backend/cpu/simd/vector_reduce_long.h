/* simd/vector_reduce_long.h: sums, means, extremes and their indices of a whole tensor, or of a few
 * long rows: each row in parts, so that there is work for all threads. Where the parts begin does
 * not depend on how many these are, nor does the order in which their sums are added. */
#ifndef WK_SIMD_VECTOR_REDUCE_LONG_H
#define WK_SIMD_VECTOR_REDUCE_LONG_H

#include "backend/cpu/simd/vector_reduce.h"

enum { REDUCE_PART = 16384, REDUCE_LONG = 2 * REDUCE_PART }; /* elements */

/* Fewer results than columns have, so that these are rows. */
static bool accepts_reduce_long(const wk_op *op) {
    const wk_reduce_fn fn = op->p.reduce.fn;
    return fn != WK_REDUCE_VAR && fn != WK_REDUCE_PROD && accepts_reduce(op) &&
           wk_view_count(wk_dst(op, 0)) < REDUCE_FEW && reduced_count(op) >= REDUCE_LONG;
}

static int64_t parts_of_row(const wk_op *op) {
    return (reduced_count(op) + REDUCE_PART - 1) / REDUCE_PART;
}

/* Parts of all rows, then rows. */
static int64_t reduce_long_items(const wk_op *op, int phase) {
    return wk_view_count(wk_dst(op, 0)) * (phase == 0 ? parts_of_row(op) : 1);
}

static uint64_t reduce_long_bytes(const wk_op *op) {
    return (uint64_t)reduce_long_items(op, 0) * sizeof(double);
}

static bool is_sum_of(wk_reduce_fn fn) { return fn == WK_REDUCE_SUM || fn == WK_REDUCE_MEAN; }

static float sign_of(const reduction *r) { return is_largest_of(r->fn) ? 1 : -1; }

static walk row_of(const reduction *r, int64_t index) {
    walk row = r->reduced;
    const cursor x = cursor_at(&r->kept, 1, index);
    row.line[0].data = cursor_data(&x);
    return row;
}

static int64_t end_of_part(const walk *row, int64_t begin) {
    return row->count - begin < REDUCE_PART ? row->count : begin + REDUCE_PART;
}

/* Its sum; its extreme, of which an index passes over what is no number. */
static double reduce_part(const reduction *r, const walk *row, int64_t begin) {
    alignas(64) float buf[WALK_CHUNK];
    const int64_t end = end_of_part(row, begin);
    if (is_sum_of(r->fn)) return row_sum(row, begin, end, buf);
    bool has_nan;
    const float extreme = row_extreme(row, begin, end, sign_of(r), buf, &has_nan);
    return (double)(has_nan && !is_index_of(r->fn) ? (float)NAN : extreme);
}

static double sum_of_parts(const double *part, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += part[i];
    return sum;
}

/* The first extreme one; NaN is the extreme. */
static int64_t extreme_part(const double *part, int64_t n, double sign) {
    int64_t best = 0;
    for (int64_t i = 0; i < n && part[best] == part[best]; i++)
        if (!(sign * part[i] <= sign * part[best])) best = i;
    return best;
}

static void join_parts(const reduction *r, const walk *row, const double *part, int64_t n,
                       results *out) {
    alignas(64) float buf[WALK_CHUNK];
    if (is_sum_of(r->fn)) {
        out->values[0] = (float)sum_or_mean(r, sum_of_parts(part, n));
        return;
    }
    const int64_t best = extreme_part(part, n, (double)sign_of(r)), begin = best * REDUCE_PART;
    const float value = (float)part[best];
    if (is_index_of(r->fn)) {
        const bool is_first = starts_with_nan(row, buf);
        out->indices[0] =
            is_first ? 0 : (uint32_t)row_find(row, begin, end_of_part(row, begin), value, buf);
    } else {
        out->values[0] = value;
    }
}

static void run_reduce_long(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    reduction r;
    reduction_of(&r, run->op);
    double *const parts = run->scratch;
    const int64_t n = parts_of_row(run->op);
    results out;
    for (int64_t i = begin; i < end; i++) {
        const walk row = row_of(&r, phase == 0 ? i / n : i);
        if (phase == 0) {
            parts[i] = reduce_part(&r, &row, i % n * REDUCE_PART);
            continue;
        }
        join_parts(&r, &row, parts + i * n, n, &out);
        store_result(&r, i, 1, &out);
    }
}

#define REDUCE_LONG_KERNEL(isa)                                                                    \
    const wk_cpu_kernel wk_reduce_long_##isa = {                                                   \
        .base.name = "reduce_long_" #isa,                                                          \
        .base.code = WK_OP_REDUCE,                                                                 \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_reduce_long,                                                       \
        .n_phases = 2,                                                                             \
        .items = reduce_long_items,                                                                \
        .scratch_bytes = reduce_long_bytes,                                                        \
        .run = run_reduce_long,                                                                    \
    };

#endif
