/* tensor/buffer.c: references to buffers, and to what else an op names. */
#include "tensor/custom.h"
#include "tensor/device.h"

#include <assert.h>

void wk_buffer_retain(wk_buffer *buf) {
    if (buf) buf->refs++;
}

void wk_buffer_enlist(wick_device *device, wk_buffer *buf) {
    assert(!buf->older && !buf->newer && !buf->fault);
    buf->id = ++device->n_buffers;
    buf->older = device->buffers;
    if (buf->older) buf->older->newer = buf;
    device->buffers = buf;
}

void wk_buffer_delist(wick_device *device, wk_buffer *buf) {
    assert(buf->newer || device->buffers == buf);
    wk_fault_heal(device, buf);
    if (buf->older) buf->older->newer = buf->newer;
    if (buf->newer)
        buf->newer->older = buf->older;
    else
        device->buffers = buf->older;
}

void wk_buffer_release(wick_device *device, wk_buffer *buf) {
    if (!buf) return;
    assert(buf->refs > 0);
    buf->refs--;
    if (buf->place) return; /* it belongs to its plan */
    if (!buf->is_left && buf->refs == buf->n_records) {
        buf->is_left = true;
        if (!buf->is_foreign) device->used_bytes -= buf->size;
    }
    if (buf->refs > 0) return;
    const uint32_t generation = buf->generation;
    wk_buffer_delist(device, buf);
    device->backend->free(wk_handle_of(device, generation), buf);
    wk_handle_let_go(device, generation);
}

static void adopt(wick_device *device, wk_buffer *buf) {
    buf->refs = 1;
    buf->generation = device->generation;
    wk_buffer_enlist(device, buf);
    device->n_held++;
}

wick_status wk_buffer_new(wick_device *device, uint64_t size, uint64_t granule, wk_buffer **out) {
    WK_TRY(wk_device_usable(device));
    WK_TRY(device->backend->alloc(device->handle, size, granule, out, device->err));
    adopt(device, *out);
    device->used_bytes += (*out)->size;
    device->made_bytes += (*out)->size;
    return WICK_OK;
}

wk_buffer *wk_buffer_wrap(wick_device *device, void *memory, uint64_t size, wk_memory_owner owner) {
    if (!device->backend->wrap) return NULL;
    wk_buffer *const buf = device->backend->wrap(device->handle, memory, size, owner);
    if (!buf) return NULL;
    adopt(device, buf);
    buf->is_foreign = true;
    return buf;
}

void wk_op_retain(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) wk_buffer_retain(op->view[i].buf);
    if (op->code == WK_OP_CUSTOM) op->p.custom->refs++;
}

void wk_op_release(wick_device *device, const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) wk_buffer_release(device, op->view[i].buf);
    if (op->code == WK_OP_CUSTOM) wk_custom_run_release(op->p.custom);
}
