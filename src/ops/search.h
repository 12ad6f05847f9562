/* ops/search.h: bisection in sorted rows, for the operations that find places with it. */
#ifndef WK_OPS_SEARCH_H
#define WK_OPS_SEARCH_H

#include <wick/tensor.h>

/* u32, as wick_searchsorted: sorted [.., n] and values [.., m], numbers of one dtype. */
wick_tensor *wk_search_rows(wick_tensor *sorted, wick_tensor *values, bool right);
/* Places among count elements fit u32; false after reporting that they do not. */
bool wk_has_u32_places(const char *op, const wick_tensor *x, int64_t count);

/* u32: places 1 to count in running counts [n] (u32), the first of each. count < 0: as many as the
 * last number says, which is read. */
wick_tensor *wk_first_places(wick_tensor *running, int64_t count);

#endif
