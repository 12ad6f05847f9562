/* memory.c: the memory of the wasm module, which grows by pages of 64 KiB and never shrinks. */
#include "heap.h"

extern unsigned char __heap_base; /* the linker's: after data and stack */

enum { PAGE = 65536 };

unsigned char *wick_memory_begin(void) { return &__heap_base; }

unsigned char *wick_memory_end(void) {
    return (unsigned char *)(__builtin_wasm_memory_size(0) * (size_t)PAGE);
}

int wick_memory_grow(size_t bytes) {
    const size_t pages = bytes / PAGE + (bytes % PAGE > 0);
    return __builtin_wasm_memory_grow(0, pages) != (size_t)-1;
}
