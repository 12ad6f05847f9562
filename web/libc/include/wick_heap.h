/* wick_heap.h: what no C library tells: how much of the memory malloc has is free. */
#ifndef WICK_LIBC_WICK_HEAP_H
#define WICK_LIBC_WICK_HEAP_H

#include <stddef.h>

/* Bytes, in all free blocks together. */
size_t wick_heap_free_bytes(void);

#endif
