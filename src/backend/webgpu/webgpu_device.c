/* backend/webgpu/webgpu_device.c: opening a device, its weights, and the backend's table. */
#include "backend/webgpu/webgpu.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/choice.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/pace.h"
#include "backend/webgpu/pool.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/read.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/room.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/shader.h"
#include "backend/webgpu/table.h"
#include "backend/webgpu/ticket.h"
#include "backend/webgpu/upload.h"
#include "backend/webgpu/webgpu_state.h"
#include "core/dtype.h"

#include <stdio.h>
#include <string.h>

enum { GROUP_ENTRIES = 4096 }; /* more than a step of a model has dispatches */

/* --- Opening --- */

static wick_status available(const wick_device_desc *desc, wick_error *err) {
    return wk_gpu_available(&desc->webgpu, desc->backend == WICK_BACKEND_AUTO, err);
}

/* Waits for what runs, then everything in the order in which it was made, backwards. */
static void close_device(wk_backend_device *dev) {
    if (!dev) return;
    if (dev->is_open) {
        wk_recorder_release(dev, &dev->recorder);
        wk_webgpu_reads_release(dev);
        wk_cache_release(dev);
        wk_profile_release(dev);
        wk_choices_release(dev);
        if (dev->fault.buf) wk_webgpu_free(dev, dev->fault.buf);
        if (dev->tables.buf) wk_webgpu_free(dev, dev->tables.buf);
        (void)wk_pool_trim(dev);
    }
    if (dev->gpu) wk_gpu_close(dev->gpu);
    wk_free(dev->heap, dev, sizeof *dev);
}

static wick_status open_start(const wk_open_desc *desc, wk_backend_device **out, wick_error *err) {
    *out = NULL;
    wk_backend_device *const dev = wk_alloc_zeroed(desc->heap, sizeof *dev);
    if (!dev) return wk_fail_memory(err, sizeof *dev, "a device");
    dev->heap = desc->heap;
    dev->recording = 1;
    dev->desc = desc->device->webgpu;
    dev->is_profiled = desc->device->profile;
    const wick_status status = wk_gpu_open_start(desc->heap, &desc->device->webgpu, &dev->gpu, err);
    if (status != WICK_OK) {
        close_device(dev);
        return status;
    }
    *out = dev;
    return WICK_OK;
}

/* What may be bound whole, and whose elements have numbers that kernels can compute with: of
 * threads there are some more than elements. */
static uint64_t largest_block(const wick_adapter_limits *limits) {
    uint64_t most = UINT64_C(1) << 31;
    if (most > limits->buffer_bytes) most = limits->buffer_bytes;
    if (most > limits->binding_bytes) most = limits->binding_bytes;
    return most / 256 * 256;
}

/* Packed dot products are in every implementation's WGSL, but pay only where the GPU has them: not
 * in software, which adds floats at the same rate without quantizing any first, and not on Metal,
 * whose language has none. A page does not know the API, but the vendor. Nor do they pay where they
 * were measured to be less than twice as fast as float32. */
void wk_webgpu_choose_features(wk_backend_device *dev) {
    const bool is_known = dev->f32_rate > 0 && dev->integer_rate > 0;
    const bool is_measured_slow = is_known && dev->integer_rate / 2 < dev->f32_rate;
    const bool is_metal =
        strcmp(dev->adapter.api, "Metal") == 0 || strcmp(dev->adapter.vendor, "apple") == 0;
    const bool is_slow = dev->adapter.type == WICK_ADAPTER_SOFTWARE || is_metal || is_measured_slow;
    const uint32_t unpaid = is_slow && !dev->desc.as_gpu ? WICK_WEBGPU_DOT4 : 0;
    dev->features = dev->adapter.features & ~unpaid;
}

static wick_status set_up(wk_backend_device *dev, wick_error *err) {
    static const int64_t n_slots = WK_FAULT_SLOTS;
    const wick_shape shape = wick_shape_of(1, &n_slots);
    uint64_t bytes;
    dev->is_open = true;
    dev->adapter = *wk_gpu_get_info(dev->gpu);
    wk_webgpu_choose_features(dev);
    dev->block_bytes = largest_block(&dev->adapter.limits);
    wk_pace_open(dev, dev->desc.submit_us);
    wk_cache_make(dev);
    WK_TRY(wk_choices_open(dev, err));
    WK_TRY(wk_recorder_make(dev, &dev->recorder, GROUP_ENTRIES, err));
    dev->pool.make_room = wk_webgpu_make_room;
    WK_TRY(wk_pool_open(dev, &dev->desc.pool, err));
    if (dev->is_profiled) WK_TRY(wk_profile_open(dev, err));
    (void)wk_view_dense(WICK_U32, &shape, &dev->fault, &bytes);
    return wk_webgpu_alloc(dev, bytes, 0, &dev->fault.buf, err); /* zeros */
}

static wick_status open_poll(wk_backend_device *dev, wick_error *err) {
    if (dev->is_open && dev->fault.buf) return WICK_OK;
    if (dev->is_open) return wk_fail(err, WICK_ERR_NO_DEVICE, "the device could not be set up");
    WK_TRY(wk_gpu_open_poll(dev->gpu, err));
    return set_up(dev, err);
}

static void get_info(const wk_backend_device *dev, wick_device_info *info) {
    *info = (wick_device_info){.backend = WICK_BACKEND_WEBGPU, .n_threads = 1};
    snprintf(info->name, sizeof info->name, "%s", dev->adapter.name);
    snprintf(info->backend_name, sizeof info->backend_name, "%s", wk_backend_webgpu.name);
    info->adapter = dev->adapter;
    if (dev->pool.desc.max_bytes == UINT64_MAX) return; /* WebGPU does not say */
    info->memory_total = dev->pool.desc.max_bytes;
    info->memory_available = info->memory_total - (dev->pool.bytes - dev->pool.free_bytes);
}

static void get_stats(const wk_backend_device *dev, wk_backend_stats *stats) {
    *stats = dev->stats;
    stats->longest_submit_ns = dev->pace.longest;
    stats->encode_ns = dev->pace.waited;
    wk_pool_stats(dev, stats);
    wk_cache_stats(dev, stats);
}

/* --- Weights and ops --- */

/* The panels of the CPU's kernels: 16 rows side by side are what neighbouring threads read
 * together. No kernel reads rows of blocks. Rows of floats that are only looked up stay rows. */
static wk_layout prepare_weight(const wk_backend_device *dev, wick_dtype dtype, int64_t n,
                                int64_t k, uint32_t uses) {
    (void)dev;
    if ((uses & WK_USE_OTHER) != 0) return WK_LAYOUT_RAW;
    if ((uses & WK_USE_LINEAR) == 0 && !wk_dtype_is_block(dtype)) return WK_LAYOUT_RAW;
    return wk_layout_of_panels(dtype, n, k);
}

static const wk_kernel *find_joint(const wk_backend_device *dev, wk_opcode code, const wk_op *ops) {
    const wk_webgpu_kernel *const kernel = wk_choice_find_joint(dev, code, ops);
    return kernel ? &kernel->base : NULL;
}

static const wk_kernel *find_kernel(const wk_backend_device *dev, const wk_op *op) {
    const wk_webgpu_kernel *const kernel = wk_choice_find(dev, op);
    return kernel ? &kernel->base : NULL;
}

static bool is_lost(const wk_backend_device *dev) { return dev->is_lost; }

static void pause_device(wk_backend_device *dev) { (void)wk_gpu_pause(dev->gpu); }

size_t wk_webgpu_adapters(const char *library, wick_adapter_info *out, size_t capacity) {
    return wk_gpu_list(library, out, capacity);
}

bool wk_webgpu_lose(wk_backend_device *dev) { return wk_gpu_lose(dev->gpu); }

static const char *program(const wk_backend_device *dev, size_t index, wk_strbuf *text) {
    if (index >= dev->cache.n_pipelines) return NULL;
    const wk_pipeline_entry *const entry = dev->cache.pipelines[index];
    wk_webgpu_shader(dev->gpu, &entry->program, text);
    return entry->kernel ? entry->kernel->base.name : entry->program.source->name;
}

const wk_backend wk_backend_webgpu = {
    .id = WICK_BACKEND_WEBGPU,
    .name = "webgpu",
    .available = available,
    .open_start = open_start,
    .open_poll = open_poll,
    .close = close_device,
    .info = get_info,
    .stats = get_stats,
    .profile = wk_profile_get,
    .measure = wk_webgpu_measure,
    .tune = wk_tuning_read,
    .tuning = wk_tuning_write,
    .program = program,
    .alloc = wk_webgpu_alloc,
    .footprint = wk_webgpu_footprint,
    .free = wk_webgpu_free,
    .trim = wk_webgpu_trim,
    .upload = wk_webgpu_upload,
    .joins_products = true,
    .prepare_weight = prepare_weight,
    .upload_rows = wk_webgpu_upload_rows,
    .find_joint = find_joint,
    .find_kernel = find_kernel,
    .encode = wk_webgpu_encode,
    .rehearse = wk_webgpu_rehearse,
    .poll_compiled = wk_cache_poll,
    .take_refused = wk_cache_take_refused,
    .submit = wk_webgpu_submit,
    .poll = wk_webgpu_poll,
    .pause = pause_device,
    .take_fault = wk_webgpu_take_fault,
    .read_start = wk_webgpu_read_start,
    .read_finish = wk_webgpu_read_finish,
    .plan_prepare = wk_webgpu_plan_prepare,
    .plan_replay = wk_webgpu_plan_replay,
    .plan_free = wk_webgpu_plan_free,
    .custom_make = wk_webgpu_custom_make,
    .custom_poll = wk_webgpu_custom_poll,
    .custom_free = wk_webgpu_custom_free,
    .lost = is_lost,
    .kernels = &wk_webgpu_kernels,
};
