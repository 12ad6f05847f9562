/* verify/verify.h: every kernel of every backend against the specification, cpu/ref.
 *
 * A case is a random op: dtypes, shapes, strides, offsets, optional operands, parameters and values
 * from one seed. The kernel runs on memory surrounded and filled with poison, twice: on the host's
 * memory in different random ranges, on other devices in one buffer or several, and as a plan.
 * Nothing but the elements of its destinations may change, both runs must give the same bits, and
 * these must be within the bounds of the op (wk_op_tolerance, bounds.c). */
#ifndef WK_VERIFY_VERIFY_H
#define WK_VERIFY_VERIFY_H

#include "backend/kernels.h"
#include "core/alloc.h"

/* A kernel, and the device that runs it. */
typedef struct wk_verify_subject {
    const wk_kernel *kernel;
    const wk_backend *backend; /* has kernels */
    wk_backend_device *device; /* with the features that the kernel needs */
} wk_verify_subject;

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
 * million parameters. The device computes on the host's memory. WICK_ERR_NOT_FOUND: there is no op
 * of that number. */
wick_status wk_verify_time(const wk_verify_subject *subject, int index, wk_heap *heap,
                           wk_verify_bench *out);

#endif
