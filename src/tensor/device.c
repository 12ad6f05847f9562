/* tensor/device.c: opening and closing devices, their counters. */
#include "tensor/device.h"

#include "backend/kernels.h"
#include "core/status.h"
#include "sys/clock.h"
#include "tensor/shadow.h"

#include <stdio.h>
#include <string.h>

struct wick_device_opening {
    wick_device *device;
    wick_status status; /* WICK_PENDING until it is open or cannot be */
};

/* --- Opening --- */

static void free_device(wick_device *device) {
    if (!device) return;
    wk_shadow_free(device);
    wk_queue_free(device);
    wk_fuse_free(device);
    wk_trace_free(device);
    wk_recovery_free(device);
    if (device->handle) device->backend->close(device->handle);
    wk_readings_free(device);
    wk_tensors_free_unused(device);
    wk_observers_free(device);
    wk_free(&device->heap, device->names, device->names_size);
    wk_free(&device->heap, device->scopes, device->scope_capacity * sizeof *device->scopes);
    wk_heap heap = device->heap;
    wk_free(&heap, device, sizeof *device);
}

static wick_status start_backend(wick_device *device) {
    const wk_open_desc open = {
        .heap = &device->heap, .device = &device->desc, .inner = wk_backend_get(WICK_BACKEND_CPU)};
    const wick_status status = device->backend->open_start(&open, &device->handle, device->err);
    if (status == WICK_OK) return WICK_PENDING;
    return wk_fail(device->err, status, "cannot open backend %s: %s", device->backend->name,
                   wick_status_text(status));
}

/* AUTO: a backend that was there and cannot be opened after all is replaced by the CPU. */
static wick_status fall_back(wick_device *device, wick_status status) {
    const wk_backend *const cpu = wk_backend_get(WICK_BACKEND_CPU);
    if (status >= 0 || device->desc.backend != WICK_BACKEND_AUTO || device->backend == cpu)
        return status;
    snprintf(device->fallback_reason, sizeof device->fallback_reason,
             "backend %s cannot be opened: %.200s", device->backend->name, device->err->message);
    if (device->handle) device->backend->close(device->handle);
    device->handle = NULL;
    *device->err = (wick_error){.status = WICK_OK};
    device->backend = cpu;
    return start_backend(device);
}

/* The texts that desc points to, for as long as the device lives. */
static wick_status keep_names(wick_device *device, wick_error *err) {
    const char **const names[] = {&device->desc.webgpu.library, &device->desc.webgpu.adapter};
    for (size_t i = 0; i < WK_COUNT(names); i++)
        if (*names[i]) device->names_size += strlen(*names[i]) + 1;
    if (device->names_size == 0) return WICK_OK;
    device->names = wk_alloc(&device->heap, device->names_size);
    if (!device->names) return wk_fail_memory(err, device->names_size, "a device");
    char *at = device->names;
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (!*names[i]) continue;
        const size_t size = strlen(*names[i]) + 1;
        *names[i] = memcpy(at, *names[i], size);
        at += size;
    }
    return WICK_OK;
}

static wick_status make_parts(wick_device *device, wick_error *err) {
    WK_TRY(keep_names(device, err));
    return wk_scopes_make(device, err);
}

wick_status wk_device_open_start(const wick_device_desc *desc, const wk_backend *backend,
                                 const char *reason, wick_device_opening **out, wick_error *err) {
    wk_heap heap;
    wk_heap_init(&heap, &desc->allocator);
    wick_device *const device = wk_alloc_zeroed(&heap, sizeof *device);
    if (!device) return wk_fail_memory(err, sizeof *device, "a device");
    device->heap = heap;
    device->desc = *desc;
    device->backend = backend;
    device->recovery.clock_ns = wk_clock_ns;
    device->err = &device->sticky;
    device->unallocated.refs = 1;
    snprintf(device->fallback_reason, sizeof device->fallback_reason, "%.255s", reason);
    wick_device_opening *const o = wk_alloc_zeroed(&device->heap, sizeof *o);
    wick_status status = o ? make_parts(device, err) : wk_fail_memory(err, sizeof *o, "a device");
    if (status == WICK_OK) {
        status = fall_back(device, start_backend(device));
        if (status < 0 && err && err->status == WICK_OK) *err = *device->err;
    }
    if (status < 0) {
        wk_free(&device->heap, o, sizeof *o);
        free_device(device);
        return status;
    }
    *o = (wick_device_opening){.device = device, .status = WICK_PENDING};
    *out = o;
    return WICK_OK;
}

wick_status wick_device_open_start(const wick_device_desc *desc, wick_device_opening **opening,
                                   wick_error *error) {
    static const wick_device_desc defaults;
    if (!opening) return wk_fail(error, WICK_ERR_ARGUMENT, "an opening needs a place to go");
    *opening = NULL;
    if (!desc) desc = &defaults;
    wick_error reason = {0};
    const wk_backend *const backend = wk_backend_choose(desc, &reason);
    if (!backend) return wk_fail(error, reason.status, "%s", reason.message);
    if ((uint32_t)desc->math > WICK_MATH_FAST)
        return wk_fail(error, WICK_ERR_VALUE, "there is no math number %d", (int)desc->math);
    if ((uint32_t)desc->fusion > WICK_FUSION_ALWAYS)
        return wk_fail(error, WICK_ERR_VALUE, "there is no fusion number %d", (int)desc->fusion);
    if (!desc->allocator.allocate != !desc->allocator.release)
        return wk_fail(error, WICK_ERR_VALUE, "an allocator needs both of its functions");
    return wk_device_open_start(desc, backend, reason.message, opening, error);
}

wick_status wk_device_open_host(const wick_device *device, wick_device_opening **out,
                                wick_error *err) {
    wick_device_desc desc = device->desc;
    desc.backend = WICK_BACKEND_CPU;
    return wick_device_open_start(&desc, out, err);
}

wick_status wick_device_open_poll(wick_device_opening *opening) {
    if (!opening) return WICK_ERR_ARGUMENT;
    wick_device *const device = opening->device;
    if (opening->status != WICK_PENDING) return opening->status;
    opening->status = fall_back(device, device->backend->open_poll(device->handle, device->err));
    return opening->status;
}

wick_status wick_device_open_finish(wick_device_opening *opening, wick_device **device,
                                    wick_error *error) {
    if (device) *device = NULL;
    if (!opening)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_open_finish: opening is NULL");
    wick_device *const opened = opening->device;
    const wick_status status = device ? wick_device_open_poll(opening) : WICK_PENDING;
    wk_free(&opened->heap, opening, sizeof *opening);
    if (status == WICK_OK) {
        *device = opened;
        return WICK_OK;
    }
    if (status < 0 && error && error->status == WICK_OK) *error = *opened->err;
    free_device(opened);
    if (!device)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_open_finish: device is NULL");
    if (status == WICK_PENDING)
        return wk_fail(error, WICK_ERR_CANCELLED, "the device was not open yet");
    return status;
}

wick_status wick_device_open(const wick_device_desc *desc, wick_device **device,
                             wick_error *error) {
    wick_device_opening *opening;
    if (!device) return wk_fail(error, WICK_ERR_ARGUMENT, "a device needs a place to go");
    *device = NULL;
    WK_TRY(wick_device_open_start(desc, &opening, error));
    while (wick_device_open_poll(opening) == WICK_PENDING) wick_pause(opening->device);
    return wick_device_open_finish(opening, device, error);
}

void wick_device_close(wick_device *device) {
    if (device) wk_tensors_tell_left(device);
    free_device(device);
}

/* --- What it is and did --- */

wick_math wick_device_math(const wick_device *device) {
    return device ? device->desc.math : WICK_MATH_EXACT;
}

void wick_device_set_math(wick_device *device, wick_math math) {
    if (device && (uint32_t)math <= WICK_MATH_FAST) device->desc.math = math;
}

uint64_t wk_device_slice_ns(const wick_device *device) {
    const uint32_t us = device->desc.slice_us;
    return (us > 0 ? us : WK_DEFAULT_SLICE_US) * UINT64_C(1000);
}

void wick_device_set_seed(wick_device *device, uint64_t seed) {
    if (!device) return;
    device->seed = seed;
    device->n_streams = 0;
}

uint64_t wick_device_seed(const wick_device *device) { return device ? device->seed : 0; }

void wick_device_set_stream(wick_device *device, uint64_t stream) {
    if (device) device->n_streams = stream;
}

uint64_t *wk_device_streams(wick_device *device) { return &device->n_streams; }

void wick_device_get_info(const wick_device *device, wick_device_info *info) {
    if (!info) return;
    *info = (wick_device_info){0};
    if (!device) return;
    device->backend->info(device->handle, info);
    info->is_fallback = device->fallback_reason[0] != '\0';
    memcpy(info->fallback_reason, device->fallback_reason, sizeof info->fallback_reason);
}

wick_status wick_device_measure(wick_device *device, wick_device_limits *limits,
                                wick_error *error) {
    if (!device || !limits)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_measure: an argument is NULL");
    *limits = (wick_device_limits){0};
    if (!device->backend->measure)
        return wk_fail(error, WICK_ERR_UNSUPPORTED, "backend %s does not measure its limits",
                       device->backend->name);
    return device->backend->measure(device->handle, limits, error);
}

wick_status wick_device_tune(wick_device *device, const char *text, size_t size, size_t *n_ignored,
                             wick_error *error) {
    size_t n;
    if (!n_ignored) n_ignored = &n;
    *n_ignored = 0;
    if (!device || (!text && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_tune: an argument is NULL");
    if (!device->backend->tune)
        return wk_fail(error, WICK_ERR_UNSUPPORTED, "backend %s has no kernels to choose among",
                       device->backend->name);
    device->backend->tune(device->handle, (wk_str){text, size}, device->desc.log,
                          device->desc.log_user, n_ignored);
    return WICK_OK;
}

/* Gives as much of the text as there is room for, and ends it; returns its bytes, 0 without memory.
 */
static size_t give_text(wk_strbuf *text, char *out, size_t capacity) {
    const size_t size = text->failed ? 0 : text->size;
    if (size > 0 && capacity > 0) memcpy(out, text->data, size < capacity ? size : capacity);
    wk_strbuf_release(text);
    return size;
}

size_t wick_device_get_tuning(wick_device *device, char *out, size_t capacity) {
    if (!device || !device->backend->tuning || (!out && capacity > 0)) return 0;
    wk_strbuf text;
    wk_strbuf_init(&text, &device->heap);
    device->backend->tuning(device->handle, &text);
    return give_text(&text, out, capacity);
}

const char *wick_device_kernel_name(const wick_device *device, size_t index) {
    if (!device || !device->backend->kernels) return NULL;
    const wk_kernel *const kernel = device->backend->kernels->at(device->handle, index);
    return kernel ? kernel->name : NULL;
}

size_t wick_device_program(wick_device *device, size_t index, const char **kernel, char *out,
                           size_t capacity) {
    if (!device || !device->backend->program || !kernel || (!out && capacity > 0)) return 0;
    wk_strbuf text;
    wk_strbuf_init(&text, &device->heap);
    *kernel = device->backend->program(device->handle, index, &text);
    return give_text(&text, out, capacity);
}

void wick_device_get_stats(const wick_device *device, wick_device_stats *stats) {
    if (!stats) return;
    *stats = (wick_device_stats){0};
    if (!device) return;
    wk_backend_stats of = {0};
    device->backend->stats(device->handle, &of);
    wk_recovery_stats(device, &of);
    *stats = (wick_device_stats){.n_allocations = device->heap.n_allocations,
                                 .live_bytes = device->heap.live_bytes,
                                 .peak_bytes = device->heap.peak_bytes,
                                 .buffer_bytes = of.buffer_bytes,
                                 .buffer_peak_bytes = of.buffer_peak_bytes,
                                 .n_ops = of.n_ops,
                                 .n_ops_ref = of.n_ops_ref,
                                 .n_fallbacks = device->n_fallbacks,
                                 .n_decomposed = device->n_decomposed,
                                 .n_fused = device->n_fused,
                                 .n_unread = device->n_unread,
                                 .n_verified = device->n_verified,
                                 .n_submits = of.n_submits,
                                 .n_reads = of.n_reads,
                                 .bytes_uploaded = of.bytes_uploaded,
                                 .bytes_read = of.bytes_read,
                                 .n_dispatches = of.n_dispatches,
                                 .longest_submit = 1e-9 * (double)of.longest_submit_ns,
                                 .encode_seconds = 1e-9 * (double)of.encode_ns,
                                 .pool_bytes = of.pool_bytes,
                                 .pool_peak_bytes = of.pool_peak_bytes,
                                 .pool_free_bytes = of.pool_free_bytes,
                                 .n_pool_hits = of.n_pool_hits,
                                 .n_pool_misses = of.n_pool_misses,
                                 .n_pipelines = of.n_pipelines,
                                 .n_pipeline_hits = of.n_pipeline_hits,
                                 .n_pipeline_failures = of.n_pipeline_failures,
                                 .shader_bytes = of.shader_bytes,
                                 .compile_seconds = 1e-9 * (double)of.compile_ns,
                                 .compile_wait_seconds = 1e-9 * (double)of.compile_wait_ns,
                                 .n_bind_groups = of.n_bind_groups,
                                 .n_bind_group_hits = of.n_bind_group_hits,
                                 .n_losses = device->recovery.n_losses};
    if (of.pool_free_bytes > 0)
        stats->pool_fragmentation =
            1 - (double)of.pool_largest_free_bytes / (double)of.pool_free_bytes;
}

wick_status wick_device_trim(wick_device *device, uint64_t *freed, wick_error *error) {
    uint64_t ignored;
    if (!freed) freed = &ignored;
    *freed = 0;
    if (!device) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_trim: device is NULL");
    wk_tensors_free_unused(device);
    if (!device->backend->trim) return WICK_OK;
    return device->backend->trim(device->handle, freed, error);
}

size_t wick_device_get_profile(const wick_device *device, wick_kernel_stats *out, size_t capacity) {
    if (!device || (!out && capacity > 0)) return 0;
    return device->backend->profile(device->handle, out, capacity);
}

bool wk_device_compiles(const wick_device *device) { return device->backend->rehearse != NULL; }

bool wk_device_verifies(const wick_device *device) { return device->desc.verify; }

bool wk_device_is_apart(const wick_device *device) { return device->backend->wrap == NULL; }

wick_status wk_device_compiled(wick_device *device) {
    const wk_backend *const backend = device->backend;
    const wick_status status =
        backend->poll_compiled ? backend->poll_compiled(device->handle) : WICK_OK;
    wick_error why = {.status = WICK_OK};
    while (backend->take_refused && backend->take_refused(device->handle, &why)) {
        device->n_refused++;
        wk_device_log(device, WICK_LOG_WARNING, "%s; another kernel or the CPU takes its place",
                      why.message);
        why = (wick_error){.status = WICK_OK};
    }
    return status;
}

uint32_t wk_device_refusals(const wick_device *device) { return device->n_refused; }
