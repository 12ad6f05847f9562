/* core/arena.h: many small allocations that are freed together. */
#ifndef WK_CORE_ARENA_H
#define WK_CORE_ARENA_H

#include "core/alloc.h"

typedef struct wk_arena_chunk wk_arena_chunk;

/* Grows by chunks taken from the heap; pointers stay valid until wk_arena_release. */
typedef struct wk_arena {
    wk_heap *heap;
    wk_arena_chunk *chunks; /* newest first */
    size_t chunk_size;      /* least size of the next chunk */
    uint64_t bytes;         /* handed out */
} wk_arena;

/* chunk_size 0: 64 KiB. Allocates nothing yet. */
void wk_arena_init(wk_arena *arena, wk_heap *heap, size_t chunk_size);
/* Frees everything; the arena may be used again. */
void wk_arena_release(wk_arena *arena);
/* Aligned to 16. NULL when memory is short; size 0 gives a valid pointer. Not zeroed. */
void *wk_arena_alloc(wk_arena *arena, size_t size);
/* n * size checked for overflow, zeroed. */
void *wk_arena_array(wk_arena *arena, size_t n, size_t size);

#endif
