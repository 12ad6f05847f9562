/* simd/vector_depthwise.h: convolutions whose groups have one channel each.
 *
 * An item is a few rows of the results of one channel: the lines of x that they meet are laid out
 * in worker scratch (vector_windows.h), and each row is a sum of these lines, shifted, times
 * numbers. */
#ifndef WK_SIMD_VECTOR_DEPTHWISE_H
#define WK_SIMD_VECTOR_DEPTHWISE_H

#include "backend/cpu/simd/vector_rows.h"
#include "backend/cpu/simd/vector_windows.h"

enum { DEPTHWISE_ROWS = 16, DEPTHWISE_PANELS = 4, DEPTHWISE_FILTERS = 4 };

typedef struct depthwise {
    const wk_window_shape *w;
    const wk_view *x, *y, *weight, *bias;
    int64_t n_filters; /* of a channel */
    int64_t n_blocks;  /* of rows */
    int64_t n_lines;   /* that a block meets in a plane */
    window_lines l;
    int64_t *taps;
    float *lines, *room, *row, *factors;
} depthwise;

/* Many filters of a channel are a product, whose sums stay in registers. */
static bool accepts_depthwise(const wk_op *op) {
    const wk_view *const weight = wk_src(op, 1);
    return accepts_floats(op) && weight->extent[1] == 1 &&
           weight->extent[0] <= DEPTHWISE_FILTERS * wk_src(op, 0)->extent[1];
}

static depthwise depthwise_of(const wk_op *op) {
    depthwise s = {.w = &op->p.windows,
                   .x = wk_src(op, 0),
                   .y = wk_dst(op, 0),
                   .weight = wk_src(op, 1),
                   .bias = wk_src(op, 2)};
    const int64_t rows = s.y->extent[3] < DEPTHWISE_ROWS ? s.y->extent[3] : DEPTHWISE_ROWS;
    s.n_filters = s.weight->extent[0] / s.x->extent[1];
    s.n_blocks = (s.y->extent[3] + DEPTHWISE_ROWS - 1) / DEPTHWISE_ROWS;
    s.n_lines = (rows - 1) * s.w->stride[1] + (s.w->kernel[1] - 1) * s.w->dilation[1] + 1;
    s.l = window_lines_of(s.w, s.x);
    return s;
}

static int64_t depthwise_taps(const depthwise *s) {
    return s->w->kernel[0] * s->w->kernel[1] * s->w->kernel[2];
}

static uint64_t depthwise_bytes(const wk_op *op) {
    const depthwise s = depthwise_of(op);
    const int64_t n = s.w->kernel[0] * s.n_lines * s.l.line + WINDOW_SLACK + s.l.padded +
                      s.y->extent[4] + depthwise_taps(&s);
    return (uint64_t)n * sizeof(float) + (uint64_t)s.w->kernel[2] * sizeof(int64_t);
}

static int64_t depthwise_items(const wk_op *op, int phase) {
    (void)phase;
    const depthwise s = depthwise_of(op);
    return s.x->extent[0] * s.x->extent[1] * s.y->extent[2] * s.n_blocks;
}

/* The lines that rows from `row` on of plane `plane` meet. */
static void depthwise_lay(const depthwise *s, int64_t n, int64_t c, int64_t plane, int64_t row) {
    float *to = s->lines;
    for (int64_t kd = 0; kd < s->w->kernel[0]; kd++) {
        const int64_t d = wk_window_at(s->w, 0, plane, kd);
        for (int64_t i = 0; i < s->n_lines; i++, to += s->l.line) {
            const int64_t h = row * s->w->stride[1] - s->w->before[1] + i;
            const bool is_padding = d < 0 || h < 0 || d >= s->x->extent[2] || h >= s->x->extent[3];
            window_lay(&s->l, s->x, is_padding ? NULL : window_row(s->x, n, c, d, h), s->room, to);
        }
    }
}

/* The elements of the kernel that makes filter m. */
static void depthwise_load(const depthwise *s, int64_t m) {
    float *to = s->factors;
    for (int64_t kd = 0; kd < s->w->kernel[0]; kd++) {
        for (int64_t kh = 0; kh < s->w->kernel[1]; kh++, to += s->w->kernel[2])
            load_run(to, window_row(s->weight, m, 0, kd, kh), s->weight->stride[4],
                     s->weight->dtype, s->w->kernel[2]);
    }
}

/* 16 n elements, of which `left` exist. first: the line that the first row of the kernel meets. */
WK_INLINE void depthwise_sum(const depthwise *s, const float *first, float bias, float *y,
                             int64_t left, const int n) {
    v16 sum[DEPTHWISE_PANELS];
    const float *factor = s->factors;
    for (int p = 0; p < n; p++) sum[p] = v16_zero();
    for (int64_t kd = 0; kd < s->w->kernel[0]; kd++) {
        for (int64_t kh = 0; kh < s->w->kernel[1]; kh++) {
            const float *const line =
                first + (kd * s->n_lines + kh * s->w->dilation[1]) * s->l.line;
            for (int64_t kw = 0; kw < s->w->kernel[2]; kw++) {
                const v16 by = v16_set(*factor++);
                for (int p = 0; p < n; p++)
                    sum[p] = v16_fma(v16_load(line + s->taps[kw] + 16 * p), by, sum[p]);
            }
        }
    }
    for (int p = 0; p < n; p++)
        v16_store_rows(y + 16 * p, v16_add(sum[p], v16_set(bias)), left - 16 * p);
}

static void depthwise_row(const depthwise *s, int64_t row, float bias, float *y) {
    const float *const first = s->lines + row * s->w->stride[1] * s->l.line;
    const int64_t out = s->y->extent[4];
    for (int64_t i = 0; i < out; i += 16 * DEPTHWISE_PANELS) {
        switch ((out - i + 15) / 16) {
        case 1: depthwise_sum(s, first + i, bias, y + i, out - i, 1); break;
        case 2: depthwise_sum(s, first + i, bias, y + i, out - i, 2); break;
        case 3: depthwise_sum(s, first + i, bias, y + i, out - i, 3); break;
        default: depthwise_sum(s, first + i, bias, y + i, out - i, DEPTHWISE_PANELS);
        }
    }
}

static void depthwise_filter(const depthwise *s, int64_t n, int64_t m, int64_t plane, int64_t row) {
    const int64_t left = s->y->extent[3] - row,
                  rows = left < DEPTHWISE_ROWS ? left : DEPTHWISE_ROWS;
    const float bias = window_bias(s->bias, m);
    depthwise_load(s, m);
    for (int64_t i = 0; i < rows; i++) {
        void *const to =
            row_at(s->y, ((n * s->y->extent[1] + m) * s->y->extent[2] + plane) * s->y->extent[3] +
                             row + i);
        float *const y = has_float_rows(s->y) ? to : s->row;
        depthwise_row(s, i, bias, y);
        if (y != to) store_run(to, s->y->stride[4], s->y->dtype, y, s->y->extent[4]);
    }
}

static void run_convolution_depthwise(const wk_cpu_run *run, int phase, int64_t begin,
                                      int64_t end) {
    (void)phase;
    depthwise s = depthwise_of(run->op);
    s.taps = run->worker_scratch;
    s.lines = (float *)(s.taps + s.w->kernel[2]);
    s.room = s.lines + s.w->kernel[0] * s.n_lines * s.l.line + WINDOW_SLACK;
    s.row = s.room + s.l.padded;
    s.factors = s.row + s.y->extent[4];
    for (int64_t k = 0; k < s.w->kernel[2]; k++) s.taps[k] = window_tap(s.w, &s.l, k);
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item % s.n_blocks * DEPTHWISE_ROWS;
        const int64_t plane = item / s.n_blocks % s.y->extent[2];
        const int64_t image = item / s.n_blocks / s.y->extent[2];
        const int64_t n = image / s.x->extent[1], c = image % s.x->extent[1];
        depthwise_lay(&s, n, c, plane, row);
        for (int64_t i = 0; i < s.n_filters; i++)
            depthwise_filter(&s, n, c * s.n_filters + i, plane, row);
    }
}

#endif
