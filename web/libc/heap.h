/* heap.h: what the heap asks of the module's memory. */
#ifndef WICK_LIBC_HEAP_H
#define WICK_LIBC_HEAP_H

#include <stddef.h>

/* Where the heap begins. */
unsigned char *wick_memory_begin(void);
/* Where the module's memory ends now. */
unsigned char *wick_memory_end(void);
/* Makes it larger by at least this many bytes, all zero. False: not possible. */
int wick_memory_grow(size_t bytes);

#endif
