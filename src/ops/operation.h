/* ops/operation.h: the run of a kernel that belongs to an operation of the user's. */
#ifndef WK_OPS_OPERATION_H
#define WK_OPS_OPERATION_H

#include "tensor/custom.h"

/* wick_kernel_run; operation (may be NULL): whose run it is. */
wick_status wk_kernel_run(wick_kernel *kernel, wick_operation *operation,
                          wick_tensor *const *tensors, int n, const uint32_t workgroups[3],
                          const void *uniform, size_t bytes);

#endif
