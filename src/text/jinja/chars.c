/* text/jinja/chars.c: characters as Python's str sees them. */
#include "text/jinja/chars.h"

#include "text/unicode/unicode.h"

bool wk_jis_space(uint32_t code) {
    return (code >= 0x1C && code <= 0x1F) || wk_char_class_of(code) == WK_CHAR_SPACE;
}

bool wk_jis_word(uint32_t code) {
    const int letters_and_numbers = WK_CHARS_LETTER | WK_CHARS_NUMBER;
    return (letters_and_numbers >> wk_char_class_of(code) & 1) != 0;
}

uint32_t wk_jnext_char(wk_str text, size_t *at) {
    uint32_t code;
    *at += wk_utf8_decode(text.text + *at, text.size - *at, &code);
    return code;
}

size_t wk_jspace_at_begin(wk_str text) {
    size_t at = 0;
    return text.size > 0 && wk_jis_space(wk_jnext_char(text, &at)) ? at : 0;
}

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

size_t wk_jspace_at_end(wk_str text) {
    if (text.size == 0) return 0;
    size_t at = text.size - 1;
    while (at > 0 && is_continuation(text.text[at])) at--;
    size_t end = at;
    return wk_jis_space(wk_jnext_char(text, &end)) && end == text.size ? text.size - at : 0;
}

size_t wk_jcount_chars(wk_str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) n += !is_continuation(text.text[i]);
    return n;
}

size_t wk_jchar_offset(wk_str text, size_t n) {
    size_t at = 0;
    for (; at < text.size; at++) {
        if (!is_continuation(text.text[at]) && n-- == 0) break;
    }
    return at;
}
