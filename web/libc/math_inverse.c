/* math_inverse.c: inverse circular functions, hyperbolic functions and their inverses, each by a
 * formula that does not cancel. */
#include <math.h>

#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define LN2 0x1.62e42fefa39efp-1

/* ---- Arctangent ---- */

/* Of a / b, 0 <= a <= b, b finite and not 0: atan(k / 8) and the series of the rest, by at most
 * 1 / 16 away from it. */
static double angle_of(double a, double b) {
    static const double eighths[] = {0x0.0p+0,
                                     0x1.fd5ba9aac2f6ep-4,
                                     0x1.f5b75f92c80ddp-3,
                                     0x1.6f61941e4def1p-2,
                                     0x1.dac670561bb4fp-2,
                                     0x1.1e00babdefeb4p-1,
                                     0x1.4978fa3269ee1p-1,
                                     0x1.700a7c5784634p-1,
                                     0x1.921fb54442d18p-1};
    if (b > 0x1p1000) {
        a *= 0x1p-100;
        b *= 0x1p-100;
    } else if (b < 0x1p-800) {
        a *= 0x1p200;
        b *= 0x1p200;
    }
    const double k = rint(8 * (a / b));
    const double r = k == 0 ? a / b : (a - k / 8 * b) / (b + k / 8 * a), z = r * r;
    double sum = 0;
    for (int odd = 19; odd >= 3; odd -= 2) sum = z * ((odd % 4 == 1 ? 1.0 : -1.0) / odd + sum);
    return eighths[(int)k] + (r + r * sum);
}

double atan2(double y, double x) {
    if (isnan(x) || isnan(y)) return x + y;
    const double a = fmin(fabs(x), fabs(y)), b = fmax(fabs(x), fabs(y));
    double angle = isinf(a) ? HALF_PI / 2 : b == 0 || isinf(b) ? 0 : angle_of(a, b);
    if (fabs(y) > fabs(x)) angle = HALF_PI - (angle - HALF_PI_LOW);
    if (signbit(x)) angle = 2 * HALF_PI - (angle - 2 * HALF_PI_LOW);
    return copysign(angle, y);
}

double atan(double x) { return atan2(x, 1); }
double asin(double x) { return atan2(x, sqrt((1 - x) * (1 + x))); }
double acos(double x) { return atan2(sqrt((1 - x) * (1 + x)), x); }

/* ---- Hyperbolic functions ---- */

/* e^a / 2, a >= 0, also where e^a is too large. */
static double half_exp(double a) {
    if (a < 700) return exp(a) / 2;
    const double root = exp(a / 2);
    return root / 2 * root;
}

double sinh(double x) {
    const double a = fabs(x);
    if (a >= 1) return copysign(half_exp(a) - exp(-a) / 2, x);
    const double e = expm1(a); /* NaN stays */
    return copysign((e + e / (e + 1)) / 2, x);
}

double cosh(double x) { return half_exp(fabs(x)) + exp(-fabs(x)) / 2; }

/* ---- And their inverses ---- */

double asinh(double x) {
    const double a = fabs(x);
    if (a > 0x1p28) return copysign(log(a) + LN2, x);
    return copysign(log1p(a + a * a / (1 + sqrt(a * a + 1))), x);
}

double acosh(double x) {
    if (x > 0x1p28) return log(x) + LN2;
    const double t = x - 1;
    return t >= 0 ? log1p(t + sqrt(t * (t + 2))) : (double)NAN;
}

double atanh(double x) {
    const double a = fabs(x);
    return copysign(a < 1 ? log1p(2 * a / (1 - a)) / 2 : a == 1 ? HUGE_VAL : (double)NAN, x);
}

/* ---- Hypotenuse ---- */

double hypot(double x, double y) {
    if (isinf(x) || isinf(y)) return HUGE_VAL;
    if (isnan(x) || isnan(y)) return x + y;
    const double a = fmin(fabs(x), fabs(y)), b = fmax(fabs(x), fabs(y));
    if (b == 0) return 0;
    return b * sqrt(1 + a / b * (a / b));
}
