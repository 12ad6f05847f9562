/* core/scalar.h: one element of any scalar dtype as a double. */
#ifndef WK_CORE_SCALAR_H
#define WK_CORE_SCALAR_H

#include <wick/tensor.h>

/* element: index of the element in dense memory. 64-bit integers lose what a double cannot hold.
 * dtype must not be a block type. */
double wk_scalar_load(wick_dtype dtype, const void *data, int64_t element);

/* As a cast converts it: truncated and saturated; NaN is 0. */
int64_t wk_f64_to_i64(double value);

#endif
