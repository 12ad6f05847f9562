/* tensor/run.c: the queue and its interpreter: every op finds its kernel here, is taken apart, or
 * goes to the CPU. It can stop at any op that has to wait and goes on at the next call. */
#include "tensor/device.h"

#include "tensor/shadow.h"

#include <assert.h>
#include <string.h>

/* --- The ring --- */

wick_status wk_queue_make(wick_device *device, wick_error *err) {
    device->queue.ring = wk_alloc(&device->heap, WK_QUEUE_CAPACITY * sizeof(wk_op));
    if (device->queue.ring) return WICK_OK;
    return wk_fail_memory(err, WK_QUEUE_CAPACITY * sizeof(wk_op), 0, "the queue");
}

static wk_op *queue_at(wk_queue *queue, uint32_t index) {
    return &queue->ring[(queue->head + index) % WK_QUEUE_CAPACITY];
}

static void queue_pop(wick_device *device) {
    wk_queue *const queue = &device->queue;
    wk_op_release(device, queue_at(queue, 0));
    queue->head = (queue->head + 1) % WK_QUEUE_CAPACITY;
    queue->count--;
}

static void queue_push_front(wk_queue *queue, const wk_op *op) {
    assert(queue->count < WK_QUEUE_CAPACITY);
    wk_op_retain(op);
    queue->head = (queue->head + WK_QUEUE_CAPACITY - 1) % WK_QUEUE_CAPACITY;
    queue->count++;
    *queue_at(queue, 0) = *op;
}

void wk_queue_drop(wick_device *device) {
    while (device->queue.count > 0) queue_pop(device);
    device->queue.failure = WICK_OK;
}

void wk_queue_free(wick_device *device) {
    if (!device->queue.ring) return;
    wk_queue_drop(device);
    wk_free(&device->heap, device->queue.ring, WK_QUEUE_CAPACITY * sizeof(wk_op));
}

wick_status wk_queue_push(wick_device *device, const wk_op *op) {
    wk_queue *const queue = &device->queue;
    if (queue->count >= WK_QUEUE_DRAIN) {
        WK_TRY(wk_run_to_end(device));
        /* One slice of work, so that a program that never reads does not pile commands up. */
        const wick_status polled =
            device->backend->poll(device->handle, device->submitted, &device->error);
        if (polled < 0) return polled;
    }
    wk_op_retain(op);
    *queue_at(queue, queue->count++) = *op;
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
    p->ops[p->n_ops++] = *op;
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
    const wick_status status = info->decompose(queue_at(&device->queue, 0), &to);
    queue_pop(device);
    device->n_decomposed++;
    if (status == WICK_OK)
        for (int i = p.n_ops - 1; i >= 0; i--) queue_push_front(&device->queue, &p.ops[i]);
    for (int i = 0; i < p.n_temps; i++) wk_buffer_release(device, p.temps[i]);
    return status;
}

/* --- The interpreter --- */

/* Runs it on the CPU, and on the device with the kernel if there is one. */
static wick_status shadow_head(wick_device *device, const wk_kernel *kernel) {
    const wick_status status = wk_shadow_start(device, queue_at(&device->queue, 0), kernel);
    if (status != WICK_OK) queue_pop(device);
    return status;
}

/* Whether the CPU may do again what a kernel has begun: it wrote over nothing that is read. */
static bool may_begin_again(const wick_device *device, const wk_op *op) {
    if (device->desc.strict || op->code == WK_OP_CUSTOM) return false;
    for (int i = 0; i < op->n_dst; i++)
        for (int k = 0; k < op->n_src; k++)
            if (wk_view_overlaps(wk_dst(op, i), wk_src(op, k))) return false;
    return true;
}

static wick_status encode_head(wick_device *device, const wk_kernel *kernel) {
    const wk_op *const op = queue_at(&device->queue, 0);
    wick_error failure = {.status = WICK_OK};
    const wick_status status = device->backend->encode(device->handle, kernel, op, &failure);
    if (status == WICK_PENDING) return WICK_PENDING;
    /* The operands are too large to be bound, and the op cannot be cut into pieces. */
    if (status == WICK_ERR_UNSUPPORTED && may_begin_again(device, op))
        return shadow_head(device, NULL);
    if (status < 0 && device->error.status == WICK_OK) device->error = failure;
    queue_pop(device);
    return status;
}

static wick_status run_head(wick_device *device) {
    const wk_op *const op = queue_at(&device->queue, 0);
    if (device->shadow) {
        const wick_status status = wk_shadow_step(device);
        if (status != WICK_PENDING) queue_pop(device);
        return status;
    }
    const wk_op_info *const info = wk_op_get_info(op->code);
    const wk_kernel *const kernel = device->backend->find_kernel(device->handle, op);
    if (!kernel && info->decompose) return take_apart(device, info);
    if (!kernel && device->desc.strict) {
        char text[320];
        (void)wk_device_fail(device, WICK_ERR_UNSUPPORTED,
                             "%s has no kernel on backend %s (strict)",
                             wk_op_text(op, text, sizeof text), device->backend->name);
        queue_pop(device);
        return WICK_ERR_UNSUPPORTED;
    }
    /* Nothing but the GPU can run a kernel of the user's. */
    const bool is_verified = device->desc.verify && op->code != WK_OP_CUSTOM;
    return !kernel || is_verified ? shadow_head(device, kernel) : encode_head(device, kernel);
}

wick_status wk_run(wick_device *device) {
    wk_queue *const queue = &device->queue;
    if (wk_device_is_lost(device)) return wk_device_abandon(device);
    if (queue->count == 0) return WICK_OK;
    while (queue->count > 0) {
        const wick_status status = run_head(device);
        if (status == WICK_PENDING) return WICK_PENDING;
        /* The first failure is the one that is told; the ops behind it are not left half queued. */
        if (status < 0 && queue->failure == WICK_OK)
            queue->failure = wk_fail(&device->error, status, "%s", wick_status_text(status));
    }
    const wick_status failure = queue->failure;
    queue->failure = WICK_OK;
    const wick_status status =
        device->backend->submit(device->handle, &device->submitted, &device->error);
    return failure != WICK_OK ? failure : status;
}

wick_status wk_run_to_end(wick_device *device) {
    wick_status status;
    while ((status = wk_run(device)) == WICK_PENDING) wick_pause(device);
    return status;
}

wick_status wick_flush(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    WK_TRY(wk_run(device));
    return wk_device_compiled(device);
}

wick_status wick_poll(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    WK_TRY(wk_run(device));
    return device->backend->poll(device->handle, device->submitted, &device->error);
}

void wick_pause(wick_device *device) {
    if (device && device->handle && device->backend->pause) device->backend->pause(device->handle);
}

/* Waits also where an op could not be queued: afterwards nothing reads or writes any memory. */
wick_status wick_synchronize(wick_device *device) {
    if (!device) return WICK_ERR_ARGUMENT;
    const wick_status run = wk_run_to_end(device);
    const wick_status wait =
        device->backend->wait(device->handle, device->submitted, &device->error);
    return run != WICK_OK ? run : wait;
}
