/* string.c: bytes and strings. Copies and fills are one instruction of wasm each (bulk memory); the
 * rest is as simple as it can be, for nothing here is on a hot path. */
#include <string.h>

#include <stdlib.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    return __builtin_memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n) { return __builtin_memmove(to, from, n); }

void *memset(void *to, int byte, size_t n) { return __builtin_memset(to, byte, n); }

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

void *memchr(const void *bytes, int byte, size_t n) {
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < n; i++) {
        if (at[i] == (unsigned char)byte) return (void *)&at[i];
    }
    return NULL;
}

size_t strlen(const char *text) {
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

size_t strnlen(const char *text, size_t limit) {
    const char *const end = memchr(text, 0, limit);
    return end ? (size_t)(end - text) : limit;
}

char *strcat(char *restrict to, const char *restrict from) {
    memcpy(to + strlen(to), from, strlen(from) + 1);
    return to;
}

int strncmp(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];
        if (x != y) return x < y ? -1 : 1;
        if (x == 0) break;
    }
    return 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, (size_t)-1); }

char *strchr(const char *text, int c) {
    for (;; text++) {
        if (*text == (char)c) return (char *)text;
        if (*text == 0) return NULL;
    }
}

char *strrchr(const char *text, int c) {
    const char *last = NULL;
    for (;; text++) {
        if (*text == (char)c) last = text;
        if (*text == 0) return (char *)last;
    }
}

char *strstr(const char *text, const char *part) {
    const size_t n = strlen(part);
    if (n == 0) return (char *)text;
    while ((text = strchr(text, part[0])) != NULL) {
        if (strncmp(text, part, n) == 0) return (char *)text;
        text++;
    }
    return NULL;
}

size_t strspn(const char *text, const char *set) {
    size_t n = 0;
    while (text[n] && strchr(set, text[n])) n++;
    return n;
}

size_t strcspn(const char *text, const char *set) {
    size_t n = 0;
    while (text[n] && !strchr(set, text[n])) n++;
    return n;
}

char *strpbrk(const char *text, const char *set) {
    const char *const at = text + strcspn(text, set);
    return *at ? (char *)at : NULL;
}

_Noreturn void abort(void) { __builtin_trap(); }
