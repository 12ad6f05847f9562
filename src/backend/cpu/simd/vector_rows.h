/* simd/vector_rows.h: ops along the last dimension: softmax and the norms. Rows that are not dense
 * floats are converted into worker scratch and back. */
#ifndef WK_SIMD_VECTOR_ROWS_H
#define WK_SIMD_VECTOR_ROWS_H

#include "backend/cpu/simd/vector_math.h"
#include "backend/cpu/simd/vector_walk.h"

#include <math.h>

static int64_t row_length(const wk_view *view) { return view->extent[view->rank - 1]; }

static int64_t row_items(const wk_op *op, int phase) {
    (void)phase;
    int64_t rows = 1;
    for (int d = 0; d < op->view[0].rank - 1; d++) rows *= op->view[0].extent[d];
    return row_length(&op->view[0]) == 0 ? 0 : rows;
}

/* A few thousand elements, so that a range is worth its start. */
static int64_t row_grain(const wk_op *op, int phase) {
    (void)phase;
    return 1 + 4096 / (1 + row_length(&op->view[0]));
}

/* --- Rows --- */

/* Bytes of row `index`, counted over all dimensions but the last. */
static void *row_at(const wk_view *view, int64_t index) {
    int64_t offset = 0;
    for (int d = view->rank - 2; d >= 0; d--) {
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    return (unsigned char *)wk_view_data(view) + offset * wk_dtype_get(view->dtype)->block_bytes;
}

static bool has_float_rows(const wk_view *view) {
    const int last = view->rank - 1;
    return view->dtype == WICK_F32 && (view->stride[last] == 1 || view->extent[last] <= 1);
}

/* Room for a row of each operand. */
static uint64_t row_bytes(const wk_op *op) {
    return (uint64_t)(op->n_dst + op->n_src) * (uint64_t)row_length(&op->view[0]) * sizeof(float);
}

static float *row_room(const wk_cpu_run *run, int operand) {
    return (float *)run->worker_scratch + operand * row_length(&run->op->view[0]);
}

/* Row of operand i (destinations first) as floats; NULL where there is none. */
static const float *load_row(const wk_cpu_run *run, int operand, int64_t index) {
    const wk_view *const view = &run->op->view[operand];
    if (view->buf == NULL) return NULL;
    const void *const row = row_at(view, index);
    if (has_float_rows(view)) return row;
    float *const room = row_room(run, operand);
    load_run(room, row, view->stride[view->rank - 1], view->dtype, row_length(view));
    return room;
}

/* Where the result's row is to be computed, and what ends it. */
static float *begin_row(const wk_cpu_run *run, int64_t index) {
    const wk_view *const y = wk_dst(run->op, 0);
    return has_float_rows(y) && !is_streamed(run->op) ? row_at(y, index) : row_room(run, 0);
}

static void end_row(const wk_cpu_run *run, int64_t index) {
    const wk_view *const y = wk_dst(run->op, 0);
    if (has_float_rows(y)) {
        if (is_streamed(run->op))
            stream_bytes(row_at(y, index), row_room(run, 0), (size_t)row_length(y) * sizeof(float));
        return;
    }
    store_run(row_at(y, index), y->stride[y->rank - 1], y->dtype, row_room(run, 0), row_length(y));
}

/* load_at of a row that is read once more, while memory is at work on the row after it. */
WK_INLINE v16 load_again(const float *x, int64_t i, int64_t n) {
    wk_prefetch((const char *)(x + i) + n * (int64_t)sizeof *x);
    return load_at(x, i, n);
}

static bool accepts_rows(const wk_op *op) { return op->view[0].rank >= 1 && accepts_floats(op); }

/* --- Sums --- */

/* Adds (x - middle)^2 of 64 elements. */
WK_INLINE void add_squares(v16 sum[4], const float *x, v16 middle) {
    for (int j = 0; j < 4; j++) {
        const v16 part = v16_sub(load_next(x, 16 * j, 64), middle);
        sum[j] = v16_fma(part, part, sum[j]);
    }
}

/* Four sums of 16 lanes each, added pairwise. */
static float sum_of_squares(const float *x, v16 middle, int64_t n) {
    v16 sum[4] = {v16_zero(), v16_zero(), v16_zero(), v16_zero()};
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) add_squares(sum, x + i, middle);
    if (i < n) {
        float rest[64];
        for (int j = 0; j < 64; j += 16) v16_store(rest + j, middle);
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *rest);
        add_squares(sum, rest, middle);
    }
    return v16_sum(v16_add(v16_add(sum[0], sum[1]), v16_add(sum[2], sum[3])));
}

/* In float64, so that terms may cancel. */
static double sum_of(const float *x, int64_t n) {
    wide_sums sums = wide_zero();
    for (int64_t i = 0; i < n; i += 16) wide_add(&sums, load_next(x, i, n));
    return wide_total(&sums);
}

/* --- Norms --- */

static void rms_norm_row(float *y, const float *x, const float *weight, int64_t n, double eps) {
    const double mean = (double)sum_of_squares(x, v16_zero(), n) / (double)n;
    const v16 factor = v16_set((float)(1 / sqrt(mean + eps)));
    for (int64_t i = 0; i < n; i += 16) {
        const v16 scaled = v16_mul(load_again(x, i, n), factor);
        store_at(y, i, n, weight != NULL ? v16_mul(scaled, load_at(weight, i, n)) : scaled);
    }
}

static void run_rms_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const float *const weight = load_row(run, 2, 0);
    for (int64_t row = begin; row < end; row++) {
        rms_norm_row(begin_row(run, row), load_row(run, 1, row), weight, row_length(wk_dst(op, 0)),
                     (double)op->p.norm.eps);
        end_row(run, row);
    }
}

static void layer_norm_row(float *y, const float *x, const float *weight, const float *bias,
                           int64_t n, double eps) {
    const v16 mean = v16_set((float)(sum_of(x, n) / (double)n));
    const double variance = (double)sum_of_squares(x, mean, n) / (double)n;
    const v16 factor = v16_set((float)(1 / sqrt(variance + eps)));
    for (int64_t i = 0; i < n; i += 16) {
        v16 scaled = v16_mul(v16_sub(load_again(x, i, n), mean), factor);
        if (weight != NULL) scaled = v16_mul(scaled, load_at(weight, i, n));
        if (bias != NULL) scaled = v16_add(scaled, load_at(bias, i, n));
        store_at(y, i, n, scaled);
    }
}

static void run_layer_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    const float *const weight = load_row(run, 2, 0), *const bias = load_row(run, 3, 0);
    for (int64_t row = begin; row < end; row++) {
        layer_norm_row(begin_row(run, row), load_row(run, 1, row), weight, bias, n,
                       (double)run->op->p.norm.eps);
        end_row(run, row);
    }
}

/* --- Softmax --- */

static void softmax_row(float *y, const float *x, int64_t n, bool is_log) {
    v16 most = v16_set(-INFINITY);
    for (int64_t i = 0; i < n; i += 16)
        most = v16_max(v16_fill_from(load_next(x, i, n), n - i, -INFINITY), most);
    const v16 largest = v16_set(v16_largest(most));
    v16 sum = v16_zero();
    for (int64_t i = 0; i < n; i += 16) {
        const v16 e = v16_exp(v16_sub(load_again(x, i, n), largest));
        if (!is_log) store_at(y, i, n, e); /* x may be y and is needed once more */
        sum = v16_add(sum, v16_fill_from(e, n - i, 0));
    }
    const float total = v16_sum(sum);
    const v16 factor = v16_set(1 / total), log_total = v16_set(is_log ? logf(total) : 0);
    for (int64_t i = 0; i < n; i += 16)
        store_at(y, i, n,
                 is_log ? v16_sub(v16_sub(load_at(x, i, n), largest), log_total)
                        : v16_mul(load_at(y, i, n), factor));
}

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        softmax_row(begin_row(run, row), load_row(run, 1, row), n, run->op->p.softmax.is_log);
        end_row(run, row);
    }
}

#endif
