/* backend/webgpu/encoder.c: from a kernel's dispatch to a command: which buffers share a binding,
 * where in it each operand begins, which pipeline and which bind group. */
#include "backend/webgpu/encoder.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/webgpu_state.h"
#include "backend/webgpu/write.h"
#include "core/dtype.h"

#include <assert.h>
#include <string.h>

void wk_dispatch_begin(wk_dispatch *d, const wk_source *source, uint32_t needs) {
    /* The program is a key: its padding counts. */
    memset(&d->program, 0, sizeof d->program);
    d->program.source = source;
    d->program.needs = needs;
    d->n_params = 0;
}

void wk_dispatch_bind(wk_dispatch *d, int i, const wk_view *view, wk_form form, bool is_written) {
    assert(i >= 0 && i < WK_PROGRAM_OPERANDS && form != WK_FORM_ABSENT);
    wk_program_operand *const o = &d->program.operands[i];
    if (!view->buf) return;
    d->views[i] = *view;
    o->form = (uint8_t)form;
    o->dtype = (uint8_t)view->dtype;
    o->is_written = is_written;
}

/* --- Bindings --- */

static uint32_t unit_of(const wk_program_operand *o) {
    if (o->form == WK_FORM_VECTORS) return 16;
    if (o->form == WK_FORM_WORDS) return 4;
    const uint32_t bytes = (uint32_t)wk_dtype_get((wick_dtype)o->dtype)->block_bytes;
    return o->form == WK_FORM_LANES ? 4 * bytes : bytes;
}

/* The block that the operand's view lies in, and where in it the view begins. */
static wick_status find_block(wk_encoder *e, const wk_view *view, wk_block **block, uint64_t *at) {
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    *block = wk_webgpu_locate(view->buf, begin, end - begin, at);
    if (*block) return WICK_OK;
    return wk_fail(e->err, WICK_ERR_UNSUPPORTED,
                   "%s needs a binding of %llu bytes, the device allows %llu",
                   wk_op_get_info(e->code)->name, (unsigned long long)(end - begin),
                   (unsigned long long)e->dev->block_bytes);
}

/* Blocks are bound whole, so that the same bind groups serve again; those in one block share a
 * slot. most: there is none left. */
static uint32_t join_slot(wk_dispatch *d, wk_block *block, uint32_t most) {
    uint32_t s = 0;
    while (s < d->program.n_slots && d->windows[s].block != block) s++;
    if (s == d->program.n_slots && s < most) {
        d->windows[s] = (wk_window){.block = block, .size = block->size};
        d->program.n_slots++;
    }
    return s;
}

wick_status wk_dispatch_place(wk_encoder *e, wk_dispatch *d) {
    const uint32_t has = e->dev->adapter.limits.storage_bindings;
    const uint32_t most = has < WK_MAX_BINDINGS ? has : WK_MAX_BINDINGS;
    d->program.n_slots = 0;
    for (int i = 0; i < WK_PROGRAM_OPERANDS; i++) {
        wk_program_operand *const o = &d->program.operands[i];
        if (o->form == WK_FORM_ABSENT) continue;
        wk_block *block;
        uint64_t at;
        WK_TRY(find_block(e, &d->views[i], &block, &at));
        const uint32_t slot = join_slot(d, block, most);
        if (slot == most) return wk_encoder_refuse(e, "too many buffers for a dispatch");
        o->slot = (uint8_t)slot;
        assert(at % unit_of(o) == 0 && at / unit_of(o) <= UINT32_MAX);
        d->first[i] = (uint32_t)(at / unit_of(o));
    }
    return WICK_OK;
}

void wk_dispatch_u32(wk_dispatch *d, uint32_t value) {
    assert(d->n_params < WK_COUNT(d->params));
    d->params[d->n_params++] = value;
}

void wk_dispatch_f32(wk_dispatch *d, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    wk_dispatch_u32(d, bits);
}

/* --- Commands --- */

wick_status wk_dispatch_record(wk_encoder *e, const wk_dispatch *d, wk_gpu_pipeline *pipeline,
                               const wk_gpu_layout *layout, const uint32_t workgroups[3]) {
    wk_backend_device *const dev = e->dev;
    wk_gpu_buffer *uniforms;
    wk_gpu_group *group;
    uint32_t params;
    WK_TRY(
        wk_recorder_params(dev, e->recorder, d->params, d->n_params, &uniforms, &params, e->err));
    WK_TRY(wk_cache_group(dev, e->recorder, layout, d->windows, (int)d->program.n_slots, uniforms,
                          &group, e->err));
    wk_gpu_command *const command = wk_recorder_next(dev, e->recorder, e->err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    command->kind = WK_GPU_DISPATCH;
    if (e->recorder == &dev->recorder) command->timed = wk_profile_dispatch(dev, e->kernel);
    command->dispatch.pipeline = pipeline;
    command->dispatch.group = group;
    command->dispatch.params = params;
    command->dispatch.x = workgroups[0];
    command->dispatch.y = workgroups[1];
    command->dispatch.z = workgroups[2];
    for (uint32_t s = 0; s < d->program.n_slots; s++) wk_webgpu_use(dev, d->windows[s].block);
    if (e->may_fault) e->recorder->may_fault = true;
    return WICK_OK;
}

wick_status wk_dispatch_run(wk_encoder *e, const wk_dispatch *d, uint32_t x, uint32_t y,
                            uint32_t z) {
    assert(x > 0 && y > 0 && z > 0);
    wk_pipeline_entry *entry;
    WK_TRY(wk_cache_pipeline(e->dev, e->kernel, &d->program, &entry, e->err));
    if (e->dev->is_rehearsing) return WICK_OK;
    if (entry->status < 0) return wk_gpu_pipeline_poll(e->dev->gpu, entry->pipeline, e->err);
    if (e->recorder->n_pipelines < entry->number) e->recorder->n_pipelines = entry->number;
    const uint32_t workgroups[3] = {x, y, z};
    return wk_dispatch_record(e, d, entry->pipeline, entry->layout, workgroups);
}

wick_status wk_dispatch_run_n(wk_encoder *e, const wk_dispatch *d, uint64_t n) {
    uint32_t x, y;
    if (n == 0) return WICK_OK;
    if (!wk_spread_workgroups(n, e->dev->adapter.limits.workgroups, &x, &y))
        return wk_fail(e->err, WICK_ERR_UNSUPPORTED, "%s needs %llu workgroups",
                       wk_op_get_info(e->code)->name, (unsigned long long)n);
    return wk_dispatch_run(e, d, x, y, 1);
}

/* --- What kernels ask for --- */

/* Held by the plan that is being made. */
static bool is_held(const wk_encoder *e, const wk_buffer *temp) {
    for (size_t i = 0; i < e->recorder->n_temps; i++)
        if (e->recorder->temps[i] == temp) return true;
    return false;
}

static bool is_taken(const wk_encoder *e, const wk_buffer *temp) {
    for (int i = 0; i < e->n_temps; i++)
        if (e->temps[i] == temp) return true;
    return false;
}

/* What earlier ops of a plan have needed serves this one, too: they run one after the other. But
 * integers stay. */
static wk_buffer *find_held(const wk_encoder *e, uint64_t bytes) {
    for (size_t i = 0; i < e->recorder->n_temps; i++) {
        wk_buffer *const temp = e->recorder->temps[i];
        if (temp->size == bytes && !is_taken(e, temp) && temp != e->recorder->integers.buf)
            return temp;
    }
    return NULL;
}

wick_status wk_encoder_temp(wk_encoder *e, int64_t count, wk_view *out) {
    const wick_shape shape = wick_shape_of(1, &count);
    uint64_t bytes;
    if (!wk_view_dense(WICK_F32, &shape, out, &bytes))
        return wk_fail(e->err, WICK_ERR_SHAPE, "%lld elements are too many for a tensor",
                       (long long)count);
    assert(e->n_temps < WK_MAX_TEMPS);
    out->buf = find_held(e, bytes);
    if (!out->buf) WK_TRY(wk_webgpu_temp(e->dev, bytes, &out->buf, e->err));
    e->temps[e->n_temps++] = out->buf;
    return WICK_OK;
}

bool wk_encoder_makes_integers(const wk_encoder *e) { return e->recorder->makes_integers; }

const wk_view *wk_encoder_integers(const wk_encoder *e, const wk_view *x) {
    const wk_recorder *const recorder = e->recorder;
    const bool is_there = recorder->integers.buf && wk_view_same(&recorder->quantized, x);
    return is_there ? &recorder->integers : NULL;
}

void wk_encoder_keep_integers(wk_encoder *e, const wk_view *x, const wk_view *integers) {
    assert(is_taken(e, integers->buf));
    if (e->recorder == &e->dev->recorder) return; /* temporaries end with their op there */
    e->recorder->quantized = *x;
    e->recorder->integers = *integers;
}

wick_status wk_encoder_block(wk_encoder *e, uint64_t size, wk_buffer **out) {
    assert(e->n_temps < WK_MAX_TEMPS);
    WK_TRY(wk_webgpu_alloc_block(e->dev, size, out, e->err));
    e->temps[e->n_temps++] = *out;
    return WICK_OK;
}

wick_status wk_encoder_end(wk_encoder *e, wick_status status) {
    const bool is_kept = status == WICK_OK && e->recorder != &e->dev->recorder;
    /* Integers of an op that has failed were not made. */
    if (!is_kept && is_taken(e, e->recorder->integers.buf)) e->recorder->integers.buf = NULL;
    for (; e->n_temps > 0; e->n_temps--) {
        wk_buffer *const temp = e->temps[e->n_temps - 1];
        if (is_held(e, temp)) continue;
        if (is_kept && status == WICK_OK)
            status = wk_recorder_hold(e->dev, e->recorder, temp, e->err);
        if (!is_kept || status != WICK_OK) wk_webgpu_free(e->dev, temp);
    }
    return status;
}

void wk_encoder_rows(const wk_encoder *e, const wk_op *op, uint32_t *first, uint32_t *n) {
    *first = e->first_row;
    *n = e->n_rows > 0 ? e->n_rows : (uint32_t)op->view[wk_op_table(op->code)].extent[0];
}

static wick_status upload_tables(wk_backend_device *dev, wk_buffer *buf, int64_t n,
                                 void (*write)(uint32_t *words), wick_error *err) {
    const size_t size = (size_t)n * sizeof(uint32_t);
    uint32_t *const words = wk_alloc(dev->heap, size);
    if (words == NULL) return wk_fail_memory(err, size, "tables of quantized types");
    write(words);
    dev->stats.bytes_uploaded += size;
    const wick_status status =
        wk_webgpu_write(dev, buf, 0, (const unsigned char *)words, size, err);
    wk_free(dev->heap, words, size);
    return status;
}

wick_status wk_encoder_tables(wk_encoder *e, int64_t n, void (*write)(uint32_t *words),
                              const wk_view **out) {
    wk_backend_device *const dev = e->dev;
    *out = &dev->tables;
    if (dev->tables.buf) return WICK_OK;
    const wick_shape shape = wick_shape_of(1, &n);
    uint64_t bytes;
    wk_buffer *buf;
    (void)wk_view_dense(WICK_U32, &shape, &dev->tables, &bytes);
    WK_TRY(wk_webgpu_alloc(dev, bytes, 0, &buf, e->err));
    const wick_status status = upload_tables(dev, buf, n, write, e->err);
    if (status == WICK_OK) {
        dev->tables.buf = buf;
    } else {
        wk_webgpu_free(dev, buf);
    }
    return status;
}

wick_status wk_encoder_refuse(const wk_encoder *e, const char *why) {
    return wk_fail(e->err, WICK_ERR_UNSUPPORTED, "%s: %s", wk_op_get_info(e->code)->name, why);
}

const wk_view *wk_encoder_fault(wk_encoder *e) {
    e->may_fault = true;
    return &e->fault;
}

const wk_kernel *wk_encoder_kernel(const wk_encoder *e) { return &e->kernel->base; }

uint32_t wk_encoder_tuning(const wk_encoder *e) { return e->tuning; }

const wick_adapter_limits *wk_encoder_limits(const wk_encoder *e) {
    return &e->dev->adapter.limits;
}

bool wk_encoder_has(const wk_encoder *e, uint32_t features) {
    return (features & ~e->dev->features) == 0;
}

uint32_t wk_encoder_subgroup(const wk_encoder *e) {
    enum { LEAST = 4 }; /* of WebGPU */
    const uint32_t least = e->dev->adapter.limits.subgroup_min;
    return least > LEAST ? least : LEAST;
}
