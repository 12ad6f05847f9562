/* text/byte_level.c: between bytes and the characters that byte-level vocabularies write for them.
 */
#include "text/byte_level.h"

#include "text/unicode.h"

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

/* Almost all characters of the alphabet are of one or two bytes. */
static size_t decode_char(wk_str token, size_t at, uint32_t *code) {
    const unsigned char lead = (unsigned char)token.text[at];
    *code = lead;
    if (lead < 0x80) return 1;
    const unsigned char next = at + 1 < token.size ? (unsigned char)token.text[at + 1] : 0;
    if (lead < 0xC2 || lead > 0xDF || (next & 0xC0) != 0x80) {
        return wk_utf8_decode(token.text + at, token.size - at, code);
    }
    *code = (lead & 0x1FU) << 6 | (next & 0x3FU);
    return 2;
}

size_t wk_byte_level_decode(const wk_byte_alphabet *alphabet, wk_str token, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < token.size;) {
        if (token.text[at] >= 0x21 && token.text[at] <= 0x7E) { /* most are themselves */
            out[n++] = token.text[at++];
            continue;
        }
        uint32_t code;
        at += decode_char(token, at, &code);
        if (code >= WK_BYTE_ALPHABET_END || alphabet->byte_of[code] < 0) {
            memcpy(out, token.text, token.size);
            return token.size;
        }
        out[n++] = (char)alphabet->byte_of[code];
    }
    return n;
}
