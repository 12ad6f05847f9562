/* dd.h: double-double arithmetic (Dekker 1971; Knuth): a number is the exact sum high + low. */
#ifndef WICK_LIBC_DD_H
#define WICK_LIBC_DD_H

typedef struct dd {
    double high, low;
} dd;

/* Exact for any a and b. */
static inline dd dd_sum(double a, double b) {
    const double s = a + b, part = s - a;
    return (dd){s, (a - (s - part)) + (b - part)};
}

/* Exact unless it overflows or underflows: the factors are split into halves of 26 bits. */
static inline dd dd_product(double a, double b) {
    const double split = 0x1p27 + 1;
    const double a_big = split * a, b_big = split * b;
    const double a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
    const double a_low = a - a_high, b_low = b - b_high;
    const double p = a * b;
    return (dd){p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

/* Relative errors of these: about 2^-102. */
static inline dd dd_add(dd a, dd b) {
    const dd s = dd_sum(a.high, b.high);
    return dd_sum(s.high, s.low + (a.low + b.low));
}

static inline dd dd_multiply(dd a, dd b) {
    const dd p = dd_product(a.high, b.high);
    return dd_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

/* e^x in math_exp.c; |x.high| < 2^60. */
double wick_exp_dd(dd x);

#endif
