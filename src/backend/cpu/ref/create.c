/* backend/cpu/ref/create.c: fill and arange: elements made from their index alone. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool accepts_scalar(const wk_op *op) { return wk_dtype_is_scalar(wk_dst(op, 0)->dtype); }

static void run_fill(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_params *p = &run->op->p;
    double real[WK_REF_CHUNK];
    int64_t integer[WK_REF_CHUNK];
    for (int i = 0; i < WK_REF_CHUNK; i++) {
        real[i] = p->fill.real;
        integer[i] = p->fill.integer;
    }
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, y.n - i);
            if (wk_dtype_is_float(y.dtype)) {
                wk_row_store(&y, i, n, real);
            } else {
                wk_row_store_integer(&y, i, n, integer);
            }
        }
    }
}

const wk_cpu_kernel wk_fill_ref = {
    .base.name = "fill_ref",
    .base.code = WK_OP_FILL,
    .base.is_reference = true,
    .base.accepts = accepts_scalar,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_fill,
};

static int64_t arange_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_dst(op, 0)->extent[0];
}

static int64_t arange_grain(const wk_op *op, int phase) {
    (void)op, (void)phase;
    return WK_REF_CHUNK;
}

static void run_arange(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_params *p = &run->op->p;
    const wk_row y = wk_row_at(wk_dst(run->op, 0), 0);
    const bool is_float = wk_dtype_is_float(y.dtype);
    for (int64_t i = begin; i < end; i++) {
        const double real = p->arange.start + (double)i * p->arange.step;
        const int64_t integer = (int64_t)((uint64_t)p->arange.integer_start +
                                          (uint64_t)i * (uint64_t)p->arange.integer_step);
        if (is_float) {
            wk_row_store(&y, i, 1, &real);
        } else {
            wk_row_store_integer(&y, i, 1, &integer);
        }
    }
}

const wk_cpu_kernel wk_arange_ref = {
    .base.name = "arange_ref",
    .base.code = WK_OP_ARANGE,
    .base.is_reference = true,
    .base.accepts = accepts_scalar,
    .n_phases = 1,
    .items = arange_items,
    .grain = arange_grain,
    .run = run_arange,
};
