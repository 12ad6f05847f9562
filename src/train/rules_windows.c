/* train/rules_windows.c: gradients of pools and convolutions. */
#include "ops/compose.h"
#include "ops/windows.h"
#include "train/rules.h"

#include <wick/ops.h>

enum { X, WEIGHT, BIAS };

/* --- Pools: those of the operations they can be made of --- */

static wick_tensor *rebuild_pool(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0);
    return x ? wk_pooled_composed(x, &wk_back_op(b)->p) : NULL;
}

void wk_grad_pool(const wk_back *b) { wk_back_through(b, rebuild_pool); }

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

/* Of one group: a convolution of x [c, n, ..] by g [f, n, ..], whose elements are as far apart as
 * the windows were. */
static wick_tensor *gradient_of_group(wick_tensor *x, wick_tensor *g, const wk_window_shape *w) {
    wk_window_shape across = *w;
    wick_tensor *images = wick_transpose(x, 0, 1), *const kernel = wick_transpose(g, 0, 1);
    for (int i = 0; i < WK_WINDOW_DIMS && images && kernel; i++) {
        across.kernel[i] = kernel->view.extent[2 + i];
        across.stride[i] = w->dilation[i];
        across.dilation[i] = w->stride[i];
        const int64_t in = images->view.extent[2 + i];
        const int64_t left = span_of(w, i) - 1 + span_of(&across, i) - in - w->before[i];
        across.after[i] = left > 0 ? left : 0;
        if (left < 0) images = wick_narrow(images, 2 + i, 0, in + left); /* no window meets it */
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
    const int64_t n = w->kernel[0] * w->kernel[1] * w->kernel[2];
    for (int64_t tap = 0; tap < n; tap++) {
        const wick_scope scope = wick_scope_begin(x->device);
        const int64_t at[] = {tap / w->kernel[2] / w->kernel[1], tap / w->kernel[2] % w->kernel[1],
                              tap % w->kernel[2]};
        wick_tensor *met = x, *to = sum;
        for (int i = 0; i < WK_WINDOW_DIMS; i++) {
            met = wk_every(met, 2 + i, at[i] * w->dilation[i], w->stride[i], y[2 + i]);
            to = wick_narrow(to, 2 + i, at[i], 1);
        }
        wick_tensor *const product = wick_mul(g, wick_unsqueeze(met, 2));
        wick_tensor *const all = wick_sum(product, 4, (const int[]){0, 3, 4, 5}, false);
        const bool is_done = wick_copy(to, wick_reshape(all, WICK_SHAPE(y[1], 1, 1, 1, 1))) != NULL;
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
    wick_tensor *const sum =
        wick_empty(x->device, b->g->view.dtype, WICK_SHAPE(k[0], k[1], k[2], k[3], k[4]));
    if (k[1] == 1) {
        wick_tensor *const padded = wk_padded(x, 2, WK_WINDOW_DIMS, w->before, w->after, 0);
        return padded && sum && add_taps(b, padded, sum) ? sum : NULL;
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
