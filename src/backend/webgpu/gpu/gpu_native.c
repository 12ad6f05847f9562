/* backend/webgpu/gpu/gpu_native.c: gpu.h by a library loaded at run time: a device from opening to
 * closing, and the objects that it owns. */
#include "backend/webgpu/gpu/gpu_native.h"

#include "sys/clock.h"

#include <string.h>

/* --- Objects --- */

void *wk_gpu_object_make(wk_gpu *gpu, wk_gpu_object_kind kind, size_t bytes, wick_error *err) {
    wk_gpu_object *const object = wk_alloc_zeroed(gpu->heap, bytes);
    if (!object) {
        wk_fail_memory(err, bytes, "an object of the GPU");
        return NULL;
    }
    object->kind = kind;
    object->bytes = bytes;
    object->next = gpu->objects;
    if (object->next) object->next->previous = object;
    gpu->objects = object;
    return object;
}

static void object_free(wk_gpu *gpu, wk_gpu_object *object) {
    if (object->next) object->next->previous = object->previous;
    if (object->previous)
        object->previous->next = object->next;
    else
        gpu->objects = object->next;
    wk_free(gpu->heap, object, object->bytes);
}

/* Gives back what the implementation holds for it. */
static void object_drop(const WGPUFunctions *f, wk_gpu_object *object) {
    switch (object->kind) {
    case WK_GPU_OBJECT_BUFFER: {
        wk_gpu_buffer *const buf = (wk_gpu_buffer *)object;
        if (buf->handle && buf->map_state != WK_GPU_UNMAPPED) f->BufferUnmap(buf->handle);
        if (buf->handle) f->BufferRelease(buf->handle);
        buf->handle = NULL;
        break;
    }
    case WK_GPU_OBJECT_LAYOUT: {
        wk_gpu_layout *const layout = (wk_gpu_layout *)object;
        if (layout->pipeline) f->PipelineLayoutRelease(layout->pipeline);
        if (layout->group) f->BindGroupLayoutRelease(layout->group);
        layout->pipeline = NULL;
        layout->group = NULL;
        break;
    }
    case WK_GPU_OBJECT_GROUP: {
        wk_gpu_group *const group = (wk_gpu_group *)object;
        if (group->handle) f->BindGroupRelease(group->handle);
        group->handle = NULL;
        break;
    }
    case WK_GPU_OBJECT_PIPELINE: {
        wk_gpu_pipeline *const pipeline = (wk_gpu_pipeline *)object;
        if (pipeline->handle) f->ComputePipelineRelease(pipeline->handle);
        if (pipeline->module) f->ShaderModuleRelease(pipeline->module);
        pipeline->handle = NULL;
        pipeline->module = NULL;
        break;
    }
    }
}

void wk_gpu_object_release(wk_gpu *gpu, wk_gpu_object *object) {
    object->is_released = true;
    if (object->is_awaited) return; /* its callback frees it */
    object_drop(&gpu->library.f, object);
    object_free(gpu, object);
}

void wk_gpu_object_await(wk_gpu *gpu, wk_gpu_object *object) {
    object->is_awaited = true;
    gpu->n_awaited++;
}

bool wk_gpu_object_arrived(wk_gpu *gpu, wk_gpu_object *object) {
    object->is_awaited = false;
    gpu->n_awaited--;
    if (gpu->is_closing) return false; /* freed there */
    if (!object->is_released) return true;
    object_drop(&gpu->library.f, object);
    object_free(gpu, object);
    return false;
}

/* --- Opening and closing --- */

static void device_arrived(WGPUEnum status, WGPUDevice device, WGPUStringView message, void *given,
                           void *unused) {
    wk_gpu *const gpu = given;
    (void)unused;
    gpu->is_opening = false;
    gpu->n_awaited--;
    if (status == WGPURequestDeviceStatus_Success) {
        gpu->device = device;
        return;
    }
    char text[300];
    wk_gpu_copy_text(message, text, sizeof text);
    (void)wk_fail(&gpu->open_failure, WICK_ERR_NO_DEVICE, "%s cannot be opened: %s", gpu->info.name,
                  text);
}

/* Every limit that kernels do not know stays at its default: asking for more can only cost. */
static WGPULimits wanted_limits(const wick_adapter_limits *has) {
    WGPULimits wanted;
    memset(&wanted, 0xff, sizeof wanted); /* WGPU_LIMIT_U32_UNDEFINED, WGPU_LIMIT_U64_UNDEFINED */
    wanted.nextInChain = NULL;
    wanted.maxBufferSize = has->buffer_bytes;
    wanted.maxStorageBufferBindingSize = has->binding_bytes;
    wanted.maxStorageBuffersPerShaderStage = has->storage_bindings;
    wanted.minStorageBufferOffsetAlignment = has->storage_alignment;
    wanted.minUniformBufferOffsetAlignment = has->uniform_alignment;
    wanted.maxComputeWorkgroupStorageSize = has->workgroup_bytes;
    wanted.maxComputeInvocationsPerWorkgroup = has->workgroup_threads;
    wanted.maxComputeWorkgroupSizeX = has->workgroup_size_x;
    wanted.maxComputeWorkgroupSizeY = has->workgroup_size_y;
    wanted.maxComputeWorkgroupSizeZ = has->workgroup_size_z;
    wanted.maxComputeWorkgroupsPerDimension = has->workgroups;
    return wanted;
}

/* Called from threads of the implementation, which passes the userdata twice. A version of Dawn
 * with other callback arguments is recognised by the second one, and is not served. */
static size_t load_cached(size_t key_size, const uint8_t *key, size_t capacity, uint8_t *value,
                          void *given, void *again) {
    const wk_gpu *const gpu = given;
    if (again != given) return 0;
    return gpu->cache.load(gpu->cache.user, key, key_size, value, capacity);
}

static void store_cached(size_t key_size, const uint8_t *key, size_t size, const uint8_t *value,
                         void *given, void *again) {
    const wk_gpu *const gpu = given;
    if (again == given) gpu->cache.store(gpu->cache.user, key, key_size, value, size);
}

static void request_device(wk_gpu *gpu, const wick_webgpu_desc *desc) {
    const uint32_t features = gpu->info.features;
    WGPUEnum names[3];
    size_t n = 0;
    if (features & WICK_WEBGPU_F16) names[n++] = WGPUFeatureName_ShaderF16;
    if (features & WICK_WEBGPU_SUBGROUPS) names[n++] = gpu->library.quirks->subgroups_feature;
    if (features & WICK_WEBGPU_TIMESTAMPS) names[n++] = WGPUFeatureName_TimestampQuery;
    const WGPULimits limits = wanted_limits(&gpu->info.limits);
    /* Dawn rounds timestamps to 65 microseconds otherwise, so that pages cannot use them to spy. */
    const char *const off = "timestamp_quantization";
    WGPUDawnTogglesDescriptor toggles = {
        .chain = {.sType = WGPUSType_DawnTogglesDescriptor},
        .disabledToggleCount = 1,
        .disabledToggles = &off,
    };
    WGPUDawnCacheDeviceDescriptor cache = {
        .chain = {.sType = WGPUSType_DawnCacheDeviceDescriptor},
        .isolationKey = wk_gpu_view("wick"),
        .load = {.callback = load_cached, .userdata1 = gpu, .userdata2 = gpu},
        .store = {.callback = store_cached, .userdata1 = gpu, .userdata2 = gpu},
    };
    const wk_gpu_quirks *const quirks = gpu->library.quirks;
    if (quirks->has_cache && gpu->cache.load && gpu->cache.store) toggles.chain.next = &cache.chain;
    const WGPUDeviceDescriptor device = {
        .nextInChain = quirks->has_toggles ? &toggles.chain : NULL,
        .requiredFeatureCount = n,
        .requiredFeatures = names,
        .requiredLimits = desc->default_limits ? NULL : &limits,
        .deviceLostCallbackInfo = WK_GPU_CALLBACK(wk_gpu_loss_arrived, gpu),
        .uncapturedErrorCallbackInfo = {.callback = wk_gpu_error_arrived, .userdata1 = gpu},
    };
    gpu->is_opening = true;
    gpu->n_awaited++;
    const WGPURequestDeviceCallbackInfo callback = WK_GPU_CALLBACK(device_arrived, gpu);
    gpu->newest = gpu->library.f.AdapterRequestDevice(gpu->adapter, &device, callback);
}

wick_status wk_gpu_open_start(wk_heap *heap, const wick_webgpu_desc *desc, wk_gpu **out,
                              wick_error *err) {
    const wick_webgpu_desc defaults = {0};
    if (!desc) desc = &defaults;
    *out = NULL;
    wk_gpu *const gpu = wk_alloc_zeroed(heap, sizeof *gpu);
    if (!gpu) return wk_fail_memory(err, sizeof *gpu, "a device");
    gpu->heap = heap;
    gpu->debug = desc->debug;
    gpu->max_binding_bytes = desc->max_binding_bytes;
    gpu->cache = desc->cache;
    wick_status status = wk_mutex_make(heap, &gpu->lock);
    if (status != WICK_OK) wk_fail_memory(err, sizeof(void *), "a mutex");
    if (status == WICK_OK) status = wk_gpu_choose_adapter(gpu, desc, err);
    if (status != WICK_OK) {
        wk_gpu_close(gpu);
        return status;
    }
    gpu->info.features &= ~desc->without;
    request_device(gpu, desc);
    *out = gpu;
    return WICK_OK;
}

static void take_limits(wk_gpu *gpu) {
    WGPULimits limits = {0};
    wick_adapter_limits *const out = &gpu->info.limits;
    if (gpu->library.f.DeviceGetLimits(gpu->device, &limits) == WGPUStatus_Success)
        wk_gpu_describe_limits(&limits, out);
    const uint64_t most = gpu->max_binding_bytes;
    if (most > 0 && most < out->binding_bytes) out->binding_bytes = most;
}

wick_status wk_gpu_open_poll(wk_gpu *gpu, wick_error *err) {
    if (gpu->is_opening) gpu->library.f.InstanceProcessEvents(gpu->instance);
    if (gpu->is_opening) return WICK_PENDING;
    if (!gpu->device) {
        const wick_error *const failure = &gpu->open_failure;
        return wk_fail(err, failure->status, "%s", failure->message);
    }
    if (!gpu->queue) {
        gpu->queue = gpu->library.f.DeviceGetQueue(gpu->device);
        take_limits(gpu);
        wk_gpu_library_silence(&gpu->library, gpu->device);
    }
    return WICK_OK;
}

/* Both implementations crash where a process ends while the GPU still works for it. A lost device
 * does no work, and may never call back. */
static void drain(wk_gpu *gpu) {
    while (gpu->n_awaited > 0 && !gpu->is_lost) {
        wk_gpu_process(gpu, true);
        if (gpu->n_awaited > 0) wk_gpu_pause(gpu);
    }
}

/* A thread of Dawn's holds the kernel that it compiled for a moment after the answer arrived. If it
 * were the last to hold the device, it would wait for its own end, and abort; nothing tells when it
 * is done. */
static void outwait_compilers(const wk_gpu *gpu) {
    const uint64_t due = gpu->compiled_ns + UINT64_C(20000000);
    if (gpu->compiled_ns == 0) return;
    for (uint64_t now; (now = wk_clock_ns()) < due;)
        wk_sleep_us((uint32_t)((due - now) / 1000 + 1));
}

static void release_device(wk_gpu *gpu) {
    const WGPUFunctions *const f = &gpu->library.f;
    gpu->is_closing = true; /* what is given back may call back, even at once */
    for (wk_gpu_object *object = gpu->objects; object; object = object->next)
        object_drop(f, object);
    if (gpu->queries) f->QuerySetRelease(gpu->queries);
    if (gpu->resolved) f->BufferRelease(gpu->resolved);
    if (gpu->queue) f->QueueRelease(gpu->queue);
    if (gpu->device) f->DeviceRelease(gpu->device);
    /* Dawn's device says that it is gone; while that is not heard, it and its instance stay. */
    if (gpu->instance) f->InstanceProcessEvents(gpu->instance);
    if (gpu->adapter) f->AdapterRelease(gpu->adapter);
    if (gpu->instance) f->InstanceRelease(gpu->instance);
    wk_gpu_library_close(&gpu->library);
}

void wk_gpu_close(wk_gpu *gpu) {
    if (!gpu) return;
    if (gpu->instance) drain(gpu);
    outwait_compilers(gpu);
    release_device(gpu);
    while (gpu->objects) object_free(gpu, gpu->objects);
    if (gpu->lock) wk_mutex_free(gpu->heap, gpu->lock);
    wk_free(gpu->heap, gpu, sizeof *gpu);
}

const wick_adapter_info *wk_gpu_get_info(const wk_gpu *gpu) { return &gpu->info; }

const char *wk_gpu_enables(const wk_gpu *gpu, uint32_t features) {
    if (!gpu->library.quirks->has_subgroups_line) features &= ~(uint32_t)WICK_WEBGPU_SUBGROUPS;
    return wk_gpu_enable_lines(features);
}

/* --- Events --- */

void wk_gpu_process(wk_gpu *gpu, bool wait) {
    const WGPUFunctions *const f = &gpu->library.f;
    if (f->DevicePoll && gpu->device) f->DevicePoll(gpu->device, wait, NULL);
    f->InstanceProcessEvents(gpu->instance);
}

wick_status wk_gpu_poll(wk_gpu *gpu, uint64_t *done, wick_error *err) {
    if (!gpu->is_lost) wk_gpu_process(gpu, false);
    *done = gpu->n_done;
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    wk_mutex_lock(gpu->lock);
    const wick_error failure = gpu->failure;
    gpu->failure = (wick_error){0};
    wk_mutex_unlock(gpu->lock);
    if (failure.status == WICK_OK) return WICK_OK;
    return wk_fail(err, failure.status, "%s", failure.message);
}

bool wk_gpu_pause(wk_gpu *gpu) {
    const wk_gpu_library *const library = &gpu->library;
    if (!library->quirks->has_wait_any || gpu->newest.id == 0) {
        wk_sleep_us(50);
        return true;
    }
    WGPUFutureWaitInfo wait = {.future = gpu->newest};
    library->f.InstanceWaitAny(gpu->instance, 1, &wait, 1000000);
    if (wait.completed) gpu->newest.id = 0; /* others may be on their way still */
    return true;
}

bool wk_gpu_lose(wk_gpu *gpu) {
    if (!gpu->library.f.DeviceForceLoss) return false;
    gpu->library.f.DeviceForceLoss(gpu->device, WGPUDeviceLostReason_Unknown,
                                   wk_gpu_view("as a test asked for"));
    return true;
}
