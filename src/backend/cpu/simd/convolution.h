/* simd/convolution.h: convolutions as products of the weights [m, k] with windows [k, positions],
 * which never stand in memory as a whole: strips of them are packed from the image, a few positions
 * of a row at a time, and multiplied as matmul.h does it, in the same order.
 *
 * Element k is (channel, kd, kh, kw), a position (n, od, oh, ow). Where a window's element lies is
 * the sum of an offset that depends on k and one that depends on the position:
 *
 *   a strip of 32 positions, rows of 14:   |....10....|......14......|...8...|   3 pieces
 *   row k of the strip: the same pieces of the image, offset(k) further on
 *
 * The image is x itself, or else a copy of it with padding, dealt out (vector_windows.h). */
#ifndef WK_SIMD_CONVOLUTION_H
#define WK_SIMD_CONVOLUTION_H

#include "backend/cpu/simd/matmul.h"
#include "backend/cpu/simd/vector_windows.h"

enum {
    FILTER_ROWS = 48 * TILE_ROWS, /* of an item: more would pack the windows once more, and ... */
    POSITIONS = 8 * STRIP,        /* ... what an item has of both should stay in a core's cache */
    FEW_OF_SAMPLE = 512,          /* positions: samples with fewer are strung together */
};
enum { LAY, PACK_WEIGHTS, CONVOLVE }; /* phases */

typedef struct convolving {
    const wk_window_shape *w;
    const wk_view *x, *y, *weight, *bias;
    int64_t groups, rows, k; /* of a group: filters, and elements of the kernel of each */
    int64_t samples;         /* whose positions are strung together */
    int64_t columns;         /* positions of these */
    int64_t row_step, n_down, column_step, n_across;
    bool is_direct;                     /* the image is x */
    int64_t lines;                      /* of the image's copy */
    int64_t stride[WK_WINDOW_RANK - 1]; /* of the image: n, c, d, h; elements */
    int64_t extent[2];                  /* of the copy: d, h */
} convolving;

static bool accepts_convolution(const wk_op *op) {
    return accepts_floats(op) && wk_view_is_dense(wk_src(op, 1));
}

/* Windows of x where it lies. */
static bool convolves_directly(const wk_window_shape *w, const wk_view *x) {
    bool is_direct = x->dtype == WICK_F32 && x->stride[4] == 1 && w->stride[2] == 1;
    for (int d = 0; d < WK_WINDOW_DIMS; d++) is_direct &= w->before[d] == 0 && w->after[d] == 0;
    return is_direct;
}

static void set_image(convolving *s) {
    s->is_direct = convolves_directly(s->w, s->x);
    if (s->is_direct) {
        for (int d = 0; d < WK_WINDOW_RANK - 1; d++) s->stride[d] = s->x->stride[d];
        return;
    }
    for (int d = 0; d < 2; d++)
        s->extent[d] = s->w->before[d] + s->x->extent[2 + d] + s->w->after[d];
    s->stride[3] = window_line(s->w, s->x);
    s->stride[2] = s->extent[1] * s->stride[3];
    s->stride[1] = s->extent[0] * s->stride[2];
    s->stride[0] = s->x->extent[1] * s->stride[1];
    s->lines = s->x->extent[0] * s->x->extent[1] * s->extent[0] * s->extent[1];
}

/* Columns are cut first, so that many threads get some: windows of each are packed once. */
static void set_items(convolving *s, int64_t n_products) {
    s->row_step = even_step(s->rows, FILTER_ROWS, TILE_ROWS);
    s->n_down = parts_of(s->rows, s->row_step);
    for (int64_t most = POSITIONS;; most = s->column_step / 2) {
        s->column_step = even_step(s->columns, most, STRIP);
        s->n_across = parts_of(s->columns, s->column_step);
        if (n_products * s->n_down * s->n_across >= FEW_ITEMS || s->column_step <= 2 * STRIP ||
            s->rows * s->column_step / 2 * s->k < LEAST_WORK)
            return;
    }
}

static convolving convolving_of(const wk_op *op) {
    convolving s = {.w = &op->p.windows,
                    .x = wk_src(op, 0),
                    .y = wk_dst(op, 0),
                    .weight = wk_src(op, 1),
                    .bias = wk_src(op, 2)};
    s.groups = s.x->extent[1] / s.weight->extent[1];
    s.rows = s.weight->extent[0] / s.groups;
    s.k = 1;
    for (int d = 1; d < WK_WINDOW_RANK; d++) s.k *= s.weight->extent[d];
    const int64_t positions = s.y->extent[2] * s.y->extent[3] * s.y->extent[4];
    s.samples = positions < FEW_OF_SAMPLE && s.y->extent[0] > 0 ? s.y->extent[0] : 1;
    s.columns = s.samples * positions;
    set_image(&s);
    set_items(&s, s.y->extent[0] / s.samples * s.groups);
    return s;
}

/* --- Memory --- */

static int64_t image_floats(const convolving *s) {
    return s->is_direct ? 0 : s->lines * s->stride[3] + WINDOW_SLACK;
}
static int64_t weight_floats(const convolving *s) { return s->n_down * s->row_step * s->k; }

static size_t convolution_scratch_bytes(const wk_op *op) {
    const convolving s = convolving_of(op);
    return (size_t)(image_floats(&s) + s.groups * weight_floats(&s)) * sizeof(float);
}

/* A run of positions side by side in the image, or in y. */
typedef struct piece {
    int64_t from, to; /* to: counted from the first column of an item */
    int64_t n;
} piece;

static int64_t convolution_depth(const convolving *s) { return s->k < SPAN ? s->k : SPAN; }

static size_t convolution_worker_bytes(const wk_op *op) {
    const convolving s = convolving_of(op);
    const int64_t strips = s.column_step * convolution_depth(&s) + 16;
    const int64_t n = strips + s.row_step * s.column_step + window_padded(s.w, s.x);
    return (size_t)n * sizeof(float) + 2 * (size_t)s.column_step * sizeof(piece);
}

static int64_t convolution_items(const wk_op *op, int phase) {
    const convolving s = convolving_of(op);
    switch (phase) {
    case LAY: return s.is_direct ? 0 : s.lines;
    case PACK_WEIGHTS: return s.groups * parts_of(s.rows, PACK_ROWS);
    default: return s.y->extent[0] / s.samples * s.groups * s.n_down * s.n_across;
    }
}

static int64_t convolution_grain(const wk_op *op, int phase) {
    return phase == LAY ? 1 + 16384 / (1 + wk_src(op, 0)->extent[4]) : 1;
}

/* --- Phases --- */

static void lay_line(const convolving *s, int64_t index, float *room, float *image) {
    const int64_t h = index % s->extent[1] - s->w->before[1];
    const int64_t d = index / s->extent[1] % s->extent[0] - s->w->before[0];
    const int64_t plane = index / s->extent[1] / s->extent[0];
    const bool is_padding = d < 0 || h < 0 || d >= s->x->extent[2] || h >= s->x->extent[3];
    const void *const row =
        is_padding ? NULL
                   : window_row(s->x, plane / s->x->extent[1], plane % s->x->extent[1], d, h);
    window_lay(s->w, s->x, row, room, image + index * s->stride[3]);
}

/* Of each span of k all tiles, one group after the other. */
static void pack_weights(const convolving *s, int64_t item, float *packed) {
    const int64_t parts = parts_of(s->rows, PACK_ROWS), group = item / parts;
    const int64_t row = item % parts * PACK_ROWS, all = s->n_down * s->row_step;
    const int64_t rows = s->rows - row < PACK_ROWS ? s->rows - row : PACK_ROWS;
    const int64_t size = wk_dtype_get(s->weight->dtype)->block_bytes;
    const matrix a = {.data =
                          (unsigned char *)wk_view_data(s->weight) + group * s->rows * s->k * size,
                      .dtype = s->weight->dtype,
                      .size = size,
                      .rows = s->rows,
                      .columns = s->k,
                      .row_stride = s->k,
                      .column_stride = 1};
    for (int64_t first = 0; first < s->k; first += SPAN) {
        const int64_t end = first + SPAN < s->k ? first + SPAN : s->k;
        pack_tiles(&a, row, rows, first, end,
                   packed + group * all * s->k + first * all + row * (end - first));
    }
}

/* Runs of positions [column, column + n) that lie side by side in an image of these strides, each
 * within `unit` columns; how many. step: how far apart planes and rows of positions are. */
static int64_t find_pieces(const convolving *s, int64_t sample, int64_t column, int64_t n,
                           const int64_t stride[WK_WINDOW_RANK], const int64_t step[2],
                           int64_t unit, piece *pieces) {
    const int64_t *const extent = s->y->extent;
    int64_t n_pieces = 0;
    for (int64_t i = 0, run; i < n; i += run) {
        int64_t rest = column + i;
        const int64_t ow = rest % extent[4];
        rest /= extent[4];
        const int64_t oh = rest % extent[3];
        rest /= extent[3];
        const int64_t od = rest % extent[2], at = sample + rest / extent[2];
        const int64_t from =
            at * stride[0] + od * step[0] * stride[2] + oh * step[1] * stride[3] + ow * stride[4];
        run = extent[4] - ow < n - i ? extent[4] - ow : n - i;
        if (run > unit - i % unit) run = unit - i % unit;
        const piece *const last = i % unit != 0 ? &pieces[n_pieces - 1] : NULL;
        if (last != NULL && stride[4] == 1 && last->from + last->n == from) {
            pieces[n_pieces - 1].n += run;
        } else {
            pieces[n_pieces++] = (piece){.from = from, .to = i, .n = run};
        }
    }
    return n_pieces;
}

/* An element of a group's kernel: channel, plane, row, column. */
typedef struct element {
    int64_t c, kd, kh, kw;
} element;

static element element_of(const convolving *s, int64_t k) {
    const int64_t *const kernel = s->w->kernel;
    return (element){.c = k / kernel[2] / kernel[1] / kernel[0],
                     .kd = k / kernel[2] / kernel[1] % kernel[0],
                     .kh = k / kernel[2] % kernel[1],
                     .kw = k % kernel[2]};
}

static void next_element(const convolving *s, element *e) {
    if (++e->kw < s->w->kernel[2]) return;
    e->kw = 0;
    if (++e->kh < s->w->kernel[1]) return;
    e->kh = 0;
    if (++e->kd < s->w->kernel[0]) return;
    e->kd = 0;
    e->c++;
}

/* Where it lies in the image, from that of the window's first element on. */
static int64_t offset_of(const convolving *s, const element *e, int64_t part) {
    const int64_t *const dilation = s->w->dilation;
    return e->c * s->stride[1] + e->kd * dilation[0] * s->stride[2] +
           e->kh * dilation[1] * s->stride[3] + window_tap(s->w, part, e->kw);
}

/* Elements [first, end) of the windows to strips. A piece is stored in steps of 16, which reach
 * into what comes after it and is stored later, but for the last row. */
static void pack_windows(const convolving *s, const float *image, const piece *pieces,
                         int64_t n_pieces, int64_t first, int64_t end, float *to) {
    const int64_t depth = end - first, part = window_part(s->w, s->x);
    element e = element_of(s, first);
    for (int64_t k = first; k < end; k++, next_element(s, &e)) {
        const float *const from = image + offset_of(s, &e, part);
        float *const row = to + (k - first) * STRIP;
        const bool is_exact = k + 1 == end;
        for (int64_t i = 0; i < n_pieces; i++) {
            const piece *const p = &pieces[i];
            float *const at = row + p->to / STRIP * STRIP * depth + p->to % STRIP;
            for (int64_t j = 0; j < p->n; j += 16) {
                const v16 values = v16_load_rows(from + p->from + j, p->n - j);
                if (is_exact) {
                    v16_store_rows(at + j, values, p->n - j);
                } else {
                    v16_store(at + j, values);
                }
            }
        }
    }
}

/* What is held of filters [row, row + n_rows) to y, with the bias. */
static void store_filters(const convolving *s, int64_t row, const block *b, const piece *pieces,
                          int64_t n_pieces) {
    const int64_t size = wk_dtype_get(s->y->dtype)->block_bytes, width = whole_strips(b->n_columns);
    const bool is_plain = s->y->dtype == WICK_F32 && s->y->stride[4] == 1;
    for (int64_t i = 0; i < b->n_rows; i++) {
        const float bias = window_bias(s->bias, row + i);
        unsigned char *const y =
            (unsigned char *)wk_view_data(s->y) + (row + i) * s->y->stride[1] * size;
        for (int64_t j = 0; j < n_pieces; j++) {
            float *const from = b->held + i * width + pieces[j].to;
            for (int64_t l = 0; l < pieces[j].n; l += 16) {
                const v16 sum = v16_add(load_at(from, l, pieces[j].n), v16_set(bias));
                float *const to = is_plain ? (float *)y + pieces[j].from : from;
                store_at(to, l, pieces[j].n, sum);
            }
            if (!is_plain)
                store_run(y + pieces[j].from * size, s->y->stride[4], s->y->dtype, from,
                          pieces[j].n);
        }
    }
}

static void convolve_item(const convolving *s, int64_t item, const float *image, float *weights,
                          void *room) {
    const int64_t down = item % s->n_down, across = item / s->n_down % s->n_across;
    const int64_t index = item / s->n_down / s->n_across;
    const int64_t group = index % s->groups, sample = index / s->groups * s->samples;
    const int64_t all = s->n_down * s->row_step;
    block b = {.row = down * s->row_step, .column = across * s->column_step};
    b.n_rows = s->rows - b.row < s->row_step ? s->rows - b.row : s->row_step;
    b.n_columns = s->columns - b.column < s->column_step ? s->columns - b.column : s->column_step;
    piece *const windows = room, *const places = windows + s->column_step;
    b.b = (float *)(places + s->column_step);
    b.held = b.b + s->column_step * convolution_depth(s) + 16;

    const int64_t in_image[WK_WINDOW_RANK] = {s->stride[0], s->stride[1], s->stride[2],
                                              s->stride[3], 1};
    const int64_t step[2] = {s->w->stride[0], s->w->stride[1]}, one[2] = {1, 1};
    const int64_t n_windows =
        find_pieces(s, sample, b.column, b.n_columns, in_image, step, STRIP, windows);
    const int64_t n_places =
        find_pieces(s, sample, b.column, b.n_columns, s->y->stride, one, b.n_columns, places);
    const product none = {.bias = NULL};
    const float *const from = image + group * s->weight->extent[1] * s->stride[1];
    for (int64_t first = 0; first < s->k; first += SPAN) {
        const int64_t end = first + SPAN < s->k ? first + SPAN : s->k;
        pack_windows(s, from, windows, n_windows, first, end, b.b);
        b.a = weights + group * all * s->k + first * all + b.row * (end - first);
        multiply_packed(&none, &b, end - first, first == 0, end == s->k);
    }
    store_filters(s, group * s->rows + b.row, &b, places, n_places);
}

static void run_convolution(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    const convolving s = convolving_of(run->op);
    float *const copy = run->scratch, *const weights = copy + image_floats(&s);
    const float *const image = s.is_direct ? wk_view_data(s.x) : copy;
    for (int64_t item = begin; item < end; item++) {
        switch (phase) {
        case LAY: lay_line(&s, item, run->worker_scratch, copy); break;
        case PACK_WEIGHTS: pack_weights(&s, item, weights); break;
        default: convolve_item(&s, item, image, weights, run->worker_scratch);
        }
    }
}

#define CONVOLUTION_KERNEL(isa)                                                                    \
    const wk_cpu_kernel wk_convolution_##isa = {                                                   \
        .base.name = "convolution_" #isa,                                                          \
        .base.code = WK_OP_CONVOLUTION,                                                            \
        .base.needs = SIMD_NEEDS,                                                                  \
        .base.accepts = accepts_convolution,                                                       \
        .n_phases = 3,                                                                             \
        .items = convolution_items,                                                                \
        .grain = convolution_grain,                                                                \
        .scratch_bytes = convolution_scratch_bytes,                                                \
        .worker_bytes = convolution_worker_bytes,                                                  \
        .run = run_convolution,                                                                    \
    };

#endif
