/* arm/linear_simd_neon.h: what linear needs besides simd_neon.h; as x86/linear_simd_avx2.h. */
#ifndef WK_ARM_LINEAR_SIMD_NEON_H
#define WK_ARM_LINEAR_SIMD_NEON_H

#include "backend/cpu/arm/simd_neon.h"

WK_INLINE void b64_store(uint8_t *p, b64 a) {
    for (int i = 0; i < SIMD_PARTS; i++) vst1q_u8(p + 16 * i, a.part[i]);
}

WK_INLINE float32x4_t simd_load_bf16(const uint16_t *p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
}
/* 16 numbers of 16 or 8 bits. */
WK_INLINE v16 v16_load_f16_number(const uint16_t *p) { return v16_load_f16(p); }
WK_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return v16_of(simd_load_bf16(p), simd_load_bf16(p + 4), simd_load_bf16(p + 8),
                  simd_load_bf16(p + 12));
}
WK_INLINE v16 v16_load_i8(const uint8_t *p) {
    const int16x8_t low = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    const int16x8_t high = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p + 8)));
    return v16_of(vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                  vcvtq_f32_s32(vmovl_high_s16(high)));
}

/* Bytes of 16 rows to words, words to floats. */
WK_INLINE b64 b64_widen(const uint8_t *p) {
    const uint16x8_t low = vmovl_u8(vld1_u8(p)), high = vmovl_u8(vld1_u8(p + 8));
    return (b64){{vreinterpretq_u8_u32(vmovl_u16(vget_low_u16(low))),
                  vreinterpretq_u8_u32(vmovl_high_u16(low)),
                  vreinterpretq_u8_u32(vmovl_u16(vget_low_u16(high))),
                  vreinterpretq_u8_u32(vmovl_high_u16(high))}};
}
WK_INLINE v16 v16_of_words(b64 a) {
    return v16_of(vcvtq_f32_u32(vreinterpretq_u32_u8(a.part[0])),
                  vcvtq_f32_u32(vreinterpretq_u32_u8(a.part[1])),
                  vcvtq_f32_u32(vreinterpretq_u32_u8(a.part[2])),
                  vcvtq_f32_u32(vreinterpretq_u32_u8(a.part[3])));
}
/* a >> n & mask of every word. */
WK_INLINE b64 b64_bits(b64 a, int n, uint32_t mask) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint32x4_t moved = vshlq_u32(vreinterpretq_u32_u8(a.part[i]), vdupq_n_s32(-n));
        a.part[i] = vreinterpretq_u8_u32(vandq_u32(moved, vdupq_n_u32(mask)));
    }
    return a;
}
/* a | b << n of every word. */
WK_INLINE b64 b64_join(b64 a, b64 b, int n) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint32x4_t moved = vshlq_u32(vreinterpretq_u32_u8(b.part[i]), vdupq_n_s32(n));
        a.part[i] = vorrq_u8(a.part[i], vreinterpretq_u8_u32(moved));
    }
    return a;
}
/* table[word]. */
WK_INLINE b64 b64_gather(const uint16_t *table, b64 index) {
    uint32_t words[16];
    for (int i = 0; i < SIMD_PARTS; i++)
        vst1q_u32(words + 4 * i, vreinterpretq_u32_u8(index.part[i]));
    for (int i = 0; i < 16; i++) words[i] = table[words[i]];
    for (int i = 0; i < SIMD_PARTS; i++)
        index.part[i] = vreinterpretq_u8_u32(vld1q_u32(words + 4 * i));
    return index;
}
/* Negates those of the 64 bytes whose bit in signs is 1. */
WK_INLINE b64 b64_negate(b64 a, const uint8_t signs[8]) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint8x16_t bytes = vcombine_u8(vdup_n_u8(signs[2 * i]), vdup_n_u8(signs[2 * i + 1]));
        const uint8x16_t is_set = vtstq_u8(bytes, bit);
        a.part[i] = vsubq_u8(veorq_u8(a.part[i], is_set), is_set);
    }
    return a;
}
/* The digits in base 3 that power = 3^i brings to the front of the bytes. */
WK_INLINE b64 b64_trits(b64 a, uint16_t power) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint8x16_t rest = vmulq_u8(a.part[i], vdupq_n_u8((uint8_t)power));
        const uint16x8_t low = vmull_u8(vget_low_u8(rest), vdup_n_u8(3));
        const uint16x8_t high = vmull_high_u8(rest, vdupq_n_u8(3));
        a.part[i] = vshrn_high_n_u16(vshrn_n_u16(low, 8), high, 8);
    }
    return a;
}

/* n in 0 ... 31; a shift by 32 gives zeros. */
WK_INLINE uint8x16_t simd_add_upper(uint8x16_t a, uint8x16_t upper, int n, char mask) {
    const uint32x4_t words = vreinterpretq_u32_u8(upper);
    const uint32x4_t turned =
        vorrq_u32(vshlq_u32(words, vdupq_n_s32(-n)), vshlq_u32(words, vdupq_n_s32(32 - n)));
    return vbslq_u8(vdupq_n_u8((uint8_t)mask), vreinterpretq_u8_u32(turned), a);
}
/* a, whose bits under mask are zero, with those set that upper has, its words rotated right by n
 * and masked bytewise. */
WK_INLINE b64 b64_add_upper(b64 a, b64 upper, int n, char mask) {
    for (int i = 0; i < SIMD_PARTS; i++)
        a.part[i] = simd_add_upper(a.part[i], upper.part[i], n, mask);
    return a;
}
/* table[byte] of all bytes, which are below 16. */
WK_INLINE b64 b64_look_up(b64 a, const uint8_t table[16]) {
    const uint8x16_t levels = vld1q_u8(table);
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vqtbl1q_u8(levels, a.part[i]);
    return a;
}

#endif
