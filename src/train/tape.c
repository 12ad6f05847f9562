/* train/tape.c: recording operations, and going back through them. */
#include "train/tape.h"

#include "core/dtype.h"
#include "core/map.h"
#include "core/shape.h"
#include "ops/compose.h"
#include "tensor/observe.h"

#include <wick/ops.h>

#include <assert.h>
#include <inttypes.h>

/* The gradient of a buffer. */
typedef struct slot {
    wk_buffer *buf;
    wick_dtype dtype;  /* of the gradient */
    int64_t count;     /* elements of the buffer that ops named */
    wick_tensor *grad; /* [count]; NULL: zeros */
    bool is_own;       /* no other tensor has grad's memory */
    uint32_t watched;  /* its version when that was done; UINT32_MAX: it was not */
} slot;

struct wick_tape {
    wick_device *device;
    wk_observer *observer;
    wk_tape_node *nodes;
    size_t n_nodes, node_capacity;
    slot *slots;
    size_t n_slots, slot_capacity;
    wk_map64 slot_of; /* by the buffer's id */
    struct {
        wick_tensor *const *x;
        wick_tensor **grads; /* NULL: not seen yet */
        size_t n;
    } wanted;      /* by the call that runs */
    bool is_off;   /* nothing is recorded */
    bool is_short; /* memory was short: some op is missing */
};

/* --- Slots --- */

static slot *find_slot(const wick_tape *tape, const wk_view *view) {
    uint32_t i;
    if (!view->buf || !wk_dtype_is_float(view->dtype)) return NULL;
    return wk_map64_get(&tape->slot_of, view->buf->id, &i) ? &tape->slots[i] : NULL;
}

static int64_t element_bytes(wick_dtype dtype) { return wk_dtype_get(dtype)->block_bytes; }

static void widen_slot(slot *s, const wk_view *view) {
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    const int64_t count = (int64_t)end / element_bytes(view->dtype);
    if (count > s->count) s->count = count;
}

/* Room for one more item; false: no memory. */
static bool reserve(wk_heap *heap, void **items, size_t size, size_t count, size_t *capacity) {
    if (count < *capacity) return true;
    const size_t more = *capacity > 0 ? 2 * *capacity : 16;
    void *const grown = wk_realloc(heap, *items, *capacity * size, more * size);
    if (!grown) return false;
    *items = grown;
    *capacity = more;
    return true;
}

/* Finds or makes the slot of a view of floats; NULL: no memory. */
static slot *make_slot(wick_tape *tape, const wk_view *view) {
    slot *s = find_slot(tape, view);
    if (!s) {
        wk_heap *const heap = wk_device_heap(tape->device);
        if (!reserve(heap, (void **)&tape->slots, sizeof *s, tape->n_slots, &tape->slot_capacity) ||
            wk_map64_put(&tape->slot_of, view->buf->id, (uint32_t)tape->n_slots) != WICK_OK)
            return NULL;
        s = &tape->slots[tape->n_slots++];
        *s = (slot){.buf = view->buf, .dtype = wk_wide_dtype(view->dtype), .watched = UINT32_MAX};
        wk_buffer_retain(s->buf);
    }
    widen_slot(s, view);
    return s;
}

static void drop_gradient(slot *s) {
    wick_release(s->grad);
    s->grad = NULL;
}

/* --- Recording --- */

static wk_tape_node *add_node(wick_tape *tape) {
    wk_heap *const heap = wk_device_heap(tape->device);
    if (!reserve(heap, (void **)&tape->nodes, sizeof *tape->nodes, tape->n_nodes,
                 &tape->node_capacity))
        return NULL;
    return &tape->nodes[tape->n_nodes++];
}

static bool overwrites(const wk_op *op, const wk_view *view) {
    for (int d = 0; d < op->n_dst; d++)
        if (wk_view_overlaps(&op->view[d], view)) return true;
    return false;
}

/* An op is of interest where it reads what depends on a watched tensor, or writes over that. */
static bool is_of_interest(const wick_tape *tape, const wk_op *op, bool *is_dependent) {
    bool is_overwriting = false;
    *is_dependent = false;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        if (view->buf && view->buf->place) return false; /* a plan is being recorded */
        if (!find_slot(tape, view)) continue;
        if (i < op->n_dst) is_overwriting = true;
        if (i >= op->n_dst || wk_op_get_info(op->code)->operands[i].access == WK_READ_WRITE)
            *is_dependent = true;
    }
    return *is_dependent || is_overwriting;
}

static bool add_slots(wick_tape *tape, const wk_op *op, bool is_dependent) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        slot *const s = find_slot(tape, view);
        if (s) widen_slot(s, view);
        const bool is_new = !s && i < op->n_dst && is_dependent && wk_dtype_is_float(view->dtype);
        if (is_new && !make_slot(tape, view)) return false;
    }
    return true;
}

static void record(void *user, const wk_call *call) {
    wick_tape *const tape = user;
    const wk_op *const op = &call->op;
    bool is_dependent;
    if (tape->is_off || tape->is_short || !is_of_interest(tape, op, &is_dependent)) return;
    wk_tape_node *const node = add_slots(tape, op, is_dependent) ? add_node(tape) : NULL;
    if (!node) {
        tape->is_short = true;
        return;
    }
    *node = (wk_tape_node){.op = *op};
    wk_op_retain(op);
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!op->view[i].buf) continue;
        node->version[i] = op->view[i].buf->version;
        node->is_lost[i] = i >= op->n_dst && overwrites(op, &op->view[i]);
    }
}

/* Forgets all nodes from n on. */
static void drop_nodes(wick_tape *tape, size_t n) {
    while (tape->n_nodes > n) wk_op_release(tape->device, &tape->nodes[--tape->n_nodes].op);
}

wick_status wick_tape_begin(wick_device *device, wick_tape **out) {
    if (out) *out = NULL;
    if (!device) return WICK_ERR_ARGUMENT;
    if (!out) return wk_device_fail(device, WICK_ERR_ARGUMENT, "tape: nowhere to put it");
    wk_heap *const heap = wk_device_heap(device);
    wick_tape *const tape = wk_alloc_zeroed(heap, sizeof *tape);
    if (tape) {
        *tape = (wick_tape){.device = device};
        wk_map64_init(&tape->slot_of, heap);
        tape->observer = wk_observer_add(device, &(wk_observer_hooks){.op = record, .user = tape});
    }
    if (!tape || !tape->observer) {
        wk_free(heap, tape, sizeof *tape);
        return wk_device_fail(device, WICK_ERR_OUT_OF_MEMORY, "no memory for a tape");
    }
    *out = tape;
    return WICK_OK;
}

void wick_tape_end(wick_tape *tape) {
    if (!tape) return;
    wk_heap *const heap = wk_device_heap(tape->device);
    wk_observer_remove(tape->observer);
    drop_nodes(tape, 0);
    for (size_t i = 0; i < tape->n_slots; i++) {
        drop_gradient(&tape->slots[i]);
        wk_buffer_release(tape->device, tape->slots[i].buf);
    }
    wk_map64_release(&tape->slot_of);
    wk_free(heap, tape->nodes, tape->node_capacity * sizeof *tape->nodes);
    wk_free(heap, tape->slots, tape->slot_capacity * sizeof *tape->slots);
    wk_free(heap, tape, sizeof *tape);
}

wick_status wick_tape_watch(wick_tape *tape, wick_tensor *x) {
    if (!x) return WICK_ERR_ARGUMENT;
    if (!tape) return wk_device_fail(x->device, WICK_ERR_ARGUMENT, "watch: there is no tape");
    if (x->device != tape->device)
        return wk_device_fail(tape->device, WICK_ERR_ARGUMENT,
                              "watch: the tensor belongs to another device");
    if (!wk_operand_is_float("watch", x) || !wk_operand_is_strided("watch", x))
        return wk_device_err(tape->device)->status;
    slot *const s = make_slot(tape, &x->view);
    if (!s)
        return wk_device_fail(tape->device, WICK_ERR_OUT_OF_MEMORY, "no memory to watch a tensor");
    s->watched = s->buf->version;
    return WICK_OK;
}

bool wick_no_grad(wick_tape *tape, bool is_on) {
    if (!tape) return false;
    const bool was_on = tape->is_off;
    tape->is_off = is_on;
    return was_on;
}

/* --- Gradients of memory --- */

/* The part of a gradient that belongs to a view of its buffer. */
static wick_tensor *part_of(const slot *s, const wk_view *view) {
    wk_view part = *view;
    part.buf = s->grad->view.buf;
    part.dtype = s->dtype;
    part.layout = WK_LAYOUT_RAW;
    part.offset = s->grad->view.offset + view->offset / (uint64_t)element_bytes(view->dtype) *
                                             (uint64_t)element_bytes(s->dtype);
    return wk_tensor_of_view(s->grad->device, &part);
}

/* All elements of the slot, each once. */
static bool covers(const slot *s, const wk_view *view) {
    return view->offset == 0 && wk_view_count(view) == s->count && wk_view_is_writable(view);
}

static void set_gradient(slot *s, wick_tensor *gradient, bool is_own) {
    wick_retain(gradient);
    drop_gradient(s);
    s->grad = gradient;
    s->is_own = is_own;
}

/* Makes it the slot's own, so that it can be changed in place. */
static bool own(slot *s) {
    if (!s->is_own) {
        wick_tensor *const copy = wk_dense_copy(s->grad, s->dtype);
        if (!copy) return false;
        set_gradient(s, copy, true);
    }
    return true;
}

static void add_part(slot *s, const wk_view *view, wick_tensor *g) {
    const wick_shape all = {.rank = 1, .extent = {s->count}};
    const bool is_all = covers(s, view);
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
static void add_overlapping(slot *s, const wk_view *view, wick_tensor *g) {
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
        part.offset += (uint64_t)(i * view->stride[dim] * element_bytes(view->dtype));
        part.extent[dim] = 1;
        add_overlapping(s, &part, wick_narrow(g, dim, i, 1));
    }
}

/* g has the shape of view; what is repeated with stride 0 gets the sum. */
static void add_gradient(slot *s, const wk_view *view, wick_tensor *g) {
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
static wick_tensor *take(slot *s, const wk_view *view) {
    if (!s || !s->grad || wk_view_count(view) == 0) return NULL;
    wick_tensor *const part = part_of(s, view);
    if (covers(s, view)) {
        drop_gradient(s);
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
        const wk_op_info *const info = wk_op_get_info(op->code);
        wk_device_fail(b->tape->device, WICK_ERR_STATE,
                       "the gradient of %s needs its operand %s, which was overwritten", info->name,
                       info->operands[i].name);
        return NULL;
    }
    wick_tensor *const x = wk_tensor_of_view(b->tape->device, view);
    return wk_dtype_is_float(view->dtype) ? wk_widened(x) : x;
}

bool wk_back_wants(const wk_back *b, int i) {
    return find_slot(b->tape, wk_src(wk_back_op(b), i)) != NULL;
}

wick_tensor *wk_back_source(const wk_back *b, int i) {
    return operand(b, wk_back_op(b)->n_dst + i);
}

wick_tensor *wk_back_result(const wk_back *b, int i) { return operand(b, i); }

static void give(const wk_back *b, const wk_view *view, wick_tensor *gradient) {
    slot *const s = find_slot(b->tape, view);
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
    const slot *const s = find_slot(tape, &x->view);
    if (!s->grad) return wick_zeros(tape->device, s->dtype, wk_tensor_shape_of(x));
    wick_tensor *const part = part_of(s, &x->view);
    return part ? wk_dense_copy(part, s->dtype) : NULL;
}

/* What stands in x's memory before this node wrote there is not x any more: its gradient is read
 * before it is taken. Writes that came after x was watched are gone through. */
static void see_results(wick_tape *tape, const wk_tape_node *node) {
    for (size_t i = 0; i < tape->wanted.n; i++) {
        const wick_tensor *const x = tape->wanted.x[i];
        if (tape->wanted.grads[i]) continue;
        for (int d = 0; d < node->op.n_dst; d++) {
            const wk_view *const y = &node->op.view[d];
            if (y->buf != x->view.buf || node->version[d] > find_slot(tape, y)->watched) continue;
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
            g[d] = take(find_slot(tape, wk_dst(&node.op, d)), wk_dst(&node.op, d));
        wk_back back = {.tape = tape, .node = &node, .g = g[0]};
        /* Of several outputs of the user's operation none has a gradient: its rule says so. */
        for (int d = 1; node.op.code == WK_OP_CUSTOM && !back.g && d < node.op.n_dst; d++)
            back.g = g[d];
        if (back.g) wk_gradient_of(node.op.code)(&back);
        wick_scope_end(scope);
    }
}

void wk_back_through(const wk_back *b, wk_rebuild_fn *rebuild) {
    wick_tape *const tape = b->tape;
    const size_t begin = tape->n_nodes;
    tape->is_off = false;
    wick_tensor *const y = rebuild(b);
    tape->is_off = true;
    slot *const s = y ? find_slot(tape, &y->view) : NULL;
    if (s) add_gradient(s, &y->view, b->g);
    go_back(tape, begin);
    drop_nodes(tape, begin);
}

/* --- wick_grad --- */

static bool check_grad_y(const wick_tensor *y, const wick_tensor *grad_y) {
    if (!grad_y) return true;
    if (!wk_operands_present("grad", (wick_tensor *[]){(wick_tensor *)y, (wick_tensor *)grad_y}, 2))
        return false;
    return wk_operand_is_float("grad", grad_y) && wk_operands_same_shape("grad", y, grad_y);
}

static bool check_watched(const wick_tape *tape, wick_tensor *const *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] && find_slot(tape, &x[i]->view) && wk_view_is_writable(&x[i]->view)) continue;
        wk_device_fail(tape->device, WICK_ERR_ARGUMENT,
                       x[i] && find_slot(tape, &x[i]->view)
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
    slot *const s = find_slot(tape, &y->view);
    for (size_t i = 0; i < n; i++) widen_slot(find_slot(tape, &x[i]->view), &x[i]->view);
    if (s) {
        widen_slot(s, &y->view); /* parts of it may be constants, which no op has shown */
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
        grads[i] =
            has_failed(tape) ? NULL : wk_scope_keep(scope, seen ? seen : result_of(tape, x[i]));
    }
    for (size_t i = 0; i < tape->n_slots; i++) drop_gradient(&tape->slots[i]);
    wick_scope_end(scope);
}

wick_status wick_grad(wick_tape *tape, wick_tensor *y, wick_tensor *grad_y, wick_tensor *const *x,
                      size_t n, wick_tensor **grads) {
    for (size_t i = 0; grads && i < n; i++) grads[i] = NULL;
    if (!y) return WICK_ERR_ARGUMENT;
    if (!tape || (n > 0 && (!x || !grads)))
        return wk_device_fail(y->device, WICK_ERR_ARGUMENT, "grad: there is no %s",
                              tape ? "list of tensors" : "tape");
    wick_error failure = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(tape->device, &failure);
    const bool was_off = wick_no_grad(tape, true);
    if (tape->is_short)
        (void)wk_device_fail(tape->device, WICK_ERR_STATE,
                             "grad: memory was short while the tape recorded");
    else if (wk_operand_is_float("grad", y) && check_grad_y(y, grad_y) && check_watched(tape, x, n))
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
