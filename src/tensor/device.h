/* tensor/device.h: what a device holds; for the files of tensor/ only. */
#ifndef WK_TENSOR_DEVICE_H
#define WK_TENSOR_DEVICE_H

#include "tensor/observe.h"

#include <assert.h>

typedef struct wk_plan wk_plan;
typedef struct wk_shadow wk_shadow;

struct wick_reading {
    wick_device *device;
    wick_tensor *source; /* dense; one reference */
    wk_buffer bytes;     /* what is read, without memory: it has the faults */
    bool is_waiting;     /* in the queue; else the backend knows it, or it cannot be read */
    wk_ticket ticket;    /* 0: not given to the backend */
    wick_status status;  /* of the last poll */
    wick_reading *next;  /* in the free list */
};

/* What waits for its turn: an op, bytes for a buffer, a read, a run of a plan, or somebody who
 * looks at what has been computed so far. */
typedef enum wk_record_kind {
    WK_RECORD_NONE, /* an op that others made needless */
    WK_RECORD_OP,
    WK_RECORD_UPLOAD,
    WK_RECORD_READ,
    WK_RECORD_PLAN,
    WK_RECORD_LOOK,
} wk_record_kind;

typedef struct wk_record {
    wk_record_kind kind;
    union {
        wk_op op; /* holds references to its buffers */
        struct {
            wk_buffer *buf; /* one reference */
            uint64_t offset, size;
            void *bytes; /* [size], ours */
        } upload;
        wick_reading *read; /* NULL: it was given up */
        struct {
            wk_plan *plan; /* NULL: it was freed */
            size_t next;   /* its op that is run next, where it is not replayed */
        } run;
        struct {
            wk_op op; /* holds references to its buffers */
            const wk_observer *observer;
            wk_look_fn fn; /* NULL: the observer was removed */
            void *user;
            wk_ticket ticket; /* of all before it; 0: not submitted yet */
        } look;
    };
} wk_record;

/* Records, oldest first; decompositions are put in front. It grows, so that no caller waits for
 * room. */
typedef struct wk_queue {
    wk_record *ring; /* [capacity], a power of two */
    uint32_t head, count, capacity;
    uint32_t n_final; /* the first of them: what they are to do is settled, see fuse.c */
    bool is_behind;   /* released buffers, which ops still need, take too much */
} wk_queue;

/* Chains that came before, by their hashes; see fuse.c. */
enum { WK_CHAINS_KNOWN = 512 };
typedef struct wk_chains_known {
    struct {
        uint64_t hash;
        uint32_t n_times;
    } seen[WK_CHAINS_KNOWN];
    uint32_t n_compiled;
} wk_chains_known;

/* Why a buffer is spoiled; shared by all that the same failure has spoiled. */
typedef struct wk_fault {
    uint32_t refs;
    wick_error error;
} wk_fault;

/* What was given to the backend and has not been seen to have run; see fault.c. */
typedef struct wk_trace_entry wk_trace_entry;
typedef struct wk_trace {
    wk_trace_entry *entries; /* [capacity], oldest first */
    size_t n, capacity;
    uint32_t next_slot, next_plan_slot; /* of the faults */
} wk_trace;

/* How a lost device comes back; see recover.c. */
typedef struct wk_lost_handle wk_lost_handle;
typedef struct wk_recovery {
    wk_backend_device *handle;  /* being opened in place of the lost one; NULL: none */
    wk_lost_handle *lost;       /* that something is left of */
    uint32_t n_attempts;        /* in a row */
    uint64_t due_ns;            /* of the next one, by clock_ns; 0: none is planned */
    uint64_t (*clock_ns)(void); /* wk_clock_ns; tests set their own */
    uint64_t n_losses;
    wk_backend_stats past; /* of lost handles */
} wk_recovery;

struct wick_device {
    wk_heap heap;
    wick_device_desc desc; /* its names are ours: it is read again after a loss */
    char *names;           /* [names_size] */
    size_t names_size;
    const wk_backend *backend;
    wk_backend_device *handle;
    uint32_t generation; /* of the handle */
    uint64_t n_held;     /* buffers and plans of the handle */
    uint64_t used_bytes; /* of buffers that others than the queue have references to */
    uint64_t made_bytes; /* of buffers since queue.c looked at them last */
    wk_recovery recovery;
    char fallback_reason[256]; /* why AUTO did not get its first choice; empty: it did */
    wick_error sticky;         /* of tensor calls */
    bool is_told;              /* a read has returned it: it stops no other read */
    wick_error *err;           /* where the call that runs leaves its failure: sticky, or its own */
    uint64_t seed, n_streams;  /* of random numbers; streams of the seed that were taken */

    wick_tensor **scopes; /* [scope_capacity] lists of tensors, by depth - 1 */
    uint32_t scope_depth, scope_capacity;
    const char *operation;    /* the outermost one that is under way; NULL: none */
    uint32_t operation_depth; /* of its scope */
    wick_reading *free_readings;
    wick_tensor *newest; /* of all tensors */
    wick_tensor *unused; /* structs of released ones */
    uint32_t n_unused;

    wk_queue queue;
    wk_ticket submitted;  /* everything encoded so far */
    bool has_unsubmitted; /* bytes were uploaded since, beside the queue */
    wk_shadow *shadow;    /* the head of the queue while it waits for the CPU; see shadow.h */
    wk_backend_device *cpu_fast, *cpu_reference; /* shadow.c's own, opened when needed */
    wk_trace trace;
    wk_buffer *buffers;   /* all that are alive, the newest first */
    uint64_t n_buffers;   /* that there ever were */
    uint32_t n_spoiled;   /* buffers with a fault */
    wk_fault unallocated; /* where there is no memory for one; refs 1: not in use */
    wk_plan *recording;
    struct {
        wk_observer *first;
        uint32_t n_on;  /* not removed */
        uint32_t depth; /* lists that are being gone through, one in a hook of another */
    } observers;
    uint64_t n_fallbacks, n_decomposed, n_verified, n_fused, n_unread;
    wk_chains_known *chains; /* NULL: none so far */
    uint64_t n_spans;        /* that fuse.c has looked at */
    uint32_t n_refused;      /* kernels that the device's compiler refused, so far */
};

/* --- error.c --- */

/* A sticky error that a read has returned makes room for the next one. */
void wk_device_forget_told(wick_device *device);

/* --- buffer.c --- */

/* Among those that are alive, and that can have a fault; and no more. */
void wk_buffer_enlist(wick_device *device, wk_buffer *buf);
void wk_buffer_delist(wick_device *device, wk_buffer *buf);
/* A buffer of the backend, one reference. granule: see wk_backend.alloc. */
wick_status wk_buffer_new(wick_device *device, uint64_t size, uint64_t granule, wk_buffer **out);
/* The same over the caller's memory, see wk_backend.wrap; NULL where it cannot be used in place. */
wk_buffer *wk_buffer_wrap(wick_device *device, void *memory, uint64_t size, wk_memory_owner owner);

/* --- tensor.c --- */

/* A tensor that belongs to the caller and no scope. Takes over one reference to view->buf, also on
 * failure (NULL). */
wick_tensor *wk_tensor_over(wick_device *device, const wk_view *view);
/* Tells the log of the tensors that are left: where they were forgotten they cannot be released any
 * more once the device is closed. */
void wk_tensors_tell_left(const wick_device *device);
/* The same, but the innermost scope owns it, or else the caller. */
wick_tensor *wk_tensor_in_scope(wick_device *device, const wk_view *view);
void wk_tensors_free_unused(wick_device *device);
/* Takes it out of the list of its scope. */
void wk_tensor_leave_scope(wick_tensor *tensor);

/* --- scope.c --- */

wick_status wk_scopes_make(wick_device *device, wick_error *err);

/* --- transfer.c --- */

void wk_readings_free(wick_device *device);

/* --- queue.c --- */

void wk_queue_free(wick_device *device);
/* Forgets what waits. */
void wk_queue_drop(wick_device *device);
/* Record number index from the head on. */
static inline wk_record *wk_queue_at(wick_device *device, uint32_t index) {
    const wk_queue *const queue = &device->queue;
    assert(index < queue->count);
    return &queue->ring[(queue->head + index) & (queue->capacity - 1)];
}
static inline wk_record *wk_queue_head(wick_device *device) { return wk_queue_at(device, 0); }
/* It becomes nothing, or another op instead of its own. */
void wk_queue_cancel(wick_device *device, wk_record *record);
void wk_queue_replace(wick_device *device, wk_record *record, const wk_op *op);
void wk_queue_pop(wick_device *device);
/* Room for n more records, as wk_queue_push_front needs it. */
wick_status wk_queue_reserve(wick_device *device, uint32_t n);
/* Before the others. */
void wk_queue_push_front(wick_device *device, const wk_op *op);
/* Adds a checked op after the others. Never waits; where many are queued, computes for a slice. */
wick_status wk_queue_push(wick_device *device, const wk_op *op);
/* Adds a run of the plan. */
wick_status wk_queue_run(wick_device *device, wk_plan *plan);
/* What is queued of a plan that is freed becomes nothing. */
void wk_queue_forget(wick_device *device, const wk_plan *plan);
/* The contents as they are after all that was queued before. */
wick_status wk_queue_read(wick_device *device, wick_reading *reading);
void wk_queue_forget_read(wick_device *device, const wick_reading *reading);
/* A look of an observer, see wk_observer_look. */
wick_status wk_queue_look(wick_device *device, const wk_op *op, const wk_observer *observer,
                          wk_look_fn fn, void *user);
/* Looks of an observer that wait are not made any more. */
void wk_queue_forget_looks(wick_device *device, const wk_observer *observer);
/* Bytes for a buffer, after all that was queued before; they may be reused when it returns. */
wick_status wk_queue_upload(wick_device *device, wk_buffer *buf, uint64_t offset, const void *bytes,
                            uint64_t size);

/* --- device.c --- */

/* How long one call may compute. */
uint64_t wk_device_slice_ns(const wick_device *device);

/* --- fuse.c --- */

/* Settles what waits: drops ops whose results no one can read, makes chains of others. */
void wk_fuse(wick_device *device);
void wk_fuse_free(wick_device *device);

/* --- run.c --- */

/* Gives bytes to the backend at once. */
wick_status wk_upload(wick_device *device, wk_buffer *buf, uint64_t offset, const void *bytes,
                      uint64_t size);
/* Gives the op to the backend. WICK_PENDING: it waits for a compiler, call again. */
wick_status wk_run_kernel(wick_device *device, const wk_kernel *kernel, wk_op *op);
/* Encodes and submits what is queued. WICK_PENDING: a record waits for the CPU (a fallback, a
 * verification), for a compiler or for the next slice. An op that fails spoils what it writes, and
 * nothing else: the only failure of this is that of the device. Never waits. */
wick_status wk_run(wick_device *device);
/* Looks how far the device has come, at most one slice on the CPU, and collects the faults up to
 * there. WICK_PENDING, or a failure of the device as above. */
wick_status wk_progress(wick_device *device, wk_ticket ticket);

/* --- observe.c --- */

/* One of the two; the other is NULL. */
void wk_observers_show(wick_device *device, const wk_call *call, const wk_view_made *made,
                       const wick_tensor *written);
void wk_observers_free(wick_device *device);

/* --- fault.c --- */

/* Room for what one more op comes to. */
wick_status wk_trace_reserve(wick_device *device);
/* The op, or a run of the plan, has been given to the backend. */
void wk_trace_op(wick_device *device, const wk_op *op);
void wk_trace_plan(wick_device *device, const wk_plan *plan);
/* Or bytes for a buffer, all of it or a part. */
void wk_trace_upload(wick_device *device, const wk_buffer *buf, bool is_whole);
/* Or a read of a buffer into another one. */
void wk_trace_read(wick_device *device, const wk_buffer *from, const wk_buffer *to);
/* All that was traced since the last call has this ticket. */
void wk_trace_submitted(wick_device *device);
/* All with a ticket up to this one have run. */
void wk_trace_settle(wick_device *device, wk_ticket ticket);
void wk_trace_forget(wick_device *device, const wk_plan *plan);
void wk_trace_free(wick_device *device);
/* The fault slot of an op that is given to the backend next, and of a plan that is made. */
uint8_t wk_trace_op_slot(const wick_device *device);
uint8_t wk_trace_plan_slot(wick_device *device);
/* Whether something else than the plan (NULL: than what comes) has the slot and has not been seen
 * to have run; *ticket: its ticket, 0 while it is not submitted. */
bool wk_trace_is_claimed(const wick_device *device, uint8_t slot, const wk_plan *plan,
                         wk_ticket *ticket);

/* WICK_OK, or why something that the op reads is spoiled, with its sentence. */
wick_status wk_fault_check(wick_device *device, const wk_op *op);
/* What the op writes, or the buffer, is spoiled: reads of it fail with the reason. */
void wk_fault_spoil(wick_device *device, const wk_op *op, const wick_error *reason);
void wk_fault_spoil_buffer(wick_device *device, wk_buffer *buf, const wick_error *reason);
/* To what has the contents of from, which is spoiled. */
void wk_fault_pass(wick_device *device, const wk_buffer *from, wk_buffer *to);
/* WICK_OK, or the failure that spoiled the buffer, with its sentence. */
wick_status wk_fault_tell(wick_device *device, const wk_buffer *buf);
/* Destination i is all of its buffer, and not read. */
bool wk_op_replaces(const wk_op *op, int i);
/* The op has run: what it wrote whole is sound again. */
void wk_fault_heal_written(wick_device *device, const wk_op *op);
/* Takes the slots that were set, and spoils what was computed from the ops that set them. */
void wk_fault_collect(wick_device *device);
/* All that has not been seen to have run is spoiled; false: there is nothing. */
bool wk_fault_spoil_unfinished(wick_device *device, const wick_error *reason);
/* The buffer has new contents. */
void wk_fault_heal(wick_device *device, wk_buffer *buf);

/* --- recover.c --- */

/* The handle of a generation that something is left of. */
wk_backend_device *wk_handle_of(wick_device *device, uint32_t generation);
/* A buffer or plan less of that generation. */
void wk_handle_let_go(wick_device *device, uint32_t generation);
/* Closes what is open beside device->handle. */
void wk_recovery_free(wick_device *device);
/* Adds what lost handles did. */
void wk_recovery_stats(const wick_device *device, wk_backend_stats *stats);
/* WICK_ERR_DEVICE_LOST with its sentence, where the buffer or its device was lost. */
wick_status wk_buffer_usable(wick_device *device, const wk_buffer *buf);
wick_status wk_device_usable(wick_device *device);
/* Of a lost device: drops what is queued; WICK_ERR_DEVICE_LOST. */
wick_status wk_device_abandon(wick_device *device);

/* --- device.c --- */

/* Begins to open this backend; with AUTO the CPU takes its place where it cannot be opened. reason:
 * why it is not the first choice, or empty. */
wick_status wk_device_open_start(const wick_device_desc *desc, const wk_backend *backend,
                                 const char *reason, wick_device_opening **out, wick_error *err);

/* --- registry.c --- */

/* NULL: not implemented. */
const wk_backend *wk_backend_get(wick_backend id);
/* What desc asks for; NULL: it is not available, or nothing is. reason, empty before: why it, or
 * with AUTO what would have come first, is not available. */
const wk_backend *wk_backend_choose(const wick_device_desc *desc, wick_error *reason);

#endif
