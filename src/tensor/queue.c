/* tensor/queue.c: a ring buffer of records, which grows when it is full. */
#include "tensor/device.h"

#include <assert.h>
#include <string.h>

enum {
    FIRST_RECORDS = 64,
    MANY_RECORDS = 256,
    LOOK_FROM = 16,       /* records; 4 times as many where a chain would be cut */
    LOOK_BYTES = 8 << 20, /* that were allocated */
};

wick_status wk_queue_reserve(wick_device *device, uint32_t n) {
    wk_queue *const queue = &device->queue;
    if (n <= queue->capacity - queue->count) return WICK_OK;
    assert(n <= UINT32_MAX / 4 && queue->capacity <= UINT32_MAX / 4);
    uint32_t capacity = queue->capacity > 0 ? 2 * queue->capacity : FIRST_RECORDS;
    while (capacity - queue->count < n) capacity *= 2;
    wk_record *const ring = wk_alloc_array(&device->heap, capacity, sizeof *ring);
    if (!ring) return wk_fail_memory(device->err, capacity * sizeof *ring, "the queue");
    for (uint32_t i = 0; i < queue->count; i++) ring[i] = *wk_queue_at(device, i);
    wk_free(&device->heap, queue->ring, queue->capacity * sizeof *ring);
    queue->ring = ring;
    queue->head = 0;
    queue->capacity = capacity;
    return WICK_OK;
}

static void hold(const wk_op *op, wk_op *in_record) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf) op->view[i].buf->n_records++;
    wk_op_retain(op);
    wk_op_copy(in_record, op);
}

static void let_go(wick_device *device, const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf) op->view[i].buf->n_records--;
    wk_op_release(device, op);
}

static void release(wick_device *device, wk_record *record) {
    if (record->kind == WK_RECORD_OP) let_go(device, &record->op);
    if (record->kind == WK_RECORD_LOOK) let_go(device, &record->look.op);
    if (record->kind == WK_RECORD_READ && record->read) record->read->is_waiting = false;
    if (record->kind != WK_RECORD_UPLOAD) return;
    wk_buffer_release(device, record->upload.buf);
    wk_free(&device->heap, record->upload.bytes, (size_t)record->upload.size);
}

void wk_queue_cancel(wick_device *device, wk_record *record) {
    release(device, record);
    record->kind = WK_RECORD_NONE;
}

void wk_queue_replace(wick_device *device, wk_record *record, const wk_op *op) {
    assert(record->kind == WK_RECORD_OP);
    wk_op before;
    wk_op_copy(&before, &record->op);
    hold(op, &record->op); /* first: it may share buffers with the op that goes */
    let_go(device, &before);
}

void wk_queue_pop(wick_device *device) {
    wk_queue *const queue = &device->queue;
    assert(!device->shadow); /* it works for the head */
    release(device, wk_queue_head(device));
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->count--;
    if (queue->n_final > 0) queue->n_final--;
}

void wk_queue_drop(wick_device *device) {
    while (device->queue.count > 0) wk_queue_pop(device);
}

void wk_queue_free(wick_device *device) {
    wk_queue_drop(device);
    wk_free(&device->heap, device->queue.ring, device->queue.capacity * sizeof *device->queue.ring);
    device->queue = (wk_queue){.ring = NULL};
}

void wk_queue_push_front(wick_device *device, const wk_op *op) {
    wk_queue *const queue = &device->queue;
    assert(queue->count < queue->capacity);
    assert(!device->shadow);
    queue->head = (queue->head - 1) & (queue->capacity - 1);
    queue->count++;
    queue->n_final++;
    wk_record *const record = wk_queue_head(device);
    record->kind = WK_RECORD_OP;
    hold(op, &record->op);
}

/* A record of this kind after the others, whose fields the caller sets; NULL: no memory. */
static wk_record *add(wick_device *device, wk_record_kind kind) {
    if (wk_queue_reserve(device, 1) != WICK_OK) return NULL;
    device->queue.count++;
    wk_record *const record = wk_queue_at(device, device->queue.count - 1);
    record->kind = kind;
    return record;
}

/* --- Pace ---
 *
 * A program that never reads shall not pile up what could be computed by now, nor the temporaries
 * that it has released and ops still need: they may take a quarter of the memory in use.
 *
 *   t = f(x)      the record of t has one reference to its buffer, the program another
 *   release(t)    now the record alone has one, until it is run */

static bool keeps_much(wick_device *device) {
    const uint64_t least = UINT64_C(32) << 20;
    const uint64_t most = device->used_bytes / 4 > least ? device->used_bytes / 4 : least;
    wk_backend_stats stats;
    device->backend->stats(device->handle, &stats);
    device->made_bytes = 0;
    return stats.buffer_bytes > device->used_bytes &&
           stats.buffer_bytes - device->used_bytes > most;
}

/* Runs what waits where it is too much, and computes for a slice; and so at every call from then on
 * while the backend has released buffers that it needs. */
static wick_status keep_pace(wick_device *device, const wk_op *next) {
    wk_queue *const queue = &device->queue;
    const bool may_go_on = wk_chain_takes(next->code) || next->code == WK_OP_REDUCE; /* a chain */
    const bool is_look =
        queue->count >= (may_go_on ? 4 * LOOK_FROM : LOOK_FROM) && device->made_bytes >= LOOK_BYTES;
    if (queue->count >= MANY_RECORDS || (is_look && keeps_much(device))) {
        const wick_status run = wk_run(device);
        if (run < 0) return run;
    } else if (!queue->is_behind) {
        return WICK_OK;
    }
    const wick_status polled = wk_progress(device, device->submitted);
    const bool computes = !device->backend->pause; /* when it is polled, and then alone */
    queue->is_behind = polled == WICK_PENDING && computes && keeps_much(device);
    return polled < 0 ? polled : WICK_OK;
}

wick_status wk_queue_push(wick_device *device, const wk_op *op) {
    WK_TRY(keep_pace(device, op));
    wk_record *const record = add(device, WK_RECORD_OP);
    if (!record) return WICK_ERR_OUT_OF_MEMORY;
    hold(op, &record->op);
    return WICK_OK;
}

wick_status wk_queue_run(wick_device *device, wk_plan *plan) {
    assert(plan && device->recording != plan);
    wk_record *const record = add(device, WK_RECORD_PLAN);
    if (!record) return WICK_ERR_OUT_OF_MEMORY;
    record->run.plan = plan;
    record->run.next = 0;
    return WICK_OK;
}

void wk_queue_forget(wick_device *device, const wk_plan *plan) {
    for (uint32_t i = 0; i < device->queue.count; i++) {
        wk_record *const record = wk_queue_at(device, i);
        if (record->kind == WK_RECORD_PLAN && record->run.plan == plan) record->run.plan = NULL;
    }
}

wick_status wk_queue_read(wick_device *device, wick_reading *reading) {
    assert(!reading->is_waiting && reading->ticket == 0);
    wk_record *const record = add(device, WK_RECORD_READ);
    if (!record) return WICK_ERR_OUT_OF_MEMORY;
    record->read = reading;
    reading->is_waiting = true;
    return WICK_OK;
}

void wk_queue_forget_read(wick_device *device, const wick_reading *reading) {
    for (uint32_t i = 0; i < device->queue.count; i++) {
        wk_record *const record = wk_queue_at(device, i);
        if (record->kind == WK_RECORD_READ && record->read == reading) record->read = NULL;
    }
}

void wk_queue_forget_looks(wick_device *device, const wk_observer *observer) {
    for (uint32_t i = 0; i < device->queue.count; i++) {
        wk_record *const record = wk_queue_at(device, i);
        if (record->kind == WK_RECORD_LOOK && record->look.observer == observer)
            record->look.fn = NULL;
    }
}

wick_status wk_queue_upload(wick_device *device, wk_buffer *buf, uint64_t offset, const void *bytes,
                            uint64_t size) {
    assert(size > 0 && offset <= buf->size && size <= buf->size - offset);
    WK_TRY(wk_queue_reserve(device, 1));
    void *const copy = size <= SIZE_MAX ? wk_alloc(&device->heap, (size_t)size) : NULL;
    if (!copy) return wk_fail_memory(device->err, size, "bytes to upload");
    memcpy(copy, bytes, (size_t)size);
    wk_buffer_retain(buf);
    wk_record *const record = add(device, WK_RECORD_UPLOAD); /* there is room */
    record->upload.buf = buf;
    record->upload.offset = offset;
    record->upload.size = size;
    record->upload.bytes = copy;
    return WICK_OK;
}

wick_status wk_queue_look(wick_device *device, const wk_op *op, const wk_observer *observer,
                          wk_look_fn fn, void *user) {
    assert(fn && observer);
    wk_record *const record = add(device, WK_RECORD_LOOK);
    if (!record) return WICK_ERR_OUT_OF_MEMORY;
    hold(op, &record->look.op);
    record->look.observer = observer;
    record->look.fn = fn;
    record->look.user = user;
    record->look.ticket = 0;
    return WICK_OK;
}
