/* train/segment.c: functions that a tape does not record but runs again when it goes back. */
#include "train/tape_struct.h"

#include "core/shape.h"
#include "ops/operand.h"

static size_t segment_bytes(size_t n) {
    return sizeof(wk_segment) + n * sizeof *((wk_segment *)NULL)->inputs;
}

void wk_segment_free(wk_heap *heap, wk_segment *segment) {
    if (!segment) return;
    for (size_t i = 0; i < segment->n; i++) wick_release(segment->inputs[i].tensor);
    wk_free(heap, segment, segment_bytes(segment->n));
}

/* NULL: no memory. */
static wk_segment *make_segment(wick_tape *tape, wick_segment_fn *fn, void *user,
                                wick_tensor *const *x, size_t n) {
    wk_segment *const made = wk_alloc_zeroed(wk_device_heap(tape->device), segment_bytes(n));
    if (!made) return NULL;
    made->fn = fn;
    made->user = user;
    made->seed = wick_device_seed(tape->device);
    made->stream = *wk_device_streams(tape->device);
    made->n = n;
    for (size_t i = 0; i < n; i++) {
        made->inputs[i].tensor = wick_retain(x[i]);
        made->inputs[i].version = x[i]->view.buf->version;
    }
    return made;
}

/* The segment belongs to the tape from now on. */
static void add_segment(wick_tape *tape, wk_segment *segment, const wick_tensor *y) {
    wk_tape_node *const node =
        segment && wk_tape_slot(tape, &y->view) ? wk_tape_add_node(tape) : NULL;
    if (!node) {
        wk_segment_free(wk_device_heap(tape->device), segment);
        tape->is_short = true;
        return;
    }
    node->op.n_dst = 1;
    node->op.view[0] = y->view;
    node->version[0] = y->view.buf->version;
    node->segment = segment;
    wk_op_retain(&node->op);
}

/* The device of the operands; NULL: they are not complete. */
static wick_device *check(const wick_tape *tape, wick_segment_fn *fn, wick_tensor *const *x,
                          size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (!x[i]) return NULL;
    wick_device *const device = tape ? tape->device : x && n > 0 ? x[0]->device : NULL;
    if (!device || (fn && (x || n == 0) && n <= WICK_MAX_SEGMENT_INPUTS)) return device;
    wk_device_fail(device, WICK_ERR_ARGUMENT,
                   "recompute: needs a function and up to %d tensors, got %zu",
                   (int)WICK_MAX_SEGMENT_INPUTS, n);
    return NULL;
}

wick_tensor *wick_recompute(wick_tape *tape, wick_segment_fn *fn, void *user, wick_tensor *const *x,
                            size_t n) {
    wick_device *const device = check(tape, fn, x, n);
    if (!device) return NULL;
    const bool is_recorded = tape && !tape->is_off && !tape->is_short;
    wk_segment *const segment = is_recorded ? make_segment(tape, fn, user, x, n) : NULL;
    const wick_scope scope = wick_scope_begin(device);
    if (is_recorded) tape->is_off = true;
    wick_tensor *y = fn(user, x);
    /* What fn gives is its own: the gradient there is of nothing that was there before. */
    if (is_recorded && y && wk_tape_find(tape, &y->view)) y = wk_dense_copy(y, y->view.dtype);
    if (is_recorded) tape->is_off = false;
    if (is_recorded && y && wk_tape_has_gradient(y->view.dtype))
        add_segment(tape, segment, y);
    else
        wk_segment_free(wk_device_heap(device), segment);
    return wick_scope_result(scope, y);
}

void wk_segment_go_back(wick_tape *tape, const wk_tape_node *node, wick_tensor *g) {
    const wk_segment *const segment = node->segment;
    wick_tensor *x[WICK_MAX_SEGMENT_INPUTS];
    for (size_t i = 0; i < segment->n; i++) {
        x[i] = segment->inputs[i].tensor;
        if (x[i]->view.buf->version == segment->inputs[i].version) continue;
        wk_device_fail(tape->device, WICK_ERR_STATE,
                       "the gradient of a segment needs its tensor %zu, which was overwritten", i);
        return;
    }
    uint64_t *const streams = wk_device_streams(tape->device);
    const uint64_t seed = wick_device_seed(tape->device), stream = *streams;
    const wk_tape_mark mark = wk_tape_begin_replay(tape);
    wick_device_set_seed(tape->device, segment->seed);
    *streams = segment->stream;
    wick_tensor *y = segment->fn(segment->user, x);
    wick_device_set_seed(tape->device, seed);
    *streams = stream;
    const wk_view *const before = wk_dst(&node->op, 0);
    const wick_shape want = wick_shape_of(before->rank, before->extent);
    const wick_shape got = y ? wk_tensor_shape_of(y) : WICK_SCALAR;
    if (!y || !wk_shape_equal(&got, &want)) {
        wk_device_fail(tape->device, WICK_ERR_STATE, "a segment's function gave %s, run again",
                       y ? "another shape" : "nothing");
        y = NULL;
    }
    wk_tape_end_replay(tape, mark, y, g);
}
