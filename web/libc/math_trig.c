/* math_trig.c: sine and cosine. x = n pi/2 + r with |r| <= pi/4, and the series of r. */
#include "bits.h"
#include "dd.h"

#include <math.h>
#include <stdint.h>

/* ---- Reduction ---- */

/* Cody and Waite: pi/2 in parts of 33 bits, whose products with n below 2^20 are exact. */
static dd reduce_near(double x, int *quadrant) {
    static const double parts[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34,
                                   0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104};
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    *quadrant = (int)n & 3;
    dd r = {x - n * parts[0], 0};
    for (int i = 1; i < 4; i++) {
        const dd next = dd_sum(r.high, -n * parts[i]);
        r = dd_sum(next.high, next.low + r.low);
    }
    return r;
}

/* Payne and Hanek (1983): x = m 2^e times the bits of 2/pi around 2^-e; those before make whole
 * turns only. At least 77 good bits are left where x is as near to n pi/2 as a double can be. */
static dd reduce_far(double x, int *quadrant) {
    static const uint32_t two_over_pi[] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
        0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
        0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
        0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
        0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
        0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d};
    enum { WINDOW = 7, LIMBS = WINDOW + 2 };
    const uint64_t bits = bits_of(x);
    const uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    const int e = (int)(bits >> 52) - 1075;
    const int first = e >= 2 ? (e - 2) / 32 : 0; /* word of the window */

    uint32_t product[LIMBS] = {0}; /* least significant first */
    const uint32_t factor[2] = {(uint32_t)m, (uint32_t)(m >> 32)};
    for (int i = 0; i < 2; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < WINDOW; j++) {
            carry += product[i + j] + (uint64_t)factor[i] * two_over_pi[first + WINDOW - 1 - j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + WINDOW] = (uint32_t)carry;
    }

    /* product = x 2/pi 2^point, modulo whole turns: two bits above the point are the quadrant. The
     * rest, moved up, is a fraction: limbs[0] its highest 32 bits. */
    const int point = 32 * (first + WINDOW) - e;
    uint32_t fraction[LIMBS] = {0};
    for (int i = 0; i < LIMBS; i++) {
        for (int bit = 0; bit < 32; bit++) {
            const int from = point + 1 - (32 * i + bit);
            const uint32_t value = from >= 0 ? product[from / 32] >> (from % 32) & 1 : 0;
            fraction[i] |= value << (31 - bit);
        }
    }
    unsigned n = fraction[0] >> 30;
    fraction[0] &= UINT32_C(0x3fffffff);
    const double sign = fraction[0] >> 29 ? -1 : 1; /* from the nearest quadrant */
    if (sign < 0) {
        n++;
        for (int i = 0; i < LIMBS; i++) fraction[i] = ~fraction[i];
        fraction[0] &= UINT32_C(0x3fffffff);
    }
    dd sum = {0, 0};
    double weight = sign * 0x1p-30;
    for (int i = 0; i < LIMBS; i++, weight *= 0x1p-32) {
        const dd next = dd_sum(sum.high, fraction[i] * weight);
        sum = dd_sum(next.high, next.low + sum.low);
    }
    *quadrant = (int)(n & 3);
    return dd_multiply(sum, (dd){0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54});
}

/* ---- Series for |r| <= pi/4 ---- */

static double sine(dd r) {
    static const double c[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    const double z = r.high * r.high;
    double sum = 0;
    for (int i = sizeof c / sizeof *c - 1; i >= 0; i--) sum = sum * z + c[i];
    return r.high + (r.low * (1 - z / 2) + r.high * z * sum);
}

static double cosine(dd r) {
    static const double c[] = {
        1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
    const double z = r.high * r.high;
    double sum = 0;
    for (int i = sizeof c / sizeof *c - 1; i >= 0; i--) sum = sum * z + c[i];
    const double half = z / 2, w = 1 - half;
    return w + (((1 - w) - half) + (z * z * sum - r.high * r.low));
}

/* sin(x + turn pi/2) */
static double turned(double x, int turn) {
    if (!isfinite(x)) return NAN;
    const double a = fabs(x);
    int n;
    dd r = a < 0x1p19 ? reduce_near(a, &n) : reduce_far(a, &n);
    if (signbit(x)) {
        r = (dd){-r.high, -r.low};
        n = -n;
    }
    n = (n + turn) & 3;
    const double value = n & 1 ? cosine(r) : sine(r);
    return n & 2 ? -value : value;
}

double sin(double x) { return x == 0 ? x : turned(x, 0); } /* zero with its sign */
double cos(double x) { return turned(x, 1); }
double tan(double x) { return sin(x) / cos(x); }
