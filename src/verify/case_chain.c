/* verify/case_chain.c: random chains of elementwise ops. */
#include "verify/random_view.h"

#include "core/compiler.h"

#include <math.h>

/* A chain being made up. Numbers stay below 8 and functions have slopes of about 1 at most, so that
 * the last bit of one step does not become the first of another. */
typedef struct random_links {
    wk_case *c;
    wick_dtype dtype;
    bool is_integer;                                 /* of which every function is exact */
    double most[WK_CHAIN_OPERANDS + WK_CHAIN_STEPS]; /* magnitude of a register; 0: a condition */
    int n;
} random_links;

static uint8_t pick(random_links *l) {
    int reg = (int)wk_case_below(l->c, l->n);
    while (l->most[reg] == 0) reg = (reg + 1) % l->n; /* register 0 is a number */
    return (uint8_t)reg;
}

static void add_link(random_links *l, wk_op *step, const uint8_t *in, double most) {
    step->n_dst = 1;
    step->n_src = wk_op_get_info(step->code)->n_src;
    step->view[0].dtype = step->code == WK_OP_COMPARE ? WICK_U8 : l->dtype;
    for (int i = 1; i <= step->n_src; i++) step->view[i].dtype = l->dtype;
    if (wk_chain_append(&l->c->op.p.chain, step, in)) l->most[l->n++] = most;
}

static void integer_unary_link(random_links *l, uint8_t x) {
    static const wk_unary_fn functions[] = {WK_UNARY_ABS,   WK_UNARY_NEG,   WK_UNARY_SQR,
                                            WK_UNARY_SIGN,  WK_UNARY_RELU,  WK_UNARY_NOT,
                                            WK_UNARY_CLAMP, WK_UNARY_AFFINE};
    const wk_unary_fn fn = functions[wk_case_below(l->c, WK_COUNT(functions))];
    wk_op step = {.code = WK_OP_UNARY, .p.unary = {.fn = fn, .a = 3, .b = 70}};
    add_link(l, &step, &x, 1);
}

static void integer_binary_link(random_links *l, uint8_t a, uint8_t b) {
    wk_op step = {.code = WK_OP_BINARY};
    do {
        step.p.binary = (wk_binary_fn)wk_case_below(l->c, WK_BINARY_COUNT_);
    } while (!wk_binary_takes(step.p.binary, l->dtype));
    add_link(l, &step, (const uint8_t[]){a, b}, 1);
}

static void unary_link(random_links *l, uint8_t x) {
    static const struct {
        wk_unary_fn fn;
        double most; /* 0: that of x */
    } functions[] = {{WK_UNARY_SIN, 1},  {WK_UNARY_TANH, 1}, {WK_UNARY_SIGMOID, 1},
                     {WK_UNARY_ABS, 0},  {WK_UNARY_NEG, 0},  {WK_UNARY_RELU, 0},
                     {WK_UNARY_SILU, 0}, {WK_UNARY_GELU, 0}, {WK_UNARY_CLAMP, 2},
                     {WK_UNARY_ELU, 0},  {WK_UNARY_ATAN, 2}, {WK_UNARY_AFFINE, 0}};
    if (l->is_integer) {
        integer_unary_link(l, x);
        return;
    }
    const int64_t i = wk_case_below(l->c, WK_COUNT(functions));
    wk_op step = {.code = WK_OP_UNARY, .p.unary = {.fn = functions[i].fn, .a = 0.5, .b = 0.5}};
    if (step.p.unary.fn == WK_UNARY_CLAMP) step.p.unary.a = -2;
    const double most = functions[i].most > 0 ? functions[i].most : l->most[x];
    add_link(l, &step, &x, most < 1 ? 1 : most);
}

static void binary_link(random_links *l, uint8_t a, uint8_t b) {
    static const wk_binary_fn functions[] = {WK_BINARY_ADD, WK_BINARY_SUB, WK_BINARY_MUL,
                                             WK_BINARY_MAXIMUM, WK_BINARY_MINIMUM};
    if (l->is_integer) {
        integer_binary_link(l, a, b);
        return;
    }
    wk_op step = {.code = WK_OP_BINARY, .p.binary = functions[wk_case_below(l->c, 5)]};
    const double sum = l->most[a] + l->most[b], product = l->most[a] * l->most[b];
    const double most = step.p.binary == WK_BINARY_MUL ? product : sum;
    if (most <= 8) add_link(l, &step, (const uint8_t[]){a, b}, most);
}

static void other_link(random_links *l, uint8_t a, uint8_t b) {
    const int n_src = l->c->op.n_src;
    wk_op step = {.code = WK_OP_COPY};
    const uint8_t source = (uint8_t)wk_case_below(l->c, n_src);
    int cond = l->n - 1;
    while (cond >= 0 && l->most[cond] != 0) cond--;
    if (cond >= 0) {
        step.code = WK_OP_WHERE;
        add_link(l, &step, (const uint8_t[]){(uint8_t)cond, a, b}, fmax(l->most[a], l->most[b]));
    } else if (wk_case_chance(l->c, 60)) { /* of sources: a last bit would turn it over */
        step.code = WK_OP_COMPARE;
        step.p.compare = (wk_compare_fn)wk_case_below(l->c, WK_COMPARE_COUNT_);
        add_link(l, &step, (const uint8_t[]){0, source}, 0);
    } else {
        add_link(l, &step, &a, l->most[a]);
    }
}

/* Destinations: the last step, and some before it that are numbers. */
static void choose_results(random_links *l, int n_dst) {
    wk_op *const op = &l->c->op;
    for (int d = n_dst - 1, k = op->p.chain.n_steps - 1; d >= 0; k--) {
        if (k > d && l->most[op->n_src + k] == 0) continue;
        op->p.chain.result[d--] = (uint8_t)k;
    }
}

/* The last number of each row or so; false: there is no room for a step. */
static bool reduce_link(random_links *l, int64_t *extent, int rank, int kept) {
    static const wk_reduce_fn functions[] = {WK_REDUCE_SUM, WK_REDUCE_MAX, WK_REDUCE_MIN,
                                             WK_REDUCE_MEAN};
    wk_chain *const chain = &l->c->op.p.chain;
    const uint8_t last = (uint8_t)(l->n - 1);
    if (chain->n_steps == WK_CHAIN_STEPS) return false;
    wk_op step = {.code = WK_OP_REDUCE,
                  .p.reduce.fn = functions[wk_case_below(l->c, l->is_integer ? 3 : 4)]};
    add_link(l, &step, &last, 8);
    chain->result[0] = (uint8_t)(chain->n_steps - 1);
    for (int d = kept; d < rank; d++) extent[d] = wk_at_least_one(extent[d]);
    return true;
}

void wk_case_describe_chain(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    const int n_steps = 1 + (int)wk_case_below(c, WK_CHAIN_STEPS);
    random_links l = {.c = c, .is_integer = wk_case_chance(c, 25)};
    l.dtype = l.is_integer ? wk_case_integer(c) : wk_case_float(c);
    c->values = WK_VALUES_PLAIN;
    c->op.n_src = (uint8_t)(1 + wk_case_below(c, 4));
    for (; l.n < c->op.n_src; l.n++) l.most[l.n] = 1;
    for (int tries = 0; tries < 100 && c->op.p.chain.n_steps < n_steps; tries++) {
        const uint8_t a = pick(&l), b = pick(&l);
        const int64_t kind = wk_case_below(c, 100);
        if (kind < 40)
            unary_link(&l, a);
        else if (kind < 80)
            binary_link(&l, a, b);
        else
            other_link(&l, a, b);
    }
    if (c->op.p.chain.n_steps == 0 || l.most[l.n - 1] == 0) unary_link(&l, 0);
    if (l.most[l.n - 1] == 0) c->op.p.chain.n_steps--; /* there was no room */
    const bool is_one = c->op.p.chain.n_steps < 4 || wk_case_chance(c, 70);
    c->op.n_dst = is_one ? 1 : 2;
    choose_results(&l, c->op.n_dst);
    const int kept = rank > 0 ? (int)wk_case_below(c, rank) : 0;
    const bool is_dense = wk_case_chance(c, 50);
    if (is_one && rank > 0 && wk_case_chance(c, 30) && reduce_link(&l, extent, rank, kept)) {
        (void)wk_case_add(c, 0, l.dtype, kept, extent);
        for (int i = 1; i <= c->op.n_src; i++)
            (void)(is_dense ? wk_case_dense : wk_case_add)(c, i, l.dtype, rank, extent);
        return;
    }
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++)
        (void)wk_case_add(c, i, l.dtype, rank, extent);
    for (int i = 1; c->op.n_dst == 1 && i <= c->op.n_src; i++) wk_case_maybe_in_place(c, i);
}
