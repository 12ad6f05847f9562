/* text/tokenize/byte_level.c: between bytes and the characters that byte-level vocabularies write
 * for them.
 */
#include "text/tokenize/byte_level.h"

#include <string.h>

static bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

void wk_byte_alphabet_init(wk_byte_alphabet *alphabet) {
    for (int i = 0; i < WK_BYTE_ALPHABET_END; i++) alphabet->byte_of[i] = -1;
    int next = 0x100;
    for (int byte = 0; byte < 256; byte++) {
        const int code = stands_for_itself(byte) ? byte : next++;
        alphabet->char_of[byte] = (uint16_t)code;
        alphabet->byte_of[code] = (int16_t)byte;
    }
}

static size_t copy_as_is(wk_str token, char *out) {
    memcpy(out, token.text, token.size);
    return token.size;
}

size_t wk_byte_level_decode(const wk_byte_alphabet *alphabet, wk_str token, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < token.size;) {
        uint32_t code = (unsigned char)token.text[at++];
        if (code >= 0x80) { /* the alphabet has characters of one byte and of two */
            const unsigned char next = at < token.size ? (unsigned char)token.text[at++] : 0;
            if (code < 0xC2 || code > 0xDF || (next & 0xC0) != 0x80) return copy_as_is(token, out);
            code = (code & 0x1F) << 6 | (next & 0x3F);
        }
        if (code >= WK_BYTE_ALPHABET_END || alphabet->byte_of[code] < 0) {
            return copy_as_is(token, out);
        }
        out[n++] = (char)alphabet->byte_of[code];
    }
    return n;
}
