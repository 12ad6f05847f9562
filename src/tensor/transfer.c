/* tensor/transfer.c: bytes into tensors and out of them. */
#include "core/shape.h"
#include "tensor/device.h"

#include <assert.h>

/* --- Writing --- */

static wick_status fail_size(const wick_tensor *tensor, size_t size) {
    const wick_shape shape = wick_tensor_shape(tensor);
    char text[160];
    return wk_device_fail(tensor->device, WICK_ERR_ARGUMENT,
                          "%zu bytes given for a tensor of %s %s, which holds %zu", size,
                          wick_dtype_name(wick_tensor_dtype(tensor)),
                          wk_shape_text(&shape, text, sizeof text), wick_tensor_bytes(tensor));
}

wick_status wick_write(wick_tensor *tensor, const void *data, size_t size) {
    if (!tensor) return WICK_ERR_ARGUMENT;
    wick_device *const device = tensor->device;
    if (!data && size > 0)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "there are no bytes to write");
    if (size != wick_tensor_bytes(tensor)) return fail_size(tensor, size);
    if (!wk_view_is_dense(&tensor->view))
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "only a dense tensor can be written");
    if (tensor->view.buf->place)
        return wk_device_fail(device, WICK_ERR_STATE,
                              "a tensor of a recording has no memory to write to");
    WK_TRY(wk_buffer_usable(device, tensor->view.buf));
    if (size == 0) return WICK_OK;
    /* Queued ops read the old contents: the backend must know them before it gets the new ones. */
    wick_status status = wk_run(device);
    if (status == WICK_OK) status = wk_device_compiled(device);
    if (status < 0) return status;
    wk_buffer *const buf = tensor->view.buf;
    buf->version++;
    wk_observers_show(device, NULL, NULL, tensor);
    return status == WICK_PENDING ? wk_queue_upload(device, buf, tensor->view.offset, data, size)
                                  : wk_upload(device, buf, tensor->view.offset, data, size);
}

wick_tensor *wick_tensor_from_data(wick_device *device, wick_dtype dtype, wick_shape shape,
                                   const void *data, size_t size) {
    wick_tensor *const tensor = wick_empty(device, dtype, shape);
    if (!tensor || wick_write(tensor, data, size) == WICK_OK) return tensor;
    wick_release(tensor);
    return NULL;
}

wick_tensor *wick_tensor_from_memory(wick_device *device, wick_dtype dtype, wick_shape shape,
                                     void *memory, size_t size, void (*deleter)(void *user),
                                     void *user) {
    wk_view view;
    uint64_t bytes;
    if (device && memory && size > 0 && wk_view_dense(dtype, &shape, &view, &bytes) &&
        bytes == size) {
        const wk_memory_owner owner = {.release = deleter, .user = user};
        view.buf = wk_buffer_wrap(device, memory, size, owner);
        if (view.buf) return wk_tensor_in_scope(device, &view);
    }
    /* Copied, or refused with the reason. */
    wick_tensor *const tensor = wick_tensor_from_data(device, dtype, shape, memory, size);
    if (deleter) deleter(user);
    return tensor;
}

/* --- Reading --- */

/* Readings are reused, so that reading a step's logits allocates nothing. */
static wick_reading *take_reading(wick_device *device) {
    wick_reading *reading = device->free_readings;
    if (reading)
        device->free_readings = reading->next;
    else
        reading = wk_alloc(&device->heap, sizeof *reading);
    if (!reading) {
        (void)wk_fail_memory(device->err, sizeof *reading, "a read");
        return NULL;
    }
    *reading = (wick_reading){.device = device, .status = WICK_PENDING};
    wk_buffer_enlist(device, &reading->bytes);
    return reading;
}

static void give_reading(wick_reading *reading) {
    wick_device *const device = reading->device;
    assert(reading != device->free_readings); /* finished twice */
    if (reading->is_waiting) wk_queue_forget_read(device, reading);
    wk_buffer_delist(device, &reading->bytes);
    wick_release(reading->source);
    reading->next = device->free_readings;
    device->free_readings = reading;
}

void wk_readings_free(wick_device *device) {
    while (device->free_readings) {
        wick_reading *const next = device->free_readings->next;
        wk_free(&device->heap, device->free_readings, sizeof *device->free_readings);
        device->free_readings = next;
    }
}

/* Its bytes are its contents, in their order. */
static bool is_readable(const wick_tensor *tensor) {
    return wk_view_is_dense(&tensor->view) && tensor->view.layout == WK_LAYOUT_RAW;
}

/* A dense tensor with the same contents, one reference for the caller. */
static wick_tensor *dense_source(wick_tensor *tensor) {
    if (is_readable(tensor)) return wick_retain(tensor);
    const wick_shape shape = wk_tensor_shape_of(tensor);
    wick_tensor *const dense = wk_tensor_new(tensor->device, tensor->view.dtype, &shape);
    if (!dense) return NULL;
    wk_call call;
    wk_call_begin(&call, WK_OP_COPY, NULL);
    wk_call_add(&call, dense, NULL);
    wk_call_add(&call, tensor, NULL);
    const wick_status status = wk_call_queue(tensor->device, &call);
    if (dense->scope) wick_retain(dense);
    if (status == WICK_OK) return dense;
    wick_release(dense);
    return NULL;
}

wick_status wick_read_start(wick_tensor *tensor, wick_reading **reading) {
    if (reading) *reading = NULL;
    if (!tensor) return WICK_ERR_ARGUMENT;
    wick_device *const device = tensor->device;
    if (!reading)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "wick_read_start: reading is NULL");
    wk_device_forget_told(device);
    if (device->err->status != WICK_OK) return device->err->status;
    if (tensor->view.buf->place)
        return wk_device_fail(device, WICK_ERR_STATE, "a tensor of a recording cannot be read");
    if (device->recording && !is_readable(tensor))
        return wk_device_fail(device, WICK_ERR_STATE,
                              "only a dense tensor can be read during a recording");
    WK_TRY(wk_buffer_usable(device, tensor->view.buf));
    wick_reading *const r = take_reading(device);
    if (!r) return device->err->status;
    r->source = dense_source(tensor);
    if (!r->source) {
        give_reading(r);
        return device->err->status;
    }
    const wick_status queued = wk_queue_read(device, r);
    if (queued != WICK_OK) {
        give_reading(r);
        return queued;
    }
    const wick_status run = wk_run(device);
    if (run < 0) r->status = run;
    *reading = r;
    return WICK_OK;
}

static wick_status poll_reading(wick_reading *r) {
    wick_device *const device = r->device;
    WK_TRY(wk_buffer_usable(device, r->source->view.buf));
    const wick_status run = r->is_waiting ? wk_run(device) : WICK_OK;
    if (run < 0 || r->is_waiting) return run;
    WK_TRY(wk_progress(device, r->ticket));
    wk_device_forget_told(device);
    const bool was_clear = device->err->status == WICK_OK;
    const wick_status status = wk_fault_tell(device, &r->bytes);
    if (status != WICK_OK && was_clear && device->err == &device->sticky) device->is_told = true;
    return status;
}

wick_status wick_read_poll(wick_reading *reading) {
    if (!reading) return WICK_ERR_ARGUMENT;
    if (reading->status == WICK_PENDING) reading->status = poll_reading(reading);
    return reading->status;
}

wick_status wick_read_finish(wick_reading *reading, void *data, size_t size) {
    if (!reading) return WICK_ERR_ARGUMENT;
    wick_device *const device = reading->device;
    const size_t bytes = wick_tensor_bytes(reading->source);
    wick_status status = reading->status;
    if (!data && bytes > 0)
        status = WICK_ERR_CANCELLED;
    else if (status == WICK_PENDING)
        status = wk_device_fail(device, WICK_ERR_STATE, "the read is still pending");
    else if (status == WICK_OK && size != bytes)
        status = wk_device_fail(device, WICK_ERR_ARGUMENT,
                                "room for %zu bytes given, the tensor holds %zu", size, bytes);
    /* Of an older generation: the read is gone with its handle. */
    const bool is_gone = reading->source->view.buf->generation != device->generation;
    if (is_gone && status == WICK_OK) status = wk_buffer_usable(device, reading->source->view.buf);
    if (reading->ticket != 0 && !is_gone) {
        const wick_status read = device->backend->read_finish(
            device->handle, reading->ticket, status == WICK_OK ? data : NULL, device->err);
        if (status == WICK_OK) status = read;
    }
    give_reading(reading);
    return status;
}

wick_status wick_read(wick_tensor *tensor, void *data, size_t size) {
    if (!data && wick_tensor_bytes(tensor) > 0)
        return wk_device_fail(tensor->device, WICK_ERR_ARGUMENT, "wick_read: data is NULL");
    wick_reading *reading;
    WK_TRY(wick_read_start(tensor, &reading));
    while (wick_read_poll(reading) == WICK_PENDING) wick_pause(reading->device);
    return wick_read_finish(reading, data, size);
}

wick_status wk_tensor_copy_out(wick_tensor *tensor, void **out, wick_error *err) {
    wick_device *const device = tensor->device;
    const size_t size = wick_tensor_bytes(tensor);
    *out = wk_alloc(&device->heap, size);
    if (!*out && size > 0) return wk_fail_memory(err, size, "a tensor to save");
    wick_error failure = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(device, &failure);
    const wick_status status = wk_pass_on(err, wick_read(tensor, *out, size), &failure);
    wk_device_give_back(device, before);
    if (status == WICK_OK) return WICK_OK;
    wk_free(&device->heap, *out, size);
    *out = NULL;
    return status;
}
