/* stdlib.h: memory, numbers from text, sorting. */
#ifndef WICK_LIBC_STDLIB_H
#define WICK_LIBC_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);

double strtod(const char *text, char **end);
long strtol(const char *text, char **end, int base);
int atoi(const char *text);
unsigned long strtoul(const char *text, char **end, int base);

/* Heapsort: equal items come out in any order. */
void qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));

static inline int abs(int x) { return x < 0 ? -x : x; }

_Noreturn void abort(void);

#endif
