/* tensor/shadow.h: running one op on the CPU beside its device: because the device has no kernel
 * for it (fallback), or to compare (verification).
 *
 * Steps: its operands are read from the device, the CPU computes, and then the result is uploaded,
 * or the device computes too and the two are compared. */
#ifndef WK_TENSOR_SHADOW_H
#define WK_TENSOR_SHADOW_H

#include "tensor/device.h"

/* kernel NULL: fallback; else verification of this kernel. Sets device->shadow. */
wick_status wk_shadow_start(wick_device *device, const wk_op *op, const wk_kernel *kernel);
/* One step; is_done: it was the last one. WICK_PENDING: call again. A failure, such as
 * WICK_ERR_MISMATCH, leaves it to wk_shadow_drop. */
wick_status wk_shadow_step(wick_device *device, bool *is_done);
/* Ends what is under way. */
void wk_shadow_drop(wick_device *device);
/* The same, and closes the CPU devices that were opened for it. */
void wk_shadow_free(wick_device *device);

#endif
