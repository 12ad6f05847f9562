/* tensor/plan.h: a recorded sequence of ops that is replayed without allocating.
 *
 * Between wk_plan_begin and wk_plan_end ops are recorded instead of queued and tensors made are
 * places, not memory: wk_plan_end lets those whose lives do not overlap share buffers. Tensors that
 * existed before are bound as they are: what is written to them before a run is that run's input.
 */
#ifndef WK_TENSOR_PLAN_H
#define WK_TENSOR_PLAN_H

#include "tensor/tensor.h"

typedef struct wk_plan wk_plan;

/* Buffers that the plans of one owner share; plans of one pool must not run interleaved, and what
 * one of them leaves in its outputs is gone when another one runs. */
typedef struct wk_plan_pool wk_plan_pool;
wick_status wk_plan_pool_make(wick_device *device, wk_plan_pool **out);
void wk_plan_pool_free(wk_plan_pool *pool);

/* Plans do not nest. */
wick_status wk_plan_begin(wick_device *device, wk_plan_pool *pool);
/* outputs: tensors made while recording that are read after runs; they may be used until another
 * plan of the pool runs, and until the plan is freed. All other tensors made since wk_plan_begin
 * must be released before the plan is freed. *out is set also on failure, so that the caller can
 * free it after them. */
wick_status wk_plan_end(wick_device *device, wick_tensor *const *outputs, size_t n_outputs,
                        wk_plan **out);
/* Ends a recording that will not run itself; a later one like it will. Begins to compile what its
 * ops need. Such a recording needs no pool. Only a lack of memory is reported, other failures are
 * left to the later recording. */
wick_status wk_plan_rehearse(wick_device *device, wk_plan **out);
/* Ends a recording that failed: release the tensors made since, then free *out. */
void wk_plan_abort(wick_device *device, wk_plan **out);
/* A kernel was refused by the device's compiler since it was begun: it may be one of the plan's,
 * which is recorded again, then. */
bool wk_plan_is_outdated(const wk_plan *plan);
/* The kernel that computes some of its ops together, a row of that code (WK_OPS_*); NULL: none. */
const struct wk_kernel *wk_plan_joint_kernel(const wk_plan *plan, wk_opcode code);
/* Queues the whole sequence once; never waits. Replayed by the backend when it can; op by op while
 * an observer, verification or a profile is on, and for plans with an op that falls back. */
wick_status wk_plan_run(wk_plan *plan);
/* Runs that have not been computed yet are dropped. */
void wk_plan_free(wk_plan *plan);

#endif
