/* backend/cpu/ref/elementwise.c: unary, binary and gated functions, fill and arange. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static double silu(double x) { return x / (1 + exp(-x)); }

/* --- Unary --- */

static void run_unary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    double buf[WK_REF_CHUNK];
    for (int64_t r = begin; r < end; r++) {
        const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), r);
        const wk_ref_row x = wk_ref_row_at(wk_src(run->op, 0), r);
        for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, y.n - i);
            wk_ref_load(&x, i, n, buf);
            for (int64_t j = 0; j < n; j++) buf[j] = silu(buf[j]);
            wk_ref_store(&y, i, n, buf);
        }
    }
}

static bool accepts_unary(const wk_op *op) {
    return wk_ref_is_float(op) && op->p.unary == WK_UNARY_SILU;
}

const wk_cpu_kernel wk_unary_ref = {
    .base = {.name = "unary_ref", .is_reference = true},
    .code = WK_OP_UNARY,
    .accepts = accepts_unary,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_unary,
};

/* --- Binary --- */

static void apply_float(wk_binary_fn fn, int64_t n, double *a, const double *b) {
    switch (fn) {
    case WK_BINARY_ADD:
        for (int64_t i = 0; i < n; i++) a[i] += b[i];
        break;
    case WK_BINARY_MUL:
        for (int64_t i = 0; i < n; i++) a[i] *= b[i];
        break;
    }
}

/* Modulo 2^64; storing keeps the low bits, so every narrower integer wraps as well. */
static void apply_integer(wk_binary_fn fn, int64_t n, int64_t *a, const int64_t *b) {
    switch (fn) {
    case WK_BINARY_ADD:
        for (int64_t i = 0; i < n; i++) a[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]);
        break;
    case WK_BINARY_MUL:
        for (int64_t i = 0; i < n; i++) a[i] = (int64_t)((uint64_t)a[i] * (uint64_t)b[i]);
        break;
    }
}

static void binary_row(const wk_op *op, int64_t r) {
    const wk_ref_row y = wk_ref_row_at(wk_dst(op, 0), r);
    const wk_ref_row a = wk_ref_row_at(wk_src(op, 0), r);
    const wk_ref_row b = wk_ref_row_at(wk_src(op, 1), r);
    const bool is_float = wk_dtype_is_float(y.dtype);
    double left[WK_REF_CHUNK], right[WK_REF_CHUNK];
    int64_t integer_left[WK_REF_CHUNK], integer_right[WK_REF_CHUNK];
    for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, y.n - i);
        if (is_float) {
            wk_ref_load(&a, i, n, left);
            wk_ref_load(&b, i, n, right);
            apply_float(op->p.binary, n, left, right);
            wk_ref_store(&y, i, n, left);
        } else {
            wk_ref_load_integer(&a, i, n, integer_left);
            wk_ref_load_integer(&b, i, n, integer_right);
            apply_integer(op->p.binary, n, integer_left, integer_right);
            wk_ref_store_integer(&y, i, n, integer_left);
        }
    }
}

static void run_binary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) binary_row(run->op, r);
}

static bool accepts_binary(const wk_op *op) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype;
    const wk_dtype_class kind = wk_dtype_get(dtype)->dtype_class;
    return (kind == WK_CLASS_FLOAT || kind == WK_CLASS_INTEGER) && wk_src(op, 0)->dtype == dtype &&
           wk_src(op, 1)->dtype == dtype &&
           (op->p.binary == WK_BINARY_ADD || op->p.binary == WK_BINARY_MUL);
}

const wk_cpu_kernel wk_binary_ref = {
    .base = {.name = "binary_ref", .is_reference = true},
    .code = WK_OP_BINARY,
    .accepts = accepts_binary,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_binary,
};

/* --- Gated --- */

static void run_gated(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    double gate[WK_REF_CHUNK], up[WK_REF_CHUNK];
    for (int64_t r = begin; r < end; r++) {
        const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), r);
        const wk_ref_row gate_row = wk_ref_row_at(wk_src(run->op, 0), r);
        const wk_ref_row up_row = wk_ref_row_at(wk_src(run->op, 1), r);
        for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, y.n - i);
            wk_ref_load(&gate_row, i, n, gate);
            wk_ref_load(&up_row, i, n, up);
            for (int64_t j = 0; j < n; j++) gate[j] = silu(gate[j]) * up[j];
            wk_ref_store(&y, i, n, gate);
        }
    }
}

static bool accepts_gated(const wk_op *op) {
    return wk_ref_is_float(op) && op->p.gated == WK_GATED_SWIGLU;
}

const wk_cpu_kernel wk_gated_ref = {
    .base = {.name = "gated_ref", .is_reference = true},
    .code = WK_OP_GATED,
    .accepts = accepts_gated,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_gated,
};

/* --- Fill and arange: they make elements from their index alone --- */

static bool accepts_scalar(const wk_op *op) { return !wk_dtype_is_block(wk_dst(op, 0)->dtype); }

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
        const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), r);
        for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
            const int64_t n = least(WK_REF_CHUNK, y.n - i);
            if (wk_dtype_is_float(y.dtype)) {
                wk_ref_store(&y, i, n, real);
            } else {
                wk_ref_store_integer(&y, i, n, integer);
            }
        }
    }
}

const wk_cpu_kernel wk_fill_ref = {
    .base = {.name = "fill_ref", .is_reference = true},
    .code = WK_OP_FILL,
    .accepts = accepts_scalar,
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
    const wk_ref_row y = wk_ref_row_at(wk_dst(run->op, 0), 0);
    const bool is_float = wk_dtype_is_float(y.dtype);
    for (int64_t i = begin; i < end; i++) {
        const double real = p->arange.start + (double)i * p->arange.step;
        const int64_t integer = (int64_t)((uint64_t)p->arange.integer_start +
                                          (uint64_t)i * (uint64_t)p->arange.integer_step);
        if (is_float) {
            wk_ref_store(&y, i, 1, &real);
        } else {
            wk_ref_store_integer(&y, i, 1, &integer);
        }
    }
}

const wk_cpu_kernel wk_arange_ref = {
    .base = {.name = "arange_ref", .is_reference = true},
    .code = WK_OP_ARANGE,
    .accepts = accepts_scalar,
    .n_phases = 1,
    .items = arange_items,
    .grain = arange_grain,
    .run = run_arange,
};
