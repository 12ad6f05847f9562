/* arm/simd_neon.h: 16 floats as four NEON registers, for every 64-bit ARM; the functions of
 * x86/simd_avx2.h, which give the same bits. */
#ifndef WK_ARM_SIMD_NEON_H
#define WK_ARM_SIMD_NEON_H

#include "core/compiler.h"
#include "sys/cpu_features.h"

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

enum {
    SIMD_NEEDS = WK_CPU_NEON,
    /* Register tile of matrix products: TILE_PANELS x 16 rows of the weight by TILE_COLUMNS. */
    TILE_PANELS = 1,
    TILE_COLUMNS = 6,
    TILE_COLUMNS_SMALL = 2,
    HAS_PREFETCH = 1,
    ATTENTION_SUMS = 4,     /* register tile of attention, of 16 floats */
    ATTENTION_WIDENS = 0,   /* whether halves become floats first even for few queries */
    DECODE_PANELS = 2,      /* panels in flight with one column, to hide the latency of the sums */
    COLUMN_IS_UNPACKED = 0, /* exact, with one column: no code for each type */
    SIMD_IS_SHORT = 0,      /* whether less code is worth a few more instructions */
    SIMD_PARTS = 4,         /* registers of 16 floats or of 16 rows of bytes */
};

typedef struct v16 { /* 16 floats */
    float32x4_t part[SIMD_PARTS];
} v16;
typedef struct b64 { /* 16 rows of 4 bytes */
    uint8x16_t part[SIMD_PARTS];
} b64;

WK_INLINE v16 v16_of(float32x4_t q0, float32x4_t q1, float32x4_t q2, float32x4_t q3) {
    return (v16){{q0, q1, q2, q3}};
}
WK_INLINE v16 v16_set(float a) {
    const float32x4_t all = vdupq_n_f32(a);
    return v16_of(all, all, all, all);
}
WK_INLINE v16 v16_zero(void) { return v16_set(0); }
WK_INLINE v16 v16_load(const float *p) {
    return v16_of(vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12));
}
WK_INLINE void v16_store(float *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) vst1q_f32(p + 4 * i, a.part[i]);
}

/* The first n (0 ... 15) lanes; the others read as zero and are not written. */
WK_INLINE v16 v16_load_n(const float *p, int64_t n) {
    float lanes[16] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return v16_load(lanes);
}
WK_INLINE void v16_store_n(float *p, v16 a, int64_t n) {
    float lanes[16];
    v16_store(lanes, a);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}
/* The same where n may also be 16 or more, or less than 1. */
WK_INLINE v16 v16_load_rows(const float *p, int64_t n) {
    if (n >= 16) return v16_load(p);
    return n > 0 ? v16_load_n(p, n) : v16_zero();
}
WK_INLINE void v16_store_rows(float *p, v16 a, int64_t n) {
    if (n >= 16) {
        v16_store(p, a);
    } else if (n > 0) {
        v16_store_n(p, a, n);
    }
}

/* a in the lanes before n, which may be negative or past the end, else other. */
WK_INLINE float32x4_t simd_take(float32x4_t a, float32x4_t other, int64_t n) {
    static const int32_t lanes[4] = {0, 1, 2, 3};
    return vbslq_f32(vcltq_s32(vld1q_s32(lanes), vdupq_n_s32((int32_t)n)), a, other);
}
/* Lanes from n on become fill. */
WK_INLINE v16 v16_fill_from(v16 a, int64_t n, float fill) {
    if (n >= 16) return a;
    if (n < 0) n = 0;
    const float32x4_t other = vdupq_n_f32(fill);
    return v16_of(simd_take(a.part[0], other, n), simd_take(a.part[1], other, n - 4),
                  simd_take(a.part[2], other, n - 8), simd_take(a.part[3], other, n - 12));
}

WK_INLINE v16 v16_add(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vaddq_f32(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_sub(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vsubq_f32(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_mul(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vmulq_f32(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_div(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vdivq_f32(a.part[i], b.part[i]);
    return a;
}
/* a where it is greater, else b, also where one is NaN: what x86 does, which vmaxq_f32 does not. */
WK_INLINE float32x4_t simd_max(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
WK_INLINE v16 v16_max(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = simd_max(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    for (int i = 0; i < SIMD_PARTS; i++) c.part[i] = vfmaq_f32(c.part[i], a.part[i], b.part[i]);
    return c;
}
WK_INLINE v16 v16_fma_once(v16 a, v16 b, v16 c) { return v16_fma(a, b, c); }
WK_INLINE v16 v16_abs(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vabsq_f32(a.part[i]);
    return a;
}
WK_INLINE v16 v16_round(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vrndnq_f32(a.part[i]);
    return a;
}
WK_INLINE float32x4_t simd_exp2_whole(float32x4_t a) {
    const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(a), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}
/* 2^a for whole a in -126 ... 127. */
WK_INLINE v16 v16_exp2_whole(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = simd_exp2_whole(a.part[i]);
    return a;
}

/* Rounded to the nearest integers. */
WK_INLINE void v16_store_int(int32_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) vst1q_s32(p + 4 * i, vcvtnq_s32_f32(a.part[i]));
}

WK_INLINE float32x4_t simd_load_f16(const uint16_t *p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
WK_INLINE v16 v16_load_f16(const uint16_t *p) {
    return v16_of(simd_load_f16(p), simd_load_f16(p + 4), simd_load_f16(p + 8),
                  simd_load_f16(p + 12));
}
/* 16 times the same half. */
WK_INLINE v16 v16_set_f16(uint16_t a) {
    const float32x4_t all = vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(a)));
    return v16_of(all, all, all, all);
}
WK_INLINE void v16_store_f16(uint16_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++)
        vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.part[i])));
}

/* Four rows of four become columns. */
WK_INLINE void simd_transpose(float32x4_t a[4]) {
    const float64x2_t t0 = vreinterpretq_f64_f32(vtrn1q_f32(a[0], a[1]));
    const float64x2_t t1 = vreinterpretq_f64_f32(vtrn2q_f32(a[0], a[1]));
    const float64x2_t t2 = vreinterpretq_f64_f32(vtrn1q_f32(a[2], a[3]));
    const float64x2_t t3 = vreinterpretq_f64_f32(vtrn2q_f32(a[2], a[3]));
    a[0] = vreinterpretq_f32_f64(vzip1q_f64(t0, t2));
    a[1] = vreinterpretq_f32_f64(vzip1q_f64(t1, t3));
    a[2] = vreinterpretq_f32_f64(vzip2q_f64(t0, t2));
    a[3] = vreinterpretq_f32_f64(vzip2q_f64(t1, t3));
}
/* Rows become columns: each 4 x 4 alone, on the way to its place. */
WK_INLINE void v16_transpose(v16 a[16]) {
    float32x4_t tile[4][4][4]; /* [rows / 4][columns / 4] of 4 x 4 */
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 4; j++) tile[i / 4][j][i % 4] = a[i].part[j];
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) simd_transpose(tile[i][j]);
    for (int i = 0; i < 16; i++)
        a[i] = v16_of(tile[0][i / 4][i % 4], tile[1][i / 4][i % 4], tile[2][i / 4][i % 4],
                      tile[3][i / 4][i % 4]);
}

WK_INLINE float32x4_t simd_zero_below(float32x4_t value, float32x4_t x, float bound) {
    const uint32x4_t is_below = vcltq_f32(x, vdupq_n_f32(bound));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), is_below));
}
/* value where x is not below bound, else 0; NaN in x keeps value. */
WK_INLINE v16 v16_zero_below(v16 value, v16 x, float bound) {
    for (int i = 0; i < SIMD_PARTS; i++)
        value.part[i] = simd_zero_below(value.part[i], x.part[i], bound);
    return value;
}
WK_INLINE float32x4_t simd_by_sign(float32x4_t x, float32x4_t value, float32x4_t other) {
    const int32x4_t sign = vshrq_n_s32(vreinterpretq_s32_f32(x), 31);
    return vbslq_f32(vreinterpretq_u32_s32(sign), other, value);
}
/* value where x is not negative, else other. */
WK_INLINE v16 v16_by_sign(v16 x, v16 value, v16 other) {
    for (int i = 0; i < SIMD_PARTS; i++)
        value.part[i] = simd_by_sign(x.part[i], value.part[i], other.part[i]);
    return value;
}
/* Eight floats, each twice. */
WK_INLINE v16 v16_load_twice(const float *p) {
    const float32x4_t low = vld1q_f32(p), high = vld1q_f32(p + 4);
    return v16_of(vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high),
                  vzip2q_f32(high, high));
}
/* Neighbours change places. */
WK_INLINE v16 v16_swap_pairs(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vrev64q_f32(a.part[i]);
    return a;
}

/* The sum of all lanes, pairwise: halves of 8, then of 4, 2 and 1. */
WK_INLINE float v16_sum(v16 a) {
    const float32x4_t four =
        vaddq_f32(vaddq_f32(a.part[0], a.part[2]), vaddq_f32(a.part[1], a.part[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* 16 sums in float64: of the first and of the last two lanes of each register of a v16. */
typedef struct wide_sums {
    float64x2_t low[SIMD_PARTS], high[SIMD_PARTS];
} wide_sums;

WK_INLINE wide_sums wide_zero(void) {
    const float64x2_t zero = vdupq_n_f64(0);
    return (wide_sums){{zero, zero, zero, zero}, {zero, zero, zero, zero}};
}
WK_INLINE void wide_add(wide_sums *sums, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        sums->low[i] = vaddq_f64(sums->low[i], vcvt_f64_f32(vget_low_f32(a.part[i])));
        sums->high[i] = vaddq_f64(sums->high[i], vcvt_high_f64_f32(a.part[i]));
    }
}
WK_INLINE float64x2_t simd_sum_wide(const float64x2_t a[SIMD_PARTS]) {
    return vaddq_f64(vaddq_f64(a[0], a[1]), vaddq_f64(a[2], a[3]));
}
/* The sum of all: registers 0 and 1, 2 and 3, both, then halves of 2 and of 1. */
WK_INLINE double wide_total(const wide_sums *sums) {
    const float64x2_t two = vaddq_f64(simd_sum_wide(sums->low), simd_sum_wide(sums->high));
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

/* The largest lane, where none is NaN. */
WK_INLINE float v16_largest(v16 a) {
    float32x4_t four = simd_max(simd_max(a.part[0], a.part[2]), simd_max(a.part[1], a.part[3]));
    four = simd_max(four, vextq_f32(four, four, 2));
    return vgetq_lane_f32(simd_max(four, vrev64q_f32(four)), 0);
}

WK_INLINE b64 b64_load(const uint8_t *p) {
    return (b64){{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
}
WK_INLINE b64 b64_low_halves(b64 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vandq_u8(a.part[i], vdupq_n_u8(15));
    return a;
}
WK_INLINE b64 b64_high_halves(b64 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vshrq_n_u8(a.part[i], 4);
    return a;
}
WK_INLINE float32x4_t simd_byte(uint8x16_t a, uint8x16_t at, float32x4_t shifted) {
    const uint8x16_t whole = vreinterpretq_u8_u32(vdupq_n_u32(0x4B000000));
    return vsubq_f32(vreinterpretq_f32_u8(vqtbx1q_u8(whole, a, at)), shifted);
}
/* Byte i of every row, minus bias, exactly. The byte becomes the lowest one of 2^23 + byte. */
WK_INLINE v16 b64_float(b64 a, int i, float bias) {
    /* Where the bytes of a word come from; 255 is out of range and keeps what is there. */
    static const uint32_t first[4] = {0xFFFFFF00, 0xFFFFFF04, 0xFFFFFF08, 0xFFFFFF0C};
    const uint32x4_t words = vaddq_u32(vld1q_u32(first), vdupq_n_u32((uint32_t)i));
    const uint8x16_t at = vreinterpretq_u8_u32(words);
    const float32x4_t shifted = vdupq_n_f32(8388608.0F + bias);
    v16 y;
    for (int p = 0; p < SIMD_PARTS; p++) y.part[p] = simd_byte(a.part[p], at, shifted);
    return y;
}

#include "backend/cpu/simd/scale.h"

#endif
