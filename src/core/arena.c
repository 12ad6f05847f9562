/* core/arena.c: chunks from the heap, handed out front to back. */
#include "core/arena.h"

#include "core/compiler.h"

#include <assert.h>
#include <string.h>

enum { ARENA_ALIGNMENT = 16, DEFAULT_CHUNK_SIZE = 64 * 1024 };

/* The header of a chunk; the bytes handed out follow it. */
struct wk_arena_chunk {
    wk_arena_chunk *next;
    size_t size; /* of the block, this header included */
    size_t used; /* of the block, this header included; its address + used is aligned */
};

void wk_arena_init(wk_arena *arena, wk_heap *heap, size_t chunk_size) {
    *arena = (wk_arena){.heap = heap, .chunk_size = chunk_size ? chunk_size : DEFAULT_CHUNK_SIZE};
}

void wk_arena_release(wk_arena *arena) {
    wk_arena_chunk *chunk = arena->chunks;
    while (chunk) {
        wk_arena_chunk *const next = chunk->next;
        wk_permit(chunk, chunk->size);
        wk_free(arena->heap, chunk, chunk->size);
        chunk = next;
    }
    arena->chunks = NULL;
    arena->bytes = 0;
}

static wk_arena_chunk *make_chunk(wk_arena *arena, size_t payload) {
    const size_t overhead = sizeof(wk_arena_chunk) + ARENA_ALIGNMENT - 1;
    if (payload > SIZE_MAX - overhead) return NULL;
    wk_arena_chunk *const chunk = wk_alloc(arena->heap, payload + overhead);
    if (!chunk) return NULL;
    const uintptr_t end = (uintptr_t)chunk + sizeof *chunk;
    const size_t padding = (size_t)(-end % ARENA_ALIGNMENT);
    *chunk = (wk_arena_chunk){.size = payload + overhead, .used = sizeof *chunk + padding};
    wk_forbid((char *)chunk + chunk->used, chunk->size - chunk->used);
    return chunk;
}

/* Takes room bytes, the red zone at their end among them; size of them may be used. */
static void *take(wk_arena *arena, wk_arena_chunk *chunk, size_t room, size_t size) {
    assert(size <= room && room <= chunk->size - chunk->used);
    void *const memory = (char *)chunk + chunk->used;
    chunk->used += room;
    arena->bytes += room - WK_RED_ZONE;
    wk_permit(memory, size);
    return memory;
}

void *wk_arena_alloc(wk_arena *arena, size_t size) {
    if (size > SIZE_MAX - ARENA_ALIGNMENT - WK_RED_ZONE) return NULL;
    if (size == 0) size = 1;
    const size_t aligned = (size + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
    const size_t room = aligned + WK_RED_ZONE;

    wk_arena_chunk *const newest = arena->chunks;
    if (newest && newest->size - newest->used >= room) return take(arena, newest, room, size);

    /* A large allocation gets a chunk of its own after the newest, whose rest stays usable. */
    const bool is_large = room > arena->chunk_size / 4;
    wk_arena_chunk *const chunk = make_chunk(arena, is_large ? room : arena->chunk_size);
    if (!chunk) return NULL;
    wk_arena_chunk **const link = is_large && newest ? &newest->next : &arena->chunks;
    chunk->next = *link;
    *link = chunk;
    return take(arena, chunk, room, size);
}

void *wk_arena_array(wk_arena *arena, size_t n, size_t size) {
    if (size != 0 && n > SIZE_MAX / size) return NULL;
    void *const memory = wk_arena_alloc(arena, n * size);
    if (memory) memset(memory, 0, n * size);
    return memory;
}
