/* ops/windows.h: sums of windows that overlap, for the operations that undo unfold. */
#ifndef WK_OPS_WINDOWS_H
#define WK_OPS_WINDOWS_H

#include <wick/tensor.h>

/* x [.., windows, .., size], the windows at dim: [.., extent, ..], where element j of window i is
 * added at i step + j dilation. f16 and bf16 should have been widened. All of it fits. */
wick_tensor *wk_fold(wick_tensor *x, int dim, int64_t extent, int64_t step, int64_t dilation);

#endif
