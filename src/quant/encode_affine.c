/* quant/encode_affine.c: encoders of q2_k, q4_k and q5_k: x = (d scale) q - dmin minimum with a
 * scale and a minimum, both not negative, for each group; for their layouts see decode_k.c. */
#include "quant/encode_block.h"

enum { MAX_GROUPS = 16 };

/* The groups of a block, all of the same size; scales and minima are from 0 to most_scale. */
typedef struct affine_format {
    int n_groups, size;
    wk_nearest_fn nearest;
    float peak;
    float most_scale;
} affine_format;

typedef struct affine_scales {
    float d, dmin;
    uint16_t d_bits, dmin_bits;
    float scale[MAX_GROUPS], minimum[MAX_GROUPS];
} affine_scales;

/* What the groups would have if they could. */
typedef struct affine_targets {
    float step[MAX_GROUPS], minimum[MAX_GROUPS];
} affine_targets;

WK_INLINE wk_group group_of(affine_format f, const float *x, const float *w, int i) {
    return (wk_group){x + i * f.size, w + i * f.size, f.size, f.nearest, f.peak};
}

/* The best of 3 scales around the target, each with 8 minima around the target's. */
WK_INLINE void choose_pair(affine_format f, wk_group g, float scale, float minimum,
                           affine_scales *s, int i) {
    float step[WK_TRIES], minima[WK_TRIES], shift[WK_TRIES];
    for (int t = 0; t < WK_TRIES; t++) {
        minima[t] = wk_nearest_integer(minimum + (float)(t - 3), 0, f.most_scale);
        shift[t] = s->dmin * minima[t];
    }
    float least = INFINITY;
    for (int k = -1; k <= 1; k++) {
        const float tried = wk_nearest_integer(scale + (float)k, 0, f.most_scale);
        for (int t = 0; t < WK_TRIES; t++) step[t] = s->d * tried;
        float error;
        const int best = wk_choose_step(g, step, shift, &error);
        if (error >= least) continue;
        least = error;
        s->scale[i] = tried;
        s->minimum[i] = minima[best];
    }
}

WK_INLINE void choose_pairs(affine_format f, const float *x, const float *w,
                            const affine_targets *targets, affine_scales *s) {
    const float d = wk_inverse(s->d), dmin = wk_inverse(s->dmin);
    for (int i = 0; i < f.n_groups; i++)
        choose_pair(f, group_of(f, x, w, i), targets->step[i] * d, targets->minimum[i] * dmin, s,
                    i);
}

/* Numbers of the levels of group i. */
WK_INLINE void quantize_group(affine_format f, const float *x, const affine_scales *s, int i,
                              uint8_t *q) {
    const float inverse = wk_inverse(s->d * s->scale[i]), shift = s->dmin * s->minimum[i];
    for (int j = 0; j < f.size; j++)
        q[j] = (uint8_t)f.nearest((x[i * f.size + j] + shift) * inverse);
}

/* The best d and dmin for scales, minima and levels as they are: x = d a - dmin b with a = scale q
 * and b = minimum. Where there is more than one solution, they stay. */
WK_INLINE void solve_d(affine_format f, const float *x, const float *w, affine_scales *s) {
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int i = 0; i < f.n_groups; i++) {
        uint8_t q[WK_QK_SMALL];
        quantize_group(f, x, s, i, q);
        const wk_group g = group_of(f, x, w, i);
        const float b = s->minimum[i];
        for (int j = 0; j < f.size; j++) {
            const float a = s->scale[i] * (float)q[j], wa = g.w[j] * a, wb = g.w[j] * b;
            aa += wa * a;
            ab += wa * b;
            bb += wb * b;
            xa += wa * g.x[j];
            xb += wb * g.x[j];
        }
    }
    const float determinant = aa * bb - ab * ab;
    if (!(determinant > 0)) return;
    const float d = (xa * bb - xb * ab) / determinant, dmin = (xa * ab - xb * aa) / determinant;
    if (d < 0 || dmin < 0) return;
    s->d = wk_round_to_f16(d, &s->d_bits);
    s->dmin = wk_round_to_f16(dmin, &s->dmin_bits);
}

/* Every group gets what it wants; the largest step and minimum become the largest scale and
 * minimum. Then d and dmin are adapted to them once, and they to d and dmin. */
WK_INLINE affine_scales fit_scales(affine_format f, const float *x, const float *w) {
    affine_scales s = {0};
    affine_targets targets;
    float most_step = 0, most_minimum = 0;
    for (int i = 0; i < f.n_groups; i++) {
        const wk_affine_fit fit = wk_fit_affine(group_of(f, x, w, i), true);
        targets.step[i] = fit.d;
        targets.minimum[i] = -fit.m;
        most_step = fmaxf(most_step, fit.d);
        most_minimum = fmaxf(most_minimum, -fit.m);
    }
    s.d = wk_round_to_f16(most_step / f.most_scale, &s.d_bits);
    s.dmin = wk_round_to_f16(most_minimum / f.most_scale, &s.dmin_bits);
    choose_pairs(f, x, w, &targets, &s);
    solve_d(f, x, w, &s);
    choose_pairs(f, x, w, &targets, &s);
    return s;
}

/* ---- q2_k ---- */

static float nearest_u2(float v) { return wk_nearest_integer(v, 0, 3); }

void wk_encode_block_q2_k(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    static const affine_format format = {16, 16, nearest_u2, 3, 15};
    const affine_scales s = fit_scales(format, x, w);
    memset(block, 0, 80);
    wk_store_u16(block + 80, s.d_bits);
    wk_store_u16(block + 82, s.dmin_bits);
    for (int i = 0; i < 16; i++) {
        block[i] = (uint8_t)((int)s.scale[i] | (int)s.minimum[i] << 4);
        uint8_t *const two = block + 16 + i / 8 * 32 + i % 2 * 16;
        uint8_t q[16];
        quantize_group(format, x, &s, i, q);
        for (int j = 0; j < 16; j++) two[j] |= (uint8_t)(q[j] << (i / 2 % 4 * 2));
    }
}

/* ---- q4_k and q5_k ---- */

static float nearest_u4(float v) { return wk_nearest_integer(v, 0, 15); }
static float nearest_u5(float v) { return wk_nearest_integer(v, 0, 31); }

/* d, dmin, and the 12 bytes of 6-bit scales and minima. */
static void put_scales(const affine_scales *s, uint8_t *block) {
    wk_store_u16(block, s->d_bits);
    wk_store_u16(block + 2, s->dmin_bits);
    uint8_t *const packed = block + 4;
    for (int i = 0; i < 4; i++) {
        const unsigned scale = (unsigned)s->scale[i + 4], minimum = (unsigned)s->minimum[i + 4];
        packed[i] = (uint8_t)((unsigned)s->scale[i] | scale >> 4 << 6);
        packed[i + 4] = (uint8_t)((unsigned)s->minimum[i] | minimum >> 4 << 6);
        packed[i + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

/* Low halves of run i: two runs share 32 bytes. */
static void put_run(const uint8_t q[32], int i, uint8_t *halves) {
    uint8_t *const to = halves + i / 2 * 32;
    for (int j = 0; j < 32; j++)
        to[j] = i % 2 == 0 ? q[j] & 15 : (uint8_t)(to[j] | (q[j] & 15) << 4);
}

void wk_encode_block_q4_k(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    static const affine_format format = {8, 32, nearest_u4, 15, 63};
    const affine_scales s = fit_scales(format, x, w);
    put_scales(&s, block);
    for (int i = 0; i < 8; i++) {
        uint8_t q[32];
        quantize_group(format, x, &s, i, q);
        put_run(q, i, block + 16);
    }
}

void wk_encode_block_q5_k(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    static const affine_format format = {8, 32, nearest_u5, 31, 63};
    const affine_scales s = fit_scales(format, x, w);
    put_scales(&s, block);
    memset(block + 16, 0, 32);
    for (int i = 0; i < 8; i++) {
        uint8_t q[32];
        quantize_group(format, x, &s, i, q);
        put_run(q, i, block + 48);
        for (int j = 0; j < 32; j++) block[16 + j] |= (uint8_t)(q[j] >> 4 << i);
    }
}
