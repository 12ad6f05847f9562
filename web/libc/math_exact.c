/* math_exact.c: functions whose result is exact or correctly rounded by nature. */
#include "bits.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One instruction each; in C for a call that the compiler does not replace. */
double fabs(double x) { return __builtin_fabs(x); }
double sqrt(double x) { return __builtin_sqrt(x); }
double floor(double x) { return __builtin_floor(x); }
double ceil(double x) { return __builtin_ceil(x); }
double rint(double x) { return __builtin_rint(x); }
double nearbyint(double x) { return __builtin_nearbyint(x); }

double fmin(double a, double b) { return isnan(b) || a < b || (a == b && signbit(a)) ? a : b; }
double fmax(double a, double b) { return isnan(b) || a > b || (a == b && !signbit(a)) ? a : b; }
float fminf(float a, float b) { return isnan(b) || a < b || (a == b && signbit(a)) ? a : b; }
float fmaxf(float a, float b) { return isnan(b) || a > b || (a == b && !signbit(a)) ? a : b; }

double round(double x) {
    const double whole = __builtin_trunc(x);
    const double away = fabs(x - whole) >= 0.5 ? 1 : 0;
    return copysign(fabs(whole) + away, x);
}

float roundf(float x) { return (float)round((double)x); }

/* ---- Bits ---- */

double nextafter(double x, double to) {
    if (isnan(x) || isnan(to)) return x + to;
    if (x == to) return to;
    if (x == 0) return copysign(of_bits(1), to);
    return of_bits((x < to) == (x > 0) ? bits_of(x) + 1 : bits_of(x) - 1);
}

float nextafterf(float x, float to) {
    if (isnan(x) || isnan(to)) return x + to;
    if (x == to) return to;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x == 0)
        bits = 1 | (signbit(to) ? UINT32_C(1) << 31 : 0);
    else
        bits += (x < to) == (x > 0) ? 1 : UINT32_MAX;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Finite and not 0, as Wick calls it. */
int ilogbf(float x) { return (int)(bits_of((double)x) >> 52 & 0x7ff) - 1023; }

double ldexp(double x, int exponent) {
    /* In steps of which the last alone rounds: what the one before it could lose is too small to
     * be left by the last. */
    for (; exponent > 1023; exponent -= 1023) {
        if (x == 0 || isinf(x)) return x;
        x *= 0x1p1023;
    }
    for (; exponent < -1022; exponent += 969) {
        if (x == 0) return x;
        x *= 0x1p-969;
    }
    return x * of_bits((uint64_t)(exponent + 1023) << 52);
}

float ldexpf(float x, int exponent) {
    const int most = 300; /* past the range of float, inside that of double */
    return (float)ldexp((double)x, exponent > most ? most : exponent < -most ? -most : exponent);
}

double frexp(double x, int *exponent) {
    *exponent = 0;
    if (x == 0 || !isfinite(x)) return x;
    const int scale = fabs(x) < 0x1p-1022 ? 54 : 0; /* subnormal */
    const uint64_t bits = bits_of(ldexp(x, scale));
    *exponent = (int)(bits >> 52 & 0x7ff) - 1022 - scale;
    return of_bits((bits & ~(UINT64_C(0x7ff) << 52)) | UINT64_C(1022) << 52);
}

/* ---- Remainder ---- */

/* Long division by bits: |x| = m 2^e, |y| = n 2^f. */
double fmod(double x, double y) {
    if (isnan(x) || isnan(y) || isinf(x) || y == 0) return NAN;
    if (fabs(x) < fabs(y)) return x;
    const uint64_t hidden = UINT64_C(1) << 52;
    const uint64_t a = bits_of(fabs(x)), b = bits_of(fabs(y));
    int e = (int)(a >> 52), f = (int)(b >> 52);
    uint64_t m = a & (hidden - 1), n = b & (hidden - 1);
    if (e > 0)
        m |= hidden;
    else
        e = 1;
    if (f > 0)
        n |= hidden;
    else
        f = 1;
    for (m %= n; e > f && m > 0; e--) m = 2 * m % n;
    /* m < n fits a significand: the product is exact. */
    return copysign(ldexp((double)m, f - 1075), x);
}
