/* heap.c: malloc by two-level segregated fit (Masmano, Ripoll, Crespo, Real: TLSF, 2004): free
 * blocks in lists by size class, two bitmaps that say which lists have any, neighbours joined at
 * once. Both calls take constant time and what is lost to fragments stays small, which matters in a
 * memory that never shrinks. One thread. */
#include "heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wick_heap.h>

/* A block begins with its head; a free one goes on with its links. Payloads are aligned to ALIGN,
 * block sizes are multiples of it. */
typedef struct block {
    struct block *before; /* neighbour in memory; NULL: the first */
    size_t size;          /* of the whole block, and IS_FREE */
    struct block *next_free, *last_free;
} block;

enum {
    ALIGN = 16,
    HEAD = offsetof(block, next_free),
    LEAST = (sizeof(block) + ALIGN - 1) / ALIGN * ALIGN,
    IS_FREE = 1,
    FINE_BITS = 4, /* classes for each power of two: 16 */
    FINE = 1 << FINE_BITS,
    COARSE = 8 * sizeof(size_t),
    MOST_TRIED = 16,
    GROWTH = 1 << 20, /* asked for at least, so that memory does not grow page by page */
};

static struct {
    block *last; /* after the last real block: in use, of no size */
    size_t free_bytes;
    size_t coarse;
    uint16_t fine[COARSE];
    block *lists[COARSE][FINE];
} heap;

static size_t size_of(const block *b) { return b->size & ~(size_t)IS_FREE; }
static bool is_free(const block *b) { return (b->size & IS_FREE) != 0; }
static block *after(block *b) { return (block *)((char *)b + size_of(b)); }

static int top_bit(size_t x) {
    return (int)(8 * sizeof(unsigned long long)) - 1 - __builtin_clzll(x);
}

/* The class whose blocks have at least `size`'s class's least size. */
static void class_of(size_t size, int *coarse, int *fine) {
    *coarse = top_bit(size);
    *fine = (int)(size >> (*coarse - FINE_BITS)) & (FINE - 1);
}

static void put(block *b) {
    int coarse, fine;
    class_of(b->size, &coarse, &fine);
    heap.free_bytes += b->size;
    b->size |= IS_FREE;
    b->last_free = NULL;
    b->next_free = heap.lists[coarse][fine];
    if (b->next_free) b->next_free->last_free = b;
    heap.lists[coarse][fine] = b;
    heap.coarse |= (size_t)1 << coarse;
    heap.fine[coarse] |= (uint16_t)(1 << fine);
}

static void take(block *b) {
    int coarse, fine;
    b->size = size_of(b);
    heap.free_bytes -= b->size;
    class_of(b->size, &coarse, &fine);
    if (b->next_free) b->next_free->last_free = b->last_free;
    if (b->last_free) {
        b->last_free->next_free = b->next_free;
        return;
    }
    heap.lists[coarse][fine] = b->next_free;
    if (b->next_free) return;
    heap.fine[coarse] &= (uint16_t)~(1 << fine);
    if (heap.fine[coarse] == 0) heap.coarse &= ~((size_t)1 << coarse);
}

/* A block of at least this many bytes, still in its list; NULL: none. */
static block *find(size_t size) {
    int coarse, fine;
    /* In the size's own class only some are large enough; but a hole that such a block left is
     * there, and would never be filled again. */
    class_of(size, &coarse, &fine);
    block *own = heap.lists[coarse][fine];
    for (int i = 0; own && i < MOST_TRIED; i++, own = own->next_free)
        if (size_of(own) >= size) return own;
    /* Rounded up to the next class, so that any block of the class is. */
    class_of(size + ((size_t)1 << (top_bit(size) - FINE_BITS)) - 1, &coarse, &fine);
    unsigned in_row = heap.fine[coarse] & ~0u << fine;
    if (in_row == 0) {
        const size_t larger = coarse + 1 < COARSE ? heap.coarse & ~(size_t)0 << (coarse + 1) : 0;
        if (larger == 0) return NULL;
        coarse = __builtin_ctzll(larger);
        in_row = heap.fine[coarse];
    }
    return heap.lists[coarse][__builtin_ctz(in_row)];
}

/* Joins a block that is in no list with free neighbours and puts the whole in its list. */
static void release(block *b) {
    if (b->before && is_free(b->before)) {
        block *const before = b->before;
        take(before);
        before->size += b->size;
        b = before;
    }
    if (is_free(after(b))) {
        block *const next = after(b);
        take(next);
        b->size += next->size;
    }
    after(b)->before = b;
    put(b);
}

/* [begin, end) becomes one block that is in no list, with a new last one after it. */
static block *block_make(unsigned char *begin, unsigned char *end, block *before) {
    block *const b = (block *)begin;
    b->before = before;
    b->size = (size_t)(end - begin) - HEAD;
    b->size -= b->size % ALIGN;
    heap.last = after(b);
    heap.last->before = b;
    heap.last->size = 0;
    return b;
}

static bool grow(size_t size) {
    unsigned char *begin = (unsigned char *)heap.last;
    if (!begin) { /* where the first block's payload will be aligned */
        const uintptr_t base = (uintptr_t)wick_memory_begin() + HEAD + ALIGN - 1;
        begin = wick_memory_begin() + (base - base % ALIGN - HEAD - (uintptr_t)wick_memory_begin());
    }
    const size_t wanted = size + HEAD + ALIGN;
    if (wanted > (size_t)(wick_memory_end() - begin) &&
        !wick_memory_grow(wanted > GROWTH ? wanted : GROWTH) && !wick_memory_grow(wanted))
        return false;
    release(block_make(begin, wick_memory_end(), heap.last ? heap.last->before : NULL));
    return true;
}

size_t wick_heap_free_bytes(void) { return heap.free_bytes; }

void *malloc(size_t bytes) {
    if (bytes > PTRDIFF_MAX - 2 * ALIGN) return NULL;
    size_t size = (bytes + HEAD + ALIGN - 1) / ALIGN * ALIGN;
    if (size < LEAST) size = LEAST;
    block *b = find(size);
    /* grow gives more than a class above size: the second search finds it. */
    if (!b && (!grow(size + (size >> FINE_BITS)) || !(b = find(size)))) return NULL;
    take(b);
    const size_t rest = b->size - size;
    if (rest >= LEAST) {
        b->size = size;
        block *const tail = after(b);
        tail->before = b;
        tail->size = rest;
        after(tail)->before = tail;
        put(tail);
    }
    return (char *)b + HEAD;
}

void free(void *memory) {
    if (memory) release((block *)((char *)memory - HEAD));
}

void *calloc(size_t n, size_t size) {
    if (size > 0 && n > SIZE_MAX / size) return NULL;
    void *const memory = malloc(n * size);
    return memory != NULL ? memset(memory, 0, n * size) : NULL;
}

void *realloc(void *memory, size_t bytes) {
    if (memory == NULL) return malloc(bytes);
    const size_t size = size_of((block *)((char *)memory - HEAD)) - HEAD;
    if (bytes <= size) return memory;
    void *const moved = malloc(bytes);
    if (moved == NULL) return NULL;
    memcpy(moved, memory, size);
    free(memory);
    return moved;
}
