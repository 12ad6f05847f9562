/* train/rules_windows.c: gradients of pools and convolutions. */
#include "ops/compose.h"
#include "ops/windows.h"
#include "train/rules.h"

#include <wick/ops.h>

#include <math.h>

enum { X, WEIGHT, BIAS };
enum { MOST_TAPS = 64 }; /* of windows that are gone through element by element */

/* The elements of x [.., d, h, w], padded, that element tap of each window meets. */
static wick_tensor *met_by(wick_tensor *x, const wk_window_shape *w, int64_t tap,
                           const int64_t *size) {
    const int64_t at[] = {tap / w->kernel[2] / w->kernel[1], tap / w->kernel[2] % w->kernel[1],
                          tap % w->kernel[2]};
    for (int i = 0; i < WK_WINDOW_DIMS; i++)
        x = wk_every(x, 2 + i, at[i] * w->dilation[i], w->stride[i], size[i]);
    return x;
}

static int64_t taps_of(const wk_window_shape *w) {
    return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

/* --- Pools --- */

/* By those of the operations they can be made of. */
static wick_tensor *rebuild_pool(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0);
    return x ? wk_pooled_composed(x, &wk_back_op(b)->p) : NULL;
}

/* 1 where element tap of a window is its largest, else 0. */
static wick_tensor *is_largest(wick_tensor *x, wick_tensor *y, const wk_window_shape *w,
                               int64_t tap) {
    if (!x || !y) return NULL;
    return wick_cast(wick_eq(met_by(x, w, tap, &y->view.extent[2]), y), y->view.dtype);
}

/* Equal ones share it. */
static void grad_largest(const wk_back *b) {
    const wk_window_shape *const w = &wk_back_op(b)->p.pool.windows;
    wick_tensor *const y = wk_back_result(b, 0);
    wick_tensor *const x =
        wk_padded(wk_back_source(b, 0), 2, WK_WINDOW_DIMS, w->before, w->after, -(double)INFINITY);
    wick_tensor *const sum =
        x ? wick_zeros(x->device, b->g->view.dtype, wk_tensor_shape_of(x)) : NULL;
    wick_tensor *n = is_largest(x, y, w, 0);
    for (int64_t tap = 1; tap < taps_of(w) && n; tap++) n = wk_add_to(n, is_largest(x, y, w, tap));
    wick_tensor *const share = wick_div(b->g, n);
    for (int64_t tap = 0; tap < taps_of(w) && share && sum; tap++)
        if (!wk_add_to(met_by(sum, w, tap, &y->view.extent[2]),
                       wick_mul(is_largest(x, y, w, tap), share)))
            return;
    wick_tensor *inner = sum;
    for (int i = 0; i < WK_WINDOW_DIMS; i++)
        inner = wick_narrow(inner, 2 + i, w->before[i], wk_src(wk_back_op(b), 0)->extent[2 + i]);
    wk_back_give(b, 0, inner);
}

void wk_grad_pool(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    if (op->p.pool.fn == WK_WINDOW_MAX && taps_of(&op->p.pool.windows) <= MOST_TAPS)
        grad_largest(b);
    else
        wk_back_through(b, rebuild_pool);
}

/* --- Convolutions --- */

static int64_t span_of(const wk_window_shape *w, int i) {
    return w->dilation[i] * (w->kernel[i] - 1) + 1;
}

/* Where windows are side by side the gradient at x is a convolution, too, with the kernel turned
 * round: weight [g f, c, ..] becomes [g c, f, ..]. False: it is not. */
static bool turn_round(const wk_window_shape *w, wk_window_shape *out) {
    *out = *w;
    for (int i = 0; i < WK_WINDOW_DIMS; i++) {
        out->before[i] = span_of(w, i) - 1 - w->before[i];
        out->after[i] = span_of(w, i) - 1 - w->after[i];
        if (w->stride[i] != 1 || out->before[i] < 0 || out->after[i] < 0) return false;
    }
    return true;
}

static wick_tensor *turned(wick_tensor *weight, int64_t groups) {
    if (!weight) return NULL;
    const int64_t *const k = &weight->view.extent[2];
    const int64_t f = weight->view.extent[0] / groups, c = weight->view.extent[1];
    wick_tensor *const split =
        wick_reshape(weight, (wick_shape){6, {groups, f, c, k[0], k[1], k[2]}});
    wick_tensor *const y = wick_flip(wick_transpose(split, 1, 2), 3, (const int[]){3, 4, 5});
    return wick_reshape(y, WICK_SHAPE(groups * c, f, k[0], k[1], k[2]));
}

static wick_tensor *gradient_at_x(const wk_back *b) {
    const wk_view *const x = wk_src(wk_back_op(b), X);
    const wk_window_shape *const w = &wk_back_op(b)->p.windows;
    wick_tensor *const weight = wk_back_source(b, WEIGHT);
    wk_window_shape round;
    if (!weight || !turn_round(w, &round)) return wk_convolution_back(b->g, weight, x, w);
    return wk_convolution(b->g, turned(weight, x->extent[1] / weight->view.extent[1]), NULL,
                          &round);
}

/* Windows of one element each, all of x. */
static bool is_product(const wick_tensor *x, const wick_tensor *g, const wk_window_shape *w) {
    bool is = x && g;
    for (int i = 0; is && i < WK_WINDOW_DIMS; i++)
        is = w->kernel[i] == 1 && x->view.extent[2 + i] == g->view.extent[2 + i] &&
             w->before[i] == 0 && w->stride[i] == 1;
    return is;
}

/* x [n, c, ..], g [n, f, ..]: [f, c, 1, 1, 1]. */
static wick_tensor *product_of(wick_tensor *x, wick_tensor *g) {
    wick_tensor *const rows = wick_flatten(wick_transpose(g, 0, 1), 1, 4);
    wick_tensor *const columns = wick_flatten(wick_transpose(x, 0, 1), 1, 4);
    wick_tensor *const y = wick_matmul(rows, wick_transpose(columns, 0, 1));
    return wick_reshape(y, WICK_SHAPE(g->view.extent[1], x->view.extent[1], 1, 1, 1));
}

/* Of one group: a convolution of x [c, n, ..] by g [f, n, ..], whose elements are as far apart as
 * the windows were. */
static wick_tensor *gradient_of_group(wick_tensor *x, wick_tensor *g, const wk_window_shape *w) {
    if (is_product(x, g, w)) return product_of(x, g);
    wk_window_shape across = *w;
    wick_tensor *images = wick_transpose(x, 0, 1), *const kernel = wick_transpose(g, 0, 1);
    for (int i = 0; i < WK_WINDOW_DIMS && images && kernel; i++) {
        across.kernel[i] = kernel->view.extent[2 + i];
        across.stride[i] = w->dilation[i];
        across.dilation[i] = w->stride[i];
        const int64_t in = images->view.extent[2 + i];
        const int64_t left = span_of(w, i) - 1 + span_of(&across, i) - in - w->before[i];
        across.after[i] = left > 0 ? left : 0;
        if (left >= 0) continue;
        /* No window meets what is cut off; all of it where they end before it begins. */
        images = wick_narrow(images, 2 + i, 0, in + left > 0 ? in + left : 0);
        if (in + left < 0) across.before[i] += in + left;
    }
    return wick_transpose(wk_convolution(images, kernel, NULL, &across), 0, 1);
}

/* Of groups of one channel: each element of the kernel has met x [n, c, ..] where it lies so far
 * from the windows' beginnings. */
static bool add_taps(const wk_back *b, wick_tensor *x, wick_tensor *sum) {
    const wk_window_shape *const w = &wk_back_op(b)->p.windows;
    const int64_t *const y = b->g->view.extent, c = x->view.extent[1];
    wick_tensor *const g =
        wick_reshape(b->g, (wick_shape){6, {y[0], c, y[1] / c, y[2], y[3], y[4]}});
    for (int64_t tap = 0; tap < taps_of(w); tap++) {
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const met = met_by(x, w, tap, &y[2]);
        wick_tensor *const to = wick_narrow(sum, 2, tap, 1);
        wick_tensor *const product = wick_mul(g, wick_unsqueeze(met, 2));
        wick_tensor *const all = wick_sum(product, 4, (const int[]){0, 3, 4, 5}, false);
        const bool is_done = wick_copy(to, wick_reshape(all, WICK_SHAPE(y[1], 1, 1))) != NULL;
        wick_scope_end(scope);
        if (!is_done) return false;
    }
    return true;
}

static wick_tensor *gradient_at_weight(const wk_back *b) {
    const wk_window_shape *const w = &wk_back_op(b)->p.windows;
    const wk_view *const weight = wk_src(wk_back_op(b), WEIGHT);
    const int64_t *const k = weight->extent;
    const int64_t groups = wk_src(wk_back_op(b), X)->extent[1] / k[1], f = k[0] / groups;
    wick_tensor *const x = wk_back_source(b, X);
    if (!x) return NULL;
    if (groups == 1) return gradient_of_group(x, b->g, w);
    const wick_shape shape = WICK_SHAPE(k[0], k[1], k[2], k[3], k[4]);
    wick_tensor *const sum = wick_empty(x->device, b->g->view.dtype, shape);
    if (k[1] == 1) {
        wick_tensor *const padded = wk_padded(x, 2, WK_WINDOW_DIMS, w->before, w->after, 0);
        wick_tensor *const flat = wick_reshape(sum, WICK_SHAPE(k[0], 1, taps_of(w)));
        return padded && flat && add_taps(b, padded, flat) ? sum : NULL;
    }
    for (int64_t i = 0; i < groups && sum; i++) {
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const part =
            gradient_of_group(wick_narrow(x, 1, i * k[1], k[1]), wick_narrow(b->g, 1, i * f, f), w);
        const bool is_done = wick_copy(wick_narrow(sum, 0, i * f, f), part) != NULL;
        wick_scope_end(scope);
        if (!is_done) return NULL;
    }
    return sum;
}

void wk_grad_convolution(const wk_back *b) {
    if (wk_back_wants(b, X)) wk_back_give(b, X, gradient_at_x(b));
    if (wk_back_wants(b, WEIGHT)) wk_back_give(b, WEIGHT, gradient_at_weight(b));
    if (wk_src(wk_back_op(b), BIAS)->buf && wk_back_wants(b, BIAS))
        wk_back_give(b, BIAS, wick_sum(b->g, 4, (const int[]){0, 2, 3, 4}, false));
}
