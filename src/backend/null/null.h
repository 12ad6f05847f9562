/* backend/null/null.h: the backend that trusts no caller. It hands every command on to another
 * backend, but first checks operands, aliasing, lifetimes and the limits of core WebGPU; on request
 * it answers late and out of order (WICK_NULL_*), finds no memory or goes away. Its buffers have no
 * host address.
 *
 * Once it has gone away, its calls fail; with WICK_NULL_LATE they are swallowed, as a GPU does,
 * until a poll says so. */
#ifndef WK_BACKEND_NULL_H
#define WK_BACKEND_NULL_H

#include "backend/backend.h"

extern const wk_backend wk_backend_null;

/* Is as if taken away at the n-th call from now on, from 1; 0: not any more. */
void wk_null_lose_after(wk_backend_device *dev, uint64_t n_calls);

/* How many turns there were, which is calls of wick_pause. A call that must not wait begins none.
 */
uint64_t wk_null_turns(const wk_backend_device *dev);

#endif
