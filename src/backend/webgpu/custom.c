/* backend/webgpu/custom.c: kernels of the user's: their text compiled as it is, their
 * tensors bound each by itself. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/encoder.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

#include <stdio.h>

struct wk_custom {
    wk_gpu_layout *layout; /* the cache's */
    wk_gpu_pipeline *pipeline;
    uint32_t n_buffers, writable; /* bits */
    uint64_t used_in;             /* number of the latest recording with commands of it */
    char label[64];
};

/* --- Compiling --- */

/* The enable directives of the features go before the first line of the source, without a line
 * break, and the constants after the source, so that the compiler's line numbers are the user's. */
static void put_text(const wk_gpu *gpu, const wick_kernel_desc *desc, wk_strbuf *out) {
    wk_strbuf_text(out, wk_gpu_enables(gpu, desc->needs));
    for (size_t i = 0; i < out->size; i++)
        if (out->data[i] == '\n') out->data[i] = ' ';
    wk_strbuf_text(out, desc->source);
    for (size_t i = 0; i < WK_COUNT(desc->workgroup); i++)
        wk_strbuf_format(out, "\nconst WORKGROUP_%c = %uu;", (char)('X' + i), desc->workgroup[i]);
}

static wick_status check_limits(const wick_adapter_info *has, const wick_kernel_desc *desc,
                                wick_error *err) {
    const wick_adapter_limits *const limits = &has->limits;
    const uint32_t *const size = desc->workgroup;
    if ((desc->needs & ~has->features) != 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "kernel %s needs features (0x%x) that %s lacks or was opened without",
                       desc->label, (unsigned)(desc->needs & ~has->features), has->name);
    if ((uint32_t)desc->n_buffers > limits->storage_bindings)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "kernel %s has %d buffers, %s binds %u",
                       desc->label, desc->n_buffers, has->name, limits->storage_bindings);
    const uint64_t threads = (uint64_t)size[0] * size[1] * size[2];
    if (size[0] > limits->workgroup_size_x || size[1] > limits->workgroup_size_y ||
        size[2] > limits->workgroup_size_z || threads > limits->workgroup_threads)
        return wk_fail(err, WICK_ERR_VALUE,
                       "kernel %s: workgroups of %u x %u x %u threads, %s allows %u x %u x %u and "
                       "%u in all",
                       desc->label, size[0], size[1], size[2], has->name, limits->workgroup_size_x,
                       limits->workgroup_size_y, limits->workgroup_size_z,
                       limits->workgroup_threads);
    return WICK_OK;
}

static wick_status compile(wk_backend_device *dev, const wick_kernel_desc *desc, wk_custom *custom,
                           wick_error *err) {
    wk_strbuf text;
    WK_TRY(wk_cache_layout(dev, custom->n_buffers, custom->writable, desc->uniform_bytes,
                           &custom->layout, err));
    wk_strbuf_init(&text, dev->heap);
    put_text(dev->gpu, desc, &text);
    const wk_gpu_pipeline_desc pipeline = {
        .label = custom->label, .wgsl = text.data, .entry = desc->entry, .layout = custom->layout};
    const wick_status status =
        text.failed ? wk_fail_memory(err, text.size, "the text of a kernel")
                    : wk_gpu_pipeline_start(dev->gpu, &pipeline, &custom->pipeline, err);
    wk_strbuf_release(&text);
    return status;
}

wick_status wk_webgpu_custom_make(wk_backend_device *dev, const wick_kernel_desc *desc,
                                  wk_custom **out, wick_error *err) {
    *out = NULL;
    WK_TRY(check_limits(&dev->adapter, desc, err));
    wk_custom *const custom = wk_alloc_zeroed(dev->heap, sizeof *custom);
    if (!custom) return wk_fail_memory(err, sizeof *custom, "a kernel");
    snprintf(custom->label, sizeof custom->label, "%s", desc->label);
    custom->n_buffers = (uint32_t)desc->n_buffers;
    for (uint32_t i = 0; i < custom->n_buffers; i++)
        if (desc->access[i] == WICK_KERNEL_READ_WRITE) custom->writable |= 1U << i;
    const wick_status status = compile(dev, desc, custom, err);
    if (status == WICK_OK)
        *out = custom;
    else
        wk_free(dev->heap, custom, sizeof *custom);
    return status;
}

wick_status wk_webgpu_custom_poll(wk_backend_device *dev, wk_custom *custom, wick_error *err) {
    const wick_status status = wk_gpu_pipeline_poll(dev->gpu, custom->pipeline, err);
    if (status == WICK_ERR_DEVICE_LOST) dev->is_lost = true;
    return status;
}

void wk_webgpu_custom_free(wk_backend_device *dev, wk_custom *custom) {
    if (!custom) return;
    /* Commands of it may still be recorded. */
    if (custom->used_in == dev->recording) wk_webgpu_flush_untold(dev);
    wk_gpu_pipeline_release(dev->gpu, custom->pipeline);
    wk_free(dev->heap, custom, sizeof *custom);
}

/* --- Running --- */

/* The view of binding i: destinations and sources keep the kernel's order. */
static const wk_view *view_of(const wk_op *op, uint32_t writable, uint32_t i) {
    int before[2] = {0, 0}; /* bindings before it that are read, that are written */
    for (uint32_t k = 0; k < i; k++) before[writable >> k & 1]++;
    return writable >> i & 1 ? wk_dst(op, before[1]) : wk_src(op, before[0]);
}

static wick_status find_window(const wk_encoder *e, const wk_custom *custom, const wk_view *view,
                               wk_window *out) {
    const uint32_t alignment = e->dev->adapter.limits.storage_alignment;
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    out->size = (end - begin + 3) / 4 * 4;
    out->block = wk_webgpu_locate(view->buf, begin, end - begin, &out->offset);
    if (out->block && out->offset % alignment == 0) return WICK_OK;
    return wk_fail(e->err, WICK_ERR_UNSUPPORTED,
                   "kernel %s: a tensor of %llu bytes begins %llu bytes into its memory, bindings "
                   "begin at multiples of %u: use a copy of it",
                   custom->label, (unsigned long long)(end - begin),
                   (unsigned long long)view->offset, alignment);
}

static bool is_block_written(const wk_custom *custom, const wk_window *windows,
                             const wk_block *block) {
    for (uint32_t i = 0; i < custom->n_buffers; i++)
        if (custom->writable >> i & 1 && windows[i].block == block) return true;
    return false;
}

/* WebGPU refuses a buffer that is bound both writable and not, even where the bytes are others: the
 * run reads a copy of these. */
static wick_status read_copy(wk_encoder *e, wk_window *window) {
    wk_backend_device *const dev = e->dev;
    wk_buffer *temp;
    WK_TRY(wk_encoder_block(e, window->size, &temp));
    wk_gpu_command *const command = wk_recorder_next(dev, e->recorder, e->err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    wk_window copy = {.size = window->size};
    copy.block = wk_webgpu_locate(temp, 0, copy.size, &copy.offset);
    command->copy.from = window->block->gpu;
    command->copy.from_offset = window->offset;
    command->copy.to = copy.block->gpu;
    command->copy.to_offset = copy.offset;
    command->copy.size = copy.size;
    wk_webgpu_use(dev, window->block);
    *window = copy;
    return WICK_OK;
}

static wick_status encode(wk_encoder *e, const wk_op *op) {
    const wk_custom_run *const run = op->p.custom;
    wk_custom *const custom = run->custom;
    wk_dispatch d = {.program.n_slots = custom->n_buffers};
    WK_TRY(wk_gpu_pipeline_poll(e->dev->gpu, custom->pipeline, e->err));
    for (uint32_t i = 0; i < custom->n_buffers; i++)
        WK_TRY(find_window(e, custom, view_of(op, custom->writable, i), &d.windows[i]));
    for (uint32_t i = 0; i < custom->n_buffers; i++)
        if (!(custom->writable >> i & 1) && is_block_written(custom, d.windows, d.windows[i].block))
            WK_TRY(read_copy(e, &d.windows[i]));
    for (uint32_t i = 0; i < run->n_words; i++) wk_dispatch_u32(&d, run->uniform[i]);
    WK_TRY(wk_dispatch_record(e, &d, custom->pipeline, custom->layout, run->workgroups));
    custom->used_in = e->dev->recording;
    return WICK_OK;
}

/* Not a function in C. */
static bool accepts(const wk_op *op) { return op->p.custom->custom != NULL; }

const wk_webgpu_kernel wk_webgpu_custom = {
    .base.name = "custom_wgsl",
    .base.code = WK_OP_CUSTOM,
    .base.accepts = accepts,
    .encode = encode,
};
