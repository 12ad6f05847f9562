/* core/cursor.c: see cursor.h. */
#include "core/cursor.h"

#include <string.h>

bool wk_accept(wk_cursor *c, const char *word) {
    const size_t size = strlen(word);
    if (c->text.size - c->at < size || memcmp(c->text.text + c->at, word, size) != 0) return false;
    c->at += size;
    return true;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool wk_accept_hex(wk_cursor *c, size_t n, uint32_t *number) {
    *number = 0;
    if (c->text.size - c->at < n) return false;
    for (size_t i = 0; i < n; i++) {
        const int value = hex_value(c->text.text[c->at + i]);
        if (value < 0) return false;
        *number = *number << 4 | (uint32_t)value;
    }
    c->at += n;
    return true;
}
