/* x86/vector_rows.h: ops over float rows, written once over simd_*.h: elementwise functions, norm,
 * softmax, rotation and copies. The items of all of them are rows along the last dimension, which
 * must be dense; the other strides are free. */
#ifndef WK_X86_VECTOR_ROWS_H
#define WK_X86_VECTOR_ROWS_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/x86/vector_math.h"

#include <math.h>
#include <string.h>

static bool is_float_rows(const wk_view *view) {
    const int last = view->rank - 1;
    return view->dtype == WICK_F32 && view->layout == WK_LAYOUT_RAW && view->rank >= 1 &&
           (view->stride[last] == 1 || view->extent[last] <= 1);
}

static bool accepts_rows(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (op->view[i].rank > 0 ? !is_float_rows(&op->view[i]) : op->view[i].buf != NULL)
            return false;
    return op->view[0].rank >= 1;
}

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

/* Row of the row-major count over all dimensions but the last. */
static float *row_at(const wk_view *view, int64_t index) {
    int64_t offset = 0;
    for (int d = view->rank - 2; d >= 0; d--) {
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    return (float *)wk_cpu_data(view) + offset;
}

/* Lanes of the vector at i that exist. */
WK_INLINE v16 load_at(const float *x, int64_t i, int64_t n) { return v16_load_rows(x + i, n - i); }
WK_INLINE void store_at(float *y, int64_t i, int64_t n, v16 value) {
    v16_store_rows(y + i, value, n - i);
}

static bool accepts_unary(const wk_op *op) {
    return accepts_rows(op) && op->p.unary.fn == WK_UNARY_SILU;
}

static void run_unary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const x = row_at(wk_src(run->op, 0), row);
        for (int64_t i = 0; i < n; i += 16) store_at(y, i, n, v16_silu(load_at(x, i, n)));
    }
}

static bool accepts_binary(const wk_op *op) {
    return accepts_rows(op) && (op->p.binary == WK_BINARY_ADD || op->p.binary == WK_BINARY_MUL);
}

static void run_binary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const a = row_at(wk_src(run->op, 0), row);
        const float *const b = row_at(wk_src(run->op, 1), row);
        if (run->op->p.binary == WK_BINARY_ADD) {
            for (int64_t i = 0; i < n; i += 16)
                store_at(y, i, n, v16_add(load_at(a, i, n), load_at(b, i, n)));
        } else {
            for (int64_t i = 0; i < n; i += 16)
                store_at(y, i, n, v16_mul(load_at(a, i, n), load_at(b, i, n)));
        }
    }
}

static bool accepts_gated(const wk_op *op) {
    return accepts_rows(op) && op->p.gated.fn == WK_GATED_SWIGLU;
}

static void run_gated(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const gate = row_at(wk_src(run->op, 0), row);
        const float *const up = row_at(wk_src(run->op, 1), row);
        for (int64_t i = 0; i < n; i += 16)
            store_at(y, i, n, v16_mul(v16_silu(load_at(gate, i, n)), load_at(up, i, n)));
    }
}

/* Four sums of 16 lanes each, added pairwise. */
static float sum_of_squares(const float *x, int64_t n) {
    v16 sum[4] = {v16_zero(), v16_zero(), v16_zero(), v16_zero()};
    for (int64_t i = 0; i < n; i += 64) {
        for (int j = 0; j < 4; j++) {
            const v16 part = load_at(x, i + 16 * j, n);
            sum[j] = v16_fma(part, part, sum[j]);
        }
    }
    return v16_sum(v16_add(v16_add(sum[0], sum[1]), v16_add(sum[2], sum[3])));
}

static void run_rms_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const weight = wk_src(run->op, 1);
    const float *const w = weight->buf != NULL ? wk_cpu_data(weight) : NULL;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const x = row_at(wk_src(run->op, 0), row);
        const double mean = (double)sum_of_squares(x, n) / (double)n;
        const v16 factor = v16_set((float)(1 / sqrt(mean + (double)run->op->p.norm.eps)));
        for (int64_t i = 0; i < n; i += 16) {
            const v16 scaled = v16_mul(load_at(x, i, n), factor);
            store_at(y, i, n, w != NULL ? v16_mul(scaled, load_at(w, i, n)) : scaled);
        }
    }
}

static bool accepts_softmax(const wk_op *op) { return accepts_rows(op) && !op->p.softmax.is_log; }

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const x = row_at(wk_src(run->op, 0), row);
        v16 most = v16_set(-INFINITY);
        for (int64_t i = 0; i < n; i += 16)
            most = v16_max(v16_fill_from(load_at(x, i, n), n - i, -INFINITY), most);
        const v16 largest = v16_set(v16_largest(most));
        v16 sum = v16_zero();
        for (int64_t i = 0; i < n; i += 16) {
            const v16 e = v16_exp(v16_sub(load_at(x, i, n), largest));
            store_at(y, i, n, e);
            sum = v16_add(sum, v16_fill_from(e, n - i, 0));
        }
        const v16 total = v16_set(v16_sum(sum));
        for (int64_t i = 0; i < n; i += 16) store_at(y, i, n, v16_div(load_at(y, i, n), total));
    }
}

/* x [b, t, h, d] by cos and sin [b, t, half]. */
typedef struct rotation {
    const float *x, *cos, *sin;
    float *y;
    int64_t half, d;
} rotation;

/* Pairs (2i, 2i + 1). */
static void rotate_neighbours(const rotation *r) {
    static const float signs[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    int64_t i = 0;
    for (; i + 8 <= r->half; i += 8) {
        const v16 x = v16_load(r->x + 2 * i);
        const v16 sine = v16_mul(v16_load_twice(r->sin + i), v16_load(signs));
        const v16 turned = v16_mul(v16_swap_pairs(x), sine);
        v16_store(r->y + 2 * i, v16_fma(x, v16_load_twice(r->cos + i), turned));
    }
    for (; i < r->half; i++) {
        const float a = r->x[2 * i], b = r->x[2 * i + 1];
        r->y[2 * i] = a * r->cos[i] - b * r->sin[i];
        r->y[2 * i + 1] = b * r->cos[i] + a * r->sin[i];
    }
}

/* Pairs (i, i + half). */
static void rotate_halves(const rotation *r) {
    const int64_t half = r->half;
    for (int64_t i = 0; i < half; i += 16) {
        const v16 a = load_at(r->x, i, half), b = load_at(r->x + half, i, half);
        const v16 c = load_at(r->cos, i, half), s = load_at(r->sin, i, half);
        store_at(r->y, i, half, v16_sub(v16_mul(a, c), v16_mul(b, s)));
        store_at(r->y + half, i, half, v16_fma(b, c, v16_mul(a, s)));
    }
}

static void run_rope_table(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const int64_t n_heads = wk_dst(op, 0)->extent[2];
    for (int64_t row = begin; row < end; row++) {
        const rotation r = {
            .x = row_at(wk_src(op, 0), row),
            .cos = row_at(wk_src(op, 1), row / n_heads),
            .sin = row_at(wk_src(op, 2), row / n_heads),
            .y = row_at(wk_dst(op, 0), row),
            .half = row_length(wk_src(op, 1)),
            .d = row_length(wk_dst(op, 0)),
        };
        if (op->p.rope_table.interleaved) {
            rotate_neighbours(&r);
        } else {
            rotate_halves(&r);
        }
        const size_t rest = (size_t)(r.d - 2 * r.half) * sizeof(float);
        if (rest > 0 && r.y != r.x) memmove(r.y + 2 * r.half, r.x + 2 * r.half, rest);
    }
}

static void run_copy(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const size_t size = (size_t)row_length(wk_dst(run->op, 0)) * sizeof(float);
    for (int64_t row = begin; row < end; row++)
        memcpy(row_at(wk_dst(run->op, 0), row), row_at(wk_src(run->op, 0), row), size);
}

#endif
