/* tests/checked_heap.h: an allocator hook for tests. It refuses on demand, and it notes releases
 * whose size is not the one that was asked for. */
#ifndef CHECKED_HEAP_H
#define CHECKED_HEAP_H

#include "core/alloc.h"

#include <stdlib.h>

typedef struct checked_heap {
    wk_heap heap;
    uint64_t n_allowed; /* allocations before it refuses */
    bool refuses_once;  /* one of them, and none that follows */
    uint64_t n_refused;
    uint64_t n_live;
    uint64_t n_wrong_sizes;
} checked_heap;

/* The size stands in front of the memory; the header keeps the alignment of malloc. */
typedef union checked_header {
    size_t size;
    max_align_t alignment;
} checked_header;

static inline void *checked_allocate(void *user, size_t size) {
    checked_heap *const checked = user;
    if (checked->n_allowed == 0) {
        checked->n_refused++;
        if (checked->refuses_once) checked->n_allowed = UINT64_MAX;
        return NULL;
    }
    checked_header *const header = malloc(sizeof *header + size);
    if (!header) return NULL;
    checked->n_allowed--;
    checked->n_live++;
    header->size = size;
    return header + 1;
}

static inline void checked_release(void *user, void *memory, size_t size) {
    checked_heap *const checked = user;
    checked_header *const header = (checked_header *)memory - 1;
    checked->n_live--;
    if (header->size != size) checked->n_wrong_sizes++;
    free(header);
}

/* The heap is at &checked->heap. */
static inline void checked_heap_init(checked_heap *checked, uint64_t n_allowed) {
    *checked = (checked_heap){.n_allowed = n_allowed};
    wk_heap_init(&checked->heap, &(wick_allocator){.allocate = checked_allocate,
                                                   .release = checked_release,
                                                   .user = checked});
}

/* Everything was given back, with the right sizes. */
static inline bool checked_heap_is_clean(const checked_heap *checked) {
    return checked->n_live == 0 && checked->n_wrong_sizes == 0 && checked->heap.live_bytes == 0;
}

#endif
