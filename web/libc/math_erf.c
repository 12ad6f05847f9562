/* math_erf.c: the error function. Near 0 by its series; further out by erfc(x) = e^(-x^2) g(x),
 * where (1 + 2 x) g(x) is a sum of Chebyshev polynomials in (x - 3.75) / (x + 3.75), the variable
 * of Shepherd and Laframboise (1981); the coefficients were computed with 60 digits. */
#include "dd.h"

#include <math.h>

/* For 0.5 <= x <= 28. */
static double erfc_far(double x) {
    static const double c[] = {
        0x1.387b7d9cff81dp+0,   -0x1.fce2a67a1c27ep-5, -0x1.81c906b57f13fp-6,
        0x1.2a5ee651d2510p-6,   -0x1.d10626ec5d7f5p-8, 0x1.0680347b9cd0dp-9,
        -0x1.c93d2102e964ap-12, 0x1.3029e45e44fe0p-14, -0x1.1bbd573db5f35p-17,
        0x1.f0edf45d37653p-22,  0x1.a287497cac5d6p-25, -0x1.b6744670bbff3p-27,
        0x1.58f58f74b6f5ep-31,  0x1.4ab4841a228d7p-33, -0x1.954e31eb7a245p-36,
        -0x1.410c70681311ap-40, 0x1.1b206e5b52d6dp-41, -0x1.61b52437b16bfp-50,
        -0x1.724b556773973p-47, 0x1.6af69f5f5ec07p-52, 0x1.fafab909654cap-53,
    };
    const double u = 17.0 / 13 * ((x - 3.75) / (x + 3.75)); /* -1 at 0.5, 1 at 28.125 */
    double b = 0, b_before = 0;                             /* Clenshaw's recurrence */
    for (int i = sizeof c / sizeof *c - 1; i > 0; i--) {
        const double next = 2 * u * b - b_before + c[i];
        b_before = b;
        b = next;
    }
    const dd square = dd_product(x, x);
    return wick_exp_dd((dd){-square.high, -square.low}) * (c[0] + u * b - b_before) / (1 + 2 * x);
}

/* 2 / sqrt(pi) (x - x^3 / (1! 3) + x^5 / (2! 5) - ...), for |x| < 1. */
static double erf_near(double x) {
    static const double c[] = {
        1.0 / (1.0 * 1),
        1.0 / (1.0 * 3),
        1.0 / (2.0 * 5),
        1.0 / (6.0 * 7),
        1.0 / (24.0 * 9),
        1.0 / (120.0 * 11),
        1.0 / (720.0 * 13),
        1.0 / (5040.0 * 15),
        1.0 / (40320.0 * 17),
        1.0 / (362880.0 * 19),
        1.0 / (3628800.0 * 21),
        1.0 / (39916800.0 * 23),
        1.0 / (479001600.0 * 25),
        1.0 / (6227020800.0 * 27),
        1.0 / (87178291200.0 * 29),
        1.0 / (1307674368000.0 * 31),
        1.0 / (20922789888000.0 * 33),
        1.0 / (355687428096000.0 * 35),
        1.0 / (6402373705728000.0 * 37),
        1.0 / (121645100408832000.0 * 39),
    };
    const double z = x * x;
    double sum = 0;
    for (int i = sizeof c / sizeof *c - 1; i > 0; i--) sum = z * (c[i] - sum);
    return 0x1.20dd750429b6dp+0 * (x - x * sum);
}

double erf(double x) {
    if (fabs(x) < 1) return copysign(erf_near(x), x); /* of zero, too */
    if (isnan(x)) return x;
    return copysign(1 - (fabs(x) < 7 ? erfc_far(fabs(x)) : 0), x);
}

double erfc(double x) {
    if (isnan(x)) return x;
    if (x < 0.5) return x > -1 ? 1 - erf_near(x) : 2 - (x > -7 ? erfc_far(-x) : 0);
    return x < 28 ? erfc_far(x) : 0;
}
