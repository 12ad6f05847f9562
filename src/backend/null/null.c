/* backend/null/null.c: see null.h. */
#include "backend/null/null.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_BINDINGS = 8, /* storage buffers of one dispatch in core WebGPU */
    LATE_POLLS = 3,   /* how often a finished ticket is still called pending */
    MAX_READS = 64,
    MANY_POLLS = 10000, /* within one turn: somebody waits for what cannot come */
    MAX_KERNELS = 256,
};

typedef struct null_buffer {
    wk_buffer base;
    wk_buffer *inner;
    struct null_buffer *next; /* all that are alive */
} null_buffer;

typedef struct null_read {
    wk_ticket inner; /* 0: free entry */
    int polls_left;
} null_read;

struct wk_backend_device {
    wk_heap *heap;
    uint32_t flags;
    const wk_backend *backend; /* what computes */
    wk_backend_device *handle;
    null_buffer *alive;
    wk_ticket late; /* the ticket that is being held back */
    int polls_left;
    wk_ticket newest,
        answered; /* WICK_NULL_TURNS: tickets beyond answered wait for the next turn */
    const wk_kernel *compiled[MAX_KERNELS]; /* in turns before this one, and then in this one */
    uint32_t n_compiled, n_known;
    uint32_t n_polls; /* for nothing, in this turn */
    uint64_t n_turns;
    null_read reads[MAX_READS];
    uint64_t calls_left; /* until it has gone; 0: it stays */
    uint32_t n_allocs, refused;
    uint64_t used, limit; /* bytes of buffers; limit 0: none */
    bool is_gone, is_known_lost;
};

/* --- Going away --- */

uint64_t wk_null_turns(const wk_backend_device *dev) { return dev->n_turns; }

void wk_null_lose_after(wk_backend_device *dev, uint64_t n_calls) { dev->calls_left = n_calls; }

/* Counts the call. */
static bool has_gone(wk_backend_device *dev) {
    if (dev->calls_left > 0 && --dev->calls_left == 0) dev->is_gone = true;
    return dev->is_gone;
}

static wick_status tell_lost(wk_backend_device *dev, wick_error *err) {
    dev->is_known_lost = true;
    return wk_fail(err, WICK_ERR_DEVICE_LOST, "null: the device was taken away");
}

/* What becomes of a command of a device that has gone. */
static wick_status swallow(wk_backend_device *dev, wick_error *err) {
    return dev->flags & WICK_NULL_LATE ? WICK_OK : tell_lost(dev, err);
}

/* --- Opening --- */

static wick_status open_start(const wk_open_desc *desc, wk_backend_device **out, wick_error *err) {
    if (!desc->inner) return wk_fail(err, WICK_ERR_NO_DEVICE, "null needs a backend that computes");
    wk_backend_device *const dev = wk_alloc_zeroed(desc->heap, sizeof *dev);
    if (!dev) return wk_fail_memory(err, sizeof *dev, "a null device");
    *dev = (wk_backend_device){.heap = desc->heap,
                               .flags = desc->device->null_flags,
                               .backend = desc->inner,
                               .calls_left = desc->device->null_lose_after,
                               .refused = desc->device->null_refused,
                               .limit = desc->device->null_memory};
    const wick_status status = dev->backend->open_start(desc, &dev->handle, err);
    if (status != WICK_OK) {
        wk_free(desc->heap, dev, sizeof *dev);
        return status;
    }
    *out = dev;
    return WICK_OK;
}

static wick_status open_poll(wk_backend_device *dev, wick_error *err) {
    return dev->backend->open_poll(dev->handle, err);
}

static void close_device(wk_backend_device *dev) {
    assert(!dev->alive && "buffers outlive their device");
    dev->backend->close(dev->handle);
    wk_free(dev->heap, dev, sizeof *dev);
}

static void info(const wk_backend_device *dev, wick_device_info *out) {
    dev->backend->info(dev->handle, out);
    out->backend = WICK_BACKEND_NULL;
    snprintf(out->backend_name, sizeof out->backend_name, "null");
    if (dev->limit == 0) return;
    out->memory_total = dev->limit;
    out->memory_available = dev->limit - dev->used;
}

static void stats(const wk_backend_device *dev, wk_backend_stats *out) {
    dev->backend->stats(dev->handle, out);
}

static size_t profile(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity) {
    return dev->backend->profile(dev->handle, out, capacity);
}

/* --- Buffers --- */

static bool is_alive(const wk_backend_device *dev, const wk_buffer *buf) {
    for (const null_buffer *b = dev->alive; b; b = b->next)
        if (&b->base == buf) return true;
    return false;
}

static wick_status check_alive(const wk_backend_device *dev, const wk_buffer *buf, const char *what,
                               wick_error *err) {
    if (is_alive(dev, buf)) return WICK_OK;
    return wk_fail(err, WICK_ERR_INTERNAL, "null: %s names a buffer that is not alive", what);
}

static wick_status alloc(wk_backend_device *dev, uint64_t size, uint64_t granule, wk_buffer **out,
                         wick_error *err) {
    if (has_gone(dev)) WK_TRY(swallow(dev, err));
    if (++dev->n_allocs == dev->refused) return wk_fail_memory(err, size, "a buffer");
    if (dev->limit > 0 && size > dev->limit - dev->used)
        return wk_fail_memory_of(err, size, dev->limit - dev->used, "a buffer");
    null_buffer *const buf = wk_alloc_zeroed(dev->heap, sizeof *buf);
    if (!buf) return wk_fail_memory(err, sizeof *buf, "a buffer");
    const wick_status status = dev->backend->alloc(dev->handle, size, granule, &buf->inner, err);
    if (status != WICK_OK) {
        wk_free(dev->heap, buf, sizeof *buf);
        return status;
    }
    /* Contents are undefined: whoever counts on zeros gets NaN. */
    if (size > 0 && buf->inner->data) memset(buf->inner->data, 0xFF, (size_t)size);
    buf->base.size = size;
    dev->used += size;
    buf->next = dev->alive;
    dev->alive = buf;
    *out = &buf->base;
    return WICK_OK;
}

static void free_buffer(wk_backend_device *dev, wk_buffer *base) {
    null_buffer **at = &dev->alive;
    while (*at && &(*at)->base != base) at = &(*at)->next;
    assert(*at && "freed twice");
    null_buffer *const buf = *at;
    *at = buf->next;
    dev->used -= base->size;
    dev->backend->free(dev->handle, buf->inner);
    wk_free(dev->heap, buf, sizeof *buf);
}

static wk_buffer *inner_of(wk_buffer *buf) {
    return buf ? ((null_buffer *)(void *)buf)->inner : NULL;
}

static wick_status check_range(const wk_buffer *buf, uint64_t offset, uint64_t size,
                               const char *what, wick_error *err) {
    if (offset <= buf->size && size <= buf->size - offset) return WICK_OK;
    return wk_fail(err, WICK_ERR_INTERNAL, "null: %s of %llu bytes at %llu, the buffer has %llu",
                   what, (unsigned long long)size, (unsigned long long)offset,
                   (unsigned long long)buf->size);
}

static wick_status upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                          const void *bytes, uint64_t size, wick_error *err) {
    WK_TRY(check_alive(dev, buf, "upload", err));
    WK_TRY(check_range(buf, offset, size, "upload", err));
    if (has_gone(dev)) return swallow(dev, err);
    return dev->backend->upload(dev->handle, inner_of(buf), offset, bytes, size, err);
}

static wk_layout prepare_weight(const wk_backend_device *dev, wick_dtype dtype, int64_t n,
                                int64_t k, uint32_t uses) {
    return dev->backend->prepare_weight(dev->handle, dtype, n, k, uses);
}

static wick_status upload_rows(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                               int64_t n_rows, const void *blocks, wick_error *err) {
    WK_TRY(check_alive(dev, weight->buf, "upload_rows", err));
    const int64_t end = first_row + n_rows, n = weight->extent[0];
    if (first_row < 0 || n_rows < 0 || end > n || first_row % 64 != 0 ||
        (n_rows % 64 != 0 && end != n))
        return wk_fail(err, WICK_ERR_INTERNAL, "null: rows %lld to %lld of %lld were uploaded",
                       (long long)first_row, (long long)end, (long long)n);
    if (has_gone(dev)) return swallow(dev, err);
    wk_view view = *weight;
    view.buf = inner_of(weight->buf);
    return dev->backend->upload_rows(dev->handle, &view, first_row, n_rows, blocks, err);
}

/* --- Ops --- */

static void to_inner(const wk_op *op, wk_op *inner) {
    wk_op_copy(inner, op);
    for (int i = 0; i < op->n_dst + op->n_src; i++) inner->view[i].buf = inner_of(op->view[i].buf);
}

static const wk_kernel *find_kernel(const wk_backend_device *dev, const wk_op *op) {
    if (dev->flags & WICK_NULL_NO_KERNELS) return NULL;
    if ((dev->flags & WICK_NULL_NO_FUSED) && wk_op_get_info(op->code)->decompose) return NULL;
    return dev->backend->find_kernel(dev->handle, op);
}

static void note_kernel(wk_backend_device *dev, const wk_kernel *kernel) {
    uint32_t i = 0;
    while (i < dev->n_known && dev->compiled[i] != kernel) i++;
    if (i == dev->n_known && i < MAX_KERNELS) dev->compiled[dev->n_known++] = kernel;
}

static wick_status encode(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                          wick_error *err) {
    int bindings = 0;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!op->view[i].buf) continue;
        WK_TRY(check_alive(dev, op->view[i].buf, wk_op_get_info(op->code)->name, err));
        bindings++;
    }
    if (bindings > MAX_BINDINGS)
        return wk_fail(err, WICK_ERR_INTERNAL, "null: %s binds %d buffers, core WebGPU has %d",
                       wk_op_get_info(op->code)->name, bindings, MAX_BINDINGS);
    WK_TRY(wk_op_check(op, err));
    if (has_gone(dev)) return swallow(dev, err);
    wk_op inner;
    to_inner(op, &inner);
    note_kernel(dev, kernel);
    return dev->backend->encode(dev->handle, kernel, &inner, err);
}

static wick_status submit(wk_backend_device *dev, wk_ticket *ticket, wick_error *err) {
    if (has_gone(dev)) WK_TRY(swallow(dev, err));
    WK_TRY(dev->backend->submit(dev->handle, ticket, err));
    if (*ticket > dev->newest) dev->newest = *ticket;
    return WICK_OK;
}

/* --- Turns: a page's GPU answers when the page's code has returned, never before --- */

static void pause_device(wk_backend_device *dev) {
    if (dev->backend->pause) dev->backend->pause(dev->handle);
    dev->answered = dev->newest;
    dev->n_compiled = dev->n_known;
    dev->n_polls = 0;
    dev->n_turns++;
}

static wick_status wait_for_turn(wk_backend_device *dev, wick_error *err) {
    if (++dev->n_polls < MANY_POLLS) return WICK_PENDING;
    return wk_fail(err, WICK_ERR_INTERNAL, "null: a call waits for what comes after it returns");
}

/* Kernels are ready in the turn after the one that asked for them. */
static wick_status poll_compiled(wk_backend_device *dev) {
    if (dev->flags & WICK_NULL_TURNS && dev->n_compiled < dev->n_known)
        return wait_for_turn(dev, NULL);
    return WICK_OK;
}

/* --- Tickets and reads --- */

static null_read *find_read(wk_backend_device *dev, wk_ticket ticket) {
    for (int i = 0; i < MAX_READS; i++)
        if (dev->reads[i].inner == ticket) return &dev->reads[i];
    return NULL;
}

/* Late: the ticket is reported as pending a few more times. Out of order: an early read is held
 * back longer than the ones after it. */
static bool is_held_back(wk_backend_device *dev, wk_ticket ticket) {
    null_read *const read = ticket ? find_read(dev, ticket) : NULL;
    if (read) return read->polls_left > 0 && read->polls_left-- > 0;
    if (!(dev->flags & WICK_NULL_LATE) || ticket == 0) return false;
    if (ticket > dev->late) {
        dev->late = ticket;
        dev->polls_left = LATE_POLLS;
    }
    return ticket == dev->late && dev->polls_left > 0 && dev->polls_left-- > 0;
}

static wick_status poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    if (has_gone(dev)) return tell_lost(dev, err);
    if (dev->flags & WICK_NULL_TURNS && ticket > dev->answered) return wait_for_turn(dev, err);
    if (is_held_back(dev, ticket)) return WICK_PENDING;
    return dev->backend->poll(dev->handle, ticket, err);
}

static bool take_fault(wk_backend_device *dev, uint32_t *slot) {
    return dev->backend->take_fault(dev->handle, slot);
}

static wick_status read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                              uint64_t size, wk_ticket *ticket, wick_error *err) {
    WK_TRY(check_alive(dev, buf, "read", err));
    WK_TRY(check_range(buf, offset, size, "read", err));
    null_read *const read = find_read(dev, 0);
    if (!read) return wk_fail(err, WICK_ERR_STATE, "null: %d reads are under way", MAX_READS);
    if (has_gone(dev)) WK_TRY(swallow(dev, err));
    WK_TRY(dev->backend->read_start(dev->handle, inner_of(buf), offset, size, ticket, err));
    if (*ticket > dev->newest) dev->newest = *ticket;
    read->inner = *ticket;
    read->polls_left = dev->flags & WICK_NULL_LATE ? LATE_POLLS : 0;
    if (dev->flags & WICK_NULL_OUT_OF_ORDER) read->polls_left += *ticket % 2 ? 5 : 0;
    return WICK_OK;
}

static wick_status read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                               wick_error *err) {
    null_read *const read = find_read(dev, ticket);
    if (!read || ticket == 0)
        return wk_fail(err, WICK_ERR_INTERNAL, "null: there is no read to finish");
    read->inner = 0;
    const bool is_wanted = dst != NULL && !has_gone(dev);
    const wick_status status =
        dev->backend->read_finish(dev->handle, ticket, is_wanted ? dst : NULL, err);
    return dst && !is_wanted ? tell_lost(dev, err) : status;
}

static bool lost(const wk_backend_device *dev) { return dev->is_known_lost; }

/* No plan_prepare: every step is encoded and checked again. No wrap: nothing is read in place. Each
 * weight has a buffer of its own, as on a GPU. */
const wk_backend wk_backend_null = {
    .id = WICK_BACKEND_NULL,
    .name = "null",
    .open_start = open_start,
    .open_poll = open_poll,
    .close = close_device,
    .info = info,
    .stats = stats,
    .profile = profile,
    .alloc = alloc,
    .free = free_buffer,
    .upload = upload,
    .prepare_weight = prepare_weight,
    .upload_rows = upload_rows,
    .find_kernel = find_kernel,
    .encode = encode,
    .poll_compiled = poll_compiled,
    .submit = submit,
    .pause = pause_device,
    .poll = poll,
    .take_fault = take_fault,
    .read_start = read_start,
    .read_finish = read_finish,
    .lost = lost,
};
