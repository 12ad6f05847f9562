/* train/rules_recurrent.c: gradients of causal convolutions and scans over whole texts, which are
 * computed once more, of other operations. */
#include "train/rules.h"

#include "ops/compose.h"

#include <wick/grad.h>
#include <wick/ops.h>

/* Rows [b t, ..] as [b, t, ..]. */
static wick_tensor *by_text(wick_tensor *x, const wk_batch_layout *batch) {
    if (!x) return NULL;
    wick_shape shape = {.rank = x->view.rank + 1,
                        .extent = {batch->n_sequences, batch->n_rows / batch->n_sequences}};
    for (int d = 1; d < x->view.rank; d++) shape.extent[d + 1] = x->view.extent[d];
    return wick_reshape(x, shape);
}

/* y [b, t, ..] as rows, 0 in those of padding; descriptor: the last source. */
static wick_tensor *as_rows(const wk_back *b, const wk_batch_layout *batch, wick_tensor *y) {
    wick_tensor *const words = wk_back_source(b, wk_back_op(b)->n_src - 1);
    wick_tensor *const rows = wick_flatten(y, 0, 1);
    if (!words || !rows) return NULL;
    wick_device *const device = rows->device;
    wick_tensor *const padding = wick_full(device, WICK_U32, WICK_SCALAR, WK_NO_ROW);
    wick_tensor *const is_padding =
        wick_eq(wick_narrow(words, 0, batch->sequences, batch->n_rows), padding);
    return wick_where(wk_along(is_padding, rows->view.rank - 1),
                      wick_zeros(device, rows->view.dtype, WICK_SCALAR), rows);
}

/* The state before a batch that is not whole is unknown: it has no gradient. */
static void go_through(const wk_back *b, bool is_whole, wk_rebuild_fn *rebuild) {
    if (is_whole)
        wk_back_through(b, rebuild);
    else
        wk_grad_none(b);
}

/* --- causal_conv: the rows before each, times the weights of a tap --- */

enum { X, WEIGHT, BIAS };

static wick_tensor *rebuild_conv(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    const wk_batch_layout *const batch = &op->p.conv.batch;
    const int64_t n_taps = wk_src(op, WEIGHT)->extent[1], before = n_taps - 1, after = 0;
    const int64_t length = batch->n_rows / batch->n_sequences;
    wick_tensor *const weight = wk_back_source(b, WEIGHT);
    wick_tensor *const x = by_text(wk_back_source(b, X), batch);
    wick_tensor *const padded = wk_padded(x, 1, 1, &before, &after, 0);
    wick_tensor *y = NULL;
    for (int64_t j = 0; j < n_taps; j++) {
        wick_tensor *const tap = wick_squeeze(wick_narrow(weight, 1, j, 1), 1);
        wick_tensor *const share = wick_mul(wick_narrow(padded, 1, j, length), tap);
        y = j == 0 ? share : wick_add(y, share);
    }
    if (wk_src(op, BIAS)->buf) y = wick_add(y, wk_back_source(b, BIAS));
    return as_rows(b, batch, y);
}

void wk_grad_causal_conv(const wk_back *b) {
    go_through(b, wk_back_op(b)->p.conv.is_whole, rebuild_conv);
}

/* --- scan: token by token ---
 *
 * The states of all tokens would need too much memory. Of every few tokens, a segment, only the
 * state before them is kept; the others are computed again when the tape goes back there. */

enum { SEGMENT_TOKENS = 16, STEP = 1, GATE, BC, STATE, N_INPUTS };

/* Token i of x [b, c, h, p]: [b, h, 1, p]. */
static wick_tensor *token(wick_tensor *x, int64_t i) {
    return wick_transpose(wick_narrow(x, 1, i, 1), 1, 2);
}

/* bc [b, c, 2, g, n], which: 0 or 1: [b, c, h, n], of the group of each head. */
static wick_tensor *of_heads(const wk_op *op, wick_tensor *bc, int which) {
    if (!bc) return NULL;
    const int64_t *const e = bc->view.extent;
    const int64_t h = wk_dst(op, 0)->extent[1], g = e[3], n = e[4];
    const int groups = op->p.scan.is_tiled ? 3 : 2;
    wick_tensor *const part = wick_squeeze(wick_narrow(bc, 2, which, 1), 2);
    const int64_t heads[] = {e[0], e[1], h, n};
    const int64_t tiled[] = {e[0], e[1], h / g, g, n}, repeated[] = {e[0], e[1], g, h / g, n};
    wick_tensor *const wide = wick_expand(wick_unsqueeze(part, 5 - groups),
                                          wick_shape_of(5, groups == 3 ? tiled : repeated));
    return wick_reshape(wide, wick_shape_of(4, heads));
}

/* s [b, h, n, p] after a token; key: b [b, h, 1, n]; rates [h, n, p] of the selective scan. */
static wick_tensor *advance(const wk_op *op, wick_tensor *s, wick_tensor *const *x, int64_t i,
                            wick_tensor *key, wick_tensor *rates) {
    wick_tensor *const input = token(x[X], i), *const step = token(x[STEP], i);
    wick_tensor *const across = wick_transpose(key, 2, 3);
    if (op->p.scan.fn == WK_SCAN_SELECTIVE) {
        wick_tensor *const decay = wick_exp(wick_mul(step, rates));
        return wick_add(wick_mul(s, decay), wick_mul(across, wick_mul(step, input)));
    }
    wick_tensor *const kept = wick_mul(s, wick_exp(step));
    wick_tensor *const rest = wick_sub(input, wick_matmul(key, kept));
    return wick_add(kept, wick_mul(across, wick_mul(token(x[GATE], i), rest)));
}

/* Some tokens: the state after them and below it their results, [b, h, n + c, p]. */
static wick_tensor *run_tokens(void *user, wick_tensor *const *x) {
    const wk_op *const op = user;
    const bool is_selective = op->p.scan.fn == WK_SCAN_SELECTIVE;
    const int64_t n_tokens = x[X]->view.extent[1];
    wick_tensor *const rates = is_selective ? wick_transpose(x[GATE], 1, 2) : NULL;
    wick_tensor *const keys = of_heads(op, x[BC], is_selective ? 0 : 1);
    wick_tensor *const queries = of_heads(op, x[BC], is_selective ? 1 : 0);
    wick_tensor *s = x[STATE], *parts[1 + SEGMENT_TOKENS];
    for (int64_t i = 0; i < n_tokens; i++) {
        s = advance(op, s, x, i, token(keys, i), rates);
        parts[1 + i] = wick_affine(wick_matmul(token(queries, i), s), (double)op->p.scan.scale, 0);
    }
    parts[0] = s;
    return wick_cat(parts, (size_t)n_tokens + 1, 2);
}

static wick_tensor *rebuild_scan(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    const wk_batch_layout *const batch = &op->p.scan.batch;
    const int64_t length = batch->n_rows / batch->n_sequences;
    const int64_t h = wk_dst(op, 0)->extent[1], p = wk_dst(op, 0)->extent[2];
    const int64_t n = wk_src(op, BC)->extent[3];
    wick_tensor *all[STATE], *x[N_INPUTS];
    for (int i = 0; i < STATE; i++) {
        const bool has_rows = i != GATE || op->p.scan.fn == WK_SCAN_DELTA;
        all[i] = has_rows ? by_text(wk_back_source(b, i), batch) : wk_back_source(b, i);
        x[i] = all[i];
    }
    x[STATE] = wick_zeros(b->g->device, WICK_F32, WICK_SHAPE(batch->n_sequences, h, n, p));
    wick_tensor *const y =
        wick_empty(b->g->device, WICK_F32, WICK_SHAPE(batch->n_sequences, h, length, p));
    for (int64_t first = 0; first < length; first += SEGMENT_TOKENS) {
        const int64_t left = length - first, c = left < SEGMENT_TOKENS ? left : SEGMENT_TOKENS;
        for (int i = 0; i < STATE; i++)
            if (i != GATE || op->p.scan.fn == WK_SCAN_DELTA)
                x[i] = wick_narrow(all[i], 1, first, c);
        wick_tensor *const part =
            wick_recompute(b->tape, run_tokens, (void *)wk_back_op(b), x, N_INPUTS);
        x[STATE] = wick_narrow(part, 2, 0, n);
        if (!wick_copy(wick_narrow(y, 2, first, c), wick_narrow(part, 2, n, c))) return NULL;
    }
    return as_rows(b, batch, wick_transpose(y, 1, 2));
}

void wk_grad_scan(const wk_back *b) { go_through(b, wk_back_op(b)->p.scan.is_whole, rebuild_scan); }
