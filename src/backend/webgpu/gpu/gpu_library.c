/* backend/webgpu/gpu/gpu_library.c: finds and loads implementations of WebGPU. */
#include "backend/webgpu/gpu/gpu_library.h"

#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

/* As they were found by running them: Dawn of August 2026, wgpu-native 29. */
static const wk_gpu_quirks DAWN = {
    .name = "Dawn",
    .subgroups_feature = WGPUFeatureName_Subgroups,
    .has_subgroups_line = true,
    .has_async_pipelines = true,
    .has_wait_any = true,
    .has_language_features = true,
    .has_internal_scope = true,
    .has_toggles = true,
    .has_cache = true,
};
static const wk_gpu_quirks WGPU_NATIVE = {
    .name = "wgpu-native",
    .subgroups_feature = 0x30021, /* not the standard's number */
    .has_instance_extras = true,
    .must_check_nesting = true,
    .must_check_submit = true,
    .no_memory_message = "Not enough memory left",
    .lost_message = "Parent device is lost", /* it never calls the callback of a lost device */
};

/* Their files without the suffix, in the order of preference. */
static const char *const files[WK_GPU_MAX_LIBRARIES] = {"libwebgpu_dawn", "libwgpu_native"};

/* Below the folder of the program: beside it; where they are installed (the first of these by us);
 * where tools/fetch_webgpu puts them, seen from a build folder. */
static const char *const folders[] = {"", "/../lib/wick", "/../lib", "/../deps/webgpu"};

static wk_dynlib_function find(const wk_gpu_library *library, const char *name) {
    return wk_dynlib_find(library->handle, name);
}

/* The name of a function that is missing, or NULL. Through memcpy: every member of the table is a
 * pointer to a function, but of a type of its own. */
static const char *fill_table(wk_gpu_library *library) {
    const char *missing = NULL;
    wk_dynlib_function found;
#define WK_WGPU_TAKE(result, name, arguments)                                                      \
    found = find(library, "wgpu" #name);                                                           \
    memcpy(&library->f.name, &found, sizeof found);
#define WK_WGPU_TAKE_NEEDED(result, name, arguments)                                               \
    WK_WGPU_TAKE(result, name, arguments)                                                          \
    if (!found && !missing) missing = "wgpu" #name;
    WK_WGPU_FUNCTIONS(WK_WGPU_TAKE_NEEDED)
    WK_WGPU_OPTIONAL_FUNCTIONS(WK_WGPU_TAKE)
#undef WK_WGPU_TAKE
#undef WK_WGPU_TAKE_NEEDED
    return missing;
}

static void refuse(wk_gpu_library *library, const char *reason) {
    wk_dynlib_close(library->handle);
    library->handle = NULL;
    snprintf(library->reason, sizeof library->reason, "%s", reason);
}

/* Which implementation and of which year: the interface of 2025 has the same function names, but
 * other numbers and structs. Immediates came with that of 2026. */
static void check(wk_gpu_library *library) {
    const char *const missing = fill_table(library);
    if (!library->f.CreateInstance) {
        refuse(library, "not an implementation of WebGPU (no function wgpuCreateInstance)");
    } else if (!find(library, "wgpuComputePassEncoderSetImmediates")) {
        refuse(library, "its interface is older than that of 2026: a newer build is needed");
    } else if (missing) {
        char reason[96];
        snprintf(reason, sizeof reason, "it has no function %s", missing);
        refuse(library, reason);
    }
    library->quirks = library->f.GetVersion && library->f.DevicePoll ? &WGPU_NATIVE : &DAWN;
}

static void load(const char *path, wk_gpu_library *out) {
    *out = (wk_gpu_library){0};
    snprintf(out->path, sizeof out->path, "%s", path);
    out->handle = wk_dynlib_open(path, out->reason, sizeof out->reason);
    if (out->handle) check(out);
}

static bool exists(const char *path) {
    FILE *const file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

/* Remembers the first library of this kind that is there and cannot be used. */
static bool try_path(const char *path, wk_gpu_library *out) {
    wk_gpu_library library;
    load(path, &library);
    if (library.handle || out->path[0] == '\0') *out = library;
    return library.handle != NULL;
}

/* True: out is a library, usable or not. */
static bool find_library(const char *name, wk_gpu_library *out) {
    *out = (wk_gpu_library){0};
    char folder[512], path[sizeof folder + 64];
    const bool is_known = wk_program_folder(folder, sizeof folder);
    for (size_t i = 0; is_known && i < WK_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s%s/%s%s", folder, folders[i], name, wk_dynlib_suffix());
        if (exists(path) && try_path(path, out)) return true;
    }
    snprintf(path, sizeof path, "%s%s", name, wk_dynlib_suffix());
    wk_gpu_library library;
    load(path, &library);
    const bool is_refused = library.quirks && !library.handle;
    if (library.handle || (is_refused && out->path[0] == '\0')) *out = library;
    return out->path[0] != '\0';
}

int wk_gpu_libraries_open(const char *path, wk_gpu_library out[WK_GPU_MAX_LIBRARIES]) {
    if (path) {
        load(path, &out[0]);
        return 1;
    }
    int n = 0;
    for (size_t i = 0; i < WK_COUNT(files); i++) {
        if (find_library(files[i], &out[n])) n++;
    }
    return n;
}

static void ignore_log(WGPUEnum type, WGPUStringView message, void *a, void *b) {
    (void)type, (void)message, (void)a, (void)b;
}

void wk_gpu_library_silence(const wk_gpu_library *library, WGPUDevice device) {
    const WGPULoggingCallbackInfo silent = {.callback = ignore_log};
    if (library->f.DeviceSetLoggingCallback) library->f.DeviceSetLoggingCallback(device, silent);
}

WGPUInstance wk_gpu_library_instance(const wk_gpu_library *library) {
    const wk_gpu_quirks *const quirks = library->quirks;
    const WGPUEnum timed_wait = WGPUInstanceFeatureName_TimedWaitAny;
    /* Not OpenGL: kernels cannot use it, and its drivers leak when they are only looked at. */
    WGPUInstanceExtras extras = {
        .chain = {.sType = WGPUSType_InstanceExtras},
        .backends =
            WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12,
    };
    const WGPUInstanceDescriptor desc = {
        .nextInChain = quirks->has_instance_extras ? &extras.chain : NULL,
        .requiredFeatureCount = quirks->has_wait_any ? 1 : 0,
        .requiredFeatures = &timed_wait,
    };
    return library->f.CreateInstance(&desc);
}

void wk_gpu_library_close(wk_gpu_library *library) {
    if (library->handle) wk_dynlib_close(library->handle);
    library->handle = NULL;
}
