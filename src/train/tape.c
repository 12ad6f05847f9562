/* train/tape.c: recording operations. */
#include "train/tape_struct.h"

#include "ops/compose.h"

/* --- Slots --- */

wk_slot *wk_tape_find(const wick_tape *tape, const wk_view *view) {
    uint32_t i;
    if (!view->buf || !wk_tape_has_gradient(view->dtype)) return NULL;
    const bool is_known = wk_map64_get(&tape->slot_of, view->buf->id, &i) && i < tape->n_slots;
    return is_known && tape->slots[i].buf == view->buf ? &tape->slots[i] : NULL;
}

void wk_slot_widen(wk_slot *s, const wk_view *view) {
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    const int64_t count = (int64_t)end / wk_element_bytes(view->dtype);
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
wk_slot *wk_tape_slot(wick_tape *tape, const wk_view *view) {
    wk_slot *s = wk_tape_find(tape, view);
    if (!s) {
        wk_heap *const heap = wk_device_heap(tape->device);
        if (!reserve(heap, (void **)&tape->slots, sizeof *s, tape->n_slots, &tape->slot_capacity) ||
            wk_map64_put(&tape->slot_of, view->buf->id, (uint32_t)tape->n_slots) != WICK_OK)
            return NULL;
        s = &tape->slots[tape->n_slots++];
        *s =
            (wk_slot){.buf = view->buf, .dtype = wk_wide_dtype(view->dtype), .watched = UINT32_MAX};
        wk_buffer_retain(s->buf);
    }
    wk_slot_widen(s, view);
    return s;
}

void wk_slot_drop_gradient(wk_slot *s) {
    wick_release(s->grad);
    s->grad = NULL;
}

/* --- Recording --- */

wk_tape_node *wk_tape_add_node(wick_tape *tape) {
    wk_heap *const heap = wk_device_heap(tape->device);
    if (!reserve(heap, (void **)&tape->nodes, sizeof *tape->nodes, tape->n_nodes,
                 &tape->node_capacity))
        return NULL;
    tape->nodes[tape->n_nodes] = (wk_tape_node){.segment = NULL};
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
        if (!wk_tape_find(tape, view)) continue;
        if (i < op->n_dst) is_overwriting = true;
        if (i >= op->n_dst || wk_op_operand(op, i)->access & WK_READ) *is_dependent = true;
    }
    return *is_dependent || is_overwriting;
}

static bool add_slots(wick_tape *tape, const wk_op *op, bool is_dependent) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        wk_slot *const s = wk_tape_find(tape, view);
        if (s) wk_slot_widen(s, view);
        const bool is_new =
            !s && i < op->n_dst && is_dependent && wk_tape_has_gradient(view->dtype);
        if (is_new && !wk_tape_slot(tape, view)) return false;
    }
    return true;
}

static void record(void *user, const wk_call *call) {
    wick_tape *const tape = user;
    const wk_op *const op = &call->op;
    bool is_dependent;
    if (tape->is_off || tape->is_short || !is_of_interest(tape, op, &is_dependent)) return;
    wk_tape_node *const node = add_slots(tape, op, is_dependent) ? wk_tape_add_node(tape) : NULL;
    if (!node) {
        tape->is_short = true;
        return;
    }
    wk_op_copy(&node->op, op);
    wk_op_retain(op);
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!op->view[i].buf) continue;
        node->version[i] = op->view[i].buf->version;
        node->is_lost[i] = i >= op->n_dst && overwrites(op, &op->view[i]);
    }
}

/* What is written from outside has no gradient, as what a fill writes. Except for a watched tensor:
 * it may get its values so, and its gradient is the one at these. */
static void record_write(void *user, const wick_tensor *x) {
    wick_tape *const tape = user;
    const wk_slot *const s = wk_tape_find(tape, &x->view);
    if (tape->is_off || tape->is_short || !s || s->watched != UINT32_MAX) return;
    wk_tape_node *const node = wk_tape_add_node(tape);
    if (!node) {
        tape->is_short = true;
        return;
    }
    node->op.code = WK_OP_FILL;
    node->op.n_dst = 1;
    node->op.view[0] = x->view;
    node->version[0] = x->view.buf->version;
    wk_op_retain(&node->op);
}

void wk_tape_forget(wick_tape *tape, wk_tape_mark mark) {
    while (tape->n_nodes > mark.n_nodes) {
        const wk_tape_node *const node = &tape->nodes[--tape->n_nodes];
        wk_op_release(tape->device, &node->op);
        wk_segment_free(wk_device_heap(tape->device), node->segment);
    }
    while (tape->n_slots > mark.n_slots) {
        wk_slot *const s = &tape->slots[--tape->n_slots];
        wk_slot_drop_gradient(s);
        wk_buffer_release(tape->device, s->buf);
    }
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
        tape->observer = wk_observer_add(
            device, &(wk_observer_hooks){.op = record, .write = record_write, .user = tape});
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
    wk_tape_forget(tape, (wk_tape_mark){.n_nodes = 0});
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
    wk_slot *const s = wk_tape_slot(tape, &x->view);
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
