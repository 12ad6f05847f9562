/* simd/vector_reduce_long.h: sums, means, extremes and their indices of a whole tensor, of a few
 * long rows or of long columns, in parts: so there is work for all threads, and each reads memory
 * in its order. Where parts begin does not depend on how many threads there are, nor does the order
 * in which the parts' sums are added. */
#ifndef WK_SIMD_VECTOR_REDUCE_LONG_H
#define WK_SIMD_VECTOR_REDUCE_LONG_H

#include "backend/cpu/simd/vector_reduce.h"

enum {
    REDUCE_PART = 16384, /* elements of a row */
    REDUCE_LONG = 2 * REDUCE_PART,
    COLUMN_PARTS = 16, /* at most */
    COLUMN_PART = 64,  /* elements of a column, at least */
    COLUMN_TILE = 64,  /* rows that are read side by side */
    COLUMNS_MOST = 32768,
};

static bool is_by_long_columns(const wk_op *op) {
    const int64_t n = wk_view_count(wk_dst(op, 0));
    if (is_index_of(op->p.reduce.fn) || n > COLUMNS_MOST || reduced_count(op) < 2 * COLUMN_PART ||
        n * reduced_count(op) < REDUCE_LONG)
        return false;
    reduction r;
    reduction_of(&r, op);
    return r.is_by_columns;
}

/* Fewer results than columns have are rows. */
static bool accepts_reduce_long(const wk_op *op) {
    const wk_reduce_fn fn = op->p.reduce.fn;
    if (fn == WK_REDUCE_VAR || fn == WK_REDUCE_PROD || !accepts_reduce(op)) return false;
    return wk_view_count(wk_dst(op, 0)) < REDUCE_FEW ? reduced_count(op) >= REDUCE_LONG
                                                     : is_by_long_columns(op);
}

static int64_t parts_of_row(const wk_op *op) {
    return (reduced_count(op) + REDUCE_PART - 1) / REDUCE_PART;
}

static int64_t parts_of_columns(const wk_op *op) {
    const int64_t n = reduced_count(op) / COLUMN_PART;
    return n < COLUMN_PARTS ? n : COLUMN_PARTS;
}

/* Parts of all rows, then rows; of columns parts, then columns. */
static int64_t reduce_long_items(const wk_op *op, int phase) {
    const int64_t n = wk_view_count(wk_dst(op, 0));
    if (n >= REDUCE_FEW) return phase == 0 ? parts_of_columns(op) : n;
    return n * (phase == 0 ? parts_of_row(op) : 1);
}

static int64_t reduce_long_grain(const wk_op *op, int phase) {
    return phase == 1 && wk_view_count(wk_dst(op, 0)) >= REDUCE_FEW ? REDUCE_RESULTS : 1;
}

static uint64_t reduce_long_bytes(const wk_op *op) {
    const int64_t n = wk_view_count(wk_dst(op, 0));
    const int64_t n_results = n >= REDUCE_FEW ? n : 1;
    return (uint64_t)(reduce_long_items(op, 0) * n_results) * sizeof(double);
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

/* NaN where either is. */
static double more_extreme(double x, double y, double sign) {
    return x == x && !(sign * y <= sign * x) ? y : x;
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

static void reduce_long_rows(const reduction *r, double *parts, int64_t n_parts, int phase,
                             int64_t begin, int64_t end) {
    results out;
    for (int64_t i = begin; i < end; i++) {
        const walk row = row_of(r, phase == 0 ? i / n_parts : i);
        if (phase == 0) {
            parts[i] = reduce_part(r, &row, i % n_parts * REDUCE_PART);
            continue;
        }
        join_parts(r, &row, parts + i * n_parts, n_parts, &out);
        store_result(r, i, 1, &out);
    }
}

/* Rows [r->row, r->end) of n columns from i on: into what the part has found above them, if any. */
static void reduce_tile(const reduction *r, int64_t i, int64_t n, bool is_first, double *found) {
    double sum[REDUCE_RESULTS];
    alignas(64) float best[REDUCE_RESULTS];
    if (is_sum_of(r->fn)) {
        column_sums(r, i, n, sum);
        for (int64_t j = 0; j < n; j++) found[j] = sum[j] + (is_first ? 0 : found[j]);
        return;
    }
    column_extremes(r, i, n, best);
    const double sign = (double)sign_of(r);
    for (int64_t j = 0; j < n; j++)
        found[j] = is_first ? (double)best[j] : more_extreme(found[j], (double)best[j], sign);
}

static int64_t results_from(const reduction *r, int64_t begin, int64_t end) {
    const int64_t n = walk_step(&r->kept, begin, end);
    return n < REDUCE_RESULTS ? n : REDUCE_RESULTS;
}

/* All columns of the rows that are a part, a few rows at a time. */
static void reduce_column_part(const reduction *all, int64_t part, int64_t n_parts, double *found) {
    reduction r = *all;
    const int64_t n_rows = r.reduced.count, begin = n_rows * part / n_parts,
                  end = n_rows * (part + 1) / n_parts;
    for (r.row = begin; r.row < end; r.row = r.end) {
        r.end = end - r.row < COLUMN_TILE ? end : r.row + COLUMN_TILE;
        for (int64_t i = 0, n; i < r.kept.count; i += n) {
            n = results_from(&r, i, r.kept.count);
            reduce_tile(&r, i, n, r.row == begin, found + i);
        }
    }
}

static float join_column(const reduction *r, const double *found, int64_t n_parts) {
    double all = found[0];
    for (int64_t p = 1; p < n_parts; p++) {
        const double part = found[p * r->kept.count];
        all = is_sum_of(r->fn) ? all + part : more_extreme(all, part, (double)sign_of(r));
    }
    return (float)(is_sum_of(r->fn) ? sum_or_mean(r, all) : all);
}

static void reduce_long_columns(const reduction *r, double *found, int64_t n_parts, int phase,
                                int64_t begin, int64_t end) {
    results out;
    for (int64_t part = begin; phase == 0 && part < end; part++)
        reduce_column_part(r, part, n_parts, found + part * r->kept.count);
    for (int64_t n; phase == 1 && begin < end; begin += n) {
        n = results_from(r, begin, end);
        for (int64_t i = 0; i < n; i++) out.values[i] = join_column(r, found + begin + i, n_parts);
        store_result(r, begin, n, &out);
    }
}

static void run_reduce_long(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    reduction r;
    reduction_of(&r, run->op);
    if (r.kept.count < REDUCE_FEW) {
        reduce_long_rows(&r, run->scratch, parts_of_row(run->op), phase, begin, end);
    } else {
        reduce_long_columns(&r, run->scratch, parts_of_columns(run->op), phase, begin, end);
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
        .grain = reduce_long_grain,                                                                \
        .scratch_bytes = reduce_long_bytes,                                                        \
        .run = run_reduce_long,                                                                    \
    };

#endif
