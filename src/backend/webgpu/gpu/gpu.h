/* backend/webgpu/gpu/gpu.h: all that Wick needs of WebGPU (W3C, 2026): objects, buffers written and
 * mapped, and arrays of commands. gpu_native.c gives it by a library loaded at run time,
 * gpu_web.c by the page around a wasm module.
 *
 * Nothing here blocks but wk_gpu_pause and wk_gpu_close. A mistake in a call does not end the
 * process: it becomes the device's failure (wk_gpu_poll). One thread at a time. */
#ifndef WK_BACKEND_WEBGPU_GPU_GPU_H
#define WK_BACKEND_WEBGPU_GPU_GPU_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/webgpu.h>

typedef struct wk_gpu wk_gpu; /* an adapter's device and its queue */
typedef struct wk_gpu_buffer wk_gpu_buffer;
typedef struct wk_gpu_layout wk_gpu_layout; /* of a bind group, and the pipelines that take it */
typedef struct wk_gpu_group wk_gpu_group;
typedef struct wk_gpu_pipeline wk_gpu_pipeline;

/* --- Opening --- */

/* Whether there is an adapter to open. Loads the library and asks it, every time. hardware: one in
 * software counts only where desc names it. WICK_ERR_NO_DEVICE, WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_gpu_available(const wick_webgpu_desc *desc, bool hardware, wick_error *err);
/* See wick_adapters. */
size_t wk_gpu_list(const char *library, wick_adapter_info *out, size_t capacity);

/* WICK_ERR_NO_DEVICE, WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_gpu_open_start(wk_heap *heap, const wick_webgpu_desc *desc, wk_gpu **out,
                              wick_error *err);
/* WICK_PENDING until it is open. */
wick_status wk_gpu_open_poll(wk_gpu *gpu, wick_error *err);
/* Waits for what runs; objects that were not released go with it. */
void wk_gpu_close(wk_gpu *gpu);
/* features and limits are what the device was opened with. */
const wick_adapter_info *wk_gpu_get_info(const wk_gpu *gpu);
/* Lines that a module needs on top for the features (WICK_WEBGPU_*) it uses. */
const char *wk_gpu_enables(const wk_gpu *gpu, uint32_t features);
/* The same as the specification has it, for both forms of this interface. */
const char *wk_gpu_enable_lines(uint32_t features);

/* --- Buffers --- */

typedef enum wk_gpu_usage {
    WK_GPU_STORAGE,  /* bound by kernels, copied from and to, written */
    WK_GPU_UNIFORM,  /* parameters: written, copied to */
    WK_GPU_READBACK, /* copied to and mapped */
} wk_gpu_usage;

/* size: a multiple of 4, at most limits.buffer_bytes. Zeros. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_gpu_buffer_make(wk_gpu *gpu, wk_gpu_usage usage, uint64_t size, wk_gpu_buffer **out,
                               wick_error *err);
/* Commands that name it may still be running. */
void wk_gpu_buffer_release(wk_gpu *gpu, wk_gpu_buffer *buf);
/* After everything submitted so far, before all that comes; bytes may be reused at once. offset and
 * size are multiples of 4. */
void wk_gpu_write(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t offset, const void *bytes,
                  uint64_t size);
/* Asks for the first size bytes of a READBACK buffer, once all that was submitted has run. */
void wk_gpu_map_start(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t size);
/* NULL while it has not been mapped. The bytes stay until wk_gpu_unmap. */
const void *wk_gpu_mapped(wk_gpu *gpu, wk_gpu_buffer *buf);
void wk_gpu_unmap(wk_gpu *gpu, wk_gpu_buffer *buf);

/* --- Pipelines --- */

enum { WK_GPU_MAX_BINDINGS = 10, WK_GPU_PARAM_BYTES = 512 };

/* n storage buffers, bindings 0 to n - 1, those in the mask writable, and binding n: a uniform
 * buffer of WK_GPU_PARAM_BYTES, of which a pipeline may read `uniform_bytes`, and whose offset a
 * dispatch chooses. */
wick_status wk_gpu_layout_make(wk_gpu *gpu, int n, uint32_t writable, uint32_t uniform_bytes,
                               wk_gpu_layout **out, wick_error *err);
void wk_gpu_layout_release(wk_gpu *gpu, wk_gpu_layout *layout);

typedef struct wk_gpu_binding {
    wk_gpu_buffer *buf;
    uint64_t offset, size; /* offset a multiple of storage_alignment, size of 4 */
} wk_gpu_binding;

wick_status wk_gpu_group_make(wk_gpu *gpu, const wk_gpu_layout *layout,
                              const wk_gpu_binding *storage, int n, wk_gpu_buffer *params,
                              wk_gpu_group **out, wick_error *err);
void wk_gpu_group_release(wk_gpu *gpu, wk_gpu_group *group);

typedef struct wk_gpu_pipeline_desc {
    const char *label, *wgsl;
    const char *entry; /* NULL: "main" */
    const wk_gpu_layout *layout;
} wk_gpu_pipeline_desc;

/* Begins to compile a kernel: in the background, or else now where its entry has a name of its own,
 * and in a poll where it has none. Its layout must stay until then. */
wick_status wk_gpu_pipeline_start(wk_gpu *gpu, const wk_gpu_pipeline_desc *desc,
                                  wk_gpu_pipeline **out, wick_error *err);
/* WICK_OK: it can be dispatched. WICK_PENDING. WICK_ERR_VALUE: the text is wrong, err says what and
 * in which line. */
wick_status wk_gpu_pipeline_poll(wk_gpu *gpu, wk_gpu_pipeline *pipeline, wick_error *err);
void wk_gpu_pipeline_release(wk_gpu *gpu, wk_gpu_pipeline *pipeline);

/* --- Commands --- */

typedef enum wk_gpu_command_kind {
    WK_GPU_DISPATCH,
    WK_GPU_COPY,
    WK_GPU_CLEAR, /* zeros */
} wk_gpu_command_kind;

typedef struct wk_gpu_command {
    wk_gpu_command_kind kind;
    uint32_t timed; /* dispatches, 0: no; i: a pass of its own, timestamps 2 i - 2 and 2 i - 1 */
    union {
        struct {
            wk_gpu_pipeline *pipeline;
            wk_gpu_group *group;
            uint32_t params; /* offset in the group's uniform buffer */
            uint32_t x, y, z;
        } dispatch;
        struct {
            wk_gpu_buffer *from, *to; /* CLEAR: to alone */
            uint64_t from_offset, to_offset, size;
        } copy;
    };
} wk_gpu_command;

/* Runs n commands in their order, each seeing what those before it wrote. Their objects may be
 * released at once. A pipeline that could not be compiled fails as its poll does. */
wick_status wk_gpu_submit(wk_gpu *gpu, const wk_gpu_command *commands, size_t n, wick_error *err);

/* Copies the first n timestamps (nanoseconds, 64 bits each) of timed commands to a READBACK buffer;
 * a submit of its own. At most 4096. WICK_ERR_UNSUPPORTED. */
wick_status wk_gpu_timestamps(wk_gpu *gpu, uint32_t n, wk_gpu_buffer *to, wick_error *err);

/* Lets callbacks happen. *done: how many submits have run, counted from the first.
 * WICK_ERR_DEVICE_LOST: the device is gone, for good. WICK_ERR_DEVICE: a call was wrong,
 * WICK_ERR_OUT_OF_MEMORY: memory was missing after all; reported once. */
wick_status wk_gpu_poll(wk_gpu *gpu, uint64_t *done, wick_error *err);
/* Until something may have happened, at most about a millisecond. False: nothing happens while this
 * thread waits, as in a page. */
bool wk_gpu_pause(wk_gpu *gpu);
/* For tests: as if the driver had taken the device away. False: the library cannot. */
bool wk_gpu_lose(wk_gpu *gpu);

#endif
