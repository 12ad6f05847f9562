/* core/alloc.c: the heap: every allocation goes through the hook and is counted. */
#include "core/alloc.h"

#include "core/compiler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void default_release(void *user, void *memory, size_t size) {
    (void)user, (void)size;
    assert(wk_malloc_size_is(memory, size));
    free(memory);
}

void wk_heap_init(wk_heap *heap, const wick_allocator *hook) {
    const bool has_hook = hook && hook->allocate && hook->release;
    *heap = (wk_heap){
        .hook = has_hook
                    ? *hook
                    : (wick_allocator){.allocate = default_allocate, .release = default_release},
    };
}

void *wk_alloc(wk_heap *heap, size_t size) {
    if (size == 0) return NULL;
    void *const memory = heap->hook.allocate(heap->hook.user, size);
    heap->n_refused += !memory;
    if (!memory) return NULL;
    heap->n_allocations++;
    heap->live_bytes += size;
    if (heap->live_bytes > heap->peak_bytes) heap->peak_bytes = heap->live_bytes;
    return memory;
}

void *wk_alloc_zeroed(wk_heap *heap, size_t size) {
    void *const memory = wk_alloc(heap, size);
    if (memory) memset(memory, 0, size);
    return memory;
}

void *wk_alloc_array(wk_heap *heap, size_t n, size_t size) {
    if (size != 0 && n > SIZE_MAX / size) return NULL;
    return wk_alloc_zeroed(heap, n * size);
}

void *wk_realloc(wk_heap *heap, void *memory, size_t old_size, size_t new_size) {
    assert(!memory || old_size > 0);
    void *const moved = wk_alloc(heap, new_size);
    if (!moved || !memory) return moved;
    memcpy(moved, memory, old_size < new_size ? old_size : new_size);
    wk_free(heap, memory, old_size);
    return moved;
}

void wk_free(wk_heap *heap, void *memory, size_t size) {
    if (!memory) return;
    assert(size > 0); /* only a NULL block has size 0 */
    assert(heap->live_bytes >= size);
    heap->live_bytes -= size;
    heap->hook.release(heap->hook.user, memory, size);
}

/* The block is WK_ALIGNMENT bytes larger than asked for, and the byte before the aligned address
 * holds the distance of that address from the block's beginning: 1 to WK_ALIGNMENT. */
void *wk_alloc_aligned(wk_heap *heap, size_t size) {
    if (size == 0 || size > SIZE_MAX - WK_ALIGNMENT) return NULL;
    unsigned char *const block = wk_alloc(heap, size + WK_ALIGNMENT);
    if (!block) return NULL;
    const size_t shift = WK_ALIGNMENT - (size_t)((uintptr_t)block % WK_ALIGNMENT);
    block[shift - 1] = (unsigned char)shift;
    return block + shift;
}

void wk_free_aligned(wk_heap *heap, void *memory, size_t size) {
    if (!memory) return;
    unsigned char *const aligned = memory;
    assert(aligned[-1] >= 1 && aligned[-1] <= WK_ALIGNMENT);
    wk_free(heap, aligned - aligned[-1], size + WK_ALIGNMENT);
}
