/* wick/operation.h: operations of your own, used as the built-in ones are: checked, queued in order
 * with the others, recorded by tapes. An operation is a function in C, which computes on the CPU, a
 * kernel in WGSL (kernel.h), or both. docs/webgpu.md says more. */
#ifndef WICK_OPERATION_H
#define WICK_OPERATION_H

#include <wick/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor as a function in C sees it: dense and row-major. */
typedef struct wick_host_view {
    wick_dtype dtype;
    wick_shape shape;
    void *data; /* NULL for the functions that see shapes only */
} wick_host_view;

/* The functions are called while the device is used, with inputs [n_inputs] and outputs
 * [n_outputs]. One that may fail returns a status and leaves a sentence in error->message. */
typedef struct wick_operation_desc {
    const char *name;
    int n_inputs, n_outputs; /* 1 or more each, at most WICK_KERNEL_MAX_BUFFERS in all */
    /* Checks dtypes and shapes of inputs, and sets those of all outputs (rank 0: a scalar). */
    wick_status (*infer)(void *user, const wick_host_view *inputs, wick_host_view *outputs,
                         wick_error *error);
    /* Computes outputs; or NULL. Called by a later poll or read. A failure is reported by every
     * read of the outputs. On a device that is not a CPU this is a fallback, and an error where the
     * device is strict. */
    wick_status (*compute)(void *user, const wick_host_view *inputs, const wick_host_view *outputs,
                           wick_error *error);
    /* Runs instead of compute on the device that it was made for; or NULL. Its buffers are the
     * outputs (READ_WRITE), then the inputs (READ). The operation keeps a reference. */
    wick_kernel *kernel;
    /* Of kernel: its workgroups, and its uniform (uniform_bytes, zeros so far). */
    wick_status (*launch)(void *user, const wick_host_view *inputs, const wick_host_view *outputs,
                          uint32_t workgroups[3], void *uniform, wick_error *error);
    /* Gradients of inputs in grads [n_inputs], made by operations of wick/ops.h from grad_output,
     * the gradient of the output; NULL: zero. 16-bit floats come as f32. What it makes is released
     * after it. NULL: the operation has no gradient. One output only. */
    void (*gradient)(void *user, wick_tensor *const *inputs, wick_tensor *output,
                     wick_tensor *grad_output, wick_tensor **grads);
    void *user; /* for the functions; stays until all is released and computed */
} wick_operation_desc;

typedef struct wick_operation wick_operation;

/* desc and its name are copied. On failure *operation is NULL and error (may be NULL) says why:
 * WICK_ERR_VALUE: desc; WICK_ERR_OUT_OF_MEMORY. The caller releases the operation before it closes
 * the device. */
WICK_API wick_status wick_operation_make(wick_device *device, const wick_operation_desc *desc,
                                         wick_operation **operation, wick_error *error);
/* NULL is allowed. Runs that are queued still run. */
WICK_API void wick_operation_release(wick_operation *operation);

/* Queues the operation. inputs [n_inputs], any strides; outputs [n_outputs] receives new tensors,
 * owned as results of operations are. On failure all of them are NULL, and the sentence is with the
 * device: the status of infer or launch; WICK_ERR_ARGUMENT: an input is NULL or of another device;
 * WICK_ERR_UNSUPPORTED: neither a kernel of this device nor compute; WICK_ERR_SHAPE: an input is
 * empty and an output is not, or infer did not set the shape of an output. */
WICK_API wick_status wick_operation_run(wick_operation *operation, wick_tensor *const *inputs,
                                        wick_tensor **outputs);

#ifdef __cplusplus
}
#endif

#endif
