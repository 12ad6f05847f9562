/* backend/backend.h: the table of functions that a backend fills.
 *
 * Nothing here blocks, except that encode, submit and read_start of a native GPU may wait for a
 * compiler or a full queue. Commands (encode, upload, read_start, plan_replay) take effect in the
 * order in which they are given; what they name may be freed at once afterwards: the backend keeps
 * it until the commands have run. A device belongs to one thread at a time. */
#ifndef WK_BACKEND_BACKEND_H
#define WK_BACKEND_BACKEND_H

#include "backend/op.h"
#include "core/str.h"

typedef struct wk_backend wk_backend;
typedef struct wk_backend_device wk_backend_device; /* each backend's own */

/* Of wick_device_desc.slice_us. */
enum { WK_DEFAULT_SLICE_US = 20000 };

/* release is called once, when the memory is not needed any more: the buffer was freed and the
 * commands that name it have run. release NULL: no call. */
typedef struct wk_memory_owner {
    void (*release)(void *user);
    void *user;
} wk_memory_owner;

/* What find_kernel returns; a backend's own struct begins with it. */
typedef struct wk_kernel {
    const char *name; /* "linear_q4_1_avx512": op, dtype, instruction set or variant */
    wk_opcode code;
    uint32_t needs;    /* features of the device, in the backend's own bits */
    bool is_fast;      /* does not compute in float32: never chosen in exact mode */
    bool is_reference; /* cpu/ref */
    /* Numbered sizes of tiles and workgroups, 0 the default, that give the same bits; 0: one. */
    uint8_t n_tunings;
    /* Dtypes, layouts, shapes, strides and parameters only; NULL: every op of the code that
     * wk_op_check lets through. */
    bool (*accepts)(const wk_op *op);
} wk_kernel;

/* Whether the kernel may compute the op, on a device with what it needs. */
static inline bool wk_kernel_takes(const wk_kernel *kernel, const wk_op *op) {
    if (kernel->code != op->code || (kernel->is_fast && !wk_op_allows_fast(op))) return false;
    return !kernel->accepts || kernel->accepts(op);
}

/* Commands up to and including one; 0 is always done. */
typedef uint64_t wk_ticket;

/* IN_PLACE: it is not to be copied where the device can compute with the rows of its file. */
enum wk_weight_use {
    WK_USE_LINEAR = 1,
    WK_USE_EMBEDDING = 2,
    WK_USE_OTHER = 4,
    WK_USE_IN_PLACE = 8,
};

typedef struct wk_open_desc {
    wk_heap *heap;
    const wick_device_desc *device;
    const wk_backend *inner; /* what the null backend computes with */
} wk_open_desc;

typedef struct wk_backend_stats {
    uint64_t n_ops, n_ops_ref, n_submits, n_reads, bytes_uploaded, bytes_read;
    uint64_t buffer_bytes, buffer_peak_bytes;
    uint64_t n_dispatches;
    uint64_t longest_submit_ns; /* until it was seen to have run */
    uint64_t encode_ns;         /* see wick_device_stats */
    /* What the buffers' memory is taken from; all 0 where there is no such pool. */
    uint64_t pool_bytes, pool_peak_bytes, pool_free_bytes, pool_largest_free_bytes;
    uint64_t n_pool_hits, n_pool_misses;
    /* See wick_device_stats. */
    uint64_t n_pipelines, n_pipeline_hits, n_pipeline_failures, shader_bytes;
    uint64_t compile_ns, compile_wait_ns;
    uint64_t n_bind_groups, n_bind_group_hits;
} wk_backend_stats;

/* Functions marked optional may be NULL. Those without err cannot fail. */
struct wk_backend {
    wick_backend id;
    const char *name;

    /* Whether desc can be opened on this machine; desc->backend AUTO: and is better than the CPU,
     * or asked for. Optional: it always can. */
    wick_status (*available)(const wick_device_desc *desc, wick_error *err);

    /* Gives a device that is usable once open_poll has returned WICK_OK; close ends it in any state
     * and discards what was not computed. */
    wick_status (*open_start)(const wk_open_desc *desc, wk_backend_device **out, wick_error *err);
    wick_status (*open_poll)(wk_backend_device *dev, wick_error *err);
    void (*close)(wk_backend_device *dev);
    void (*info)(const wk_backend_device *dev, wick_device_info *info);
    void (*stats)(const wk_backend_device *dev, wk_backend_stats *stats);
    size_t (*profile)(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity);
    /* Optional: sets which kernels the device takes and in which of their tunings, from lines of
     * text (docs/webgpu.md). Lines that it cannot use are reported to log (may be NULL), counted
     * and left out. Commands that were recorded before stay as they are. */
    void (*tune)(wk_backend_device *dev, wk_str text, wick_log_fn log, void *log_user,
                 size_t *n_ignored);
    /* Optional: writes these lines. */
    void (*tuning)(const wk_backend_device *dev, wk_strbuf *out);
    /* Optional: the texts of the programs that it has compiled. Returns the name of the kernel that
     * asked for it first; NULL: there is no such number. */
    const char *(*program)(const wk_backend_device *dev, size_t index, wk_strbuf *text);
    /* Optional. Blocks. */
    wick_status (*measure)(wk_backend_device *dev, wick_device_limits *out, wick_error *err);

    /* Memory, contents undefined. alloc may succeed although the memory is missing; a later ticket
     * then reports it. granule: counted from the first byte, every granule bytes belong together (a
     * row, a panel); a device whose memory comes in pieces cuts between them. 0: it cuts anywhere.
     */
    wick_status (*alloc)(wk_backend_device *dev, uint64_t size, uint64_t granule, wk_buffer **out,
                         wick_error *err);
    /* Optional: the bytes of memory that such a buffer takes; else its size. */
    uint64_t (*footprint)(const wk_backend_device *dev, uint64_t size, uint64_t granule);
    /* Optional: gives back to the system what no buffer needs. May wait for what was submitted.
     */
    wick_status (*trim)(wk_backend_device *dev, uint64_t *freed, wick_error *err);
    /* Optional: a buffer over the caller's memory, which must stay until owner.release is called;
     * read-only where const data is wrapped (weights). NULL: this memory cannot be used in place,
     * and owner.release is not called. */
    wk_buffer *(*wrap)(wk_backend_device *dev, void *memory, uint64_t size, wk_memory_owner owner);
    void (*free)(wk_backend_device *dev, wk_buffer *buf);
    /* bytes may be reused when it returns. */
    wick_status (*upload)(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                          const void *bytes, uint64_t size, wick_error *err);

    /* All weights of a model lie in one buffer: it takes large pages, and has no limit. */
    bool joins_weights;
    /* Products of the same x whose weights lie side by side are worth being one (tensor/join.c). */
    bool joins_products;
    /* The layout in which this device wants a weight [n, k] of dtype; uses: wk_weight_use bits. */
    wk_layout (*prepare_weight)(const wk_backend_device *dev, wick_dtype dtype, int64_t n,
                                int64_t k, uint32_t uses);
    /* Whole rows of raw blocks into a weight's layout: first_row and n_rows are multiples of 64,
     * except that the last rows may be fewer. Not ordered after commands: weights are written
     * before use. */
    wick_status (*upload_rows)(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                               int64_t n_rows, const void *blocks, wick_error *err);

    /* Optional: a kernel of code (WK_OPS_*) for ops in a row; what only they read it may leave
     * unwritten. NULL: they run one by one. Looks at what find_kernel looks at, and at which views
     * are of one buffer. */
    const wk_kernel *(*find_joint)(const wk_backend_device *dev, wk_opcode code, const wk_op *ops);
    /* NULL: this op cannot run here as it is. Looks at code, parameters, dtypes, layouts, shapes
     * and strides only, so an op whose buffers do not exist yet can be asked for. */
    const wk_kernel *(*find_kernel)(const wk_backend_device *dev, const wk_op *op);
    /* WICK_PENDING, in a page alone, as from read_start: it had to wait for a compiler, nothing is
     * done. */
    wick_status (*encode)(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                          wick_error *err);
    /* Optional, both. Begins to compile what encode of this op, or plan_prepare of the ops in a row
     * that the kernel is for, will need; buffers may be places of a plan. */
    wick_status (*rehearse)(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                            wick_error *err);
    /* WICK_PENDING while kernels are being compiled. A kernel that does not compile is reported by
     * the call that needs it. Never blocks, except to compile a kernel where that cannot be done in
     * the background. */
    wick_status (*poll_compiled)(wk_backend_device *dev);
    /* Optional: a kernel that the device's compiler has refused, each once; false: there is none
     * left. find_kernel finds it no more. why: the sentence, which names it. */
    bool (*take_refused)(wk_backend_device *dev, wick_error *why);
    /* Closes what was encoded so far; *ticket is done when all of it has run. */
    wick_status (*submit)(wk_backend_device *dev, wk_ticket *ticket, wick_error *err);
    /* WICK_OK: ran, and the faults of all up to there can be taken. WICK_PENDING. A failure of what
     * was submitted is returned once; the polls after it go on. Never blocks; on the CPU it
     * computes for one slice of time. */
    wick_status (*poll)(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
    /* A fault slot that was set, each time once; false: there is none left. */
    bool (*take_fault)(wk_backend_device *dev, uint32_t *slot);
    /* Optional, native only: until something may have happened, at most about a millisecond; where
     * poll computes there is nothing to wait for. */
    void (*pause)(wk_backend_device *dev);

    /* Asks for a copy of bytes as they are after all commands given so far; implies submit. When
     * its ticket is done (poll), read_finish delivers; it must be called once for every read_start,
     * dst NULL throws the bytes away. */
    wick_status (*read_start)(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                              uint64_t size, wk_ticket *ticket, wick_error *err);
    wick_status (*read_finish)(wk_backend_device *dev, wk_ticket ticket, void *dst,
                               wick_error *err);

    /* Optional: n ops whose buffers exist, run again and again without allocating. The arrays stay
     * with the caller until plan_free, which drops the runs that are still queued. kernels: NULL
     * for ops that one of find_joint before them computes, too. */
    wick_status (*plan_prepare)(wk_backend_device *dev, const wk_op *ops,
                                const wk_kernel *const *kernels, size_t n, void **plan,
                                wick_error *err);
    wick_status (*plan_replay)(wk_backend_device *dev, void *plan, wick_error *err);
    void (*plan_free)(wk_backend_device *dev, void *plan);

    /* Optional, all three together: kernels written by the user. desc has been checked, except
     * against the device's limits, and need not stay. make begins to compile; poll returns
     * WICK_PENDING, or WICK_ERR_VALUE with the compiler's message. Runs that were encoded outlive
     * the kernel. */
    wick_status (*custom_make)(wk_backend_device *dev, const wick_kernel_desc *desc,
                               wk_custom **out, wick_error *err);
    wick_status (*custom_poll)(wk_backend_device *dev, wk_custom *custom, wick_error *err);
    void (*custom_free)(wk_backend_device *dev, wk_custom *custom);

    /* Optional: it cannot be lost. Whether the device is gone for good, as far as the calls so far
     * have shown (poll always does); then they fail with WICK_ERR_DEVICE_LOST, but what frees does
     * so and nothing crashes. */
    bool (*lost)(const wk_backend_device *dev);

    /* Optional: its kernels one by one, for verification and timing. */
    const struct wk_backend_kernels *kernels; /* see kernels.h */
};

#endif
