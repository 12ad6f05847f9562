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

/* Elements of a line before it is dealt out. */
static inline int64_t window_padded(const wk_window_shape *w, const wk_view *x) {
    return w->before[2] + x->extent[4] + w->after[2];
}

/* Elements of a part. */
static inline int64_t window_part(const wk_window_shape *w, const wk_view *x) {
    const int64_t n = window_padded(w, x);
    return w->stride[2] == 1 ? n : n / w->stride[2] + 1;
}

/* Elements of all parts. */
static inline int64_t window_line(const wk_window_shape *w, const wk_view *x) {
    return w->stride[2] * window_part(w, x);
}

/* Where in the dealt line element k of the first window lies. */
static inline int64_t window_tap(const wk_window_shape *w, int64_t part, int64_t k) {
    const int64_t at = k * w->dilation[2];
    return w->stride[2] == 1 ? at : at % w->stride[2] * part + at / w->stride[2];
}

/* Bytes of row [n, c, d, h] of an image. */
static inline const void *window_row(const wk_view *x, int64_t n, int64_t c, int64_t d, int64_t h) {
    const int64_t offset =
        n * x->stride[0] + c * x->stride[1] + d * x->stride[2] + h * x->stride[3];
    return (const unsigned char *)wk_view_data(x) + offset * wk_dtype_get(x->dtype)->block_bytes;
}

/* Of filter m; 0 where there is none. */
static inline float window_bias(const wk_view *bias, int64_t m) {
    float value[16] = {0}; /* of which conversions may touch all */
    if (bias->buf == NULL) return 0;
    const int64_t at = m * bias->stride[0] * wk_dtype_get(bias->dtype)->block_bytes;
    load_run(value, (const unsigned char *)wk_view_data(bias) + at, 1, bias->dtype, 1);
    return value[0];
}

/* Line [n] to parts. */
static inline void window_deal(const float *line, int64_t n, int64_t stride, int64_t part,
                               float *to) {
    const int64_t each = n / stride;
    if (stride == 2) { /* which compilers make vectors of */
        for (int64_t i = 0; i < each; i++) {
            to[i] = line[2 * i];
            to[part + i] = line[2 * i + 1];
        }
    } else {
        for (int64_t r = 0; r < stride; r++)
            for (int64_t i = 0; i < each; i++) to[r * part + i] = line[i * stride + r];
    }
    for (int64_t i = each * stride; i < n; i++) to[(i - each * stride) * part + each] = line[i];
}

/* A row of x, or NULL: padding, with zeros around it. room: for a line that is dealt out. */
static inline void window_lay(const wk_window_shape *w, const wk_view *x, const void *row,
                              float *room, float *to) {
    const int64_t n = window_padded(w, x), in = x->extent[4], first = w->before[2];
    float *const line = w->stride[2] == 1 ? to : room;
    for (int64_t i = 0; i < first; i++) line[i] = 0;
    if (row != NULL) {
        load_run(line + first, row, x->stride[4], x->dtype, in);
    } else {
        for (int64_t i = 0; i < in; i++) line[first + i] = 0;
    }
    for (int64_t i = first + in; i < n; i++) line[i] = 0;
    if (w->stride[2] > 1) window_deal(line, n, w->stride[2], window_part(w, x), to);
}

#endif
