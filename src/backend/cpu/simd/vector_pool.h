/* simd/vector_pool.h: the largest element or the mean of windows, row by row of the result: first
 * the rows of x that its windows meet are joined element by element, then neighbours in that line
 * (vector_windows.h). */
#ifndef WK_SIMD_VECTOR_POOL_H
#define WK_SIMD_VECTOR_POOL_H

#include "backend/cpu/simd/vector_rows.h"
#include "backend/cpu/simd/vector_windows.h"

enum { POOL_ROWS = 4 }; /* that are joined at once */

typedef struct pooling {
    const wk_op *op;
    const wk_window_shape *windows;
    bool is_max;
    window_lines l;
    int64_t out; /* elements of a row of y */
    float *line, *dealt, *scale, *rows, *y;
    int64_t *taps; /* where in dealt each element of the kernel begins */
} pooling;

static uint64_t pool_bytes(const wk_op *op) {
    const wk_window_shape *const w = &op->p.pool.windows;
    const wk_view *const x = wk_src(op, 0);
    const window_lines l = window_lines_of(w, x);
    const int64_t n =
        l.padded + l.line + WINDOW_SLACK + 2 * wk_dst(op, 0)->extent[4] + POOL_ROWS * l.in;
    return (uint64_t)n * sizeof(float) + (uint64_t)w->kernel[2] * sizeof(int64_t);
}

static int64_t pool_grain(const wk_op *op, int phase) {
    (void)phase;
    const wk_window_shape *const w = &op->p.pool.windows;
    return 1 + 16384 / (1 + w->kernel[0] * w->kernel[1] * wk_src(op, 0)->extent[4]);
}

/* How many elements of window i along dimension d count. */
static float pool_count(const pooling *p, int d, int64_t i) {
    const wk_window_shape *const w = p->windows;
    const int64_t border = p->op->p.pool.counts_padding ? w->before[d] : 0;
    const int64_t first = wk_window_at(w, d, i, 0) + border, step = w->dilation[d];
    const int64_t room = wk_src(p->op, 0)->extent[2 + d] + 2 * border;
    const int64_t low = first < 0 ? (-first + step - 1) / step : 0;
    const int64_t high = first < room ? (room - first + step - 1) / step : 0;
    const int64_t end = high < w->kernel[d] ? high : w->kernel[d];
    return end > low ? (float)(end - low) : 0;
}

static pooling pooling_of(const wk_cpu_run *run) {
    const wk_op *const op = run->op;
    const wk_window_shape *const w = &op->p.pool.windows;
    pooling p = {.op = op,
                 .windows = w,
                 .is_max = op->p.pool.fn == WK_WINDOW_MAX,
                 .out = wk_dst(op, 0)->extent[4],
                 .l = window_lines_of(w, wk_src(op, 0)),
                 .taps = run->worker_scratch};
    p.line = (float *)(p.taps + w->kernel[2]);
    p.dealt = w->stride[2] > 1 ? p.line + p.l.padded : p.line;
    p.scale = p.line + p.l.padded + p.l.line + WINDOW_SLACK;
    p.y = p.scale + p.out;
    p.rows = p.y + p.out;
    for (int64_t k = 0; k < w->kernel[2]; k++) p.taps[k] = window_tap(w, &p.l, k);
    for (int64_t i = 0; !p.is_max && i < p.out; i++) p.scale[i] = 1 / pool_count(&p, 2, i);
    const float nothing = p.is_max ? -INFINITY : 0;
    for (int64_t i = 0; i < p.l.padded; i++) p.line[i] = nothing;
    return p;
}

/* NaN where either is. */
WK_INLINE v16 pool_join(v16 a, v16 b, const bool is_max) {
    if (!is_max) return v16_add(a, b);
    return v16_select(v16_equal(a, a), v16_max(a, b), a);
}

WK_INLINE void pool_join_rows(float *to, const float *const *rows, const int n_rows, int64_t n,
                              const bool is_max) {
    for (int64_t i = 0; i < n; i += 16) {
        v16 joined = load_at(rows[0], i, n);
        for (int r = 1; r < n_rows; r++) joined = pool_join(joined, load_at(rows[r], i, n), is_max);
        store_at(to, i, n, joined);
    }
}

WK_INLINE void pool_join_some(const pooling *p, const float *const *rows, int n_rows,
                              const bool is_max) {
    float *const to = p->line + p->windows->before[2];
    switch (n_rows) {
    case 1: pool_join_rows(to, rows, 1, p->l.in, is_max); break;
    case 2: pool_join_rows(to, rows, 2, p->l.in, is_max); break;
    case 3: pool_join_rows(to, rows, 3, p->l.in, is_max); break;
    default: pool_join_rows(to, rows, POOL_ROWS, p->l.in, is_max);
    }
}

/* scale: by which means are multiplied for the other dimensions. */
WK_INLINE void pool_join_taps(const pooling *p, float *y, const int64_t n_taps, float scale,
                              const bool is_max) {
    for (int64_t i = 0; i < p->out; i += 16) {
        v16 joined = v16_load(p->dealt + i); /* where the first element begins */
        for (int64_t k = 1; k < n_taps; k++)
            joined = pool_join(joined, v16_load(p->dealt + p->taps[k] + i), is_max);
        if (!is_max)
            joined = v16_mul(joined, v16_mul(load_at(p->scale, i, p->out), v16_set(scale)));
        store_at(y, i, p->out, joined);
    }
}

WK_INLINE void pool_join_neighbours(const pooling *p, float *y, float scale, const bool is_max) {
    switch (p->windows->kernel[2]) {
    case 2: pool_join_taps(p, y, 2, scale, is_max); break;
    case 3: pool_join_taps(p, y, 3, scale, is_max); break;
    default: pool_join_taps(p, y, p->windows->kernel[2], scale, is_max);
    }
}

/* The rows of x that windows [at[2], at[3]] of image [at[0], at[1]] meet become the line. */
WK_INLINE void pool_rows(const pooling *p, const int64_t *at, const bool is_max) {
    const wk_window_shape *const w = p->windows;
    const wk_view *const x = wk_src(p->op, 0);
    const bool is_plain = has_float_rows(x);
    const float *rows[1 + POOL_ROWS];
    int n_rows = 0;
    bool is_begun = false;
    int64_t kd = 0, kh = 0;
    for (int64_t k = 0; k < w->kernel[0] * w->kernel[1]; k++, kh++) {
        if (kh == w->kernel[1]) {
            kh = 0;
            kd++;
        }
        const int64_t d = wk_window_at(w, 0, at[2], kd), h = wk_window_at(w, 1, at[3], kh);
        if (d < 0 || h < 0 || d >= x->extent[2] || h >= x->extent[3]) continue;
        const void *const row = window_row(x, at[0], at[1], d, h);
        if (n_rows == POOL_ROWS) {
            pool_join_some(p, rows, n_rows, is_max);
            rows[0] = p->line + w->before[2];
            is_begun = true;
            n_rows = 1;
        }
        float *const room = p->rows + n_rows * p->l.in;
        if (!is_plain) load_run(room, row, x->stride[4], x->dtype, p->l.in);
        rows[n_rows++] = is_plain ? row : room;
    }
    if (n_rows > (is_begun ? 1 : 0)) {
        pool_join_some(p, rows, n_rows, is_max);
    } else if (!is_begun) {
        for (int64_t i = 0; i < p->l.in; i++) p->line[w->before[2] + i] = is_max ? -INFINITY : 0;
    }
}

WK_INLINE void pool_row(const pooling *p, const int64_t *at, const bool is_max) {
    const wk_view *const view = wk_dst(p->op, 0);
    pool_rows(p, at, is_max);
    if (p->dealt != p->line) window_deal(&p->l, p->line, 0, p->l.padded, p->dealt);
    void *const to = window_row(view, at[0], at[1], at[2], at[3]);
    float *const y = has_float_rows(view) ? to : p->y;
    const float scale = is_max ? 1 : 1 / (pool_count(p, 0, at[2]) * pool_count(p, 1, at[3]));
    pool_join_neighbours(p, y, scale, is_max);
    if (y != to) store_run(to, view->stride[4], view->dtype, y, p->out);
}

static void run_pool(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t *const extent = wk_dst(run->op, 0)->extent;
    const pooling p = pooling_of(run);
    int64_t at[WK_WINDOW_RANK - 1], rest = begin;
    for (int d = WK_WINDOW_RANK - 2; d >= 0; d--) {
        at[d] = rest % extent[d];
        rest /= extent[d];
    }
    for (int64_t row = begin; row < end; row++) {
        if (p.is_max) {
            pool_row(&p, at, true);
        } else {
            pool_row(&p, at, false);
        }
        for (int d = WK_WINDOW_RANK - 2; ++at[d] == extent[d] && d > 0; d--) at[d] = 0;
    }
}

#endif
