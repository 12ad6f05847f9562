/* tensor/recover.c: what becomes of a device that is lost: its handle is replaced by a new one.
 *
 * Each handle is a generation. Buffers and plans know theirs: those of an old one can only be
 * released, and its handle is closed after the last of them. */
#include "tensor/device.h"
#include "tensor/shadow.h"

#include <assert.h>
#include <stdio.h>

enum { MAX_ATTEMPTS = 3, FIRST_DELAY_MS = 25, DELAY_GROWTH = 4 };

/* A handle whose device was lost. */
struct wk_lost_handle {
    wk_backend_device *handle;
    uint32_t generation;
    uint64_t n_held;
    wk_lost_handle *next;
};

/* --- Handles --- */

static wk_lost_handle **find_lost(wick_device *device, uint32_t generation) {
    wk_lost_handle **at = &device->recovery.lost;
    assert(generation < device->generation && *at);
    while ((*at)->generation != generation) at = &(*at)->next;
    return at;
}

wk_backend_device *wk_handle_of(wick_device *device, uint32_t generation) {
    if (generation == device->generation) return device->handle;
    return (*find_lost(device, generation))->handle;
}

static void close_lost(wick_device *device, wk_lost_handle **at) {
    wk_lost_handle *const lost = *at;
    *at = lost->next;
    device->backend->close(lost->handle);
    wk_free(&device->heap, lost, sizeof *lost);
}

void wk_handle_let_go(wick_device *device, uint32_t generation) {
    if (generation == device->generation) {
        assert(device->n_held > 0);
        device->n_held--;
        return;
    }
    wk_lost_handle **const at = find_lost(device, generation);
    assert((*at)->n_held > 0);
    if (--(*at)->n_held == 0) close_lost(device, at);
}

void wk_recovery_free(wick_device *device) {
    if (device->recovery.handle) device->backend->close(device->recovery.handle);
    while (device->recovery.lost) close_lost(device, &device->recovery.lost);
}

/* --- Loss --- */

bool wk_device_can_be_lost(const wick_device *device) { return device->backend->lost != NULL; }

bool wk_device_is_lost(const wick_device *device) {
    return device->backend->lost && device->backend->lost(device->handle);
}

uint32_t wk_device_generation(const wick_device *device) { return device->generation; }

wick_status wk_device_check(wick_device *device) {
    if (!device->backend->lost) return WICK_OK;
    (void)wk_progress(device, 0);
    return wk_device_usable(device);
}

wick_status wk_device_usable(wick_device *device) {
    if (!wk_device_is_lost(device)) return WICK_OK;
    return wk_device_fail(device, WICK_ERR_DEVICE_LOST, "the device was lost");
}

wick_status wk_buffer_usable(wick_device *device, const wk_buffer *buf) {
    if (buf->generation == device->generation) return wk_device_usable(device);
    return wk_device_fail(device, WICK_ERR_DEVICE_LOST,
                          "the tensor was lost with its device, it must be made again");
}

wick_status wk_device_abandon(wick_device *device) {
    wk_shadow_drop(device);
    wk_queue_drop(device);
    wk_trace_free(device);
    return wk_device_usable(device);
}

/* --- Recovery --- */

static void forget_loss(wick_device *device) {
    if (device->err->status == WICK_ERR_DEVICE_LOST) *device->err = (wick_error){0};
}

/* Counts and peaks, not what is there now. */
static void add_stats(wk_backend_stats *sum, const wk_backend_stats *of) {
    sum->n_ops += of->n_ops;
    sum->n_ops_ref += of->n_ops_ref;
    sum->n_submits += of->n_submits;
    sum->n_reads += of->n_reads;
    sum->bytes_uploaded += of->bytes_uploaded;
    sum->bytes_read += of->bytes_read;
    sum->n_dispatches += of->n_dispatches;
    sum->encode_ns += of->encode_ns;
    sum->n_pool_hits += of->n_pool_hits;
    sum->n_pool_misses += of->n_pool_misses;
    sum->n_pipelines += of->n_pipelines;
    sum->n_pipeline_hits += of->n_pipeline_hits;
    sum->n_pipeline_failures += of->n_pipeline_failures;
    sum->shader_bytes += of->shader_bytes;
    sum->compile_ns += of->compile_ns;
    sum->compile_wait_ns += of->compile_wait_ns;
    sum->n_bind_groups += of->n_bind_groups;
    sum->n_bind_group_hits += of->n_bind_group_hits;
    if (of->longest_submit_ns > sum->longest_submit_ns)
        sum->longest_submit_ns = of->longest_submit_ns;
    if (of->buffer_peak_bytes > sum->buffer_peak_bytes)
        sum->buffer_peak_bytes = of->buffer_peak_bytes;
    if (of->pool_peak_bytes > sum->pool_peak_bytes) sum->pool_peak_bytes = of->pool_peak_bytes;
}

void wk_recovery_stats(const wick_device *device, wk_backend_stats *stats) {
    add_stats(stats, &device->recovery.past);
}

/* The new handle takes the place of the lost one. */
static void replace(wick_device *device, wk_lost_handle *lost) {
    wk_recovery *const r = &device->recovery;
    assert(r->handle);
    assert(device->queue.count == 0 && device->trace.n == 0 && !device->shadow);
    wk_backend_stats past = {0};
    device->backend->stats(device->handle, &past);
    add_stats(&r->past, &past);
    *lost = (wk_lost_handle){.handle = device->handle,
                             .generation = device->generation,
                             .n_held = device->n_held,
                             .next = r->lost};
    r->lost = lost;
    if (lost->n_held == 0) close_lost(device, &r->lost);
    device->handle = r->handle;
    device->generation++;
    device->n_held = 0;
    device->submitted = 0;
    r->handle = NULL;
    r->n_losses++;
}

/* Chooses when to try, or gives up. reason: why there is no device, not in device->err. */
static wick_status plan_attempt(wick_device *device, const char *reason) {
    wk_recovery *const r = &device->recovery;
    if (r->n_attempts == MAX_ATTEMPTS) {
        forget_loss(device);
        return wk_device_fail(device, WICK_ERR_DEVICE_LOST, "%s (given up after %d attempts)",
                              reason, (int)MAX_ATTEMPTS);
    }
    uint64_t delay_ms = FIRST_DELAY_MS;
    for (uint32_t i = 0; i < r->n_attempts; i++) delay_ms *= DELAY_GROWTH;
    r->due_ns = r->clock_ns() + delay_ms * 1000000;
    r->n_attempts++;
    wk_device_log(device, WICK_LOG_WARNING, "%s; opening it again, attempt %u of %d", reason,
                  r->n_attempts, (int)MAX_ATTEMPTS);
    return WICK_PENDING;
}

/* The new handle takes the kernels that the lost one took. */
static wick_status hand_on_tuning(wick_device *device, wick_error *err) {
    if (!device->backend->tuning) return WICK_OK;
    wk_strbuf text;
    size_t n_ignored;
    wk_strbuf_init(&text, &device->heap);
    device->backend->tuning(device->handle, &text);
    const bool failed = text.failed;
    if (!failed)
        device->backend->tune(device->recovery.handle, (wk_str){text.data, text.size},
                              device->desc.log, device->desc.log_user, &n_ignored);
    const size_t size = text.size;
    wk_strbuf_release(&text);
    return failed ? wk_fail_memory(err, size, "the choice of kernels") : WICK_OK;
}

static wick_status open_again(wick_device *device, wick_error *err) {
    wk_recovery *const r = &device->recovery;
    if (!r->handle) {
        const wk_open_desc open = {.heap = &device->heap,
                                   .device = &device->desc,
                                   .inner = wk_backend_get(WICK_BACKEND_CPU)};
        WK_TRY(device->backend->open_start(&open, &r->handle, err));
    }
    WK_TRY(device->backend->open_poll(r->handle, err));
    WK_TRY(hand_on_tuning(device, err));
    wk_lost_handle *const lost = wk_alloc(&device->heap, sizeof *lost);
    if (!lost) return wk_fail_memory(err, sizeof *lost, "a device");
    replace(device, lost);
    return WICK_OK;
}

wick_status wk_device_recover(wick_device *device) {
    if (!wk_device_is_lost(device)) return WICK_OK;
    wk_recovery *const r = &device->recovery;
    if (r->due_ns == 0) {
        wick_error loss = {.status = WICK_OK};
        (void)wk_device_abandon(device);
        (void)device->backend->poll(device->handle, 0, &loss); /* says why */
        return plan_attempt(device, loss.message);
    }
    if (r->clock_ns() < r->due_ns) return WICK_PENDING;
    wick_error error = {.status = WICK_OK};
    const wick_status status = open_again(device, &error);
    if (status == WICK_PENDING) return WICK_PENDING;
    r->due_ns = 0;
    if (status == WICK_OK) {
        forget_loss(device);
        return WICK_OK;
    }
    if (r->handle) device->backend->close(r->handle);
    r->handle = NULL;
    char reason[sizeof error.message + 64];
    snprintf(reason, sizeof reason, "the device was lost and cannot be opened again: %s",
             error.message);
    return plan_attempt(device, reason);
}

void wk_device_settle(wick_device *device) { device->recovery.n_attempts = 0; }

wick_status wick_device_recover(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    const wick_status status = wk_device_recover(device);
    if (status == WICK_OK) wk_device_settle(device);
    return status;
}
