/* backend/cpu/ref/recurrent.c: ops that carry a state from token to token: causal_conv and scan.
 *
 * One channel at a time, through all rows of the batch. Regardless of the chunks that a sequence is
 * split into, each token reads the state as float32. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

enum { PADDING = -1, BAD = -2 };

/* Slot of the state of row r, or what else the row is. */
static int64_t find_slot(const wk_batch_layout *b, const uint32_t *words, const wk_view *state,
                         int64_t r) {
    const uint32_t sequence = words[b->sequences + r];
    if (sequence == WK_NO_ROW) return PADDING;
    if (sequence >= b->n_sequences) return BAD;
    const int64_t slot = words[b->states + sequence];
    return slot < state->extent[0] ? slot : BAD;
}

static float *element(const wk_view *view, const int64_t at[4]) {
    float *to = wk_view_data(view);
    for (int d = 0; d < view->rank; d++) to += at[d] * view->stride[d];
    return to;
}

static double load(const wk_view *view, const int64_t at[4]) { return (double)*element(view, at); }

/* --- causal_conv: y [rows, c], state [slots, k - 1, c], x [rows, c], weight [c, k], bias [c] ---
 */

enum { Y, STATE, X, WEIGHT, BIAS, CONV_BATCH };

static int64_t conv_items(const wk_op *op, int phase) {
    (void)phase;
    return op->view[Y].extent[1];
}

/* Shifts x into the state, which drops its oldest input. */
static double convolve(const wk_op *op, int64_t slot, bool is_first, int64_t c, float x) {
    const wk_view *const state = &op->view[STATE], *const weight = &op->view[WEIGHT];
    const int64_t n_before = state->extent[1];
    double sum = op->view[BIAS].buf ? load(&op->view[BIAS], (const int64_t[4]){c}) : 0;
    for (int64_t j = 0; j < n_before; j++) {
        float *const before = element(state, (const int64_t[4]){slot, j, c});
        if (is_first) *before = 0;
        sum += load(weight, (const int64_t[4]){c, j}) * (double)*before;
    }
    for (int64_t j = 0; j < n_before; j++)
        *element(state, (const int64_t[4]){slot, j, c}) =
            j + 1 < n_before ? *element(state, (const int64_t[4]){slot, j + 1, c}) : x;
    return sum + load(weight, (const int64_t[4]){c, n_before}) * (double)x;
}

static void run_conv(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.conv.batch;
    const uint32_t *const words = wk_view_data(&op->view[CONV_BATCH]);
    for (int64_t c = begin; c < end; c++) {
        for (int64_t r = 0; r < b->n_rows; r++) {
            const int64_t at[4] = {r, c}, slot = find_slot(b, words, &op->view[STATE], r);
            if (slot == BAD) {
                wk_cpu_fault(run);
                continue;
            }
            double y = 0;
            if (slot != PADDING)
                y = convolve(op, slot, words[b->positions + r] == 0, c, *element(&op->view[X], at));
            *element(&op->view[Y], at) = (float)y;
        }
    }
}

const wk_cpu_kernel wk_causal_conv_ref = {
    .base.name = "causal_conv_ref",
    .base.code = WK_OP_CAUSAL_CONV,
    .base.is_reference = true,
    .n_phases = 1,
    .items = conv_items,
    .run = run_conv,
};

/* --- scan: y [rows, h, p], state [slots, h, n, p], x, step [rows, h, p], gate, bc [rows, 2, g, n],
 * gate [h, p, n] or [rows, h, p] --- */

enum { STEP = X + 1, GATE, BC, SCAN_BATCH };

/* One channel at one row; state points to the first of its n numbers. */
typedef struct scan_place {
    int64_t row, head, p, group;
    float *state;
    bool is_first;
} scan_place;

static int64_t group_of(const wk_op *op, int64_t head) {
    const int64_t n_groups = op->view[BC].extent[2], n_heads = op->view[Y].extent[1];
    return op->p.scan.is_tiled ? head % n_groups : head / (n_heads / n_groups);
}

static double load_bc(const wk_op *op, const scan_place *at, bool is_c, int64_t i) {
    const bool is_second = is_c != (op->p.scan.fn == WK_SCAN_DELTA);
    return load(&op->view[BC], (const int64_t[4]){at->row, is_second, at->group, i});
}

/* Number i as it is before anything is added. */
static double decayed(const wk_op *op, const scan_place *at, int64_t i) {
    double rate = load(&op->view[STEP], (const int64_t[4]){at->row, at->head, at->p});
    if (op->p.scan.fn == WK_SCAN_SELECTIVE)
        rate *= load(&op->view[GATE], (const int64_t[4]){at->head, at->p, i});
    return at->is_first ? 0 : exp(rate) * (double)at->state[i * op->view[STATE].stride[2]];
}

/* What is added to the numbers, times b. */
static double input_of(const wk_op *op, const scan_place *at) {
    const int64_t here[4] = {at->row, at->head, at->p};
    const double x = load(&op->view[X], here);
    if (op->p.scan.fn == WK_SCAN_SELECTIVE) return load(&op->view[STEP], here) * x;
    double known = 0;
    for (int64_t i = 0; i < op->view[BC].extent[3]; i++)
        known += decayed(op, at, i) * load_bc(op, at, false, i);
    return load(&op->view[GATE], here) * (x - known);
}

static double advance(const wk_op *op, const scan_place *at) {
    const double input = input_of(op, at);
    double y = 0;
    for (int64_t i = 0; i < op->view[BC].extent[3]; i++) {
        const double s = decayed(op, at, i) + input * load_bc(op, at, false, i);
        at->state[i * op->view[STATE].stride[2]] = (float)s;
        y += s * load_bc(op, at, true, i);
    }
    return (double)op->p.scan.scale * y;
}

static int64_t scan_items(const wk_op *op, int phase) {
    (void)phase;
    return op->view[Y].extent[1] * op->view[Y].extent[2];
}

static void run_scan(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.scan.batch;
    const wk_view *const y = &op->view[Y];
    const uint32_t *const words = wk_view_data(&op->view[SCAN_BATCH]);
    for (int64_t item = begin; item < end; item++) {
        const int64_t head = item / y->extent[2], p = item % y->extent[2];
        for (int64_t r = 0; r < b->n_rows; r++) {
            const int64_t slot = find_slot(b, words, &op->view[STATE], r);
            if (slot == BAD) {
                wk_cpu_fault(run);
                continue;
            }
            double value = 0;
            if (slot != PADDING)
                value = advance(op, &(const scan_place){
                                        .row = r,
                                        .head = head,
                                        .p = p,
                                        .group = group_of(op, head),
                                        .state = element(&op->view[STATE],
                                                         (const int64_t[4]){slot, head, 0, p}),
                                        .is_first = words[b->positions + r] == 0,
                                    });
            *element(y, (const int64_t[4]){r, head, p}) = (float)value;
        }
    }
}

const wk_cpu_kernel wk_scan_ref = {
    .base.name = "scan_ref",
    .base.code = WK_OP_SCAN,
    .base.is_reference = true,
    .n_phases = 1,
    .items = scan_items,
    .run = run_scan,
};
