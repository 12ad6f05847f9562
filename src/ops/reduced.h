/* ops/reduced.h: what losses do with those of their elements. */
#ifndef WK_OPS_REDUCED_H
#define WK_OPS_REDUCED_H

#include "tensor/tensor.h"

#include <wick/nn.h>

bool wk_reduction_is_known(const char *op, const wick_tensor *x, wick_reduction reduction);
/* The mean or the sum of a loss, or itself. */
wick_tensor *wk_reduced(wick_tensor *loss, wick_reduction reduction);

#endif
