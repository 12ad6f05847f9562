/* train/tape.h: how gradients of operations are computed.
 *
 * Gradients belong to memory: each buffer that watched tensors reach has one as large as itself, in
 * which a view of the buffer's memory names the gradients of its elements. Going back through an
 * op, what stands at its destination is taken, for it was overwritten there, and what the op's rule
 * makes of it is added at its sources. So views, copies into parts of tensors and ops in place need
 * no rules. */
#ifndef WK_TRAIN_TAPE_H
#define WK_TRAIN_TAPE_H

#include "tensor/tensor.h"

#include <wick/grad.h>

typedef struct wk_segment wk_segment;

/* An op, and the versions of its operands' memory when it was recorded. */
typedef struct wk_tape_node {
    wk_op op;
    uint32_t version[WK_MAX_OPERANDS];
    bool is_lost[WK_MAX_OPERANDS]; /* sources that the op itself overwrote */
    wk_segment *segment;           /* not NULL: a function ran; op has its result alone */
} wk_tape_node;

/* Going back through one op: g is the gradient of its first destination, of that view's shape; f32,
 * or f64. */
typedef struct wk_back {
    wick_tape *tape;
    const wk_tape_node *node;
    wick_tensor *g;
} wk_back;

/* Rules: what they make belongs to a scope that ends with them; failures are with the device. */
typedef void wk_gradient_fn(const wk_back *b);
/* By opcode. */
wk_gradient_fn *wk_gradient_of(wk_opcode code);

/* Whether the gradient of source i is wanted. */
bool wk_back_wants(const wk_back *b, int i);
/* Source i as the op saw it; floats as g's dtype, except for weights that a device has laid out.
 * NULL: it is absent, or was overwritten since, which fails. */
wick_tensor *wk_back_source(const wk_back *b, int i);
/* The same for destination i. */
wick_tensor *wk_back_result(const wk_back *b, int i);
/* Adds the gradient of source i, of its view's shape; NULL: it could not be computed. */
void wk_back_give(const wk_back *b, int i, wick_tensor *gradient);
/* The same for what stood at the first destination before, where the op reads it. */
void wk_back_give_before(const wk_back *b, wick_tensor *gradient);
/* The op again, of other ones, which are gone back through instead. */
typedef wick_tensor *wk_rebuild_fn(const wk_back *b);
void wk_back_through(const wk_back *b, wk_rebuild_fn *rebuild);

static inline const wk_op *wk_back_op(const wk_back *b) { return &b->node->op; }

#endif
