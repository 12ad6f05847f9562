/* arm/vector_simd_neon.h: what the vector kernels need besides simd_neon.h; as
 * x86/vector_simd_avx2.h, the same bits. */
#ifndef WK_ARM_VECTOR_SIMD_NEON_H
#define WK_ARM_VECTOR_SIMD_NEON_H

#include "backend/cpu/arm/linear_simd_neon.h"

#include <stdbool.h>

enum { SIMD_STREAMS = 0 }; /* whether v16_stream goes past the caches */

WK_INLINE void v16_stream(float *p, v16 a) { v16_store(p, a); }
WK_INLINE void v16_stream_end(void) {}

typedef struct m16 { /* 16 lanes, all ones where something holds, else zero */
    uint32x4_t part[SIMD_PARTS];
} m16;

/* Comparisons with NaN are false. */
WK_INLINE m16 v16_less(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = vcltq_f32(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 v16_less_equal(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = vcleq_f32(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 v16_equal(v16 a, v16 b) {
    m16 m;
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = vceqq_f32(a.part[i], b.part[i]);
    return m;
}
WK_INLINE m16 m16_not(m16 m) {
    for (int i = 0; i < SIMD_PARTS; i++) m.part[i] = vmvnq_u32(m.part[i]);
    return m;
}
WK_INLINE bool m16_any(m16 m) {
    const uint32x4_t low = vorrq_u32(m.part[0], m.part[1]), high = vorrq_u32(m.part[2], m.part[3]);
    return vmaxvq_u32(vorrq_u32(low, high)) != 0;
}
WK_INLINE v16 v16_select(m16 m, v16 yes, v16 no) {
    for (int i = 0; i < SIMD_PARTS; i++)
        yes.part[i] = vbslq_f32(m.part[i], yes.part[i], no.part[i]);
    return yes;
}
/* 16 bytes: 1 where it holds, else 0; loaded: whether they are not 0. */
WK_INLINE void m16_store(uint8_t *p, m16 m) {
    const uint16x8_t low = vcombine_u16(vmovn_u32(m.part[0]), vmovn_u32(m.part[1]));
    const uint16x8_t high = vcombine_u16(vmovn_u32(m.part[2]), vmovn_u32(m.part[3]));
    const uint8x16_t bytes = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    vst1q_u8(p, vandq_u8(bytes, vdupq_n_u8(1)));
}
WK_INLINE uint32x4_t simd_is_set(uint16x4_t a) {
    const uint32x4_t words = vmovl_u16(a);
    return vtstq_u32(words, words);
}
WK_INLINE m16 m16_load(const uint8_t *p) {
    const uint16x8_t low = vmovl_u8(vld1_u8(p)), high = vmovl_u8(vld1_u8(p + 8));
    return (m16){{simd_is_set(vget_low_u16(low)), simd_is_set(vget_high_u16(low)),
                  simd_is_set(vget_low_u16(high)), simd_is_set(vget_high_u16(high))}};
}

/* b where either is NaN, as v16_max. */
WK_INLINE v16 v16_min(v16 a, v16 b) { return v16_select(v16_less(a, b), a, b); }
WK_INLINE v16 v16_sqrt(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vsqrtq_f32(a.part[i]);
    return a;
}
WK_INLINE v16 v16_floor(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vrndmq_f32(a.part[i]);
    return a;
}
WK_INLINE v16 v16_ceil(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vrndpq_f32(a.part[i]);
    return a;
}
WK_INLINE v16 v16_copy_sign(v16 a, v16 from) {
    const uint32x4_t sign = vdupq_n_u32(0x80000000);
    return v16_select((m16){{sign, sign, sign, sign}}, from, a);
}

/* The m of a = 2^exponent m with m from sqrt(1/2) to sqrt(2); a is normal, finite and above 0, else
 * both are any numbers. */
WK_INLINE v16 v16_split(v16 a, v16 *exponent) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const int32x4_t bits = vreinterpretq_s32_f32(a.part[i]);
        const int32x4_t n = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3F3504F3)), 23);
        exponent->part[i] = vcvtq_f32_s32(n);
        a.part[i] = vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(n, 23)));
    }
    return a;
}

/* The float next to a in the direction of larger magnitude, or of smaller where it holds; a is
 * finite, not 0 and not the last of its direction. */
WK_INLINE v16 v16_next(v16 a, m16 is_smaller) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint32x4_t step = vorrq_u32(is_smaller.part[i], vdupq_n_u32(1));
        a.part[i] = vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a.part[i]), step));
    }
    return a;
}

/* Rounds to nearest even; NaN gets quiet. */
WK_INLINE void v16_store_bf16(uint16_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const uint32x4_t bits = vreinterpretq_u32_f32(a.part[i]);
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
        const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
        const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
        const uint32x4_t is_number = vceqq_f32(a.part[i], a.part[i]);
        vst1_u16(p + 4 * i, vshrn_n_u32(vbslq_u32(is_number, rounded, quiet), 16));
    }
}

#include "backend/cpu/simd/running_sums.h"

#endif
