/* backend/webgpu/memory.c: buffers made of pieces of the pool. */
#include "backend/webgpu/memory.h"

#include "backend/webgpu/pool.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

/* Pieces begin at multiples of 16 bytes of their buffer, so that vectors are in one. */
enum { PIECE_ALIGNMENT = 16 };

/* As much as fits a block, in whole granules where that is possible. */
static uint64_t segment_of(const wk_backend_device *dev, uint64_t granule) {
    const uint64_t most = dev->block_bytes;
    uint64_t unit = granule > 0 && granule <= most ? granule : PIECE_ALIGNMENT;
    while (unit % PIECE_ALIGNMENT != 0 && unit <= most) unit *= 2; /* an odd factor stays one */
    return unit <= most ? most / unit * unit : most;
}

/* Bytes are copied by words of 4. */
static uint64_t padded(uint64_t size) { return size > 0 ? (size + 3) / 4 * 4 : 4; }

uint64_t wk_webgpu_footprint(const wk_backend_device *dev, uint64_t size, uint64_t granule) {
    const uint64_t segment = segment_of(dev, granule), needed = padded(size);
    const uint64_t rest = needed % segment;
    return needed / segment * wk_pool_block_bytes(dev, segment) +
           (rest > 0 ? wk_pool_block_bytes(dev, rest) : 0);
}

static size_t bytes_of(uint32_t n_pieces) {
    return sizeof(wk_webgpu_buffer) + n_pieces * sizeof(wk_piece);
}

/* The blocks of stand-ins have no memory. */
static wick_status take_piece(wk_backend_device *dev, bool is_real, uint64_t size, wk_piece *out,
                              wick_error *err) {
    if (is_real) return wk_pool_take(dev, size, out, err);
    wk_block *const block = wk_alloc_zeroed(dev->heap, sizeof *block);
    if (!block) return wk_fail_memory(err, sizeof *block, "a buffer");
    block->size = size;
    *out = (wk_piece){.block = block};
    return WICK_OK;
}

static void give_piece(wk_backend_device *dev, const wk_piece *piece) {
    if (piece->block->gpu)
        wk_pool_give(dev, piece);
    else
        wk_free(dev->heap, piece->block, sizeof *piece->block);
}

static void free_pieces(wk_backend_device *dev, wk_webgpu_buffer *buf, uint32_t n_taken) {
    for (uint32_t i = 0; i < n_taken; i++) give_piece(dev, &buf->pieces[i]);
    wk_free(dev->heap, buf, bytes_of(buf->n_pieces));
}

/* A buffer without its pieces. */
static wk_webgpu_buffer *buffer_of(wk_backend_device *dev, uint64_t size, uint64_t segment,
                                   wick_error *err) {
    const uint32_t n_pieces = (uint32_t)((padded(size) + segment - 1) / segment);
    assert(n_pieces > 0);
    wk_webgpu_buffer *const buf = wk_alloc_zeroed(dev->heap, bytes_of(n_pieces));
    if (!buf) {
        (void)wk_fail_memory(err, bytes_of(n_pieces), "a buffer");
        return NULL;
    }
    buf->base.size = size;
    buf->segment_bytes = segment;
    buf->n_pieces = n_pieces;
    return buf;
}

static void count_buffer(wk_backend_device *dev, const wk_webgpu_buffer *buf) {
    dev->stats.buffer_bytes += buf->base.size;
    if (dev->stats.buffer_bytes > dev->stats.buffer_peak_bytes)
        dev->stats.buffer_peak_bytes = dev->stats.buffer_bytes;
}

/* With the numbers of the whole buffer, of which pieces of taken bytes were there. */
static wick_status refuse_buffer(uint64_t size, uint64_t taken, const wick_error *failure,
                                 wick_error *err) {
    if (failure->status != WICK_ERR_OUT_OF_MEMORY)
        return wk_fail(err, failure->status, "%s", failure->message);
    const uint64_t available = failure->bytes_available;
    return wk_fail_memory_of(err, size, available > 0 ? available + taken : 0, "a buffer");
}

static wick_status make_buffer(wk_backend_device *dev, bool is_real, uint64_t size,
                               uint64_t granule, wk_buffer **out, wick_error *err) {
    const uint64_t segment = segment_of(dev, granule), needed = padded(size);
    *out = NULL;
    if (size / segment >= UINT16_MAX) /* far beyond any device, and no overflow below */
        return wk_fail_memory(err, size, "a buffer");
    wk_webgpu_buffer *const buf = buffer_of(dev, size, segment, err);
    if (!buf) return WICK_ERR_OUT_OF_MEMORY;
    wick_error failure = {.status = WICK_OK};
    for (uint32_t i = 0; i < buf->n_pieces; i++) {
        const uint64_t rest = needed - i * segment;
        const wick_status status =
            take_piece(dev, is_real, rest < segment ? rest : segment, &buf->pieces[i], &failure);
        if (status == WICK_OK) continue;
        free_pieces(dev, buf, i);
        return refuse_buffer(size, i * segment, &failure, err);
    }
    if (is_real) count_buffer(dev, buf);
    *out = &buf->base;
    return WICK_OK;
}

wick_status wk_webgpu_alloc_block(wk_backend_device *dev, uint64_t size, wk_buffer **out,
                                  wick_error *err) {
    *out = NULL;
    wk_webgpu_buffer *const buf = buffer_of(dev, size, dev->block_bytes, err);
    if (!buf) return WICK_ERR_OUT_OF_MEMORY;
    assert(buf->n_pieces == 1);
    const wick_status status = wk_pool_take_block(dev, padded(size), &buf->pieces[0], err);
    if (status != WICK_OK) {
        free_pieces(dev, buf, 0);
        return status;
    }
    count_buffer(dev, buf);
    *out = &buf->base;
    return WICK_OK;
}

wick_status wk_webgpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule,
                            wk_buffer **out, wick_error *err) {
    return make_buffer(dev, true, size, granule, out, err);
}

wick_status wk_webgpu_stand_in(wk_backend_device *dev, uint64_t size, uint64_t granule,
                               wk_buffer **out, wick_error *err) {
    return make_buffer(dev, false, size, granule, out, err);
}

wick_status wk_webgpu_temp(wk_backend_device *dev, uint64_t size, wk_buffer **out,
                           wick_error *err) {
    return dev->is_rehearsing ? wk_webgpu_stand_in(dev, size, 0, out, err)
                              : wk_webgpu_alloc(dev, size, 0, out, err);
}

void wk_webgpu_free(wk_backend_device *dev, wk_buffer *base) {
    wk_webgpu_buffer *const buf = (wk_webgpu_buffer *)(void *)base;
    const bool is_real = buf->pieces[0].block->gpu != NULL;
    assert(!is_real || dev->stats.buffer_bytes >= base->size);
    if (is_real) dev->stats.buffer_bytes -= base->size;
    free_pieces(dev, buf, buf->n_pieces);
}

wk_block *wk_webgpu_locate(const wk_buffer *base, uint64_t offset, uint64_t size, uint64_t *at) {
    const wk_webgpu_buffer *const buf = (const wk_webgpu_buffer *)(const void *)base;
    const uint64_t first = offset / buf->segment_bytes, inside = offset % buf->segment_bytes;
    if (first >= buf->n_pieces || size > buf->segment_bytes - inside) return NULL;
    *at = buf->pieces[first].offset + inside;
    return buf->pieces[first].block;
}
