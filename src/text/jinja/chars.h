/* text/jinja/chars.h: characters as Python's str sees them. */
#ifndef WK_TEXT_JINJA_CHARS_H
#define WK_TEXT_JINJA_CHARS_H

#include "core/str.h"

/* str.isspace of a code point. */
bool wk_jis_space(uint32_t code);
/* A letter or a digit of any kind. */
bool wk_jis_word(uint32_t code);
/* Bytes of the white space character that text begins with, or ends with; 0: none. */
size_t wk_jspace_at_begin(wk_str text);
size_t wk_jspace_at_end(wk_str text);
/* Code points in valid UTF-8. */
size_t wk_jcount_chars(wk_str text);
/* The byte at which character n begins; text.size where there are no more. */
size_t wk_jchar_offset(wk_str text, size_t n);
/* Decodes the character at *at and steps over it. */
uint32_t wk_jnext_char(wk_str text, size_t *at);

#endif
