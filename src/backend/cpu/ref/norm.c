/* backend/cpu/ref/norm.c: root mean square norm and layer norm along the last dimension. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

/* y = x * weight + bias; either may be absent. */
static void scale_and_shift(const wk_op *op, double *y, int64_t n) {
    const wk_view *weight = wk_src(op, 1), *bias = op->n_src > 2 ? wk_src(op, 2) : NULL;
    double value;
    if (weight->buf) {
        const wk_row w = wk_row_at(weight, 0);
        for (int64_t i = 0; i < n; i++) {
            wk_row_load(&w, i, 1, &value);
            y[i] *= value;
        }
    }
    if (bias && bias->buf) {
        const wk_row b = wk_row_at(bias, 0);
        for (int64_t i = 0; i < n; i++) {
            wk_row_load(&b, i, 1, &value);
            y[i] += value;
        }
    }
}

/* Layer norm takes the mean away first. */
static void run_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *op = run->op;
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_row x = wk_row_at(wk_src(op, 0), r);
        const wk_row y = wk_row_at(wk_dst(op, 0), r);
        wk_row_load(&x, 0, x.n, buf);
        if (op->code == WK_OP_LAYER_NORM) {
            double sum = 0;
            for (int64_t i = 0; i < x.n; i++) sum += buf[i];
            for (int64_t i = 0; i < x.n; i++) buf[i] -= sum / (double)x.n;
        }
        const double mean = wk_ref_dot(buf, buf, x.n) / (double)x.n;
        const double root = sqrt(mean + op->p.norm.eps);
        for (int64_t i = 0; i < x.n; i++) buf[i] /= root;
        scale_and_shift(op, buf, x.n);
        wk_row_store(&y, 0, y.n, buf);
    }
}

const wk_cpu_kernel wk_rms_norm_ref = {
    .base.name = "rms_norm_ref",
    .base.code = WK_OP_RMS_NORM,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_norm,
};

const wk_cpu_kernel wk_layer_norm_ref = {
    .base.name = "layer_norm_ref",
    .base.code = WK_OP_LAYER_NORM,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_norm,
};
