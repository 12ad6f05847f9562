/* backend/cpu/ref/windows.c: pools and convolutions: what becomes of the elements of each window.
 */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

/* Element i of the last dimension of y, whose row's place in the others is at [4], and the element
 * of its window that is looked at. */
typedef struct window {
    const wk_window_shape *shape;
    const wk_view *x;
    const int64_t *at;
    int64_t i;
} window;

/* The row of x that plane kd and line kh of the window meet; false: padding. */
static bool row_met(const window *w, int64_t kd, int64_t kh, int64_t channel, wk_row *row) {
    const int64_t d = wk_window_at(w->shape, 0, w->at[2], kd);
    const int64_t h = wk_window_at(w->shape, 1, w->at[3], kh);
    if (d < 0 || h < 0 || d >= w->x->extent[2] || h >= w->x->extent[3]) return false;
    *row = wk_row_of(w->x, (const int64_t[]){w->at[0], channel, d, h});
    return true;
}

/* --- pool --- */

/* Sum or largest number, in *so_far. */
static void pool_row(const window *w, const wk_row *row, bool is_max, double *so_far) {
    for (int64_t k = 0; k < w->shape->kernel[2]; k++) {
        const int64_t i = wk_window_at(w->shape, 2, w->i, k);
        double value;
        if (i < 0 || i >= row->n) continue;
        wk_row_load(row, i, 1, &value);
        if (!is_max) {
            *so_far += value;
        } else if (isnan(value) || value > *so_far) {
            *so_far = value;
        }
    }
}

static void pool_integers(const window *w, const wk_row *row, int64_t *most, bool *is_met) {
    for (int64_t k = 0; k < w->shape->kernel[2]; k++) {
        const int64_t i = wk_window_at(w->shape, 2, w->i, k);
        if (i < 0 || i >= row->n) continue;
        const int64_t value = wk_row_integer_at(row, i);
        if (!*is_met || value > *most) *most = value;
        *is_met = true;
    }
}

/* Elements that count, of windows along dimension d. */
static double count_of(const window *w, int d, int64_t i, bool counts_padding) {
    const int64_t border = counts_padding ? w->shape->before[d] : 0;
    double n = 0;
    for (int64_t k = 0; k < w->shape->kernel[d]; k++) {
        const int64_t place = wk_window_at(w->shape, d, i, k);
        if (place >= -border && place < w->x->extent[2 + d] + border) n++;
    }
    return n;
}

static void pool_element(const wk_op *op, const window *w, const wk_row *y) {
    const bool is_max = op->p.pool.fn == WK_WINDOW_MAX, is_float = wk_dtype_is_float(w->x->dtype);
    double so_far = is_max ? -(double)INFINITY : 0, count = 1;
    int64_t most = 0;
    bool is_met = false;
    for (int64_t kd = 0; kd < w->shape->kernel[0]; kd++) {
        for (int64_t kh = 0; kh < w->shape->kernel[1]; kh++) {
            wk_row row;
            if (!row_met(w, kd, kh, w->at[1], &row)) continue;
            if (is_float) {
                pool_row(w, &row, is_max, &so_far);
            } else {
                pool_integers(w, &row, &most, &is_met);
            }
        }
    }
    const int64_t place[WK_WINDOW_DIMS] = {w->at[2], w->at[3], w->i};
    for (int d = 0; !is_max && d < WK_WINDOW_DIMS; d++)
        count *= count_of(w, d, place[d], op->p.pool.counts_padding);
    if (is_met) {
        wk_row_store_integer(y, w->i, 1, &most);
    } else {
        so_far /= count;
        wk_row_store(y, w->i, 1, &so_far);
    }
}

/* The place of row r in all dimensions but the last. */
static void place_of(const wk_view *y, int64_t r, int64_t at[WK_WINDOW_RANK - 1]) {
    for (int d = WK_WINDOW_RANK - 2; d >= 0; d--) {
        at[d] = r % y->extent[d];
        r /= y->extent[d];
    }
}

static void run_pool(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    int64_t at[WK_WINDOW_RANK - 1];
    window w = {.shape = &op->p.pool.windows, .x = wk_src(op, 0), .at = at};
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(op, 0), r);
        place_of(wk_dst(op, 0), r, at);
        for (w.i = 0; w.i < y.n; w.i++) pool_element(op, &w, &y);
    }
}

static bool accepts_pool(const wk_op *op) { return wk_dtype_is_scalar(wk_src(op, 0)->dtype); }

const wk_cpu_kernel wk_pool_ref = {
    .base.name = "pool_ref",
    .base.code = WK_OP_POOL,
    .base.is_reference = true,
    .base.accepts = accepts_pool,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_pool,
};

/* --- convolution --- */

/* Of one row of x by one of the kernel. */
static double product_of_row(const window *w, const wk_row *row, const wk_row *weight) {
    double sum = 0;
    for (int64_t k = 0; k < w->shape->kernel[2]; k++) {
        const int64_t i = wk_window_at(w->shape, 2, w->i, k);
        double value, factor;
        if (i < 0 || i >= row->n) continue;
        wk_row_load(row, i, 1, &value);
        wk_row_load(weight, k, 1, &factor);
        sum += value * factor;
    }
    return sum;
}

static double convolved(const wk_op *op, const window *w) {
    const wk_view *const weight = wk_src(op, 1);
    const int64_t n = weight->extent[1], n_filters = weight->extent[0] / (w->x->extent[1] / n);
    const int64_t first = w->at[1] / n_filters * n; /* channel of the group */
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        for (int64_t kd = 0; kd < w->shape->kernel[0]; kd++) {
            for (int64_t kh = 0; kh < w->shape->kernel[1]; kh++) {
                wk_row row;
                if (!row_met(w, kd, kh, first + c, &row)) continue;
                const wk_row factors = wk_row_of(weight, (const int64_t[]){w->at[1], c, kd, kh});
                sum += product_of_row(w, &row, &factors);
            }
        }
    }
    return sum;
}

static void run_convolution(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const wk_view *const bias = wk_src(op, 2);
    int64_t at[WK_WINDOW_RANK - 1];
    window w = {.shape = &op->p.windows, .x = wk_src(op, 0), .at = at};
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(op, 0), r);
        place_of(wk_dst(op, 0), r, at);
        for (w.i = 0; w.i < y.n; w.i++) {
            double sum = convolved(op, &w), added = 0;
            if (bias->buf) {
                const wk_row row = wk_row_at(bias, 0);
                wk_row_load(&row, at[1], 1, &added);
            }
            sum += added;
            wk_row_store(&y, w.i, 1, &sum);
        }
    }
}

const wk_cpu_kernel wk_convolution_ref = {
    .base.name = "convolution_ref",
    .base.code = WK_OP_CONVOLUTION,
    .base.is_reference = true,
    .base.accepts = wk_ref_is_float,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_convolution,
};
