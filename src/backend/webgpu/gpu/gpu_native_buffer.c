/* backend/webgpu/gpu/gpu_native_buffer.c: buffers: made, written, mapped. */
#include "backend/webgpu/gpu/gpu_native.h"

#include <inttypes.h>

static WGPUFlags usage_flags(wk_gpu_usage usage) {
    switch (usage) {
    case WK_GPU_STORAGE:
        return WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    case WK_GPU_UNIFORM: return WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst;
    default: return WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
    }
}

wick_status wk_gpu_buffer_make(wk_gpu *gpu, wk_gpu_usage usage, uint64_t size, wk_gpu_buffer **out,
                               wick_error *err) {
    *out = NULL;
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    if (size > gpu->info.limits.buffer_bytes)
        return wk_fail_memory_of(err, size, gpu->info.limits.buffer_bytes, "a buffer of the GPU");
    if (size == 0 || size % 4 != 0)
        return wk_fail(err, WICK_ERR_VALUE, "a buffer of %" PRIu64 " bytes: no multiple of 4",
                       size);
    wk_gpu_buffer *const buf = wk_gpu_object_make(gpu, WK_GPU_OBJECT_BUFFER, sizeof *buf, err);
    if (!buf) return WICK_ERR_OUT_OF_MEMORY;
    buf->gpu = gpu;
    buf->size = size;
    buf->usage = usage;
    static const char *const labels[] = {[WK_GPU_STORAGE] = "tensors",
                                         [WK_GPU_UNIFORM] = "parameters",
                                         [WK_GPU_READBACK] = "read-back"};
    const WGPUBufferDescriptor desc = {
        .label = wk_gpu_view(labels[usage]), .usage = usage_flags(usage), .size = size};
    wk_gpu_scope_begin(gpu);
    buf->handle = gpu->library.f.DeviceCreateBuffer(gpu->device, &desc);
    wick_status status = wk_gpu_scope_end(gpu, "a buffer of the GPU", size, WICK_ERR_DEVICE, err);
    if (status == WICK_OK && !buf->handle)
        status = wk_fail_memory(err, size, "a buffer of the GPU");
    if (status == WICK_OK)
        *out = buf;
    else
        wk_gpu_object_release(gpu, &buf->object);
    return status;
}

void wk_gpu_buffer_release(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (!buf) return;
    if (buf->map_state != WK_GPU_UNMAPPED) wk_gpu_unmap(gpu, buf);
    wk_gpu_object_release(gpu, &buf->object);
}

static bool is_range(const wk_gpu_buffer *buf, uint64_t offset, uint64_t size) {
    return offset % 4 == 0 && size % 4 == 0 && offset <= buf->size && size <= buf->size - offset;
}

void wk_gpu_write(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t offset, const void *bytes,
                  uint64_t size) {
    if (gpu->is_lost || size == 0) return;
    if (!is_range(buf, offset, size) || buf->map_state != WK_GPU_UNMAPPED) {
        wk_gpu_note(gpu, WICK_ERR_DEVICE,
                    "cannot write %" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64 "%s",
                    size, offset, buf->size,
                    buf->map_state == WK_GPU_UNMAPPED ? "" : " that is mapped");
        return;
    }
    gpu->library.f.QueueWriteBuffer(gpu->queue, buf->handle, offset, bytes, (size_t)size);
}

static void map_arrived(WGPUEnum status, WGPUStringView message, void *given, void *unused) {
    wk_gpu_buffer *const buf = given;
    wk_gpu *const gpu = buf->gpu;
    (void)unused;
    if (!wk_gpu_object_arrived(gpu, &buf->object)) return;
    if (buf->map_state != WK_GPU_MAPPING) return; /* unmapped meanwhile */
    const bool is_mapped = status == WGPUMapAsyncStatus_Success;
    buf->map_state = is_mapped ? WK_GPU_MAPPED : WK_GPU_UNMAPPED;
    if (is_mapped || gpu->is_lost) return;
    char text[300];
    wk_gpu_copy_text(message, text, sizeof text);
    wk_gpu_note(gpu, WICK_ERR_DEVICE, "a buffer could not be read: %s", text);
}

void wk_gpu_map_start(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t size) {
    if (gpu->is_lost) return;
    const bool is_free = buf->map_state == WK_GPU_UNMAPPED && !buf->object.is_awaited;
    if (!is_free || buf->usage != WK_GPU_READBACK || size == 0 || !is_range(buf, 0, size)) {
        wk_gpu_note(gpu, WICK_ERR_DEVICE, "cannot map %" PRIu64 " bytes of a buffer of %" PRIu64,
                    size, buf->size);
        return;
    }
    buf->map_state = WK_GPU_MAPPING;
    buf->mapped_size = size;
    wk_gpu_object_await(gpu, &buf->object);
    const WGPUBufferMapCallbackInfo callback = WK_GPU_CALLBACK(map_arrived, buf);
    gpu->newest =
        gpu->library.f.BufferMapAsync(buf->handle, WGPUMapMode_Read, 0, (size_t)size, callback);
}

const void *wk_gpu_mapped(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (buf->map_state != WK_GPU_MAPPED) return NULL;
    return gpu->library.f.BufferGetConstMappedRange(buf->handle, 0, (size_t)buf->mapped_size);
}

void wk_gpu_unmap(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (buf->map_state == WK_GPU_UNMAPPED) return;
    buf->map_state = WK_GPU_UNMAPPED; /* first: unmapping may call back at once */
    gpu->library.f.BufferUnmap(buf->handle);
}
