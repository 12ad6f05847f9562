/* backend/webgpu/gpu/gpu_native_error.c: what an implementation reports, as statuses and sentences:
 * uncaptured errors, error scopes, loss. */
#include "backend/webgpu/gpu/gpu_native.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- Text --- */

WGPUStringView wk_gpu_view(const char *terminated) {
    return (WGPUStringView){.data = terminated, .length = terminated ? WGPU_STRLEN : 0};
}

void wk_gpu_copy_raw(WGPUStringView text, char *out, size_t capacity) {
    size_t size = 0;
    while (text.data && size < text.length && size + 1 < capacity && text.data[size] != '\0') {
        out[size] = text.data[size];
        size++;
    }
    out[size] = '\0';
}

void wk_gpu_copy_text(WGPUStringView text, char *out, size_t capacity) {
    size_t size = 0;
    for (size_t i = 0; text.data && i < text.length && text.data[i] != '\0'; i++) {
        const char c = text.data[i];
        const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (is_space && (size == 0 || out[size - 1] == ' ')) continue;
        if (size + 1 >= capacity) break;
        out[size++] = is_space ? ' ' : c;
    }
    while (size > 0 && out[size - 1] == ' ') size--;
    out[size] = '\0';
}

/* --- Failures --- */

void wk_gpu_note(wk_gpu *gpu, wick_status status, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wk_mutex_lock(gpu->lock);
    (void)wk_fail(&gpu->failure, status, "%s", text);
    wk_mutex_unlock(gpu->lock);
}

static void note_loss(wk_gpu *gpu, WGPUStringView message) {
    if (gpu->is_lost) return;
    gpu->is_lost = true;
    wk_gpu_copy_text(message, gpu->lost_message, sizeof gpu->lost_message);
}

wick_status wk_gpu_fail_lost(const wk_gpu *gpu, wick_error *err) {
    return wk_fail(err, WICK_ERR_DEVICE_LOST, "%s was lost: %s", gpu->info.name,
                   gpu->lost_message[0] != '\0' ? gpu->lost_message : "no reason given");
}

wick_status wk_gpu_judge(wk_gpu *gpu, WGPUEnum type, const char *message, wick_status wrong) {
    const wk_gpu_quirks *const quirks = gpu->library.quirks;
    if (type == WGPUErrorType_OutOfMemory) return WICK_ERR_OUT_OF_MEMORY;
    if (quirks->no_memory_message && strstr(message, quirks->no_memory_message))
        return WICK_ERR_OUT_OF_MEMORY;
    if (quirks->lost_message && strstr(message, quirks->lost_message)) {
        note_loss(gpu, wk_gpu_view(message));
        return WICK_ERR_DEVICE_LOST;
    }
    return type == WGPUErrorType_Validation ? wrong : WICK_ERR_DEVICE;
}

void wk_gpu_error_arrived(const WGPUDevice *device, WGPUEnum type, WGPUStringView message,
                          void *given, void *unused) {
    wk_gpu *const gpu = given;
    (void)device, (void)unused;
    char text[400];
    wk_gpu_copy_text(message, text, sizeof text);
    wk_gpu_note(gpu, wk_gpu_judge(gpu, type, text, WICK_ERR_DEVICE), "%s", text);
}

void wk_gpu_loss_arrived(const WGPUDevice *device, WGPUEnum reason, WGPUStringView message,
                         void *given, void *unused) {
    (void)device, (void)reason, (void)unused;
    note_loss(given, message);
}

static const WGPUEnum filters[] = {WGPUErrorFilter_Validation, WGPUErrorFilter_OutOfMemory,
                                   WGPUErrorFilter_Internal};

static size_t filter_count(const wk_gpu *gpu) {
    return WK_COUNT(filters) - (gpu->library.quirks->has_internal_scope ? 0 : 1);
}

void wk_gpu_scope_begin(wk_gpu *gpu) {
    gpu->scope.n_left = 0;
    gpu->scope.type = WGPUErrorType_NoError;
    for (size_t i = 0; i < filter_count(gpu); i++)
        gpu->library.f.DevicePushErrorScope(gpu->device, filters[i]);
}

static void scope_arrived(WGPUEnum status, WGPUEnum type, WGPUStringView message, void *given,
                          void *unused) {
    wk_gpu_scope *const scope = given;
    (void)unused;
    scope->n_left--;
    if (status != WGPUPopErrorScopeStatus_Success || type == WGPUErrorType_NoError) return;
    if (scope->type != WGPUErrorType_NoError) return;
    scope->type = type;
    wk_gpu_copy_raw(message, scope->message, sizeof scope->message);
}

bool wk_gpu_scope_failed(wk_gpu *gpu) {
    WGPUPopErrorScopeCallbackInfo callback = WK_GPU_CALLBACK(scope_arrived, &gpu->scope);
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    for (size_t i = 0; i < filter_count(gpu); i++) {
        gpu->scope.n_left++;
        gpu->library.f.DevicePopErrorScope(gpu->device, callback);
    }
    while (gpu->scope.n_left > 0) gpu->library.f.InstanceProcessEvents(gpu->instance);
    return gpu->scope.type != WGPUErrorType_NoError;
}

wick_status wk_gpu_scope_end(wk_gpu *gpu, const char *what, uint64_t bytes, wick_status wrong,
                             wick_error *err) {
    if (!wk_gpu_scope_failed(gpu)) return WICK_OK;
    const wick_status status = wk_gpu_judge(gpu, gpu->scope.type, gpu->scope.message, wrong);
    if (status == WICK_ERR_DEVICE_LOST) return wk_gpu_fail_lost(gpu, err);
    if (status == WICK_ERR_OUT_OF_MEMORY) return wk_fail_memory(err, bytes, what);
    char text[400];
    wk_gpu_copy_text(wk_gpu_view(gpu->scope.message), text, sizeof text);
    return wk_fail(err, status, "%s: %s", what, text);
}
