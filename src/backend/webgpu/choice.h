/* backend/webgpu/choice.h: which kernel a device takes for an op, and in which of its tunings. */
#ifndef WK_BACKEND_WEBGPU_CHOICE_H
#define WK_BACKEND_WEBGPU_CHOICE_H

#include "backend/op_class.h"
#include "backend/webgpu/kernels/webgpu_kernel.h"

/* A kernel, and how this device takes it. */
typedef struct wk_choice {
    const wk_webgpu_kernel *kernel;
    bool is_disabled;
    bool is_refused;      /* a pipeline of it did not compile */
    uint8_t usual_tuning; /* of such devices */
    uint8_t tuning[WK_ROWS_COUNT_][WK_LAYOUT_COUNT_];
} wk_choice;

wick_status wk_choices_open(wk_backend_device *dev, wick_error *err);
void wk_choices_release(wk_backend_device *dev);
/* The first kernel that takes the op; NULL: none does, or they are disabled. */
/* For ops in a row, a kernel of code WK_OPS_*. */
const wk_webgpu_kernel *wk_choice_find_joint(const wk_backend_device *dev, wk_opcode code,
                                             const wk_op *ops);
const wk_webgpu_kernel *wk_choice_find(const wk_backend_device *dev, const wk_op *op);
/* NULL: it is none of the device's. */
wk_choice *wk_choice_of(const wk_backend_device *dev, const wk_kernel *kernel);
/* How many tunings a kernel has, at least one. */
uint32_t wk_choice_tunings(const wk_webgpu_kernel *kernel);
/* The one that is taken for the op. */
uint32_t wk_choice_tuning(const wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                          const wk_op *op);

#endif
