/* train/tape_struct.h: the inside of a tape, for tape.c, backward.c and segment.c. */
#ifndef WK_TRAIN_TAPE_STRUCT_H
#define WK_TRAIN_TAPE_STRUCT_H

#include "core/dtype.h"
#include "core/map.h"
#include "tensor/observe.h"
#include "train/tape.h"

/* A buffer that watched tensors reach, and its gradient. */
typedef struct wk_slot {
    wk_buffer *buf;
    wick_dtype dtype;  /* of the gradient */
    int64_t count;     /* elements of the buffer that ops named */
    wick_tensor *grad; /* [count]; NULL: zeros */
    bool is_own;       /* no other tensor has grad's memory */
    uint32_t watched;  /* version of the buffer when it was watched; UINT32_MAX: never */
} wk_slot;

/* A function that runs again when the tape goes back through it; inputs [n] and their versions. */
struct wk_segment {
    wick_segment_fn *fn;
    void *user;
    uint64_t seed, stream; /* of the device's random numbers when fn ran: the next stream */
    size_t n;
    struct {
        wick_tensor *tensor;
        uint32_t version;
    } inputs[];
};

struct wick_tape {
    wick_device *device;
    wk_observer *observer;
    wk_tape_node *nodes;
    size_t n_nodes, node_capacity;
    wk_slot *slots;
    size_t n_slots, slot_capacity;
    wk_map64 slot_of; /* by the buffer's id; may name slots that were dropped */
    struct {
        wick_tensor *const *x;
        wick_tensor **grads; /* NULL: not computed yet */
        size_t n;
    } wanted;      /* by the call of wick_grad that runs */
    bool is_off;   /* nothing is recorded */
    bool is_short; /* memory ran out: an op is missing */
};

/* Floats; those of 8 bits are stored alone, and pass on what they get. */
static inline bool wk_tape_has_gradient(wick_dtype dtype) {
    return wk_dtype_is_float(dtype) || dtype == WICK_F8_E4M3 || dtype == WICK_F8_E5M2;
}
/* The slot of a view of floats; NULL: there is none. */
wk_slot *wk_tape_find(const wick_tape *tape, const wk_view *view);
/* Finds or makes it; NULL: no memory. */
wk_slot *wk_tape_slot(wick_tape *tape, const wk_view *view);
/* The slot's gradient is at least as large as view. */
void wk_slot_widen(wk_slot *slot, const wk_view *view);
void wk_slot_drop_gradient(wk_slot *slot);
/* A node without an operation; NULL: no memory. */
wk_tape_node *wk_tape_add_node(wick_tape *tape);

/* How much was recorded. */
typedef struct wk_tape_mark {
    size_t n_nodes, n_slots;
} wk_tape_mark;
/* Forgets what was recorded since. */
void wk_tape_forget(wick_tape *tape, wk_tape_mark mark);
/* While wick_grad goes back: records again, until wk_tape_end_replay, which goes back through what
 * was recorded, from the gradient g of its result y, and forgets it. y NULL: it has failed. */
wk_tape_mark wk_tape_begin_replay(wick_tape *tape);
void wk_tape_end_replay(wick_tape *tape, wk_tape_mark mark, const wick_tensor *y, wick_tensor *g);

/* segment.c: goes back through a segment; g: the gradient of its result. */
void wk_segment_go_back(wick_tape *tape, const wk_tape_node *node, wick_tensor *g);
/* NULL is allowed. */
void wk_segment_free(wk_heap *heap, wk_segment *segment);

static inline int64_t wk_element_bytes(wick_dtype dtype) {
    return wk_dtype_get(dtype)->block_bytes;
}

#endif
