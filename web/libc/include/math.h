/* math.h: the functions that Wick uses. Those marked builtin are instructions of wasm or a few of
 * them; the others are in math_*.c and say how exact they are. */
#ifndef WICK_LIBC_MATH_H
#define WICK_LIBC_MATH_H

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)

/* builtin */
double fabs(double x);
float fabsf(float x);
double sqrt(double x);
float sqrtf(float x);
double floor(double x);
float floorf(float x);
double ceil(double x);
float ceilf(float x);
double trunc(double x);
float truncf(float x);
double rint(double x);
float rintf(float x);
double nearbyint(double x);
float nearbyintf(float x);
double copysign(double x, double sign);
float copysignf(float x, float sign);

/* Exact. fmin and fmax: the other one where one is NaN. round: half away from zero. */
double fmin(double a, double b);
float fminf(float a, float b);
double fmax(double a, double b);
float fmaxf(float a, float b);
double fmod(double x, double y);
double round(double x);
float roundf(float x);
double nextafter(double x, double to);
float nextafterf(float x, float to);
int ilogbf(float x);
double ldexp(double x, int exponent);
float ldexpf(float x, int exponent);
double frexp(double x, int *exponent);

/* Within 1.5 units of the last place; tanh and erf 2.5, erfc 5. */
double exp(double x);
double expm1(double x);
double log(double x);
double log1p(double x);
double log2(double x);
double log10(double x);
double exp2(double x);
double pow(double x, double y);
double sin(double x);
double cos(double x);
double tanh(double x);
double erf(double x);
double erfc(double x);

/* Within 5 units. */
double tan(double x);
double asin(double x);
double acos(double x);
double atan(double x);
double atan2(double y, double x);
double sinh(double x);
double cosh(double x);
double asinh(double x);
double acosh(double x);
double atanh(double x);
double hypot(double x, double y);

/* Rounded from double. */
float expf(float x);
float logf(float x);
float powf(float x, float y);

#endif
