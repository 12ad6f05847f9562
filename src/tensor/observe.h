/* tensor/observe.h: observers: hooks that see every operation and every view of a device as it is
 * asked for. Importance matrices are made with them; a tape of gradients needs both kinds.
 *
 *   x = wick_arange(...)          op    FILL-like, result x
 *   t = wick_transpose(x, 0, 1)   view  PERMUTE, from x to t
 *   y = wick_add(x, t)            op    BINARY, result y, operands x and t
 *
 * Any number may be on at once; they are called in the order in which they were added. They can be
 * added and removed at any time, also by hooks: one that is added by a hook sees what comes next,
 * one that is removed by a hook is not called again. While one is on, plans are not replayed but
 * queued op by op. */
#ifndef WK_TENSOR_OBSERVE_H
#define WK_TENSOR_OBSERVE_H

#include "tensor/tensor.h"

typedef struct wk_observer wk_observer;

/* A view that was just made: `to` shows elements of the memory of `from` and has its dtype. Both
 * belong to others: a hook that needs them later retains them. The step is valid for the call. */
typedef struct wk_view_made {
    wick_tensor *from, *to;
    const wk_view_step *step;
} wk_view_made;

typedef struct wk_observer_hooks {
    /* An op that is sound, just before it is queued or, while a plan is recorded, recorded (its
     * buffers are places then). Operands are borrowed as above and have their final shapes.
     * op.view[i] lies in the memory of operand[i] and may show it otherwise: broadcast, dims in
     * another order, a part. The same offset and strides in a tensor laid out like that memory, a
     * gradient for instance, name the same elements. Destinations have had their buffer's version
     * raised. Runs of a plan show its ops as they were joined (join.c), without operands (all
     * NULL). What a hook queues is queued, and shown, before the op. NULL: no hook. */
    void (*op)(void *user, const wk_call *call);
    /* NULL: no hook. Views that ops make of their operands for themselves are not shown. */
    void (*view)(void *user, const wk_view_made *made);
    /* wick_write wrote to x, whose buffer's version it has raised. NULL: no hook. */
    void (*write)(void *user, const wick_tensor *x);
    void *user;
} wk_observer_hooks;

/* NULL: no memory. Removed by the caller, or with the device. */
wk_observer *wk_observer_add(wick_device *device, const wk_observer_hooks *hooks);
/* With its looks. NULL is allowed. */
void wk_observer_remove(wk_observer *observer);

/* fn is called with the observer's user when all that was queued before has been computed, and
 * before the op that is queued next is; the operands of op are alive until then. It is not called
 * where one of them is spoiled, or lost. fn queues nothing. */
typedef void (*wk_look_fn)(void *user, const wk_op *op);
wick_status wk_observer_look(wk_observer *observer, const wk_op *op, wk_look_fn fn);

#endif
