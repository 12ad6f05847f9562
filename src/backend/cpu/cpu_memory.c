/* backend/cpu/cpu_memory.c: buffers. What commands still name when it is freed waits for them, and
 * is then kept for the next one of about its size. */
#include "backend/cpu/cpu_state.h"

#include "core/compiler.h"
#include "sys/clock.h"

#include <assert.h>

enum {
    SCALAR_ALIGNMENT = 8, /* of the widest scalar; wrapped memory must have it */
    LARGE = 4 << 20,      /* large pages are asked for: rows of matrices are far apart */
};

wick_status wk_cpu_no_memory(wick_error *err, uint64_t size, const char *what) {
    return wk_fail_memory_of(err, size, wk_memory_available(), what);
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

/* --- Buffers that are not in use ---
 *
 * A step of training frees what the next one asks for again, and the system takes longer to give
 * memory with zeros than most kernels need to fill it. So freed buffers are kept in lists by size,
 * four for each power of two:
 *
 *     8 .. 9 | 10 .. 11 | 12 .. 13 | 14 .. 15 | 16 .. 19 | 20 .. 23 | ...
 *
 * but never more than that they and the buffers in use take half as much again as those in use
 * took at their most: buffers of one size are not all in use when those of another are. */

static unsigned list_of(uint64_t room) {
    unsigned octave = 0;
    while (room >> octave >= 8) octave++;
    return 4 * octave + (unsigned)(room >> octave);
}

static void release_memory(wk_backend_device *dev, wk_cpu_buffer *buf) {
    wk_permit(buf->base.data, buf->room);
    wk_free_aligned(dev->heap, buf->base.data, buf->room);
    dev->stats.pool_bytes -= buf->room;
    wk_free(dev->heap, buf, sizeof *buf);
}

/* The last one first: the caches may still hold some of it. */
static wk_cpu_buffer *take_unused(wk_backend_device *dev, size_t room) {
    enum { MOST_TRIES = 8 };
    const unsigned first = list_of(room);
    for (unsigned i = first; i < first + 2 && i < WK_CPU_LISTS; i++) {
        wk_cpu_buffer **at = &dev->unused[i];
        for (int n = 0; *at && n < MOST_TRIES; n++, at = &(*at)->next) {
            wk_cpu_buffer *const buf = *at;
            if (buf->room < room || buf->room - room > room / 4) continue;
            *at = buf->next;
            dev->stats.pool_free_bytes -= buf->room;
            wk_permit(buf->base.data, buf->room);
            return buf;
        }
    }
    return NULL;
}

/* Frees what is too much, of one list after the other. */
static void release_unused(wk_backend_device *dev, uint64_t most_bytes) {
    while (dev->stats.pool_free_bytes > most_bytes) {
        wk_cpu_buffer **const list = &dev->unused[dev->next_list++ % WK_CPU_LISTS];
        wk_cpu_buffer *const buf = *list;
        if (!buf) continue;
        *list = buf->next;
        dev->stats.pool_free_bytes -= buf->room;
        release_memory(dev, buf);
    }
}

static void limit_unused(wk_backend_device *dev) {
    const uint64_t peak = dev->stats.buffer_peak_bytes;
    assert(peak >= dev->stats.buffer_bytes);
    release_unused(dev, peak + peak / 2 - dev->stats.buffer_bytes);
}

wick_status wk_cpu_trim(wk_backend_device *dev, uint64_t *freed, wick_error *err) {
    (void)err;
    if (freed) *freed = dev->stats.pool_free_bytes;
    release_unused(dev, 0);
    return WICK_OK;
}

uint64_t wk_cpu_largest_unused(const wk_backend_device *dev) {
    uint64_t largest = 0;
    for (unsigned i = WK_CPU_LISTS; i-- > 0 && largest == 0;)
        for (const wk_cpu_buffer *buf = dev->unused[i]; buf; buf = buf->next)
            if (buf->room > largest) largest = buf->room;
    return largest;
}

/* --- Buffers --- */

static wk_cpu_buffer *new_buffer(wk_backend_device *dev, size_t room, wick_error *err) {
    void *memory = wk_alloc_aligned(dev->heap, room);
    if (!memory && dev->stats.pool_free_bytes > 0) {
        release_unused(dev, 0);
        memory = wk_alloc_aligned(dev->heap, room);
    }
    wk_cpu_buffer *const buf = memory ? make_buffer(dev, memory, 0) : NULL;
    if (!buf) {
        wk_free_aligned(dev->heap, memory, room);
        wk_cpu_no_memory(err, room, "a buffer");
        return NULL;
    }
    if (room >= LARGE) wk_memory_prefer_large_pages(memory, room);
    buf->room = room;
    dev->stats.pool_bytes += room;
    if (dev->stats.pool_bytes > dev->stats.pool_peak_bytes)
        dev->stats.pool_peak_bytes = dev->stats.pool_bytes;
    return buf;
}

wick_status wk_cpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule, wk_buffer **out,
                         wick_error *err) {
    (void)granule; /* one piece */
    *out = NULL;
    if (size > SIZE_MAX) return wk_cpu_no_memory(err, size, "a buffer");
    wk_cpu_buffer *buf = take_unused(dev, room_of(size));
    if (buf) {
        dev->stats.n_pool_hits++;
        *buf = (wk_cpu_buffer){.base.data = buf->base.data, .room = buf->room};
    } else {
        dev->stats.n_pool_misses++;
        buf = new_buffer(dev, room_of(size), err);
        if (!buf) return WICK_ERR_OUT_OF_MEMORY;
    }
    buf->base.size = size;
    dev->stats.buffer_bytes += size;
    if (dev->stats.buffer_bytes > dev->stats.buffer_peak_bytes)
        dev->stats.buffer_peak_bytes = dev->stats.buffer_bytes;
    limit_unused(dev);
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
    if (buf->is_wrapped) {
        const wk_memory_owner owner = buf->owner;
        wk_free(dev->heap, buf, sizeof *buf);
        if (owner.release) owner.release(owner.user);
        return;
    }
    assert(dev->stats.buffer_bytes >= buf->base.size);
    dev->stats.buffer_bytes -= buf->base.size;
    if (buf->is_weight) { /* its model is gone, and the next one has other sizes */
        release_memory(dev, buf);
        return;
    }
    wk_forbid(buf->base.data, buf->room);
    wk_cpu_buffer **const list = &dev->unused[list_of(buf->room)];
    buf->next = *list;
    *list = buf;
    dev->stats.pool_free_bytes += buf->room;
    limit_unused(dev);
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
