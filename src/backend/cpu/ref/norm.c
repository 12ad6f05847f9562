/* backend/cpu/ref/norm.c: root mean square norm along the last dimension. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

static void run_rms_norm(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *weight = wk_src(run->op, 1);
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_ref_row x = wk_ref_row_at(wk_src(run->op, 0), r);
        const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), r);
        wk_ref_load(&x, 0, x.n, buf);
        const double mean = wk_ref_dot(buf, buf, x.n) / (double)x.n;
        const double root = sqrt(mean + (double)run->op->p.norm.eps);
        for (int64_t i = 0; i < x.n; i++) buf[i] /= root;
        if (weight->buf) {
            const wk_ref_row w = wk_ref_row_at(weight, 0);
            double factor;
            for (int64_t i = 0; i < x.n; i++) {
                wk_ref_load(&w, i, 1, &factor);
                buf[i] *= factor;
            }
        }
        wk_ref_store(&y, 0, y.n, buf);
    }
}

const wk_cpu_kernel wk_rms_norm_ref = {
    .base = {.name = "rms_norm_ref", .is_reference = true},
    .code = WK_OP_RMS_NORM,
    .accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_rms_norm,
};
