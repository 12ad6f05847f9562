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

/* Where a row of the result is computed. */
typedef struct row_result {
    float *y;
    float *kept;         /* what is read before the result is there: y, or room in the caches */
    bool is_past_caches; /* each line of y is written past the caches */
} row_result;

static row_result begin_row(const wk_cpu_run *run, int64_t index) {
    const wk_view *const y = wk_dst(run->op, 0);
    float *const room = row_room(run, 0);
    if (!has_float_rows(y)) return (row_result){room, room, false};
    float *const row = row_at(y, index);
    if (!is_streamed(run->op)) return (row_result){row, row, false};
    const bool is_aligned = (uintptr_t)row % 64 == 0;
    return (row_result){is_aligned ? row : room, room, is_aligned};
}

static void end_row(const wk_cpu_run *run, const row_result *result, int64_t index) {
    const wk_view *const y = wk_dst(run->op, 0);
    if (!has_float_rows(y)) {
        store_run(row_at(y, index), y->stride[y->rank - 1], y->dtype, result->y, row_length(y));
    } else if (is_streamed(run->op) && !result->is_past_caches) {
        stream_bytes(row_at(y, index), result->y, (size_t)row_length(y) * sizeof(float));
    }
}

WK_INLINE void put_at(const row_result *to, int64_t i, int64_t n, v16 value) {
    if (SIMD_STREAMS != 0 && to->is_past_caches && n - i >= 16) {
        v16_stream(to->y + i, value);
    } else {
        store_at(to->y, i, n, value);
    }
}

/* load_at of a row that is read once more, while memory is at work on the row after it. */
WK_INLINE v16 load_again(const float *x, int64_t i, int64_t n) {
    wk_prefetch((const char *)(x + i) + n * (int64_t)sizeof *x);
    return load_at(x, i, n);
}

static bool accepts_rows(const wk_op *op) { return op->view[0].rank >= 1 && accepts_floats(op); }

/* --- Sums --- */

/* Adds (x - middle)^2 of 64 elements; those `ahead` bytes after them are read next. */
WK_INLINE void add_squares(v16 sum[4], const float *x, v16 middle, int64_t ahead) {
    for (int j = 0; j < 4; j++) {
        wk_prefetch((const char *)(x + 16 * j) + ahead);
        const v16 part = v16_sub(v16_load(x + 16 * j), middle);
        sum[j] = v16_fma(part, part, sum[j]);
    }
}

/* Four sums of 16 lanes each, added pairwise. */
static float sum_of_squares(const float *x, v16 middle, int64_t n, int64_t ahead) {
    v16 sum[4] = {v16_zero(), v16_zero(), v16_zero(), v16_zero()};
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) add_squares(sum, x + i, middle, ahead);
    if (i < n) {
        float rest[64];
        for (int j = 0; j < 64; j += 16) v16_store(rest + j, middle);
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *rest);
        add_squares(sum, rest, middle, 0);
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

static void rms_norm_row(const row_result *to, const float *x, const float *weight, int64_t n,
                         double eps) {
    const double mean = (double)sum_of_squares(x, v16_zero(), n, READ_AHEAD) / (double)n;
    const v16 factor = v16_set((float)(1 / sqrt(mean + eps)));
    for (int64_t i = 0; i < n; i += 16) {
        const v16 scaled = v16_mul(load_again(x, i, n), factor);
        put_at(to, i, n, weight != NULL ? v16_mul(scaled, load_at(weight, i, n)) : scaled);
    }
}

static void run_rms_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const float *const weight = load_row(run, 2, 0);
    for (int64_t row = begin; row < end; row++) {
        const row_result to = begin_row(run, row);
        rms_norm_row(&to, load_row(run, 1, row), weight, row_length(wk_dst(op, 0)),
                     (double)op->p.norm.eps);
        end_row(run, &to, row);
    }
    v16_stream_end();
}

static void layer_norm_row(const row_result *to, const float *x, const float *weight,
                           const float *bias, int64_t n, double eps) {
    const v16 mean = v16_set((float)(sum_of(x, n) / (double)n));
    /* Memory is at work on the next row in this pass: in the last one it takes the results. */
    const double variance = (double)sum_of_squares(x, mean, n, n * (int64_t)sizeof *x) / (double)n;
    const v16 factor = v16_set((float)(1 / sqrt(variance + eps)));
    for (int64_t i = 0; i < n; i += 16) {
        v16 scaled = v16_mul(v16_sub(load_at(x, i, n), mean), factor);
        if (weight != NULL) scaled = v16_mul(scaled, load_at(weight, i, n));
        if (bias != NULL) scaled = v16_add(scaled, load_at(bias, i, n));
        put_at(to, i, n, scaled);
    }
}

static void run_layer_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    const float *const weight = load_row(run, 2, 0), *const bias = load_row(run, 3, 0);
    for (int64_t row = begin; row < end; row++) {
        const row_result to = begin_row(run, row);
        layer_norm_row(&to, load_row(run, 1, row), weight, bias, n, (double)run->op->p.norm.eps);
        end_row(run, &to, row);
    }
    v16_stream_end();
}

/* --- Softmax --- */

/* NaN is passed over. */
static float largest_of(const float *x, int64_t n) {
    v16 most[4];
    for (int j = 0; j < 4; j++) most[j] = v16_set(-INFINITY);
    int64_t i = 0;
    for (; i + 64 <= n && SIMD_IS_SHORT == 0; i += 64)
        for (int j = 0; j < 4; j++) most[j] = v16_max(load_next(x + i, 16 * j, 64), most[j]);
    for (; i < n; i += 16)
        most[0] = v16_max(v16_fill_from(load_next(x, i, n), n - i, -INFINITY), most[0]);
    return v16_largest(v16_max(v16_max(most[0], most[1]), v16_max(most[2], most[3])));
}

/* e^(x - largest) of 16 lanes or, of the last ones, `left`, written to e unless it is NULL; 0 in
 * the others. The row is `length` long. */
WK_INLINE v16 exp_at(float *e, const float *x, int64_t length, v16 largest, int64_t left) {
    wk_prefetch(x + length);
    const v16 value = v16_exp(v16_sub(load_at(x, 0, left), largest));
    if (e != NULL) store_at(e, 0, left, value);
    return v16_fill_from(value, left, 0);
}

/* One sum of 16 lanes. */
static float sum_of_exp(float *e, const float *x, int64_t n, v16 largest) {
    v16 sum = v16_zero();
    int64_t i = 0;
    for (; i + 16 <= n && SIMD_IS_SHORT == 0; i += 16)
        sum = v16_add(sum, exp_at(e != NULL ? e + i : NULL, x + i, n, largest, 16));
    for (; i < n; i += 16)
        sum = v16_add(sum, exp_at(e != NULL ? e + i : NULL, x + i, n, largest, n - i));
    return v16_sum(sum);
}

static void softmax_row(const row_result *to, const float *x, int64_t n, bool is_log) {
    const v16 largest = v16_set(largest_of(x, n));
    float *const e = is_log ? NULL : to->kept; /* x may be y and is needed once more */
    const float total = sum_of_exp(e, x, n, largest);
    const v16 factor = v16_set(1 / total), log_total = v16_set(is_log ? logf(total) : 0);
    for (int64_t i = 0; i < n; i += 16)
        put_at(to, i, n,
               is_log ? v16_sub(v16_sub(load_at(x, i, n), largest), log_total)
                      : v16_mul(load_at(e, i, n), factor));
}

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        const row_result to = begin_row(run, row);
        softmax_row(&to, load_row(run, 1, row), n, run->op->p.softmax.is_log);
        end_row(run, &to, row);
    }
    v16_stream_end();
}

#endif
