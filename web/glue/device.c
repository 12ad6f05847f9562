/* web/glue/device.c: doors to memory, errors and devices. */
#include "door.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wick_error door_error;

wick_error *door_new_error(void) {
    door_error = (wick_error){0};
    return &door_error;
}

int door_fail(wick_status status, wick_device *device) {
    if (status >= 0) return status;
    (void)door_new_error();
    if (device != NULL) (void)wick_device_error(device, &door_error);
    if (door_error.status != WICK_OK) return door_error.status;
    door_error.status = status;
    snprintf(door_error.message, sizeof door_error.message, "%s", wick_status_text(status));
    return status;
}

wick_status door_refuse(wick_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    door_new_error()->status = status;
    vsnprintf(door_error.message, sizeof door_error.message, format, arguments);
    va_end(arguments);
    return status;
}

/* Once, before any other door: what the linker has put together of constructors. */
void __wasm_call_ctors(void);
__attribute__((export_name("_initialize"))) void door_initialize(void);
void door_initialize(void) { __wasm_call_ctors(); }

/* --- Memory and errors --- */

DOOR(void *, alloc, size_t size) { return malloc(size); }
DOOR(void, release, void *memory) { free(memory); }
DOOR(int, error_status, void) { return door_error.status; }
DOOR(const char *, error_text, void) { return door_error.message; }
DOOR(double, error_requested, void) { return (double)door_error.bytes_requested; }
DOOR(double, error_available, void) { return (double)door_error.bytes_available; }
DOOR(const char *, version, void) { return wick_version(); }

/* --- Opening --- */

HOST("log") void host_log(int level, const char *message);

static void log_line(void *user, wick_log_level level, const char *message) {
    (void)user;
    host_log((int)level, message);
}

typedef struct device_options {
    wick_device_desc desc;
    bool f16, subgroups, dot4, timestamps; /* may be used */
} device_options;

#define AT(field) offsetof(device_options, field)
static const option_field device_fields[] = {
    {"backend", OPTION_CHOICE, AT(desc.backend), "auto cpu webgpu"},
    {"math", OPTION_CHOICE, AT(desc.math), "exact fast"},
    {"fusion", OPTION_CHOICE, AT(desc.fusion), "auto off always"},
    {"threads", OPTION_INT, AT(desc.n_threads), NULL},
    {"sliceMicroseconds", OPTION_UINT, AT(desc.slice_us), NULL},
    {"strict", OPTION_BOOL, AT(desc.strict), NULL},
    {"verify", OPTION_BOOL, AT(desc.verify), NULL},
    {"profile", OPTION_BOOL, AT(desc.profile), NULL},
    {"lowPower", OPTION_BOOL, AT(desc.webgpu.low_power), NULL},
    {"defaultLimits", OPTION_BOOL, AT(desc.webgpu.default_limits), NULL},
    {"f16", OPTION_BOOL, AT(f16), NULL},
    {"subgroups", OPTION_BOOL, AT(subgroups), NULL},
    {"dot4", OPTION_BOOL, AT(dot4), NULL},
    {"timestamps", OPTION_BOOL, AT(timestamps), NULL},
};
#undef AT
enum { N_DEVICE_FIELDS = sizeof device_fields / sizeof *device_fields };

DOOR(wick_device_opening *, device_open, const char *text) {
    device_options options = {
        .f16 = true, .subgroups = true, .dot4 = true, .timestamps = true, .desc.log = log_line};
    wick_json_document *document = NULL;
    wick_device_opening *opening = NULL;
    wick_status status = options_parse(text, &document);
    if (status == WICK_OK)
        status = options_read(wick_json_root(document), device_fields, N_DEVICE_FIELDS, &options);
    options.desc.webgpu.without =
        (options.f16 ? 0 : WICK_WEBGPU_F16) | (options.subgroups ? 0 : WICK_WEBGPU_SUBGROUPS) |
        (options.dot4 ? 0 : WICK_WEBGPU_DOT4) | (options.timestamps ? 0 : WICK_WEBGPU_TIMESTAMPS);
    if (status == WICK_OK) status = wick_device_open_start(&options.desc, &opening, &door_error);
    wick_json_free(document);
    return status == WICK_OK ? opening : NULL;
}

DOOR(int, device_poll, wick_device_opening *opening) { return wick_device_open_poll(opening); }

DOOR(wick_device *, device_finish, wick_device_opening *opening) {
    wick_device *device = NULL;
    return wick_device_open_finish(opening, &device, door_new_error()) == WICK_OK ? device : NULL;
}

DOOR(void, device_close, wick_device *device) { wick_device_close(device); }

/* --- What it is and does --- */

static void put_adapter(const wick_adapter_info *adapter) {
    record_open("adapter", '{');
    record_text("name", adapter->name);
    record_text("vendor", adapter->vendor);
    record_text("architecture", adapter->architecture);
    record_bool("f16", adapter->features & WICK_WEBGPU_F16);
    record_bool("subgroups", adapter->features & WICK_WEBGPU_SUBGROUPS);
    record_bool("dot4", adapter->features & WICK_WEBGPU_DOT4);
    record_bool("timestamps", adapter->features & WICK_WEBGPU_TIMESTAMPS);
    record_close('}');
}

DOOR(const char *, device_info, const wick_device *device) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    record_begin();
    record_text("backend", info.backend_name);
    record_text("name", info.name);
    record_text("isa", info.isa);
    record_text("math", wick_device_math(device) == WICK_MATH_FAST ? "fast" : "exact");
    record_number("threads", info.n_threads);
    record_number("memoryTotal", (double)info.memory_total);
    record_number("memoryAvailable", (double)info.memory_available);
    record_bool("isFallback", info.is_fallback);
    record_text("fallbackReason", info.fallback_reason);
    if (info.backend == WICK_BACKEND_WEBGPU) put_adapter(&info.adapter);
    return record_end();
}

/* X(key, field) of wick_device_stats. */
#define DEVICE_STATS(X)                                                                            \
    X(allocations, n_allocations)                                                                  \
    X(liveBytes, live_bytes)                                                                       \
    X(peakBytes, peak_bytes)                                                                       \
    X(bufferBytes, buffer_bytes)                                                                   \
    X(bufferPeakBytes, buffer_peak_bytes)                                                          \
    X(ops, n_ops)                                                                                  \
    X(referenceOps, n_ops_ref)                                                                     \
    X(fallbacks, n_fallbacks)                                                                      \
    X(fused, n_fused)                                                                              \
    X(unread, n_unread)                                                                            \
    X(decomposed, n_decomposed)                                                                    \
    X(verified, n_verified)                                                                        \
    X(submits, n_submits)                                                                          \
    X(reads, n_reads)                                                                              \
    X(bytesUploaded, bytes_uploaded)                                                               \
    X(bytesRead, bytes_read)                                                                       \
    X(losses, n_losses)                                                                            \
    X(dispatches, n_dispatches)                                                                    \
    X(longestSubmitSeconds, longest_submit)                                                        \
    X(encodeSeconds, encode_seconds)                                                               \
    X(poolBytes, pool_bytes)                                                                       \
    X(poolPeakBytes, pool_peak_bytes)                                                              \
    X(poolFreeBytes, pool_free_bytes)                                                              \
    X(pipelines, n_pipelines)                                                                      \
    X(pipelineFailures, n_pipeline_failures)                                                       \
    X(compileSeconds, compile_seconds)                                                             \
    X(compileWaitSeconds, compile_wait_seconds)                                                    \
    X(bindGroups, n_bind_groups)

DOOR(const char *, device_stats, const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    record_begin();
#define PUT(key, field) record_number(#key, (double)stats.field);
    DEVICE_STATS(PUT)
#undef PUT
    return record_end();
}

DOOR(const char *, device_profile, const wick_device *device) {
    const size_t n = wick_device_get_profile(device, NULL, 0);
    wick_kernel_stats *const kernels = calloc(n > 0 ? n : 1, sizeof *kernels);
    if (kernels == NULL) {
        (void)door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
        return NULL;
    }
    wick_device_get_profile(device, kernels, n);
    record_begin();
    record_open("kernels", '[');
    for (size_t i = 0; i < n; i++) {
        record_open(NULL, '{');
        record_text("name", kernels[i].name);
        record_number("calls", (double)kernels[i].calls);
        record_number("seconds", kernels[i].seconds);
        record_number("dispatches", (double)kernels[i].n_dispatches);
        record_number("bytes", kernels[i].bytes_read + kernels[i].bytes_written);
        record_number("flops", kernels[i].flops);
        record_close('}');
    }
    record_close(']');
    free(kernels);
    return record_end();
}

DOOR(const char *, backends, void) {
    wick_backend_status backends[16];
    const size_t n = wick_backends(backends, 16);
    record_begin();
    record_open("backends", '[');
    for (size_t i = 0; i < n && i < 16; i++) {
        record_open(NULL, '{');
        record_text("name", backends[i].name);
        record_bool("isAvailable", backends[i].is_available);
        record_text("reason", backends[i].reason);
        record_close('}');
    }
    record_close(']');
    return record_end();
}

/* Lines of wick_device_tune. */
DOOR(int, device_tune, wick_device *device, const char *text) {
    return wick_device_tune(device, text, strlen(text), NULL, &door_error);
}

/* Computes what is queued: WICK_PENDING: there is more. */
DOOR(int, device_run, wick_device *device) { return door_fail(wick_poll(device), device); }
