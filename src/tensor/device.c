/* tensor/device.c: opening and closing devices, their counters. */
#include "tensor/device.h"

#include "core/status.h"
#include "tensor/shadow.h"

#include <string.h>

struct wick_device_opening {
    wick_device *device;
};

/* --- Opening --- */

static void free_device(wick_device *device) {
    if (!device) return;
    wk_shadow_free(device);
    wk_queue_free(device);
    if (device->handle) device->backend->close(device->handle);
    wk_readings_free(device);
    wk_free(&device->heap, device->scopes, device->scope_capacity * sizeof *device->scopes);
    wk_heap heap = device->heap;
    wk_free(&heap, device, sizeof *device);
}

static wick_status no_device(const wick_device_desc *desc, wick_error *err) {
    wick_backend_status all[WICK_BACKEND_COUNT_];
    const size_t n = wick_backends(all, WK_COUNT(all));
    for (size_t i = 0; i < n && i < WK_COUNT(all); i++)
        if (all[i].backend == desc->backend)
            return wk_fail(err, WICK_ERR_NO_DEVICE, "backend %s is not available: %s", all[i].name,
                           all[i].reason);
    return wk_fail(err, WICK_ERR_VALUE, "there is no backend number %d", (int)desc->backend);
}

wick_status wick_device_open_start(const wick_device_desc *desc, wick_device_opening **opening,
                                   wick_error *error) {
    static const wick_device_desc defaults;
    if (!opening) return wk_fail(error, WICK_ERR_ARGUMENT, "an opening needs a place to go");
    *opening = NULL;
    if (!desc) desc = &defaults;
    const wk_backend *const backend = wk_backend_get(desc->backend);
    if (!backend) return no_device(desc, error);
    if ((uint32_t)desc->math > WICK_MATH_FAST)
        return wk_fail(error, WICK_ERR_VALUE, "there is no math number %d", (int)desc->math);
    if (!desc->allocator.allocate != !desc->allocator.release)
        return wk_fail(error, WICK_ERR_VALUE, "an allocator needs both of its functions");

    wk_heap heap;
    wk_heap_init(&heap, &desc->allocator);
    wick_device *const device = wk_alloc_zeroed(&heap, sizeof *device);
    if (!device) return wk_fail_memory(error, sizeof *device, 0, "a device");
    device->heap = heap;
    device->desc = *desc;
    device->backend = backend;
    device->is_fallback = desc->backend == WICK_BACKEND_AUTO && backend->id == WICK_BACKEND_CPU;
    wick_device_opening *const o = wk_alloc_zeroed(&device->heap, sizeof *o);
    wick_status status =
        o ? wk_queue_make(device, error) : wk_fail_memory(error, sizeof *o, 0, "a device");
    if (status == WICK_OK) status = wk_scopes_make(device, error);
    if (status == WICK_OK) {
        const wk_open_desc open = {.heap = &device->heap,
                                   .device = &device->desc,
                                   .inner = wk_backend_get(WICK_BACKEND_CPU)};
        status = backend->open_start(&open, &device->handle, error);
    }
    if (status != WICK_OK) {
        (void)wk_fail(error, status, "cannot open backend %s: %s", backend->name,
                      wick_status_text(status));
        wk_free(&device->heap, o, sizeof *o);
        free_device(device);
        return status;
    }
    o->device = device;
    *opening = o;
    return WICK_OK;
}

wick_status wick_device_open_poll(wick_device_opening *opening) {
    if (!opening) return WICK_ERR_ARGUMENT;
    wick_device *const device = opening->device;
    return device->backend->open_poll(device->handle, &device->error);
}

wick_status wick_device_open_finish(wick_device_opening *opening, wick_device **device,
                                    wick_error *error) {
    if (device) *device = NULL;
    if (!opening)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_open_finish: opening is NULL");
    wick_device *const opened = opening->device;
    wk_free(&opened->heap, opening, sizeof *opening);
    if (!device) {
        free_device(opened);
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_open_finish: device is NULL");
    }
    const wick_status status = opened->backend->open_poll(opened->handle, error);
    if (status == WICK_OK) {
        *device = opened;
        return WICK_OK;
    }
    free_device(opened);
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
    while (wick_device_open_poll(opening) == WICK_PENDING) {
    }
    return wick_device_open_finish(opening, device, error);
}

void wick_device_close(wick_device *device) { free_device(device); }

/* --- What it is and did --- */

wick_math wick_device_math(const wick_device *device) {
    return device ? device->desc.math : WICK_MATH_EXACT;
}

void wick_device_set_math(wick_device *device, wick_math math) {
    if (device && (uint32_t)math <= WICK_MATH_FAST) device->desc.math = math;
}

void wick_device_get_info(const wick_device *device, wick_device_info *info) {
    if (!info) return;
    *info = (wick_device_info){0};
    if (!device) return;
    device->backend->info(device->handle, info);
    info->is_fallback = device->is_fallback;
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

void wick_device_get_stats(const wick_device *device, wick_device_stats *stats) {
    if (!stats) return;
    *stats = (wick_device_stats){0};
    if (!device) return;
    wk_backend_stats of = {0};
    device->backend->stats(device->handle, &of);
    *stats = (wick_device_stats){.n_allocations = device->heap.n_allocations,
                                 .live_bytes = device->heap.live_bytes,
                                 .peak_bytes = device->heap.peak_bytes,
                                 .buffer_bytes = of.buffer_bytes,
                                 .buffer_peak_bytes = of.buffer_peak_bytes,
                                 .n_ops = of.n_ops,
                                 .n_ops_ref = of.n_ops_ref,
                                 .n_fallbacks = device->n_fallbacks,
                                 .n_decomposed = device->n_decomposed,
                                 .n_verified = device->n_verified,
                                 .n_submits = of.n_submits,
                                 .n_reads = of.n_reads,
                                 .bytes_uploaded = of.bytes_uploaded,
                                 .bytes_read = of.bytes_read};
}

size_t wick_device_get_profile(const wick_device *device, wick_kernel_stats *out, size_t capacity) {
    if (!device || (!out && capacity > 0)) return 0;
    return device->backend->profile(device->handle, out, capacity);
}

void wk_device_observe(wick_device *device, wk_observer_fn observer, void *user) {
    device->observer = observer;
    device->observer_user = user;
}
