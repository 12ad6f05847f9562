/* backend/webgpu/gpu/gpu_library.h: the implementations of WebGPU on this system: their paths,
 * their functions, and how each differs from the standard. */
#ifndef WK_BACKEND_WEBGPU_GPU_GPU_LIBRARY_H
#define WK_BACKEND_WEBGPU_GPU_GPU_LIBRARY_H

#include "backend/webgpu/gpu/webgpu_abi.h"
#include "sys/dynlib.h"

#include <stdint.h>

/* One set for each implementation, so that the rest never asks which one it has. */
typedef struct wk_gpu_quirks {
    const char *name;
    WGPUEnum subgroups_feature;    /* its number */
    bool has_subgroups_line;       /* WGSL: `enable subgroups;` is required, else a syntax error */
    bool has_async_pipelines;      /* DeviceCreateComputePipelineAsync works */
    bool has_wait_any;             /* InstanceWaitAny works */
    bool has_language_features;    /* InstanceHasWGSLLanguageFeature works, else all are there */
    bool has_internal_scope;       /* error scopes of internal errors */
    bool has_toggles;              /* takes WGPUDawnTogglesDescriptor */
    bool has_cache;                /* takes WGPUDawnCacheDeviceDescriptor */
    bool has_instance_extras;      /* takes WGPUInstanceExtras */
    bool must_check_nesting;       /* its compiler recurses as deep as a text nests */
    bool must_check_submit;        /* an invalid command buffer ends the process */
    const char *no_memory_message; /* a validation error that means out of memory; may be NULL */
    const char *lost_message;      /* an error that means a lost device; may be NULL */
} wk_gpu_quirks;

typedef struct wk_gpu_library {
    wk_dynlib *handle; /* NULL: cannot be used */
    const wk_gpu_quirks *quirks;
    WGPUFunctions f;
    char path[256];
    char reason[160]; /* why it cannot be used */
} wk_gpu_library;

enum { WK_GPU_MAX_LIBRARIES = 2 };

/* The named library, or (NULL) one of each implementation found: beside the program, in ../lib, in
 * ../deps/webgpu or where the system looks. Those that cannot be used are among them only where
 * nothing of their kind can. Returns how many. */
int wk_gpu_libraries_open(const char *path, wk_gpu_library out[WK_GPU_MAX_LIBRARIES]);
/* NULL where it cannot be made. */
WGPUInstance wk_gpu_library_instance(const wk_gpu_library *library);
/* Drops what the device would print: everything that matters comes as an error as well. */
void wk_gpu_library_silence(const wk_gpu_library *library, WGPUDevice device);
void wk_gpu_library_close(wk_gpu_library *library);

#endif
