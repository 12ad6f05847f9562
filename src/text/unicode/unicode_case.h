/* text/unicode/unicode_case.h: classes of characters and their other cases, as in Python's str. */
#ifndef WK_TEXT_UNICODE_UNICODE_CASE_H
#define WK_TEXT_UNICODE_UNICODE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wk_unicode_property {
    WK_UNICODE_PRINTABLE,
    WK_UNICODE_ALPHABETIC,
    WK_UNICODE_DECIMAL,
    WK_UNICODE_DIGIT,
    WK_UNICODE_NUMERIC,
    WK_UNICODE_LOWER,
    WK_UNICODE_UPPER,
    WK_UNICODE_TITLE,
} wk_unicode_property;

typedef enum wk_unicode_case {
    WK_UNICODE_TO_UPPER,
    WK_UNICODE_TO_LOWER,
    WK_UNICODE_TO_TITLE,
    WK_UNICODE_FOLD,
} wk_unicode_case;

bool wk_unicode_is(uint32_t code, wk_unicode_property property);
/* Writes the one to three characters that code becomes and returns how many they are. */
size_t wk_unicode_convert(uint32_t code, wk_unicode_case to, uint32_t out[3]);

/* ---- The tables, unicode_case.c: sorted ---- */

/* The characters of some classes, and exceptions: lengths of stretches as the classes say and of
 * stretches to the contrary, alternately, from U+0000 on, in digits of seven bits, the lowest
 * first, 128 added to all but the last (LEB128). A-Z alone to the contrary: 65, 26. */
typedef struct wk_unicode_set {
    const uint8_t *bytes;
    uint16_t size, classes; /* bits of wk_char_class */
} wk_unicode_set;

/* The length of the stretch at byte *at, which moves on to the next one. */
static inline uint32_t wk_unicode_stretch(const wk_unicode_set *set, size_t *at) {
    uint32_t length = 0;
    int shift = 0;
    do {
        length |= (set->bytes[*at] & 127U) << shift;
        shift += 7;
    } while (set->bytes[(*at)++] >= 128);
    return length;
}

/* Every step-th character from first to first + span becomes the one at this offset. */
typedef struct wk_unicode_shift {
    uint32_t first;
    uint16_t span, step;
    int32_t offset;
} wk_unicode_shift;

typedef struct wk_unicode_expansion {
    uint16_t code, text[3]; /* up to a 0 */
} wk_unicode_expansion;

typedef struct wk_unicode_mapping {
    const wk_unicode_shift *shifts;
    size_t n_shifts;
    const wk_unicode_expansion *expansions;
    size_t n_expansions;
} wk_unicode_mapping;

extern const wk_unicode_set wk_unicode_sets[];         /* by wk_unicode_property */
extern const wk_unicode_mapping wk_unicode_mappings[]; /* by wk_unicode_case, up to title */

#endif
