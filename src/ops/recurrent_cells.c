/* ops/recurrent_cells.c: recurrent networks, token after token: lstm, gru, rnn.
 *
 * The products with all tokens are one matrix product; those with the hidden state, [b, h] times
 * [h, g h], follow each other: for them w_hh is transposed once, where wick_linear would lay it out
 * for each token. */
#include <wick/nn.h>

#include "core/shape.h"
#include "ops/compose.h"

typedef struct state {
    wick_tensor *h, *c; /* [b, h]; c: of lstm only */
} state;

/* What a step multiplies and adds; NULL: absent. */
typedef struct step_weights {
    wick_tensor *columns;      /* w_hh transposed, [h, g h] */
    wick_tensor *last_columns; /* those of the last gate, where they are multiplied alone */
    wick_tensor *b_hh;         /* where it is not in the products with the tokens already */
    wick_tensor *peepholes;    /* of lstm, [3 h]: i f o */
} step_weights;

typedef struct cell {
    const char *name;
    int n_gates;
    bool keeps_b_hh; /* the step needs it in the product with h, not just in the sum of both */
    bool splits;     /* the last gate is multiplied alone */
    /* The next state; of_x: the gates' products with the token, [b, g h]. */
    state (*step)(const step_weights *w, wick_tensor *of_x, state last);
} cell;

/* --- Steps --- */

/* Part i of size h. */
static wick_tensor *part(wick_tensor *x, int dim, int i, int64_t h) {
    return wick_narrow(x, dim, i * h, h);
}

static int64_t width_of(const step_weights *w) { return w->columns->view.extent[0]; }

static wick_tensor *plus(wick_tensor *x, wick_tensor *bias) { return bias ? wick_add(x, bias) : x; }

/* Gate i with what its peephole (0 to 2) sees of c. */
static wick_tensor *with_peephole(const step_weights *w, wick_tensor *gate, int i, wick_tensor *c) {
    if (!w->peepholes) return gate;
    return wick_add(gate, wick_mul(part(w->peepholes, 0, i, width_of(w)), c));
}

static state lstm_step(const step_weights *w, wick_tensor *of_x, state last) {
    const int64_t h = width_of(w);
    wick_tensor *const gates = wick_add(of_x, wick_matmul(last.h, w->columns));
    wick_tensor *const in = wick_sigmoid(with_peephole(w, part(gates, 1, 0, h), 0, last.c));
    wick_tensor *const forget = wick_sigmoid(with_peephole(w, part(gates, 1, 1, h), 1, last.c));
    wick_tensor *const added = wick_mul(in, wick_tanh(part(gates, 1, 2, h)));
    wick_tensor *const c = wick_add(wick_mul(forget, last.c), added);
    wick_tensor *const out = wick_sigmoid(with_peephole(w, part(gates, 1, 3, h), 2, c));
    return (state){.h = wick_mul(out, wick_tanh(c)), .c = c};
}

static state gru_step(const step_weights *w, wick_tensor *of_x, state last) {
    const int64_t h = width_of(w);
    wick_tensor *const of_h = plus(wick_matmul(last.h, w->columns), w->b_hh);
    wick_tensor *const r = wick_sigmoid(wick_add(part(of_x, 1, 0, h), part(of_h, 1, 0, h)));
    wick_tensor *const z = wick_sigmoid(wick_add(part(of_x, 1, 1, h), part(of_h, 1, 1, h)));
    wick_tensor *const reset = w->last_columns ? wick_matmul(wick_mul(r, last.h), w->last_columns)
                                               : wick_mul(r, part(of_h, 1, 2, h));
    wick_tensor *const n = wick_tanh(wick_add(part(of_x, 1, 2, h), reset));
    return (state){.h = wick_add(n, wick_mul(z, wick_sub(last.h, n)))};
}

static state rnn_step(const step_weights *w, wick_tensor *of_x, state last) {
    return (state){.h = wick_tanh(wick_add(of_x, wick_matmul(last.h, w->columns)))};
}

/* --- Checks --- */

static bool has_shape(const cell *kind, const char *name, const wick_tensor *x, int64_t rows,
                      int64_t columns) {
    if (!x || (x->view.rank == 2 && x->view.extent[0] == rows && x->view.extent[1] == columns))
        return true;
    const wick_shape shape = wk_tensor_shape_of(x), wanted = WICK_SHAPE(rows, columns);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s is %s, not %s", kind->name, name,
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&wanted, text[1], sizeof text[1]));
    return false;
}

static bool check(const cell *kind, wick_tensor *x, const wick_rnn_weights *w, state first) {
    if (!x) return false;
    if (!w) {
        wk_device_fail(x->device, WICK_ERR_ARGUMENT, "%s: there are no weights", kind->name);
        return false;
    }
    wick_tensor *const operands[] = {x,       w->w_ih, w->w_hh, w->b_ih,
                                     w->b_hh, first.h, first.c, w->peepholes};
    if (!wk_operands_are_floats(kind->name, operands, 3, WK_COUNT(operands)) ||
        !wk_operand_rank(kind->name, "x", x, 3, 3) ||
        !wk_operand_rank(kind->name, "w_hh", w->w_hh, 2, 2))
        return false;
    const int64_t h = w->w_hh->view.extent[1], b = x->view.extent[0];
    return has_shape(kind, "w_hh", w->w_hh, kind->n_gates * h, h) &&
           has_shape(kind, "w_ih", w->w_ih, kind->n_gates * h, x->view.extent[2]) &&
           wk_operand_is_vector(kind->name, "b_ih", w->b_ih, kind->n_gates * h) &&
           wk_operand_is_vector(kind->name, "b_hh", w->b_hh, kind->n_gates * h) &&
           wk_operand_is_vector(kind->name, "peepholes", w->peepholes, 3 * h) &&
           has_shape(kind, "h0", first.h, b, h) && has_shape(kind, "c0", first.c, b, h);
}

/* --- Running --- */

/* x widened, or zeros where it is absent. */
static wick_tensor *or_zeros(wick_tensor *x, const wick_tensor *like, wick_shape shape) {
    return x ? wk_widened(x) : wick_zeros(like->device, wk_wide_dtype(like->view.dtype), shape);
}

/* Of two biases that may be absent. */
static wick_tensor *sum_of(wick_tensor *a, wick_tensor *b) {
    return a && b ? wick_add(a, b) : a ? a : b;
}

/* Token t: the new state, whose h goes to y [b, t, h]. */
static bool run_step(const cell *kind, const step_weights *w, wick_tensor *of_x, int64_t t,
                     wick_tensor *y, state *s) {
    const wick_scope scope = wick_scope_begin(y->device);
    const state next = kind->step(w, wick_squeeze(wick_narrow(of_x, 1, t, 1), 1), *s);
    const bool is_done = wick_copy(wick_narrow(y, 1, t, 1), wick_unsqueeze(next.h, 1)) != NULL;
    s->h = wk_scope_keep(scope, next.h);
    s->c = wk_scope_keep(scope, next.c);
    wick_scope_end(scope);
    return is_done;
}

static wick_tensor *columns_of(wick_tensor *w_hh, int64_t first, int64_t n) {
    return wick_contiguous(wick_transpose(wick_narrow(w_hh, 0, first, n), 0, 1));
}

static step_weights for_steps(const cell *kind, const wick_rnn_weights *weights) {
    wick_tensor *const w_hh = wk_widened(weights->w_hh);
    const int64_t h = weights->w_hh->view.extent[1], last = (kind->n_gates - 1) * h;
    step_weights w = {.b_hh = kind->keeps_b_hh ? wk_widened(weights->b_hh) : NULL,
                      .peepholes = wk_widened(weights->peepholes)};
    w.columns = columns_of(w_hh, 0, kind->splits ? last : last + h);
    if (kind->splits) w.last_columns = columns_of(w_hh, last, h);
    return w;
}

/* Of both biases what is added to the products with the tokens. */
static wick_tensor *bias_of(const cell *kind, const wick_rnn_weights *weights) {
    wick_tensor *const b_ih = wk_widened(weights->b_ih);
    if (kind->keeps_b_hh) return b_ih;
    return sum_of(b_ih, wk_widened(weights->b_hh));
}

/* All tokens: y [b, t, h]; *s: the first state, then the last one. */
static wick_tensor *run_steps(const cell *kind, wick_tensor *x, const wick_rnn_weights *weights,
                              state *s) {
    const int64_t n = x->view.extent[1];
    wick_tensor *const of_x =
        wick_linear(wk_widened(x), wk_widened(weights->w_ih), bias_of(kind, weights));
    const step_weights w = for_steps(kind, weights);
    if (!of_x || !w.columns || (kind->splits && !w.last_columns) || !s->h) return NULL;
    wick_tensor *const y =
        wick_empty(x->device, of_x->view.dtype,
                   WICK_SHAPE(x->view.extent[0], n, weights->w_hh->view.extent[1]));
    if (y && wk_tensor_is_empty(y)) return y; /* n may be any number, of nothing */
    for (int64_t t = 0; y && t < n; t++) {
        const state last = *s;
        if (!run_step(kind, &w, of_x, t, y, s)) return NULL;
        if (t == 0) continue; /* the first state may be the caller's */
        wick_release(last.h);
        wick_release(last.c);
    }
    return y;
}

/* A tensor of its own, also where there were no tokens. */
static wick_tensor *last_of(wick_tensor *now, const wick_tensor *first, wick_dtype dtype) {
    wick_tensor *const last = wk_promoted(now, dtype);
    return first ? wk_fresh(last, first) : last;
}

static wick_tensor *run(const cell *kind, wick_tensor *x, const wick_rnn_weights *weights,
                        state first, wick_tensor **last_h, wick_tensor **last_c) {
    if (last_h) *last_h = NULL;
    if (last_c) *last_c = NULL;
    if (!check(kind, x, weights, first)) return NULL;
    const wick_dtype dtype = x->view.dtype;
    const wick_shape shape = WICK_SHAPE(x->view.extent[0], weights->w_hh->view.extent[1]);
    const wick_scope scope = wk_operation_begin(x->device, kind->name);
    state s = {.h = or_zeros(first.h, x, shape)};
    if (kind->n_gates == 4) s.c = or_zeros(first.c, x, shape);
    wick_tensor *y = wk_promoted(run_steps(kind, x, weights, &s), dtype);
    wick_tensor *const h = y && last_h ? last_of(s.h, first.h, dtype) : NULL;
    wick_tensor *const c = y && last_c ? last_of(s.c, first.c, dtype) : NULL;
    if ((last_h && !h) || (last_c && !c)) y = NULL;
    if (y && last_h) *last_h = wk_scope_keep(scope, h);
    if (y && last_c) *last_c = wk_scope_keep(scope, c);
    return wick_scope_result(scope, y);
}

wick_tensor *wick_lstm(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                       wick_tensor *c0, wick_tensor **last_h, wick_tensor **last_c) {
    static const cell lstm = {.name = "lstm", .n_gates = 4, .step = lstm_step};
    return run(&lstm, x, weights, (state){.h = h0, .c = c0}, last_h, last_c);
}

wick_tensor *wick_gru(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                      wick_tensor **last_h) {
    static const cell after = {.name = "gru", .n_gates = 3, .keeps_b_hh = true, .step = gru_step},
                      before = {.name = "gru", .n_gates = 3, .splits = true, .step = gru_step};
    const bool is_before = weights && weights->resets_before;
    return run(is_before ? &before : &after, x, weights, (state){.h = h0}, last_h, NULL);
}

wick_tensor *wick_rnn(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                      wick_tensor **last_h) {
    static const cell rnn = {.name = "rnn", .n_gates = 1, .step = rnn_step};
    return run(&rnn, x, weights, (state){.h = h0}, last_h, NULL);
}
