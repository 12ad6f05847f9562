/* core/str.h: strings with a length, and a growing buffer. */
#ifndef WK_CORE_STR_H
#define WK_CORE_STR_H

#include "core/alloc.h"
#include "core/compiler.h"

/* Not owned, not necessarily terminated; text may be NULL when size is 0. What is public has the
 * other name, so that the arrays of a file need no copy to be read. */
typedef wick_string wk_str;

wk_str wk_str_of(const char *terminated);
bool wk_str_equal(wk_str a, wk_str b);
bool wk_str_is(wk_str a, const char *terminated);
/* * stands for any characters, ? for one. */
bool wk_str_matches(wk_str glob, wk_str text);

/* Bytes of the UTF-8 character at text; 0 when there is none, and then *bad is the size of what
 * U+FFFD should stand for. size is at least 1. */
size_t wk_utf8_size(const char *text, size_t size, size_t *bad);
/* Where not, *bad is the first byte that is of no character. */
bool wk_str_is_utf8(wk_str text, size_t *bad);

/* Writes a code point (a Unicode scalar value) as UTF-8 and returns the number of bytes. */
size_t wk_utf8_encode(uint32_t code, char out[4]);

/* A text from a file as it can stand in a sentence: short and printable. */
typedef struct wk_shown {
    char text[80];
} wk_shown;
wk_shown wk_str_show(wk_str text);

/* Growing bytes. data is terminated by a zero byte that size does not count (data is NULL while
 * empty and never grown). The first failed growth sets failed; later appends then do nothing, so
 * one check at the end is enough. */
typedef struct wk_strbuf {
    wk_heap *heap;
    char *data;
    size_t size, capacity;
    bool failed;
} wk_strbuf;

void wk_strbuf_init(wk_strbuf *buf, wk_heap *heap);
void wk_strbuf_release(wk_strbuf *buf);
void wk_strbuf_clear(wk_strbuf *buf);                 /* keeps the memory */
bool wk_strbuf_reserve(wk_strbuf *buf, size_t extra); /* room for extra more bytes */
void wk_strbuf_append(wk_strbuf *buf, const void *bytes, size_t size);
void wk_strbuf_text(wk_strbuf *buf, const char *terminated);
/* The low n_bytes of value, 8 at most, little-endian. */
void wk_strbuf_put(wk_strbuf *buf, uint64_t value, int n_bytes);
void wk_strbuf_format(wk_strbuf *buf, const char *format, ...) WK_PRINTF(2, 3);

/* snprintf has the decimal point of the locale, which the program may have set: makes it ".". */
void wk_use_point(char *text);
/* By "%.*g", with "." in every locale. */
void wk_strbuf_number(wk_strbuf *buf, double value, int digits);

#endif
