/* text/unicode/unicode.h: UTF-8 and character classes.
 *
 * UTF-8 as in the Unicode Standard, section 3.9 (table 3-7): no surrogates, no overlong forms,
 * nothing above U+10FFFF. */
#ifndef WK_TEXT_UNICODE_UNICODE_H
#define WK_TEXT_UNICODE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General categories as far as tokenizers tell them apart; White_Space goes before them. */
typedef enum wk_char_class {
    WK_CHAR_OTHER,      /* unassigned; no character at all */
    WK_CHAR_UPPER,      /* Lu, Lt */
    WK_CHAR_LOWER,      /* Ll */
    WK_CHAR_LETTER,     /* Lm, Lo: without case */
    WK_CHAR_NONSPACING, /* Mn */
    WK_CHAR_MARK,       /* Mc, Me */
    WK_CHAR_NUMBER,
    WK_CHAR_PUNCTUATION,
    WK_CHAR_SYMBOL,
    WK_CHAR_SPACE,
    WK_CHAR_CONTROL, /* Cc, Cf, Co */
} wk_char_class;

/* Sets of classes, one bit each. */
enum {
    WK_CHARS_LETTER = 1 << WK_CHAR_UPPER | 1 << WK_CHAR_LOWER | 1 << WK_CHAR_LETTER,
    WK_CHARS_MARK = 1 << WK_CHAR_NONSPACING | 1 << WK_CHAR_MARK,
    WK_CHARS_NUMBER = 1 << WK_CHAR_NUMBER,
    WK_CHARS_PUNCTUATION = 1 << WK_CHAR_PUNCTUATION,
    WK_CHARS_SYMBOL = 1 << WK_CHAR_SYMBOL,
    WK_CHARS_SPACE = 1 << WK_CHAR_SPACE,
    WK_CHARS_ALL = (1 << (WK_CHAR_CONTROL + 1)) - 1,
};

/* Two stages: index[code / 256] names a block, whose four-bit classes lie 16 to a word, the first
 * in the lowest bits. Code points beyond the index are of class other. */
extern const uint32_t wk_unicode_index_size;
extern const uint8_t wk_unicode_index[];
extern const uint64_t wk_unicode_blocks[][16];

static inline wk_char_class wk_char_class_of(uint32_t code) {
    if (code >> 8 >= wk_unicode_index_size) return WK_CHAR_OTHER;
    const uint64_t *block = wk_unicode_blocks[wk_unicode_index[code >> 8]];
    return (wk_char_class)(block[(code & 255) >> 4] >> (4 * (code & 15)) & 15);
}

/* Runs [n_fold_runs + 1] of code points that folding changes (or does not: offset 0), rising, the
 * last one empty: the first one, and the place of its offset. A run is as long as its offsets,
 * which end where those of the next one begin. A code point and its offset make the result; one
 * from WK_UNICODE_END on is one of several characters: they lie so far on in the texts, up to a 0.
 * Nonspacing marks, which go, and Hangul, which is computed, are not among them. */
enum { WK_UNICODE_END = 0x110000 };
extern const uint32_t wk_unicode_n_fold_runs;
extern const uint32_t wk_unicode_fold_firsts[];
extern const uint16_t wk_unicode_fold_places[];
extern const int32_t wk_unicode_fold_offsets[];
extern const uint32_t wk_unicode_fold_texts[];

enum { WK_FOLD_MOST = 4 };

/* Lower case without accents: the canonical decomposition, its nonspacing marks left out, each of
 * the others in lower case. Returns how many, at most WK_FOLD_MOST. */
size_t wk_char_fold(uint32_t code, uint32_t out[WK_FOLD_MOST]);

/* U+2581 LOWER ONE EIGHTH BLOCK: how SentencePiece and those who took after it write a space. */
#define WK_SPACE_SIGN "\xE2\x96\x81"

/* Code point of a byte that belongs to no UTF-8 sequence; its class is other. */
#define WK_CHAR_INVALID UINT32_MAX

/* Decodes the first character of text (size > 0) and returns how many bytes it has. A byte that
 * begins no whole sequence stands alone: 1, WK_CHAR_INVALID. */
size_t wk_utf8_decode(const char *text, size_t size, uint32_t *code);

typedef enum wk_utf8_state {
    WK_UTF8_INVALID,  /* can never become a sequence */
    WK_UTF8_PARTIAL,  /* the beginning of one */
    WK_UTF8_COMPLETE, /* exactly one */
} wk_utf8_state;

/* What 1 to 4 bytes are as a whole. */
wk_utf8_state wk_utf8_classify(const unsigned char *bytes, size_t size);

#endif
