/* simd/vector_walk.h: the elements of several views of one shape, in an order that suits them, as
 * runs of floats or of bytes: what makes strides, broadcasting and dtypes no concern of the
 * kernels.
 *
 * A walk numbers the elements in the order of one view's strides. Each view is a line of its own,
 * whose dimensions are joined where each continues the other: a dense one of any shape is one row.
 */
#ifndef WK_SIMD_VECTOR_WALK_H
#define WK_SIMD_VECTOR_WALK_H

#include "backend/cpu/simd/vector_convert.h"

#include <assert.h>

typedef uint16_t any_16_bits WK_OF_ANY_TYPE;
typedef uint32_t any_32_bits WK_OF_ANY_TYPE;
typedef uint64_t any_64_bits WK_OF_ANY_TYPE;

/* n elements of size bytes; to and from do not overlap. Strides in elements. */
static void move_run(void *to, int64_t to_stride, const void *from, int64_t from_stride,
                     size_t size, int64_t n) {
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
#define MOVE(bytes, type)                                                                          \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((type *)to)[i * to_stride] = ((const type *)from)[i * from_stride];                   \
        break;
        MOVE(1, uint8_t)
        MOVE(2, any_16_bits)
        MOVE(4, any_32_bits)
        MOVE(8, any_64_bits)
#undef MOVE
    default: assert(false);
    }
}

enum {
    WALK_OPERANDS = 4,
    WALK_CHUNK = 1024,  /* elements that are converted at once, on the stack */
    WALK_LONG_ROW = 64, /* rows from here on are worth a step of their own */
};

typedef struct walk_line {
    unsigned char *data;
    int64_t size; /* of an element */
    wick_dtype dtype;
    int rank; /* at least 1 */
    int64_t extent[WICK_MAX_RANK], stride[WICK_MAX_RANK];
} walk_line;

typedef struct walk {
    int n;
    int64_t count;
    walk_line line[WALK_OPERANDS];
} walk;

/* --- Dimensions --- */

/* Dimensions [first, last) but those of one element, by falling stride; how many. */
static int order_dimensions(const wk_view *key, int first, int last, int order[WICK_MAX_RANK]) {
    int n = 0;
    for (int d = first; d < last; d++) {
        if (key->extent[d] == 1) continue;
        int at = n++;
        for (; at > 0 && key->stride[order[at - 1]] < key->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

static void set_line(walk_line *line, const wk_view *view, const int *order, int n) {
    assert(view->layout == WK_LAYOUT_RAW && n <= WICK_MAX_RANK);
    line->data = wk_view_data(view);
    line->size = wk_dtype_get(view->dtype)->block_bytes;
    line->dtype = view->dtype;
    int rank = 0;
    line->extent[0] = 1;
    line->stride[0] = 1;
    for (int i = 0; i < n; i++) {
        const int64_t extent = view->extent[order[i]], stride = view->stride[order[i]];
        if (rank > 0 && line->stride[rank - 1] == stride * extent) {
            line->extent[rank - 1] *= extent;
            line->stride[rank - 1] = stride;
        } else {
            line->extent[rank] = extent;
            line->stride[rank++] = stride;
        }
    }
    line->rank = rank > 0 ? rank : 1;
}

/* Dimensions [first, last) of n views of one shape, in the order of view key. */
static void walk_over(walk *w, const wk_view *views, int n, int key, int first, int last) {
    assert(n <= WALK_OPERANDS);
    int order[WICK_MAX_RANK];
    const int n_dims = order_dimensions(&views[key], first, last, order);
    w->n = n;
    w->count = 1;
    for (int d = first; d < last; d++) w->count *= views[key].extent[d];
    for (int i = 0; i < n; i++) set_line(&w->line[i], &views[i], order, n_dims);
}

/* All operands of an elementwise op, in the order of the result. */
static void walk_elements(walk *w, const wk_op *op) {
    walk_over(w, op->view, op->n_dst + op->n_src, 0, 0, op->view[0].rank);
}

/* How many of elements [begin, end) are to be computed together: of one row where rows are long and
 * dense, so that they are used where they lie; else no more than a chunk. */
static int64_t walk_step(const walk *w, int64_t begin, int64_t end) {
    int64_t most = end - begin;
    for (int i = 0; i < w->n; i++) {
        const walk_line *const line = &w->line[i];
        const int64_t row = line->extent[line->rank - 1];
        const bool is_dense = line->dtype == WICK_F32 && line->stride[line->rank - 1] == 1;
        int64_t step = WALK_CHUNK;
        if (is_dense && line->rank == 1) continue;
        if (is_dense && row >= WALK_LONG_ROW) step = row - begin % row;
        most = step < most ? step : most;
    }
    return most;
}

/* --- Positions --- */

typedef struct cursor {
    const walk_line *line;
    int64_t offset, index[WICK_MAX_RANK];
} cursor;

static cursor cursor_at(const walk *w, int operand, int64_t element) {
    assert(operand < w->n && element >= 0 && element <= w->count);
    const walk_line *const line = &w->line[operand];
    cursor c = {.line = line};
    for (int d = line->rank - 1; d > 0 && element > 0; d--) {
        c.index[d] = element % line->extent[d];
        element /= line->extent[d];
        c.offset += c.index[d] * line->stride[d];
    }
    c.index[0] = element;
    c.offset += element * line->stride[0];
    return c;
}

static unsigned char *cursor_data(const cursor *c) {
    return c->line->data + c->offset * c->line->size;
}

static int64_t cursor_stride(const cursor *c) { return c->line->stride[c->line->rank - 1]; }

/* Elements from here to the end of the row, at most n. */
static int64_t cursor_run(const cursor *c, int64_t n) {
    const int last = c->line->rank - 1;
    const int64_t left = c->line->extent[last] - c->index[last];
    return left < n ? left : n;
}

/* Past n elements of this row. */
static void cursor_skip(cursor *c, int64_t n) {
    const int64_t *const stride = c->line->stride;
    int d = c->line->rank - 1;
    c->index[d] += n;
    c->offset += n * stride[d];
    for (; d > 0 && c->index[d] == c->line->extent[d]; d--) {
        c->offset += stride[d - 1] - c->index[d] * stride[d];
        c->index[d] = 0;
        c->index[d - 1]++;
    }
}

/* --- Elements [begin, begin + n) --- */

/* NULL where they do not lie side by side. */
static void *elements_at(const walk *w, int operand, int64_t begin, int64_t n) {
    const walk_line *const line = &w->line[operand];
    if (line->rank == 1) {
        const int64_t stride = line->stride[0];
        return stride == 1 || n == 1 ? line->data + begin * stride * line->size : NULL;
    }
    const cursor c = cursor_at(w, operand, begin);
    if (cursor_run(&c, n) < n || (cursor_stride(&c) != 1 && n > 1)) return NULL;
    return cursor_data(&c);
}

static float *floats_at(const walk *w, int operand, int64_t begin, int64_t n) {
    return w->line[operand].dtype == WICK_F32 ? elements_at(w, operand, begin, n) : NULL;
}

/* As floats, where they lie or else in buf. */
static const float *load_floats(const walk *w, int operand, int64_t begin, int64_t n, float *buf) {
    const float *const there = floats_at(w, operand, begin, n);
    if (there != NULL) return there;
    cursor c = cursor_at(w, operand, begin);
    for (int64_t i = 0, run; i < n; i += run) {
        run = cursor_run(&c, n - i);
        load_run(buf + i, cursor_data(&c), cursor_stride(&c), w->line[operand].dtype, run);
        cursor_skip(&c, run);
    }
    return buf;
}

static void store_floats(const walk *w, int operand, int64_t begin, int64_t n, const float *from) {
    cursor c = cursor_at(w, operand, begin);
    for (int64_t i = 0, run; i < n; i += run) {
        run = cursor_run(&c, n - i);
        store_run(cursor_data(&c), cursor_stride(&c), w->line[operand].dtype, from + i, run);
        cursor_skip(&c, run);
    }
}

/* Bits as they are, where they lie or else in buf. */
static const void *load_bits(const walk *w, int operand, int64_t begin, int64_t n, void *buf) {
    const void *const there = elements_at(w, operand, begin, n);
    if (there != NULL) return there;
    const size_t size = (size_t)w->line[operand].size;
    cursor c = cursor_at(w, operand, begin);
    for (int64_t i = 0, run; i < n; i += run) {
        run = cursor_run(&c, n - i);
        move_run((unsigned char *)buf + (size_t)i * size, 1, cursor_data(&c), cursor_stride(&c),
                 size, run);
        cursor_skip(&c, run);
    }
    return buf;
}

static void store_bits(const walk *w, int operand, int64_t begin, int64_t n, const void *buf) {
    const size_t size = (size_t)w->line[operand].size;
    cursor c = cursor_at(w, operand, begin);
    for (int64_t i = 0, run; i < n; i += run) {
        run = cursor_run(&c, n - i);
        move_run(cursor_data(&c), cursor_stride(&c), (const unsigned char *)buf + (size_t)i * size,
                 1, size, run);
        cursor_skip(&c, run);
    }
}

/* --- Results that no cache holds --- */

enum { STREAM_BYTES = 32 << 20 }; /* with an operand of the same size as much again */

/* Whether a result of at least `bytes` is written past the caches: memory would be read before it
 * is written, and what follows would have to read it from memory anyway. */
static bool is_streamed_from(const wk_op *op, int64_t bytes) {
    const wk_view *const y = wk_dst(op, 0);
    return SIMD_STREAMS != 0 && wk_view_count(y) * wk_dtype_get(y->dtype)->block_bytes >= bytes;
}
static bool is_streamed(const wk_op *op) { return is_streamed_from(op, STREAM_BYTES); }

/* size bytes, past the caches; those at `after` are read next. */
static void stream_then(void *to, const void *from, size_t size, const void *after) {
    unsigned char *y = to;
    const unsigned char *x = from;
    const size_t before = -(uintptr_t)y % 64;
    if (size < before + 64) {
        memcpy(y, x, size);
        return;
    }
    memcpy(y, x, before);
    for (y += before, x += before, size -= before; size >= 64; y += 64, x += 64, size -= 64) {
        wk_prefetch(size > READ_AHEAD ? x + READ_AHEAD
                                      : (const unsigned char *)after + (READ_AHEAD - size));
        v16_stream((float *)(void *)y, v16_load((const float *)(const void *)x));
    }
    memcpy(y, x, size);
}

static void stream_bytes(void *to, const void *from, size_t size) {
    stream_then(to, from, size, (const unsigned char *)from + size);
}

/* --- Items of elementwise kernels --- */

static int64_t element_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_view_count(&op->view[0]);
}

static int64_t element_grain(const wk_op *op, int phase) {
    (void)op, (void)phase;
    return 4096;
}

#endif
