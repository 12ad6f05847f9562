/* simd/vector_index.h: elements fetched by index, and met by others; running sums and products.
 *
 * All go along the last dimension. Where another dimension is dense, and the index does not depend
 * on it, its elements move together: rows of a matrix are fetched as rows, although the op says
 * that elements of columns are. */
#ifndef WK_SIMD_VECTOR_INDEX_H
#define WK_SIMD_VECTOR_INDEX_H

#include "backend/cpu/simd/vector_walk.h"

#include <math.h>
#include <stdalign.h>

enum {
    LANES = 256,         /* most elements that are computed together, */
    MOVED_LANES = 16384, /* and that are only moved */
};

/* The dense dimension of views that move together; -1: there is none. still: a view that must not
 * depend on it, or NULL. */
static int lane_dimension(const wk_view *a, const wk_view *b, const wk_view *still) {
    for (int d = 0; d + 1 < a->rank; d++)
        if (a->extent[d] > 1 && a->stride[d] == 1 && b->stride[d] == 1 &&
            (still == NULL || still->stride[d] == 0))
            return d;
    return -1;
}

/* How the elements of all dimensions but the last are taken: up to
 * `most` of one dimension at once. */
typedef struct lanes {
    int dim;                 /* -1: one by one */
    int64_t most;            /* at once */
    int64_t n_parts, n_rows; /* parts of the dimension, and elements of those besides */
} lanes;

static lanes lanes_of(const wk_view *a, const wk_view *b, const wk_view *still, int64_t most) {
    lanes l = {.dim = lane_dimension(a, b, still), .most = most, .n_parts = 1, .n_rows = 1};
    for (int d = 0; d + 1 < a->rank; d++)
        if (d != l.dim) l.n_rows *= a->extent[d];
    if (l.dim >= 0) l.n_parts = (a->extent[l.dim] + most - 1) / most;
    return l;
}

/* Address of the first element of item `item` of parts and rows; how many move together. */
static unsigned char *lanes_at(const lanes *l, const wk_view *view, int64_t item, int64_t *n) {
    int64_t row = item / l->n_parts, offset = 0;
    *n = 1;
    for (int d = view->rank - 2; d >= 0; d--) {
        if (d == l->dim) continue;
        offset += row % view->extent[d] * view->stride[d];
        row /= view->extent[d];
    }
    if (l->dim >= 0) {
        const int64_t first = item % l->n_parts * l->most, left = view->extent[l->dim] - first;
        offset += first * view->stride[l->dim];
        *n = left < l->most ? left : l->most;
    }
    return (unsigned char *)wk_view_data(view) + offset * wk_dtype_get(view->dtype)->block_bytes;
}

/* The last dimension of a view. */
static int64_t line_length(const wk_view *view) { return view->extent[view->rank - 1]; }
static int64_t line_step(const wk_view *view) {
    return view->stride[view->rank - 1] * wk_dtype_get(view->dtype)->block_bytes;
}

/* Index i; -1 where it is not below n. */
WK_INLINE int64_t index_at(const unsigned char *from, wick_dtype dtype, int64_t step, int64_t i,
                           int64_t n) {
    int64_t id;
    switch (dtype) {
    case WICK_U32: id = *(const uint32_t *)(const void *)(from + i * step); break;
    case WICK_I64: id = *(const int64_t *)(const void *)(from + i * step); break;
    default: id = from[i * step];
    }
    return id >= 0 && id < n ? id : -1;
}

static bool is_index_dtype(wick_dtype dtype) {
    return dtype == WICK_U32 || dtype == WICK_I64 || dtype == WICK_U8;
}

/* --- Gather --- */

static int64_t gather_items(const wk_op *op, int phase) {
    (void)phase;
    const wk_view *const y = wk_dst(op, 0);
    const lanes l = lanes_of(y, wk_src(op, 0), wk_src(op, 1), MOVED_LANES);
    return l.n_rows * l.n_parts * line_length(y);
}

static int64_t gather_grain(const wk_op *op, int phase) {
    (void)phase;
    const lanes l = lanes_of(wk_dst(op, 0), wk_src(op, 0), wk_src(op, 1), MOVED_LANES);
    return l.dim >= 0 ? 16 : 4096;
}

/* Elements [begin, end) of the last dimension. */
static void gather_line(const wk_cpu_run *run, const lanes *l, int64_t item, int64_t begin,
                        int64_t end) {
    const wk_view *const y = wk_dst(run->op, 0), *const x = wk_src(run->op, 0),
                         *const index = wk_src(run->op, 1);
    int64_t n, unused;
    unsigned char *const to = lanes_at(l, y, item, &n);
    const unsigned char *const from = lanes_at(l, x, item, &unused);
    const unsigned char *const ids = lanes_at(l, index, item, &unused);
    const int64_t size = wk_dtype_get(y->dtype)->block_bytes, length = line_length(x);
    const int64_t to_step = line_step(y), from_step = line_step(x), step = line_step(index);
    const bool is_past_caches = l->dim >= 0 && is_streamed(run->op);
    for (int64_t i = begin; i < end; i++) {
        const int64_t id = index_at(ids, index->dtype, step, i, length);
        if (id < 0) {
            wk_cpu_fault(run);
        } else if (n == 1 && size == 4) {
            memcpy(to + i * to_step, from + id * from_step, 4);
        } else if (is_past_caches) {
            const int64_t next =
                i + 1 < end ? index_at(ids, index->dtype, step, i + 1, length) : id;
            stream_then(to + i * to_step, from + id * from_step, (size_t)(n * size),
                        from + (next >= 0 ? next : id) * from_step);
        } else {
            memcpy(to + i * to_step, from + id * from_step, (size_t)(n * size));
        }
    }
}

static void run_gather(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const lanes l =
        lanes_of(wk_dst(run->op, 0), wk_src(run->op, 0), wk_src(run->op, 1), MOVED_LANES);
    const int64_t m = line_length(wk_dst(run->op, 0));
    for (int64_t i = begin, last; i < end; i = last) {
        const int64_t item = i / m;
        last = (item + 1) * m < end ? (item + 1) * m : end;
        gather_line(run, &l, item, i - item * m, last - item * m);
    }
    v16_stream_end();
}

static bool accepts_gather(const wk_op *op) {
    return !wk_dtype_is_block(wk_dst(op, 0)->dtype) && is_index_dtype(wk_src(op, 1)->dtype);
}

/* --- Scatter: an item takes all sources in their order --- */

static int64_t scatter_items(const wk_op *op, int phase) {
    (void)phase;
    const lanes l = lanes_of(wk_dst(op, 0), wk_src(op, 0), wk_src(op, 1), LANES);
    return l.n_rows * l.n_parts;
}

/* X(FUNCTION, of y and x), as the reference has them where a number is NaN. */
#define SCATTER_FUNCTIONS(X)                                                                       \
    X(ADD, v16_add(a, b))                                                                          \
    X(MUL, v16_mul(a, b))                                                                          \
    X(MAX, v16_select(m16_not(v16_equal(a, a)), a, v16_max(a, b)))                                 \
    X(MIN, v16_select(m16_not(v16_equal(a, a)), a, v16_min(a, b)))

static void scatter_lanes(wk_scatter_fn fn, float *y, const float *x, int64_t n) {
    switch (fn) {
#define CASE(function, value)                                                                      \
    case WK_SCATTER_##function:                                                                    \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            const v16 a = load_at(y, i, n), b = load_at(x, i, n);                                  \
            store_at(y, i, n, value);                                                              \
        }                                                                                          \
        break;
        SCATTER_FUNCTIONS(CASE)
#undef CASE
    default: break;
    }
}

/* Asks for source i, if there is one, and for what it meets: targets lie anywhere. */
static void scatter_ahead(const wk_view *y, const unsigned char *to, const wk_view *src,
                          const unsigned char *from, int64_t id, int64_t i, int64_t size) {
    if (id < 0 || i >= line_length(src)) return;
    for (int64_t j = 0; j < size; j += 64) {
        wk_prefetch(from + i * line_step(src) + j);
        wk_prefetch(to + id * line_step(y) + j);
    }
}

static void run_scatter(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0), *const src = wk_src(run->op, 0),
                         *const index = wk_src(run->op, 1);
    const lanes l = lanes_of(y, src, index, LANES);
    const int64_t size = wk_dtype_get(y->dtype)->block_bytes;
    for (int64_t item = begin; item < end; item++) {
        int64_t n, unused;
        unsigned char *const to = lanes_at(&l, y, item, &n);
        const unsigned char *const from = lanes_at(&l, src, item, &unused);
        const unsigned char *const ids = lanes_at(&l, index, item, &unused);
        const int64_t n_sources = line_length(src), length = line_length(y);
        int64_t next = n_sources > 0 ? index_at(ids, index->dtype, 0, 0, length) : -1;
        for (int64_t i = 0; i < n_sources; i++) {
            const int64_t id = next;
            if (i + 1 < n_sources)
                next = index_at(ids, index->dtype, line_step(index), i + 1, length);
            void *const at = to + id * line_step(y);
            const void *const source = from + i * line_step(src);
            if (l.dim >= 0) scatter_ahead(y, to, src, from, next, i + 1, n * size);
            if (id < 0) {
                wk_cpu_fault(run);
            } else if (run->op->p.scatter == WK_SCATTER_SET) {
                memcpy(at, source, (size_t)(n * size));
            } else {
                scatter_lanes(run->op->p.scatter, at, source, n);
            }
        }
    }
}

/* Numbers of other types are left to the reference. */
static bool accepts_scatter(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    const bool is_moved = op->p.scatter == WK_SCATTER_SET && !wk_dtype_is_block(y->dtype);
    return is_index_dtype(wk_src(op, 1)->dtype) && (is_moved || y->dtype == WICK_F32);
}

/* --- Cumulate: columns side by side --- */

static int64_t cumulate_items(const wk_op *op, int phase) {
    (void)phase;
    const lanes l = lanes_of(wk_dst(op, 0), wk_src(op, 0), NULL, LANES);
    return l.n_rows * l.n_parts;
}

/* One line, dense in both. */
static void running_sums(float *y, const float *x, int64_t n, bool is_past_caches) {
    double before = 0;
    alignas(64) float buf[WALK_CHUNK];
    for (int64_t first = 0; first < n; first += WALK_CHUNK) {
        const int64_t some = n - first < WALK_CHUNK ? n - first : WALK_CHUNK;
        float *const to = is_past_caches ? buf : y + first;
        for (int64_t i = 0; i < some; i += 16)
            store_at(to, i, some, v16_running_sums(load_next(x + first, i, some), &before));
        if (is_past_caches) stream_bytes(y + first, buf, (size_t)some * sizeof *y);
    }
}

/* One line. */
static void running_products(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                             int64_t n) {
    double product = 1;
    for (int64_t i = 0; i < n; i++) {
        product *= (double)x[i * x_stride];
        y[i * y_stride] = (float)product;
    }
}

static void cumulate_line(wk_cumulate_fn fn, const wk_view *y, void *to, const wk_view *x,
                          const void *from, bool is_past_caches) {
    const int64_t y_stride = y->stride[y->rank - 1], x_stride = x->stride[x->rank - 1];
    const int64_t n = line_length(y);
    if (fn == WK_CUMULATE_SUM && y_stride == 1 && x_stride == 1) {
        running_sums(to, from, n, is_past_caches);
    } else if (fn == WK_CUMULATE_SUM) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i * y_stride] =
                (float)(sum += (double)((const float *)from)[i * x_stride]);
    } else {
        running_products(to, y_stride, from, x_stride, n);
    }
}

/* n lines side by side. */
static void cumulate_lanes(wk_cumulate_fn fn, const wk_view *y, unsigned char *to, const wk_view *x,
                           const unsigned char *from, int64_t n, bool is_past_caches) {
    double running[LANES];
    alignas(64) float buf[LANES];
    for (int64_t j = 0; j < n; j++) running[j] = fn == WK_CUMULATE_SUM ? 0 : 1;
    for (int64_t i = 0; i < line_length(y); i++, from += line_step(x), to += line_step(y)) {
        const float *const part = (const float *)(const void *)from;
        float *const result = is_past_caches ? buf : (float *)(void *)to;
        for (int64_t j = 0; j < n; j += 16) wk_prefetch(from + line_step(x) + 4 * j);
        if (fn == WK_CUMULATE_SUM) {
            for (int64_t j = 0; j < n; j++) result[j] = (float)(running[j] += (double)part[j]);
        } else {
            for (int64_t j = 0; j < n; j++) result[j] = (float)(running[j] *= (double)part[j]);
        }
        if (is_past_caches) stream_bytes(to, buf, (size_t)n * sizeof *buf);
    }
}

static void run_cumulate(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0), *const x = wk_src(run->op, 0);
    const wk_cumulate_fn fn = run->op->p.cumulate;
    const bool is_past_caches = is_streamed(run->op);
    const lanes l = lanes_of(y, x, NULL, LANES);
    for (int64_t item = begin; item < end; item++) {
        int64_t n;
        unsigned char *const to = lanes_at(&l, y, item, &n);
        const unsigned char *const from = lanes_at(&l, x, item, &n);
        if (l.dim < 0) {
            cumulate_line(fn, y, to, x, from, is_past_caches);
        } else {
            cumulate_lanes(fn, y, to, x, from, n, is_past_caches);
        }
    }
    v16_stream_end();
}

static bool accepts_cumulate(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    return y->rank > 0 && y->dtype == WICK_F32 && x->dtype == WICK_F32;
}

#endif
