/* tensor/run.c: the interpreter of the queue: every op finds its kernel here, is taken apart, or
 * goes to the CPU. It stops at any record that has to wait, and goes on there at the next call.
 *
 * An op that fails does not fail the call that happens to run it: what it writes is spoiled
 * (fault.c), and whoever reads that hears of it. */
#include "tensor/record.h"

#include "sys/clock.h"
#include "tensor/custom.h"
#include "tensor/shadow.h"

#include <assert.h>

static wick_status submit(wick_device *device) {
    wick_error failure = {.status = WICK_OK};
    const wick_status status =
        device->backend->submit(device->handle, &device->submitted, &failure);
    device->has_unsubmitted = false;
    wk_trace_submitted(device);
    if (status == WICK_ERR_DEVICE_LOST) return wk_pass_on(device->err, status, &failure);
    if (status < 0) (void)wk_fault_spoil_unfinished(device, &failure);
    return WICK_OK;
}

/* --- Decomposition --- */

enum { MAX_PARTS = 32 };

typedef struct parts {
    wick_device *device;
    int n_ops, n_temps;
    wk_op ops[MAX_PARTS];
    wk_buffer *temps[MAX_PARTS];
} parts;

static wick_status emit_part(void *user, const wk_op *op) {
    parts *const p = user;
    assert(p->n_ops < MAX_PARTS);
    wk_op_copy(&p->ops[p->n_ops++], op);
    return WICK_OK;
}

static wick_status temp_part(void *user, wick_dtype dtype, int rank, const int64_t *extent,
                             wk_view *out) {
    parts *const p = user;
    assert(p->n_temps < MAX_PARTS);
    const wick_shape shape = wick_shape_of(rank, extent);
    uint64_t bytes;
    const bool exists = wk_view_dense(dtype, &shape, out, &bytes);
    assert(exists); /* the op that is taken apart has been checked */
    (void)exists;
    const uint64_t row = wk_shape_row_bytes(dtype, &shape);
    WK_TRY(wk_buffer_new(p->device, bytes, row, &out->buf));
    p->temps[p->n_temps++] = out->buf;
    return WICK_OK;
}

/* Replaces the head of the queue by its parts. */
static wick_status take_apart(wick_device *device, const wk_op_info *info) {
    parts p = {.device = device};
    const wk_decomposition to = {.user = &p, .emit = emit_part, .temp = temp_part};
    wick_status status = info->decompose(&wk_queue_head(device)->op, &to);
    device->n_decomposed++;
    if (status == WICK_OK) status = wk_queue_reserve(device, MAX_PARTS);
    if (status == WICK_OK) {
        wk_op whole;
        wk_op_copy(&whole, &wk_queue_head(device)->op);
        wk_op_retain(&whole); /* its record may have the last references to its operands */
        wk_queue_pop(device);
        for (int i = p.n_ops - 1; i >= 0; i--) {
            p.ops[i].name = whole.name;
            wk_queue_push_front(device, &p.ops[i]);
        }
        wk_op_release(device, &whole);
    }
    for (int i = 0; i < p.n_temps; i++) wk_buffer_release(device, p.temps[i]);
    return status;
}

/* --- An op --- */

/* Whether the CPU may do again what a kernel has begun: it wrote over nothing that is read. */
static bool may_begin_again(const wick_device *device, const wk_op *op) {
    if (device->desc.strict || op->code == WK_OP_CUSTOM) return false;
    for (int i = 0; i < op->n_dst; i++)
        for (int k = 0; k < op->n_src; k++)
            if (wk_view_overlaps(wk_dst(op, i), wk_src(op, k))) return false;
    return true;
}

/* A fault slot belongs to one op, or one plan, at a time: WICK_OK when the one before has run. */
static wick_status claim_slot(wick_device *device, uint8_t slot, const wk_plan *plan) {
    wk_ticket ticket;
    if (!wk_trace_is_claimed(device, slot, plan, &ticket)) return WICK_OK;
    if (ticket == 0) {
        WK_TRY(wk_device_compiled(device));
        WK_TRY(submit(device));
        ticket = device->submitted;
    }
    return wk_progress(device, ticket);
}

wick_status wk_run_kernel(wick_device *device, const wk_kernel *kernel, wk_op *op) {
    WK_TRY(wk_trace_reserve(device));
    op->fault_slot = wk_trace_op_slot(device);
    if (wk_op_may_fault(op->code)) WK_TRY(claim_slot(device, op->fault_slot, NULL));
    WK_TRY(wk_fault_check(device, op)); /* by now faults of what ran before may have come */
    WK_TRY(device->backend->encode(device->handle, kernel, op, device->err));
    wk_trace_op(device, op);
    wk_fault_heal_written(device, op);
    return WICK_OK;
}

static wick_status encode_head(wick_device *device, const wk_kernel *kernel) {
    wk_op *const op = &wk_queue_head(device)->op;
    const wick_status status = wk_run_kernel(device, kernel, op);
    /* The operands are too large to be bound, and the op cannot be cut into pieces. */
    if (status == WICK_ERR_UNSUPPORTED && op->code == WK_OP_CHAIN) {
        *device->err = (wick_error){.status = WICK_OK};
        return take_apart(device, wk_op_get_info(op->code));
    }
    if (status == WICK_ERR_UNSUPPORTED && may_begin_again(device, op)) {
        *device->err = (wick_error){.status = WICK_OK};
        return wk_shadow_start(device, op, NULL);
    }
    if (status == WICK_OK) wk_queue_pop(device);
    return status;
}

bool wk_device_computes(const wick_device *device, const wk_op *op) {
    return device->backend->find_kernel(device->handle, op) != NULL;
}

static bool reads_spoiled(const wick_device *device, const wk_op *op) {
    for (int i = 0; device->n_spoiled > 0 && i < op->n_src; i++)
        if (wk_src(op, i)->buf->fault) return true;
    return false;
}

static wick_status run_op(wick_device *device) {
    const wk_op *const op = &wk_queue_head(device)->op;
    if (device->shadow) {
        bool is_done;
        WK_TRY(wk_shadow_step(device, &is_done));
        if (is_done) wk_queue_pop(device);
        return WICK_OK;
    }
    const wk_op_info *const info = wk_op_get_info(op->code);
    /* A fault is that of the steps that depend on it, and of no other. */
    const bool is_apart = op->code == WK_OP_CHAIN && op->n_dst > 1 && reads_spoiled(device, op);
    if (!is_apart) WK_TRY(wk_fault_check(device, op));
    const wk_kernel *const kernel =
        is_apart ? NULL : device->backend->find_kernel(device->handle, op);
    if (!kernel && info->decompose) return take_apart(device, info);
    const bool is_at_home =
        wk_op_is_of_host(op) && device->backend == wk_backend_get(WICK_BACKEND_CPU);
    if (!kernel && device->desc.strict && !is_at_home) {
        char text[320];
        return wk_device_fail(device, WICK_ERR_UNSUPPORTED,
                              "%s has no kernel on backend %s (strict)",
                              wk_op_text(op, text, sizeof text), device->backend->name);
    }
    /* Nothing but the GPU can run a kernel of the user's. */
    const bool is_verified = device->desc.verify && op->code != WK_OP_CUSTOM;
    return !kernel || is_verified ? wk_shadow_start(device, op, kernel)
                                  : encode_head(device, kernel);
}

/* --- The other records --- */

wick_status wk_upload(wick_device *device, wk_buffer *buf, uint64_t offset, const void *bytes,
                      uint64_t size) {
    assert(offset <= buf->size && size <= buf->size - offset);
    const bool is_whole = size == buf->size;
    WK_TRY(wk_trace_reserve(device));
    WK_TRY(device->backend->upload(device->handle, buf, offset, bytes, size, device->err));
    device->has_unsubmitted = true;
    wk_trace_upload(device, buf, is_whole);
    if (is_whole) wk_fault_heal(device, buf);
    return WICK_OK;
}

static wick_status run_upload(wick_device *device) {
    const wk_record *const r = wk_queue_head(device);
    WK_TRY(wk_device_compiled(device)); /* an upload may submit what is recorded */
    WK_TRY(wk_upload(device, r->upload.buf, r->upload.offset, r->upload.bytes, r->upload.size));
    wk_queue_pop(device);
    return WICK_OK;
}

static wick_status run_read(wick_device *device) {
    wick_reading *const r = wk_queue_head(device)->read;
    const wk_view *const from = r ? &r->source->view : NULL;
    if (r && from->buf->fault) {
        wk_fault_pass(device, from->buf, &r->bytes);
    } else if (r && wick_tensor_bytes(r->source) > 0) {
        WK_TRY(wk_trace_reserve(device));
        WK_TRY(device->backend->read_start(device->handle, from->buf, from->offset,
                                           wick_tensor_bytes(r->source), &r->ticket, device->err));
        wk_trace_read(device, from->buf, &r->bytes);
    }
    wk_queue_pop(device);
    return WICK_OK;
}

static wick_status replay(wick_device *device, const wk_plan *plan) {
    assert(plan->generation == device->generation); /* else its replay is of a lost handle */
    WK_TRY(claim_slot(device, plan->fault_slot, plan));
    for (size_t i = 0; i < plan->n_ops; i++) WK_TRY(wk_fault_check(device, &plan->ops[i]));
    WK_TRY(wk_trace_reserve(device));
    WK_TRY(device->backend->plan_replay(device->handle, plan->replay, device->err));
    wk_trace_plan(device, plan);
    wk_queue_pop(device);
    return WICK_OK;
}

void wk_plan_heal_slots(wick_device *device, const wk_plan *plan) {
    for (size_t i = 0; device->n_spoiled > 0 && i < plan->n_ops; i++)
        for (int d = 0; d < plan->ops[i].n_dst; d++)
            if (plan->ops[i].view[d].buf->is_slot) wk_fault_heal(device, plan->ops[i].view[d].buf);
}

static wick_status run_plan(wick_device *device) {
    const wick_device_desc *const desc = &device->desc;
    wk_record *r = wk_queue_head(device);
    const wk_plan *const plan = r->run.plan;
    assert(!plan || r->run.next <= plan->n_ops);
    if (!plan || r->run.next == plan->n_ops) {
        wk_queue_pop(device);
        return WICK_OK;
    }
    if (r->run.next == 0) {
        wk_plan_heal_slots(device, plan);
        if (plan->replay && !desc->verify && !desc->profile) return replay(device, plan);
    }
    WK_TRY(wk_queue_reserve(device, 1));
    r = wk_queue_head(device);
    wk_queue_push_front(device, &plan->ops[r->run.next++]);
    return WICK_OK;
}

/* --- The interpreter --- */

static wick_status run_look(wick_device *device) {
    wk_record *const r = wk_queue_head(device);
    if (r->look.ticket == 0) {
        WK_TRY(wk_device_compiled(device));
        WK_TRY(submit(device));
        r->look.ticket = device->submitted;
    }
    WK_TRY(wk_progress(device, r->look.ticket));
    WK_TRY(wk_fault_check(device, &r->look.op));
    if (r->look.fn) r->look.fn(r->look.user, &r->look.op);
    wk_queue_pop(device);
    return WICK_OK;
}

static wick_status run_head(wick_device *device) {
    switch (wk_queue_head(device)->kind) {
    case WK_RECORD_NONE: wk_queue_pop(device); return WICK_OK;
    case WK_RECORD_OP: return run_op(device);
    case WK_RECORD_UPLOAD: return run_upload(device);
    case WK_RECORD_READ: return run_read(device);
    case WK_RECORD_PLAN: return run_plan(device);
    case WK_RECORD_LOOK: return run_look(device);
    }
    return WICK_ERR_INTERNAL;
}

static void fail_head(wick_device *device, const wick_error *reason) {
    const wk_record *const r = wk_queue_head(device);
    wk_shadow_drop(device);
    /* What was given up does nothing, so it cannot fail. */
    assert(r->kind != WK_RECORD_READ || r->read);
    assert(r->kind != WK_RECORD_PLAN || r->run.plan);
    if (r->kind == WK_RECORD_OP) wk_fault_spoil(device, &r->op, reason);
    if (r->kind == WK_RECORD_UPLOAD) wk_fault_spoil_buffer(device, r->upload.buf, reason);
    if (r->kind == WK_RECORD_READ) wk_fault_spoil_buffer(device, &r->read->bytes, reason);
    if (r->kind == WK_RECORD_PLAN)
        for (size_t i = 0; i < r->run.plan->n_ops; i++)
            wk_fault_spoil(device, &r->run.plan->ops[i], reason);
    wk_device_log(device, WICK_LOG_DEBUG, "%s", reason->message);
    wk_queue_pop(device);
}

/* WICK_OK: the head has got on, or is done, well or not. failure: clear, and so it is again. */
static wick_status step(wick_device *device, wick_error *failure) {
    wick_error *const before = wk_device_borrow(device, failure);
    const wick_status status = run_head(device);
    wk_device_give_back(device, before);
    if (status >= 0) return status;
    if (status == WICK_ERR_DEVICE_LOST || wk_device_is_lost(device)) {
        (void)wk_pass_on(device->err, status, failure);
        return wk_device_abandon(device);
    }
    if (failure->status == WICK_OK) (void)wk_fail(failure, status, "%s", wick_status_text(status));
    fail_head(device, failure);
    *failure = (wick_error){.status = WICK_OK};
    return WICK_OK;
}

wick_status wk_run(wick_device *device) {
    if (wk_device_is_lost(device)) return wk_device_abandon(device);
    if (device->queue.count == 0 && !device->has_unsubmitted) return WICK_OK;
    WK_OF_TENSORS(wk_fuse(device));
    const uint64_t begun = wk_clock_ns();
    wick_error failure = {.status = WICK_OK};
    while (device->queue.count > 0) {
        WK_TRY(step(device, &failure));
        /* Fallbacks and verification compute here, and not while the device is polled. */
        if (device->shadow && wk_clock_ns() - begun >= wk_device_slice_ns(device))
            return WICK_PENDING;
    }
    return submit(device) == WICK_OK ? WICK_OK : wk_device_abandon(device);
}

wick_status wk_progress(wick_device *device, wk_ticket ticket) {
    wick_error failure = {.status = WICK_OK};
    const wick_status status = device->backend->poll(device->handle, ticket, &failure);
    if (status == WICK_ERR_DEVICE_LOST) return wk_fail(device->err, status, "%s", failure.message);
    wk_fault_collect(device);
    if (status == WICK_OK) wk_trace_settle(device, ticket);
    if (status >= 0) return status;
    if (wk_fault_spoil_unfinished(device, &failure)) return WICK_PENDING;
    return wk_fail(device->err, status, "%s", failure.message);
}

wick_status wick_flush(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    WK_TRY(wk_run(device));
    return wk_device_compiled(device);
}

wick_status wick_poll(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    WK_TRY(wk_run(device));
    return wk_progress(device, device->submitted);
}

void wick_pause(wick_device *device) {
    if (device && device->handle && device->backend->pause) device->backend->pause(device->handle);
}

/* Waits also where the device has failed: afterwards nothing reads or writes any memory. */
wick_status wick_synchronize(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    wick_status run, progress;
    while ((run = wk_run(device)) == WICK_PENDING) wick_pause(device);
    while ((progress = wk_progress(device, device->submitted)) == WICK_PENDING) wick_pause(device);
    return run != WICK_OK ? run : progress;
}
