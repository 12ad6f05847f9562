/* core/cursor.h: a place in a text that is read byte by byte: what readers of JSON, grammars and
 * patterns share. */
#ifndef WK_CORE_CURSOR_H
#define WK_CORE_CURSOR_H

#include "core/str.h"

typedef struct wk_cursor {
    wk_str text;
    size_t at;
} wk_cursor;

/* The byte here; -1 at the end. */
static inline int wk_peek(const wk_cursor *c) {
    return c->at < c->text.size ? (unsigned char)c->text.text[c->at] : -1;
}

/* Steps over word if it stands here. */
bool wk_accept(wk_cursor *c, const char *word);
/* A number of n hexadecimal digits, at most 8. False: there are fewer, and the cursor stays. */
bool wk_accept_hex(wk_cursor *c, size_t n, uint32_t *number);

#endif
