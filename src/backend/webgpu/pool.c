/* backend/webgpu/pool.c: memory of the device: blocks, each a WebGPU buffer, kept for reuse by
 * their sizes, and slabs, which are blocks that small buffers share.
 *
 * A block is never larger than a binding may be, so that everything in it can be bound whole. */
#include "backend/webgpu/pool.h"

#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

enum {
    LEAST_BLOCK = 256,
    CLASSES = 8,          /* to a power of two */
    EXACT_FROM = 1 << 20, /* blocks of this size and more are no larger than they must be */
    LEAST_SLAB = 65536,
    SLAB_SHARE = 4, /* what needs more than this part of a slab gets a block of its own */
};

/* The class that holds size, and the largest size of its blocks: at most an eighth more. */
static int class_of(uint64_t size, uint64_t *block_size) {
    uint64_t power = LEAST_BLOCK;
    int class = 0;
    while (power <= size / 2) {
        power *= 2;
        class += CLASSES;
    }
    assert(class + CLASSES < WK_POOL_CLASSES);
    if (size <= power) {
        *block_size = power;
        return class;
    }
    const uint64_t step = power / CLASSES, steps = (size - power + step - 1) / step;
    *block_size = power + steps * step;
    return class + (int)steps;
}

/* --- Blocks --- */

static void release_block(wk_backend_device *dev, wk_block *block) {
    assert(block->size <= dev->pool.free_bytes && block->size <= dev->pool.bytes);
    dev->pool.bytes -= block->size;
    dev->pool.free_bytes -= block->size;
    wk_gpu_buffer_release(dev->gpu, block->gpu);
    wk_free(dev->heap, block, sizeof *block);
}

static bool is_free(const wk_block *slab) { return slab->spans->is_free && !slab->spans->next; }

static void release_free_slabs(wk_backend_device *dev) {
    wk_block **at = &dev->pool.slabs;
    while (*at) {
        wk_block *const slab = *at;
        if (!is_free(slab)) {
            at = &slab->next;
            continue;
        }
        *at = slab->next;
        wk_free(dev->heap, slab->spans, sizeof *slab->spans);
        release_block(dev, slab);
    }
    dev->pool.cursor = NULL;
}

uint64_t wk_pool_trim(wk_backend_device *dev) {
    const uint64_t before = dev->pool.bytes;
    for (int c = 0; c < WK_POOL_CLASSES; c++) {
        while (dev->pool.free[c]) {
            wk_block *const block = dev->pool.free[c];
            dev->pool.free[c] = block->next;
            release_block(dev, block);
        }
    }
    release_free_slabs(dev);
    return before - dev->pool.bytes;
}

static wick_status try_block(wk_backend_device *dev, uint64_t size, wk_gpu_buffer **out,
                             wick_error *err) {
    const wk_block_pool *const pool = &dev->pool;
    if (size > pool->desc.max_bytes || pool->bytes > pool->desc.max_bytes - size)
        return wk_fail_memory_of(err, size, pool->desc.max_bytes - pool->bytes,
                                 "tensors within the limit of the pool");
    return wk_gpu_buffer_make(dev->gpu, WK_GPU_STORAGE, size, out, err);
}

static wick_status make_block(wk_backend_device *dev, uint64_t size, wk_block **out,
                              wick_error *err) {
    wk_block_pool *const pool = &dev->pool;
    wk_block *const block = wk_alloc_zeroed(dev->heap, sizeof *block);
    if (!block) return wk_fail_memory(err, sizeof *block, "a buffer");
    wick_error first = {.status = WICK_OK};
    wick_status status = try_block(dev, size, &block->gpu, &first);
    if (status == WICK_ERR_OUT_OF_MEMORY) {
        status = pool->make_room(dev, err);
        if (status == WICK_OK) status = try_block(dev, size, &block->gpu, err);
    } else if (status != WICK_OK) {
        (void)wk_fail(err, status, "%s", first.message);
    }
    if (status != WICK_OK) {
        wk_free(dev->heap, block, sizeof *block);
        return status;
    }
    block->size = size;
    block->id = ++pool->n_ids;
    pool->bytes += size;
    pool->free_bytes += size;
    if (pool->bytes > pool->peak_bytes) pool->peak_bytes = pool->bytes;
    *out = block;
    return WICK_OK;
}

uint64_t wk_pool_block_bytes(const wk_backend_device *dev, uint64_t size) {
    uint64_t block_size;
    (void)class_of(size, &block_size);
    if (size >= EXACT_FROM) block_size = (size + LEAST_BLOCK - 1) / LEAST_BLOCK * LEAST_BLOCK;
    /* All that round up to more than a block may have share the largest one's class. */
    return block_size < dev->block_bytes ? block_size : dev->block_bytes;
}

static wick_status take_block(wk_backend_device *dev, uint64_t size, wk_piece *out,
                              wick_error *err) {
    uint64_t block_size;
    wk_block **at = &dev->pool.free[class_of(size, &block_size)];
    while (*at && (*at)->size < size) at = &(*at)->next;
    wk_block *block = *at;
    if (block) {
        dev->pool.n_hits++;
        *at = block->next;
    } else {
        dev->pool.n_misses++;
        WK_TRY(make_block(dev, wk_pool_block_bytes(dev, size), &block, err));
    }
    assert(block->size >= size && block->size <= dev->pool.free_bytes);
    dev->pool.free_bytes -= block->size;
    *out = (wk_piece){.block = block};
    return WICK_OK;
}

static void give_block(wk_backend_device *dev, wk_block *block) {
    assert(!block->spans); /* a slab stays one until it is released */
    uint64_t block_size;
    wk_block **const list = &dev->pool.free[class_of(block->size, &block_size)];
    block->next = *list;
    *list = block;
    dev->pool.free_bytes += block->size;
}

/* --- Slabs --- */

static wick_status make_slab(wk_backend_device *dev, wick_error *err) {
    wk_block_pool *const pool = &dev->pool;
    wk_block *slab;
    wk_span *const span = wk_alloc_zeroed(dev->heap, sizeof *span);
    if (!span) return wk_fail_memory(err, sizeof *span, "a slab");
    const wick_status status = make_block(dev, pool->slab_bytes, &slab, err);
    if (status != WICK_OK) {
        wk_free(dev->heap, span, sizeof *span);
        return status;
    }
    *span = (wk_span){.slab = slab, .size = slab->size, .is_free = true};
    slab->spans = span;
    slab->next = pool->slabs;
    pool->slabs = slab;
    const double larger = (double)pool->slab_bytes * pool->desc.growth;
    pool->slab_bytes = larger < (double)dev->block_bytes
                           ? (uint64_t)larger / LEAST_BLOCK * LEAST_BLOCK
                           : dev->block_bytes;
    return WICK_OK;
}

/* The span after this one, over all slabs; NULL after the last one. */
static wk_span *span_after(wk_span *span) {
    if (span->next) return span->next;
    return span->slab->next ? span->slab->next->spans : NULL;
}

/* Of the free spans from one on, up to an end, the one that the strategy takes. */
static wk_span *choose_span(wick_pool_fit fit, wk_span *from, const wk_span *end, uint64_t size) {
    wk_span *best = NULL;
    for (wk_span *s = from; s && s != end; s = span_after(s)) {
        if (!s->is_free || s->size < size) continue;
        if (fit == WICK_POOL_FIRST_FIT || fit == WICK_POOL_NEXT_FIT) return s;
        const bool is_better = fit == WICK_POOL_WORST_FIT ? !best || s->size > best->size
                                                          : !best || s->size < best->size;
        if (is_better) best = s;
    }
    return best;
}

static wk_span *find_span(wk_block_pool *pool, uint64_t size) {
    wk_span *const first = pool->slabs ? pool->slabs->spans : NULL;
    if (pool->desc.fit != WICK_POOL_NEXT_FIT || !pool->cursor)
        return choose_span(pool->desc.fit, first, NULL, size);
    wk_span *const after = choose_span(pool->desc.fit, pool->cursor, NULL, size);
    return after ? after : choose_span(pool->desc.fit, first, pool->cursor, size);
}

/* Cuts the span down to size, the rest becomes one of its own. */
static wick_status split_span(wk_backend_device *dev, wk_span *span, uint64_t size,
                              wick_error *err) {
    if (span->size == size) return WICK_OK;
    assert(span->is_free && size > 0 && size < span->size);
    wk_span *const rest = wk_alloc_zeroed(dev->heap, sizeof *rest);
    if (!rest) return wk_fail_memory(err, sizeof *rest, "a buffer");
    *rest = (wk_span){.slab = span->slab,
                      .offset = span->offset + size,
                      .size = span->size - size,
                      .is_free = true,
                      .next = span->next,
                      .previous = span};
    if (rest->next) rest->next->previous = rest;
    span->next = rest;
    span->size = size;
    return WICK_OK;
}

static wick_status take_span(wk_backend_device *dev, uint64_t size, wk_piece *out,
                             wick_error *err) {
    wk_block_pool *const pool = &dev->pool;
    const uint64_t alignment = pool->desc.alignment;
    size = (size + alignment - 1) / alignment * alignment;
    wk_span *span = find_span(pool, size);
    if (span) {
        pool->n_hits++;
    } else {
        pool->n_misses++;
        WK_TRY(make_slab(dev, err));
        span = pool->slabs->spans;
    }
    WK_TRY(split_span(dev, span, size, err));
    span->is_free = false;
    pool->free_bytes -= size;
    pool->cursor = span;
    *out = (wk_piece){.block = span->slab, .span = span, .offset = span->offset};
    return WICK_OK;
}

/* Joins the span with the next one, where both are free. */
static void join_next(wk_backend_device *dev, wk_span *span) {
    wk_span *const next = span->next;
    if (!next || !next->is_free || !span->is_free) return;
    assert(span->offset + span->size == next->offset); /* the spans of a slab cover it */
    span->size += next->size;
    span->next = next->next;
    if (span->next) span->next->previous = span;
    if (dev->pool.cursor == next) dev->pool.cursor = span;
    wk_free(dev->heap, next, sizeof *next);
}

static void give_span(wk_backend_device *dev, wk_span *span) {
    assert(!span->is_free);
    span->is_free = true;
    dev->pool.free_bytes += span->size;
    join_next(dev, span);
    if (span->previous) join_next(dev, span->previous);
}

/* --- The pool --- */

wick_status wk_pool_open(wk_backend_device *dev, const wick_pool_desc *desc, wick_error *err) {
    assert(dev->block_bytes > 0 && dev->pool.make_room);
    wk_block_pool *const pool = &dev->pool;
    pool->desc = *desc;
    if (pool->desc.max_bytes == 0) pool->desc.max_bytes = UINT64_MAX;
    if (pool->desc.growth == 0) pool->desc.growth = 1.5;
    if (pool->desc.alignment == 0) pool->desc.alignment = LEAST_BLOCK;
    if (pool->desc.pressure == 0) pool->desc.pressure = 0.9;
    const uint64_t alignment = pool->desc.alignment;
    if (alignment < 16 || alignment > 4096 || (alignment & (alignment - 1)) != 0)
        return wk_fail(err, WICK_ERR_VALUE, "a pool aligns to powers of two from 16 to 4096");
    if (!(pool->desc.growth >= 1 && pool->desc.pressure > 0) || pool->desc.pressure > 1 ||
        (uint32_t)pool->desc.fit > WICK_POOL_NEXT_FIT)
        return wk_fail(err, WICK_ERR_VALUE,
                       "a pool grows by a factor of at least 1, feels pressure from a share of "
                       "its limit, and has four ways to fit");
    /* Whatever is in a slab can be bound by itself. */
    if (alignment < dev->adapter.limits.storage_alignment)
        pool->desc.alignment = dev->adapter.limits.storage_alignment;
    if (desc->initial_bytes == 0) return WICK_OK;
    pool->slab_bytes = LEAST_SLAB;
    if (pool->slab_bytes < desc->initial_bytes)
        pool->slab_bytes = desc->initial_bytes / LEAST_BLOCK * LEAST_BLOCK;
    if (pool->slab_bytes > dev->block_bytes) pool->slab_bytes = dev->block_bytes;
    return make_slab(dev, err);
}

/* Told each time when the threshold is passed upwards. */
static void tell_pressure(wk_backend_device *dev, uint64_t more) {
    wk_block_pool *const pool = &dev->pool;
    if (!pool->desc.on_pressure || pool->desc.max_bytes == UINT64_MAX) return;
    const uint64_t used = pool->bytes - pool->free_bytes + more;
    const bool is_over = (double)used > pool->desc.pressure * (double)pool->desc.max_bytes;
    if (is_over && !pool->is_pressed)
        pool->desc.on_pressure(pool->desc.user, used, pool->desc.max_bytes);
    pool->is_pressed = is_over;
}

wick_status wk_pool_take(wk_backend_device *dev, uint64_t size, wk_piece *out, wick_error *err) {
    assert(size > 0 && size % 4 == 0);
    if (size > dev->pool.slab_bytes / SLAB_SHARE) return wk_pool_take_block(dev, size, out, err);
    tell_pressure(dev, size);
    return take_span(dev, size, out, err);
}

wick_status wk_pool_take_block(wk_backend_device *dev, uint64_t size, wk_piece *out,
                               wick_error *err) {
    assert(size > 0 && size <= dev->block_bytes);
    tell_pressure(dev, size);
    return take_block(dev, size, out, err);
}

void wk_pool_give(wk_backend_device *dev, const wk_piece *piece) {
    if (piece->span)
        give_span(dev, piece->span);
    else
        give_block(dev, piece->block);
}

static uint64_t larger_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The largest size that is free in one piece. */
static uint64_t largest_free(const wk_block_pool *pool) {
    uint64_t largest = 0;
    for (int c = 0; c < WK_POOL_CLASSES; c++)
        for (const wk_block *b = pool->free[c]; b; b = b->next)
            largest = larger_of(largest, b->size);
    for (const wk_block *slab = pool->slabs; slab; slab = slab->next)
        for (const wk_span *s = slab->spans; s; s = s->next)
            if (s->is_free) largest = larger_of(largest, s->size);
    return largest;
}

void wk_pool_stats(const wk_backend_device *dev, wk_backend_stats *stats) {
    const wk_block_pool *const pool = &dev->pool;
    stats->pool_bytes = pool->bytes;
    stats->pool_peak_bytes = pool->peak_bytes;
    stats->pool_free_bytes = pool->free_bytes;
    stats->pool_largest_free_bytes = largest_free(pool);
    stats->n_pool_hits = pool->n_hits;
    stats->n_pool_misses = pool->n_misses;
}
