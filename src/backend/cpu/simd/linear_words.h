/* simd/linear_words.h: what linear_bytes.h asks for where dot products take 4 bytes. */
#ifndef WK_SIMD_LINEAR_WORDS_H
#define WK_SIMD_LINEAR_WORDS_H

#include <stdint.h>

enum { FAST_PLANES = 2, FAST_SHARES = 0, PANEL_IS_EXACT = 0 };

typedef int8_t fast_value;

WK_INLINE int fast_place(int i) { return i; }
WK_INLINE b64 b64_unit(b64 quants, int i) {
    (void)i;
    return quants;
}

#endif
