/* wasm/vector_simd_wasm.h: what the vector kernels need besides simd_wasm.h; as
 * x86/vector_simd_avx2.h. */
#ifndef WK_WASM_VECTOR_SIMD_WASM_H
#define WK_WASM_VECTOR_SIMD_WASM_H

#include "backend/cpu/wasm/linear_simd_wasm.h"

#include <stdbool.h>

enum { SIMD_STREAMS = 0 }; /* whether v16_stream goes past the caches */

WK_INLINE void v16_stream(float *p, v16 a) { v16_store(p, a); }
WK_INLINE void v16_stream_end(void) {}

typedef struct m16 { /* 16 lanes, all ones where something holds, else zero */
    v128_t part[SIMD_PARTS];
} m16;

/* Comparisons with NaN are false. */
WK_INLINE m16 v16_less(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = wasm_f32x4_lt(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 v16_less_equal(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = wasm_f32x4_le(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 v16_equal(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = wasm_f32x4_eq(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 m16_not(m16 m) {
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = wasm_v128_not(m.part[i]);
    return m;
}
WK_INLINE bool m16_any(m16 m) {
    const v128_t low = wasm_v128_or(m.part[0], m.part[1]);
    return wasm_v128_any_true(wasm_v128_or(low, wasm_v128_or(m.part[2], m.part[3])));
}
WK_INLINE v16 v16_select(m16 m, v16 yes, v16 no) {
    for (int i = 0; i < SIMD_PARTS; i++)
        yes.part[i] = wasm_v128_bitselect(yes.part[i], no.part[i], m.part[i]);
    return yes;
}
/* 16 bytes: 1 where it holds, else 0; loaded: whether they are not 0. */
WK_INLINE void m16_store(uint8_t *p, m16 m) {
    const v128_t low = wasm_i16x8_narrow_i32x4(m.part[0], m.part[1]);
    const v128_t high = wasm_i16x8_narrow_i32x4(m.part[2], m.part[3]);
    const v128_t bytes = wasm_i8x16_narrow_i16x8(low, high);
    wasm_v128_store(p, wasm_v128_and(bytes, wasm_i8x16_splat(1)));
}
WK_INLINE m16 m16_load(const uint8_t *p) {
    const b64 words = b64_widen(p);
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++)
        m.part[i] = wasm_i32x4_ne(words.part[i], wasm_i32x4_splat(0));
    return m;
}

/* b where either is NaN, as v16_max. */
WK_INLINE v16 v16_min(v16 a, v16 b) { return v16_select(v16_less(a, b), a, b); }
WK_INLINE v16 v16_sqrt(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_sqrt(a.part[i]);
    return a;
}
WK_INLINE v16 v16_floor(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_floor(a.part[i]);
    return a;
}
WK_INLINE v16 v16_ceil(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_ceil(a.part[i]);
    return a;
}
WK_INLINE v16 v16_copy_sign(v16 a, v16 from) {
    const v128_t sign = wasm_i32x4_splat(INT32_MIN);
    return v16_select((m16){{sign, sign, sign, sign}}, from, a);
}

/* The m of a = 2^exponent m with m from sqrt(1/2) to sqrt(2); a is normal, finite and above 0, else
 * both are any numbers. */
WK_INLINE v16 v16_split(v16 a, v16 *exponent) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t above = wasm_i32x4_sub(a.part[i], wasm_i32x4_splat(0x3F3504F3));
        const v128_t n = wasm_i32x4_shr(above, 23);
        exponent->part[i] = wasm_f32x4_convert_i32x4(n);
        a.part[i] = wasm_i32x4_sub(a.part[i], wasm_i32x4_shl(n, 23));
    }
    return a;
}

/* The float next to a in the direction of larger magnitude, or of smaller where it holds; a is
 * finite, not 0 and not the last of its direction. */
WK_INLINE v16 v16_next(v16 a, m16 is_smaller) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t step = wasm_v128_or(is_smaller.part[i], wasm_i32x4_splat(1));
        a.part[i] = wasm_i32x4_add(a.part[i], step);
    }
    return a;
}

/* Rounds to nearest even; NaN gets quiet. */
WK_INLINE v128_t simd_to_bf16(v128_t a) {
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(a, 16), wasm_i32x4_splat(1));
    const v128_t rounded = wasm_i32x4_add(a, wasm_i32x4_add(odd, wasm_i32x4_splat(0x7FFF)));
    const v128_t quiet = wasm_v128_or(a, wasm_i32x4_splat(0x400000));
    return wasm_u32x4_shr(wasm_v128_bitselect(rounded, quiet, wasm_f32x4_eq(a, a)), 16);
}
WK_INLINE void v16_store_bf16(uint16_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i += 2) {
        const v128_t low = simd_to_bf16(a.part[i]), high = simd_to_bf16(a.part[i + 1]);
        wasm_v128_store(p + 4 * i, wasm_u16x8_narrow_i32x4(low, high));
    }
}

#include "backend/cpu/simd/running_sums.h"

#endif
