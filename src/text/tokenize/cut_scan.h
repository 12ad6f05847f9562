/* text/tokenize/cut_scan.h: what the scanners of pre-tokenizers are made of. */
#ifndef WK_TEXT_TOKENIZE_CUT_SCAN_H
#define WK_TEXT_TOKENIZE_CUT_SCAN_H

#include "core/str.h"
#include "text/unicode/unicode.h"

/* A character of a text; beyond its end: size 0, of no class. */
typedef struct wk_scanned {
    uint32_t code;
    uint32_t classes; /* one bit: 1 << wk_char_class */
    size_t size;
} wk_scanned;

static inline wk_scanned wk_scan(wk_str text, size_t at) {
    if (at >= text.size) return (wk_scanned){.size = 0};
    wk_scanned c = {.code = (unsigned char)text.text[at], .size = 1};
    if (c.code >= 0x80) c.size = wk_utf8_decode(text.text + at, text.size - at, &c.code);
    c.classes = UINT32_C(1) << wk_char_class_of(c.code);
    return c;
}

/* The end of the run of characters of these classes that begins at. */
static inline size_t wk_skip(wk_str text, size_t at, uint32_t classes) {
    for (;;) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & classes)) return at;
        at += c.size;
    }
}

static inline bool wk_is_line_end(uint32_t code) { return code == '\r' || code == '\n'; }

/* The first fragment where match gives the bytes that a pattern matches at the beginning of text,
 * or 0: that match, or everything before the next one. match must take time in proportion to what
 * it matches. */
static inline size_t wk_cut_by(wk_str text, size_t (*match)(wk_str text)) {
    const size_t matched = match(text);
    if (matched > 0) return matched;
    size_t at = wk_scan(text, 0).size;
    while (at < text.size && match((wk_str){text.text + at, text.size - at}) == 0) {
        at += wk_scan(text, at).size;
    }
    return at;
}

#endif
