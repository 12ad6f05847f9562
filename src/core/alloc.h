/* core/alloc.h: the one place memory comes from: a hook, sized frees, counters.
 *
 * A heap belongs to one thread at a time. Everything that allocates takes a wk_heap. */
#ifndef WK_CORE_ALLOC_H
#define WK_CORE_ALLOC_H

#include <wick/base.h>

typedef struct wk_heap {
    wick_allocator hook;
    uint64_t n_allocations; /* calls of hook.allocate since the heap was made, */
    uint64_t n_refused;     /* and those that gave nothing */
    uint64_t live_bytes, peak_bytes;
} wk_heap;

/* hook NULL (or without functions): malloc and free. */
void wk_heap_init(wk_heap *heap, const wick_allocator *hook);

/* NULL when memory is short. size 0 gives NULL. */
void *wk_alloc(wk_heap *heap, size_t size);
void *wk_alloc_zeroed(wk_heap *heap, size_t size);
/* n * size, checked for overflow (then NULL), zeroed. */
void *wk_alloc_array(wk_heap *heap, size_t n, size_t size);
/* Moves to a block of new_size; on failure NULL and the old block stays. memory may be NULL. */
void *wk_realloc(wk_heap *heap, void *memory, size_t old_size, size_t new_size);
/* size as it was asked for; memory may be NULL. */
void wk_free(wk_heap *heap, void *memory, size_t size);

/* Aligned to WK_ALIGNMENT, for tensor data and panels; freed with wk_free_aligned. */
#define WK_ALIGNMENT 64
void *wk_alloc_aligned(wk_heap *heap, size_t size);
void wk_free_aligned(wk_heap *heap, void *memory, size_t size);

#endif
