/* text/tokenize/byte_level.h: GPT-2's alphabet of 256 characters, one for each byte.
 *
 * Printable Latin-1 characters stand for themselves; the other 68 bytes, in rising order, are
 * U+0100 and up (Radford et al., 2019). */
#ifndef WK_TEXT_TOKENIZE_BYTE_LEVEL_H
#define WK_TEXT_TOKENIZE_BYTE_LEVEL_H

#include "core/str.h"

enum { WK_BYTE_ALPHABET_END = 0x100 + 68 };

typedef struct wk_byte_alphabet {
    uint16_t char_of[256];
    int16_t byte_of[WK_BYTE_ALPHABET_END]; /* -1: no byte */
} wk_byte_alphabet;

void wk_byte_alphabet_init(wk_byte_alphabet *alphabet);

/* Writes the bytes that a token stands for, at most token.size, and returns their number. A token
 * with a character outside the alphabet was added as it is: it stands for itself. */
size_t wk_byte_level_decode(const wk_byte_alphabet *alphabet, wk_str token, char *out);

#endif
