/* backend/cpu/cpu_memory.c: buffers. What commands still name when it is freed waits for them. */
#include "backend/cpu/cpu_state.h"

#include "sys/clock.h"

#include <assert.h>

/* Of the widest scalar; wrapped memory must have it. */
enum { SCALAR_ALIGNMENT = 8 };

wick_status wk_cpu_no_memory(wick_error *err, uint64_t size, const char *what) {
    return wk_fail_memory(err, size, wk_memory_available(), what);
}

static wk_cpu_buffer *make_buffer(wk_backend_device *dev, void *memory, uint64_t size) {
    wk_cpu_buffer *buf = wk_alloc_zeroed(dev->heap, sizeof *buf);
    if (!buf) return NULL;
    buf->base.size = size;
    buf->base.data = memory;
    return buf;
}

/* An empty buffer has an address as well, so that arithmetic on it is defined. */
static size_t room_of(uint64_t size) { return size > 0 ? (size_t)size : 1; }

wick_status wk_cpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule, wk_buffer **out,
                         wick_error *err) {
    (void)granule; /* one piece */
    *out = NULL;
    void *memory = size <= SIZE_MAX ? wk_alloc_aligned(dev->heap, room_of(size)) : NULL;
    if (!memory) return wk_cpu_no_memory(err, size, "a buffer");
    wk_cpu_buffer *buf = make_buffer(dev, memory, size);
    if (!buf) {
        wk_free_aligned(dev->heap, memory, room_of(size));
        return wk_cpu_no_memory(err, sizeof *buf, "a buffer");
    }
    dev->stats.buffer_bytes += size;
    if (dev->stats.buffer_bytes > dev->stats.buffer_peak_bytes) {
        dev->stats.buffer_peak_bytes = dev->stats.buffer_bytes;
    }
    *out = &buf->base;
    return WICK_OK;
}

/* Kernels read elements by their C type: memory that no scalar may begin at is not used. */
wk_buffer *wk_cpu_wrap(wk_backend_device *dev, void *memory, uint64_t size, wk_memory_owner owner) {
    if ((uintptr_t)memory % SCALAR_ALIGNMENT != 0) return NULL;
    wk_cpu_buffer *buf = make_buffer(dev, memory, size);
    if (!buf) return NULL;
    buf->is_wrapped = true;
    buf->owner = owner;
    return &buf->base;
}

static void release_buffer(wk_backend_device *dev, wk_cpu_buffer *buf) {
    const wk_memory_owner owner = buf->owner;
    if (!buf->is_wrapped) {
        assert(dev->stats.buffer_bytes >= buf->base.size);
        dev->stats.buffer_bytes -= buf->base.size;
        wk_free_aligned(dev->heap, buf->base.data, room_of(buf->base.size));
    }
    wk_free(dev->heap, buf, sizeof *buf);
    if (owner.release) owner.release(owner.user);
}

void wk_cpu_free(wk_backend_device *dev, wk_buffer *base) {
    if (!base) return;
    wk_cpu_buffer *buf = (wk_cpu_buffer *)base;
    if (dev->n_done == dev->n_given) {
        release_buffer(dev, buf);
        return;
    }
    assert(!buf->next && buf != dev->freed_last); /* freed twice */
    buf->free_after = dev->n_given;
    buf->next = NULL;
    if (dev->freed_last) {
        dev->freed_last->next = buf;
    } else {
        dev->freed_first = buf;
    }
    dev->freed_last = buf;
}

void wk_cpu_free_waiting(wk_backend_device *dev) {
    while (dev->freed_first && dev->freed_first->free_after <= dev->n_done) {
        wk_cpu_buffer *buf = dev->freed_first;
        dev->freed_first = buf->next;
        if (!dev->freed_first) dev->freed_last = NULL;
        release_buffer(dev, buf);
    }
}
