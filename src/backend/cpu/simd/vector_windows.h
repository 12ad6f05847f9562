/* simd/vector_windows.h: lines of x with the padding that windows meet on both sides, dealt out
 * where windows are more than an element apart, so that each element of the kernel meets elements
 * that lie side by side:
 *
 *   kernel 3, stride 2    line    p a b c d e f g
 *                         dealt   p b d f . | a c e g .      two parts
 *   windows p a b, b c d, ..        p b d  and  a c e  and  b d f
 */
#ifndef WK_SIMD_VECTOR_WINDOWS_H
#define WK_SIMD_VECTOR_WINDOWS_H

#include "backend/cpu/simd/vector_convert.h"

enum { WINDOW_SLACK = 64 }; /* what loads may overrun a line */

/* How lines lie, along the last dimension. */
typedef struct window_lines {
    int64_t before, in, padded; /* elements of a line before it is dealt out */
    int64_t stride, part;       /* parts, and elements of each */
    int64_t line;               /* elements of all parts */
} window_lines;

static inline window_lines window_lines_of(const wk_window_shape *w, const wk_view *x) {
    window_lines l = {.before = w->before[2], .in = x->extent[4], .stride = w->stride[2]};
    l.padded = l.before + l.in + w->after[2];
    l.part = l.stride == 1 ? l.padded : l.padded / l.stride + 1;
    l.line = l.stride * l.part;
    return l;
}

/* Where in the dealt line element k of the first window lies. */
static inline int64_t window_tap(const wk_window_shape *w, const window_lines *l, int64_t k) {
    const int64_t at = k * w->dilation[2];
    return l->stride == 1 ? at : at % l->stride * l->part + at / l->stride;
}

/* Bytes of row [n, c, d, h] of an image. */
static inline void *window_row(const wk_view *x, int64_t n, int64_t c, int64_t d, int64_t h) {
    const int64_t offset =
        n * x->stride[0] + c * x->stride[1] + d * x->stride[2] + h * x->stride[3];
    return (unsigned char *)wk_view_data(x) + offset * wk_dtype_get(x->dtype)->block_bytes;
}

/* Of filter m; 0 where there is none. */
static inline float window_bias(const wk_view *bias, int64_t m) {
    float value[16] = {0}; /* of which conversions may touch all */
    if (bias->buf == NULL) return 0;
    const int64_t at = m * bias->stride[0] * wk_dtype_get(bias->dtype)->block_bytes;
    load_run(value, (const unsigned char *)wk_view_data(bias) + at, 1, bias->dtype, 1);
    return value[0];
}

/* n elements of a line, from element `first` on, to parts. */
static inline void window_deal(const window_lines *l, const float *from, int64_t first, int64_t n,
                               float *to) {
    if (l->stride == 2) { /* which compilers make vectors of */
        float *const here = to + first % 2 * l->part + first / 2;
        float *const there = to + (first + 1) % 2 * l->part + (first + 1) / 2;
        for (int64_t i = 0; i < n / 2; i++) {
            here[i] = from[2 * i];
            there[i] = from[2 * i + 1];
        }
        if (n % 2 != 0) here[n / 2] = from[n - 1];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[(first + i) % l->stride * l->part + (first + i) / l->stride] = from[i];
}

WK_INLINE void window_clear(float *to, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) store_at(to, i, n, v16_zero());
}

/* A row of x, or NULL: padding, with zeros around it. room: for a row that is converted. */
static inline void window_lay(const window_lines *l, const wk_view *x, const void *row, float *room,
                              float *to) {
    const bool is_plain = x->dtype == WICK_F32 && x->stride[4] == 1;
    if (row == NULL || l->stride > 1) window_clear(to, l->line);
    if (row == NULL) return;
    if (l->stride > 1) {
        if (!is_plain) load_run(room, row, x->stride[4], x->dtype, l->in);
        window_deal(l, is_plain ? row : room, l->before, l->in, to);
        return;
    }
    float *const inner = to + l->before;
    window_clear(to, l->before);
    if (is_plain) {
        for (int64_t i = 0; i < l->in; i += 16) store_at(inner, i, l->in, load_at(row, i, l->in));
    } else {
        load_run(inner, row, x->stride[4], x->dtype, l->in);
    }
    window_clear(inner + l->in, l->padded - l->before - l->in);
}

#endif
