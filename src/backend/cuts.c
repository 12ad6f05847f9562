/* backend/cuts.c: how ops may be cut, for devices that can hold or finish only a part of one. */
#include "backend/op.h"

#include "core/dtype.h"

#include <assert.h>

static wk_cut *add_cut(wk_cuts *list) {
    assert(list->n < WK_MAX_CUTS);
    wk_cut *const c = &list->of[list->n++];
    *c = (wk_cut){.is_of_table = false};
    for (int i = 0; i < WK_MAX_OPERANDS; i++) c->dim[i] = WK_UNCUT;
    return c;
}

/* Along dimensions 0 to n_dims - 1 of the first n operands. */
static void add_common(wk_cuts *list, int n_dims, int n) {
    assert(n_dims <= WICK_MAX_RANK && n <= WK_MAX_OPERANDS);
    for (int d = 0; d < n_dims; d++) {
        wk_cut *const c = add_cut(list);
        for (int i = 0; i < n; i++) c->dim[i] = (int8_t)d;
    }
}

static void cut_nowhere(const wk_op *op, wk_cuts *list) { (void)op, (void)list; }

/* Blocks are whole. */
static void cut_elements(const wk_op *op, wk_cuts *list) {
    const int rank = op->view[0].rank, n = op->n_dst + op->n_src;
    bool has_blocks = false;
    for (int i = 0; i < n; i++) has_blocks = has_blocks || wk_dtype_is_block(op->view[i].dtype);
    add_common(list, has_blocks ? rank - 1 : rank, n);
}

/* Along the dimensions that y keeps of x. */
static void cut_kept(const wk_op *op, wk_cuts *list) { add_common(list, op->view[0].rank, 2); }

/* y and x [.., n]; what else there is, is needed whole. */
static void cut_rows(const wk_op *op, wk_cuts *list) { add_common(list, op->view[0].rank - 1, 2); }

static void cut_top_k(const wk_op *op, wk_cuts *list) { add_common(list, op->view[0].rank - 1, 3); }

/* y and index [.., m], x [.., n]. */
static void cut_gather(const wk_op *op, wk_cuts *list) {
    const int last = op->view[0].rank - 1;
    add_common(list, last, 3);
    wk_cut *const elements = add_cut(list);
    elements->dim[0] = elements->dim[2] = (int8_t)last;
}

static void cut_scatter(const wk_op *op, wk_cuts *list) {
    add_common(list, op->view[0].rank - 1, 3);
}

/* y and x [b, t, h, d]; the others [b, t, ..]. */
static void cut_rope(const wk_op *op, wk_cuts *list) {
    add_common(list, 2, op->n_dst + op->n_src);
    wk_cut *const heads = add_cut(list);
    heads->dim[0] = heads->dim[1] = 2;
}

/* c [.., m, n], a [.., m, k], b [.., k, n]. */
static void cut_matmul(const wk_op *op, wk_cuts *list) {
    assert(op->view[0].rank >= 2);
    const int rank = op->view[0].rank;
    add_common(list, rank - 2, 3);
    wk_cut *const rows = add_cut(list);
    rows->dim[0] = rows->dim[1] = (int8_t)(rank - 2);
    wk_cut *const columns = add_cut(list);
    columns->dim[0] = columns->dim[2] = (int8_t)(rank - 1);
}

/* y [m, n], x [m, k], weight [n, k], bias [n]. */
static void cut_linear(const wk_op *op, wk_cuts *list) {
    (void)op;
    wk_cut *const outputs = add_cut(list);
    outputs->dim[0] = 1;
    outputs->dim[2] = outputs->dim[3] = 0;
    wk_cut *const rows = add_cut(list);
    rows->dim[0] = rows->dim[1] = 0;
}

/* y [m, k], weight [n, k], ids [m]: a piece of the weight serves the ids of its rows. */
static void cut_embedding(const wk_op *op, wk_cuts *list) {
    (void)op;
    wk_cut *const rows = add_cut(list);
    rows->dim[0] = rows->dim[2] = 0;
    wk_cut *const table = add_cut(list);
    table->dim[1] = 0;
    table->is_of_table = true;
}

/* y [m, u, n], x [m, u, k], ids [m, u]; likewise weight [experts, n, k] with bias [experts, n]. */
static void cut_experts(const wk_op *op, wk_cuts *list) {
    (void)op;
    for (int8_t d = 0; d < 2; d++) {
        wk_cut *const rows = add_cut(list);
        rows->dim[0] = rows->dim[1] = rows->dim[4] = d;
    }
    wk_cut *const experts = add_cut(list);
    experts->dim[2] = experts->dim[3] = 0;
    experts->is_of_table = true;
}

/* q, k, v, mask and bias [b, ..]. */
static void cut_batches(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_common(list, 1, 6);
}

/* Along dimension 0 of the operands in `rows`, a bit for each, and the rows of the batch. What a
 * recurrence carries from row to row goes through its state, from piece to piece as from batch to
 * batch. */
static void add_rows(wk_cuts *list, uint32_t rows) {
    wk_cut *const c = add_cut(list);
    c->has_rows = true;
    for (int i = 0; i < WK_MAX_OPERANDS; i++)
        if ((rows >> i & 1) != 0) c->dim[i] = 0;
}

/* y and q. */
static void cut_cached(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_rows(list, 1U << 0 | 1U << 1);
}

/* k and v. */
static void cut_append(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_rows(list, 1U << 2 | 1U << 3);
}

/* y and x. */
static void cut_conv(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_rows(list, 1U << 0 | 1U << 2);
}

/* y and x [n, c, ..]. */
static void cut_pool(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_common(list, 2, 2);
}

/* y and x [n, ..]. */
static void cut_convolution(const wk_op *op, wk_cuts *list) {
    (void)op;
    add_common(list, 1, 2);
}

/* y, x, step and bc; the gate of a delta rule has rows, too. */
static void cut_scan(const wk_op *op, wk_cuts *list) {
    const uint32_t gate = op->p.scan.fn == WK_SCAN_DELTA ? 1U << 4 : 0;
    add_rows(list, 1U << 0 | 1U << 2 | 1U << 3 | gate | 1U << 5);
}

/* Along the first dimension that has several elements: those of a piece are numbered in a row. */
static void cut_random(const wk_op *op, wk_cuts *list) {
    const wk_view *const y = &op->view[0];
    int d = 0;
    while (d < y->rank && y->extent[d] == 1) d++;
    if (d < y->rank) add_cut(list)->dim[0] = (int8_t)d;
}

void wk_op_cuts(const wk_op *op, wk_cuts *list) {
    static void (*const functions[])(const wk_op *op, wk_cuts *list) = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, ...) [WK_OP_##code] = cut_##cuts,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = cut_nowhere,
    };
    list->n = 0;
    functions[op->code](op, list);
}
