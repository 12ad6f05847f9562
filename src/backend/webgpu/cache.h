/* backend/webgpu/cache.h: what is made once: layouts, pipelines by their program, bind groups. */
#ifndef WK_BACKEND_WEBGPU_CACHE_H
#define WK_BACKEND_WEBGPU_CACHE_H

#include "backend/webgpu/recorder.h"
#include "core/map.h"

typedef struct wk_pipeline_entry {
    wk_program program;
    const wk_webgpu_kernel *kernel; /* the first one that asked for it; NULL: a measurement */
    wk_gpu_layout *layout;
    wk_gpu_pipeline *pipeline;
    size_t number;      /* from 1, in the order in which they were asked for */
    wick_status status; /* WICK_PENDING until it was seen to be compiled */
} wk_pipeline_entry;

typedef struct wk_layout_entry {
    uint32_t n, writable, uniform_bytes;
    wk_gpu_layout *layout;
} wk_layout_entry;

/* Kernels of the user's can ask for 502 with uniforms of one size alone: 1 to 8 buffers, at least
 * one of them written. */
enum { WK_MAX_LAYOUTS = 640 };

typedef struct wk_webgpu_cache {
    wk_layout_entry layouts[WK_MAX_LAYOUTS];
    size_t n_layouts;
    wk_pipeline_entry **pipelines;
    size_t n_pipelines, pipeline_capacity;
    size_t n_finished;       /* the first of them: seen to be compiled, or failed */
    size_t n_judged;         /* the first of them: what failed was taken by wk_cache_take_refused */
    wk_map64 pipeline_index; /* hash of the program -> index */
    uint64_t begun_ns;       /* when the first of those was asked for that are not finished */
    uint64_t compile_ns;     /* while some were compiled */
    uint64_t wait_ns;        /* of it, submits waited */
    uint64_t n_pipeline_hits, n_failures, shader_bytes, n_groups_made, n_group_hits;
} wk_webgpu_cache;

void wk_cache_make(wk_backend_device *dev);
void wk_cache_release(wk_backend_device *dev);
/* See wk_gpu_layout_make. */
wick_status wk_cache_layout(wk_backend_device *dev, uint32_t n, uint32_t writable,
                            uint32_t uniform_bytes, wk_gpu_layout **out, wick_error *err);
/* Begins to compile what is not there. */
wick_status wk_cache_pipeline(wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                              const wk_program *program, wk_pipeline_entry **out, wick_error *err);
/* WICK_PENDING while some compile. The kernel of one that fails is not chosen any more. */
wick_status wk_cache_poll(wk_backend_device *dev);
bool wk_cache_take_refused(wk_backend_device *dev, wick_error *why);
/* Until the first n are compiled. False: they are not, and cannot be waited for (wk_gpu_pause). */
bool wk_cache_wait(wk_backend_device *dev, size_t n);
void wk_cache_stats(const wk_backend_device *dev, wk_backend_stats *stats);
/* For a command of the recorder, which has the group at least as long as it has the command. */
wick_status wk_cache_group(wk_backend_device *dev, wk_recorder *recorder,
                           const wk_gpu_layout *layout, const wk_window *windows, int n,
                           wk_gpu_buffer *params, wk_gpu_group **out, wick_error *err);

#endif
