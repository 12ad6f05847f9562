/* wick/device.h: devices: what computes. Native calls block; every one that may wait also exists as
 * _start, _poll, _finish, which never block. */
#ifndef WICK_DEVICE_H
#define WICK_DEVICE_H

#include <wick/webgpu.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_device wick_device;
typedef struct wick_device_opening wick_device_opening;

/* AUTO takes the first available of: CUDA, Metal, ROCm, OpenCL, WebGPU, CPU, and says which in
 * wick_device_info; a WebGPU adapter that is software is not better than the CPU, and one that
 * cannot be opened after all is replaced by it. Any other value is an error where that backend is
 * missing. */
typedef enum wick_backend {
    WICK_BACKEND_AUTO,
    WICK_BACKEND_CPU,
    WICK_BACKEND_WEBGPU,
    WICK_BACKEND_CUDA,
    WICK_BACKEND_ROCM,
    WICK_BACKEND_METAL,
    WICK_BACKEND_OPENCL,
    WICK_BACKEND_NULL, /* records and checks every call, computes through the CPU; for tests */
    WICK_BACKEND_COUNT_,
} wick_backend;

/* EXACT: activations, accumulation and caches in float32. FAST: activations may be quantized for
 * integer dot products and caches are float16. */
typedef enum wick_math {
    WICK_MATH_EXACT,
    WICK_MATH_FAST,
} wick_math;

/* Highest instruction set that the CPU backend may use. AUTO: all that the processor has. */
typedef enum wick_isa {
    WICK_ISA_AUTO,
    WICK_ISA_REF, /* plain loops, the specification */
    WICK_ISA_AVX2,
    WICK_ISA_AVX512,
    WICK_ISA_NEON, /* every 64-bit ARM */
    WICK_ISA_DOTPROD,
    WICK_ISA_I8MM,
    WICK_ISA_SIMD128, /* WebAssembly */
} wick_isa;

/* Chains of elementwise operations as one (docs/tensors.md). AUTO: where that pays; on the CPU from
 * 4,096 elements on, on a GPU from the third time on that a chain of the same functions comes. */
typedef enum wick_fusion {
    WICK_FUSION_AUTO,
    WICK_FUSION_OFF,
    WICK_FUSION_ALWAYS,
} wick_fusion;

typedef struct wick_device_desc {
    wick_backend backend;
    wick_math math;    /* of operations queued on this device; default exact */
    int n_threads;     /* CPU; 0: one for each core this process may use, the most */
    wick_isa isa;      /* CPU */
    uint32_t slice_us; /* CPU: time that one poll may compute, microseconds; 0: 20000 */
    bool strict;       /* an operation without a kernel is an error instead of a fallback */
    bool verify;       /* run every operation in cpu/ref as well and compare; fuses none */
    wick_fusion fusion;
    /* Time every kernel; on a GPU by timestamps, each dispatch in a pass of its own. */
    bool profile;
    wick_allocator allocator; /* zero: malloc and free */
    wick_log_fn log;
    void *log_user;
    wick_webgpu_desc webgpu;  /* of WICK_BACKEND_WEBGPU: which adapter, and what of it */
    uint32_t null_flags;      /* WICK_NULL_*, for WICK_BACKEND_NULL */
    uint32_t null_lose_after; /* likewise: calls until the device is as if taken away; 0: never */
    uint32_t null_refused;    /* likewise: number of the buffer that finds no memory; 0: none */
    uint64_t null_memory;     /* likewise: bytes that its buffers may take; 0: no limit */
} wick_device_desc;

enum {
    WICK_NULL_LATE = 1,         /* tickets are answered some polls late */
    WICK_NULL_OUT_OF_ORDER = 2, /* reads become ready in another order than they were asked for */
    WICK_NULL_NO_FUSED = 4,     /* has no kernel for ops that have a decomposition */
    WICK_NULL_NO_KERNELS = 8,   /* has no kernel at all: every op falls back to the CPU */
    WICK_NULL_TURNS = 16,       /* nothing is answered before the next wick_pause, as in a page */
};

/* Opens a device; desc NULL means all defaults. On failure *device is NULL and error (may be NULL)
 * holds the sentence: WICK_ERR_NO_DEVICE, WICK_ERR_OUT_OF_MEMORY, WICK_ERR_VALUE. The caller owns
 * the device. */
WICK_API wick_status wick_device_open(const wick_device_desc *desc, wick_device **device,
                                      wick_error *error);
/* The same in steps: poll returns WICK_PENDING until finish may be called. finish frees opening in
 * any case. */
WICK_API wick_status wick_device_open_start(const wick_device_desc *desc,
                                            wick_device_opening **opening, wick_error *error);
WICK_API wick_status wick_device_open_poll(wick_device_opening *opening);
WICK_API wick_status wick_device_open_finish(wick_device_opening *opening, wick_device **device,
                                             wick_error *error);

/* Everything made on the device must have been released before, also what was lost with it. Tensors
 * that are left are logged and must not be used any more. Waits for what a GPU has begun. NULL is
 * allowed. */
WICK_API void wick_device_close(wick_device *device);

typedef struct wick_device_info {
    wick_backend backend;
    char name[128];        /* of the hardware that computes: "AMD EPYC 9B45" */
    char backend_name[32]; /* "cpu" */
    char isa[16];          /* CPU: "ref", "avx2", "avx512", "neon", "dotprod", "i8mm", "simd128" */
    int n_threads;
    uint64_t memory_total, memory_available; /* bytes; 0 unknown */
    bool is_fallback;                        /* AUTO had to take the CPU ... */
    char fallback_reason[256];               /* ... because of this */
    wick_adapter_info adapter;               /* WebGPU: with what it was opened */
} wick_device_info;

WICK_API void wick_device_get_info(const wick_device *device, wick_device_info *info);

typedef struct wick_device_stats {
    uint64_t n_allocations;                   /* calls of the allocator hook */
    uint64_t live_bytes, peak_bytes;          /* through the hook */
    uint64_t buffer_bytes, buffer_peak_bytes; /* tensor data, mapped files not counted */
    uint64_t n_ops;                           /* kernels run */
    uint64_t n_ops_ref;    /* products with weights that no kernel but cpu/ref could compute */
    uint64_t n_fallbacks;  /* ops that another device had to compute */
    uint64_t n_decomposed; /* fused ops that were taken apart */
    uint64_t n_fused;      /* ops that were computed as steps of a chain */
    uint64_t n_unread;     /* ops that were not computed: their results could not be read */
    uint64_t n_verified;   /* ops that agree with cpu/ref, with desc.verify */
    uint64_t n_submits, n_reads;
    uint64_t bytes_uploaded, bytes_read;
    uint64_t n_losses;     /* how often the device went away and was opened again */
    uint64_t n_dispatches; /* GPU: what the ops came to */
    double longest_submit; /* GPU: seconds that a submit of ops took, at most, as polls saw it */
    double encode_seconds; /* GPU: seconds that it was idle, as polls saw it, while the host made
                            * commands for it */
    /* Memory that was taken for buffers, how much of it is free for new ones, and how often such a
     * one served. */
    uint64_t pool_bytes, pool_peak_bytes, pool_free_bytes;
    uint64_t n_pool_hits, n_pool_misses;
    double pool_fragmentation; /* share of the free bytes that is not in their largest piece */
    /* GPU: programs compiled, and how often one was there already; those that could not be. */
    uint64_t n_pipelines, n_pipeline_hits, n_pipeline_failures;
    uint64_t shader_bytes;       /* of their texts */
    double compile_seconds;      /* in which at least one was being compiled */
    double compile_wait_seconds; /* of these, nothing else went on: a submit needed one of them */
    uint64_t n_bind_groups, n_bind_group_hits; /* what programs are given, made and found again */
} wick_device_stats;

WICK_API void wick_device_get_stats(const wick_device *device, wick_device_stats *stats);

/* Returns unused device memory to the system; nothing is moved. Waits for what was submitted
 * before. *freed (may be NULL): bytes. Native only. */
WICK_API wick_status wick_device_trim(wick_device *device, uint64_t *freed, wick_error *error);

/* One line per kernel that ran while desc.profile was set: returns how many there are and writes at
 * most capacity of them. */
typedef struct wick_kernel_stats {
    const char *name;
    uint64_t calls; /* operations, or pieces of such as are cut */
    double seconds;
    uint64_t n_dispatches; /* GPU: what they came to */
    /* What the operations need: each operand once, and the multiplications and additions of
     * products. */
    double bytes_read, bytes_written, flops;
} wick_kernel_stats;

WICK_API size_t wick_device_get_profile(const wick_device *device, wick_kernel_stats *out,
                                        size_t capacity);

/* What the device can do at most, measured on the spot: it takes about half a second and, for its
 * length, 256 MiB of memory. 0: not known. */
typedef struct wick_device_limits {
    double read_bytes_per_second;  /* a large buffer, by all threads or the GPU */
    double integer_ops_per_second; /* 8-bit products and their sums, each an operation */
    double f32_ops_per_second;     /* the same in float32 */
    /* GPU: to make a buffer of 1 MiB and release it, to write a word and read it back, to compile
     * a small kernel. */
    double buffer_seconds, round_trip_seconds, pipeline_seconds;
} wick_device_limits;

/* A GPU whose packed dot products were measured to be less than twice as fast as float32 takes no
 * kernels with them in fast math from then on, as by a line `rates` of wick_device_tune: measure
 * before sessions are opened. WICK_ERR_UNSUPPORTED: this backend does not measure.
 * WICK_ERR_OUT_OF_MEMORY. Native only. */
WICK_API wick_status wick_device_measure(wick_device *device, wick_device_limits *limits,
                                         wick_error *error);

/* Which kernels the device takes, and in which sizes of tiles and workgroups, which never change a
 * bit of a result: lines of text as docs/webgpu.md describes them ("disable attention*"), for what
 * is queued from now on. Open sessions replay plans that they have made before; a plan for another
 * length of text, made later, takes the new choice. Lines that cannot be used are logged and left
 * out; *n_ignored (may be NULL) counts them. WICK_ERR_UNSUPPORTED: this backend has no choice. */
WICK_API wick_status wick_device_tune(wick_device *device, const char *text, size_t size,
                                      size_t *n_ignored, wick_error *error);
/* The same out again, for a later device of the same kind: returns how many bytes that takes and
 * writes at most capacity of them, without a zero at the end. 0: there is no choice. */
WICK_API size_t wick_device_get_tuning(wick_device *device, char *out, size_t capacity);

/* For whoever debugs the kernels of a GPU: the name of each that the device can run, and the final
 * text (WGSL) of each program that it has compiled so far, with the kernel that it was first
 * compiled for: one for each combination of types, constants and tuning. program returns the bytes
 * of the text and writes at most capacity of them, without a zero at the end. index counts from 0;
 * NULL, 0: there are no more. */
WICK_API const char *wick_device_kernel_name(const wick_device *device, size_t index);
WICK_API size_t wick_device_program(wick_device *device, size_t index, const char **kernel,
                                    char *out, size_t capacity);

/* Failed calls on tensors leave the first error with their device until it is taken here: copies it
 * out and clears it. Returns its status; WICK_OK: there was none. Sessions, embedders and whatever
 * has an error of its own leave none here. */
WICK_API wick_status wick_device_error(wick_device *device, wick_error *error);

WICK_API wick_math wick_device_math(const wick_device *device);
WICK_API void wick_device_set_math(wick_device *device, wick_math math);

/* Random numbers (wick_rand, wick_randn): a device begins with seed 0. Each tensor of them takes
 * the next stream of the seed, a call that fails none: the same calls after the same seed give the
 * same numbers, on every backend, with any number of threads, and across a loss of the device. */
WICK_API void wick_device_set_seed(wick_device *device, uint64_t seed);
WICK_API uint64_t wick_device_seed(const wick_device *device);
/* The next such tensor takes this stream, the ones after it those that follow; 0 after
 * wick_device_set_seed. */
WICK_API void wick_device_set_stream(wick_device *device, uint64_t stream);

/* Computes what is queued, at most one slice of time; WICK_PENDING: there is more. */
WICK_API wick_status wick_poll(wick_device *device);
/* Gives the device what is queued, without waiting for it to be computed. WICK_PENDING: an
 * operation waits for the CPU (a fallback), or a kernel is being compiled. Where nothing can be
 * waited for (a page) tensors are written, and operations given in large numbers, after this gave
 * WICK_OK. */
WICK_API wick_status wick_flush(wick_device *device);
/* Brings a device back that was lost (WICK_ERR_DEVICE_LOST), as loading a model and the steps of
 * sessions do by themselves. WICK_PENDING: call again. WICK_OK: it is there; tensors of before the
 * loss must be made again. WICK_ERR_DEVICE_LOST: given up. Never blocks. */
WICK_API wick_status wick_device_recover(wick_device *device);
/* For loops around calls that gave WICK_PENDING or WICK_EVENT_PENDING: returns when the device may
 * have got on, after about a millisecond at the latest; at once where polling computes, as on the
 * CPU. Native only. */
WICK_API void wick_pause(wick_device *device);
/* Blocks until everything that is queued has been computed. Native only. */
WICK_API wick_status wick_synchronize(wick_device *device);

typedef struct wick_backend_status {
    wick_backend backend;
    const char *name; /* "cpu", "webgpu": the word of --backend */
    bool is_available;
    char reason[160]; /* why not */
} wick_backend_status;

/* Every backend in the order of AUTO's preference, with the reason why it is not available. Returns
 * how many there are and writes at most capacity. */
WICK_API size_t wick_backends(wick_backend_status *out, size_t capacity);

/* "cpu" -> WICK_BACKEND_CPU, "gpu" is another name for webgpu; false when unknown. */
WICK_API bool wick_backend_from_name(const char *name, wick_backend *backend);
WICK_API const char *wick_backend_name(wick_backend backend);

#ifdef __cplusplus
}
#endif

#endif
