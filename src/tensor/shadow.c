/* tensor/shadow.c: see shadow.h. */
#include "tensor/shadow.h"

#include "core/dtype.h"
#include "core/scalar.h"
#include "quant/block.h"
#include "tensor/custom.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum phase {
    OPEN,          /* the CPU device */
    READ_OPERANDS, /* from the device into ours */
    COMPUTE,       /* on the CPU */
    RUN_ON_DEVICE, /* verification: the device's own kernel; a fallback: the result is uploaded */
    READ_RESULTS,  /* verification: what it computed */
} phase;

/* One operand: bytes [begin, begin + size) of its buffer, copied to a buffer of the CPU's. */
typedef struct operand {
    uint64_t begin, size;
    wk_buffer *copy;
} operand;

struct wk_shadow {
    wk_op op;
    const wk_kernel *kernel; /* NULL: fallback */
    phase phase;
    int at; /* operand that is being read */
    bool is_reading;
    wk_ticket ticket;
    wk_op cpu_op;
    operand operands[WK_MAX_OPERANDS];
    wk_backend_device *cpu; /* NULL: not open yet */
    void *result;           /* of the device, for comparison */
    size_t result_size;
};

static const wk_backend *cpu_backend(void) { return wk_backend_get(WICK_BACKEND_CPU); }

/* --- Start --- */

/* The reference for verification, the fastest kernels for a fallback. Opened once. */
static wick_status open_cpu(wick_device *device, wk_shadow *s) {
    const bool is_fallback = s->kernel == NULL;
    wk_backend_device **const slot = is_fallback ? &device->cpu_fast : &device->cpu_reference;
    if (!*slot) {
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                       .n_threads = device->desc.n_threads,
                                       .slice_us = device->desc.slice_us,
                                       .isa = is_fallback ? device->desc.isa : WICK_ISA_REF};
        const wk_open_desc open = {.heap = &device->heap, .device = &desc};
        WK_TRY(cpu_backend()->open_start(&open, slot, device->err));
    }
    WK_TRY(cpu_backend()->open_poll(*slot, device->err));
    s->cpu = *slot;
    return WICK_OK;
}

static bool is_written_only(const wk_shadow *s, int i) {
    const wk_operand_info *const info = wk_op_operand(&s->op, i);
    return !(info->access & WK_READ) && wk_view_is_dense(&s->op.view[i]);
}

void wk_shadow_drop(wick_device *device) {
    wk_shadow *const s = device->shadow;
    if (!s) return;
    for (int i = 0; i < WK_MAX_OPERANDS; i++)
        if (s->operands[i].copy) cpu_backend()->free(s->cpu, s->operands[i].copy);
    if (s->is_reading) (void)device->backend->read_finish(device->handle, s->ticket, NULL, NULL);
    wk_free(&device->heap, s->result, s->result_size);
    wk_op_release(device, &s->op);
    wk_free(&device->heap, s, sizeof *s);
    device->shadow = NULL;
}

void wk_shadow_free(wick_device *device) {
    wk_shadow_drop(device);
    if (device->cpu_fast) cpu_backend()->close(device->cpu_fast);
    if (device->cpu_reference) cpu_backend()->close(device->cpu_reference);
}

wick_status wk_shadow_start(wick_device *device, const wk_op *op, const wk_kernel *kernel) {
    assert(!device->shadow); /* it works for the head of the queue, and for nothing else */
    wk_shadow *const s = wk_alloc_zeroed(&device->heap, sizeof *s);
    if (!s) return wk_fail_memory(device->err, sizeof *s, "a fallback");
    *s = (wk_shadow){.op = *op, .cpu_op = *op, .kernel = kernel};
    wk_op_retain(op);
    device->shadow = s;
    if (!kernel && device->backend != cpu_backend()) device->n_fallbacks++;
    return WICK_OK;
}

/* The CPU's memory for the operands. */
static wick_status make_copies(wick_device *device, wk_shadow *s) {
    for (int i = 0; i < s->op.n_dst + s->op.n_src; i++) {
        const wk_view *const view = &s->op.view[i];
        if (!view->buf) continue;
        operand *const o = &s->operands[i];
        uint64_t end;
        wk_view_range(view, &o->begin, &end);
        o->size = end - o->begin;
        WK_TRY(cpu_backend()->alloc(s->cpu, o->size, 0, &o->copy, device->err));
        s->cpu_op.view[i].buf = o->copy;
        s->cpu_op.view[i].offset = view->offset - o->begin;
    }
    return WICK_OK;
}

/* --- Steps --- */

/* Bytes of the device into dst: started, polled, finished. */
static wick_status read_bytes(wick_device *device, wk_shadow *s, int i, void *dst) {
    const operand *const o = &s->operands[i];
    assert(o->size > 0 && dst);
    if (!s->is_reading) {
        WK_TRY(device->backend->read_start(device->handle, s->op.view[i].buf, o->begin, o->size,
                                           &s->ticket, device->err));
        s->is_reading = true;
    }
    WK_TRY(wk_progress(device, s->ticket));
    s->is_reading = false;
    return device->backend->read_finish(device->handle, s->ticket, dst, device->err);
}

static wick_status read_operands(wick_device *device, wk_shadow *s) {
    const int n = s->op.n_dst + s->op.n_src;
    for (; s->at < n; s->at++) {
        operand *const o = &s->operands[s->at];
        if (!o->copy || o->size == 0 || is_written_only(s, s->at)) continue;
        WK_TRY(read_bytes(device, s, s->at, o->copy->data)); /* the CPU's memory is the host's */
    }
    s->at = 0;
    return WICK_OK;
}

static wick_status begin_compute(wick_device *device, wk_shadow *s) {
    WK_TRY(wk_fault_check(device, &s->op)); /* as the reads have shown */
    s->ticket = 0;
    if (wk_op_is_of_host(&s->op)) return wk_operation_compute(&s->cpu_op, device->err);
    const wk_kernel *const kernel = cpu_backend()->find_kernel(s->cpu, &s->cpu_op);
    if (!kernel) {
        char text[320];
        return wk_device_fail(device, WICK_ERR_UNSUPPORTED, "%s has no kernel on any backend",
                              wk_op_text(&s->op, text, sizeof text));
    }
    WK_TRY(cpu_backend()->encode(s->cpu, kernel, &s->cpu_op, device->err));
    return cpu_backend()->submit(s->cpu, &s->ticket, device->err);
}

static wick_status upload_results(wick_device *device, wk_shadow *s) {
    for (int i = 0; i < s->op.n_dst; i++) {
        const operand *const o = &s->operands[i];
        if (o->size == 0) continue;
        WK_TRY(wk_upload(device, s->op.view[i].buf, o->begin, o->copy->data, o->size));
    }
    wk_fault_heal_written(device, &s->op);
    return WICK_OK;
}

/* data: dense, of any type. */
static double load_element(wick_dtype dtype, const unsigned char *data, int64_t element) {
    if (!wk_dtype_is_block(dtype)) return wk_scalar_load(dtype, data, element);
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    const int n = info->block_elements;
    float values[WK_QK_K];
    wk_decoder(dtype)(data + element / n * info->block_bytes, values, n);
    return (double)values[element % n];
}

/* The largest element, and the first pair that differs by more than the bound. */
static wick_status compare(wick_device *device, const wk_shadow *s, int i) {
    const wk_view *const view = &s->cpu_op.view[i];
    const int64_t count = wk_view_count(view);
    const unsigned char *const want =
        (const unsigned char *)s->operands[i].copy->data + view->offset;
    const unsigned char *const got = (const unsigned char *)s->result + view->offset;
    double largest = 0;
    int64_t index[WICK_MAX_RANK] = {0};
    const wk_tolerance tolerance = wk_op_tolerance(&s->op, s->kernel->is_fast);
    for (int pass = 0; pass < 2; pass++) {
        memset(index, 0, sizeof index);
        for (int64_t n = 0; n < count; n++) {
            int64_t element = 0;
            for (int d = 0; d < view->rank; d++) element += index[d] * view->stride[d];
            const double w = load_element(view->dtype, want, element);
            const double g = load_element(view->dtype, got, element);
            if (pass == 0 && isfinite(w)) largest = fmax(largest, fabs(w));
            if (pass == 1 && !wk_tolerance_accepts(&tolerance, largest, w, g)) {
                char text[320];
                return wk_device_fail(device, WICK_ERR_MISMATCH,
                                      "kernel %s, %s: element %lld is %.9g, reference %.9g",
                                      s->kernel->name, wk_op_text(&s->op, text, sizeof text),
                                      (long long)n, g, w);
            }
            for (int d = view->rank - 1; d >= 0 && ++index[d] == view->extent[d]; d--) index[d] = 0;
        }
    }
    return WICK_OK;
}

static wick_status compare_results(wick_device *device, wk_shadow *s) {
    assert(s->kernel); /* a fallback has nothing to be compared with */
    for (; s->at < s->op.n_dst; s->at++) {
        const size_t size = (size_t)s->operands[s->at].size; /* of a copy in memory, too */
        if (size == 0) continue;
        if (!s->result) {
            s->result = wk_alloc(&device->heap, size);
            if (!s->result) return wk_fail_memory(device->err, size, "verification");
            s->result_size = size;
        }
        WK_TRY(read_bytes(device, s, s->at, s->result));
        WK_TRY(compare(device, s, s->at));
        wk_free(&device->heap, s->result, s->result_size);
        s->result = NULL;
    }
    return WICK_OK;
}

static wick_status check_faults(wick_device *device, const wk_shadow *s) {
    uint32_t slot;
    bool has_fault = false;
    while (cpu_backend()->take_fault(s->cpu, &slot)) has_fault = true;
    if (!has_fault) return WICK_OK;
    return wk_device_fail(device, WICK_ERR_INDEX, "%s: an index is out of range",
                          wk_op_name(&s->op));
}

wick_status wk_shadow_step(wick_device *device, bool *is_done) {
    wk_shadow *const s = device->shadow;
    assert(s && s->phase <= READ_RESULTS);
    *is_done = false;
    switch (s->phase) {
    case OPEN:
        WK_TRY(open_cpu(device, s));
        WK_TRY(make_copies(device, s));
        break;
    case READ_OPERANDS:
        WK_TRY(read_operands(device, s));
        WK_TRY(begin_compute(device, s));
        break;
    case COMPUTE:
        WK_TRY(cpu_backend()->poll(s->cpu, s->ticket, device->err));
        WK_TRY(check_faults(device, s));
        break;
    case RUN_ON_DEVICE:
        WK_TRY(wk_device_compiled(device)); /* an upload may submit what is recorded */
        if (s->kernel)
            WK_TRY(wk_run_kernel(device, s->kernel, &s->op));
        else
            WK_TRY(upload_results(device, s));
        break;
    case READ_RESULTS:
        WK_TRY(compare_results(device, s));
        device->n_verified++;
        break;
    }
    *is_done = s->phase == (s->kernel ? READ_RESULTS : RUN_ON_DEVICE);
    s->phase++;
    if (*is_done) wk_shadow_drop(device);
    return WICK_OK;
}
