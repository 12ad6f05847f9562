/* simd/vector_copy.h: copies and conversions between scalar dtypes over any strides. */
#ifndef WK_SIMD_VECTOR_COPY_H
#define WK_SIMD_VECTOR_COPY_H

#include "backend/cpu/simd/vector_walk.h"

#include <math.h>
#include <stdalign.h>

static void move_elements(const walk *w, int64_t begin, int64_t end, bool is_past_caches) {
    const size_t size = (size_t)w->line[0].size;
    cursor y = cursor_at(w, 0, begin), x = cursor_at(w, 1, begin);
    while (begin < end) {
        const int64_t n = cursor_run(&y, cursor_run(&x, end - begin));
        if (is_past_caches && cursor_stride(&y) == 1 && cursor_stride(&x) == 1) {
            stream_bytes(cursor_data(&y), cursor_data(&x), (size_t)n * size);
        } else {
            move_run(cursor_data(&y), cursor_stride(&y), cursor_data(&x), cursor_stride(&x), size,
                     n);
        }
        cursor_skip(&y, n);
        cursor_skip(&x, n);
        begin += n;
    }
    v16_stream_end();
}

static void run_copy(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    walk w;
    walk_elements(&w, run->op);
    if (w.line[0].dtype == w.line[1].dtype) {
        move_elements(&w, begin, end, is_streamed(run->op));
        return;
    }
    alignas(64) float buf[WALK_CHUNK];
    for (int64_t n; begin < end; begin += n) {
        n = walk_step(&w, begin, end);
        store_floats(&w, 0, begin, n, load_floats(&w, 1, begin, n, buf));
    }
}

/* --- Fill --- */

/* Zeros of any dtype are zero bytes. */
static bool accepts_fill(const wk_op *op) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype;
    if (dtype == WICK_F32) return true;
    return wk_dtype_is_scalar(dtype) && !signbit(op->p.fill.real) && op->p.fill.real == 0 &&
           op->p.fill.integer == 0;
}

static void run_fill(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    walk w;
    walk_elements(&w, run->op);
    alignas(64) float value[WALK_CHUNK];
    for (int i = 0; i < WALK_CHUNK; i++) value[i] = (float)run->op->p.fill.real;
    const bool is_past_caches = is_streamed(run->op);
    const int64_t most = (int64_t)sizeof value / w.line[0].size;
    cursor y = cursor_at(&w, 0, begin);
    for (int64_t n; begin < end; begin += n, cursor_skip(&y, n)) {
        n = cursor_run(&y, end - begin < most ? end - begin : most);
        const size_t size = (size_t)w.line[0].size;
        if (is_past_caches && cursor_stride(&y) == 1) {
            stream_bytes(cursor_data(&y), value, (size_t)n * size);
        } else {
            move_run(cursor_data(&y), cursor_stride(&y), value, 1, size, n);
        }
    }
    v16_stream_end();
}

/* --- Transposition --- */

/* The dimension along which elements of 32 bits lie side by side, -1 where there is none. */
static int dense_dimension(const wk_view *view) {
    for (int d = 0; d < view->rank; d++)
        if (view->stride[d] == 1 && view->extent[d] > 1) return d;
    return -1;
}

/* y is dense along `along`, x along `across`, another dimension. An item is a tile of 16 x 16:
 *
 *      x: [across] 0 ... 15 | 16 ... 31 |       tiles side by side across follow each other, so
 * that along 0 ... 15  tile 0  |  tile 1   |       16 rows of x are read from their beginning to
 * their 16 ... 31  tile 2  |  tile 3   |       end
 */
typedef struct planes {
    int along, across;
    int64_t n_along, n_across; /* tiles */
} planes;

static planes planes_of(const wk_op *op) {
    planes p = {.along = dense_dimension(wk_dst(op, 0)), .across = dense_dimension(wk_src(op, 0))};
    if (p.along < 0 || p.across < 0) return p;
    p.n_along = (wk_src(op, 0)->extent[p.along] + 15) / 16;
    p.n_across = (wk_src(op, 0)->extent[p.across] + 15) / 16;
    return p;
}

/* Offset of an element of the dimensions that are not of a plane. */
static int64_t plane_offset(const wk_view *view, const planes *p, int64_t index) {
    int64_t offset = 0;
    for (int d = view->rank - 1; d >= 0; d--) {
        if (d == p->along || d == p->across) continue;
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    return offset;
}

/* Makes n_across rows of y, of n_along elements, from as many columns of x. */
static void transpose_tile(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                           int64_t n_along, int64_t n_across, bool is_past_caches) {
    v16 tile[16];
    for (int64_t j = 0; j < 16; j++)
        tile[j] = j < n_along ? v16_load_rows(x + j * x_stride, n_across) : v16_zero();
    v16_transpose(tile);
    for (int64_t j = 0; j < 16 && j < n_across; j++) {
        if (is_past_caches && n_along >= 16) {
            v16_stream(y + j * y_stride, tile[j]);
        } else {
            v16_store_rows(y + j * y_stride, tile[j], n_along);
        }
    }
}

enum { STREAM_TILES_BYTES = 4 << 20 }; /* lines far apart push each other out of the caches */

static void run_transpose(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0), *const x = wk_src(run->op, 0);
    const planes p = planes_of(run->op);
    const int64_t y_stride = y->stride[p.across], x_stride = x->stride[p.along];
    const bool is_past_caches = is_streamed_from(run->op, STREAM_TILES_BYTES) && y_stride % 16 == 0;
    while (begin < end) {
        const int64_t row = begin / p.n_across, plane = row / p.n_along;
        const int64_t along = row % p.n_along * 16, n_along = y->extent[p.along] - along;
        const int64_t last = (row + 1) * p.n_across < end ? (row + 1) * p.n_across : end;
        float *const to = (float *)wk_view_data(y) + plane_offset(y, &p, plane) + along;
        const float *const from =
            (const float *)wk_view_data(x) + plane_offset(x, &p, plane) + along * x_stride;
        const bool is_aligned = is_past_caches && (uintptr_t)to % 64 == 0;
        for (; begin < last; begin++) {
            const int64_t across = begin % p.n_across * 16;
            transpose_tile(to + across * y_stride, y_stride, from + across, x_stride, n_along,
                           y->extent[p.across] - across, is_aligned);
        }
    }
    v16_stream_end();
}

/* Elements of 32 bits, in planes of at least a tile. */
static bool accepts_transpose(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (x->dtype != y->dtype || x->layout != WK_LAYOUT_RAW) return false;
    if (x->dtype != WICK_F32 && x->dtype != WICK_I32 && x->dtype != WICK_U32) return false;
    const planes p = planes_of(op);
    return p.along >= 0 && p.across >= 0 && p.along != p.across && y->extent[p.along] >= 16 &&
           y->extent[p.across] >= 16;
}

static int64_t transpose_items(const wk_op *op, int phase) {
    (void)phase;
    const planes p = planes_of(op);
    const wk_view *const y = wk_dst(op, 0);
    return wk_view_count(y) / (y->extent[p.along] * y->extent[p.across]) * p.n_along * p.n_across;
}

static int64_t transpose_grain(const wk_op *op, int phase) {
    (void)op, (void)phase;
    return 16;
}

/* --- Conversion --- */

/* Whether going through float32 gives what going directly does: numbers that float32 holds may
 * become anything, others only float32. Integers wrap where they get narrower: not through floats.
 */
static bool converts_by_f32(wick_dtype to, wick_dtype from) {
    switch (from) {
    case WICK_F32:
    case WICK_F16:
    case WICK_BF16: return true;
    case WICK_U8:
    case WICK_I8:
    case WICK_I16:
    case WICK_BOOL: return wk_dtype_is_float(to);
    default: return to == WICK_F32;
    }
}

static bool accepts_copy(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (x->layout != WK_LAYOUT_RAW || wk_dtype_is_block(x->dtype) || wk_dtype_is_block(y->dtype))
        return false;
    if (x->dtype == y->dtype) return true;
    return wk_dtype_is_scalar(x->dtype) && wk_dtype_is_scalar(y->dtype) &&
           converts_by_f32(y->dtype, x->dtype);
}

#endif
