/* backend/cpu/ref/gather.c: elements of rows by index: fetched, or met by others. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

static size_t element_size(const wk_view *view) {
    return (size_t)wk_dtype_get(view->dtype)->block_bytes;
}

/* --- Gather --- */

static int64_t gather_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_view_count(wk_dst(op, 0));
}

static int64_t gather_grain(const wk_op *op, int phase) {
    (void)op, (void)phase;
    return WK_REF_CHUNK;
}

/* Elements [begin, end) of a row. */
static void gather_part(const wk_cpu_run *run, int64_t r, int64_t begin, int64_t end) {
    const wk_row y = wk_row_at(wk_dst(run->op, 0), r), x = wk_row_at(wk_src(run->op, 0), r),
                 index = wk_row_at(wk_src(run->op, 1), r);
    const size_t size = element_size(wk_dst(run->op, 0));
    for (int64_t i = begin; i < end; i++) {
        const int64_t id = wk_row_integer_at(&index, i);
        if (id >= 0 && id < x.n)
            memcpy(y.data + (size_t)(i * y.stride) * size, x.data + (size_t)(id * x.stride) * size,
                   size);
        else
            wk_cpu_fault(run);
    }
}

static void run_gather(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0);
    const int64_t m = y->extent[y->rank - 1];
    for (int64_t i = begin; i < end;) {
        const int64_t row = i / m, rest = (row + 1) * m < end ? (row + 1) * m : end;
        gather_part(run, row, i - row * m, rest - row * m);
        i = rest;
    }
}

const wk_cpu_kernel wk_gather_ref = {
    .base.name = "gather_ref",
    .base.code = WK_OP_GATHER,
    .base.is_reference = true,
    .n_phases = 1,
    .items = gather_items,
    .grain = gather_grain,
    .run = run_gather,
};

/* --- Scatter: a row at a time, for its elements meet several sources in their order --- */

static double meet(wk_scatter_fn fn, double y, double x) {
    switch (fn) {
    case WK_SCATTER_ADD: return y + x;
    case WK_SCATTER_MUL: return y * x;
    case WK_SCATTER_MAX: return isnan(y) || y > x ? y : x;
    case WK_SCATTER_MIN: return isnan(y) || y < x ? y : x;
    default: return x;
    }
}

static int64_t meet_integer(wk_scatter_fn fn, int64_t y, int64_t x) {
    switch (fn) {
    case WK_SCATTER_ADD: return (int64_t)((uint64_t)y + (uint64_t)x);
    case WK_SCATTER_MUL: return (int64_t)((uint64_t)y * (uint64_t)x);
    case WK_SCATTER_MAX: return y > x ? y : x;
    case WK_SCATTER_MIN: return y < x ? y : x;
    default: return x;
    }
}

/* Sums are rounded once, at the end: they lie in worker scratch meanwhile. */
static void scatter_numbers(const wk_cpu_run *run, int64_t r) {
    const wk_scatter_fn fn = run->op->p.scatter;
    const wk_row y = wk_row_at(wk_dst(run->op, 0), r), src = wk_row_at(wk_src(run->op, 0), r),
                 index = wk_row_at(wk_src(run->op, 1), r);
    double *const reals = run->worker_scratch;
    int64_t *const integers = run->worker_scratch;
    const bool is_float = wk_dtype_is_float(y.dtype);
    if (is_float)
        wk_row_load(&y, 0, y.n, reals);
    else
        wk_row_load_integer(&y, 0, y.n, integers);
    for (int64_t i = 0; i < src.n; i++) {
        const int64_t id = wk_row_integer_at(&index, i);
        double real;
        int64_t integer;
        if (id < 0 || id >= y.n) {
            wk_cpu_fault(run);
        } else if (is_float) {
            wk_row_load(&src, i, 1, &real);
            reals[id] = meet(fn, reals[id], real);
        } else {
            wk_row_load_integer(&src, i, 1, &integer);
            integers[id] = meet_integer(fn, integers[id], integer);
        }
    }
    if (is_float)
        wk_row_store(&y, 0, y.n, reals);
    else
        wk_row_store_integer(&y, 0, y.n, integers);
}

static void scatter_bits(const wk_cpu_run *run, int64_t r) {
    const wk_row y = wk_row_at(wk_dst(run->op, 0), r), src = wk_row_at(wk_src(run->op, 0), r),
                 index = wk_row_at(wk_src(run->op, 1), r);
    const size_t size = element_size(wk_dst(run->op, 0));
    for (int64_t i = 0; i < src.n; i++) {
        const int64_t id = wk_row_integer_at(&index, i);
        if (id >= 0 && id < y.n)
            memcpy(y.data + (size_t)(id * y.stride) * size,
                   src.data + (size_t)(i * src.stride) * size, size);
        else
            wk_cpu_fault(run);
    }
}

static void run_scatter(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const bool is_set = run->op->p.scatter == WK_SCATTER_SET;
    for (int64_t r = begin; r < end; r++) (is_set ? scatter_bits : scatter_numbers)(run, r);
}

const wk_cpu_kernel wk_scatter_ref = {
    .base.name = "scatter_ref",
    .base.code = WK_OP_SCATTER,
    .base.is_reference = true,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = wk_ref_row_bytes,
    .run = run_scatter,
};
