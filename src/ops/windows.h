/* ops/windows.h: what is made of windows, and sums of windows that overlap, for the operations that
 * undo unfold. */
#ifndef WK_OPS_WINDOWS_H
#define WK_OPS_WINDOWS_H

#include "backend/op.h"

/* Windows of images x [n, c, d, h, w] pooled, as the op POOL has it: p->pool. size [3] is that of
 * the result. */
wick_tensor *wk_pooled(wick_tensor *x, const int64_t *size, const wk_params *p);
/* The same by other operations, whose gradient it has. f16 and bf16 should have been widened for a
 * mean. */
wick_tensor *wk_pooled_composed(wick_tensor *x, const wk_params *p);
/* The view of x's windows along dim i of the last three, which are in a new last dim. */
wick_tensor *wk_window_view(wick_tensor *x, const wk_window_shape *w, int i);

/* The op CONVOLUTION, which the device must have a kernel for: x [n, c, d, h, w], weight [m,
 * c / groups, kd, kh, kw], bias [m] or NULL. */
wick_tensor *wk_convolution(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                            const wk_window_shape *w);
/* What a gradient g of its result is at x, f32 or f64, of which the view is known. */
wick_tensor *wk_convolution_back(wick_tensor *g, wick_tensor *weight, const wk_view *x,
                                 const wk_window_shape *w);

/* x [.., windows, .., size], the windows at dim: [.., extent, ..], where element j of window i is
 * added at i step + j dilation. f16 and bf16 should have been widened. All of it fits. */
wick_tensor *wk_fold(wick_tensor *x, int dim, int64_t extent, int64_t step, int64_t dilation);

#endif
