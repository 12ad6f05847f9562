/* backend/webgpu/gpu/gpu_native.h: what the files of the native half of gpu.h share. */
#ifndef WK_BACKEND_WEBGPU_GPU_GPU_NATIVE_H
#define WK_BACKEND_WEBGPU_GPU_GPU_NATIVE_H

#include "backend/webgpu/gpu/gpu.h"
#include "backend/webgpu/gpu/gpu_library.h"
#include "sys/thread.h"

/* --- Objects: in a list of their device, so that closing it finds them --- */

typedef enum wk_gpu_object_kind {
    WK_GPU_OBJECT_BUFFER,
    WK_GPU_OBJECT_LAYOUT,
    WK_GPU_OBJECT_GROUP,
    WK_GPU_OBJECT_PIPELINE,
} wk_gpu_object_kind;

typedef struct wk_gpu_object {
    struct wk_gpu_object *previous, *next;
    wk_gpu_object_kind kind;
    bool is_awaited;  /* a callback will come that names it */
    bool is_released; /* by its user: freed in that callback */
    size_t bytes;     /* of the whole struct */
} wk_gpu_object;

typedef enum wk_gpu_map_state {
    WK_GPU_UNMAPPED,
    WK_GPU_MAPPING,
    WK_GPU_MAPPED,
} wk_gpu_map_state;

struct wk_gpu_buffer {
    wk_gpu_object object;
    wk_gpu *gpu;
    WGPUBuffer handle;
    uint64_t size, mapped_size;
    wk_gpu_usage usage;
    wk_gpu_map_state map_state;
};

struct wk_gpu_layout {
    wk_gpu_object object;
    WGPUBindGroupLayout group;
    WGPUPipelineLayout pipeline;
    int n_storage;
    uint32_t writable;
};

struct wk_gpu_group {
    wk_gpu_object object;
    WGPUBindGroup handle;
    uint64_t params_size; /* of its uniform buffer */
};

struct wk_gpu_pipeline {
    wk_gpu_object object;
    wk_gpu *gpu;
    WGPUComputePipeline handle; /* NULL while pending and when it failed */
    /* What a poll is to compile; NULL: it is compiled, or an implementation is at it. */
    WGPUShaderModule module;
    const wk_gpu_layout *layout;
    wick_error failure;
    char label[64];
};

/* --- The device --- */

/* What error scopes said. It outlives the call that opened them. */
typedef struct wk_gpu_scope {
    int n_left;    /* callbacks to come */
    WGPUEnum type; /* of the first error */
    char message[1024];
} wk_gpu_scope;

struct wk_gpu {
    wk_heap *heap;
    wk_gpu_library library;
    WGPUInstance instance;
    WGPUAdapter adapter;
    WGPUDevice device;
    WGPUQueue queue;
    wick_adapter_info info;
    uint64_t max_binding_bytes; /* of the desc, as its */
    wick_kernel_cache cache;
    bool debug, is_opening, is_lost, is_closing;
    wick_error open_failure;

    uint64_t n_submitted, n_done;
    uint64_t n_awaited;   /* callbacks that will come */
    WGPUFuture newest;    /* of these; 0: it has come */
    uint64_t compiled_ns; /* when the latest answer of a compiler arrived, 0: none did */

    wk_mutex *lock; /* of failure: an implementation may report errors from threads of its own */
    wick_error failure;
    char lost_message[256];
    wk_gpu_scope scope;
    wk_gpu_object *objects;

    WGPUQuerySet queries; /* made when first needed */
    WGPUBuffer resolved;  /* what they become */
};

/* A callback of a call made now: mode, userdata. */
#define WK_GPU_CALLBACK(function, data)                                                            \
    {.mode = WGPUCallbackMode_AllowProcessEvents, .callback = (function), .userdata1 = (data)}

/* Lets callbacks happen; waits for all work where the implementation has no other way and wait is
 * set. */
void wk_gpu_process(wk_gpu *gpu, bool wait);

/* wk_gpu_scope_end reports the errors of calls since begin. bytes: the size that was asked for;
 * wrong: the status of a validation error. */
void wk_gpu_scope_begin(wk_gpu *gpu);
wick_status wk_gpu_scope_end(wk_gpu *gpu, const char *what, uint64_t bytes, wick_status wrong,
                             wick_error *err);
/* The same, the text as it came left in gpu->scope.message. False: there was no error. */
bool wk_gpu_scope_failed(wk_gpu *gpu);

/* A failure that wk_gpu_poll will tell. */
void wk_gpu_note(wk_gpu *gpu, wick_status status, const char *format, ...) WK_PRINTF(3, 4);
/* An error of the implementation in words, as a status. */
wick_status wk_gpu_judge(wk_gpu *gpu, WGPUEnum type, const char *message, wick_status wrong);
wick_status wk_gpu_fail_lost(const wk_gpu *gpu, wick_error *err);

/* Callbacks of the device; given: the wk_gpu. */
void wk_gpu_error_arrived(const WGPUDevice *device, WGPUEnum type, WGPUStringView message,
                          void *given, void *unused);
void wk_gpu_loss_arrived(const WGPUDevice *device, WGPUEnum reason, WGPUStringView message,
                         void *given, void *unused);

/* On one line. */
void wk_gpu_copy_text(WGPUStringView text, char *out, size_t capacity);
/* As it is. */
void wk_gpu_copy_raw(WGPUStringView text, char *out, size_t capacity);
WGPUStringView wk_gpu_view(const char *terminated);
/* wgsl_nesting.c: more than a compiler that recurses may be given. */
bool wk_wgsl_nests_too_deep(const char *wgsl);

/* bytes: of a struct that begins with a wk_gpu_object. Zeroed. */
void *wk_gpu_object_make(wk_gpu *gpu, wk_gpu_object_kind kind, size_t bytes, wick_error *err);
/* Releases what it holds of the implementation, and frees it unless a callback is still to come. */
void wk_gpu_object_release(wk_gpu *gpu, wk_gpu_object *object);
/* In its callback. False: it was released meanwhile and is gone. */
bool wk_gpu_object_arrived(wk_gpu *gpu, wk_gpu_object *object);
/* Before the call that has it. */
void wk_gpu_object_await(wk_gpu *gpu, wk_gpu_object *object);

/* --- Adapters --- */

enum { WK_GPU_MAX_ADAPTERS = 16 };

/* Fills library, instance, adapter and info of gpu. WICK_ERR_NO_DEVICE. */
wick_status wk_gpu_choose_adapter(wk_gpu *gpu, const wick_webgpu_desc *desc, wick_error *err);
void wk_gpu_describe_limits(const WGPULimits *limits, wick_adapter_limits *out);

#endif
