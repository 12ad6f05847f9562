/* x86/linear_fast_avx512.h: linear with activations as integers, by the byte dot products of VNNI.
 */
#ifndef WK_X86_LINEAR_FAST_AVX512_H
#define WK_X86_LINEAR_FAST_AVX512_H

#include "backend/cpu/x86/linear_simd_avx512.h"

#include "backend/cpu/cpu_kernel.h"

#include <stdbool.h>

enum { FAST_COLUMNS = 16, FAST_PANELS = 4, FAST_HOLDS = 1, FAST_OFFSETS = 1, WIDE_BIAS = 128 };

typedef __m512i w16;

WK_INLINE w16 w16_set(int32_t word) { return _mm512_set1_epi32(word); }
WK_INLINE w16 w16_dot(w16 sum, b64 quants, w16 x, const bool is_wide) {
    (void)is_wide;
    return _mm512_dpbusd_epi32(sum, quants, x);
}
WK_INLINE w16 w16_add(w16 a, w16 b) { return _mm512_add_epi32(a, b); }
WK_INLINE v16 w16_float(w16 sum) { return _mm512_cvtepi32_ps(sum); }
WK_INLINE v16 w16_as_float(w16 sum) { return _mm512_castsi512_ps(sum); }

#include "backend/cpu/simd/linear_no_pairs.h"
#include "backend/cpu/simd/linear_words.h"

#endif
