/* wick/kernel.h: kernels of your own, in WGSL, run on the tensors of a WebGPU device in order with
 * its other operations. examples/custom_kernel.c shows one, docs/webgpu.md says more. */
#ifndef WICK_KERNEL_H
#define WICK_KERNEL_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WICK_KERNEL_MAX_BUFFERS = 8,         /* that every WebGPU device can bind */
    WICK_KERNEL_MAX_UNIFORM_BYTES = 512, /* larger tables are tensors */
};

/* How the source declares a buffer: var<storage, read>, var<storage, read_write>. */
typedef enum wick_kernel_access {
    WICK_KERNEL_READ,
    WICK_KERNEL_READ_WRITE,
} wick_kernel_access;

typedef struct wick_kernel_desc {
    const char *source; /* WGSL in UTF-8, without enable lines: needs gives them */
    const char *entry;  /* NULL: "main" */
    const char *label;  /* in messages; NULL: the entry's name */
    /* Threads of a workgroup; zeros: 64, 1, 1. The source finds them as the constants WORKGROUP_X,
     * WORKGROUP_Y and WORKGROUP_Z: @workgroup_size(WORKGROUP_X). */
    uint32_t workgroup[3];
    /* Tensor i is @group(0) @binding(i); at least one is written. The uniform, where there is one,
     * is the next binding, @binding(n_buffers). */
    int n_buffers;
    wick_kernel_access access[WICK_KERNEL_MAX_BUFFERS];
    uint32_t uniform_bytes; /* as WGSL lays its struct out, padding included; 0: none */
    uint32_t needs;         /* WICK_WEBGPU_F16, _SUBGROUPS, _DOT4 that the source uses */
} wick_kernel_desc;

typedef struct wick_kernel wick_kernel;

/* Compiles a kernel. desc and its texts are copied. On failure *kernel is NULL and error (may be
 * NULL) says why: WICK_ERR_VALUE: desc, or the source, in the words of the compiler with line and
 * column, and the line itself; WICK_ERR_UNSUPPORTED: device is not a WebGPU device, or lacks what
 * the kernel needs. The caller releases the kernel before it closes the device. Waits for the
 * compiler; native only. */
WICK_API wick_status wick_kernel_make(wick_device *device, const wick_kernel_desc *desc,
                                      wick_kernel **kernel, wick_error *error);
/* The same without waiting: start, poll until it is not WICK_PENDING. A kernel that does not
 * compile is to be released, too. It may be run before that: the poll or read that comes to the run
 * waits for the compiler. */
WICK_API wick_status wick_kernel_make_start(wick_device *device, const wick_kernel_desc *desc,
                                            wick_kernel **kernel, wick_error *error);
WICK_API wick_status wick_kernel_make_poll(wick_kernel *kernel, wick_error *error);
/* NULL is allowed. Runs that are queued still run. */
WICK_API void wick_kernel_release(wick_kernel *kernel);

/* Queues one run in order with the operations: later ones see what it wrote. n tensors of the
 * kernel's device, of any dtype, none of them empty; workgroups in x, y and z, none where one of
 * them is 0; bytes of uniform as in the desc.
 *
 * A kernel sees the elements dense and in row-major order, from the beginning of its binding on,
 * which is as long as they are, rounded up to 4 bytes (arrayLength). A view that lies otherwise is
 * copied first and, where it was written, copied back. What is written must share no memory with
 * another tensor of the run: bind that one once, as READ_WRITE.
 *
 * A failure is returned and stays with the device (wick_device_error) as of any operation;
 * what only the GPU can find comes with a later read or poll. After a loss of the device the kernel
 * is compiled again when it is next run. */
WICK_API wick_status wick_kernel_run(wick_kernel *kernel, wick_tensor *const *tensors, int n,
                                     const uint32_t workgroups[3], const void *uniform,
                                     size_t bytes);

/* Workgroups for at least n threads: x, and y where x would pass the device's limit. A thread's
 * number is then
 *     (group.y * n_groups.x + group.x) * WORKGROUP_X + local.x
 * (workgroup_id, num_workgroups, local_invocation_id); those from n on have nothing to do.
 * WICK_ERR_VALUE: the device cannot run that many at once. */
WICK_API wick_status wick_kernel_workgroups(const wick_kernel *kernel, uint64_t n,
                                            uint32_t workgroups[3]);
/* A good wick_kernel_desc.workgroup[0] for n elements in one dimension: a power of two, larger for
 * more elements, within the device's limits. 0: no WebGPU device. */
WICK_API uint32_t wick_kernel_workgroup_size(const wick_device *device, uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
