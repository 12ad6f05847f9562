/* core/str.c: strings with a length, and a growing buffer. */
#include "core/str.h"

#include <assert.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_CAPACITY = 64 };

wk_str wk_str_of(const char *terminated) { return (wk_str){terminated, strlen(terminated)}; }

bool wk_str_equal(wk_str a, wk_str b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

bool wk_str_is(wk_str a, const char *terminated) { return wk_str_equal(a, wk_str_of(terminated)); }

/* After a *, the shortest text that lets the rest match: only the last * is ever tried again. */
bool wk_str_matches(wk_str glob, wk_str text) {
    size_t g = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.size) {
        if (g < glob.size && glob.text[g] == '*') {
            star = g++;
            from = t;
        } else if (g < glob.size && (glob.text[g] == '?' || glob.text[g] == text.text[t])) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (g < glob.size && glob.text[g] == '*') g++;
    return g == glob.size;
}

wk_shown wk_str_show(wk_str text) {
    wk_shown out;
    size_t n = 0;
    for (; n < text.size && n + 4 < sizeof out.text; n++) {
        const char c = text.text[n];
        out.text[n] = c >= 32 && c < 127 ? c : '?';
    }
    snprintf(out.text + n, sizeof out.text - n, "%s", n < text.size ? "..." : "");
    return out;
}

size_t wk_utf8_encode(uint32_t code, char out[4]) {
    assert(code < 0xD800 || code > 0xDFFF); /* not a surrogate */
    assert(code <= 0x10FFFF);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> size & 0xFF) | code); /* size leading ones */
    return size;
}

/* Unicode standard, table 3-7: well-formed UTF-8 byte sequences. */
size_t wk_utf8_size(const char *text, size_t size, size_t *bad) {
    assert(size > 0);
    const unsigned char *const b = (const unsigned char *)text;
    *bad = 1;
    if (b[0] < 0x80) return 1;
    if (b[0] < 0xC2 || b[0] > 0xF4) return 0;
    const size_t length = b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xBF; /* of the second byte */
    if (b[0] == 0xE0) low = 0xA0;          /* else an overlong form */
    if (b[0] == 0xED) high = 0x9F;         /* else a surrogate */
    if (b[0] == 0xF0) low = 0x90;          /* else an overlong form */
    if (b[0] == 0xF4) high = 0x8F;         /* else beyond U+10FFFF */
    for (; *bad < length; (*bad)++) {
        if (*bad >= size || b[*bad] < low || b[*bad] > high) return 0;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

bool wk_str_is_utf8(wk_str text, size_t *bad) {
    size_t step, replaced;
    for (*bad = 0; *bad < text.size; *bad += step) {
        step = wk_utf8_size(text.text + *bad, text.size - *bad, &replaced);
        if (step == 0) return false;
    }
    return true;
}

void wk_strbuf_init(wk_strbuf *buf, wk_heap *heap) { *buf = (wk_strbuf){.heap = heap}; }

void wk_strbuf_release(wk_strbuf *buf) {
    wk_free(buf->heap, buf->data, buf->capacity);
    wk_strbuf_init(buf, buf->heap);
}

void wk_strbuf_clear(wk_strbuf *buf) {
    buf->size = 0;
    buf->failed = false;
    if (buf->data) buf->data[0] = '\0';
}

bool wk_strbuf_reserve(wk_strbuf *buf, size_t extra) {
    if (buf->failed) return false;
    assert(buf->size == 0 || buf->size < buf->capacity);
    /* One byte more than the contents, for the terminating zero. */
    if (buf->capacity > buf->size && buf->capacity - buf->size > extra) return true;
    size_t capacity = buf->capacity < SIZE_MAX / 2 ? 2 * buf->capacity : SIZE_MAX;
    if (capacity < LEAST_CAPACITY) capacity = LEAST_CAPACITY;
    char *data = NULL;
    if (extra < SIZE_MAX - buf->size) {
        if (capacity <= buf->size + extra) capacity = buf->size + extra + 1;
        data = wk_realloc(buf->heap, buf->data, buf->capacity, capacity);
    }
    if (!data) {
        buf->failed = true;
        return false;
    }
    data[buf->size] = '\0';
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void wk_strbuf_append(wk_strbuf *buf, const void *bytes, size_t size) {
    assert(bytes || size == 0);
    if (!wk_strbuf_reserve(buf, size)) return;
    if (size > 0) memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void wk_strbuf_text(wk_strbuf *buf, const char *terminated) {
    wk_strbuf_append(buf, terminated, strlen(terminated));
}

void wk_strbuf_put(wk_strbuf *buf, uint64_t value, int n_bytes) {
    char bytes[8];
    assert(n_bytes <= (int)sizeof bytes);
    for (int i = 0; i < n_bytes; i++) bytes[i] = (char)(value >> (8 * i) & 255);
    wk_strbuf_append(buf, bytes, (size_t)n_bytes);
}

void wk_strbuf_format(wk_strbuf *buf, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    if (length < 0) buf->failed = true;
    if (!wk_strbuf_reserve(buf, length < 0 ? 0 : (size_t)length)) return;
    va_start(arguments, format);
    vsnprintf(buf->data + buf->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buf->size += (size_t)length;
}

void wk_use_point(char *text) {
    const char *const point = localeconv()->decimal_point;
    const size_t size = strlen(point);
    char *const at = size > 0 ? strstr(text, point) : NULL;
    if (at == NULL || strcmp(point, ".") == 0) return;
    *at = '.';
    memmove(at + 1, at + size, strlen(at + size) + 1);
}

void wk_strbuf_number(wk_strbuf *buf, double value, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    wk_use_point(text);
    wk_strbuf_text(buf, text);
}
