/* backend/cpu/ref/rope.c: rotary position embedding, by angle and by table. x [b, t, h, d]. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

/* Row r of [b, t, h, d] as its indices b, t, h. */
static void split_row(const wk_view *x, int64_t r, int64_t at[3]) {
    at[2] = r % x->extent[2];
    at[1] = r / x->extent[2] % x->extent[1];
    at[0] = r / x->extent[2] / x->extent[1];
}

/* Pair i of half pairs is (2i, 2i + 1) or (i, i + half). */
static void rotate(double *x, int64_t i, int64_t half, bool interleaved, const double turn[2]) {
    double *a = &x[interleaved ? 2 * i : i];
    double *b = &x[interleaved ? 2 * i + 1 : i + half];
    const double rotated = *a * turn[0] - *b * turn[1];
    *b = *a * turn[1] + *b * turn[0];
    *a = rotated;
}

static void run_rope(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_params *p = &run->op->p;
    const wk_view *x = wk_src(run->op, 0);
    const int64_t half = p->rope.rotary_dim / 2;
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        int64_t at[3];
        split_row(x, r, at);
        const wk_row from = wk_row_of(x, at);
        const wk_row to = wk_row_of(wk_dst(run->op, 0), at);
        const wk_row positions = wk_row_of(wk_src(run->op, 1), at);
        const double position = (double)wk_row_integer_at(&positions, at[1]);
        wk_row_load(&from, 0, from.n, buf);
        for (int64_t i = 0; i < half; i++) {
            const double exponent = -2.0 * (double)i / p->rope.rotary_dim;
            const double angle = position / p->rope.scale_factor * pow(p->rope.theta, exponent);
            rotate(buf, i, half, p->rope.interleaved, (const double[2]){cos(angle), sin(angle)});
        }
        wk_row_store(&to, 0, to.n, buf);
    }
}

static bool accepts_rope(const wk_op *op) {
    return wk_dtype_is_float(wk_dst(op, 0)->dtype) && wk_dtype_is_float(wk_src(op, 0)->dtype) &&
           wk_dtype_get(wk_src(op, 1)->dtype)->dtype_class == WK_CLASS_INTEGER;
}

const wk_cpu_kernel wk_rope_ref = {
    .base.name = "rope_ref",
    .base.code = WK_OP_ROPE,
    .base.is_reference = true,
    .base.accepts = accepts_rope,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_rope,
};

static void run_rope_table(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *x = wk_src(run->op, 0);
    const bool interleaved = run->op->p.rope_table.interleaved;
    double *buf = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        int64_t at[3];
        split_row(x, r, at);
        const wk_row from = wk_row_of(x, at);
        const wk_row to = wk_row_of(wk_dst(run->op, 0), at);
        const wk_row cosines = wk_row_of(wk_src(run->op, 1), at);
        const wk_row sines = wk_row_of(wk_src(run->op, 2), at);
        wk_row_load(&from, 0, from.n, buf);
        for (int64_t i = 0; i < cosines.n; i++) {
            double turn[2];
            wk_row_load(&cosines, i, 1, &turn[0]);
            wk_row_load(&sines, i, 1, &turn[1]);
            rotate(buf, i, cosines.n, interleaved, turn);
        }
        wk_row_store(&to, 0, to.n, buf);
    }
}

const wk_cpu_kernel wk_rope_table_ref = {
    .base.name = "rope_table_ref",
    .base.code = WK_OP_ROPE_TABLE,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_rope_table,
};
