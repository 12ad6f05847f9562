/* simd/vector_rows.h: ops over float rows, written once over simd_*.h: elementwise functions, norm,
 * softmax, rotation, copies and sums. The items of all but the sums are rows along the last
 * dimension, which must be dense; the other strides are free. */
#ifndef WK_SIMD_VECTOR_ROWS_H
#define WK_SIMD_VECTOR_ROWS_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/simd/vector_math.h"

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

/* Functions of one and of two vectors. Each has a loop of its own, in which fn is a constant. */
#define UNARY_FUNCTIONS(X)                                                                         \
    X(SILU)                                                                                        \
    X(EXP) X(ABS) X(NEG) X(RECIP) X(SQR) X(TANH) X(SIGMOID) X(RELU) X(GELU) X(GELU_QUICK) X(AFFINE)
#define BINARY_FUNCTIONS(X) X(ADD) X(MUL) X(SUB) X(DIV)
#define GATED_FUNCTIONS(X) X(SWIGLU) X(GEGLU) X(REGLU)

WK_INLINE v16 unary_of(wk_unary_fn fn, v16 x, float a, float b) {
    switch (fn) {
    case WK_UNARY_EXP: return v16_exp_full(x);
    case WK_UNARY_ABS: return v16_abs(x);
    case WK_UNARY_NEG: return v16_negate(x);
    case WK_UNARY_RECIP: return v16_div(v16_set(1), x);
    case WK_UNARY_SQR: return v16_mul(x, x);
    case WK_UNARY_TANH: return v16_tanh(x);
    case WK_UNARY_SIGMOID: return v16_sigmoid(x);
    case WK_UNARY_RELU: return v16_max(v16_zero(), x); /* in this order NaN stays */
    case WK_UNARY_GELU: return v16_gelu(x);
    case WK_UNARY_GELU_QUICK: return v16_mul(x, v16_sigmoid(v16_mul(x, v16_set(1.702F))));
    case WK_UNARY_AFFINE: return v16_fma(x, v16_set(a), v16_set(b));
    default: return v16_silu(x);
    }
}

WK_INLINE v16 binary_of(wk_binary_fn fn, v16 a, v16 b) {
    switch (fn) {
    case WK_BINARY_MUL: return v16_mul(a, b);
    case WK_BINARY_SUB: return v16_sub(a, b);
    case WK_BINARY_DIV: return v16_div(a, b);
    default: return v16_add(a, b);
    }
}

WK_INLINE v16 gated_of(wk_gated_fn fn, v16 gate, v16 up) {
    switch (fn) {
    case WK_GATED_GEGLU: return v16_mul(v16_gelu(gate), up);
    case WK_GATED_REGLU: return v16_mul(v16_max(v16_zero(), gate), up);
    default: return v16_mul(v16_silu(gate), up);
    }
}

/* Parameters that float32 does not hold exactly would cost more than one rounding. */
static bool accepts_unary(const wk_op *op) {
    const double a = op->p.unary.a, b = op->p.unary.b;
    if (op->p.unary.fn == WK_UNARY_AFFINE && ((double)(float)a != a || (double)(float)b != b))
        return false;
    switch (op->p.unary.fn) {
#define CASE(function) case WK_UNARY_##function:
        UNARY_FUNCTIONS(CASE)
#undef CASE
        return accepts_rows(op);
    default: return false;
    }
}

static void run_unary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_params *const p = &run->op->p;
    const int64_t n = row_length(wk_dst(run->op, 0));
    const float a = (float)p->unary.a, b = (float)p->unary.b;
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const x = row_at(wk_src(run->op, 0), row);
        switch (p->unary.fn) {
#define CASE(function)                                                                             \
    case WK_UNARY_##function:                                                                      \
        for (int64_t i = 0; i < n; i += 16)                                                        \
            store_at(y, i, n, unary_of(WK_UNARY_##function, load_at(x, i, n), a, b));              \
        break;
            UNARY_FUNCTIONS(CASE)
#undef CASE
        default: break;
        }
    }
}

static bool accepts_binary(const wk_op *op) {
    switch (op->p.binary) {
#define CASE(function) case WK_BINARY_##function:
        BINARY_FUNCTIONS(CASE)
#undef CASE
        return accepts_rows(op);
    default: return false;
    }
}

static void run_binary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const a = row_at(wk_src(run->op, 0), row);
        const float *const b = row_at(wk_src(run->op, 1), row);
        switch (run->op->p.binary) {
#define CASE(function)                                                                             \
    case WK_BINARY_##function:                                                                     \
        for (int64_t i = 0; i < n; i += 16)                                                        \
            store_at(y, i, n,                                                                      \
                     binary_of(WK_BINARY_##function, load_at(a, i, n), load_at(b, i, n)));         \
        break;
            BINARY_FUNCTIONS(CASE)
#undef CASE
        default: break;
        }
    }
}

static bool accepts_gated(const wk_op *op) {
    switch (op->p.gated.fn) {
#define CASE(function) case WK_GATED_##function:
        GATED_FUNCTIONS(CASE)
#undef CASE
        return accepts_rows(op);
    default: return false;
    }
}

static void run_gated(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const gate = row_at(wk_src(run->op, 0), row);
        const float *const up = row_at(wk_src(run->op, 1), row);
        switch (run->op->p.gated.fn) {
#define CASE(function)                                                                             \
    case WK_GATED_##function:                                                                      \
        for (int64_t i = 0; i < n; i += 16)                                                        \
            store_at(y, i, n,                                                                      \
                     gated_of(WK_GATED_##function, load_at(gate, i, n), load_at(up, i, n)));       \
        break;
            GATED_FUNCTIONS(CASE)
#undef CASE
        default: break;
        }
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

/* In float64, so that terms may cancel. */
static double sum_of(const float *x, int64_t n) {
    __m256d sum[4];
    for (int i = 0; i < 4; i++) sum[i] = _mm256_setzero_pd();
    for (int64_t i = 0; i < n; i += 16) v16_add_wide(sum, load_at(x, i, n));
    return v16_sum_wide(sum);
}

/* Elements that become one of y: those of the dimensions that y does not have. */
static int64_t reduced_length(const wk_op *op) {
    int64_t n = 1;
    for (int d = op->view[0].rank; d < op->view[1].rank; d++) n *= op->view[1].extent[d];
    return n;
}

/* Sums and means of floats that lie side by side. */
static bool accepts_reduce(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (op->p.reduce.fn != WK_REDUCE_SUM && op->p.reduce.fn != WK_REDUCE_MEAN) return false;
    if (y->dtype != WICK_F32 || x->dtype != WICK_F32 || x->layout != WK_LAYOUT_RAW) return false;
    int64_t step = 1;
    for (int d = x->rank - 1; d >= y->rank; d--) {
        if (x->stride[d] != step && x->extent[d] > 1) return false;
        step *= x->extent[d];
    }
    return true;
}

static int64_t reduce_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_view_count(wk_dst(op, 0));
}

static int64_t reduce_grain(const wk_op *op, int phase) {
    (void)phase;
    return 1 + 4096 / (1 + reduced_length(op));
}

static void run_reduce(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0), *const x = wk_src(run->op, 0);
    const int64_t n = reduced_length(run->op);
    for (int64_t item = begin; item < end; item++) {
        int64_t to = 0, from = 0, index = item;
        for (int d = y->rank - 1; d >= 0; d--) {
            to += index % y->extent[d] * y->stride[d];
            from += index % y->extent[d] * x->stride[d];
            index /= y->extent[d];
        }
        const double sum = sum_of((const float *)wk_cpu_data(x) + from, n);
        const bool is_mean = run->op->p.reduce.fn == WK_REDUCE_MEAN;
        ((float *)wk_cpu_data(y))[to] = (float)(is_mean ? sum / (double)n : sum);
    }
}

/* y is x less its mean first. */
static void run_layer_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const weight = wk_src(run->op, 1), *const bias = wk_src(run->op, 2);
    const float *const w = weight->buf != NULL ? wk_cpu_data(weight) : NULL;
    const float *const b = bias->buf != NULL ? wk_cpu_data(bias) : NULL;
    const int64_t n = row_length(wk_dst(run->op, 0));
    for (int64_t row = begin; row < end; row++) {
        float *const y = row_at(wk_dst(run->op, 0), row);
        const float *const x = row_at(wk_src(run->op, 0), row);
        const v16 mean = v16_set((float)(sum_of(x, n) / (double)n));
        for (int64_t i = 0; i < n; i += 16) store_at(y, i, n, v16_sub(load_at(x, i, n), mean));
        const double variance = (double)sum_of_squares(y, n) / (double)n;
        const v16 factor = v16_set((float)(1 / sqrt(variance + (double)run->op->p.norm.eps)));
        for (int64_t i = 0; i < n; i += 16) {
            v16 scaled = v16_mul(load_at(y, i, n), factor);
            if (w != NULL) scaled = v16_mul(scaled, load_at(w, i, n));
            if (b != NULL) scaled = v16_add(scaled, load_at(b, i, n));
            store_at(y, i, n, scaled);
        }
    }
}

static void run_softmax(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const bool is_log = run->op->p.softmax.is_log;
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
            if (!is_log) store_at(y, i, n, e); /* x may be y and is needed once more */
            sum = v16_add(sum, v16_fill_from(e, n - i, 0));
        }
        const v16 total = v16_set(v16_sum(sum)), log_total = v16_set(logf(v16_sum(sum)));
        for (int64_t i = 0; i < n; i += 16)
            store_at(y, i, n,
                     is_log ? v16_sub(v16_sub(load_at(x, i, n), largest), log_total)
                            : v16_div(load_at(y, i, n), total));
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
