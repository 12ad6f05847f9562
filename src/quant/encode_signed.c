/* quant/encode_signed.c: encoders of q3_k, q6_k, iq4_nl and iq4_xs: x = (d scale) q with a scale of
 * either sign for each group (iq4_nl: d alone); for their layouts see decode_k.c, decode_iq.c. */
#include "quant/encode_block.h"
#include "quant/levels.h"

enum { MAX_GROUPS = 16 };

/* The groups of a block, all of the same size. */
typedef struct signed_format {
    int n_groups, size;
    wk_nearest_fn nearest;
    float peak;
    int least_scale; /* scales are from here to -least_scale - 1 */
} signed_format;

typedef struct signed_scales {
    float d;
    uint16_t d_bits;
    int scale[MAX_GROUPS];
} signed_scales;

WK_INLINE wk_group group_of(signed_format f, const float *x, const float *w, int i) {
    return (wk_group){x + i * f.size, w + i * f.size, f.size, f.nearest, f.peak};
}

/* For each group the best scale among those around target / d. */
WK_INLINE void choose_scales(signed_format f, const float *x, const float *w,
                             const float target[MAX_GROUPS], signed_scales *s) {
    static const float none[WK_TRIES] = {0};
    const float inverse = wk_inverse(s->d);
    const float least = (float)f.least_scale;
    for (int i = 0; i < f.n_groups; i++) {
        float step[WK_TRIES], scale[WK_TRIES], error;
        for (int t = 0; t < WK_TRIES; t++) {
            scale[t] = wk_nearest_integer(target[i] * inverse + (float)(t - 3), least, -least - 1);
            step[t] = s->d * scale[t];
        }
        s->scale[i] = (int)scale[wk_choose_step(group_of(f, x, w, i), step, none, &error)];
    }
}

/* The best d for the scales and levels as they are: x is stored as d (scale q). */
WK_INLINE float solve_d(signed_format f, const float *x, const float *w, const signed_scales *s) {
    float xq = 0, qq = 0;
    for (int i = 0; i < f.n_groups; i++) {
        const wk_group g = group_of(f, x, w, i);
        const float scale = (float)s->scale[i], inverse = wk_inverse(s->d * scale);
        for (int j = 0; j < f.size; j++) {
            const float q = scale * f.nearest(g.x[j] * inverse);
            xq += g.w[j] * g.x[j] * q;
            qq += g.w[j] * q * q;
        }
    }
    return qq > 0 ? xq / qq : 0;
}

/* Every group gets the scale that it wants; the largest of them becomes the scale of the largest
 * magnitude. Then d and the scales are adapted to each other once. */
WK_INLINE signed_scales fit_scales(signed_format f, const float *x, const float *w) {
    signed_scales s = {0};
    float target[MAX_GROUPS];
    for (int i = 0; i < f.n_groups; i++) target[i] = wk_fit_scale(group_of(f, x, w, i));
    const float first = wk_extreme(target, f.n_groups) / (float)f.least_scale;
    s.d = wk_round_to_f16(first, &s.d_bits);
    choose_scales(f, x, w, target, &s);
    s.d = wk_round_to_f16(solve_d(f, x, w, &s), &s.d_bits);
    choose_scales(f, x, w, target, &s);
    return s;
}

/* ---- q3_k ---- */

static float nearest_q3(float v) { return wk_nearest_integer(v, -4, 3); }

void wk_encode_block_q3_k(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    static const signed_format format = {16, 16, nearest_q3, -4, -32};
    const signed_scales s = fit_scales(format, x, w);
    memset(block, 0, 108);
    wk_store_u16(block + 108, s.d_bits);
    for (int i = 0; i < 16; i++) {
        const unsigned stored = (unsigned)(s.scale[i] + 32);
        uint8_t *const packed = block + 96;
        packed[i % 8] |= (uint8_t)((stored & 15) << (i / 8 * 4));
        packed[8 + i % 4] |= (uint8_t)((stored >> 4) << (i / 4 * 2));
        const float inverse = wk_inverse(s.d * (float)s.scale[i]);
        uint8_t *const third = block + i % 2 * 16;
        uint8_t *const two = block + 32 + i / 8 * 32 + i % 2 * 16;
        for (int j = 0; j < 16; j++) {
            const unsigned q = (unsigned)((int)nearest_q3(x[16 * i + j] * inverse) + 4);
            third[j] |= (uint8_t)(q >> 2 << i / 2);
            two[j] |= (uint8_t)((q & 3) << (i / 2 % 4 * 2));
        }
    }
}

/* ---- q6_k ---- */

static float nearest_q6(float v) { return wk_nearest_integer(v, -32, 31); }

void wk_encode_block_q6_k(const float *restrict x, const float *restrict w,
                          uint8_t *restrict block) {
    static const signed_format format = {16, 16, nearest_q6, -32, -128};
    const signed_scales s = fit_scales(format, x, w);
    memset(block, 0, 192);
    wk_store_u16(block + 208, s.d_bits);
    for (int i = 0; i < 16; i++) {
        block[192 + i] = (uint8_t)s.scale[i];
        const float inverse = wk_inverse(s.d * (float)s.scale[i]);
        const int run = i / 2 % 4, half = i / 8;
        uint8_t *const low = block + 64 * half + run % 2 * 32 + i % 2 * 16;
        uint8_t *const high = block + 128 + 32 * half + i % 2 * 16;
        for (int j = 0; j < 16; j++) {
            const unsigned q = (unsigned)((int)nearest_q6(x[16 * i + j] * inverse) + 32);
            low[j] |= (uint8_t)((q & 15) << (run / 2 * 4));
            high[j] |= (uint8_t)((q >> 4) << 2 * run);
        }
    }
}

/* ---- iq4 ---- */

/* What level i adds to the one below it, for v beyond the border halfway between them. */
WK_INLINE float rise(float v, int i) {
    const float below = wk_iq4_levels[i - 1], above = wk_iq4_levels[i];
    return v > 0.5F * (below + above) ? above - below : 0;
}

/* Written out, as compilers do not vectorise a loop in a loop, and inlined, as gcc finds it too
 * large for that, and vectorises no loop with a call. */
WK_INLINE float nearest_iq4(float v) {
    return (float)wk_iq4_levels[0] + rise(v, 1) + rise(v, 2) + rise(v, 3) + rise(v, 4) +
           rise(v, 5) + rise(v, 6) + rise(v, 7) + rise(v, 8) + rise(v, 9) + rise(v, 10) +
           rise(v, 11) + rise(v, 12) + rise(v, 13) + rise(v, 14) + rise(v, 15);
}

/* n numbers as halves of bytes. */
static void put_iq4(const float *x, int n, float inverse, uint8_t *halves) {
    uint8_t q[WK_QK_SMALL];
    for (int j = 0; j < n; j++) {
        const float level = nearest_iq4(x[j] * inverse);
        unsigned i = 0;
        while ((float)wk_iq4_levels[i] < level) i++;
        q[j] = (uint8_t)i;
    }
    for (int j = 0; j < n / 2; j++) halves[j] = (uint8_t)(q[j] | q[j + n / 2] << 4);
}

void wk_encode_block_iq4_nl(const float *restrict x, const float *restrict w,
                            uint8_t *restrict block) {
    uint16_t bits;
    const float d = wk_fit_scale((wk_group){x, w, WK_QK_SMALL, nearest_iq4, -127});
    const float inverse = wk_inverse(wk_round_to_f16(d, &bits));
    wk_store_u16(block, bits);
    put_iq4(x, WK_QK_SMALL, inverse, block + 2);
}

void wk_encode_block_iq4_xs(const float *restrict x, const float *restrict w,
                            uint8_t *restrict block) {
    static const signed_format format = {8, 32, nearest_iq4, -127, -32};
    const signed_scales s = fit_scales(format, x, w);
    wk_store_u16(block, s.d_bits);
    unsigned high = 0;
    memset(block + 4, 0, 4);
    for (int i = 0; i < 8; i++) {
        const unsigned stored = (unsigned)(s.scale[i] + 32);
        high |= stored >> 4 << 2 * i;
        block[4 + i / 2] |= (uint8_t)((stored & 15) << (i % 2 * 4));
        put_iq4(x + 32 * i, 32, wk_inverse(s.d * (float)s.scale[i]), block + 8 + 16 * i);
    }
    wk_store_u16(block + 2, (uint16_t)high);
}
