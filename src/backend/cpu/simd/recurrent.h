/* simd/recurrent.h: ops that carry a state from token to token. 64 channels at a time go through
 * all rows of the batch, so that their state stays in the first cache. */
#ifndef WK_SIMD_RECURRENT_H
#define WK_SIMD_RECURRENT_H

#include "backend/cpu/simd/vector_rows.h"

#include <assert.h>

enum { PARTS = 4, COLUMNS = PARTS * 16 }; /* channels of an item, in registers */

/* Where the state of row r is; no slot (PADDING, BAD): what else the row is. */
enum { PADDING = -1, BAD = -2 };

static int64_t find_slot(const wk_batch_layout *b, const uint32_t *words, const wk_view *state,
                         int64_t r) {
    const uint32_t sequence = words[b->sequences + r];
    if (sequence == WK_NO_ROW) return PADDING;
    if (sequence >= b->n_sequences) return BAD;
    const uint32_t slot = words[b->states + sequence];
    return slot < state->extent[0] ? (int64_t)slot : BAD;
}

static float *float_at(const wk_view *view, int64_t first, int64_t second, int64_t third) {
    return (float *)wk_view_data(view) + first * view->stride[0] + second * view->stride[1] +
           third * view->stride[2];
}

static void store_zeros(float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) store_at(y, i, n, v16_zero());
}

/* --- causal_conv: y [rows, c], state [slots, k - 1, c], x [rows, c], weight [c, k], bias [c] ---
 */

enum { Y, STATE, X, WEIGHT, BIAS, CONV_BATCH };

static bool accepts_causal_conv(const wk_op *op) {
    return has_float_rows(&op->view[Y]) && has_float_rows(&op->view[STATE]) &&
           has_float_rows(&op->view[X]);
}

static int64_t causal_conv_items(const wk_op *op, int phase) {
    (void)phase;
    return (op->view[Y].extent[1] + COLUMNS - 1) / COLUMNS;
}

/* The item's weights, a tap after the other, and its bias. */
static uint64_t causal_conv_bytes(const wk_op *op) {
    return (uint64_t)(op->view[WEIGHT].extent[1] + 1) * COLUMNS * sizeof(float);
}

static void load_taps(const wk_op *op, int64_t first, int64_t n, float *taps) {
    const wk_view *const weight = &op->view[WEIGHT], *const bias = &op->view[BIAS];
    const int64_t k = weight->extent[1];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < k; j++) taps[j * COLUMNS + i] = *float_at(weight, first + i, j, 0);
        taps[k * COLUMNS + i] = bias->buf ? *float_at(bias, first + i, 0, 0) : 0;
    }
}

/* Of n channels; the inputs move up by one row. */
static void convolve_row(float *y, const float *x, const float *taps, float *state, int64_t stride,
                         int64_t n_before, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        v16 sum = v16_load(taps + (n_before + 1) * COLUMNS + i);
        for (int64_t j = 0; j < n_before; j++) {
            const v16 before = load_at(state + j * stride, i, n);
            sum = v16_fma(before, v16_load(taps + j * COLUMNS + i), sum);
            if (j > 0) store_at(state + (j - 1) * stride, i, n, before);
        }
        const v16 now = load_at(x, i, n);
        store_at(state + (n_before - 1) * stride, i, n, now);
        store_at(y, i, n, v16_fma(now, v16_load(taps + n_before * COLUMNS + i), sum));
    }
}

static void convolve_columns(const wk_cpu_run *run, int64_t first, int64_t n) {
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.conv.batch;
    const wk_view *const state = &op->view[STATE];
    const uint32_t *const words = wk_view_data(&op->view[CONV_BATCH]);
    const int64_t n_before = state->extent[1], stride = state->stride[1];
    for (int64_t r = 0; r < b->n_rows; r++) {
        const int64_t slot = find_slot(b, words, state, r);
        float *const y = float_at(&op->view[Y], r, 0, 0) + first;
        if (slot == BAD) wk_cpu_fault(run);
        if (slot == PADDING) store_zeros(y, n);
        if (slot < 0) continue;
        float *const before = float_at(state, slot, 0, 0) + first;
        for (int64_t j = 0; words[b->positions + r] == 0 && j < n_before; j++)
            store_zeros(before + j * stride, n);
        convolve_row(y, float_at(&op->view[X], r, 0, 0) + first, run->worker_scratch, before,
                     stride, n_before, n);
    }
}

static void run_causal_conv(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const int64_t n_channels = run->op->view[Y].extent[1];
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item * COLUMNS;
        const int64_t n = n_channels - first < COLUMNS ? n_channels - first : COLUMNS;
        load_taps(run->op, first, n, run->worker_scratch);
        convolve_columns(run, first, n);
    }
}

/* --- scan: y [rows, h, p], state [slots, h, n, p], x and step [rows, h, p], gate, bc [rows, 2, g,
 * n] --- */

enum { STEP = X + 1, GATE, BC, SCAN_BATCH };

/* Channels [first, first + count) of a head, at one row. */
typedef struct scan_columns {
    const wk_op *op;
    int64_t head, first, count, n;
    const float *rates; /* of the gate, [n][COLUMNS]; NULL: all are rate */
    float rate;
    const float *b, *c;
    int64_t bc_stride, stride; /* of b and c; of the state */
    float *state;
    v16 decay[PARTS], input[PARTS]; /* decay: the step, where there are rates */
} scan_columns;

/* Channels lie side by side, or are one and the same (step, and the gate of the delta rule). */
static bool accepts_scan(const wk_op *op) {
    const int64_t p = op->view[Y].extent[2];
    const bool is_delta = op->p.scan.fn == WK_SCAN_DELTA;
    return has_float_rows(&op->view[Y]) && has_float_rows(&op->view[X]) &&
           (op->view[STATE].stride[3] == 1 || p == 1) &&
           (op->view[STEP].stride[2] <= 1 || p == 1) &&
           (!is_delta || op->view[GATE].stride[2] <= 1 || p == 1);
}

static int64_t blocks_of_head(const wk_op *op) {
    return (op->view[Y].extent[2] + COLUMNS - 1) / COLUMNS;
}

static int64_t scan_items(const wk_op *op, int phase) {
    (void)phase;
    return op->view[Y].extent[1] * blocks_of_head(op);
}

static uint64_t scan_bytes(const wk_op *op) {
    return (uint64_t)op->view[BC].extent[3] * COLUMNS * sizeof(float);
}

/* Of one row, part j; a stride of 0 repeats a number. */
static v16 load_part(const wk_view *view, int64_t row, const scan_columns *s, int j) {
    const bool is_one = view->stride[2] == 0;
    const float *const at = float_at(view, row, s->head, is_one ? 0 : s->first);
    return is_one ? v16_set(*at) : load_at(at, 16 * j, s->count);
}

/* s . b of the decayed numbers. */
static void add_known(const scan_columns *s, v16 known[PARTS]) {
    for (int j = 0; j < PARTS; j++) known[j] = v16_zero();
    for (int64_t i = 0; i < s->n; i++) {
        const v16 b = v16_set(s->b[i * s->bc_stride]);
        for (int j = 0; j < PARTS; j++) {
            const v16 old = load_at(s->state + i * s->stride, 16 * j, s->count);
            known[j] = v16_fma(v16_mul(s->decay[j], old), b, known[j]);
        }
    }
}

static void prepare_row(scan_columns *s, int64_t row) {
    const wk_op *const op = s->op;
    for (int j = 0; j < PARTS; j++) {
        const v16 step = load_part(&op->view[STEP], row, s, j);
        s->decay[j] = s->rates ? step : v16_exp(v16_mul(v16_set(s->rate), step));
        s->input[j] = v16_mul(step, load_part(&op->view[X], row, s, j));
    }
    if (op->p.scan.fn == WK_SCAN_SELECTIVE) return;
    v16 known[PARTS];
    add_known(s, known);
    for (int j = 0; j < PARTS; j++) {
        const v16 missing = v16_sub(load_part(&op->view[X], row, s, j), known[j]);
        s->input[j] = v16_mul(load_part(&op->view[GATE], row, s, j), missing);
    }
}

WK_INLINE v16 advance_part(const scan_columns *s, int64_t i, int j, v16 b) {
    float *const at = s->state + i * s->stride;
    v16 decay = s->decay[j];
    if (s->rates) decay = v16_exp(v16_mul(decay, v16_load(s->rates + i * COLUMNS + 16 * j)));
    const v16 old = load_at(at, 16 * j, s->count);
    const v16 now = v16_fma(s->input[j], b, v16_mul(decay, old));
    store_at(at, 16 * j, s->count, now);
    return now;
}

static void advance_row(scan_columns *s, int64_t row) {
    v16 sum[PARTS];
    for (int j = 0; j < PARTS; j++) sum[j] = v16_zero();
    prepare_row(s, row);
    for (int64_t i = 0; i < s->n; i++) {
        const v16 b = v16_set(s->b[i * s->bc_stride]), c = v16_set(s->c[i * s->bc_stride]);
        for (int j = 0; j < PARTS; j++) sum[j] = v16_fma(advance_part(s, i, j, b), c, sum[j]);
    }
    const v16 scale = v16_set(s->op->p.scan.scale);
    float *const y = float_at(&s->op->view[Y], row, s->head, s->first);
    for (int j = 0; j < PARTS; j++) store_at(y, 16 * j, s->count, v16_mul(scale, sum[j]));
}

/* Of the selective scan: one rate for all channels and numbers of a head is not spread out. */
static void load_rates(scan_columns *s, float *room) {
    const wk_view *const gate = &s->op->view[GATE];
    s->rate = *float_at(gate, s->head, s->first, 0);
    if (gate->stride[1] == 0 && gate->stride[2] == 0) return;
    for (int64_t k = 0; k < COLUMNS; k++)
        for (int64_t i = 0; i < s->n; i++)
            room[i * COLUMNS + k] = k < s->count ? *float_at(gate, s->head, s->first + k, i) : 0;
    s->rates = room;
}

static void scan_block(const wk_cpu_run *run, scan_columns *s) {
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.scan.batch;
    const wk_view *const bc = &op->view[BC];
    const uint32_t *const words = wk_view_data(&op->view[SCAN_BATCH]);
    assert(bc->extent[2] > 0 && op->view[Y].extent[1] % bc->extent[2] == 0);
    const int64_t n_groups = bc->extent[2], n_heads = op->view[Y].extent[1];
    const bool is_delta = op->p.scan.fn == WK_SCAN_DELTA;
    const int64_t group = op->p.scan.is_tiled ? s->head % n_groups : s->head / (n_heads / n_groups);
    for (int64_t r = 0; r < b->n_rows; r++) {
        const int64_t slot = find_slot(b, words, &op->view[STATE], r);
        if (slot == BAD) wk_cpu_fault(run);
        if (slot == PADDING) store_zeros(float_at(&op->view[Y], r, s->head, s->first), s->count);
        if (slot < 0) continue;
        s->state = float_at(&op->view[STATE], slot, s->head, 0) + s->first;
        s->b = float_at(bc, r, is_delta ? 1 : 0, group);
        s->c = float_at(bc, r, is_delta ? 0 : 1, group);
        for (int64_t i = 0; words[b->positions + r] == 0 && i < s->n; i++)
            store_zeros(s->state + i * s->stride, s->count);
        advance_row(s, r);
    }
}

static void run_scan(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const int64_t p = op->view[Y].extent[2], n_blocks = blocks_of_head(op);
    for (int64_t item = begin; item < end; item++) {
        scan_columns s = {
            .op = op,
            .head = item / n_blocks,
            .first = item % n_blocks * COLUMNS,
            .n = op->view[BC].extent[3],
            .rate = 1,
            .bc_stride = op->view[BC].stride[3],
            .stride = op->view[STATE].stride[2],
        };
        s.count = p - s.first < COLUMNS ? p - s.first : COLUMNS;
        if (op->p.scan.fn == WK_SCAN_SELECTIVE && s.n > 0) load_rates(&s, run->worker_scratch);
        scan_block(run, &s);
    }
}

#endif
