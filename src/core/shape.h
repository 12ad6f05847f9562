/* core/shape.h: extents and strides, pure arithmetic. Strides count elements, never negative. */
#ifndef WK_CORE_SHAPE_H
#define WK_CORE_SHAPE_H

#include <wick/tensor.h>

/* Product of the extents; false when an extent is negative, the rank is out of 0..6 or the product
 * overflows int64_t. */
bool wk_shape_count(const wick_shape *shape, int64_t *count);
bool wk_shape_equal(const wick_shape *a, const wick_shape *b);
/* Row-major strides. */
void wk_shape_dense(const wick_shape *shape, int64_t stride[WICK_MAX_RANK]);
bool wk_shape_is_dense(int rank, const int64_t *extent, const int64_t *stride);
/* Shape of the broadcast of a and b (NumPy's rule); false when they do not fit. */
bool wk_shape_broadcast(const wick_shape *a, const wick_shape *b, wick_shape *out);
/* -1 is the last; false when out of [-rank, rank). */
bool wk_shape_dim(int rank, int dim, int *out);
/* Strides of a view of another shape over the same elements; false when a copy is needed. */
bool wk_shape_restride(const wick_shape *from, const int64_t *from_stride, const wick_shape *to,
                       int64_t *to_stride);
/* "[2, 3]" for messages; returns buf. */
char *wk_shape_text(const wick_shape *shape, char *buf, size_t size);

#endif
