/* backend/webgpu/pool.h: blocks of device memory, and slabs that small buffers share. */
#ifndef WK_BACKEND_WEBGPU_POOL_H
#define WK_BACKEND_WEBGPU_POOL_H

#include "backend/backend.h"
#include "backend/webgpu/gpu/gpu.h"

typedef struct wk_block wk_block;

/* A part of a slab: one buffer's, or free. The spans of a slab, by address, cover it. */
typedef struct wk_span wk_span;
struct wk_span {
    wk_block *slab;
    uint64_t offset, size;
    wk_span *next, *previous;
    bool is_free;
};

/* Memory of the device. What was freed may serve again at once: commands run in their order. */
struct wk_block {
    wk_gpu_buffer *gpu; /* NULL: of a stand-in */
    uint64_t size;
    uint64_t id;      /* never given twice */
    uint64_t used_in; /* number of the latest recording whose commands name it */
    wk_block *next;   /* in its free list, or of the slabs */
    wk_span *spans;   /* of a slab; NULL: one buffer has it whole */
};

typedef struct wk_piece {
    wk_block *block;
    wk_span *span; /* of a slab; else NULL */
    uint64_t offset;
} wk_piece;

/* Free blocks by size: eight classes to a power of two; large blocks of a class differ. */
enum { WK_POOL_CLASSES = 8 * 64 };
typedef struct wk_block_pool {
    wick_pool_desc desc; /* its defaults filled in */
    wk_block *free[WK_POOL_CLASSES];
    wk_block *slabs;
    uint64_t slab_bytes; /* of the next one; 0: there are none */
    wk_span *cursor;     /* where NEXT_FIT goes on; NULL: at the first one */
    uint64_t n_ids, n_hits, n_misses;
    uint64_t bytes, peak_bytes; /* of all blocks */
    uint64_t free_bytes;        /* of these, unused */
    bool is_pressed;
    /* Gives unused memory back, where there is none left; see room.c. */
    wick_status (*make_room)(wk_backend_device *dev, wick_error *err);
} wk_block_pool;

/* Needs block_bytes and make_room. WICK_ERR_VALUE: the options are wrong. */
wick_status wk_pool_open(wk_backend_device *dev, const wick_pool_desc *desc, wick_error *err);
/* size: from 1 to block_bytes; a multiple of 4. Where there is none left: makes room, once. */
wick_status wk_pool_take(wk_backend_device *dev, uint64_t size, wk_piece *out, wick_error *err);
/* The same, never of a slab. */
wick_status wk_pool_take_block(wk_backend_device *dev, uint64_t size, wk_piece *out,
                               wick_error *err);
/* Bytes of the block that a piece of this size has, where it shares none. */
uint64_t wk_pool_block_bytes(const wk_backend_device *dev, uint64_t size);
void wk_pool_give(wk_backend_device *dev, const wk_piece *piece);
/* Gives unused blocks and slabs back to the implementation; no recorded command may name them. */
uint64_t wk_pool_trim(wk_backend_device *dev);
void wk_pool_stats(const wk_backend_device *dev, wk_backend_stats *stats);

#endif
