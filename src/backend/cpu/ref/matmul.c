/* backend/cpu/ref/matmul.c: products of float matrices, and products with weights. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"
#include "quant/block.h"

#include <assert.h>
#include <string.h>

/* --- matmul: c [.., m, n] = a [.., m, k] b [.., k, n] --- */

/* Row l of the matrix that row r of c is computed from; both share the leading dimensions. */
static wk_row b_row(const wk_view *b, int64_t r, int64_t m, int64_t l) {
    assert(b->rank >= 2 && m > 0);
    const int64_t k = b->extent[b->rank - 2];
    return wk_row_at(b, r / m * k + l);
}

static void run_matmul(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *c = wk_dst(run->op, 0);
    const int64_t n = c->extent[c->rank - 1], m = c->extent[c->rank - 2];
    double *sums = run->worker_scratch;
    double *row = sums + n;
    for (int64_t r = begin; r < end; r++) {
        const wk_row a = wk_row_at(wk_src(run->op, 0), r);
        const wk_row y = wk_row_at(c, r);
        for (int64_t j = 0; j < n; j++) sums[j] = 0;
        for (int64_t l = 0; l < a.n; l++) {
            const wk_row b = b_row(wk_src(run->op, 1), r, m, l);
            double factor;
            wk_row_load(&a, l, 1, &factor);
            wk_row_load(&b, 0, n, row);
            for (int64_t j = 0; j < n; j++) sums[j] += factor * row[j];
        }
        wk_row_store(&y, 0, n, sums);
    }
}

static uint64_t matmul_worker_bytes(const wk_op *op) { return 2 * wk_ref_row_bytes(op); }

const wk_cpu_kernel wk_matmul_ref = {
    .base.name = "matmul_ref",
    .base.code = WK_OP_MATMUL,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = matmul_worker_bytes,
    .run = run_matmul,
};

/* --- linear: y [m, n] = x [m, k] weight^T + bias ---
 *
 * First x becomes float64, then an item is a row of the weight: it is decoded once and serves all
 * rows of x. */

static int64_t linear_items(const wk_op *op, int phase) { return wk_dst(op, 0)->extent[phase]; }

static uint64_t linear_scratch_bytes(const wk_op *op) {
    const wk_view *x = wk_src(op, 0);
    return (uint64_t)(x->extent[0] * x->extent[1]) * sizeof(double);
}

/* A weight row in float32 as it is decoded, and in float64. */
static uint64_t linear_worker_bytes(const wk_op *op) {
    const wk_view *x = wk_src(op, 0);
    return (uint64_t)x->extent[x->rank - 1] * (sizeof(double) + sizeof(float));
}

static void load_weight_row(const wk_view *weight, int64_t row, double *dst, float *decoded) {
    const int64_t n = wk_view_rows(weight), k = weight->extent[weight->rank - 1];
    if (weight->layout == WK_LAYOUT_RAW && wk_dtype_is_float(weight->dtype)) {
        const wk_row elements = wk_row_at(weight, row);
        wk_row_load(&elements, 0, k, dst);
        return;
    }
    wk_layout_decode_row((wk_layout)weight->layout, weight->dtype, n, k, row, wk_view_data(weight),
                         decoded);
    for (int64_t i = 0; i < k; i++) dst[i] = (double)decoded[i];
}

static void load_x(const wk_cpu_run *run, int64_t begin, int64_t end) {
    double *dst = run->scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_row x = wk_row_at(wk_src(run->op, 0), r);
        wk_row_load(&x, 0, x.n, dst + r * x.n);
    }
}

static void multiply(const wk_cpu_run *run, int64_t begin, int64_t end) {
    const wk_view *y = wk_dst(run->op, 0), *bias = wk_src(run->op, 2);
    const wk_view *weight = wk_src(run->op, 1);
    const int64_t m = y->extent[0], k = weight->extent[1];
    const double *x = run->scratch;
    double *w = run->worker_scratch;
    for (int64_t j = begin; j < end; j++) {
        load_weight_row(weight, j, w, (float *)(w + k));
        double added = 0;
        if (bias->buf) {
            const wk_row row = wk_row_at(bias, 0);
            wk_row_load(&row, j, 1, &added);
        }
        for (int64_t i = 0; i < m; i++) {
            const double sum = wk_ref_dot(x + i * k, w, k) + added;
            const wk_row row = wk_row_at(y, i);
            wk_row_store(&row, j, 1, &sum);
        }
    }
}

static void run_linear(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    if (phase == 0) {
        load_x(run, begin, end);
    } else {
        multiply(run, begin, end);
    }
}

static bool accepts_linear(const wk_op *op) {
    const wk_view *weight = wk_src(op, 1);
    return wk_dtype_is_float(wk_dst(op, 0)->dtype) && wk_dtype_is_float(wk_src(op, 0)->dtype) &&
           wk_dtype_is_float(wk_src(op, 2)->dtype) &&
           (wk_dtype_is_float(weight->dtype) || wk_decoder(weight->dtype));
}

const wk_cpu_kernel wk_linear_ref = {
    .base.name = "linear_ref",
    .base.code = WK_OP_LINEAR,
    .base.is_reference = true,
    .base.accepts = accepts_linear,
    .n_phases = 2,
    .items = linear_items,
    .scratch_bytes = linear_scratch_bytes,
    .worker_bytes = linear_worker_bytes,
    .run = run_linear,
};

/* --- linear_experts: the same with a weight for each row ---
 *
 * An item is a row of y. */

static uint64_t experts_worker_bytes(const wk_op *op) {
    return (uint64_t)wk_src(op, 0)->extent[2] * sizeof(double) + linear_worker_bytes(op);
}

/* Row r by expert e. x: scratch for row r of the input, then for a row of the weight. */
static void multiply_by(const wk_op *op, int64_t r, int64_t e, double *x) {
    const wk_view *weight = wk_src(op, 1), *bias = wk_src(op, 2);
    const int64_t n = weight->extent[1], k = weight->extent[2];
    const wk_row y = wk_row_at(wk_dst(op, 0), r), from = wk_row_at(wk_src(op, 0), r);
    double *w = x + k;
    wk_row_load(&from, 0, k, x);
    for (int64_t j = 0; j < n; j++) {
        load_weight_row(weight, e * n + j, w, (float *)(w + k));
        double sum = wk_ref_dot(x, w, k);
        if (bias->buf) {
            const wk_row row = wk_row_at(bias, e);
            double added;
            wk_row_load(&row, j, 1, &added);
            sum += added;
        }
        wk_row_store(&y, j, 1, &sum);
    }
}

static void run_experts(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *weight = wk_src(run->op, 1);
    const int64_t u = wk_dst(run->op, 0)->extent[1];
    for (int64_t r = begin; r < end; r++) {
        const wk_row ids = wk_row_at(wk_src(run->op, 3), r / u);
        const int64_t e = wk_row_integer_at(&ids, r % u);
        if (e < weight->extent[0]) {
            multiply_by(run->op, r, e, run->worker_scratch);
        } else {
            wk_cpu_fault(run);
        }
    }
}

const wk_cpu_kernel wk_linear_experts_ref = {
    .base.name = "linear_experts_ref",
    .base.code = WK_OP_LINEAR_EXPERTS,
    .base.is_reference = true,
    .base.accepts = accepts_linear,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = experts_worker_bytes,
    .run = run_experts,
};
