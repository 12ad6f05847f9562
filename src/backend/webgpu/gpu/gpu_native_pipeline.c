/* backend/webgpu/gpu/gpu_native_pipeline.c: bind group layouts, bind groups, and kernels compiled.
 */
#include "backend/webgpu/gpu/gpu_native.h"

#include "sys/clock.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Layouts and groups --- */

wick_status wk_gpu_layout_make(wk_gpu *gpu, int n, uint32_t writable, uint32_t uniform_bytes,
                               wk_gpu_layout **out, wick_error *err) {
    assert(n >= 0 && n <= WK_GPU_MAX_BINDINGS);
    *out = NULL;
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    wk_gpu_layout *const layout =
        wk_gpu_object_make(gpu, WK_GPU_OBJECT_LAYOUT, sizeof *layout, err);
    if (!layout) return WICK_ERR_OUT_OF_MEMORY;
    layout->n_storage = n;
    layout->writable = writable;
    WGPUBindGroupLayoutEntry entries[WK_GPU_MAX_BINDINGS + 1] = {0};
    for (int i = 0; i <= n; i++) {
        entries[i].binding = (uint32_t)i;
        entries[i].visibility = WGPUShaderStage_Compute;
        entries[i].buffer.type = writable >> i & 1 ? WGPUBufferBindingType_Storage
                                                   : WGPUBufferBindingType_ReadOnlyStorage;
    }
    entries[n].buffer = (WGPUBufferBindingLayout){
        .type = WGPUBufferBindingType_Uniform,
        .hasDynamicOffset = 1,
        /* Checked when pipelines are made instead of in every dispatch; 0 would mean the latter. */
        .minBindingSize = uniform_bytes > 0 ? uniform_bytes : 1,
    };
    const WGPUBindGroupLayoutDescriptor group = {.entryCount = (size_t)n + 1, .entries = entries};
    const WGPUFunctions *const f = &gpu->library.f;
    wk_gpu_scope_begin(gpu);
    layout->group = f->DeviceCreateBindGroupLayout(gpu->device, &group);
    const WGPUPipelineLayoutDescriptor pipeline = {.bindGroupLayoutCount = 1,
                                                   .bindGroupLayouts = &layout->group};
    layout->pipeline = f->DeviceCreatePipelineLayout(gpu->device, &pipeline);
    const wick_status status =
        wk_gpu_scope_end(gpu, "a layout of bindings", 0, WICK_ERR_DEVICE, err);
    if (status == WICK_OK)
        *out = layout;
    else
        wk_gpu_object_release(gpu, &layout->object);
    return status;
}

void wk_gpu_layout_release(wk_gpu *gpu, wk_gpu_layout *layout) {
    if (layout) wk_gpu_object_release(gpu, &layout->object);
}

wick_status wk_gpu_group_make(wk_gpu *gpu, const wk_gpu_layout *layout,
                              const wk_gpu_binding *storage, int n, wk_gpu_buffer *params,
                              wk_gpu_group **out, wick_error *err) {
    assert(n == layout->n_storage);
    *out = NULL;
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    wk_gpu_group *const group = wk_gpu_object_make(gpu, WK_GPU_OBJECT_GROUP, sizeof *group, err);
    if (!group) return WICK_ERR_OUT_OF_MEMORY;
    group->params_size = params->size;
    WGPUBindGroupEntry entries[WK_GPU_MAX_BINDINGS + 1] = {0};
    for (int i = 0; i < n; i++) {
        entries[i] = (WGPUBindGroupEntry){
            .binding = (uint32_t)i,
            .buffer = storage[i].buf->handle,
            .offset = storage[i].offset,
            .size = storage[i].size,
        };
    }
    entries[n] = (WGPUBindGroupEntry){
        .binding = (uint32_t)n, .buffer = params->handle, .size = WK_GPU_PARAM_BYTES};
    const WGPUBindGroupDescriptor desc = {
        .layout = layout->group, .entryCount = (size_t)n + 1, .entries = entries};
    wk_gpu_scope_begin(gpu);
    group->handle = gpu->library.f.DeviceCreateBindGroup(gpu->device, &desc);
    const wick_status status = wk_gpu_scope_end(gpu, "a bind group", 0, WICK_ERR_DEVICE, err);
    if (status == WICK_OK)
        *out = group;
    else
        wk_gpu_object_release(gpu, &group->object);
    return status;
}

void wk_gpu_group_release(wk_gpu *gpu, wk_gpu_group *group) {
    if (group) wk_gpu_object_release(gpu, &group->object);
}

/* --- Kernels --- */

/* The line that a message names as ":LINE:COLUMN", 0: none. */
static unsigned long find_line(const char *message) {
    for (const char *at = strchr(message, ':'); at; at = strchr(at + 1, ':')) {
        if (!isdigit((unsigned char)at[1])) continue;
        char *end;
        const unsigned long line = strtoul(at + 1, &end, 10);
        if (*end == ':' && isdigit((unsigned char)end[1])) return line;
    }
    return 0;
}

/* Line number `line` (from 1) of the text, without the white space it begins with. */
static WGPUStringView text_line(const char *text, unsigned long line) {
    for (; line > 1 && text; line--) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    if (!text) return (WGPUStringView){.data = "", .length = 0};
    text += strspn(text, " \t");
    return (WGPUStringView){.data = text, .length = strcspn(text, "\n")};
}

/* What the implementation says of a kernel, with the line it speaks of. */
static void fail_kernel(wk_gpu_pipeline *pipeline, WGPUEnum type, const char *message,
                        const char *wgsl) {
    wk_gpu *const gpu = pipeline->gpu;
    char text[320];
    wk_gpu_copy_text(wk_gpu_view(message), text, sizeof text);
    const wick_status status = wk_gpu_judge(gpu, type, message, WICK_ERR_VALUE);
    const unsigned long line = wgsl ? find_line(message) : 0;
    if (status == WICK_ERR_DEVICE_LOST) {
        (void)wk_gpu_fail_lost(gpu, &pipeline->failure);
    } else if (line > 0) {
        char quoted[80];
        wk_gpu_copy_text(text_line(wgsl, line), quoted, sizeof quoted);
        (void)wk_fail(&pipeline->failure, status, "kernel %s, line %lu, \"%s\": %s",
                      pipeline->label, line, quoted, text);
    } else {
        (void)wk_fail(&pipeline->failure, status, "kernel %s: %s", pipeline->label, text);
    }
}

/* NULL: pipeline->failure says why. */
static WGPUShaderModule make_module(wk_gpu_pipeline *pipeline, const char *wgsl) {
    wk_gpu *const gpu = pipeline->gpu;
    if (gpu->library.quirks->must_check_nesting && wk_wgsl_nests_too_deep(wgsl)) {
        (void)wk_fail(&pipeline->failure, WICK_ERR_VALUE,
                      "kernel %s: an expression or a chain of else nests too deep for %s",
                      pipeline->label, gpu->library.quirks->name);
        return NULL;
    }
    WGPUShaderSourceWGSL source = {.chain = {.sType = WGPUSType_ShaderSourceWGSL},
                                   .code = wk_gpu_view(wgsl)};
    const WGPUShaderModuleDescriptor desc = {.nextInChain = &source.chain,
                                             .label = wk_gpu_view(pipeline->label)};
    wk_gpu_scope_begin(gpu);
    WGPUShaderModule const module = gpu->library.f.DeviceCreateShaderModule(gpu->device, &desc);
    if (!wk_gpu_scope_failed(gpu)) return module;
    fail_kernel(pipeline, gpu->scope.type, gpu->scope.message, wgsl);
    if (module) gpu->library.f.ShaderModuleRelease(module);
    return NULL;
}

static void pipeline_arrived(WGPUEnum status, WGPUComputePipeline handle, WGPUStringView message,
                             void *given, void *unused) {
    wk_gpu_pipeline *const pipeline = given;
    wk_gpu *const gpu = pipeline->gpu;
    (void)unused;
    if (status == WGPUCreatePipelineAsyncStatus_Success) {
        pipeline->handle = handle;
    } else {
        char text[1024];
        wk_gpu_copy_raw(message, text, sizeof text);
        const bool is_text_wrong = status == WGPUCreatePipelineAsyncStatus_ValidationError;
        fail_kernel(pipeline, is_text_wrong ? WGPUErrorType_Validation : WGPUErrorType_Internal,
                    text, NULL);
    }
    gpu->compiled_ns = wk_clock_ns();
    (void)wk_gpu_object_arrived(gpu, &pipeline->object);
}

static void compile_in_background(wk_gpu_pipeline *pipeline,
                                  const WGPUComputePipelineDescriptor *desc) {
    wk_gpu *const gpu = pipeline->gpu;
    const WGPUCreateComputePipelineAsyncCallbackInfo callback =
        WK_GPU_CALLBACK(pipeline_arrived, pipeline);
    wk_gpu_object_await(gpu, &pipeline->object);
    gpu->newest = gpu->library.f.DeviceCreateComputePipelineAsync(gpu->device, desc, callback);
}

static void compile_now(wk_gpu_pipeline *pipeline, const WGPUComputePipelineDescriptor *desc) {
    wk_gpu *const gpu = pipeline->gpu;
    const WGPUFunctions *const f = &gpu->library.f;
    wk_gpu_scope_begin(gpu);
    pipeline->handle = f->DeviceCreateComputePipeline(gpu->device, desc);
    if (!wk_gpu_scope_failed(gpu)) return;
    fail_kernel(pipeline, gpu->scope.type, gpu->scope.message, NULL);
    if (pipeline->handle) f->ComputePipelineRelease(pipeline->handle);
    pipeline->handle = NULL;
}

/* The module has served. entry NULL: "main". */
static void compile(wk_gpu_pipeline *pipeline, const char *entry) {
    wk_gpu *const gpu = pipeline->gpu;
    const WGPUComputePipelineDescriptor desc = {
        .label = wk_gpu_view(pipeline->label),
        .layout = pipeline->layout->pipeline,
        .compute = {.module = pipeline->module, .entryPoint = wk_gpu_view(entry ? entry : "main")},
    };
    if (gpu->library.quirks->has_async_pipelines)
        compile_in_background(pipeline, &desc);
    else
        compile_now(pipeline, &desc);
    gpu->library.f.ShaderModuleRelease(pipeline->module);
    pipeline->module = NULL;
}

wick_status wk_gpu_pipeline_start(wk_gpu *gpu, const wk_gpu_pipeline_desc *given,
                                  wk_gpu_pipeline **out, wick_error *err) {
    *out = NULL;
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    wk_gpu_pipeline *const pipeline =
        wk_gpu_object_make(gpu, WK_GPU_OBJECT_PIPELINE, sizeof *pipeline, err);
    if (!pipeline) return WICK_ERR_OUT_OF_MEMORY;
    pipeline->gpu = gpu;
    pipeline->layout = given->layout;
    snprintf(pipeline->label, sizeof pipeline->label, "%s", given->label);
    *out = pipeline;
    pipeline->module = make_module(pipeline, given->wgsl); /* NULL: poll reports it */
    const bool is_now = gpu->library.quirks->has_async_pipelines || given->entry;
    if (pipeline->module && is_now) compile(pipeline, given->entry);
    return WICK_OK;
}

wick_status wk_gpu_pipeline_poll(wk_gpu *gpu, wk_gpu_pipeline *pipeline, wick_error *err) {
    const wick_error *const failure = &pipeline->failure;
    const bool is_pending = !pipeline->handle && failure->status == WICK_OK;
    if (is_pending && gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    if (is_pending && pipeline->module) {
        compile(pipeline, NULL);
        return WICK_PENDING; /* one is enough for a poll */
    }
    if (is_pending) gpu->library.f.InstanceProcessEvents(gpu->instance);
    if (pipeline->handle) return WICK_OK;
    if (failure->status == WICK_OK) return WICK_PENDING;
    return wk_fail(err, failure->status, "%s", failure->message);
}

void wk_gpu_pipeline_release(wk_gpu *gpu, wk_gpu_pipeline *pipeline) {
    if (pipeline) wk_gpu_object_release(gpu, &pipeline->object);
}
