/* backend/webgpu/gpu/gpu_web_host.h: what gpu_web.c asks of the JavaScript around the module
 * (web/src/gpu.ts): one call for each object that is made and one for each submit. A device and its
 * objects are numbers that JavaScript gives out, 0: none. Nothing waits; what happens meanwhile is
 * asked for by polls. */
#ifndef WK_BACKEND_WEBGPU_GPU_GPU_WEB_HOST_H
#define WK_BACKEND_WEBGPU_GPU_GPU_WEB_HOST_H

#include <stdint.h>

#define WK_HOST_GPU(name) __attribute__((import_module("gpu"), import_name(name)))

/* How a thing in JavaScript stands. */
enum { WK_HOST_PENDING, WK_HOST_READY, WK_HOST_FAILED };

/* The numbers that gpu_opened writes, as doubles, in this order. */
enum {
    WK_HOST_FEATURES,
    WK_HOST_SOFTWARE, /* 1: a fallback adapter */
    WK_HOST_BUFFER_BYTES,
    WK_HOST_BINDING_BYTES,
    WK_HOST_STORAGE_BINDINGS,
    WK_HOST_STORAGE_ALIGNMENT,
    WK_HOST_UNIFORM_ALIGNMENT,
    WK_HOST_WORKGROUP_BYTES,
    WK_HOST_WORKGROUP_THREADS,
    WK_HOST_WORKGROUP_SIZE_X,
    WK_HOST_WORKGROUP_SIZE_Y,
    WK_HOST_WORKGROUP_SIZE_Z,
    WK_HOST_WORKGROUPS,
    WK_HOST_SUBGROUP_MIN,
    WK_HOST_SUBGROUP_MAX,
    WK_HOST_N_NUMBERS,
};

/* Texts that gpu_text copies, cut to capacity and terminated. */
enum { WK_HOST_NAME, WK_HOST_VENDOR, WK_HOST_ARCHITECTURE, WK_HOST_DRIVER, WK_HOST_MESSAGE };

/* 1: there is an adapter, 2: one in software; 0: none, WK_HOST_MESSAGE of device 0 says why. */
WK_HOST_GPU("found") uint32_t wk_host_gpu_found(void);
WK_HOST_GPU("text")
void wk_host_gpu_text(uint32_t gpu, uint32_t which, char *out, uint32_t capacity);

/* flags: 1 low power, 2 default limits. without: WICK_WEBGPU_*. */
WK_HOST_GPU("open") uint32_t wk_host_gpu_open(uint32_t flags, uint32_t without);
WK_HOST_GPU("opened") uint32_t wk_host_gpu_opened(uint32_t gpu, double *numbers);
WK_HOST_GPU("close") void wk_host_gpu_close(uint32_t gpu);
WK_HOST_GPU("lose") void wk_host_gpu_lose(uint32_t gpu);

/* What happened since the last poll: 0 nothing, 1 lost, 2 a wrong call, 3 no memory; the message is
 * WK_HOST_MESSAGE. *done: submits that have run. */
WK_HOST_GPU("poll") uint32_t wk_host_gpu_poll(uint32_t gpu, double *done);

WK_HOST_GPU("release") void wk_host_gpu_release(uint32_t gpu, uint32_t object);
WK_HOST_GPU("buffer") uint32_t wk_host_gpu_buffer(uint32_t gpu, uint32_t usage, double size);
WK_HOST_GPU("write")
void wk_host_gpu_write(uint32_t gpu, uint32_t buffer, double offset, const void *bytes,
                       uint32_t size);
WK_HOST_GPU("map") void wk_host_gpu_map(uint32_t gpu, uint32_t buffer, uint32_t size);
/* Copies what is mapped to out once it is: 1. */
WK_HOST_GPU("mapped") uint32_t wk_host_gpu_mapped(uint32_t gpu, uint32_t buffer, void *out);
WK_HOST_GPU("unmap") void wk_host_gpu_unmap(uint32_t gpu, uint32_t buffer);

WK_HOST_GPU("layout")
uint32_t wk_host_gpu_layout(uint32_t gpu, uint32_t n, uint32_t writable, uint32_t uniform_bytes);
/* bindings: for each of n a buffer, its offset and size, as doubles. */
WK_HOST_GPU("group")
uint32_t wk_host_gpu_group(uint32_t gpu, uint32_t layout, const double *bindings, uint32_t n,
                           uint32_t params, uint32_t param_bytes);
WK_HOST_GPU("pipeline")
uint32_t wk_host_gpu_pipeline(uint32_t gpu, uint32_t layout, const char *label, const char *wgsl,
                              const char *entry);
/* Failed: the message is copied to out. */
WK_HOST_GPU("compiled")
uint32_t wk_host_gpu_compiled(uint32_t gpu, uint32_t pipeline, char *out, uint32_t capacity);

/* commands: n times WK_HOST_COMMAND_WORDS numbers:
 *   1 + timed, pipeline, group, params, x, y, z       a dispatch
 *   0, from (0: zeros), to, from_offset, to_offset, size   a copy; in units of 4 bytes */
enum { WK_HOST_COMMAND_WORDS = 7 };
WK_HOST_GPU("submit") void wk_host_gpu_submit(uint32_t gpu, const uint32_t *commands, uint32_t n);
WK_HOST_GPU("timestamps") void wk_host_gpu_timestamps(uint32_t gpu, uint32_t n, uint32_t buffer);

#endif
