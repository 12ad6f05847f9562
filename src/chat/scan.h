/* chat/scan.h: texts that are read from their beginning. */
#ifndef WK_CHAT_SCAN_H
#define WK_CHAT_SCAN_H

#include "core/str.h"

#include <string.h>

static inline wk_str wk_scan_after(wk_str text, size_t n) {
    return (wk_str){text.text + n, text.size - n};
}

static inline bool wk_scan_is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline wk_str wk_scan_trim(wk_str text) {
    while (text.size > 0 && wk_scan_is_blank(text.text[0])) text = wk_scan_after(text, 1);
    while (text.size > 0 && wk_scan_is_blank(text.text[text.size - 1])) text.size--;
    return text;
}

/* Where word begins in text; its size: nowhere. */
static inline size_t wk_scan_find(wk_str text, const char *word) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.size; i++)
        if (memcmp(text.text + i, word, n) == 0) return i;
    return text.size;
}

/* Takes word off the beginning, if it is there. */
static inline bool wk_scan_take(wk_str *text, const char *word) {
    const size_t n = strlen(word);
    if (text->size < n || memcmp(text->text, word, n) != 0) return false;
    *text = wk_scan_after(*text, n);
    return true;
}

/* Takes all up to word, and word. False: it does not come. */
static inline bool wk_scan_take_until(wk_str *text, const char *word, wk_str *before) {
    const size_t at = wk_scan_find(*text, word);
    if (at == text->size) return false;
    *before = (wk_str){text->text, at};
    *text = wk_scan_after(*text, at + strlen(word));
    return true;
}

#endif
