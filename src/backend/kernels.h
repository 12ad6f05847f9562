/* backend/kernels.h: a device's kernels one by one, for what looks at each of them instead of the
 * one that find_kernel chooses: verification and timing. */
#ifndef WK_BACKEND_KERNELS_H
#define WK_BACKEND_KERNELS_H

#include "backend/backend.h"
#include "backend/op_class.h"

/* How a kernel ran. */
typedef struct wk_kernel_run {
    bool has_fault;         /* it met an index out of range */
    bool is_out_of_scratch; /* it wrote past the end of its scratch memory */
    uint64_t ns;            /* spent in the kernel */
} wk_kernel_run;

/* kernel: one that at() has given, or one of a test that the device can run. */
typedef struct wk_backend_kernels {
    /* The kernels that this device can run, also those that it would not choose: number counts up
     * from 0; NULL at the end. The user's are not among them. */
    const wk_kernel *(*at)(const wk_backend_device *dev, size_t number);

    /* Optional, both: find_kernel does not choose the kernel from now on. */
    void (*disable)(wk_backend_device *dev, const wk_kernel *kernel);
    bool (*is_disabled)(const wk_backend_device *dev, const wk_kernel *kernel);

    /* Optional, both. All kernels are encoded in this tuning (modulo their number) until NULL is
     * given: then in that which was kept for the op's class. */
    void (*force_tuning)(wk_backend_device *dev, const uint32_t *tuning);
    void (*keep_tuning)(wk_backend_device *dev, const wk_kernel *kernel, wk_op_class class,
                        uint32_t tuning);

    /* Optional: where buffers are host memory. Computes the op at once, on the thread that calls;
     * any wk_buffer with data will do. seed 0: each phase whole. Others: each phase in ranges as
     * threads might get them, of whole grains, in random order, and the worker's scratch memory
     * holds anything before each. WICK_ERR_OUT_OF_MEMORY. */
    wick_status (*run)(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                       uint64_t seed, wk_kernel_run *out);

    /* Optional, native only: computes the op n times and waits. Seconds of all runs, by timestamps
     * of the device or by the host's clock. */
    wick_status (*time)(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op, int n,
                        double *seconds, wick_error *err);
    bool (*has_timestamps)(const wk_backend_device *dev); /* together with time */
} wk_backend_kernels;

#endif
