/* quant/encode_block.h: what the encoders of blocks share: the list of them, and the searches for
 * the scale of a group of elements.
 *
 * A group x is stored as d q (or d q + m) with q from a fixed set of levels. Given d, the best q is
 * the level nearest to x / d; given q, the best d is the solution of a linear equation. The error
 * as a function of d has many minima, so the searches try several values of d, all of them in one
 * pass over the group, and take for each the least-squares d of the levels that it leads to. A loop
 * over tries is one over independent sums, which compilers vectorise without reordering any. */
#ifndef WK_QUANT_ENCODE_BLOCK_H
#define WK_QUANT_ENCODE_BLOCK_H

#include "core/compiler.h"
#include "core/half.h"
#include "quant/block.h"

#include <math.h>
#include <string.h>

/* X(dtype, name, the largest magnitude that it holds, in units of the largest f16) */
#define WK_BLOCK_ENCODERS(X)                                                                       \
    X(WICK_Q4_0, q4_0, 8)                                                                          \
    X(WICK_Q4_1, q4_1, 1)                                                                          \
    X(WICK_Q5_0, q5_0, 16)                                                                         \
    X(WICK_Q5_1, q5_1, 1)                                                                          \
    X(WICK_Q8_0, q8_0, 127)                                                                        \
    X(WICK_Q2_K, q2_k, 15)                                                                         \
    X(WICK_Q3_K, q3_k, 31 * 3)                                                                     \
    X(WICK_Q4_K, q4_k, 63)                                                                         \
    X(WICK_Q5_K, q5_k, 63)                                                                         \
    X(WICK_Q6_K, q6_k, 127 * 31)                                                                   \
    X(WICK_IQ4_NL, iq4_nl, 113)                                                                    \
    X(WICK_IQ4_XS, iq4_xs, 31 * 113)                                                               \
    X(WICK_MXFP4, mxfp4, 0x1p110F)

/* Encodes one block: its elements and their weights, in [0, 1] and not all 0. */
#define WK_DECLARE_ENCODER(dtype, name, largest)                                                   \
    void wk_encode_block_##name(const float *restrict x, const float *restrict w,                  \
                                uint8_t *restrict block);
WK_BLOCK_ENCODERS(WK_DECLARE_ENCODER)
#undef WK_DECLARE_ENCODER

#define WK_F16_MAX 65504.0F

static inline void wk_store_u16(uint8_t *bytes, uint16_t value) {
    memcpy(bytes, &value, sizeof value);
}

/* The nearest finite f16 that is not 0 unless value is, as a scale of 0 would lose its elements;
 * *stored gets its bits. */
static inline float wk_round_to_f16(float value, uint16_t *stored) {
    const float smallest = 0x1p-24F;
    const float magnitude = fmaxf(fminf(fabsf(value), WK_F16_MAX), smallest);
    *stored = wk_f32_to_f16(value != 0 ? copysignf(magnitude, value) : 0);
    return wk_f16_to_f32(*stored);
}

/* 1 / d, and 0 for 0: then all levels are the one nearest to 0. */
static inline float wk_inverse(float d) { return d != 0 ? 1 / d : 0; }

/* The level nearest to v. */
typedef float (*wk_nearest_fn)(float v);

/* The integer of [least, most] nearest to v: float32 has no bits for fractions beyond 2^23. */
WK_INLINE float wk_nearest_integer(float v, float least, float most) {
    const float low = v > least ? v : least;
    const float bounded = low < most ? low : most;
    return (bounded + 0x1.8p23F) - 0x1.8p23F;
}

/* Elements that share a scale, their weights, and the levels: peak is the one of the largest
 * magnitude. Functions that get one are inlined, so that n and nearest are constants in them. */
typedef struct wk_group {
    const float *x, *w;
    int n;
    wk_nearest_fn nearest;
    float peak;
} wk_group;

enum { WK_TRIES = 8 };

/* Below this a magnitude is nearer to 0 than to the smallest f16 above it. */
#define WK_NEGLIGIBLE 0x1p-26F

/* ---- x as d q ---- */

/* The squared error is the sum of w x^2 less gain. */
typedef struct wk_scale_fit {
    float d, gain;
} wk_scale_fit;

/* For q = nearest(x inverse) the best d is sum(w x q) / sum(w q^2), and the error falls by
 * sum(w x q)^2 / sum(w q^2). */
WK_INLINE void wk_try_scales(wk_group g, const float inverse[WK_TRIES], wk_scale_fit *best) {
    float xq[WK_TRIES] = {0}, qq[WK_TRIES] = {0};
    for (int j = 0; j < g.n; j++) {
        for (int t = 0; t < WK_TRIES; t++) {
            const float q = g.nearest(g.x[j] * inverse[t]);
            const float wq = g.w[j] * q;
            xq[t] += wq * g.x[j];
            qq[t] += wq * q;
        }
    }
    for (int t = 0; t < WK_TRIES; t++) {
        if (qq[t] > 0 && xq[t] * xq[t] > best->gain * qq[t])
            *best = (wk_scale_fit){.d = xq[t] / qq[t], .gain = xq[t] * xq[t] / qq[t]};
    }
}

/* The element of the largest magnitude; 0 where all are 0. */
WK_INLINE float wk_extreme(const float *x, int n) {
    float low = 0, high = 0;
    for (int j = 0; j < n; j++) {
        low = x[j] < low ? x[j] : low;
        high = x[j] > high ? x[j] : high;
    }
    return -low > high ? low : high;
}

/* Puts the extreme element on 0.8 peak to 1.175 peak (where it is cut off), then tries values close
 * to the best. */
WK_INLINE float wk_fit_scale(wk_group g) {
    wk_scale_fit best = {0};
    const float extreme = wk_extreme(g.x, g.n);
    if (fabsf(extreme) < WK_NEGLIGIBLE) return 0;
    float inverse[WK_TRIES];
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < WK_TRIES; t++)
            inverse[t] = g.peak / extreme * (0.8F + 0.025F * (float)(2 * t + pass));
        wk_try_scales(g, inverse, &best);
    }
    const float centre = wk_inverse(best.d);
    for (int t = 0; t < WK_TRIES; t++) inverse[t] = centre * (0.9825F + 0.005F * (float)t);
    wk_try_scales(g, inverse, &best);
    return best.d;
}

/* ---- x as d q + m, q and d not negative ---- */

typedef struct wk_affine_fit {
    float d, m, gain;
} wk_affine_fit;

/* The sums of the normal equations: of w, w x, w q, w q^2, w x q. */
typedef struct wk_affine_sums {
    float w, x, q, qq, xq;
} wk_affine_sums;

/* The best d and m; where that m is larger than most_m, the best d for most_m. */
static inline wk_affine_fit wk_solve_affine(wk_affine_sums s, float most_m) {
    const float determinant = s.w * s.qq - s.q * s.q;
    wk_affine_fit fit = {.m = s.x / s.w};
    if (determinant > 0) {
        fit.d = (s.w * s.xq - s.x * s.q) / determinant;
        fit.m = (s.x - fit.d * s.q) / s.w;
    }
    if (fit.m > most_m) {
        fit.m = most_m;
        fit.d = s.qq > 0 ? (s.xq - most_m * s.q) / s.qq : 0;
    }
    if (fit.d < 0) fit.d = 0;
    fit.gain =
        fit.d * (2 * s.xq - fit.d * s.qq - 2 * fit.m * s.q) + fit.m * (2 * s.x - fit.m * s.w);
    return fit;
}

/* q = nearest((x - shift) inverse). sums: those that do not depend on q are given. */
WK_INLINE void wk_try_affine(wk_group g, float shift, const float inverse[WK_TRIES],
                             wk_affine_sums sums, float most_m, wk_affine_fit *best) {
    float xq[WK_TRIES] = {0}, qq[WK_TRIES] = {0}, q1[WK_TRIES] = {0};
    for (int j = 0; j < g.n; j++) {
        for (int t = 0; t < WK_TRIES; t++) {
            const float q = g.nearest((g.x[j] - shift) * inverse[t]);
            const float wq = g.w[j] * q;
            xq[t] += wq * g.x[j];
            qq[t] += wq * q;
            q1[t] += wq;
        }
    }
    for (int t = 0; t < WK_TRIES; t++) {
        sums.q = q1[t], sums.qq = qq[t], sums.xq = xq[t];
        const wk_affine_fit fit = wk_solve_affine(sums, most_m);
        if (fit.gain > best->gain) *best = fit;
    }
}

/* Puts the range of x on peak - 0.8 to peak + 0.7 levels (where its upper end is cut off), then
 * tries values close to the best. is_negative: m must be at most 0. The sums are over x less its
 * smallest element: a small range far from 0 would be lost in them. */
WK_INLINE wk_affine_fit wk_fit_affine(wk_group g, bool is_negative) {
    float low = is_negative ? 0 : g.x[0], high = low;
    for (int j = 0; j < g.n; j++) {
        low = g.x[j] < low ? g.x[j] : low;
        high = g.x[j] > high ? g.x[j] : high;
    }
    float y[WK_QK_SMALL];
    wk_affine_sums sums = {0};
    for (int j = 0; j < g.n; j++) {
        y[j] = g.x[j] - low;
        sums.w += g.w[j];
        sums.x += g.w[j] * y[j];
    }
    const float most_m = is_negative ? -low : INFINITY;
    wk_affine_fit best = wk_solve_affine(sums, most_m);
    if (high - low >= WK_NEGLIGIBLE) {
        const wk_group shifted = {y, g.w, g.n, g.nearest, g.peak};
        float inverse[WK_TRIES];
        for (int pass = 0; pass < 2; pass++) {
            for (int t = 0; t < WK_TRIES; t++)
                inverse[t] = (g.peak - 0.8F + 0.1F * (float)(2 * t + pass)) / (high - low);
            wk_try_affine(shifted, 0, inverse, sums, most_m, &best);
        }
        const float centre = wk_inverse(best.d), m = best.m;
        for (int t = 0; t < WK_TRIES; t++) inverse[t] = centre * (0.93F + 0.02F * (float)t);
        wk_try_affine(shifted, m, inverse, sums, most_m, &best);
    }
    best.m += low;
    return best;
}

/* ---- Choosing among steps that can be stored ---- */

/* The squared error of every (step[t], minimum[t]) when x is stored as step q - minimum; the index
 * of the least, the first of equals. */
WK_INLINE int wk_choose_step(wk_group g, const float step[WK_TRIES], const float minimum[WK_TRIES],
                             float *least) {
    float inverse[WK_TRIES], error[WK_TRIES] = {0};
    for (int t = 0; t < WK_TRIES; t++) inverse[t] = wk_inverse(step[t]);
    for (int j = 0; j < g.n; j++) {
        for (int t = 0; t < WK_TRIES; t++) {
            const float x = g.x[j] + minimum[t];
            const float e = x - step[t] * g.nearest(x * inverse[t]);
            error[t] += g.w[j] * e * e;
        }
    }
    int best = 0;
    for (int t = 1; t < WK_TRIES; t++) best = error[t] < error[best] ? t : best;
    *least = error[best];
    return best;
}

#endif
