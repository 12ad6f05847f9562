/* simd/linear_no_pairs.h: what linear_bytes.h asks for where sums of 16 bits save nothing. */
#ifndef WK_SIMD_LINEAR_NO_PAIRS_H
#define WK_SIMD_LINEAR_NO_PAIRS_H

enum { FAST_PAIRS = 0 };

WK_INLINE w16 w16_dot_pairs(w16 sum, b64 unit, w16 x) { return w16_dot(sum, unit, x, false); }
WK_INLINE w16 w16_of_pairs(w16 sum) { return sum; }

#endif
