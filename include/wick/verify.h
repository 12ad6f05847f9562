/* wick/verify.h: proves that the kernels of a device are right on this very machine: random
 * operations against plain loops on the CPU (cpu/ref, the specification). */
#ifndef WICK_VERIFY_H
#define WICK_VERIFY_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What came out for one kernel. */
typedef struct wick_kernel_check {
    const char *kernel; /* its name */
    /* WICK_OK; WICK_ERR_MISMATCH: wrong; WICK_ERR_NOT_FOUND: no random operation was one that it
     * takes; or what kept it from running. */
    wick_status status;
    uint64_t n_cases, n_elements;
    /* Differences, relative to the root mean square of the result that they are part of. */
    double mean_error, rms_error, max_error;
    double worst;        /* the largest part of its bound that a difference was */
    uint64_t seed;       /* of the last case: the one that failed, where one did */
    const char *failure; /* what was wrong with it; empty: nothing */
    bool is_disabled;    /* the device does not take it: it is wrong, or was disabled before */
} wick_kernel_check;

typedef struct wick_verify_desc {
    const char *kernels; /* names, * and ? stand for any characters; NULL: all that the device can
                            run, also those that it would not choose */
    uint64_t seed;       /* of the first case of each kernel: the same one gives the same cases */
    uint32_t n_cases;    /* of each kernel, up to the first that fails; 0: 25 */
    /* Called after each kernel; check is valid during the call. false stops. */
    bool (*report)(void *user, const wick_kernel_check *check);
    void *user;
} wick_verify_desc;

/* Computes what is queued, then verifies. A device with several kernels to choose among (WebGPU)
 * takes one that is wrong no more, see wick_device_tune: other kernels do its work, its parts or
 * the CPU. WICK_ERR_MISMATCH: a kernel is wrong, or failed.
 * WICK_ERR_NOT_FOUND: no kernel has such a name. WICK_ERR_UNSUPPORTED: the backend has no kernels
 * of its own. WICK_ERR_OUT_OF_MEMORY, WICK_ERR_DEVICE_LOST. Blocks; native only. */
WICK_API wick_status wick_verify(wick_device *device, const wick_verify_desc *desc,
                                 wick_error *error);
/* The same without blocking: start, poll until it is not WICK_PENDING; each poll computes a part of
 * one case. finish frees verifying in any case; before poll said that it is done it gives up
 * (WICK_ERR_CANCELLED). desc is copied, its text too. */
typedef struct wick_verifying wick_verifying;
WICK_API wick_status wick_verify_start(wick_device *device, const wick_verify_desc *desc,
                                       wick_verifying **verifying, wick_error *error);
WICK_API wick_status wick_verify_poll(wick_verifying *verifying);
WICK_API wick_status wick_verify_finish(wick_verifying *verifying, wick_error *error);

/* What kernels are timed on. Zeros: of a model of 135 million parameters. */
typedef struct wick_kernel_weight {
    int64_t n, k; /* outputs, inputs */
    wick_dtype dtype;
} wick_kernel_weight;

typedef struct wick_kernel_sizes {
    int64_t n_embd, n_ff, n_vocab, n_heads, n_heads_kv, head_dim;
    int64_t n_prompt, n_keys; /* rows of a prompt, keys that a single row sees */
    const wick_kernel_weight *weights;
    size_t n_weights;
} wick_kernel_sizes;

/* A kernel on one operation in one of its tunings. */
typedef struct wick_kernel_time {
    const char *kernel, *op;
    uint32_t tuning, n_tunings;
    bool is_fastest;     /* of the tunings, on this operation */
    bool is_on_gpu;      /* seconds are by timestamps, else by the clock of the host */
    double seconds;      /* of one run */
    double bytes, flops; /* at least: operands once each; 0 flops: no product */
} wick_kernel_time;

typedef struct wick_time_desc {
    const char *kernels; /* as in wick_verify_desc */
    wick_kernel_sizes sizes;
    bool choose; /* from now on the device takes the fastest tunings */
    /* Called for each time, which is valid that long; false stops. */
    bool (*report)(void *user, const wick_kernel_time *time);
    void *user;
} wick_time_desc;

/* Times the kernels of a WebGPU device, opened with wick_device_desc.profile by timestamps where it
 * has such. Computes what is queued before. WICK_ERR_UNSUPPORTED: another backend.
 * WICK_ERR_NOT_FOUND: no kernel has such a name. WICK_ERR_OUT_OF_MEMORY, WICK_ERR_DEVICE_LOST.
 * Blocks; native only. */
WICK_API wick_status wick_time_kernels(wick_device *device, const wick_time_desc *desc,
                                       wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
