/* backend/webgpu/gpu/gpu_native_submit.c: commands encoded and submitted.
 *
 * A step of a model is some hundred commands: what happens here for each of them is a few calls of
 * the implementation and no allocation. */
#include "backend/webgpu/gpu/gpu_native.h"

#include <stdio.h>

/* The most that the specification allows in a query set. */
enum { MAX_TIMESTAMPS = 4096 };

typedef struct encoding {
    wk_gpu *gpu;
    const WGPUFunctions *f;
    WGPUCommandEncoder encoder;
    WGPUComputePassEncoder pass;     /* NULL: none is open */
    const wk_gpu_pipeline *pipeline; /* that the pass has */
} encoding;

static void end_pass(encoding *e) {
    if (!e->pass) return;
    e->f->ComputePassEncoderEnd(e->pass);
    e->f->ComputePassEncoderRelease(e->pass);
    e->pass = NULL;
    e->pipeline = NULL;
}

static void begin_pass(encoding *e, uint32_t timed) {
    const WGPUPassTimestampWrites times = {
        .querySet = e->gpu->queries,
        .beginningOfPassWriteIndex = 2 * timed - 2,
        .endOfPassWriteIndex = 2 * timed - 1,
    };
    const WGPUComputePassDescriptor desc = {.timestampWrites = timed > 0 ? &times : NULL};
    e->pass = e->f->CommandEncoderBeginComputePass(e->encoder, &desc);
}

/* --- Time --- */

static wick_status make_queries(wk_gpu *gpu, wick_error *err) {
    if (gpu->queries) return WICK_OK;
    if (!(gpu->info.features & WICK_WEBGPU_TIMESTAMPS))
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "%s has no timestamps", gpu->info.name);
    const WGPUQuerySetDescriptor queries = {.type = WGPUQueryType_Timestamp,
                                            .count = MAX_TIMESTAMPS};
    const WGPUBufferDescriptor resolved = {
        .usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc,
        .size = MAX_TIMESTAMPS * sizeof(uint64_t),
    };
    wk_gpu_scope_begin(gpu);
    gpu->queries = gpu->library.f.DeviceCreateQuerySet(gpu->device, &queries);
    gpu->resolved = gpu->library.f.DeviceCreateBuffer(gpu->device, &resolved);
    return wk_gpu_scope_end(gpu, "timestamps", resolved.size, WICK_ERR_DEVICE, err);
}

/* --- Commands --- */

static wick_status encode_dispatch(encoding *e, const wk_gpu_command *command, wick_error *err) {
    const wk_gpu_pipeline *const pipeline = command->dispatch.pipeline;
    const wk_gpu_group *const group = command->dispatch.group;
    const uint32_t params = command->dispatch.params;
    if (pipeline->failure.status != WICK_OK)
        return wk_fail(err, pipeline->failure.status, "%s", pipeline->failure.message);
    if (!pipeline->handle)
        return wk_fail(err, WICK_ERR_STATE, "kernel %s is not compiled", pipeline->label);
    if (params + (uint64_t)WK_GPU_PARAM_BYTES > group->params_size)
        return wk_fail(err, WICK_ERR_DEVICE, "kernel %s: parameters outside their buffer",
                       pipeline->label);
    if (command->timed > MAX_TIMESTAMPS / 2)
        return wk_fail(err, WICK_ERR_VALUE, "at most %d commands can be timed", MAX_TIMESTAMPS / 2);
    if (command->timed > 0) {
        WK_TRY(make_queries(e->gpu, err));
        end_pass(e);
    }
    if (!e->pass) begin_pass(e, command->timed);
    if (pipeline != e->pipeline) e->f->ComputePassEncoderSetPipeline(e->pass, pipeline->handle);
    e->pipeline = pipeline;
    e->f->ComputePassEncoderSetBindGroup(e->pass, 0, group->handle, 1, &params);
    e->f->ComputePassEncoderDispatchWorkgroups(e->pass, command->dispatch.x, command->dispatch.y,
                                               command->dispatch.z);
    if (command->timed > 0) end_pass(e);
    return WICK_OK;
}

/* The rest is checked by the implementation; a mapped buffer would end the process in one. */
static wick_status encode_copy(encoding *e, const wk_gpu_command *command, wick_error *err) {
    const wk_gpu_buffer *const to = command->copy.to;
    end_pass(e);
    if (to->map_state != WK_GPU_UNMAPPED)
        return wk_fail(err, WICK_ERR_STATE, "a copy to a buffer that is mapped");
    if (command->kind == WK_GPU_CLEAR) {
        e->f->CommandEncoderClearBuffer(e->encoder, to->handle, command->copy.to_offset,
                                        command->copy.size);
    } else {
        e->f->CommandEncoderCopyBufferToBuffer(e->encoder, command->copy.from->handle,
                                               command->copy.from_offset, to->handle,
                                               command->copy.to_offset, command->copy.size);
    }
    return WICK_OK;
}

static wick_status encode(encoding *e, const wk_gpu_command *commands, size_t n, wick_error *err) {
    for (size_t i = 0; i < n; i++) {
        const wick_status status = commands[i].kind == WK_GPU_DISPATCH
                                       ? encode_dispatch(e, &commands[i], err)
                                       : encode_copy(e, &commands[i], err);
        if (WK_UNLIKELY(status != WICK_OK)) return status;
    }
    return WICK_OK;
}

static void work_done(WGPUEnum status, WGPUStringView message, void *given, void *number) {
    wk_gpu *const gpu = given;
    (void)status, (void)message;
    const uint64_t n = (uintptr_t)number;
    if (n > gpu->n_done) gpu->n_done = n;
    gpu->n_awaited--;
}

static void submit(wk_gpu *gpu, const WGPUCommandBuffer *buffers, size_t n) {
    const WGPUFunctions *const f = &gpu->library.f;
    f->QueueSubmit(gpu->queue, n, buffers);
    gpu->n_submitted++;
    gpu->n_awaited++;
    WGPUQueueWorkDoneCallbackInfo callback = WK_GPU_CALLBACK(work_done, gpu);
    callback.userdata2 = (void *)(uintptr_t)gpu->n_submitted;
    gpu->newest = f->QueueOnSubmittedWorkDone(gpu->queue, callback);
}

static encoding encoding_begin(wk_gpu *gpu) {
    encoding e = {.gpu = gpu, .f = &gpu->library.f};
    if (gpu->library.quirks->must_check_submit || gpu->debug) wk_gpu_scope_begin(gpu);
    e.encoder = e.f->DeviceCreateCommandEncoder(gpu->device, NULL);
    return e;
}

/* What was encoded, unless status says that it is incomplete or a check that it is wrong. what: in
 * messages. */
static wick_status encoding_end(encoding *e, wick_status status, const char *what,
                                WGPUCommandBuffer *out, wick_error *err) {
    wk_gpu *const gpu = e->gpu;
    end_pass(e);
    *out = e->f->CommandEncoderFinish(e->encoder, NULL);
    e->f->CommandEncoderRelease(e->encoder);
    if (gpu->library.quirks->must_check_submit || gpu->debug) {
        wick_error wrong = {0};
        const wick_status checked = wk_gpu_scope_end(gpu, what, 0, WICK_ERR_DEVICE, &wrong);
        if (status == WICK_OK && checked != WICK_OK)
            status = wk_fail(err, checked, "%s", wrong.message);
    }
    return status;
}

static void release(const wk_gpu *gpu, WGPUCommandBuffer buffer) {
    if (buffer) gpu->library.f.CommandBufferRelease(buffer);
}

/* For debugging: every command is checked by itself, so that errors name their kernel. */
static wick_status submit_checked(wk_gpu *gpu, const wk_gpu_command *commands, size_t n,
                                  wick_error *err) {
    WGPUCommandBuffer *const buffers = wk_alloc_array(gpu->heap, n, sizeof *buffers);
    wick_status status =
        buffers ? WICK_OK : wk_fail_memory(err, n * sizeof *buffers, "command buffers");
    for (size_t i = 0; i < n && status == WICK_OK; i++) {
        char what[80] = "a copy";
        if (commands[i].kind == WK_GPU_DISPATCH)
            snprintf(what, sizeof what, "kernel %s", commands[i].dispatch.pipeline->label);
        encoding e = encoding_begin(gpu);
        status = encode(&e, &commands[i], 1, err);
        status = encoding_end(&e, status, what, &buffers[i], err);
    }
    if (status == WICK_OK) submit(gpu, buffers, n);
    for (size_t i = 0; buffers && i < n; i++) release(gpu, buffers[i]);
    wk_free(gpu->heap, buffers, n * sizeof *buffers);
    return status;
}

wick_status wk_gpu_submit(wk_gpu *gpu, const wk_gpu_command *commands, size_t n, wick_error *err) {
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    if (gpu->debug && n > 0) return submit_checked(gpu, commands, n, err);
    encoding e = encoding_begin(gpu);
    WGPUCommandBuffer buffer;
    wick_status status = encode(&e, commands, n, err);
    status = encoding_end(&e, status, "commands", &buffer, err);
    if (status == WICK_OK) submit(gpu, &buffer, 1);
    release(gpu, buffer);
    return status;
}

wick_status wk_gpu_timestamps(wk_gpu *gpu, uint32_t n, wk_gpu_buffer *to, wick_error *err) {
    if (gpu->is_lost) return wk_gpu_fail_lost(gpu, err);
    if (n == 0 || n > MAX_TIMESTAMPS || to->size / sizeof(uint64_t) < n ||
        to->map_state != WK_GPU_UNMAPPED)
        return wk_fail(err, WICK_ERR_VALUE, "cannot read %u timestamps", (unsigned)n);
    WK_TRY(make_queries(gpu, err));
    encoding e = encoding_begin(gpu);
    e.f->CommandEncoderResolveQuerySet(e.encoder, gpu->queries, 0, n, gpu->resolved, 0);
    e.f->CommandEncoderCopyBufferToBuffer(e.encoder, gpu->resolved, 0, to->handle, 0,
                                          n * sizeof(uint64_t));
    WGPUCommandBuffer buffer;
    const wick_status status = encoding_end(&e, WICK_OK, "timestamps", &buffer, err);
    if (status == WICK_OK) submit(gpu, &buffer, 1);
    release(gpu, buffer);
    return status;
}
