/* wasm/linear_fast_wasm.c: linear with activations as integers, by sums of pairs of products of 16
 * bits: the even and the odd bytes of the words by themselves, so that every word of the result is
 * a row and nothing has to be sorted. */
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/wasm/linear_simd_wasm.h"

#include <stdbool.h>

/* A tile has 8 registers of sums, of the 15 or so that a browser has on x86. */
enum {
    FAST_COLUMNS = 2,
    FAST_PANELS = 1,
    FAST_HOLDS = 0,
    FAST_PLANES = 1,
    FAST_SHARES = 1,
    WIDE_BIAS = 128,
};

typedef struct w16 {
    v128_t part[SIMD_PARTS];
} w16;

WK_INLINE w16 w16_set(int32_t word) {
    const v128_t all = wasm_i32x4_splat(word);
    return (w16){{all, all, all, all}};
}
WK_INLINE w16 w16_add(w16 a, w16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_i32x4_add(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 w16_float(w16 sum) {
    return v16_of(wasm_f32x4_convert_i32x4(sum.part[0]), wasm_f32x4_convert_i32x4(sum.part[1]),
                  wasm_f32x4_convert_i32x4(sum.part[2]), wasm_f32x4_convert_i32x4(sum.part[3]));
}

typedef int16_t fast_value;

/* Of 4 elements 0 and 2 are the first word, 1 and 3 the second. */
WK_INLINE int fast_place(int i) { return (i & ~3) | (i & 1) << 1 | (i >> 1 & 1); }
WK_INLINE b64 b64_unit(b64 quants, int i) {
    for (int p = 0; p < SIMD_PARTS; p++)
        quants.part[p] = i == 0 ? wasm_v128_and(quants.part[p], wasm_i16x8_splat(255))
                                : wasm_u16x8_shr(quants.part[p], 8);
    return quants;
}

WK_INLINE w16 w16_dot(w16 sum, b64 unit, w16 x, const bool is_wide) {
    (void)is_wide;
    for (int i = 0; i < SIMD_PARTS; i++)
        sum.part[i] = wasm_i32x4_add(sum.part[i], wasm_i32x4_dot_i16x8(unit.part[i], x.part[i]));
    return sum;
}

#define FAST_FORMATS WK_PANEL_FORMATS
#include "backend/cpu/simd/linear_no_pairs.h"

#include "backend/cpu/simd/linear_fast.h"

#define KERNEL(layout, type) FAST_KERNEL(type, wasm, SIMD_NEEDS)
FAST_FORMATS(KERNEL)
#undef KERNEL
