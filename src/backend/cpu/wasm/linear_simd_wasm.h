/* wasm/linear_simd_wasm.h: what linear needs besides simd_wasm.h; as x86/linear_simd_avx2.h. */
#ifndef WK_WASM_LINEAR_SIMD_WASM_H
#define WK_WASM_LINEAR_SIMD_WASM_H

#include "backend/cpu/wasm/simd_wasm.h"
#include "quant/panel.h"

/* Elements [first, first + len) of k of a panel of quants, in whole blocks, as floats [len][16]: of
 * any type, by what linear_fast_wasm.c has for each. */
void wk_linear_floats_wasm(wk_layout layout, const uint8_t *panel, int64_t first, int64_t len,
                           float *w);

WK_INLINE void b64_store(uint8_t *p, b64 a) {
    for (int i = 0; i < SIMD_PARTS; i++) wasm_v128_store(p + 16 * i, a.part[i]);
}

WK_INLINE v128_t simd_load_bf16(const uint16_t *p) {
    return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16);
}
/* As simd_load_f16 in half as many instructions, but NaN becomes infinite, too: 2^224 times what
 * 16 bits say is more than a float where that is no number. */
WK_INLINE v128_t simd_load_f16_number(const uint16_t *p) {
    const v128_t large =
        wasm_f32x4_mul(simd_move_f16(wasm_i32x4_load16x4(p)), wasm_f32x4_splat(0x1p127F));
    return wasm_f32x4_mul(wasm_f32x4_mul(large, wasm_f32x4_splat(0x1p97F)),
                          wasm_f32x4_splat(0x1p-112F));
}
/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_f16_number(const uint16_t *p) {
    return v16_of(simd_load_f16_number(p), simd_load_f16_number(p + 4), simd_load_f16_number(p + 8),
                  simd_load_f16_number(p + 12));
}
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return v16_of(simd_load_bf16(p), simd_load_bf16(p + 4), simd_load_bf16(p + 8),
                  simd_load_bf16(p + 12));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const v128_t low = wasm_i16x8_load8x8(p), high = wasm_i16x8_load8x8(p + 8);
    return v16_of(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(low)),
                  wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(low)),
                  wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(high)),
                  wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(high)));
}

/* Bytes of 16 rows to words, words to floats. */
WK_INLINE b64 b64_widen(const uint8_t *p) {
    const v128_t low = wasm_u16x8_load8x8(p), high = wasm_u16x8_load8x8(p + 8);
    return (b64){{wasm_u32x4_extend_low_u16x8(low), wasm_u32x4_extend_high_u16x8(low),
                  wasm_u32x4_extend_low_u16x8(high), wasm_u32x4_extend_high_u16x8(high)}};
}
WK_INLINE v16 v16_of_words(b64 a) {
    return v16_of(wasm_f32x4_convert_u32x4(a.part[0]), wasm_f32x4_convert_u32x4(a.part[1]),
                  wasm_f32x4_convert_u32x4(a.part[2]), wasm_f32x4_convert_u32x4(a.part[3]));
}
/* a >> n & mask of every word. */
WK_INLINE b64 b64_bits(b64 a, int n, uint32_t mask) {
    for (int i = 0; i < SIMD_PARTS; i++)
        a.part[i] = wasm_v128_and(wasm_u32x4_shr(a.part[i], (uint32_t)n), wasm_u32x4_splat(mask));
    return a;
}
/* a | b << n of every word. */
WK_INLINE b64 b64_join(b64 a, b64 b, int n) {
    for (int i = 0; i < SIMD_PARTS; i++)
        a.part[i] = wasm_v128_or(a.part[i], wasm_i32x4_shl(b.part[i], (uint32_t)n));
    return a;
}
/* table[word]. */
WK_INLINE b64 b64_gather(const uint16_t *table, b64 index) {
    uint32_t words[16];
    for (int i = 0; i < SIMD_PARTS; i++) wasm_v128_store(words + 4 * i, index.part[i]);
    for (int i = 0; i < 16; i++) words[i] = table[words[i]];
    for (int i = 0; i < SIMD_PARTS; i++) index.part[i] = wasm_v128_load(words + 4 * i);
    return index;
}
/* Negates those of the 64 bytes whose bit in signs is 1. */
WK_INLINE b64 b64_negate(b64 a, const uint8_t signs[8]) {
    const v128_t bit = wasm_i64x2_splat((int64_t)0x8040201008040201);
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t both = wasm_v128_load16_splat(signs + 2 * i);
        const v128_t bytes =
            wasm_i8x16_shuffle(both, both, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        const v128_t is_set = wasm_i8x16_eq(wasm_v128_and(bytes, bit), bit);
        a.part[i] = wasm_i8x16_sub(wasm_v128_xor(a.part[i], is_set), is_set);
    }
    return a;
}
/* The upper bytes of byte * power modulo 256, times 3. */
WK_INLINE v128_t simd_trit(v128_t a, v128_t power) {
    const v128_t rest = wasm_v128_and(wasm_i16x8_mul(a, power), wasm_i16x8_splat(255));
    return wasm_u16x8_shr(wasm_i16x8_mul(rest, wasm_i16x8_splat(3)), 8);
}
/* The digits in base 3 that power = 3^i brings to the front of the bytes. */
WK_INLINE b64 b64_trits(b64 a, uint16_t power) {
    const v128_t factor = wasm_u16x8_splat(power);
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t low = simd_trit(wasm_u16x8_extend_low_u8x16(a.part[i]), factor);
        const v128_t high = simd_trit(wasm_u16x8_extend_high_u8x16(a.part[i]), factor);
        a.part[i] = wasm_u8x16_narrow_i16x8(low, high);
    }
    return a;
}

/* a, whose bits under mask are zero, with those set that upper has, its words rotated right by n
 * and masked bytewise; n in 0 ... 31, and a shift by 32 is one by 0. */
WK_INLINE b64 b64_add_upper(b64 a, b64 upper, int n, char mask) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t right = wasm_u32x4_shr(upper.part[i], (uint32_t)n);
        const v128_t left = wasm_i32x4_shl(upper.part[i], (uint32_t)(32 - n));
        const v128_t turned = wasm_v128_or(right, left);
        a.part[i] = wasm_v128_bitselect(turned, a.part[i], wasm_i8x16_splat(mask));
    }
    return a;
}
/* table[byte] of all bytes, which are below 16. */
WK_INLINE b64 b64_look_up(b64 a, const uint8_t table[16]) {
    const v128_t levels = wasm_v128_load(table);
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_i8x16_swizzle(levels, a.part[i]);
    return a;
}

#endif
