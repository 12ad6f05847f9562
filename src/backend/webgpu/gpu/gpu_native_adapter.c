/* backend/webgpu/gpu/gpu_native_adapter.c: the adapters of every implementation, and which one to
 * take.
 *
 * The standard has no list of adapters: one is asked for of every API, fast, frugal and software,
 * and those that come twice are dropped. */
#include "backend/webgpu/gpu/gpu_native.h"
#include "core/str.h"
#include "sys/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct found_adapter {
    int library; /* index */
    WGPUAdapter adapter;
    wick_adapter_info info;
} found_adapter;

typedef struct scan {
    wk_gpu_library libraries[WK_GPU_MAX_LIBRARIES];
    WGPUInstance instances[WK_GPU_MAX_LIBRARIES];
    int n_libraries;
    found_adapter found[WK_GPU_MAX_ADAPTERS];
    int n;
} scan;

/* --- Describing --- */

static const char *api_name(WGPUEnum backend) {
    switch (backend) {
    case WGPUBackendType_Null: return "Null";
    case WGPUBackendType_WebGPU: return "WebGPU";
    case WGPUBackendType_D3D11: return "D3D11";
    case WGPUBackendType_D3D12: return "D3D12";
    case WGPUBackendType_Metal: return "Metal";
    case WGPUBackendType_Vulkan: return "Vulkan";
    case WGPUBackendType_OpenGL: return "OpenGL";
    case WGPUBackendType_OpenGLES: return "OpenGLES";
    default: return "unknown";
    }
}

static wick_adapter_type adapter_type(WGPUEnum type) {
    switch (type) {
    case WGPUAdapterType_DiscreteGPU: return WICK_ADAPTER_DISCRETE;
    case WGPUAdapterType_IntegratedGPU: return WICK_ADAPTER_INTEGRATED;
    case WGPUAdapterType_CPU: return WICK_ADAPTER_SOFTWARE;
    default: return WICK_ADAPTER_UNKNOWN;
    }
}

void wk_gpu_describe_limits(const WGPULimits *limits, wick_adapter_limits *out) {
    out->buffer_bytes = limits->maxBufferSize;
    out->binding_bytes = limits->maxStorageBufferBindingSize;
    out->storage_bindings = limits->maxStorageBuffersPerShaderStage;
    out->storage_alignment = limits->minStorageBufferOffsetAlignment;
    out->uniform_alignment = limits->minUniformBufferOffsetAlignment;
    out->workgroup_bytes = limits->maxComputeWorkgroupStorageSize;
    out->workgroup_threads = limits->maxComputeInvocationsPerWorkgroup;
    out->workgroup_size_x = limits->maxComputeWorkgroupSizeX;
    out->workgroup_size_y = limits->maxComputeWorkgroupSizeY;
    out->workgroup_size_z = limits->maxComputeWorkgroupSizeZ;
    out->workgroups = limits->maxComputeWorkgroupsPerDimension;
}

static uint32_t adapter_features(const wk_gpu_library *library, WGPUInstance instance,
                                 WGPUAdapter adapter) {
    const WGPUFunctions *const f = &library->f;
    const wk_gpu_quirks *const quirks = library->quirks;
    uint32_t features = 0;
    if (f->AdapterHasFeature(adapter, WGPUFeatureName_ShaderF16)) features |= WICK_WEBGPU_F16;
    if (f->AdapterHasFeature(adapter, quirks->subgroups_feature)) features |= WICK_WEBGPU_SUBGROUPS;
    if (f->AdapterHasFeature(adapter, WGPUFeatureName_TimestampQuery))
        features |= WICK_WEBGPU_TIMESTAMPS;
    if (!quirks->has_language_features ||
        f->InstanceHasWGSLLanguageFeature(instance,
                                          WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct))
        features |= WICK_WEBGPU_DOT4;
    return features;
}

/* What the specification promises of every device, as far as kernels rely on it. */
static void judge(wick_adapter_info *info, WGPUEnum backend) {
    const wick_adapter_limits *const limits = &info->limits;
    const char *reason = "";
    if (backend == WGPUBackendType_Null) reason = "it computes nothing";
    if (limits->storage_bindings < 8) reason = "its kernels see fewer than 8 storage buffers";
    if (limits->workgroup_threads < 256) reason = "its workgroups have fewer than 256 threads";
    if (limits->workgroup_bytes < 16384) reason = "its workgroups share less than 16 KiB";
    if (limits->binding_bytes < (uint64_t)128 << 20) reason = "its bindings end below 128 MiB";
    snprintf(info->unusable, sizeof info->unusable, "%s", reason);
}

static void describe_library(const wk_gpu_library *library, wick_adapter_info *info) {
    snprintf(info->library, sizeof info->library, "%s", library->path);
    const char *const name = library->quirks ? library->quirks->name : "";
    snprintf(info->implementation, sizeof info->implementation, "%s", name);
}

static bool describe(const wk_gpu_library *library, WGPUInstance instance, WGPUAdapter adapter,
                     wick_adapter_info *info) {
    const WGPUFunctions *const f = &library->f;
    WGPUAdapterInfo text = {0};
    WGPULimits limits = {0};
    if (f->AdapterGetLimits(adapter, &limits) != WGPUStatus_Success) return false;
    if (f->AdapterGetInfo(adapter, &text) != WGPUStatus_Success) return false;
    *info = (wick_adapter_info){
        .vendor_id = text.vendorID,
        .device_id = text.deviceID,
        .type = adapter_type(text.adapterType),
        .features = adapter_features(library, instance, adapter),
        .limits = {.subgroup_min = text.subgroupMinSize, .subgroup_max = text.subgroupMaxSize},
    };
    describe_library(library, info);
    wk_gpu_copy_text(text.device, info->name, sizeof info->name);
    wk_gpu_copy_text(text.vendor, info->vendor, sizeof info->vendor);
    wk_gpu_copy_text(text.architecture, info->architecture, sizeof info->architecture);
    wk_gpu_copy_text(text.description, info->driver, sizeof info->driver);
    snprintf(info->api, sizeof info->api, "%s", api_name(text.backendType));
    wk_gpu_describe_limits(&limits, &info->limits);
    judge(info, text.backendType);
    f->AdapterInfoFreeMembers(text);
    return true;
}

/* --- Asking --- */

typedef struct answer {
    bool is_there;
    WGPUAdapter adapter; /* NULL: there is none */
} answer;

static void adapter_arrived(WGPUEnum status, WGPUAdapter adapter, WGPUStringView message,
                            void *given, void *unused) {
    answer *const out = given;
    (void)message, (void)unused;
    out->is_there = true;
    out->adapter = status == WGPURequestAdapterStatus_Success ? adapter : NULL;
}

static WGPUAdapter request(const WGPUFunctions *f, WGPUInstance instance,
                           const WGPURequestAdapterOptions *options) {
    answer got = {0};
    const WGPURequestAdapterCallbackInfo callback = WK_GPU_CALLBACK(adapter_arrived, &got);
    f->InstanceRequestAdapter(instance, options, callback);
    while (!got.is_there) {
        f->InstanceProcessEvents(instance);
        if (!got.is_there) wk_sleep_us(100);
    }
    return got.adapter;
}

static bool is_known(const scan *s, const wick_adapter_info *info) {
    for (int i = 0; i < s->n; i++) {
        const wick_adapter_info *const other = &s->found[i].info;
        if (other->vendor_id == info->vendor_id && other->device_id == info->device_id &&
            strcmp(other->name, info->name) == 0 && strcmp(other->api, info->api) == 0 &&
            strcmp(other->library, info->library) == 0)
            return true;
    }
    return false;
}

static void take(scan *s, int library, WGPUAdapter adapter) {
    const wk_gpu_library *const lib = &s->libraries[library];
    found_adapter found = {.library = library, .adapter = adapter};
    if (s->n < WK_GPU_MAX_ADAPTERS && describe(lib, s->instances[library], adapter, &found.info) &&
        !is_known(s, &found.info)) {
        s->found[s->n++] = found;
        return;
    }
    lib->f.AdapterRelease(adapter);
}

static void ask_all(scan *s, int library) {
    /* OpenGL is left out: it lacks what kernels need, and drivers leak where it is only asked for.
     */
    static const WGPUEnum backends[] = {WGPUBackendType_Vulkan, WGPUBackendType_Metal,
                                        WGPUBackendType_D3D12, WGPUBackendType_D3D11};
    static const struct {
        WGPUEnum power;
        WGPUBool is_software;
    } wishes[] = {
        {WGPUPowerPreference_HighPerformance, 0},
        {WGPUPowerPreference_LowPower, 0},
        {WGPUPowerPreference_HighPerformance, 1},
    };
    for (size_t i = 0; i < WK_COUNT(backends); i++) {
        for (size_t j = 0; j < WK_COUNT(wishes); j++) {
            const WGPURequestAdapterOptions options = {
                .featureLevel = WGPUFeatureLevel_Core,
                .powerPreference = wishes[j].power,
                .forceFallbackAdapter = wishes[j].is_software,
                .backendType = backends[i],
            };
            const WGPUFunctions *const f = &s->libraries[library].f;
            WGPUAdapter const adapter = request(f, s->instances[library], &options);
            if (adapter) take(s, library, adapter);
        }
    }
}

static void scan_library(scan *s, int library) {
    const wk_gpu_library *const lib = &s->libraries[library];
    const int n_before = s->n;
    const char *reason = lib->reason;
    if (lib->handle) {
        s->instances[library] = wk_gpu_library_instance(lib);
        if (s->instances[library]) ask_all(s, library);
        reason = "it finds no adapter: no driver, or none that it accepts";
    }
    if (s->n > n_before || s->n == WK_GPU_MAX_ADAPTERS) return;
    found_adapter *const entry = &s->found[s->n++];
    *entry = (found_adapter){.library = library};
    describe_library(lib, &entry->info);
    snprintf(entry->info.unusable, sizeof entry->info.unusable, "%s", reason);
}

static scan *scan_all(wk_heap *heap, const char *library) {
    scan *const s = wk_alloc_zeroed(heap, sizeof *s);
    if (!s) return NULL;
    s->n_libraries = wk_gpu_libraries_open(library, s->libraries);
    for (int i = 0; i < s->n_libraries; i++) scan_library(s, i);
    return s;
}

static void scan_free(wk_heap *heap, scan *s) {
    for (int i = 0; i < s->n; i++) {
        found_adapter *const found = &s->found[i];
        if (found->adapter) s->libraries[found->library].f.AdapterRelease(found->adapter);
    }
    for (int i = 0; i < s->n_libraries; i++) {
        if (s->instances[i]) s->libraries[i].f.InstanceRelease(s->instances[i]);
        wk_gpu_library_close(&s->libraries[i]);
    }
    wk_free(heap, s, sizeof *s);
}

size_t wk_gpu_list(const char *library, wick_adapter_info *out, size_t capacity) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    scan *const s = scan_all(&heap, library);
    if (!s) return 0;
    const size_t n = (size_t)s->n;
    for (size_t i = 0; i < n && i < capacity; i++) out[i] = s->found[i].info;
    scan_free(&heap, s);
    return n;
}

/* --- Choosing --- */

/* 0 is best; -1: not to be taken. */
static int rank(const wick_adapter_info *info, bool low_power) {
    if (info->unusable[0] != '\0') return -1;
    switch (info->type) {
    case WICK_ADAPTER_DISCRETE: return low_power ? 1 : 0;
    case WICK_ADAPTER_INTEGRATED: return low_power ? 0 : 1;
    case WICK_ADAPTER_SOFTWARE: return 3;
    default: return 2;
    }
}

/* Whether text has part in it, ASCII letters of either case being equal. */
static bool contains(const char *text, const char *part) {
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (part[i] == '\0') return true;
    }
    return false;
}

/* A number that is not a valid index may be part of a name. */
static bool matches(const scan *s, int index, const char *wanted) {
    const wick_adapter_info *const info = &s->found[index].info;
    if (!wanted || wanted[0] == '\0') return true;
    char *end;
    const long number = strtol(wanted, &end, 10);
    if (*end == '\0' && number >= 0 && number < s->n) return number == index;
    if (strcmp(wanted, "discrete") == 0) return info->type == WICK_ADAPTER_DISCRETE;
    if (strcmp(wanted, "integrated") == 0) return info->type == WICK_ADAPTER_INTEGRATED;
    if (strcmp(wanted, "software") == 0) return info->type == WICK_ADAPTER_SOFTWARE;
    return contains(info->name, wanted);
}

/* Its index in found, -1: none. Among equals the first. */
static int choose(const scan *s, const wick_webgpu_desc *desc) {
    int best = -1, best_rank = 0;
    for (int i = 0; i < s->n; i++) {
        if (!matches(s, i, desc->adapter)) continue;
        const int r = rank(&s->found[i].info, desc->low_power);
        if (r >= 0 && (best < 0 || r < best_rank)) {
            best = i;
            best_rank = r;
        }
    }
    return best;
}

static wick_status fail_choice(const scan *s, const wick_webgpu_desc *desc, wick_error *err) {
    if (s->n == 0)
        return wk_fail(err, WICK_ERR_NO_DEVICE,
                       "no implementation of WebGPU was found: libwebgpu_dawn%s (Dawn) or"
                       " libwgpu_native%s (wgpu-native) belongs beside the program, or into"
                       " ../lib/wick from there",
                       wk_dynlib_suffix(), wk_dynlib_suffix());
    for (int i = 0; i < s->n; i++) {
        const wick_adapter_info *const info = &s->found[i].info;
        if (info->unusable[0] == '\0' || !matches(s, i, desc->adapter)) continue;
        return wk_fail(err, WICK_ERR_NO_DEVICE, "%s cannot be used: %s",
                       info->name[0] != '\0' ? info->name : info->library, info->unusable);
    }
    const wick_adapter_info *const first = &s->found[0].info;
    if (!s->found[0].adapter)
        return wk_fail(err, WICK_ERR_NO_DEVICE, "%s cannot be used: %s", first->library,
                       first->unusable);
    return wk_fail(err, WICK_ERR_NO_DEVICE,
                   "no adapter is called '%.80s'; there %s %d, the first: %s", desc->adapter,
                   s->n == 1 ? "is" : "are", s->n, first->name);
}

wick_status wk_gpu_choose_adapter(wk_gpu *gpu, const wick_webgpu_desc *desc, wick_error *err) {
    scan *const s = scan_all(gpu->heap, desc->library);
    if (!s) return wk_fail_memory(err, sizeof *s, "the list of adapters");
    const int i = choose(s, desc);
    wick_status status = WICK_OK;
    if (i < 0) {
        status = fail_choice(s, desc, err);
    } else {
        found_adapter *const found = &s->found[i];
        gpu->library = s->libraries[found->library];
        gpu->instance = s->instances[found->library];
        gpu->adapter = found->adapter;
        gpu->info = found->info;
        s->instances[found->library] = NULL;
        s->libraries[found->library].handle = NULL;
        found->adapter = NULL;
        /* Adapters left of the same library are released through its functions, which stay. */
    }
    scan_free(gpu->heap, s);
    return status;
}

wick_status wk_gpu_available(const wick_webgpu_desc *desc, bool hardware, wick_error *err) {
    const bool is_named = desc->adapter && desc->adapter[0] != '\0';
    if (hardware && !is_named && !desc->library && !wk_has_gpu())
        return wk_fail(err, WICK_ERR_NO_DEVICE, "there is no GPU");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    scan *const s = scan_all(&heap, desc->library);
    if (!s) return wk_fail_memory(err, sizeof *s, "the list of adapters");
    const int best = choose(s, desc);
    wick_status status = WICK_OK;
    if (best < 0) {
        status = fail_choice(s, desc, err);
    } else if (hardware && !is_named && s->found[best].info.type == WICK_ADAPTER_SOFTWARE) {
        status = wk_fail(err, WICK_ERR_NO_DEVICE,
                         "there is no GPU: the adapters of WebGPU here compute on the CPU");
    }
    scan_free(&heap, s);
    return status;
}
