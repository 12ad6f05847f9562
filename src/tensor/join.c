/* tensor/join.c: ops of a plan that are less work as one, found by rules once the plan is recorded
 * and before its places get memory. What is computed stays the same to the bit.
 *
 * Products: several of one x, whose weights lie side by side in memory, are one with all the rows.
 *
 *   q = x Wq^T    Wq and Wk are parts of one buffer,      y = x [Wq Wk]^T
 *   k = x Wk^T    Wk begins where Wq ends                 q and k: columns of y
 *
 * Ops in a row (WK_OPS_*): they become neighbours, and the device computes them by one kernel. */
#include "tensor/record.h"

#include "core/compiler.h"
#include "core/dtype.h"

#include <assert.h>
#include <string.h>

enum {
    WINDOW = 24,    /* ops between the first and the last of those that become one */
    MOST_ROWS = 64, /* of products, where an op is a dispatch: with more its cost is negligible */
};

static int n_views(const wk_op *op) { return op->n_dst + op->n_src; }

/* Whether their order matters. */
static bool are_bound(const wk_op *a, const wk_op *b) {
    for (int v = 0; v < n_views(a); v++)
        for (int w = 0; w < n_views(b); w++)
            if ((v < a->n_dst || w < b->n_dst) && wk_view_overlaps(&a->view[v], &b->view[w]))
                return true;
    return false;
}

/* Whether op `from` may be computed directly after op `to`, which comes before it. */
static bool may_move(const wk_plan *plan, size_t from, size_t to) {
    for (size_t i = to + 1; i < from; i++)
        if (are_bound(&plan->ops[from], &plan->ops[i])) return false;
    return true;
}

static void remove_op(wk_plan *plan, size_t i) {
    wk_op_release(plan->device, &plan->ops[i]);
    const size_t n = --plan->n_ops - i;
    memmove(&plan->ops[i], &plan->ops[i + 1], n * sizeof *plan->ops);
    memmove(&plan->kernels[i], &plan->kernels[i + 1], n * sizeof *plan->kernels);
}

/* --- Products --- */

/* Whether b begins where a ends: rows of one matrix, elements of one vector. */
static bool is_beside(const wk_view *a, const wk_view *b) {
    uint64_t begin, end, next, last;
    if (a->buf != b->buf || a->dtype != b->dtype || a->layout != b->layout || a->rank != b->rank)
        return false;
    wk_view_range(a, &begin, &end);
    wk_view_range(b, &next, &last);
    if (a->rank == 1) return wk_view_is_dense(a) && wk_view_is_dense(b) && end == next;
    const bool are_whole = a->extent[0] % WK_PANEL_ROWS == 0 && b->extent[0] % WK_PANEL_ROWS == 0;
    return a->layout != WK_LAYOUT_RAW && a->extent[1] == b->extent[1] && are_whole && end == next;
}

static bool is_one_product(const wk_op *a, const wk_op *b) {
    const wk_view *const bias_a = wk_src(a, 2), *const bias_b = wk_src(b, 2);
    if (b->code != WK_OP_LINEAR || a->p.linear.fast != b->p.linear.fast) return false;
    if (wk_dst(a, 0)->rank != 2) return false;
    if (!wk_view_same(wk_src(a, 0), wk_src(b, 0)) || !is_beside(wk_src(a, 1), wk_src(b, 1)))
        return false;
    return bias_a->buf ? bias_b->buf && is_beside(bias_a, bias_b) : !bias_b->buf;
}

/* The whole of a place that no one reads after a run. */
static bool is_inner(const wk_view *y, wick_tensor *const *outputs, size_t n_outputs) {
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i]->view.buf == y->buf) return false;
    uint64_t begin, end;
    wk_view_range(y, &begin, &end);
    return y->buf->place > 0 && wk_view_is_dense(y) && begin == 0 && end == y->buf->size;
}

/* Columns [first, first + n) of a matrix of `of` columns, as the only place of what `from` had. */
typedef struct columns {
    const wk_buffer *from;
    wk_buffer *to;
    int64_t n, first, of;
    uint64_t size; /* bytes of an element */
} columns;

/* The view of the same elements there; false: it is not made of parts of rows. */
static bool move_view(const columns *c, const wk_view *view, wk_view *out) {
    const int64_t at = (int64_t)(view->offset / c->size);
    int64_t in_row = at % c->n;
    *out = *view;
    for (int d = 0; d < view->rank; d++) {
        if (view->stride[d] % c->n == 0)
            out->stride[d] = view->stride[d] / c->n * c->of;
        else if (view->extent[d] > 1)
            in_row += (view->extent[d] - 1) * view->stride[d];
    }
    out->buf = c->to;
    out->offset = (uint64_t)(at / c->n * c->of + at % c->n + c->first) * c->size;
    return in_row < c->n;
}

/* An op with its views there; false: there is no kernel for it. */
static bool move_op(const wk_plan *plan, const columns *c, const wk_op *op, wk_op *out) {
    const wick_device *const device = plan->device;
    wk_op_copy(out, op);
    bool is_moved = false;
    for (int v = 0; v < n_views(op); v++) {
        if (op->view[v].buf != c->from) continue;
        if ((uint64_t)wk_dtype_get(op->view[v].dtype)->block_bytes != c->size) return false;
        if (!move_view(c, &op->view[v], &out->view[v])) return false;
        is_moved = true;
    }
    return !is_moved || (wk_op_check_rule(out, NULL) == WICK_OK &&
                         device->backend->find_kernel(device->handle, out) != NULL);
}

/* All ops but the products themselves can have their views there. */
static bool can_move(const wk_plan *plan, const columns *c, size_t i, size_t j) {
    wk_op moved;
    for (size_t k = i + 1; k < plan->n_ops; k++)
        if (k != j && !move_op(plan, c, &plan->ops[k], &moved)) return false;
    return true;
}

static void move_all(wk_plan *plan, const columns *c) {
    const wick_device *const device = plan->device;
    for (size_t k = 0; k < plan->n_ops; k++) {
        wk_op *const op = &plan->ops[k];
        bool is_moved = false;
        for (int v = 0; v < n_views(op); v++) {
            if (op->view[v].buf != c->from) continue;
            wk_buffer *const from = op->view[v].buf;
            const wk_view view = op->view[v];
            (void)move_view(c, &view, &op->view[v]);
            wk_buffer_retain(c->to);
            from->refs--;
            is_moved = true;
        }
        if (is_moved) plan->kernels[k] = device->backend->find_kernel(device->handle, op);
    }
}

/* The two as one, y in a new place. */
static wk_op one_product(const wk_op *a, const wk_op *b) {
    wk_op both;
    wk_op_copy(&both, a);
    const int64_t n = wk_dst(a, 0)->extent[1] + wk_dst(b, 0)->extent[1];
    both.view[0].extent[1] = both.view[0].stride[0] = n;
    both.view[2].extent[0] = n;
    if (both.view[3].buf) both.view[3].extent[0] = n;
    return both;
}

/* *joined: op j is a part of op i now, and gone. */
static wick_status join_products(wk_plan *plan, size_t i, size_t j, bool *joined) {
    wk_op *const a = &plan->ops[i];
    const wk_op *const b = &plan->ops[j];
    const uint64_t size = (uint64_t)wk_dtype_get(wk_dst(a, 0)->dtype)->block_bytes;
    const wick_device *const device = plan->device;
    wk_op both = one_product(a, b);
    const int64_t n_a = wk_dst(a, 0)->extent[1], n = wk_dst(&both, 0)->extent[1];
    columns of_a = {.from = wk_dst(a, 0)->buf, .n = n_a, .of = n, .size = size};
    columns of_b = {.from = wk_dst(b, 0)->buf, .n = n - n_a, .first = n_a, .of = n, .size = size};
    *joined = false;
    if (wk_dst(a, 0)->dtype != wk_dst(b, 0)->dtype || !can_move(plan, &of_a, i, j) ||
        !can_move(plan, &of_b, i, j) || !device->backend->find_kernel(device->handle, &both))
        return WICK_OK;
    const uint64_t row = (uint64_t)n * size;
    wk_buffer *place;
    WK_TRY(wk_plan_place(plan, (uint64_t)wk_dst(a, 0)->extent[0] * row, row, &place));
    of_a.to = of_b.to = place;
    move_all(plan, &of_a);
    move_all(plan, &of_b);
    place->refs--; /* only ops hold it */
    a->view[0] = both.view[0];
    a->view[0].buf = place;
    a->view[2].extent[0] = both.view[2].extent[0];
    a->view[3].extent[0] = both.view[3].extent[0];
    plan->kernels[i] = device->backend->find_kernel(device->handle, a);
    remove_op(plan, j);
    *joined = true;
    return WICK_OK;
}

static wick_status find_products(wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs) {
    for (size_t i = 0; i < plan->n_ops; i++) {
        if (plan->ops[i].code != WK_OP_LINEAR) continue;
        for (size_t j = i + 1; j < plan->n_ops && j - i < WINDOW; j++) {
            bool joined = false;
            if (is_one_product(&plan->ops[i], &plan->ops[j]) &&
                is_inner(wk_dst(&plan->ops[i], 0), outputs, n_outputs) &&
                is_inner(wk_dst(&plan->ops[j], 0), outputs, n_outputs) && may_move(plan, j, i))
                WK_TRY(join_products(plan, i, j, &joined));
            if (joined) j--;
        }
    }
    return WICK_OK;
}

/* --- Ops in a row --- */

/* An op comes directly after another one before it. */
static void move_after(wk_plan *plan, size_t from, size_t to) {
    assert(to < from && from < plan->n_ops);
    const wk_op op = plan->ops[from];
    const wk_kernel *const kernel = plan->kernels[from];
    const size_t n = from - to - 1;
    memmove(&plan->ops[to + 2], &plan->ops[to + 1], n * sizeof *plan->ops);
    memmove(&plan->kernels[to + 2], &plan->kernels[to + 1], n * sizeof *plan->kernels);
    plan->ops[to + 1] = op;
    plan->kernels[to + 1] = kernel;
}

/* It is computed by a kernel of its own so far. */
static bool is_alone(const wk_plan *plan, size_t i) {
    return plan->kernels[i] && wk_opcode_ops(plan->kernels[i]->code) == 1;
}

/* Those from i on, if a kernel takes them. */
static bool join_row(wk_plan *plan, wk_opcode code, size_t i) {
    const wick_device *const device = plan->device;
    const size_t n = wk_opcode_ops(code);
    const wk_kernel *const kernel =
        device->backend->find_joint(device->handle, code, &plan->ops[i]);
    for (size_t k = 0; kernel && k < n; k++) plan->kernels[i + k] = k == 0 ? kernel : NULL;
    return kernel != NULL;
}

static size_t count_uses(const wk_plan *plan, const wk_buffer *buf) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_ops; i++)
        for (int v = 0; v < n_views(&plan->ops[i]); v++) n += plan->ops[i].view[v].buf == buf;
    return n;
}

/* The op of that code, at most WINDOW before op i, that writes the whole of buf; i: none does. */
static size_t producer_of(const wk_plan *plan, const wk_buffer *buf, wk_opcode code, size_t i) {
    for (size_t k = i; k-- > 0 && i - k < WINDOW;)
        if (plan->ops[k].code == code && wk_dst(&plan->ops[k], 0)->buf == buf && is_alone(plan, k))
            return k;
    return i;
}

/* Whether what op k makes first is for one reader alone, which reads it n times. */
static bool is_for_one(const wk_plan *plan, size_t k, size_t n, wick_tensor *const *outputs,
                       size_t n_outputs) {
    const wk_view *const y = wk_dst(&plan->ops[k], 0);
    return is_inner(y, outputs, n_outputs) && count_uses(plan, y->buf) == 1 + n;
}

/* Moves op i after the op of that code that makes its operand `source`, for it alone, which reads
 * it n times: that op; i: there is none. */
static size_t follow(wk_plan *plan, size_t i, int source, wk_opcode code, size_t n,
                     wick_tensor *const *outputs, size_t n_outputs) {
    const wk_view *const x = wk_src(&plan->ops[i], source);
    const size_t of = producer_of(plan, x->buf, code, i);
    if (of == i || !is_for_one(plan, of, n, outputs, n_outputs) || !may_move(plan, i, of)) return i;
    move_after(plan, i, of);
    return of;
}

/* The convolution of which op i is a function. */
static void find_convolution(wk_plan *plan, size_t i, wick_tensor *const *outputs,
                             size_t n_outputs) {
    const size_t of = follow(plan, i, 0, WK_OP_CAUSAL_CONV, 1, outputs, n_outputs);
    if (of != i) (void)join_row(plan, WK_OPS_CONV_SILU, of);
}

/* What op i, GATED, gates: a scan and what is added to it, which come directly before. */
static void find_scan(wk_plan *plan, size_t i, wick_tensor *const *outputs, size_t n_outputs) {
    static const wk_opcode before[] = {WK_OP_SCAN, WK_OP_BINARY, WK_OP_BINARY};
    if (i < 3) return;
    for (size_t k = 0; k < 3; k++)
        if (plan->ops[i - 3 + k].code != before[k] || !is_alone(plan, i - 3 + k) ||
            !is_for_one(plan, i - 3 + k, 1, outputs, n_outputs))
            return;
    (void)join_row(plan, WK_OPS_SCAN_GATED, i - 3);
}

/* The product of which op i, GATED, has both halves, or both products of experts, or a scan. */
static void find_gated(wk_plan *plan, size_t i, wick_tensor *const *outputs, size_t n_outputs) {
    size_t of = follow(plan, i, 0, WK_OP_LINEAR, 2, outputs, n_outputs);
    if (of != i) {
        (void)join_row(plan, WK_OPS_GATED, of);
        return;
    }
    const size_t up = follow(plan, i, 1, WK_OP_LINEAR_EXPERTS, 1, outputs, n_outputs);
    if (up == i) {
        find_scan(plan, i, outputs, n_outputs);
        return;
    }
    of = producer_of(plan, wk_src(&plan->ops[up + 1], 0)->buf, WK_OP_LINEAR_EXPERTS, up);
    if (of == up || !is_for_one(plan, of, 1, outputs, n_outputs) || !may_move(plan, up, of)) return;
    move_after(plan, up, of);
    if (!may_move(plan, up + 1, of + 1)) return;
    move_after(plan, up + 1, of + 1);
    (void)join_row(plan, WK_OPS_EXPERTS_GATED, of);
}

static bool is_sum(const wk_op *op) {
    return op->code == WK_OP_BINARY && op->p.binary == WK_BINARY_ADD;
}

/* The norm of op i, a sum. */
static void find_norm(wk_plan *plan, size_t i, wick_tensor *const *outputs, size_t n_outputs) {
    size_t of = i + 1;
    while (of < plan->n_ops && of - i < WINDOW &&
           !(plan->ops[of].code == WK_OP_RMS_NORM && is_alone(plan, of) &&
             wk_view_same(wk_src(&plan->ops[of], 0), wk_dst(&plan->ops[i], 0))))
        of++;
    if (of == plan->n_ops || of - i == WINDOW || !may_move(plan, of, i)) return;
    move_after(plan, of, i);
    static const struct {
        wk_opcode code, row; /* of what makes the second summand; of all */
    } terms[] = {{WK_OP_RMS_NORM, WK_OPS_NORM_ADD_NORM}, {WK_OP_MATMUL, WK_OPS_MIX_ADD_NORM}};
    for (size_t t = 0; t < WK_COUNT(terms) && is_sum(&plan->ops[i]); t++) {
        const size_t term = follow(plan, i, 1, terms[t].code, 1, outputs, n_outputs);
        if (term == i) continue;
        if (!may_move(plan, i + 1, term + 1)) return;
        move_after(plan, i + 1, term + 1);
        if (join_row(plan, terms[t].row, term)) return;
        i = term + 1;
    }
    if (is_sum(&plan->ops[i])) (void)join_row(plan, WK_OPS_ADD_NORM, i);
}

/* Whether op i comes directly after the product, for it alone, that follows a sum and its norm. */
static bool is_of_router(const wk_plan *plan, size_t i, wick_tensor *const *outputs,
                         size_t n_outputs) {
    return i >= 3 && plan->kernels[i - 3] && plan->kernels[i - 3]->code == WK_OPS_ADD_NORM &&
           plan->ops[i - 1].code == WK_OP_LINEAR && is_alone(plan, i - 1) &&
           is_for_one(plan, i - 1, 1, outputs, n_outputs);
}

/* The softmax of op i, of the largest elements of something; with the sum and the norm before it,
 * where that is a router's product. */
static void find_choice(wk_plan *plan, size_t i, wick_tensor *const *outputs, size_t n_outputs) {
    const size_t of = follow(plan, i, 0, WK_OP_TOP_K, 1, outputs, n_outputs);
    if (of == i) return;
    (void)join_row(plan, WK_OPS_TOP_K_SOFTMAX, of);
    if (is_of_router(plan, of, outputs, n_outputs)) (void)join_row(plan, WK_OPS_ROUTE, of - 3);
}

/* The largest, by op i, of the softmax of a router's product; as shares of their sum, where that
 * and a quotient follow. */
static void find_choice_of_all(wk_plan *plan, size_t i, wick_tensor *const *outputs,
                               size_t n_outputs) {
    if (i < 4 || plan->ops[i - 1].code != WK_OP_SOFTMAX || !is_alone(plan, i - 1) ||
        !is_for_one(plan, i - 1, 1, outputs, n_outputs) ||
        !is_of_router(plan, i - 1, outputs, n_outputs))
        return;
    if (i + 2 < plan->n_ops && plan->ops[i + 1].code == WK_OP_REDUCE &&
        plan->ops[i + 2].code == WK_OP_BINARY && is_for_one(plan, i, 2, outputs, n_outputs) &&
        is_for_one(plan, i + 1, 1, outputs, n_outputs) &&
        join_row(plan, WK_OPS_ROUTE_SHARES, i - 4))
        return;
    (void)join_row(plan, WK_OPS_ROUTE_ALL, i - 4);
}

/* Whether an op may be computed directly before one after it, and moves it there. */
static bool move_before(wk_plan *plan, size_t from, size_t to) {
    assert(from < to && to < plan->n_ops);
    for (size_t i = from + 1; i < to; i++)
        if (are_bound(&plan->ops[from], &plan->ops[i])) return false;
    const wk_op op = plan->ops[from];
    const wk_kernel *const kernel = plan->kernels[from];
    const size_t n = to - from - 1;
    memmove(&plan->ops[from], &plan->ops[from + 1], n * sizeof *plan->ops);
    memmove(&plan->kernels[from], &plan->kernels[from + 1], n * sizeof *plan->kernels);
    plan->ops[to - 1] = op;
    plan->kernels[to - 1] = kernel;
    return true;
}

/* The last rotation by the same angles before op i; i: there is none. */
static size_t rotation_like(const wk_plan *plan, size_t i) {
    for (size_t k = i; k-- > 0 && i - k < WINDOW;)
        if (plan->ops[k].code == WK_OP_ROPE_TABLE && is_alone(plan, k) &&
            wk_view_same(wk_src(&plan->ops[k], 1), wk_src(&plan->ops[i], 1)))
            return k;
    return i;
}

/* The norm of nothing but what op i, a rotation, turns; i: there is none. */
static size_t norm_of(const wk_plan *plan, size_t i) {
    const wk_buffer *const buf = wk_src(&plan->ops[i], 0)->buf;
    const size_t norm = producer_of(plan, buf, WK_OP_RMS_NORM, i);
    return count_uses(plan, buf) == 2 ? norm : i;
}

static bool is_output(const wk_buffer *buf, wick_tensor *const *outputs, size_t n_outputs) {
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i]->view.buf == buf) return true;
    return false;
}

/* The rotations of queries and keys before op i, an append of these keys, and their norms. */
static void find_heads(wk_plan *plan, size_t i, wick_tensor *const *outputs, size_t n_outputs) {
    const wk_buffer *const keys = wk_src(&plan->ops[i], 0)->buf;
    const size_t k_rope = producer_of(plan, keys, WK_OP_ROPE_TABLE, i);
    if (k_rope == i || count_uses(plan, keys) != 2 || is_output(keys, outputs, n_outputs) ||
        !move_before(plan, k_rope, i))
        return;
    const size_t q_rope = rotation_like(plan, i - 1);
    if (q_rope == i - 1 || !move_before(plan, q_rope, i - 1)) return;
    const size_t k_norm = norm_of(plan, i - 1);
    if (k_norm != i - 1 && norm_of(plan, i - 2) != i - 2 && move_before(plan, k_norm, i - 2)) {
        const size_t q_norm = norm_of(plan, i - 2);
        if (q_norm < i - 3 && !move_before(plan, q_norm, i - 3)) return;
        if (q_norm < i - 2 && join_row(plan, WK_OPS_NORMED_HEADS, i - 4)) return;
    }
    (void)join_row(plan, WK_OPS_HEADS, i - 2);
}

static bool has_few_rows(const wk_plan *plan) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].code == WK_OP_LINEAR && wk_dst(&plan->ops[i], 0)->extent[0] > MOST_ROWS)
            return false;
    return true;
}

static void find_rows(wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs) {
    for (size_t i = 0; i < plan->n_ops; i++) {
        if (!is_alone(plan, i)) continue;
        if (plan->ops[i].code == WK_OP_GATED) find_gated(plan, i, outputs, n_outputs);
        if (plan->ops[i].code == WK_OP_UNARY) find_convolution(plan, i, outputs, n_outputs);
        if (plan->ops[i].code == WK_OP_SOFTMAX) find_choice(plan, i, outputs, n_outputs);
        if (plan->ops[i].code == WK_OP_TOP_K) find_choice_of_all(plan, i, outputs, n_outputs);
        if (is_sum(&plan->ops[i])) find_norm(plan, i, outputs, n_outputs);
        if (plan->ops[i].code == WK_OP_KV_APPEND) find_heads(plan, i, outputs, n_outputs);
    }
}

wick_status wk_plan_join(wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs) {
    const wick_device *const device = plan->device;
    const bool has_joint = device->backend->find_joint != NULL;
    if (device->desc.verify || device->desc.fusion == WICK_FUSION_OFF || plan->falls_back ||
        !device->backend->joins_products || (has_joint && !has_few_rows(plan)))
        return WICK_OK;
    WK_TRY(find_products(plan, outputs, n_outputs));
    if (has_joint) find_rows(plan, outputs, n_outputs);
    return WICK_OK;
}
