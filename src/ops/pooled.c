/* ops/pooled.c: the windows of images [n, c, d, h, w] pooled: by one op, or where the device has no
 * kernel for it, dim by dim: the windows of a dim are a view with one dim more, over which is
 * reduced. */
#include "ops/compose.h"
#include "ops/windows.h"

#include <wick/ops.h>

#include <math.h>

static const int last = -1;

/* Whether all windows of dim i count the same number of elements. */
static bool is_uniform(const wk_params *p, int i) {
    const wk_window_shape *const w = &p->pool.windows;
    if (!p->pool.counts_padding && (w->before[i] > 0 || w->after[i] > 0)) return false;
    return w->after[i] <= w->before[i];
}

/* The elements that the windows of dim i count, of dtype: what lies outside of x (of x with its
 * padding) is not. They are side by side, for else all windows count the same number. */
static wick_tensor *counts_of(const wk_params *p, const wick_tensor *x, int64_t n_windows, int i) {
    const wk_window_shape *const w = &p->pool.windows;
    const double first = -(double)w->before[i], step = (double)w->stride[i];
    const double border = p->pool.counts_padding ? (double)w->before[i] : 0;
    const double end = (double)x->view.extent[2 + i] + border;
    wick_tensor *const begins =
        wick_arange(x->device, WICK_I32, first, step * (double)n_windows + first, step);
    wick_tensor *const ends = wick_affine(begins, 1, (double)w->kernel[i]);
    wick_tensor *const n =
        wick_sub(wick_clamp(ends, -border, end), wick_clamp(begins, -border, end));
    return wk_along(wick_cast(n, x->view.dtype), WK_WINDOW_DIMS - 1 - i);
}

wick_tensor *wk_window_view(wick_tensor *x, const wk_window_shape *w, int i) {
    return wk_windows(x, 2 + i, w->kernel[i], w->stride[i], w->dilation[i]);
}

wick_tensor *wk_pooled_composed(wick_tensor *x, const wk_params *p) {
    const wk_window_shape *const w = &p->pool.windows;
    const bool is_max = p->pool.fn == WK_WINDOW_MAX;
    double count = 1;
    wick_tensor *y = x;
    for (int i = WK_WINDOW_DIMS - 1; i >= 0 && y; i--) {
        if (w->kernel[i] == 1 && w->stride[i] == 1 && w->before[i] + w->after[i] == 0) continue;
        wick_tensor *const padded =
            wk_padded(y, 2 + i, 1, &w->before[i], &w->after[i], is_max ? -(double)INFINITY : 0);
        wick_tensor *const windows = wk_window_view(padded, w, i);
        y = is_max ? wick_max(windows, 1, &last, false) : wick_sum(windows, 1, &last, false);
        if (is_max || !y) continue;
        if (is_uniform(p, i))
            count *= (double)w->kernel[i];
        else
            y = wick_div(y, counts_of(p, x, y->view.extent[2 + i], i));
    }
    return count > 1 ? wick_affine(y, 1 / count, 0) : y;
}

wick_tensor *wk_pooled(wick_tensor *x, const int64_t *size, const wk_params *p) {
    if (!x) return NULL;
    const wick_shape shape =
        WICK_SHAPE(x->view.extent[0], x->view.extent[1], size[0], size[1], size[2]);
    const wk_op op = {.code = WK_OP_POOL, .n_dst = 1, .n_src = 1, .view = {x->view, x->view}};
    if (!wk_device_computes(x->device, &op)) {
        const bool is_max = p->pool.fn == WK_WINDOW_MAX;
        return wk_promoted(wk_pooled_composed(is_max ? x : wk_widened(x), p), x->view.dtype);
    }
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_POOL, NULL);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, NULL);
    call.op.p = *p;
    return wk_queue_result(&call, y);
}
