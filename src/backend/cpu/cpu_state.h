/* backend/cpu/cpu_state.h: a CPU device, as its parts see it. Each may use those named before it:
 * cpu_memory.c (buffers), cpu_queue.c (the list of commands), cpu_read.c (snapshots that are read
 * back), cpu_command.c (giving commands and running them), cpu_measure.c (the machine's limits),
 * cpu_kernels.c (kernels one by one), cpu_device.c (opening, weights, the backend's table). */
#ifndef WK_BACKEND_CPU_STATE_H
#define WK_BACKEND_CPU_STATE_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/kernels.h"
#include "sys/thread_pool.h"

/* A buffer and, once freed, when it may go: the list needs no memory of its own, so that freeing
 * cannot fail. */
typedef struct wk_cpu_buffer wk_cpu_buffer;
struct wk_cpu_buffer {
    wk_buffer base;
    size_t room;     /* bytes of its memory */
    bool is_wrapped; /* the memory is owner's */
    bool is_weight;  /* rows of a weight were written to it */
    wk_memory_owner owner;
    wk_ticket free_after;
    wk_cpu_buffer *next;
};

enum { WK_CPU_LISTS = 256 };

typedef struct wk_cpu_plan {
    const wk_op *ops;
    const wk_kernel *const *kernels;
    uint32_t *n_pieces; /* [n] of each op, see wk_cpu_command */
    size_t n;
} wk_cpu_plan;

typedef enum wk_cpu_command_kind {
    WK_CPU_COMMAND_OP,
    WK_CPU_COMMAND_UPLOAD,
    WK_CPU_COMMAND_READ,
    WK_CPU_COMMAND_PLAN,
} wk_cpu_command_kind;

typedef struct wk_cpu_command {
    wk_cpu_command_kind kind;
    union {
        struct {
            const wk_cpu_kernel *kernel;
            uint32_t n_pieces; /* that last about a slice each; 0: far less than one */
            wk_op op;          /* of its views only those that the opcode has */
        } run;
        struct {
            unsigned char *to;
            uint64_t size;
            void *copy; /* NULL: the bytes are in small */
            unsigned char small[1024];
        } upload;
        wk_ticket read; /* the ticket of its slot */
        struct {
            const wk_cpu_plan *plan;
            size_t next; /* op to run */
        } replay;
    };
} wk_cpu_command;

/* Bytes asked for and, once ready, as they were. Slots are used again and again. */
typedef struct wk_cpu_read_slot {
    wk_ticket ticket; /* 0: not in use */
    const unsigned char *from;
    uint64_t size, capacity;
    void *bytes;
    bool is_ready, is_discarded;
} wk_cpu_read_slot;

typedef struct wk_cpu_block {
    void *data;
    size_t size;
} wk_cpu_block;

/* How far the op has come that runs: one that takes longer than a slice stops when that ends. */
typedef struct wk_cpu_progress {
    int phase;
    bool is_begun; /* dev->rest is what is left of that phase */
    uint64_t spent_ns;
} wk_cpu_progress;

struct wk_backend_device {
    wk_heap *heap;
    wk_pool *pool;
    uint32_t features; /* WK_CPU_* that may be used */
    wk_cpu_table table;
    uint64_t slice_ns;
    /* commands[head, tail) are still to run; tickets are counts of commands. */
    wk_cpu_command *commands;
    size_t head, tail, capacity;
    wk_ticket n_given, n_done;
    wk_cpu_progress at;                      /* of the head, or the op of its plan */
    wk_pool_rest *rest;                      /* [wk_pool_size()] */
    uint64_t until_ns;                       /* the end of the slice */
    wk_cpu_buffer *freed_first, *freed_last; /* wait for commands */
    wk_cpu_buffer *unused[WK_CPU_LISTS];     /* by size, see cpu_memory.c */
    unsigned next_list;                      /* of unused, to be freed from */
    wk_cpu_read_slot *slots;
    size_t n_slots;
    wk_cpu_block scratch, worker_scratch; /* the latter: one part for each worker */
    size_t worker_bytes;
    atomic_bool fault;           /* of the op that runs */
    bool faults[WK_FAULT_SLOTS]; /* that have not been taken */
    bool has_faults;
    wick_kernel_stats *profile; /* [n_kernels], NULL: off */
    size_t n_kernels;
    wk_backend_stats stats;
};

/* --- cpu_memory.c --- */

/* Fails for lack of memory; the message says how much the system has available. */
wick_status wk_cpu_no_memory(wick_error *err, uint64_t size, const char *what);
wick_status wk_cpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule, wk_buffer **out,
                         wick_error *err);
wk_buffer *wk_cpu_wrap(wk_backend_device *dev, void *memory, uint64_t size, wk_memory_owner owner);
void wk_cpu_free(wk_backend_device *dev, wk_buffer *buf);
/* Gives the memory back that no buffer uses. */
wick_status wk_cpu_trim(wk_backend_device *dev, uint64_t *freed, wick_error *err);
uint64_t wk_cpu_largest_unused(const wk_backend_device *dev);
/* Frees the buffers whose commands have run. */
void wk_cpu_free_waiting(wk_backend_device *dev);

/* --- cpu_queue.c --- */

/* Room for one more command at the end, cleared of nothing; NULL: out of memory, err is set. It
 * counts once wk_cpu_push has been called. */
wk_cpu_command *wk_cpu_next_command(wk_backend_device *dev, wick_error *err);
void wk_cpu_push(wk_backend_device *dev);
/* Drops the commands that are still to run, and frees the list. */
void wk_cpu_discard_commands(wk_backend_device *dev);

/* --- cpu_read.c --- */

wick_status wk_cpu_read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                              uint64_t size, wk_ticket *ticket, wick_error *err);
wick_status wk_cpu_read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                               wick_error *err);
/* Takes the snapshot. */
void wk_cpu_read_run(wk_backend_device *dev, wk_ticket ticket);
void wk_cpu_read_release(wk_backend_device *dev);

/* --- cpu_command.c: the members of the same names of wk_backend --- */

wick_status wk_cpu_upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                          const void *bytes, uint64_t size, wick_error *err);
wick_status wk_cpu_encode(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                          wick_error *err);
wick_status wk_cpu_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
bool wk_cpu_take_fault(wk_backend_device *dev, uint32_t *slot);
wick_status wk_cpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                const wk_kernel *const *kernels, size_t n, void **plan,
                                wick_error *err);
wick_status wk_cpu_plan_replay(wk_backend_device *dev, void *plan, wick_error *err);
void wk_cpu_plan_free(wk_backend_device *dev, void *plan);

/* --- cpu_measure.c --- */

wick_status wk_cpu_measure(wk_backend_device *dev, wick_device_limits *out, wick_error *err);

/* --- cpu_kernels.c --- */

extern const wk_backend_kernels wk_cpu_kernels;

#endif
