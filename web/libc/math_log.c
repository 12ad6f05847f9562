/* math_log.c: logarithms and powers. x = m 2^e with m in [sqrt(1/2), sqrt(2)), f = m - 1, and
 * log(1 + f) = 2 artanh(s) = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ..., s = f / (2 + f), |s| < 0.172. */
#include "bits.h"
#include "dd.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* ln 2 = the sum of the three; the first has 42 bits: times e it is exact. */
#define LN2_HIGH 0x1.62e42fefa3800p-1
#define LN2_LOW 0x1.ef35793c76730p-45
#define LN2_LOWEST 0x1.f97b57a079a19p-103

/* m of x > 0, finite. */
static double split(double x, int *e) {
    *e = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p54;
        *e = -54;
    }
    uint64_t bits = bits_of(x);
    /* Counted from sqrt(1/2) on, so that a mantissa above sqrt(2) goes to the next power. */
    const uint64_t above = bits - UINT64_C(0x3fe6a09e667f3bcd);
    const int power = (int)((int64_t)above >> 52);
    *e += power;
    bits -= (uint64_t)power << 52;
    return of_bits(bits);
}

/* 2 (z / first + z^2 / (first + 2) + ...) */
static double series(double z, int first) {
    double sum = 0;
    for (int odd = 25; odd >= first; odd -= 2) sum = z * (sum + 2.0 / odd);
    return sum;
}

static bool has_no_log(double x) { return !(x > 0) || isinf(x); }

/* Of a number that has_no_log. */
static double log_limit(double x) {
    if (x == 0) return -HUGE_VAL;
    return x < 0 ? (double)NAN : x;
}

double log(double x) {
    if (has_no_log(x)) return log_limit(x);
    int e;
    const double f = split(x, &e) - 1;
    const double s = f / (2 + f);
    /* 2 s = f - f^2 / 2 + s f^2 / 2, whose first two terms hardly round */
    const double half = f * f / 2;
    const double small = s * (half + series(s * s, 3)) + e * LN2_LOW;
    return e * LN2_HIGH + (f - (half - small));
}

float logf(float x) { return (float)log((double)x); }

double log1p(double x) {
    const double u = 1 + x;
    if (u == 1 || has_no_log(u)) return u == 1 ? x : log_limit(u);
    return log(u) + (x - (u - 1)) / u; /* what 1 + x lost */
}

/* For 0 < x < infinity. */
static dd log_dd(double x) {
    int e;
    const double f = split(x, &e) - 1;
    const dd g = dd_sum(2, f);
    const double s = f / g.high;
    const dd back = dd_product(s, g.high);
    const dd quotient = dd_sum(s, (((f - back.high) - back.low) - s * g.low) / g.high);
    const dd square = dd_multiply(quotient, quotient);
    const dd cube = dd_multiply(quotient, square);
    const dd third = dd_multiply(cube, (dd){0x1.5555555555555p-1, 0x1.5555555555555p-55}); /* 2/3 */
    dd sum = {2 * quotient.high, 2 * quotient.low};
    sum = dd_add(sum, dd_add(third, (dd){cube.high * series(square.high, 5), 0}));
    const dd low = dd_product(e, LN2_LOW);
    const dd power = dd_add((dd){e * LN2_HIGH, 0}, (dd){low.high, low.low + e * LN2_LOWEST});
    return dd_add(power, sum);
}

/* log(x) times a constant. */
static double log_times(double x, dd factor) {
    if (has_no_log(x)) return log_limit(x);
    const dd product = dd_multiply(log_dd(x), factor);
    return product.high + product.low;
}

double log2(double x) { return log_times(x, (dd){0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}); }

double log10(double x) { return log_times(x, (dd){0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}); }

static bool is_whole(double y) { return floor(y) == y; }
static bool is_odd(double y) { return is_whole(y) && fabs(y) < 0x1p53 && fmod(y, 2) != 0; }

/* Where x is 0 or infinite. */
static double power_of_limit(double x, double y) {
    const double size = (fabs(x) > 1) == (y > 0) ? HUGE_VAL : 0;
    return is_odd(y) ? copysign(size, x) : size;
}

/* Not by the name of pow: compilers make exp2(x) of pow(2, x), which would call itself. */
static double power(double x, double y) {
    if (y == 0 || x == 1) return 1;
    if (isnan(x) || isnan(y)) return x + y;
    if (isinf(y)) {
        if (fabs(x) == 1) return 1;
        return (fabs(x) > 1) == (y > 0) ? HUGE_VAL : 0;
    }
    if (x == 0 || isinf(x)) return power_of_limit(x, y);
    if (x < 0 && !is_whole(y)) return NAN;
    const dd l = log_dd(fabs(x));
    double size;
    if (fabs(y) > 0x1p64 || fabs(y * l.high) > 1000) { /* far outside, and nothing overflows */
        size = fabs(x) == 1 ? 1 : (l.high > 0) == (y > 0) ? HUGE_VAL : 0;
    } else {
        const dd product = dd_product(l.high, y);
        size = wick_exp_dd(dd_sum(product.high, product.low + l.low * y));
    }
    return x < 0 && is_odd(y) ? -size : size;
}

double pow(double x, double y) { return power(x, y); }

float powf(float x, float y) { return (float)power((double)x, (double)y); }

double exp2(double x) { return power(2, x); }
