/* ops/indices.h: what gathers and scatters share. */
#ifndef WK_OPS_INDICES_H
#define WK_OPS_INDICES_H

#include "tensor/tensor.h"

#include <wick/ops.h>

/* These write the sentence to the device and return false. An index is of any integer type. */
bool wk_operand_is_index(const char *op, const wick_tensor *index);
bool wk_vector_is_index(const char *op, const wick_tensor *index);
/* Of one rank, and in no dim but this one is index larger than x. */
bool wk_indexed_fits(const char *op, const wick_tensor *x, int dim, const wick_tensor *index);

/* index, or an i64 copy of it where kernels do not take its dtype; NULL gives NULL. */
wick_tensor *wk_as_index(wick_tensor *index);

/* Leaves of the other dims what `other` has of them. */
void wk_view_cut_to(wk_view *view, const wk_view *other, int dim);
/* A vector as an index along dim of a tensor of shape, the same for all other dims. */
wk_view wk_view_of_vector(const wk_view *vector, const wick_shape *shape, int dim);

/* src can meet x by that function: scalars of one dtype, and numbers unless they are replaced. */
bool wk_operands_scatter(const char *op, const wick_tensor *x, const wick_tensor *src,
                         wick_scatter_fn fn);

#endif
