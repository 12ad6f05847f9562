/* backend/webgpu/read.c: reading back through staging buffers that are mapped, and the fault slots,
 * which come along with every read. What is larger than a buffer may be comes in parts, each a
 * staging buffer of its own under the read's ticket. */
#include "backend/webgpu/read.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>
#include <string.h>

enum {
    FAULT_BYTES = 4 * WK_FAULT_SLOTS,
    FIRST_READS = 4,
    MOST_PART = 64 << 20, /* bytes */
    MOST_KEPT = 4 << 20,  /* a larger staging buffer is not kept for the next read */
};
static const wk_ticket reserved = UINT64_MAX; /* of a part whose read has not been submitted */

static uint64_t padded(uint64_t size) { return (size + 3) / 4 * 4; }

static void drop_staging(wk_backend_device *dev, wk_webgpu_read *part) {
    if (part->staging) wk_gpu_buffer_release(dev->gpu, part->staging);
    *part = (wk_webgpu_read){0};
}

void wk_webgpu_reads_release(wk_backend_device *dev) {
    for (size_t i = 0; i < dev->n_reads; i++) drop_staging(dev, &dev->reads[i]);
    wk_free(dev->heap, dev->reads, dev->n_reads * sizeof *dev->reads);
    dev->reads = NULL;
    dev->n_reads = 0;
}

/* The next part with this ticket, from index *i on; NULL: there is none. */
static wk_webgpu_read *next_part(const wk_backend_device *dev, wk_ticket ticket, size_t *i) {
    while (*i < dev->n_reads) {
        wk_webgpu_read *const part = &dev->reads[(*i)++];
        if (part->ticket == ticket) return part;
    }
    return NULL;
}

static bool is_read(const wk_backend_device *dev, wk_ticket ticket) {
    size_t i = 0;
    return ticket != 0 && next_part(dev, ticket, &i);
}

/* --- Starting --- */

/* One that is not in use: the tightest that is large enough, else any. */
static wk_webgpu_read *unused_part(wk_backend_device *dev, uint64_t bytes, wick_error *err) {
    wk_webgpu_read *best = NULL;
    for (size_t i = 0; i < dev->n_reads; i++) {
        wk_webgpu_read *const part = &dev->reads[i];
        if (part->ticket != 0) continue;
        const bool fits = part->capacity >= bytes;
        if (!best || (fits && (best->capacity < bytes || part->capacity < best->capacity)))
            best = part;
    }
    if (best) return best;
    const size_t old = dev->n_reads, more = old ? 2 * old : FIRST_READS, size = sizeof *best;
    wk_webgpu_read *const moved = wk_realloc(dev->heap, dev->reads, old * size, more * size);
    if (!moved) {
        (void)wk_fail_memory(err, more * size, "a read");
        return NULL;
    }
    memset(moved + old, 0, (more - old) * size);
    dev->reads = moved;
    dev->n_reads = more;
    return &moved[old];
}

/* Reserves a part with room for bytes. */
static wick_status reserve(wk_backend_device *dev, uint64_t bytes, wk_webgpu_read **out,
                           wick_error *err) {
    wk_webgpu_read *const part = unused_part(dev, bytes, err);
    if (!part) return WICK_ERR_OUT_OF_MEMORY;
    if (part->capacity < bytes) {
        drop_staging(dev, part);
        WK_TRY(wk_gpu_buffer_make(dev->gpu, WK_GPU_READBACK, bytes, &part->staging, err));
        part->capacity = bytes;
    }
    part->ticket = reserved;
    part->skip = part->size = part->at = part->copied = 0;
    part->has_faults = part->is_seen = false;
    *out = part;
    return WICK_OK;
}

static wick_status record_copy(wk_backend_device *dev, const wk_buffer *from, uint64_t offset,
                               wk_webgpu_read *to, uint64_t size, wick_error *err) {
    uint64_t at;
    wk_block *const block = wk_webgpu_locate(from, offset, size, &at);
    assert(block && offset % 4 == 0 && size % 4 == 0 && size <= to->capacity - to->copied);
    wk_gpu_command *const command = wk_recorder_next(dev, &dev->recorder, err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    command->kind = WK_GPU_COPY;
    command->copy.from = block->gpu;
    command->copy.from_offset = at;
    command->copy.to = to->staging;
    command->copy.to_offset = to->copied;
    command->copy.size = size;
    to->copied += size;
    wk_webgpu_use(dev, block);
    return WICK_OK;
}

/* Bytes [begin, end), whole words, into one part: those of each piece of the buffer. */
static wick_status record_part(wk_backend_device *dev, const wk_buffer *buf, uint64_t begin,
                               uint64_t end, wk_webgpu_read *part, wick_error *err) {
    const uint64_t segment = ((const wk_webgpu_buffer *)(const void *)buf)->segment_bytes;
    for (uint64_t at = begin; at < end;) {
        const uint64_t rest = segment - at % segment;
        const uint64_t size = rest < end - at ? rest : end - at;
        WK_TRY(record_copy(dev, buf, at, part, size, err));
        at += size;
    }
    return WICK_OK;
}

static wick_status record(wk_backend_device *dev, const wk_buffer *buf, uint64_t offset,
                          uint64_t size, wick_error *err) {
    const uint64_t first = offset / 4 * 4, last = padded(offset + size);
    const uint64_t limit = dev->adapter.limits.buffer_bytes / 4 * 4 - FAULT_BYTES;
    const uint64_t most = limit < MOST_PART ? limit : MOST_PART;
    wk_webgpu_read *part;
    uint64_t begin = first;
    do {
        const uint64_t end = last - begin < most ? last : begin + most;
        WK_TRY(reserve(dev, end - begin + FAULT_BYTES, &part, err));
        part->skip = begin == first ? offset - first : 0;
        part->at = begin + part->skip - offset;
        part->size = (end < offset + size ? end : offset + size) - (begin + part->skip);
        if (size > 0) WK_TRY(record_part(dev, buf, begin, end, part, err));
        begin = end;
    } while (begin < last);
    part->has_faults = true;
    return record_copy(dev, dev->fault.buf, 0, part, FAULT_BYTES, err);
}

/* WICK_PENDING: what is recorded, which is submitted with it, is not compiled. */
static wick_status start(wk_backend_device *dev, const wk_buffer *buf, uint64_t offset,
                         uint64_t size, wk_ticket *ticket, wick_error *err) {
    if (!wk_cache_wait(dev, dev->recorder.n_pipelines)) return WICK_PENDING;
    const size_t n_before = dev->recorder.n_commands;
    wick_status status = record(dev, buf, offset, size, err);
    if (status != WICK_OK)
        dev->recorder.n_commands = n_before; /* they name staging that is not in use */
    else
        status = wk_webgpu_flush(dev, err);
    size_t i = 0;
    for (wk_webgpu_read *part; (part = next_part(dev, reserved, &i));) {
        part->ticket = status == WICK_OK ? dev->n_submitted : 0;
        if (status == WICK_OK) wk_gpu_map_start(dev->gpu, part->staging, part->copied);
    }
    if (status != WICK_OK) return status;
    *ticket = dev->n_submitted;
    return WICK_OK;
}

wick_status wk_webgpu_read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                                 uint64_t size, wk_ticket *ticket, wick_error *err) {
    assert(offset <= buf->size && size <= buf->size - offset);
    WK_TRY(start(dev, buf, offset, size, ticket, err));
    dev->stats.n_reads++;
    dev->stats.bytes_read += size;
    return WICK_OK;
}

/* --- Arriving --- */

/* What kernels left in the slots. A slot that was seen is cleared, after all that was submitted;
 * reads that were submitted before would show it again. */
static void see_faults(wk_backend_device *dev, wk_ticket ticket, const unsigned char *bytes) {
    static const uint32_t none = 0;
    for (uint32_t i = 0; i < WK_FAULT_SLOTS; i++) {
        uint32_t word;
        wk_webgpu_fault *const fault = &dev->faults[i];
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        if (word == 0 || ticket <= fault->cleared) continue;
        uint64_t at;
        wk_block *const block = wk_webgpu_locate(dev->fault.buf, i * sizeof word, sizeof word, &at);
        wk_gpu_write(dev->gpu, block->gpu, at, &none, sizeof none);
        *fault = (wk_webgpu_fault){.is_set = true, .cleared = dev->n_submitted};
        dev->has_faults = true;
    }
}

bool wk_webgpu_take_fault(wk_backend_device *dev, uint32_t *slot) {
    for (uint32_t i = 0; dev->has_faults && i < WK_FAULT_SLOTS; i++) {
        if (!dev->faults[i].is_set) continue;
        dev->faults[i].is_set = false;
        *slot = i;
        return true;
    }
    dev->has_faults = false;
    return false;
}

static wick_status look_at(wk_backend_device *dev, wk_ticket ticket) {
    size_t i = 0;
    for (wk_webgpu_read *part; (part = next_part(dev, ticket, &i));) {
        const unsigned char *const bytes = wk_gpu_mapped(dev->gpu, part->staging);
        if (!bytes) return WICK_PENDING;
        if (!part->has_faults || part->is_seen) continue;
        part->is_seen = true;
        assert(part->copied >= FAULT_BYTES); /* the slots come last */
        see_faults(dev, ticket, bytes + part->copied - FAULT_BYTES);
        if (dev->fault_unseen != 0 && dev->fault_unseen <= ticket)
            dev->fault_unseen = dev->fault_given > ticket ? ticket + 1 : 0;
    }
    return WICK_OK;
}

/* No caller reads what submits up to this ticket computed: the fault slots are read alone. */
static wick_status poll_fault(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    const bool is_wanted = dev->fault_unseen != 0 && dev->fault_unseen <= ticket;
    if (dev->fault_ticket == 0 && !is_wanted) return WICK_OK;
    if (dev->fault_ticket == 0) WK_TRY(start(dev, NULL, 0, 0, &dev->fault_ticket, err));
    const wick_status status = look_at(dev, dev->fault_ticket);
    if (status == WICK_PENDING) return status;
    (void)wk_webgpu_read_finish(dev, dev->fault_ticket, NULL, NULL);
    dev->fault_ticket = 0;
    return status;
}

wick_status wk_webgpu_read_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    if (is_read(dev, ticket)) return look_at(dev, ticket);
    WK_TRY(poll_fault(dev, ticket, err));
    return poll_fault(dev, ticket, err); /* the first one may have been of earlier submits */
}

wick_status wk_webgpu_read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                                  wick_error *err) {
    if (!is_read(dev, ticket)) return wk_fail(err, WICK_ERR_INTERNAL, "there is no read to finish");
    size_t i = 0;
    bool has_arrived = true;
    for (wk_webgpu_read *part; (part = next_part(dev, ticket, &i));) {
        const unsigned char *const bytes = wk_gpu_mapped(dev->gpu, part->staging);
        if (!bytes) has_arrived = false; /* thrown away, or the device is lost */
        assert(part->size <= part->copied && part->skip <= part->copied - part->size);
        if (bytes && dst)
            memcpy((unsigned char *)dst + part->at, bytes + part->skip, (size_t)part->size);
        if (bytes) wk_gpu_unmap(dev->gpu, part->staging);
        part->ticket = 0;
        if (!bytes || part->capacity > MOST_KEPT) drop_staging(dev, part);
    }
    if (has_arrived || !dst) return WICK_OK;
    return wk_fail(err, WICK_ERR_STATE, "the read is still pending");
}
