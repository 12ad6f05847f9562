/* train/backward.c: going back through what a tape has recorded. */
#include "train/tape_struct.h"

#include "core/shape.h"
#include "ops/compose.h"

#include <wick/ops.h>

#include <assert.h>
#include <inttypes.h>

/* --- Gradients of memory --- */

/* The part of a gradient that belongs to a view of its buffer. */
static wick_tensor *part_of(const wk_slot *s, const wk_view *view) {
    wk_view part = *view;
    part.buf = s->grad->view.buf;
    part.dtype = s->dtype;
    part.layout = WK_LAYOUT_RAW;
    part.offset = s->grad->view.offset + view->offset / (uint64_t)wk_element_bytes(view->dtype) *
                                             (uint64_t)wk_element_bytes(s->dtype);
    return wk_tensor_of_view(s->grad->device, &part);
}

/* All elements of the slot, each once. */
static bool covers(const wk_slot *s, const wk_view *view) {
    return view->offset == 0 && wk_view_count(view) == s->count && wk_view_is_writable(view);
}

static void set_gradient(wk_slot *s, wick_tensor *gradient, bool is_own) {
    wick_retain(gradient);
    wk_slot_drop_gradient(s);
    s->grad = gradient;
    s->is_own = is_own;
}

/* Makes it the slot's own, so that it can be changed in place. */
static bool own(wk_slot *s) {
    if (!s->is_own) {
        wick_tensor *const copy = wk_dense_copy(s->grad, s->dtype);
        if (!copy) return false;
        set_gradient(s, copy, true);
    }
    return true;
}

/* Functions that run again may name elements after those that the gradient has so far. */
static bool fit(wk_slot *s) {
    const int64_t n = wick_tensor_size(s->grad);
    if (!s->grad || n == s->count) return true;
    wick_tensor *const larger = wick_zeros(s->grad->device, s->dtype, WICK_SHAPE(s->count));
    if (!wick_copy(wick_narrow(larger, 0, 0, n), s->grad)) return false;
    set_gradient(s, larger, true);
    return true;
}

static void add_part(wk_slot *s, const wk_view *view, wick_tensor *g) {
    const wick_shape all = {.rank = 1, .extent = {s->count}};
    const bool is_all = covers(s, view);
    if (!fit(s)) return;
    if (is_all && wk_view_is_dense(view)) {
        wick_tensor *const flat = wick_contiguous(wick_reshape(g, all));
        wick_tensor *const sum = s->grad ? wick_add(s->grad, flat) : flat;
        if (sum) set_gradient(s, sum, s->grad != NULL);
        return;
    }
    const bool is_first = !s->grad;
    if (is_first) {
        wick_tensor *const empty =
            is_all ? wick_empty(g->device, s->dtype, all) : wick_zeros(g->device, s->dtype, all);
        if (!empty) return;
        set_gradient(s, empty, true);
    }
    if (!own(s)) return;
    wick_tensor *const part = part_of(s, view);
    if (is_first)
        (void)wick_copy(part, g);
    else
        (void)wk_add_to(part, g);
}

/* A view that shows elements more than once is added part by part: along the dimension that has the
 * fewest elements. */
static void add_overlapping(wk_slot *s, const wk_view *view, wick_tensor *g) {
    if (wk_view_count(view) == 0 || !g) return;
    if (wk_view_is_writable(view)) {
        add_part(s, view, g);
        return;
    }
    int dim = -1;
    for (int d = 0; d < view->rank; d++)
        if (view->extent[d] > 1 && (dim < 0 || view->extent[d] < view->extent[dim])) dim = d;
    assert(dim >= 0);
    for (int64_t i = 0; i < view->extent[dim]; i++) {
        wk_view part = *view;
        part.offset += (uint64_t)(i * view->stride[dim] * wk_element_bytes(view->dtype));
        part.extent[dim] = 1;
        add_overlapping(s, &part, wick_narrow(g, dim, i, 1));
    }
}

/* g has the shape of view; what is repeated with stride 0 gets the sum. */
static void add_gradient(wk_slot *s, const wk_view *view, wick_tensor *g) {
    wk_view own_view = *view;
    int repeated[WICK_MAX_RANK], n = 0;
    for (int d = 0; d < view->rank; d++) {
        if (view->stride[d] != 0 || view->extent[d] == 1) continue;
        repeated[n++] = d;
        own_view.extent[d] = 1;
    }
    if (wk_view_count(view) == 0) return;
    if (n > 0) g = wick_sum(g, n, repeated, true);
    g = wk_promoted(g, s->dtype);
    add_overlapping(s, &own_view, g);
}

/* The gradient of what an op has written, which stands there no more; NULL: it is zero. */
static wick_tensor *take(wk_slot *s, const wk_view *view) {
    if (!s || !s->grad || wk_view_count(view) == 0 || !fit(s)) return NULL;
    wick_tensor *const part = part_of(s, view);
    if (covers(s, view)) {
        wk_slot_drop_gradient(s);
        return part;
    }
    wick_tensor *const g = part ? wk_dense_copy(part, s->dtype) : NULL;
    wick_tensor *const rest = g && own(s) ? part_of(s, view) : NULL;
    return wick_fill(rest, 0) ? g : NULL;
}

/* --- Going back --- */

static wick_tensor *operand(const wk_back *b, int i) {
    const wk_op *const op = wk_back_op(b);
    const wk_view *const view = &op->view[i];
    if (!view->buf) return NULL;
    if (b->node->is_lost[i] || view->buf->version != b->node->version[i]) {
        wk_device_fail(b->tape->device, WICK_ERR_STATE,
                       "the gradient of %s needs its operand %s, which was overwritten",
                       wk_op_name(op), wk_op_operand(op, i)->name);
        return NULL;
    }
    wick_tensor *const x = wk_tensor_of_view(b->tape->device, view);
    const bool is_plain = view->layout == WK_LAYOUT_RAW && wk_dtype_is_float(view->dtype);
    return is_plain ? wk_widened(x) : x; /* a weight in another layout stays as it is */
}

bool wk_back_wants(const wk_back *b, int i) {
    return wk_tape_find(b->tape, wk_src(wk_back_op(b), i)) != NULL;
}

wick_tensor *wk_back_source(const wk_back *b, int i) {
    return operand(b, wk_back_op(b)->n_dst + i);
}

wick_tensor *wk_back_result(const wk_back *b, int i) { return operand(b, i); }

static void give(const wk_back *b, const wk_view *view, wick_tensor *gradient) {
    wk_slot *const s = wk_tape_find(b->tape, view);
    if (s && gradient) add_gradient(s, view, gradient);
}

void wk_back_give(const wk_back *b, int i, wick_tensor *gradient) {
    give(b, wk_src(wk_back_op(b), i), gradient);
}

void wk_back_give_before(const wk_back *b, wick_tensor *gradient) {
    give(b, wk_dst(wk_back_op(b), 0), gradient);
}

static bool has_failed(const wick_tape *tape) {
    return wk_device_err(tape->device)->status != WICK_OK;
}

/* Where its gradient is zero, too. */
static wick_tensor *result_of(const wick_tape *tape, const wick_tensor *x) {
    const wk_slot *const s = wk_tape_find(tape, &x->view);
    if (!s->grad) return wick_zeros(tape->device, s->dtype, wk_tensor_shape_of(x));
    wick_tensor *const part = part_of(s, &x->view);
    return part ? wk_dense_copy(part, s->dtype) : NULL;
}

/* The same when all is done, without a copy where only the slot and ops that wait have
 * references to its memory. */
static wick_tensor *last_result_of(const wick_tape *tape, const wick_tensor *x) {
    const wk_slot *const s = wk_tape_find(tape, &x->view);
    const wk_buffer *const buf = s->grad ? s->grad->view.buf : NULL;
    const bool is_alone = buf && s->grad->refs == 1 && buf->refs == buf->n_records + 1;
    if (is_alone && covers(s, &x->view) && wk_view_is_dense(&x->view)) return part_of(s, &x->view);
    return result_of(tape, x);
}

/* What stands in x's memory before this node wrote there is not x any more: its gradient is read
 * before it is taken. Writes that came after x was watched are gone through. */
static void see_results(wick_tape *tape, const wk_tape_node *node) {
    for (size_t i = 0; i < tape->wanted.n; i++) {
        const wick_tensor *const x = tape->wanted.x[i];
        if (tape->wanted.grads[i]) continue;
        for (int d = 0; d < node->op.n_dst; d++) {
            const wk_view *const y = &node->op.view[d];
            if (y->buf != x->view.buf || node->version[d] > wk_tape_find(tape, y)->watched)
                continue;
            if (wk_view_overlaps(y, &x->view)) tape->wanted.grads[i] = result_of(tape, x);
        }
    }
}

/* Nodes from the last one down to begin. */
static void go_back(wick_tape *tape, size_t begin) {
    for (size_t i = tape->n_nodes; i > begin && !has_failed(tape); i--) {
        const wk_tape_node node = tape->nodes[i - 1]; /* the list may grow and move meanwhile */
        see_results(tape, &node);
        const wick_scope scope = wick_scope_begin(tape->device);
        wick_tensor *g[WK_MAX_OPERANDS] = {NULL};
        for (int d = 0; d < node.op.n_dst; d++)
            g[d] = take(wk_tape_find(tape, wk_dst(&node.op, d)), wk_dst(&node.op, d));
        wk_back back = {.tape = tape, .node = &node, .g = g[0]};
        /* Of several outputs of the user's operation none has a gradient: its rule says so. */
        for (int d = 1; node.op.code == WK_OP_CUSTOM && !back.g && d < node.op.n_dst; d++)
            back.g = g[d];
        if (back.g && node.segment)
            wk_segment_go_back(tape, &node, back.g);
        else if (back.g)
            wk_gradient_of(node.op.code)(&back);
        wick_scope_end(scope);
    }
}

wk_tape_mark wk_tape_begin_replay(wick_tape *tape) {
    tape->is_off = false;
    return (wk_tape_mark){.n_nodes = tape->n_nodes, .n_slots = tape->n_slots};
}

void wk_tape_end_replay(wick_tape *tape, wk_tape_mark mark, const wick_tensor *y, wick_tensor *g) {
    tape->is_off = true;
    if (tape->is_short) /* what is missing is forgotten with the rest */
        (void)wk_device_fail(tape->device, WICK_ERR_OUT_OF_MEMORY, "grad: no memory to record");
    tape->is_short = false;
    wk_slot *const s = y ? wk_tape_find(tape, &y->view) : NULL;
    if (s && !has_failed(tape)) {
        add_gradient(s, &y->view, g);
        go_back(tape, mark.n_nodes);
    }
    wk_tape_forget(tape, mark);
}

void wk_back_through(const wk_back *b, wk_rebuild_fn *rebuild) {
    const wk_tape_mark mark = wk_tape_begin_replay(b->tape);
    wk_tape_end_replay(b->tape, mark, rebuild(b), b->g);
}

/* --- wick_grad --- */

static bool check_y(const wick_tape *tape, const wick_tensor *y, const wick_tensor *grad_y) {
    if (y->device != tape->device || (grad_y && grad_y->device != tape->device)) {
        wk_device_fail(tape->device, WICK_ERR_ARGUMENT, "grad: %s belongs to another device",
                       y->device != tape->device ? "y" : "grad_y");
        return false;
    }
    if (!wk_operand_is_float("grad", y)) return false;
    return !grad_y ||
           (wk_operand_is_float("grad", grad_y) && wk_operands_same_shape("grad", y, grad_y));
}

static bool check_watched(const wick_tape *tape, wick_tensor *const *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] && wk_tape_find(tape, &x[i]->view) && wk_view_is_writable(&x[i]->view)) continue;
        wk_device_fail(tape->device, WICK_ERR_ARGUMENT,
                       x[i] && wk_tape_find(tape, &x[i]->view)
                           ? "grad: tensor %zu shows elements more than once"
                           : "grad: tensor %zu was not watched",
                       i);
        return false;
    }
    return true;
}

static void compute(wick_tape *tape, wick_tensor *y, wick_tensor *grad_y, wick_tensor *const *x,
                    size_t n, wick_tensor **grads) {
    const wick_scope scope = wick_scope_begin(tape->device);
    wk_slot *const s = wk_tape_find(tape, &y->view);
    for (size_t i = 0; i < n; i++) wk_slot_widen(wk_tape_find(tape, &x[i]->view), &x[i]->view);
    if (s) {
        wk_slot_widen(s, &y->view); /* parts of it may be constants, which no op has shown */
        wick_tensor *const g =
            grad_y ? grad_y : wick_ones(tape->device, s->dtype, wk_tensor_shape_of(y));
        if (g) add_gradient(s, &y->view, g);
        tape->wanted.x = x;
        tape->wanted.grads = grads;
        tape->wanted.n = n;
        go_back(tape, 0);
        tape->wanted.n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        wick_tensor *const seen = grads[i];
        grads[i] = has_failed(tape)
                       ? NULL
                       : wk_scope_keep(scope, seen ? seen : last_result_of(tape, x[i]));
    }
    for (size_t i = 0; i < tape->n_slots; i++) wk_slot_drop_gradient(&tape->slots[i]);
    wick_scope_end(scope);
}

wick_status wick_grad(wick_tape *tape, wick_tensor *y, wick_tensor *grad_y, wick_tensor *const *x,
                      size_t n, wick_tensor **grads) {
    for (size_t i = 0; grads && i < n; i++) grads[i] = NULL;
    if (!y && !tape) return WICK_ERR_ARGUMENT;
    if (!y) return wk_device_fail(tape->device, WICK_ERR_ARGUMENT, "grad: y is NULL");
    if (!tape || (n > 0 && (!x || !grads)))
        return wk_device_fail(y->device, WICK_ERR_ARGUMENT, "grad: there is no %s",
                              tape ? "list of tensors" : "tape");
    wick_error failure = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(tape->device, &failure);
    const bool was_off = wick_no_grad(tape, true);
    if (tape->is_short)
        (void)wk_device_fail(tape->device, WICK_ERR_OUT_OF_MEMORY,
                             "grad: there was no memory to record an operation");
    else if (check_y(tape, y, grad_y) && check_watched(tape, x, n))
        compute(tape, y, grad_y, x, n, grads);
    tape->is_off = was_off;
    wk_device_give_back(tape->device, before);
    if (failure.status == WICK_OK) return WICK_OK;
    for (size_t i = 0; i < n; i++) {
        wick_release(grads[i]);
        grads[i] = NULL;
    }
    return wk_device_fail(tape->device, failure.status, "%s", failure.message);
}
