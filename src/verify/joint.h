/* verify/joint.h: kernels that compute several ops of a plan: see joint.c. */
#ifndef WK_VERIFY_JOINT_H
#define WK_VERIFY_JOINT_H

#include "verify/verify.h"

#include <wick/device.h>

typedef struct wk_joint_check wk_joint_check;
/* All rules of tensor/join.c, one after the other, n_cases each. NULL: WICK_ERR_OUT_OF_MEMORY. */
wk_joint_check *wk_joint_check_start(wick_device *device, uint64_t seed, uint64_t n_cases);
/* Never blocks. WICK_PENDING; WICK_ERR_NOT_FOUND: there is no rule left. Else a rule is done, and
 * *kernel is what computes its ops; NULL: they are computed one by one here, or by a kernel that
 * glob does not match. WICK_ERR_MISMATCH: it
 * gives other bits than these. report: of that kernel. */
wick_status wk_joint_check_step(wk_joint_check *check, const char *glob, const wk_kernel **kernel,
                                wk_verify_report *report);
/* NULL is allowed. */
void wk_joint_check_end(wk_joint_check *check);

#endif
