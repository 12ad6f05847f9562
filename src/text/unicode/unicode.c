/* text/unicode/unicode.c: UTF-8 decoding and encoding, folding. */
#include "text/unicode/unicode.h"

#include <assert.h>

/* Bytes of the sequence that lead begins; 0: it begins none. */
static size_t sequence_size(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0; /* a continuation, or an overlong form */
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF5 ? 4 : 0;
}

/* The second byte carries all restrictions: overlong forms, surrogates, the end of Unicode. */
static bool second_byte_fits(unsigned char lead, unsigned char second) {
    switch (lead) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return (second & 0xC0) == 0x80;
    }
}

wk_utf8_state wk_utf8_classify(const unsigned char *bytes, size_t size) {
    assert(size >= 1 && size <= 4);
    const size_t whole = sequence_size(bytes[0]);
    if (size > whole) return WK_UTF8_INVALID;
    if (size >= 2 && !second_byte_fits(bytes[0], bytes[1])) return WK_UTF8_INVALID;
    for (size_t i = 2; i < size; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return WK_UTF8_INVALID;
    }
    return size == whole ? WK_UTF8_COMPLETE : WK_UTF8_PARTIAL;
}

size_t wk_utf8_decode(const char *text, size_t size, uint32_t *code) {
    assert(size > 0);
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80) {
        *code = bytes[0];
        return 1;
    }
    const size_t whole = sequence_size(bytes[0]);
    if (whole == 0 || whole > size || wk_utf8_classify(bytes, whole) != WK_UTF8_COMPLETE) {
        *code = WK_CHAR_INVALID;
        return 1;
    }
    uint32_t value = bytes[0] & (0xFFu >> (whole + 1)); /* the lead's payload bits */
    for (size_t i = 1; i < whole; i++) value = value << 6 | (bytes[i] & 0x3Fu);
    *code = value;
    return whole;
}

/* Hangul syllables are a leading consonant, a vowel and perhaps a trailing consonant (the Unicode
 * Standard, section 3.12). */
static size_t decompose_hangul(uint32_t syllable, uint32_t out[WK_FOLD_MOST]) {
    const uint32_t n_vowels = 21, n_trailing = 28;
    out[0] = 0x1100 + syllable / (n_vowels * n_trailing);
    out[1] = 0x1161 + syllable / n_trailing % n_vowels;
    out[2] = 0x11A7 + syllable % n_trailing;
    return syllable % n_trailing ? 3 : 2;
}

size_t wk_char_fold(uint32_t code, uint32_t out[WK_FOLD_MOST]) {
    if (code >= 0xAC00 && code <= 0xD7A3) return decompose_hangul(code - 0xAC00, out);
    if (wk_char_class_of(code) == WK_CHAR_NONSPACING) return 0;
    uint32_t low = 0, high = wk_unicode_n_fold_runs; /* the first run after code */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (wk_unicode_fold_firsts[middle] <= code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    out[0] = code;
    if (low == 0) return 1;
    const uint32_t place =
        wk_unicode_fold_places[low - 1] + (code - wk_unicode_fold_firsts[low - 1]);
    if (place >= wk_unicode_fold_places[low]) return 1;
    out[0] = code + (uint32_t)wk_unicode_fold_offsets[place];
    if (out[0] < WK_UNICODE_END) return 1;
    const uint32_t *const text = &wk_unicode_fold_texts[out[0] - WK_UNICODE_END];
    size_t n = 0;
    for (; text[n] != 0; n++) out[n] = text[n];
    return n;
}
