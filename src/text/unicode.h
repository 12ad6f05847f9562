/* text/unicode.h: UTF-8 and character classes.
 *
 * UTF-8 as in the Unicode Standard, section 3.9 (table 3-7): no surrogates, no overlong forms,
 * nothing above U+10FFFF. */
#ifndef WK_TEXT_UNICODE_H
#define WK_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What pre-tokenizers tell apart: general categories L* and N*, and White_Space. */
typedef enum wk_char_class {
    WK_CHAR_OTHER,
    WK_CHAR_LETTER,
    WK_CHAR_NUMBER,
    WK_CHAR_SPACE,
} wk_char_class;

/* Two stages: index[code / 256] names a block, whose two-bit classes lie 32 to a word, the first in
 * the lowest bits. Code points beyond the index are of class other. */
extern const uint32_t wk_unicode_index_size;
extern const uint8_t wk_unicode_index[];
extern const uint64_t wk_unicode_blocks[][8];

static inline wk_char_class wk_char_class_of(uint32_t code) {
    if (code >> 8 >= wk_unicode_index_size) return WK_CHAR_OTHER;
    const uint64_t *block = wk_unicode_blocks[wk_unicode_index[code >> 8]];
    return (wk_char_class)(block[(code & 255) >> 5] >> (2 * (code & 31)) & 3);
}

/* Code point of a byte that belongs to no UTF-8 sequence; its class is other. */
#define WK_CHAR_INVALID UINT32_MAX

/* Decodes the first character of text (size > 0) and returns how many bytes it has. A byte that
 * begins no whole sequence stands alone: 1, WK_CHAR_INVALID. */
size_t wk_utf8_decode(const char *text, size_t size, uint32_t *code);

/* Writes a code point (a Unicode scalar value) as UTF-8 and returns the number of bytes. */
size_t wk_utf8_encode(uint32_t code, char out[4]);

typedef enum wk_utf8_state {
    WK_UTF8_INVALID,  /* can never become a sequence */
    WK_UTF8_PARTIAL,  /* the beginning of one */
    WK_UTF8_COMPLETE, /* exactly one */
} wk_utf8_state;

/* What 1 to 4 bytes are as a whole. */
wk_utf8_state wk_utf8_classify(const unsigned char *bytes, size_t size);

#endif
