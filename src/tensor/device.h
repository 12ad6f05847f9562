/* tensor/device.h: what a device holds; for the files of tensor/ only. */
#ifndef WK_TENSOR_DEVICE_H
#define WK_TENSOR_DEVICE_H

#include "tensor/tensor.h"

typedef struct wk_plan wk_plan;
typedef struct wk_shadow wk_shadow;

/* Waiting ops, oldest first. Each holds references to its buffers. Decompositions are put in front.
 */
enum { WK_QUEUE_DRAIN = 256, WK_QUEUE_CAPACITY = 288 };
typedef struct wk_queue {
    wk_op *ring; /* [WK_QUEUE_CAPACITY] */
    uint32_t head, count;
    wick_status failure; /* the first one since the queue was last empty, WICK_OK: none */
} wk_queue;

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
    wk_recovery recovery;
    char fallback_reason[256]; /* why AUTO did not get its first choice; empty: it did */
    wick_error error;          /* sticky */
    uint64_t seed, n_streams;  /* of random numbers; streams of the seed that were taken */

    wick_tensor **scopes; /* [scope_capacity] lists of tensors, by depth - 1 */
    uint32_t scope_depth, scope_capacity;
    wick_reading *free_readings;
    wick_tensor *newest; /* of all tensors */

    wk_queue queue;
    wk_ticket submitted; /* everything encoded so far */
    wk_shadow *shadow;   /* the head of the queue while it waits for the CPU; see shadow.h */
    wk_backend_device *cpu_fast, *cpu_reference; /* shadow.c's own, opened when needed */
    wk_plan *recording;
    wk_observer_fn observer;
    void *observer_user;
    uint64_t n_fallbacks, n_decomposed, n_verified;
};

/* --- buffer.c --- */

void wk_buffer_retain(wk_buffer *buf);
void wk_buffer_release(wick_device *device, wk_buffer *buf);
/* A buffer of the backend, one reference. granule: see wk_backend.alloc. */
wick_status wk_buffer_new(wick_device *device, uint64_t size, uint64_t granule, wk_buffer **out);
/* The same over the caller's memory, see wk_backend.wrap; NULL where it cannot be used in place. */
wk_buffer *wk_buffer_wrap(wick_device *device, void *memory, uint64_t size, wk_memory_owner owner);
void wk_op_retain(const wk_op *op);
void wk_op_release(wick_device *device, const wk_op *op);

/* --- tensor.c --- */

/* A tensor that belongs to the caller and no scope. Takes over one reference to view->buf, also on
 * failure (NULL). */
wick_tensor *wk_tensor_over(wick_device *device, const wk_view *view);
/* Tells the log of the tensors that are left: where they were forgotten they cannot be released any
 * more once the device is closed. */
void wk_tensors_tell_left(const wick_device *device);
/* The same, but the innermost scope owns it, or else the caller. */
wick_tensor *wk_tensor_in_scope(wick_device *device, const wk_view *view);

/* --- scope.c --- */

wick_status wk_scopes_make(wick_device *device, wick_error *err);

/* --- transfer.c --- */

void wk_readings_free(wick_device *device);

/* --- run.c --- */

wick_status wk_queue_make(wick_device *device, wick_error *err);
void wk_queue_free(wick_device *device);
/* Forgets what waits. */
void wk_queue_drop(wick_device *device);
/* Adds a checked op behind the others; drains when the queue is full. */
wick_status wk_queue_push(wick_device *device, const wk_op *op);
/* Encodes and submits what is queued. WICK_PENDING: an op waits for its fallback or verification.
 */
wick_status wk_run(wick_device *device);
/* The same, waiting where it must. Native only. */
wick_status wk_run_to_end(wick_device *device);

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

/* NULL: not part of this build. */
const wk_backend *wk_backend_get(wick_backend id);
/* What desc asks for; NULL: it is not available, or nothing is. reason, empty before: why it, or
 * with AUTO what would have come first, is not available. */
const wk_backend *wk_backend_choose(const wick_device_desc *desc, wick_error *reason);

#endif
