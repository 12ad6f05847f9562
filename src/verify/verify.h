/* verify/verify.h: every kernel of every backend against the specification, cpu/ref.
 *
 * A case is a random op: dtypes, shapes, strides, offsets, optional operands, parameters and values
 * from one seed. The kernel runs on memory surrounded and filled with poison, twice: on the CPU in
 * different random ranges, on other devices in one buffer or several, and as a plan. Nothing but
 * the elements of its destinations may change, both runs must give the same bits, and these must be
 * within the bounds of the op (wk_op_tolerance, bounds.c). */
#ifndef WK_VERIFY_VERIFY_H
#define WK_VERIFY_VERIFY_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/webgpu/kernels/webgpu_kernel.h"
#include "core/alloc.h"

/* A kernel, and what runs it. */
typedef struct wk_verify_subject {
    const wk_kernel *kernel;
    wk_opcode code;
    bool (*accepts)(const wk_op *op); /* NULL: every op of the code */
    const wk_cpu_kernel *cpu;         /* the kernel, where it is run on the host's memory, else */
    const wk_backend *backend;        /* the device that runs it */
    wk_backend_device *device;
    /* Sizes of tiles and workgroups that must give the same bits; 0: there is one. */
    uint32_t n_tunings;
    void (*tune)(wk_backend_device *device, const uint32_t *tuning); /* NULL: what it chooses */
    /* Keeps the device from taking the kernel, NULL: it cannot. */
    void (*disable)(wk_backend_device *device, const wk_kernel *kernel);
    bool is_disabled; /* before it was verified */
} wk_verify_subject;

wk_verify_subject wk_verify_on_cpu(const wk_cpu_kernel *kernel);
/* device: of wk_backend_webgpu, with the features that the kernel needs. */
wk_verify_subject wk_verify_on_webgpu(const wk_webgpu_kernel *kernel, wk_backend_device *device);
/* The next kernel from *index on that the device can run; moves *index past it. False: there is no
 * further kernel. */
bool wk_verify_next_cpu(const wk_backend_device *device, size_t *index, wk_verify_subject *out);
bool wk_verify_next_webgpu(wk_backend_device *device, size_t *index, wk_verify_subject *out);
/* How many programs a WebGPU device has compiled so far. */
uint64_t wk_verify_webgpu_programs(const wk_backend_device *device);

typedef struct wk_verify_report {
    int64_t n_cases, n_elements;
    /* Errors relative to the rms of the result that they are part of. */
    double mean_error, rms_error, max_error;
    double worst;       /* largest part of its bound that an error was */
    uint64_t digest;    /* of all results, NaN being one value: to compare across processors */
    uint64_t seed;      /* of the last case: the one that failed, where one did */
    char failure[1024]; /* what was wrong with it, strides included; empty: nothing */
} wk_verify_report;

/* Runs n_cases cases, the first one from seed, up to the first that fails. A case alone is n_cases
 * 1 with its own seed. WICK_ERR_MISMATCH: the kernel is wrong. WICK_ERR_NOT_FOUND: no random op was
 * one that it accepts. WICK_ERR_OUT_OF_MEMORY; what the device says. */
wick_status wk_verify_kernel(const wk_verify_subject *subject, uint64_t seed, int64_t n_cases,
                             wk_heap *heap, wk_verify_report *report);

/* The same in steps that never block: step gives WICK_PENDING until it is done, end completes the
 * report's figures. NULL: WICK_ERR_OUT_OF_MEMORY. What is given must stay. */
typedef struct wk_verification wk_verification;
wk_verification *wk_verification_start(const wk_verify_subject *subject, uint64_t seed,
                                       int64_t n_cases, wk_heap *heap, wk_verify_report *report);
wick_status wk_verification_step(wk_verification *verification);
void wk_verification_end(wk_verification *verification);

typedef struct wk_verify_bench {
    char op[192];
    double seconds, reference_seconds;
    double bytes, flops; /* of one run, see wk_op_cost */
} wk_verify_bench;

/* Times kernel and reference, on one thread, on typical op number index: those of a model of 135
 * million parameters. WICK_ERR_NOT_FOUND: there is none of that number. */
wick_status wk_verify_time(const wk_cpu_kernel *kernel, int index, wk_heap *heap,
                           wk_verify_bench *out);

#endif
