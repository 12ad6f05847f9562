/* backend/webgpu/memory.h: buffers made of pieces of the pool. */
#ifndef WK_BACKEND_WEBGPU_MEMORY_H
#define WK_BACKEND_WEBGPU_MEMORY_H

#include "backend/webgpu/pool.h"

/* Bytes in pieces of segment_bytes each, the last one less: a WebGPU buffer has a limit. */
typedef struct wk_webgpu_buffer {
    wk_buffer base;
    uint64_t segment_bytes;
    uint32_t n_pieces;
    wk_piece pieces[];
} wk_webgpu_buffer;

wick_status wk_webgpu_alloc(wk_backend_device *dev, uint64_t size, uint64_t granule,
                            wk_buffer **out, wick_error *err);
/* The same in one block, which no other buffer shares. */
wick_status wk_webgpu_alloc_block(wk_backend_device *dev, uint64_t size, wk_buffer **out,
                                  wick_error *err);
uint64_t wk_webgpu_footprint(const wk_backend_device *dev, uint64_t size, uint64_t granule);
void wk_webgpu_free(wk_backend_device *dev, wk_buffer *buf);
/* A buffer in the same pieces without memory, for rehearsals. */
wick_status wk_webgpu_stand_in(wk_backend_device *dev, uint64_t size, uint64_t granule,
                               wk_buffer **out, wick_error *err);
/* Of an op that is encoded or rehearsed. */
wick_status wk_webgpu_temp(wk_backend_device *dev, uint64_t size, wk_buffer **out, wick_error *err);
/* The block of bytes [offset, offset + size) of a buffer, and where in it they begin; NULL where
 * they are not in one. */
wk_block *wk_webgpu_locate(const wk_buffer *buf, uint64_t offset, uint64_t size, uint64_t *at);

#endif
