/* backend/cpu/cpu_read.c: reading back: a read is a command that copies bytes into a slot, so that
 * they are those of its place in the order, whenever they are fetched. */
#include "backend/cpu/cpu_state.h"

#include <assert.h>
#include <string.h>

enum { FIRST_SLOTS = 4 };

static wk_cpu_read_slot *find_slot(wk_backend_device *dev, wk_ticket ticket) {
    for (size_t i = 0; i < dev->n_slots; i++) {
        if (dev->slots[i].ticket == ticket) return &dev->slots[i];
    }
    return NULL;
}

/* A slot that is not in use: one that is large enough, else any, else new ones. */
static wk_cpu_read_slot *unused_slot(wk_backend_device *dev, uint64_t size) {
    wk_cpu_read_slot *unused = NULL;
    for (size_t i = 0; i < dev->n_slots; i++) {
        wk_cpu_read_slot *slot = &dev->slots[i];
        if (slot->ticket != 0) continue;
        if (slot->capacity >= size) return slot;
        unused = slot;
    }
    if (unused) return unused;
    const size_t old = dev->n_slots;
    const size_t count = old == 0 ? FIRST_SLOTS : 2 * old;
    wk_cpu_read_slot *slots =
        wk_realloc(dev->heap, dev->slots, old * sizeof *slots, count * sizeof *slots);
    if (!slots) return NULL;
    memset(slots + old, 0, (count - old) * sizeof *slots);
    dev->slots = slots;
    dev->n_slots = count;
    return &slots[old];
}

static wk_cpu_read_slot *take_slot(wk_backend_device *dev, uint64_t size) {
    wk_cpu_read_slot *slot = unused_slot(dev, size);
    if (!slot || slot->capacity >= size) return slot;
    if (size > SIZE_MAX) return NULL;
    wk_free(dev->heap, slot->bytes, (size_t)slot->capacity);
    slot->capacity = 0;
    slot->bytes = wk_alloc(dev->heap, (size_t)size);
    if (!slot->bytes) return NULL;
    slot->capacity = size;
    return slot;
}

wick_status wk_cpu_read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                              uint64_t size, wk_ticket *ticket, wick_error *err) {
    assert(offset <= buf->size && size <= buf->size - offset);
    wk_cpu_read_slot *slot = take_slot(dev, size);
    if (!slot) return wk_cpu_no_memory(err, size, "a copy of the data to read");
    wk_cpu_command *command = wk_cpu_next_command(dev, err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    command->kind = WK_CPU_COMMAND_READ;
    command->read = dev->n_given + 1;
    slot->ticket = dev->n_given + 1;
    slot->from = size > 0 ? (const unsigned char *)buf->data + offset : NULL;
    slot->size = size;
    slot->is_ready = false;
    slot->is_discarded = false;
    wk_cpu_push(dev);
    dev->stats.n_submits++;
    *ticket = slot->ticket;
    return WICK_OK;
}

void wk_cpu_read_run(wk_backend_device *dev, wk_ticket ticket) {
    wk_cpu_read_slot *slot = find_slot(dev, ticket);
    assert(slot);
    if (slot->is_discarded) {
        slot->ticket = 0;
        return;
    }
    assert(!slot->is_ready && slot->size <= slot->capacity);
    if (slot->size > 0) memcpy(slot->bytes, slot->from, (size_t)slot->size);
    slot->is_ready = true;
}

wick_status wk_cpu_read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                               wick_error *err) {
    wk_cpu_read_slot *slot = ticket != 0 ? find_slot(dev, ticket) : NULL;
    if (!slot) return wk_fail(err, WICK_ERR_STATE, "no read with this ticket is waiting");
    if (!dst) {
        if (slot->is_ready) slot->ticket = 0;
        slot->is_discarded = true;
        return WICK_OK;
    }
    if (!slot->is_ready) return wk_fail(err, WICK_ERR_STATE, "the read has not been computed yet");
    if (slot->size > 0) memcpy(dst, slot->bytes, (size_t)slot->size);
    slot->ticket = 0;
    dev->stats.n_reads++;
    dev->stats.bytes_read += slot->size;
    return WICK_OK;
}

void wk_cpu_read_release(wk_backend_device *dev) {
    for (size_t i = 0; i < dev->n_slots; i++) {
        wk_free(dev->heap, dev->slots[i].bytes, (size_t)dev->slots[i].capacity);
    }
    wk_free(dev->heap, dev->slots, dev->n_slots * sizeof *dev->slots);
}
