/* tensor/custom.h: kernels of the user's: their texts, what the device made of them, and their runs
 * while ops name them. */
#ifndef WK_TENSOR_CUSTOM_H
#define WK_TENSOR_CUSTOM_H

#include "tensor/tensor.h"

#include <wick/operation.h>

struct wick_kernel {
    wick_device *device;
    uint32_t refs; /* the user's, and one for each run */
    uint32_t generation;
    wk_custom *custom;     /* of the device of that generation */
    wick_kernel_desc desc; /* complete; its texts are below */
    size_t bytes;          /* of the whole struct */
    char texts[];
};

/* An operation of the user's. */
struct wick_operation {
    wick_device *device;
    uint32_t refs; /* the user's, and one for each run */
    wick_operation_desc desc;
    size_t bytes;
    char name[];
};

wk_custom_run *wk_operation_run_new(wick_operation *operation);
void wk_operation_release(wick_operation *operation);
/* A run of a function in C, which nothing but the host can run. */
static inline bool wk_op_is_of_host(const wk_op *op) {
    return op->code == WK_OP_CUSTOM && !op->p.custom->custom;
}
/* Calls it; the views lie in the host's memory. */
wick_status wk_operation_compute(const wk_op *op, wick_error *err);
/* dtype and shape alone. */
wick_host_view wk_host_view_of(const wk_view *view);

/* Whether the device has kernels of the user's at all. */
bool wk_custom_is_supported(const wick_device *device);
/* desc: checked and complete; one reference. Begins to compile. */
wick_status wk_custom_new(wick_device *device, const wick_kernel_desc *desc, wick_kernel **out,
                          wick_error *err);
/* Compiles it again where its device was lost. WICK_PENDING: it may be run all the same, the device
 * will wait. */
wick_status wk_custom_poll(wick_kernel *kernel, wick_error *err);
void wk_custom_release(wick_kernel *kernel);

/* bytes of uniform: no more than a run has room for. One reference; NULL: the device has the
 * sentence. */
wk_custom_run *wk_custom_run_new(wick_kernel *kernel, const uint32_t workgroups[3],
                                 const void *uniform, size_t bytes);
void wk_custom_run_release(wk_custom_run *run);

#endif
