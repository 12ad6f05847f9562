/* quant/encode_small.c: encoders of blocks of 32 elements with one scale; for their layouts see
 * decode_small.c. */
#include "quant/encode.h"
#include "quant/encode_block.h"
#include "quant/levels.h"

#include <assert.h>

enum { N = WK_QK_SMALL, HALF = WK_QK_SMALL / 2 };

static float nearest_q4(float v) { return wk_nearest_integer(v, -8, 7); }
static float nearest_q5(float v) { return wk_nearest_integer(v, -16, 15); }
static float nearest_q8(float v) { return wk_nearest_integer(v, -127, 127); }
static float nearest_u4(float v) { return wk_nearest_integer(v, 0, 15); }
static float nearest_u5(float v) { return wk_nearest_integer(v, 0, 31); }

/* Numbers below 16 as halves of bytes. */
static void put_halves(const uint8_t q[N], uint8_t *halves) {
    for (int j = 0; j < HALF; j++) halves[j] = (uint8_t)((q[j] & 15) | (q[j + HALF] & 15) << 4);
}

/* Numbers below 32: their fifth bits first, then halves. */
static void put_5_bits(const uint8_t q[N], uint8_t *bytes) {
    for (int i = 0; i < N / 8; i++) {
        unsigned bits = 0;
        for (int j = 0; j < 8; j++) bits |= (unsigned)(q[8 * i + j] >> 4) << j;
        bytes[i] = (uint8_t)bits;
    }
    put_halves(q, bytes + 4);
}

/* The numbers of the levels nearest to x with scale d as it is stored. zero: what 0 is stored as.
 */
WK_INLINE void encode_scaled(wk_group g, float d, int zero, uint8_t *stored_d, uint8_t q[N]) {
    uint16_t bits;
    const float inverse = wk_inverse(wk_round_to_f16(d, &bits));
    wk_store_u16(stored_d, bits);
    for (int j = 0; j < N; j++) q[j] = (uint8_t)((int)g.nearest(g.x[j] * inverse) + zero);
}

WK_INLINE wk_group group_of_q4_0(const float *x, const float *w) {
    return (wk_group){x, w, N, nearest_q4, -8};
}

/* -128 is left out: kernels may negate. */
WK_INLINE wk_group group_of_q8_0(const float *x, const float *w) {
    return (wk_group){x, w, N, nearest_q8, 127};
}

void wk_encode_block_q4_0(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    uint8_t q[N];
    const wk_group g = group_of_q4_0(x, w);
    encode_scaled(g, wk_fit_scale(g), 8, block, q);
    put_halves(q, block + 2);
}

void wk_encode_block_q5_0(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    uint8_t q[N];
    const wk_group g = {x, w, N, nearest_q5, -16};
    encode_scaled(g, wk_fit_scale(g), 16, block, q);
    put_5_bits(q, block + 2);
}

void wk_encode_block_q8_0(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    const wk_group g = group_of_q8_0(x, w);
    encode_scaled(g, wk_fit_scale(g), 0, block, block + 2);
}

/* The scale that puts the extreme element on the outermost level. */
WK_INLINE float outer_scale(wk_group g) { return wk_extreme(g.x, g.n) / g.peak; }

void wk_encode_quickly(wick_dtype dtype, const float *src, void *dst, int64_t n) {
    assert(wk_can_encode_quickly(dtype) && n % N == 0);
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += N, block += wk_dtype_get(dtype)->block_bytes) {
        if (dtype == WICK_Q8_0) {
            const wk_group g = group_of_q8_0(src + i, NULL);
            encode_scaled(g, outer_scale(g), 0, block, block + 2);
        } else {
            uint8_t q[N];
            const wk_group g = group_of_q4_0(src + i, NULL);
            encode_scaled(g, outer_scale(g), 8, block, q);
            put_halves(q, block + 2);
        }
    }
}

WK_INLINE void encode_affine(wk_group g, uint8_t *stored, uint8_t q[N]) {
    const wk_affine_fit fit = wk_fit_affine(g, false);
    uint16_t bits;
    const float inverse = wk_inverse(wk_round_to_f16(fit.d, &bits));
    wk_store_u16(stored, bits);
    const float m = wk_round_to_f16(fit.m, &bits);
    wk_store_u16(stored + 2, bits);
    for (int j = 0; j < N; j++) q[j] = (uint8_t)g.nearest((g.x[j] - m) * inverse);
}

void wk_encode_block_q4_1(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    uint8_t q[N];
    encode_affine((wk_group){x, w, N, nearest_u4, 15}, block, q);
    put_halves(q, block + 4);
}

void wk_encode_block_q5_1(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    uint8_t q[N];
    encode_affine((wk_group){x, w, N, nearest_u5, 31}, block, q);
    put_5_bits(q, block + 4);
}

/* The border between two neighbouring levels is halfway. */
static float nearest_e2m1(float v) {
    const float a = fabsf(v);
    const float small = (a > 0.25F ? 0.5F : 0) + (a > 0.75F ? 0.5F : 0) + (a > 1.25F ? 0.5F : 0) +
                        (a > 1.75F ? 0.5F : 0);
    const float large = (a > 2.5F ? 1.0F : 0) + (a > 3.5F ? 1.0F : 0) + (a > 5.0F ? 2.0F : 0);
    return copysignf(small + large, v);
}

static uint8_t index_e2m1(float v) {
    const float twice = 2 * nearest_e2m1(v);
    uint8_t i = 0;
    while (i < 7 && (float)wk_twice_e2m1[i] < fabsf(twice)) i++;
    return (uint8_t)(twice < 0 ? i + 8 : i);
}

/* The scale is a power of two: of those around the one that brings the largest element to [4, 8),
 * whose largest level is 6, the one of the least error. Everything is divided by that power first,
 * so that no sum can overflow. */
void wk_encode_block_mxfp4(const float *restrict x, const float *restrict w,
                           uint8_t *restrict block) {
    enum { BIAS = 127, LEAST = 2 - BIAS, FIRST = -3 };
    int exponent = LEAST; /* of the largest element's 2^e, less 2 */
    const float extreme = fabsf(wk_extreme(x, N));
    if (extreme > 0) exponent = ilogbf(extreme) - 2;
    if (exponent < LEAST) exponent = LEAST;

    float y[N], step[WK_TRIES], none[WK_TRIES] = {0}, error;
    for (int j = 0; j < N; j++) y[j] = ldexpf(x[j], -exponent);
    for (int t = 0; t < WK_TRIES; t++) {
        const int bounded = exponent + FIRST + t < -BIAS ? -BIAS - exponent : FIRST + t;
        step[t] = ldexpf(1, bounded);
    }
    const int best = wk_choose_step((wk_group){y, w, N, nearest_e2m1, 6}, step, none, &error);
    block[0] = (uint8_t)(exponent + ilogbf(step[best]) + BIAS);
    uint8_t q[N];
    for (int j = 0; j < N; j++) q[j] = index_e2m1(y[j] / step[best]);
    put_halves(q, block + 1);
}
