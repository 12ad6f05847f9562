/* backend/webgpu/kernels/norm_sum.h: norms whose results products take as integers, too. */
#ifndef WK_BACKEND_WEBGPU_KERNELS_NORM_SUM_H
#define WK_BACKEND_WEBGPU_KERNELS_NORM_SUM_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

/* Whether this root mean square norm is to leave integers, and can. */
bool wk_norm_makes_integers(const wk_encoder *e, const wk_op *norm);
wick_status wk_norm_encode_integers(wk_encoder *e, const wk_op *norm);

/* Of kernel_top_k.c: whether ops, TOP_K and SOFTMAX of its values, keep few of not too many. */
bool wk_is_top_k_softmax(const wk_op *ops);

#endif
