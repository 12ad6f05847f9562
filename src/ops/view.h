/* ops/view.h: other shapes and strides over the same memory, pure arithmetic on wk_view. */
#ifndef WK_OPS_VIEW_H
#define WK_OPS_VIEW_H

#include "backend/op.h"

/* Dimension i of out is dimension dims[i] of from. out may be from. */
void wk_view_permute(const wk_view *from, const int *dims, wk_view *out);
/* Moves a dimension to the end, the others keep their order. */
void wk_view_move_last(const wk_view *from, int dim, wk_view *out);
void wk_view_remove(const wk_view *from, int dim, wk_view *out);
/* A new dimension of extent 1 at position dim; the rank must be below WICK_MAX_RANK. */
void wk_view_insert(const wk_view *from, int dim, wk_view *out);
/* Elements start, start + step, ... of dim, length of them, all in range. */
void wk_view_slice(const wk_view *from, int dim, int64_t start, int64_t length, int64_t step,
                   wk_view *out);
/* Elements (i, i) of two different dimensions, in a new last one instead of both. */
void wk_view_diagonal(const wk_view *from, int dim0, int dim1, wk_view *out);
/* Broadcasts to shape by strides of 0; false when it does not fit. out may be from. */
bool wk_view_expand(const wk_view *from, const wick_shape *shape, wk_view *out);
/* False when only a copy can have this shape. */
bool wk_view_reshape(const wk_view *from, const wick_shape *shape, wk_view *out);

#endif
