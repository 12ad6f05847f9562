/* backend/null/null.h: the backend that trusts nobody. It hands every command on to another
 * backend, but checks first: operands, aliasing, lifetimes, the limits of core WebGPU; and on
 * request it answers late and out of order (WICK_NULL_*). Its buffers have no host address. */
#ifndef WK_BACKEND_NULL_H
#define WK_BACKEND_NULL_H

#include "backend/backend.h"

extern const wk_backend wk_backend_null;

#endif
