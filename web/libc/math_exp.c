/* math_exp.c: e^x and what follows from it. x = k ln 2 + r with |r| <= ln 2 / 2, and e^r by its
 * series, whose first term left out is below 2^-58. */
#include "dd.h"

#include <math.h>

#define LN2_HIGH 0x1.62e42fee00000p-1 /* 32 bits: times k it is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33

/* (e^r - 1 - r) / r^2 */
static double series(double r) {
    static const double c[] = {1.0 / 2,          1.0 / 6,        1.0 / 24,        1.0 / 120,
                               1.0 / 720,        1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                               1.0 / 3628800,    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
                               1.0 / 87178291200};
    double sum = 0;
    for (int i = sizeof c / sizeof *c - 1; i >= 0; i--) sum = sum * r + c[i];
    return sum;
}

/* r of x = k ln 2 + r */
static dd reduce(dd x, double *k) {
    *k = rint(x.high * 0x1.71547652b82fep+0);
    return dd_sum(x.high - *k * LN2_HIGH, x.low - *k * LN2_LOW);
}

double wick_exp_dd(dd x) {
    if (isnan(x.high)) return x.high;
    if (x.high > 710) return HUGE_VAL;
    if (x.high < -746) return 0;
    double k;
    const dd r = reduce(x, &k);
    const dd sum = dd_sum(1, r.high);
    return ldexp(sum.high + (sum.low + (r.low + r.high * r.high * series(r.high))), (int)k);
}

double exp(double x) { return wick_exp_dd((dd){x, 0}); }

float expf(float x) { return (float)exp((double)x); }

double expm1(double x) {
    if (x == 0) return x; /* with its sign */
    if (fabs(x) < 0.35) return x + x * x * series(x);
    if (!(fabs(x) < 50)) return x < 0 ? -1 : exp(x); /* NaN goes through exp */
    double k;
    const dd r = reduce((dd){x, 0}, &k);
    const double power = ldexp(1, (int)k);
    const dd sum = dd_sum(power - 1, power * r.high);
    return sum.high + (sum.low + power * (r.low + r.high * r.high * series(r.high)));
}

double tanh(double x) {
    const double a = fabs(x);
    if (a < 0x1p-28) return x;
    if (a > 22) return copysign(1, x);
    double t; /* from e^2a - 1, or e^-2a - 1 where that is the smaller error */
    if (a >= 0.5) {
        t = 1 - 2 / (expm1(2 * a) + 2);
    } else {
        const double e = expm1(-2 * a);
        t = -e / (e + 2);
    }
    return isnan(x) ? x : copysign(t, x);
}
