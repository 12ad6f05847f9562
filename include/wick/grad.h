/* wick/grad.h: gradients in reverse mode (Linnainmaa, 1970): a tape records what operations compute
 * from watched tensors, and wick_grad goes back through it.
 *
 *   wick_tape *tape;
 *   wick_tape_begin(device, &tape);
 *   wick_tape_watch(tape, w);
 *   wick_tensor *loss = wick_mse(wick_linear(x, w, NULL), y, WICK_REDUCTION_MEAN), *dw;
 *   wick_grad(tape, loss, NULL, &w, 1, &dw);
 *   wick_tape_end(tape);
 *
 * Views and operations in place are recorded, too. A tape keeps the memory that its operations read
 * and wrote; what goes through a tape while another one records is recorded there, which gives
 * gradients of gradients. */
#ifndef WICK_GRAD_H
#define WICK_GRAD_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_tape wick_tape;

/* Records from now on, beside other tapes. Ended before the device is closed, on its thread. The
 * reason of a failure is with the device. */
WICK_API wick_status wick_tape_begin(wick_device *device, wick_tape **out);
/* Releases all. NULL is allowed. */
WICK_API void wick_tape_end(wick_tape *tape);
/* Gradients with respect to x, and to other views of its memory, will be asked for: floats.
 * WICK_ERR_DTYPE. */
WICK_API wick_status wick_tape_watch(wick_tape *tape, wick_tensor *x);
/* While it is on, nothing is recorded. Returns whether it was on. */
WICK_API bool wick_no_grad(wick_tape *tape, bool is_on);

/* The gradient of the sum of grad_y * y with respect to each of x [n], as it was when it was
 * watched or, if it was computed from watched tensors, as it is now: new tensors in grads [n],
 * owned as results of operations are, of the shape of x[i], f32 for 16-bit floats. grad_y: of y's
 * shape, or NULL, all ones. What y does not depend on gets zeros. May be called several times.
 *
 * WICK_ERR_UNSUPPORTED: an operation on the way has no gradient. WICK_ERR_STATE: an operand whose
 * value is needed was overwritten since. WICK_ERR_OUT_OF_MEMORY: also where memory ran out while
 * the tape recorded. WICK_ERR_SHAPE, WICK_ERR_DTYPE: grad_y. WICK_ERR_ARGUMENT: y or grad_y belongs
 * to another device than the tape, or x[i] was neither watched nor computed from what was, or shows
 * an element twice. On failure all of grads are NULL, and the sentence is with the device. */
WICK_API wick_status wick_grad(wick_tape *tape, wick_tensor *y, wick_tensor *grad_y,
                               wick_tensor *const *x, size_t n, wick_tensor **grads);

/* A function of tensors x [n]: its result, owned as results of operations are; NULL on failure. */
typedef wick_tensor *wick_segment_fn(void *user, wick_tensor *const *x);
enum { WICK_MAX_SEGMENT_INPUTS = 16 };

/* y = fn(user, x), of which the tape keeps x alone: wick_grad runs fn again when it goes back
 * (gradient checkpointing: Chen et al., 2016), so that the memory of what fn computes on its way is
 * taken twice for a short time instead of once until the tape ends. The gradients are the same
 * ones, to the last bit on the CPU: random numbers are the same the second time, too.
 *
 * fn, user and whatever else fn reads (watched tensors may be among it) stay, unchanged, until the
 * tape ends; fn changes nothing that it did not make. n is at most WICK_MAX_SEGMENT_INPUTS; tape
 * NULL: fn runs, nothing is recorded. Returns what fn returns; also NULL where a tensor is NULL
 * or there is no fn. WICK_ERR_STATE from wick_grad: a tensor of x was overwritten since, or fn
 * gave something else the second time. */
WICK_API wick_tensor *wick_recompute(wick_tape *tape, wick_segment_fn *fn, void *user,
                                     wick_tensor *const *x, size_t n);

#ifdef __cplusplus
}
#endif

#endif
