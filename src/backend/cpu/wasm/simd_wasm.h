/* wasm/simd_wasm.h: 16 floats as four registers of WebAssembly's SIMD; the functions of
 * x86/simd_avx2.h. There is no fused multiply-add: v16_fma rounds twice, v16_fma_once is slow. */
#ifndef WK_WASM_SIMD_WASM_H
#define WK_WASM_SIMD_WASM_H

#include "core/compiler.h"
#include "sys/cpu_features.h"

#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

enum {
    SIMD_NEEDS = WK_CPU_SIMD128,
    /* Register tile of matrix products: TILE_PANELS x 16 rows of the weight by TILE_COLUMNS. */
    TILE_PANELS = 1,
    TILE_COLUMNS = 3,
    TILE_COLUMNS_SMALL = 2,
    HAS_PREFETCH = 0,
    ATTENTION_SUMS = 2,     /* register tile of attention, of 16 floats */
    ATTENTION_WIDENS = 1,   /* whether halves become floats first even for few queries */
    DECODE_PANELS = 1,      /* panels in flight with one column, to hide the latency of the sums */
    COLUMN_IS_UNPACKED = 1, /* exact, with one column: no code for each type */
    SIMD_IS_SHORT = 1,      /* whether less code is worth a few more instructions */
    SIMD_PARTS = 4,         /* registers of 16 floats or of 16 rows of bytes */
};

typedef struct v16 { /* 16 floats */
    v128_t part[SIMD_PARTS];
} v16;
typedef struct b64 { /* 16 rows of 4 bytes */
    v128_t part[SIMD_PARTS];
} b64;

WK_INLINE v16 v16_of(v128_t q0, v128_t q1, v128_t q2, v128_t q3) { return (v16){{q0, q1, q2, q3}}; }
WK_INLINE v16 v16_set(float a) {
    const v128_t all = wasm_f32x4_splat(a);
    return v16_of(all, all, all, all);
}
WK_INLINE v16 v16_zero(void) { return v16_set(0); }
WK_INLINE v16 v16_load(const float *p) {
    return v16_of(wasm_v128_load(p), wasm_v128_load(p + 4), wasm_v128_load(p + 8),
                  wasm_v128_load(p + 12));
}
WK_INLINE void v16_store(float *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) wasm_v128_store(p + 4 * i, a.part[i]);
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

/* Lanes from n on become fill. */
WK_INLINE v16 v16_fill_from(v16 a, int64_t n, float fill) {
    if (n >= 16) return a;
    const v128_t end = wasm_i32x4_splat(n < 0 ? 0 : (int32_t)n);
    const v128_t other = wasm_f32x4_splat(fill);
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t lanes = wasm_i32x4_add(wasm_i32x4_const(0, 1, 2, 3), wasm_i32x4_splat(4 * i));
        a.part[i] = wasm_v128_bitselect(a.part[i], other, wasm_i32x4_lt(lanes, end));
    }
    return a;
}

WK_INLINE v16 v16_add(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_add(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_sub(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_sub(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_mul(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_mul(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_div(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_div(a.part[i], b.part[i]);
    return a;
}
/* a where it is greater, else b, also where one is NaN, as on x86. */
WK_INLINE v128_t simd_max(v128_t a, v128_t b) { return wasm_f32x4_pmax(b, a); }
WK_INLINE v16 v16_max(v16 a, v16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = simd_max(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 v16_fma(v16 a, v16 b, v16 c) { return v16_add(v16_mul(a, b), c); }
/* The first two lanes, by float64, where the product is exact. */
WK_INLINE v128_t simd_fma_wide(v128_t a, v128_t b, v128_t c) {
    const v128_t product =
        wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a), wasm_f64x2_promote_low_f32x4(b));
    const v128_t sum = wasm_f64x2_add(product, wasm_f64x2_promote_low_f32x4(c));
    return wasm_f32x4_demote_f64x2_zero(sum);
}
WK_INLINE v128_t simd_upper(v128_t a) { return wasm_i32x4_shuffle(a, a, 2, 3, 2, 3); }
/* v16_fma as other instruction sets have it, for where the product must not be rounded. */
WK_INLINE v16 v16_fma_once(v16 a, v16 b, v16 c) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t x = a.part[i], y = b.part[i], z = c.part[i];
        const v128_t low = simd_fma_wide(x, y, z);
        const v128_t high = simd_fma_wide(simd_upper(x), simd_upper(y), simd_upper(z));
        c.part[i] = wasm_i64x2_shuffle(low, high, 0, 2);
    }
    return c;
}
WK_INLINE v16 v16_abs(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_abs(a.part[i]);
    return a;
}
WK_INLINE v16 v16_round(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_f32x4_nearest(a.part[i]);
    return a;
}
WK_INLINE v128_t simd_to_int(v128_t a) { return wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(a)); }
/* 2^a for whole a in -126 ... 127. */
WK_INLINE v16 v16_exp2_whole(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t biased = wasm_i32x4_add(simd_to_int(a.part[i]), wasm_i32x4_splat(127));
        a.part[i] = wasm_i32x4_shl(biased, 23);
    }
    return a;
}

/* Rounded to the nearest integers. */
WK_INLINE void v16_store_int(int32_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) wasm_v128_store(p + 4 * i, simd_to_int(a.part[i]));
}

/* Exponent and fraction of words whose upper halves repeat the sign, moved to their places: a
 * number 2^112 times too small, whether it is subnormal or not. */
WK_INLINE v128_t simd_move_f16(v128_t half) {
    return wasm_v128_and(wasm_i32x4_shl(half, 13), wasm_i32x4_splat((int32_t)0x8FFFE000));
}
/* Infinity and NaN would become 2^16 and more. */
WK_INLINE v128_t simd_of_f16(v128_t half) {
    const v128_t value = wasm_f32x4_mul(simd_move_f16(half), wasm_f32x4_splat(0x1p112F));
    const v128_t is_beyond = wasm_f32x4_ge(wasm_f32x4_abs(value), wasm_f32x4_splat(65536));
    return wasm_v128_or(value, wasm_v128_and(is_beyond, wasm_i32x4_splat(0x7F800000)));
}
WK_INLINE v128_t simd_load_f16(const uint16_t *p) { return simd_of_f16(wasm_i32x4_load16x4(p)); }
WK_INLINE v16 v16_load_f16(const uint16_t *p) {
    return v16_of(simd_load_f16(p), simd_load_f16(p + 4), simd_load_f16(p + 8),
                  simd_load_f16(p + 12));
}
/* 16 times the same half. */
WK_INLINE v16 v16_set_f16(uint16_t a) {
    const v128_t all = simd_of_f16(wasm_i32x4_splat((int16_t)a));
    return v16_of(all, all, all, all);
}
/* In the low halves of the words. */
WK_INLINE v128_t simd_to_f16(v128_t a) {
    const v128_t size = wasm_f32x4_abs(a);
    const v128_t sign = wasm_u32x4_shr(wasm_v128_xor(a, size), 16);
    /* Normal: the fraction rounds to 10 bits, half to even, and may carry into the exponent. */
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(size, 13), wasm_i32x4_splat(1));
    const v128_t rounded = wasm_i32x4_add(size, wasm_i32x4_add(odd, wasm_i32x4_splat(0xFFF)));
    const v128_t normal = wasm_i32x4_sub(wasm_u32x4_shr(rounded, 13), wasm_i32x4_splat(112 << 10));
    const v128_t bounded = wasm_i32x4_min(normal, wasm_i32x4_splat(0x7C00));
    /* Subnormal: 1/2 + size has its last bit where that of the result is, 2^-24. */
    const v128_t half = wasm_f32x4_splat(0.5F);
    const v128_t small = wasm_i32x4_sub(wasm_f32x4_add(size, half), half);
    const v128_t is_small = wasm_f32x4_lt(size, wasm_f32x4_splat(0x1p-14F));
    v128_t value = wasm_v128_bitselect(small, bounded, is_small);
    /* NaN stays one, quiet, with what of its bits has room. */
    const v128_t fraction = wasm_v128_and(wasm_u32x4_shr(size, 13), wasm_i32x4_splat(0x3FF));
    const v128_t nan = wasm_v128_or(fraction, wasm_i32x4_splat(0x7E00));
    value = wasm_v128_bitselect(value, nan, wasm_f32x4_eq(a, a));
    return wasm_v128_or(value, sign);
}
WK_INLINE void v16_store_f16(uint16_t *p, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i += 2) {
        const v128_t low = simd_to_f16(a.part[i]), high = simd_to_f16(a.part[i + 1]);
        wasm_v128_store(p + 4 * i, wasm_u16x8_narrow_i32x4(low, high));
    }
}

/* Four rows of four become columns. */
WK_INLINE void simd_transpose(v128_t a[4]) {
    const v128_t t0 = wasm_i32x4_shuffle(a[0], a[1], 0, 4, 1, 5);
    const v128_t t1 = wasm_i32x4_shuffle(a[0], a[1], 2, 6, 3, 7);
    const v128_t t2 = wasm_i32x4_shuffle(a[2], a[3], 0, 4, 1, 5);
    const v128_t t3 = wasm_i32x4_shuffle(a[2], a[3], 2, 6, 3, 7);
    a[0] = wasm_i64x2_shuffle(t0, t2, 0, 2);
    a[1] = wasm_i64x2_shuffle(t0, t2, 1, 3);
    a[2] = wasm_i64x2_shuffle(t1, t3, 0, 2);
    a[3] = wasm_i64x2_shuffle(t1, t3, 1, 3);
}
/* Rows become columns: each 4 x 4 alone, on the way to its place. */
WK_INLINE void v16_transpose(v16 a[16]) {
    v128_t tile[4][4][4]; /* [rows / 4][columns / 4] of 4 x 4 */
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 4; j++) tile[i / 4][j][i % 4] = a[i].part[j];
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) simd_transpose(tile[i][j]);
    for (int i = 0; i < 16; i++)
        a[i] = v16_of(tile[0][i / 4][i % 4], tile[1][i / 4][i % 4], tile[2][i / 4][i % 4],
                      tile[3][i / 4][i % 4]);
}

/* value where x is not below bound, else 0; NaN in x keeps value. */
WK_INLINE v16 v16_zero_below(v16 value, v16 x, float bound) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t is_below = wasm_f32x4_lt(x.part[i], wasm_f32x4_splat(bound));
        value.part[i] = wasm_v128_andnot(value.part[i], is_below);
    }
    return value;
}
/* value where x is not negative, else other. */
WK_INLINE v16 v16_by_sign(v16 x, v16 value, v16 other) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t sign = wasm_i32x4_shr(x.part[i], 31);
        value.part[i] = wasm_v128_bitselect(other.part[i], value.part[i], sign);
    }
    return value;
}
/* Eight floats, each twice. */
WK_INLINE v16 v16_load_twice(const float *p) {
    const v128_t low = wasm_v128_load(p), high = wasm_v128_load(p + 4);
    return v16_of(
        wasm_i32x4_shuffle(low, low, 0, 0, 1, 1), wasm_i32x4_shuffle(low, low, 2, 2, 3, 3),
        wasm_i32x4_shuffle(high, high, 0, 0, 1, 1), wasm_i32x4_shuffle(high, high, 2, 2, 3, 3));
}
/* Neighbours change places. */
WK_INLINE v16 v16_swap_pairs(v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++)
        a.part[i] = wasm_i32x4_shuffle(a.part[i], a.part[i], 1, 0, 3, 2);
    return a;
}

/* The sum of all lanes, pairwise: halves of 8, then of 4, 2 and 1. */
WK_INLINE float v16_sum(v16 a) {
    const v128_t four =
        wasm_f32x4_add(wasm_f32x4_add(a.part[0], a.part[2]), wasm_f32x4_add(a.part[1], a.part[3]));
    const v128_t two = wasm_f32x4_add(four, simd_upper(four));
    return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

/* 16 sums in float64: of the first and of the last two lanes of each register of a v16. */
typedef struct wide_sums {
    v128_t low[SIMD_PARTS], high[SIMD_PARTS];
} wide_sums;

WK_INLINE wide_sums wide_zero(void) {
    const v128_t zero = wasm_f64x2_splat(0);
    return (wide_sums){{zero, zero, zero, zero}, {zero, zero, zero, zero}};
}
WK_INLINE void wide_add(wide_sums *sums, v16 a) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        const v128_t upper = simd_upper(a.part[i]);
        sums->low[i] = wasm_f64x2_add(sums->low[i], wasm_f64x2_promote_low_f32x4(a.part[i]));
        sums->high[i] = wasm_f64x2_add(sums->high[i], wasm_f64x2_promote_low_f32x4(upper));
    }
}
WK_INLINE v128_t simd_sum_wide(const v128_t a[SIMD_PARTS]) {
    return wasm_f64x2_add(wasm_f64x2_add(a[0], a[1]), wasm_f64x2_add(a[2], a[3]));
}
/* The sum of all: registers 0 and 1, 2 and 3, both, then halves of 2 and of 1. */
WK_INLINE double wide_total(const wide_sums *sums) {
    const v128_t two = wasm_f64x2_add(simd_sum_wide(sums->low), simd_sum_wide(sums->high));
    return wasm_f64x2_extract_lane(two, 0) + wasm_f64x2_extract_lane(two, 1);
}

/* The largest lane, where none is NaN. */
WK_INLINE float v16_largest(v16 a) {
    v128_t four = simd_max(simd_max(a.part[0], a.part[2]), simd_max(a.part[1], a.part[3]));
    four = simd_max(four, wasm_i32x4_shuffle(four, four, 2, 3, 0, 1));
    four = simd_max(four, wasm_i32x4_shuffle(four, four, 1, 0, 3, 2));
    return wasm_f32x4_extract_lane(four, 0);
}

WK_INLINE b64 b64_load(const uint8_t *p) {
    return (b64){{wasm_v128_load(p), wasm_v128_load(p + 16), wasm_v128_load(p + 32),
                  wasm_v128_load(p + 48)}};
}
WK_INLINE b64 b64_low_halves(b64 a) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_v128_and(a.part[i], wasm_i8x16_splat(15));
    return a;
}
WK_INLINE b64 b64_high_halves(b64 a) {
    const v128_t low = wasm_i8x16_splat(15); /* x86 has no shifts of bytes */
    for (int i = 0; i < SIMD_PARTS; i++)
        a.part[i] = wasm_v128_and(wasm_u16x8_shr(a.part[i], 4), low);
    return a;
}
/* Byte i of every row, minus bias, exactly. */
WK_INLINE v16 b64_float(b64 a, int i, float bias) {
    v16 y;
    for (int p = 0; p < SIMD_PARTS; p++) {
        const v128_t moved = wasm_u32x4_shr(a.part[p], (uint32_t)(8 * i));
        const v128_t byte = wasm_v128_and(moved, wasm_i32x4_splat(255));
        y.part[p] = wasm_f32x4_sub(wasm_f32x4_convert_i32x4(byte), wasm_f32x4_splat(bias));
    }
    return y;
}

#include "backend/cpu/simd/scale.h"

#endif
