/* simd/convolution.h: convolutions as products of the weights [m, k] with windows [k, positions],
 * which never stand in memory as a whole: a strip of them is packed from the image, a few positions
 * of a row at a time, and multiplied by the tiles of all filters while it is in the first cache.
 * Every element of y is one sum in one order: k is cut in spans of DEPTH, a span is summed by fused
 * multiply-adds in the order of k, spans are added in order, then the bias.
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
    DEPTH = 256,                  /* elements of k at once: a strip of them fits the first cache */
    AHEAD = 24,                   /* rows of a tile that are on their way */
    FILTER_ROWS = 48 * TILE_ROWS, /* of an item: more would pack the windows once more, and ... */
    POSITIONS = 8 * STRIP,        /* ... what an item has of both should stay in a core's cache */
    PACK_ROWS = 8 * TILE_ROWS,    /* of weights, packed at once */
    FEW_OF_SAMPLE = 512,          /* positions: samples with fewer are strung together */
};
enum { LAY, PACK_WEIGHTS, CONVOLVE }; /* phases */

typedef struct convolving {
    const wk_window_shape *w;
    const wk_view *x, *y, *weight, *bias;
    int64_t groups, rows, k;  /* of a group: filters, and elements of the kernel of each */
    int64_t samples;          /* whose positions are strung together */
    int64_t columns;          /* positions of these */
    int64_t n_down, n_across; /* items */
    int64_t all_rows, most_rows, most_columns; /* of all items and of one: whole tiles, strips */
    bool is_direct;                            /* the image is x */
    window_lines l;
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
    s->l = window_lines_of(s->w, s->x);
    if (s->is_direct) {
        for (int d = 0; d < WK_WINDOW_RANK - 1; d++) s->stride[d] = s->x->stride[d];
        return;
    }
    for (int d = 0; d < 2; d++)
        s->extent[d] = s->w->before[d] + s->x->extent[2 + d] + s->w->after[d];
    s->stride[3] = s->l.line;
    s->stride[2] = s->extent[1] * s->stride[3];
    s->stride[1] = s->extent[0] * s->stride[2];
    s->stride[0] = s->x->extent[1] * s->stride[1];
    s->lines = s->x->extent[0] * s->x->extent[1] * s->extent[0] * s->extent[1];
}

/* Columns are cut, so that many threads get some: windows of each are packed once. */
static void set_items(convolving *s, int64_t n_products) {
    s->n_down = parts_of(s->rows, FILTER_ROWS);
    s->n_across = parts_of(s->columns, POSITIONS);
    const int64_t others = n_products * s->n_down, strips = parts_of(s->columns, STRIP);
    const double work = (double)s->rows * (double)s->columns * (double)s->k / (double)LEAST_WORK;
    const int64_t room = work < (double)strips ? (int64_t)work : strips;
    if (s->n_across > 1 || others < EVEN_ITEMS)
        s->n_across = even_parts(s->n_across, others, strips / 2 < room ? strips / 2 : room);
    s->all_rows = most_of(s->rows, TILE_ROWS, 1);
    s->most_rows = most_of(s->rows, TILE_ROWS, s->n_down);
    s->most_columns = most_of(s->columns, STRIP, s->n_across);
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
/* Of all groups, and the bias after them. */
static int64_t weight_floats(const convolving *s) {
    return s->groups * (s->all_rows * s->k + s->rows);
}

static uint64_t convolution_scratch_bytes(const wk_op *op) {
    const convolving s = convolving_of(op);
    return (uint64_t)(image_floats(&s) + weight_floats(&s)) * sizeof(float);
}

/* A run of positions side by side in the image, or in y. */
typedef struct piece {
    int64_t from, to; /* to: counted from the first column of an item */
    int64_t n;
} piece;

static uint64_t convolution_worker_bytes(const wk_op *op) {
    const convolving s = convolving_of(op);
    const int64_t n = DEPTH * STRIP + WINDOW_SLACK + s.most_rows * s.most_columns + s.l.padded;
    return (uint64_t)n * sizeof(float) + 2 * (uint64_t)s.most_columns * sizeof(piece) +
           DEPTH * sizeof(int64_t);
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

/* A block of filters (of all) and positions of a group. */
typedef struct part {
    int64_t group, sample;
    int64_t row, n_rows, column, n_columns;
    piece *windows, *places;
    int64_t n_windows, n_places;
    int64_t *offsets;
    float *strip, *held;
} part;

/* --- Phases --- */

static void lay_line(const convolving *s, int64_t index, float *room, float *image) {
    const int64_t h = index % s->extent[1] - s->w->before[1];
    const int64_t d = index / s->extent[1] % s->extent[0] - s->w->before[0];
    const int64_t plane = index / s->extent[1] / s->extent[0];
    const bool is_padding = d < 0 || h < 0 || d >= s->x->extent[2] || h >= s->x->extent[3];
    const void *const row =
        is_padding ? NULL
                   : window_row(s->x, plane / s->x->extent[1], plane % s->x->extent[1], d, h);
    window_lay(&s->l, s->x, row, room, image + index * s->stride[3]);
}

/* Of each span of k all tiles, one group after the other, then the bias. */
static void pack_weights(const convolving *s, int64_t item, float *packed) {
    const int64_t parts = parts_of(s->rows, PACK_ROWS), group = item / parts;
    const int64_t row = item % parts * PACK_ROWS, all = s->all_rows;
    const int64_t rows = s->rows - row < PACK_ROWS ? s->rows - row : PACK_ROWS;
    const int64_t size = wk_dtype_get(s->weight->dtype)->block_bytes;
    for (int64_t i = group * s->rows + row;
         s->bias->buf != NULL && i < group * s->rows + row + rows; i++)
        packed[s->groups * all * s->k + i] = window_bias(s->bias, i);
    const matrix a = {.data =
                          (unsigned char *)wk_view_data(s->weight) + group * s->rows * s->k * size,
                      .dtype = s->weight->dtype,
                      .size = size,
                      .rows = s->rows,
                      .columns = s->k,
                      .row_stride = s->k,
                      .column_stride = 1};
    for (int64_t first = 0; first < s->k; first += DEPTH) {
        const int64_t end = first + DEPTH < s->k ? first + DEPTH : s->k;
        pack_tiles(&a, row, rows, first, end,
                   packed + group * all * s->k + first * all + row * (end - first));
    }
}

/* Runs of an item's positions that lie side by side in an image of these strides, each
 * within `unit` columns; how many. step: how far apart planes and rows of positions are. */
static int64_t find_pieces(const convolving *s, const part *t, const int64_t *stride,
                           const int64_t step[2], int64_t unit, piece *pieces) {
    const int64_t *const extent = s->y->extent;
    int64_t n_pieces = 0;
    for (int64_t i = 0, run; i < t->n_columns; i += run) {
        int64_t rest = t->column + i;
        const int64_t ow = rest % extent[4];
        rest /= extent[4];
        const int64_t oh = rest % extent[3];
        rest /= extent[3];
        const int64_t od = rest % extent[2], at = t->sample + rest / extent[2];
        const int64_t from =
            at * stride[0] + od * step[0] * stride[2] + oh * step[1] * stride[3] + ow * stride[4];
        run = extent[4] - ow < t->n_columns - i ? extent[4] - ow : t->n_columns - i;
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
typedef struct tap {
    int64_t c, kd, kh, kw;
} tap;

static tap tap_of(const convolving *s, int64_t k) {
    const int64_t *const kernel = s->w->kernel;
    return (tap){.c = k / kernel[2] / kernel[1] / kernel[0],
                 .kd = k / kernel[2] / kernel[1] % kernel[0],
                 .kh = k / kernel[2] % kernel[1],
                 .kw = k % kernel[2]};
}

static void next_tap(const convolving *s, tap *e) {
    if (++e->kw < s->w->kernel[2]) return;
    e->kw = 0;
    if (++e->kh < s->w->kernel[1]) return;
    e->kh = 0;
    if (++e->kd < s->w->kernel[0]) return;
    e->kd = 0;
    e->c++;
}

/* Where it lies in the image, from that of the window's first element on. */
static int64_t offset_of(const convolving *s, const tap *e) {
    const int64_t *const dilation = s->w->dilation;
    return e->c * s->stride[1] + e->kd * dilation[0] * s->stride[2] +
           e->kh * dilation[1] * s->stride[3] + window_tap(s->w, &s->l, e->kw);
}

static void set_offsets(const convolving *s, int64_t first, int64_t n, int64_t *offsets) {
    tap e = tap_of(s, first);
    for (int64_t l = 0; l < n; l++, next_tap(s, &e)) offsets[l] = offset_of(s, &e);
}

/* Cuts pieces to 16 elements and less, in place; how many. */
static int64_t cut_pieces(piece *pieces, int64_t n) {
    int64_t n_cut = 0;
    for (int64_t i = 0; i < n; i++) n_cut += (pieces[i].n + 15) / 16;
    for (int64_t i = n - 1, at = n_cut; i >= 0; i--) { /* from the end, which is free */
        const piece whole = pieces[i];
        at -= (whole.n + 15) / 16;
        for (int64_t j = 0; 16 * j < whole.n; j++)
            pieces[at + j] = (piece){.from = whole.from + 16 * j,
                                     .to = whole.to + 16 * j,
                                     .n = whole.n - 16 * j < 16 ? whole.n - 16 * j : 16};
    }
    return n_cut;
}

/* The strip that begins at column j: n_pieces, and rows for the elements of k that lie at offsets
 * [depth] in the image. Pieces are loaded and stored as 16 elements: what they have too much is
 * stored again by those that follow, except in the last row, and what is loaded ends at `most`
 * elements of the image. */
static void pack_strip(const float *image, int64_t most, const piece *pieces, int64_t n_pieces,
                       int64_t j, const int64_t *offsets, int64_t depth, float *to) {
    int64_t farthest = 0;
    for (int64_t i = 0; i < n_pieces; i++)
        farthest = pieces[i].from > farthest ? pieces[i].from : farthest;
    for (int64_t l = 0; l < depth; l++, to += STRIP) {
        const float *const from = image + offsets[l];
        if (l + 1 < depth && farthest + offsets[l] + 16 <= most) {
            for (int64_t i = 0; i < n_pieces; i++) {
                wk_prefetch(from + pieces[i].from + STRIP); /* of the next strip */
                v16_store(to + pieces[i].to - j, v16_load(from + pieces[i].from));
            }
        } else {
            for (int64_t i = 0; i < n_pieces; i++)
                v16_store_rows(to + pieces[i].to - j,
                               v16_load_rows(from + pieces[i].from, pieces[i].n), pieces[i].n);
        }
    }
}

/* --- Products --- */

/* Sums of filters and positions, dense rows. */
typedef struct sums {
    float *at;
    int64_t stride;
    bool is_first;     /* nothing is there yet */
    const float *bias; /* of the rows, added at the end; NULL: none */
    const float *next; /* the sums that follow, which come nearer meanwhile */
} sums;

/* a [n][rows] times b [n][STRIP], of which the first `left` columns count. */
WK_INLINE void convolve_tile(const sums *c, int64_t left, const float *a, const float *b, int64_t n,
                             const int rows, const int panels) {
    v16 sum[TILE_ROWS][TILE_PANELS];
    for (int i = 0; i < rows; i++)
        for (int p = 0; p < panels; p++) sum[i][p] = v16_zero();
    const float *next = c->next;
    for (int64_t to_come = rows; to_come > 0; to_come--, next += c->stride) {
        const int64_t some = n / to_come;
        for (int p = 0; p < panels; p++) wk_prefetch(next + 16 * p);
        for (int64_t l = 0; l < some; l++, a += rows, b += STRIP) {
            v16 line[TILE_PANELS];
            wk_prefetch(a + AHEAD * rows);
            for (int p = 0; p < panels; p++) line[p] = v16_load(b + 16 * p);
            for (int i = 0; i < rows; i++) {
                const v16 element = v16_set(a[i]);
                for (int p = 0; p < panels; p++) sum[i][p] = v16_fma(line[p], element, sum[i][p]);
            }
        }
        n -= some;
    }
    for (int i = 0; i < rows; i++) {
        const v16 bias = c->bias != NULL ? v16_set(c->bias[i]) : v16_zero();
        for (int p = 0; p < panels; p++) {
            float *const at = c->at + i * c->stride + 16 * p;
            v16 value = sum[i][p];
            if (!c->is_first) value = v16_add(v16_load_rows(at, left - 16 * p), value);
            v16_store_rows(at, v16_add(value, bias), left - 16 * p);
        }
    }
}

#define CONVOLVE_ROWS(name, rows)                                                                  \
    static void name(const sums *c, int64_t left, const float *a, const float *b, int64_t n) {     \
        if (left <= STRIP - 16) {                                                                  \
            convolve_tile(c, left, a, b, n, rows, TILE_PANELS > 1 ? TILE_PANELS - 1 : 1);          \
        } else {                                                                                   \
            convolve_tile(c, left, a, b, n, rows, TILE_PANELS);                                    \
        }                                                                                          \
    }
CONVOLVE_ROWS(convolve_rows, TILE_ROWS)
CONVOLVE_ROWS(convolve_few, TILE_ROWS_SMALL)
CONVOLVE_ROWS(convolve_one, 1)
#undef CONVOLVE_ROWS

/* All rows by one strip. a: their tiles. next: the sums of the next strip. */
static void convolve_strip(sums c, int64_t n_rows, int64_t left, const float *a, const float *strip,
                           int64_t n, const float *next) {
    for (int64_t i = 0, rows; i < n_rows; i += rows, c.at += rows * c.stride, a += rows * n) {
        rows = tile_rows(n_rows - i);
        c.next = i + rows < n_rows ? c.at + rows * c.stride : next;
        if (rows == TILE_ROWS) {
            convolve_rows(&c, left, a, strip, n);
        } else if (rows == TILE_ROWS_SMALL) {
            convolve_few(&c, left, a, strip, n);
        } else {
            convolve_one(&c, left, a, strip, n);
        }
        if (c.bias != NULL) c.bias += rows;
    }
}

/* What is held goes to y. */
static void store_item(const convolving *s, const part *t) {
    const int64_t size = wk_dtype_get(s->y->dtype)->block_bytes;
    const bool is_plain = s->y->dtype == WICK_F32 && s->y->stride[4] == 1;
    for (int64_t i = 0; i < t->n_rows; i++) {
        const int64_t filter = t->group * s->rows + t->row + i;
        unsigned char *const y =
            (unsigned char *)wk_view_data(s->y) + filter * s->y->stride[1] * size;
        for (int64_t j = 0; j < t->n_places; j++) {
            const piece *const place = &t->places[j];
            float *const from = t->held + i * s->most_columns + place->to;
            if (is_plain) {
                float *const to = (float *)(void *)y + place->from;
                for (int64_t l = 0; l < place->n; l += 16)
                    store_at(to, l, place->n, load_at(from, l, place->n));
            } else {
                store_run(y + place->from * size, s->y->stride[4], s->y->dtype, from, place->n);
            }
        }
    }
}

/* Where sums are written as they come: floats at positions side by side; else they are held. */
static sums sums_of(const convolving *s, const part *t) {
    const bool is_direct = t->n_places == 1 && s->y->dtype == WICK_F32 && s->y->stride[4] == 1;
    if (!is_direct) return (sums){.at = t->held, .stride = s->most_columns};
    const int64_t filter = t->group * s->rows + t->row;
    float *const y = wk_view_data(s->y);
    return (sums){.at = y + filter * s->y->stride[1] + t->places[0].from,
                  .stride = s->y->stride[1]};
}

/* Elements of the image, from that of the group's first channel on. */
static int64_t image_left(const convolving *s, int64_t group) {
    const int64_t first = group * s->weight->extent[1] * s->stride[1];
    if (!s->is_direct) return image_floats(s) - first;
    int64_t last = 0;
    for (int d = 0; d < WK_WINDOW_RANK; d++) last += (s->x->extent[d] - 1) * s->x->stride[d];
    return last + 1 - first;
}

static part part_of(const convolving *s, int64_t number, void *room) {
    const int64_t down = number % s->n_down, across = number / s->n_down % s->n_across;
    const int64_t index = number / s->n_down / s->n_across;
    part t = {.group = index % s->groups,
              .sample = index / s->groups * s->samples,
              .row = begin_of(s->rows, TILE_ROWS, s->n_down, down),
              .column = begin_of(s->columns, STRIP, s->n_across, across),
              .windows = room};
    t.n_rows = begin_of(s->rows, TILE_ROWS, s->n_down, down + 1) - t.row;
    t.n_columns = begin_of(s->columns, STRIP, s->n_across, across + 1) - t.column;
    t.places = t.windows + s->most_columns;
    t.offsets = (int64_t *)(void *)(t.places + s->most_columns);
    t.strip = (float *)(void *)(t.offsets + DEPTH);
    t.held = t.strip + DEPTH * STRIP + WINDOW_SLACK;

    const int64_t image[WK_WINDOW_RANK] = {s->stride[0], s->stride[1], s->stride[2], s->stride[3],
                                           1};
    const int64_t step[2] = {s->w->stride[0], s->w->stride[1]}, one[2] = {1, 1};
    t.n_places = find_pieces(s, &t, s->y->stride, one, t.n_columns, t.places);
    t.n_windows = cut_pieces(t.windows, find_pieces(s, &t, image, step, STRIP, t.windows));
    return t;
}

static void convolve_item(const convolving *s, const part *t, const float *image,
                          const float *weights) {
    const int64_t all = s->all_rows, left = image_left(s, t->group);
    const float *const from = image + t->group * s->weight->extent[1] * s->stride[1];
    const sums c = sums_of(s, t);
    const float *const bias = s->bias->buf != NULL
                                  ? weights + s->groups * s->k * all + t->group * s->rows + t->row
                                  : NULL;
    for (int64_t first = 0; first < s->k; first += DEPTH) {
        const int64_t n = s->k - first < DEPTH ? s->k - first : DEPTH;
        const float *const a = weights + (t->group * s->k + first) * all + t->row * n;
        set_offsets(s, first, n, t->offsets);
        for (int64_t j = 0, i = 0; j < t->n_columns; j += STRIP) {
            const int64_t begin = i;
            while (i < t->n_windows && t->windows[i].to < j + STRIP) i++;
            pack_strip(from, left, t->windows + begin, i - begin, j, t->offsets, n, t->strip);
            const sums here = {.at = c.at + j,
                               .stride = c.stride,
                               .is_first = first == 0,
                               .bias = first + n == s->k ? bias : NULL};
            const float *const next = c.at + (j + STRIP < t->n_columns ? j + STRIP : 0);
            convolve_strip(here, t->n_rows, t->n_columns - j, a, t->strip, n, next);
        }
    }
    if (c.at == t->held) store_item(s, t);
}

static void run_convolution(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    const convolving s = convolving_of(run->op);
    float *const copy = run->scratch, *const weights = copy + image_floats(&s);
    const float *const image = s.is_direct ? wk_view_data(s.x) : copy;
    for (int64_t item = begin; item < end; item++) {
        switch (phase) {
        case LAY: lay_line(&s, item, run->worker_scratch, copy); break;
        case PACK_WEIGHTS: pack_weights(&s, item, weights); break;
        default: {
            const part t = part_of(&s, item, run->worker_scratch);
            convolve_item(&s, &t, image, weights);
        }
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
