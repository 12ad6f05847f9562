/* backend/webgpu/gpu/gpu_web.c: gpu.h in a page, through the imports of gpu_web_host.h. */
#include "backend/webgpu/gpu/gpu.h"

#include "backend/webgpu/gpu/gpu_web_host.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct object {
    struct object *next, *previous;
    size_t bytes;
    uint32_t id;
} object;

struct wk_gpu {
    wk_heap *heap;
    uint32_t id;
    wick_adapter_info info;
    uint64_t max_binding_bytes;
    object *objects;
    uint32_t *words; /* of the commands of a submit, [n_words] */
    size_t n_words;
    bool is_open, is_lost;
    char lost_message[200];
    wick_error failure; /* reported by the next poll */
};

struct wk_gpu_buffer {
    object object;
    wk_gpu_usage usage;
    uint64_t size;
    void *bytes; /* [n_bytes] of a buffer that is mapped or about to be */
    size_t n_bytes;
    bool is_mapped;
};

struct wk_gpu_layout {
    object object;
    int n_storage;
};

struct wk_gpu_group {
    object object;
    uint64_t params_size;
};

struct wk_gpu_pipeline {
    object object;
    char label[80];
    bool is_ready;
    wick_error failure;
};

enum { MAX_TIMESTAMPS = 4096 };

/* --- Failures --- */

static wick_status fail_lost(const wk_gpu *gpu, wick_error *err) {
    return wk_fail(err, WICK_ERR_DEVICE_LOST, "%s was lost: %s", gpu->info.name,
                   gpu->lost_message[0] != '\0' ? gpu->lost_message : "no reason given");
}

/* --- Objects --- */

/* NULL: err says why. */
static void *object_make(wk_gpu *gpu, size_t bytes, wick_error *err) {
    object *const made = wk_alloc_zeroed(gpu->heap, bytes);
    if (!made) {
        wk_fail_memory(err, bytes, "an object of the GPU");
        return NULL;
    }
    made->bytes = bytes;
    made->next = gpu->objects;
    if (made->next) made->next->previous = made;
    gpu->objects = made;
    return made;
}

static void object_release(wk_gpu *gpu, object *given) {
    if (given->next) given->next->previous = given->previous;
    if (given->previous)
        given->previous->next = given->next;
    else
        gpu->objects = given->next;
    if (given->id) wk_host_gpu_release(gpu->id, given->id);
    wk_free(gpu->heap, given, given->bytes);
}

/* --- Opening and closing --- */

wick_status wk_gpu_available(const wick_webgpu_desc *desc, bool hardware, wick_error *err) {
    const uint32_t found = wk_host_gpu_found();
    if (found == 0) {
        char reason[200];
        wk_host_gpu_text(0, WK_HOST_MESSAGE, reason, sizeof reason);
        return wk_fail(err, WICK_ERR_NO_DEVICE, "%s", reason);
    }
    const bool is_named = desc->adapter && strcmp(desc->adapter, "software") == 0;
    if (hardware && found == 2 && !is_named)
        return wk_fail(err, WICK_ERR_NO_DEVICE,
                       "there is no GPU: the adapter of WebGPU here computes on the CPU");
    return WICK_OK;
}

size_t wk_gpu_list(const char *library, wick_adapter_info *out, size_t capacity) {
    (void)library, (void)out, (void)capacity;
    return 0; /* a page is shown the adapter that it opens, and no list */
}

wick_status wk_gpu_open_start(wk_heap *heap, const wick_webgpu_desc *desc, wk_gpu **out,
                              wick_error *err) {
    const wick_webgpu_desc defaults = {0};
    if (!desc) desc = &defaults;
    *out = NULL;
    wk_gpu *const gpu = wk_alloc_zeroed(heap, sizeof *gpu);
    if (!gpu) return wk_fail_memory(err, sizeof *gpu, "a device");
    gpu->heap = heap;
    gpu->max_binding_bytes = desc->max_binding_bytes;
    gpu->id =
        wk_host_gpu_open((desc->low_power ? 1 : 0) | (desc->default_limits ? 2 : 0), desc->without);
    *out = gpu;
    return WICK_OK;
}

static void take_info(wk_gpu *gpu, const double *numbers) {
    wick_adapter_info *const info = &gpu->info;
    info->features = (uint32_t)numbers[WK_HOST_FEATURES];
    info->type = numbers[WK_HOST_SOFTWARE] > 0 ? WICK_ADAPTER_SOFTWARE : WICK_ADAPTER_UNKNOWN;
    info->limits = (wick_adapter_limits){
        .buffer_bytes = (uint64_t)numbers[WK_HOST_BUFFER_BYTES],
        .binding_bytes = (uint64_t)numbers[WK_HOST_BINDING_BYTES],
        .storage_bindings = (uint32_t)numbers[WK_HOST_STORAGE_BINDINGS],
        .storage_alignment = (uint32_t)numbers[WK_HOST_STORAGE_ALIGNMENT],
        .uniform_alignment = (uint32_t)numbers[WK_HOST_UNIFORM_ALIGNMENT],
        .workgroup_bytes = (uint32_t)numbers[WK_HOST_WORKGROUP_BYTES],
        .workgroup_threads = (uint32_t)numbers[WK_HOST_WORKGROUP_THREADS],
        .workgroup_size_x = (uint32_t)numbers[WK_HOST_WORKGROUP_SIZE_X],
        .workgroup_size_y = (uint32_t)numbers[WK_HOST_WORKGROUP_SIZE_Y],
        .workgroup_size_z = (uint32_t)numbers[WK_HOST_WORKGROUP_SIZE_Z],
        .workgroups = (uint32_t)numbers[WK_HOST_WORKGROUPS],
        .subgroup_min = (uint32_t)numbers[WK_HOST_SUBGROUP_MIN],
        .subgroup_max = (uint32_t)numbers[WK_HOST_SUBGROUP_MAX],
    };
    const uint64_t most = gpu->max_binding_bytes;
    if (most > 0 && most < info->limits.binding_bytes) info->limits.binding_bytes = most;
    wk_host_gpu_text(gpu->id, WK_HOST_NAME, info->name, sizeof info->name);
    wk_host_gpu_text(gpu->id, WK_HOST_VENDOR, info->vendor, sizeof info->vendor);
    wk_host_gpu_text(gpu->id, WK_HOST_ARCHITECTURE, info->architecture, sizeof info->architecture);
    wk_host_gpu_text(gpu->id, WK_HOST_DRIVER, info->driver, sizeof info->driver);
    snprintf(info->api, sizeof info->api, "WebGPU");
    snprintf(info->implementation, sizeof info->implementation, "browser");
}

wick_status wk_gpu_open_poll(wk_gpu *gpu, wick_error *err) {
    if (gpu->is_open) return WICK_OK;
    double numbers[WK_HOST_N_NUMBERS] = {0};
    switch (wk_host_gpu_opened(gpu->id, numbers)) {
    case WK_HOST_PENDING: return WICK_PENDING;
    case WK_HOST_READY: break;
    default: {
        char message[300];
        wk_host_gpu_text(gpu->id, WK_HOST_MESSAGE, message, sizeof message);
        return wk_fail(err, WICK_ERR_NO_DEVICE, "%s", message);
    }
    }
    take_info(gpu, numbers);
    gpu->is_open = true;
    return WICK_OK;
}

void wk_gpu_close(wk_gpu *gpu) {
    if (!gpu) return;
    while (gpu->objects) {
        object *const next = gpu->objects->next;
        wk_free(gpu->heap, gpu->objects, gpu->objects->bytes);
        gpu->objects = next;
    }
    wk_host_gpu_close(gpu->id);
    wk_free(gpu->heap, gpu->words, gpu->n_words * sizeof *gpu->words);
    wk_free(gpu->heap, gpu, sizeof *gpu);
}

const wick_adapter_info *wk_gpu_get_info(const wk_gpu *gpu) { return &gpu->info; }

const char *wk_gpu_enables(const wk_gpu *gpu, uint32_t features) {
    (void)gpu;
    return wk_gpu_enable_lines(features);
}

/* --- Buffers --- */

wick_status wk_gpu_buffer_make(wk_gpu *gpu, wk_gpu_usage usage, uint64_t size, wk_gpu_buffer **out,
                               wick_error *err) {
    *out = NULL;
    if (gpu->is_lost) return fail_lost(gpu, err);
    if (size > gpu->info.limits.buffer_bytes)
        return wk_fail_memory_of(err, size, gpu->info.limits.buffer_bytes, "a buffer of the GPU");
    if (size == 0 || size % 4 != 0)
        return wk_fail(err, WICK_ERR_VALUE, "a buffer of %" PRIu64 " bytes: no multiple of 4",
                       size);
    wk_gpu_buffer *const buf = object_make(gpu, sizeof *buf, err);
    if (!buf) return WICK_ERR_OUT_OF_MEMORY;
    buf->size = size;
    buf->usage = usage;
    buf->object.id = wk_host_gpu_buffer(gpu->id, (uint32_t)usage, (double)size);
    if (buf->object.id == 0) {
        object_release(gpu, &buf->object);
        return wk_fail_memory(err, size, "a buffer of the GPU");
    }
    *out = buf;
    return WICK_OK;
}

void wk_gpu_buffer_release(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (!buf) return;
    wk_gpu_unmap(gpu, buf);
    object_release(gpu, &buf->object);
}

static bool is_range(const wk_gpu_buffer *buf, uint64_t offset, uint64_t size) {
    return offset % 4 == 0 && size % 4 == 0 && offset <= buf->size && size <= buf->size - offset;
}

void wk_gpu_write(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t offset, const void *bytes,
                  uint64_t size) {
    if (gpu->is_lost || size == 0) return;
    if (!is_range(buf, offset, size) || buf->bytes) {
        (void)wk_fail(&gpu->failure, WICK_ERR_DEVICE,
                      "cannot write %" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64 "%s",
                      size, offset, buf->size, buf->bytes ? " that is mapped" : "");
        return;
    }
    wk_host_gpu_write(gpu->id, buf->object.id, (double)offset, bytes, (uint32_t)size);
}

void wk_gpu_map_start(wk_gpu *gpu, wk_gpu_buffer *buf, uint64_t size) {
    if (gpu->is_lost) return;
    if (buf->bytes || buf->usage != WK_GPU_READBACK || size == 0 || !is_range(buf, 0, size)) {
        (void)wk_fail(&gpu->failure, WICK_ERR_DEVICE,
                      "cannot map %" PRIu64 " bytes of a buffer of %" PRIu64, size, buf->size);
        return;
    }
    buf->n_bytes = (size_t)size;
    buf->bytes = wk_alloc(gpu->heap, buf->n_bytes);
    if (buf->bytes)
        wk_host_gpu_map(gpu->id, buf->object.id, (uint32_t)size);
    else
        (void)wk_fail_memory(&gpu->failure, size, "what is read from the GPU");
}

const void *wk_gpu_mapped(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (buf->bytes && !buf->is_mapped)
        buf->is_mapped = wk_host_gpu_mapped(gpu->id, buf->object.id, buf->bytes) != 0;
    return buf->is_mapped ? buf->bytes : NULL;
}

void wk_gpu_unmap(wk_gpu *gpu, wk_gpu_buffer *buf) {
    if (!buf->bytes) return;
    wk_host_gpu_unmap(gpu->id, buf->object.id);
    wk_free(gpu->heap, buf->bytes, buf->n_bytes);
    buf->bytes = NULL;
    buf->is_mapped = false;
}

/* --- Pipelines --- */

wick_status wk_gpu_layout_make(wk_gpu *gpu, int n, uint32_t writable, uint32_t uniform_bytes,
                               wk_gpu_layout **out, wick_error *err) {
    *out = NULL;
    if (gpu->is_lost) return fail_lost(gpu, err);
    wk_gpu_layout *const layout = object_make(gpu, sizeof *layout, err);
    if (!layout) return WICK_ERR_OUT_OF_MEMORY;
    layout->n_storage = n;
    /* minBindingSize 0 would be checked in every dispatch instead of when pipelines are made. */
    layout->object.id =
        wk_host_gpu_layout(gpu->id, (uint32_t)n, writable, uniform_bytes > 0 ? uniform_bytes : 1);
    *out = layout;
    return WICK_OK;
}

void wk_gpu_layout_release(wk_gpu *gpu, wk_gpu_layout *layout) {
    if (layout) object_release(gpu, &layout->object);
}

wick_status wk_gpu_group_make(wk_gpu *gpu, const wk_gpu_layout *layout,
                              const wk_gpu_binding *storage, int n, wk_gpu_buffer *params,
                              wk_gpu_group **out, wick_error *err) {
    assert(n == layout->n_storage);
    *out = NULL;
    if (gpu->is_lost) return fail_lost(gpu, err);
    wk_gpu_group *const group = object_make(gpu, sizeof *group, err);
    if (!group) return WICK_ERR_OUT_OF_MEMORY;
    group->params_size = params->size;
    double bindings[3 * WK_GPU_MAX_BINDINGS];
    for (int i = 0; i < n; i++) {
        bindings[3 * i] = storage[i].buf->object.id;
        bindings[3 * i + 1] = (double)storage[i].offset;
        bindings[3 * i + 2] = (double)storage[i].size;
    }
    group->object.id = wk_host_gpu_group(gpu->id, layout->object.id, bindings, (uint32_t)n,
                                         params->object.id, WK_GPU_PARAM_BYTES);
    *out = group;
    return WICK_OK;
}

void wk_gpu_group_release(wk_gpu *gpu, wk_gpu_group *group) {
    if (group) object_release(gpu, &group->object);
}

wick_status wk_gpu_pipeline_start(wk_gpu *gpu, const wk_gpu_pipeline_desc *desc,
                                  wk_gpu_pipeline **out, wick_error *err) {
    *out = NULL;
    if (gpu->is_lost) return fail_lost(gpu, err);
    wk_gpu_pipeline *const pipeline = object_make(gpu, sizeof *pipeline, err);
    if (!pipeline) return WICK_ERR_OUT_OF_MEMORY;
    snprintf(pipeline->label, sizeof pipeline->label, "%s", desc->label);
    pipeline->object.id = wk_host_gpu_pipeline(gpu->id, desc->layout->object.id, desc->label,
                                               desc->wgsl, desc->entry ? desc->entry : "main");
    *out = pipeline;
    return WICK_OK;
}

wick_status wk_gpu_pipeline_poll(wk_gpu *gpu, wk_gpu_pipeline *pipeline, wick_error *err) {
    const wick_error *const failure = &pipeline->failure;
    if (!pipeline->is_ready && failure->status == WICK_OK) {
        if (gpu->is_lost) return fail_lost(gpu, err);
        char message[400];
        switch (wk_host_gpu_compiled(gpu->id, pipeline->object.id, message, sizeof message)) {
        case WK_HOST_PENDING: return WICK_PENDING;
        case WK_HOST_READY: pipeline->is_ready = true; break;
        default:
            (void)wk_fail(&pipeline->failure, WICK_ERR_VALUE, "kernel %s%s", pipeline->label,
                          message);
        }
    }
    if (pipeline->is_ready) return WICK_OK;
    return wk_fail(err, failure->status, "%s", failure->message);
}

void wk_gpu_pipeline_release(wk_gpu *gpu, wk_gpu_pipeline *pipeline) {
    if (pipeline) object_release(gpu, &pipeline->object);
}

/* --- Commands --- */

static wick_status write_dispatch(uint32_t *words, const wk_gpu_command *command, wick_error *err) {
    const wk_gpu_pipeline *const pipeline = command->dispatch.pipeline;
    const wk_gpu_group *const group = command->dispatch.group;
    if (!pipeline->is_ready)
        return pipeline->failure.status != WICK_OK
                   ? wk_fail(err, pipeline->failure.status, "%s", pipeline->failure.message)
                   : wk_fail(err, WICK_ERR_STATE, "kernel %s is not compiled", pipeline->label);
    if (command->dispatch.params + (uint64_t)WK_GPU_PARAM_BYTES > group->params_size)
        return wk_fail(err, WICK_ERR_DEVICE, "kernel %s: parameters outside their buffer",
                       pipeline->label);
    if (command->timed > MAX_TIMESTAMPS / 2)
        return wk_fail(err, WICK_ERR_VALUE, "at most %d commands can be timed", MAX_TIMESTAMPS / 2);
    const uint32_t dispatch[WK_HOST_COMMAND_WORDS] = {
        1 + command->timed,  pipeline->object.id, group->object.id,   command->dispatch.params,
        command->dispatch.x, command->dispatch.y, command->dispatch.z};
    memcpy(words, dispatch, sizeof dispatch);
    return WICK_OK;
}

static wick_status write_copy(uint32_t *words, const wk_gpu_command *command, wick_error *err) {
    const bool is_clear = command->kind == WK_GPU_CLEAR;
    if (command->copy.to->bytes)
        return wk_fail(err, WICK_ERR_STATE, "a copy to a buffer that is mapped");
    const uint32_t copy[WK_HOST_COMMAND_WORDS] = {
        0,
        is_clear ? 0 : command->copy.from->object.id,
        command->copy.to->object.id,
        is_clear ? 0 : (uint32_t)(command->copy.from_offset / 4),
        (uint32_t)(command->copy.to_offset / 4),
        (uint32_t)(command->copy.size / 4)};
    memcpy(words, copy, sizeof copy);
    return WICK_OK;
}

wick_status wk_gpu_submit(wk_gpu *gpu, const wk_gpu_command *commands, size_t n, wick_error *err) {
    if (gpu->is_lost) return fail_lost(gpu, err);
    const size_t n_words = n * WK_HOST_COMMAND_WORDS;
    if (n_words > gpu->n_words) {
        wk_free(gpu->heap, gpu->words, gpu->n_words * sizeof *gpu->words);
        gpu->n_words = 0;
        gpu->words = wk_alloc(gpu->heap, n_words * sizeof *gpu->words);
        if (!gpu->words) return wk_fail_memory(err, n_words * sizeof *gpu->words, "commands");
        gpu->n_words = n_words;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t *const words = gpu->words + i * WK_HOST_COMMAND_WORDS;
        WK_TRY(commands[i].kind == WK_GPU_DISPATCH ? write_dispatch(words, &commands[i], err)
                                                   : write_copy(words, &commands[i], err));
    }
    wk_host_gpu_submit(gpu->id, gpu->words, (uint32_t)n);
    return WICK_OK;
}

wick_status wk_gpu_timestamps(wk_gpu *gpu, uint32_t n, wk_gpu_buffer *to, wick_error *err) {
    if (gpu->is_lost) return fail_lost(gpu, err);
    if (!(gpu->info.features & WICK_WEBGPU_TIMESTAMPS))
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "%s has no timestamps", gpu->info.name);
    if (n == 0 || n > MAX_TIMESTAMPS || to->size / sizeof(uint64_t) < n || to->bytes)
        return wk_fail(err, WICK_ERR_VALUE, "cannot read %u timestamps", (unsigned)n);
    wk_host_gpu_timestamps(gpu->id, n, to->object.id);
    return WICK_OK;
}

/* --- Events --- */

wick_status wk_gpu_poll(wk_gpu *gpu, uint64_t *done, wick_error *err) {
    enum { NOTHING, LOST, WRONG, NO_MEMORY };
    double n_done = 0;
    char message[300];
    const uint32_t event = gpu->is_lost ? NOTHING : wk_host_gpu_poll(gpu->id, &n_done);
    if (!gpu->is_lost) *done = (uint64_t)n_done;
    if (event != NOTHING) wk_host_gpu_text(gpu->id, WK_HOST_MESSAGE, message, sizeof message);
    if (event == LOST) {
        gpu->is_lost = true;
        snprintf(gpu->lost_message, sizeof gpu->lost_message, "%.199s", message);
    } else if (event != NOTHING) {
        (void)wk_fail(&gpu->failure, event == NO_MEMORY ? WICK_ERR_OUT_OF_MEMORY : WICK_ERR_DEVICE,
                      "%s", message);
    }
    if (gpu->is_lost) return fail_lost(gpu, err);
    const wick_error failure = gpu->failure;
    gpu->failure = (wick_error){0};
    if (failure.status == WICK_OK) return WICK_OK;
    return wk_fail(err, failure.status, "%s", failure.message);
}

bool wk_gpu_pause(wk_gpu *gpu) {
    (void)gpu;
    return false;
}

bool wk_gpu_lose(wk_gpu *gpu) {
    wk_host_gpu_lose(gpu->id);
    return true;
}
