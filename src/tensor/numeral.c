/* tensor/numeral.c: see numeral.h. */
#include "tensor/numeral.h"

#include "core/dtype.h"
#include "core/half.h"
#include "core/scalar.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DECIMALS = 8, MOST_DIGITS = 17 /* tell any two doubles apart */ };

/* digit[0] . digit[1] digit[2] ... times 10^exponent. */
typedef struct decimal {
    bool is_negative;
    int n_digits, exponent;
    char digit[MOST_DIGITS];
} decimal;

static int larger(int a, int b) { return a > b ? a : b; }

/* --- Floats --- */

static double round_to(wick_dtype dtype, double x) {
    switch (dtype) {
    case WICK_F32: return (double)(float)x;
    case WICK_F16: return (double)wk_f16_to_f32(wk_f64_to_f16(x));
    case WICK_BF16: return (double)wk_bf16_to_f32(wk_f64_to_bf16(x));
    case WICK_F8_E4M3: return (double)wk_f8_e4m3_to_f32(wk_f64_to_f8_e4m3(x));
    case WICK_F8_E5M2: return (double)wk_f8_e5m2_to_f32(wk_f64_to_f8_e5m2(x));
    default: return x;
    }
}

/* Only the digits of what snprintf writes are taken: the point is the locale's. */
static decimal parse(const char *text, bool is_negative) {
    decimal d = {.is_negative = is_negative};
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9') d.digit[d.n_digits++] = *text;
    d.exponent = (int)strtol(text + 1, NULL, 10);
    while (d.n_digits > 1 && d.digit[d.n_digits - 1] == '0') d.n_digits--;
    return d;
}

static decimal with_digits(double x, int n_digits) {
    char text[WK_NUMERAL_SIZE];
    snprintf(text, sizeof text, "%.*e", n_digits - 1, fabs(x));
    return parse(text, signbit(x) != 0);
}

static decimal shortest(wick_dtype dtype, double x, bool is_scientific) {
    char text[WK_NUMERAL_SIZE];
    const double size = fabs(x);
    for (int n = 1; n <= MOST_DIGITS; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, size);
        if (round_to(dtype, strtod(text, NULL)) == size) break;
    }
    const decimal d = parse(text, signbit(x) != 0);
    const int most = 1 + MOST_DECIMALS + (is_scientific ? 0 : d.exponent);
    assert(most > 0); /* what is below 1e-4 is scientific */
    return d.n_digits > most ? with_digits(x, most) : d;
}

/* Digits before the point; 0 or less: the first digit comes after the point. */
static int point_of(const wk_numerals *f, const decimal *d) {
    return f->is_scientific ? 1 : d->exponent + 1;
}

/* 10 to the power of the decimal digits that the dtype surely holds, at most 8. */
static double scientific_from(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F32: return 1e6;
    case WICK_F16: return 1e3;
    case WICK_BF16: return 1e2;
    default: return 1e8;
    }
}

static bool is_scientific(wick_dtype dtype, const void *data, int64_t n) {
    double least = HUGE_VAL, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(wk_scalar_load(dtype, data, i));
        if (!isfinite(size) || !(size > 0)) continue;
        least = fmin(least, size);
        most = fmax(most, size);
    }
    if (!(most > 0)) return false;
    /* The bounds are numbers of the dtype: 1e-4 in float32 is less than 1e-4. */
    return most >= scientific_from(dtype) || least < round_to(dtype, 1e-4) ||
           round_to(dtype, most / least) > 1000;
}

static wk_numerals fit_floats(wick_dtype dtype, const void *data, int64_t n) {
    wk_numerals f = {.dtype = dtype, .is_scientific = is_scientific(dtype, data, n)};
    int least_width = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = wk_scalar_load(dtype, data, i);
        if (!isfinite(x)) {
            least_width = larger(least_width, x < 0 ? 4 : 3); /* -inf; inf, nan */
            continue;
        }
        const decimal d = shortest(dtype, x, f.is_scientific);
        const int point = point_of(&f, &d);
        f.n_whole = larger(f.n_whole, larger(point, 1) + d.is_negative);
        f.n_decimals = larger(f.n_decimals, d.n_digits - point);
        if (f.is_scientific) f.n_exponent = larger(f.n_exponent, abs(d.exponent) > 99 ? 3 : 2);
    }
    const int n_after = 1 + f.n_decimals + (f.is_scientific ? 2 + f.n_exponent : 0);
    f.n_whole = larger(f.n_whole, least_width - n_after);
    f.width = f.n_whole + n_after;
    return f;
}

/* In scientific form with all decimals, else padded with spaces in place of missing decimals. */
static void write_float(const wk_numerals *f, double x, char text[WK_NUMERAL_SIZE]) {
    if (!isfinite(x)) {
        const char *const name = isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
        snprintf(text, WK_NUMERAL_SIZE, "%*s", f->width, name);
        return;
    }
    const decimal d =
        f->is_scientific ? with_digits(x, 1 + f->n_decimals) : shortest(f->dtype, x, false);
    const int point = point_of(f, &d), n_whole = larger(point, 1);
    const int n_decimals = f->is_scientific ? f->n_decimals : larger(d.n_digits - point, 0);
    int at = f->n_whole - n_whole - d.is_negative;
    memset(text, ' ', (size_t)f->width);
    text[f->width] = '\0';
    if (d.is_negative) text[at++] = '-';
    for (int i = point - n_whole; i < point + n_decimals; i++) {
        if (i == point) text[at++] = '.';
        text[at++] = i < 0 || i >= d.n_digits ? '0' : d.digit[i];
    }
    if (n_decimals == 0) text[at++] = '.';
    if (f->is_scientific)
        snprintf(text + at, (size_t)(WK_NUMERAL_SIZE - at), "e%c%0*d", d.exponent < 0 ? '-' : '+',
                 f->n_exponent, abs(d.exponent));
}

/* --- All dtypes --- */

static int64_t load_integer(wick_dtype dtype, const void *data, int64_t element) {
    if (dtype != WICK_I64) return (int64_t)wk_scalar_load(dtype, data, element);
    int64_t value; /* a double does not hold all of it */
    memcpy(&value, (const unsigned char *)data + (size_t)element * sizeof value, sizeof value);
    return value;
}

wk_numerals wk_numerals_fit(wick_dtype dtype, const void *data, int64_t n) {
    assert(!wk_dtype_is_block(dtype));
    if (wk_dtype_is_real(dtype)) return fit_floats(dtype, data, n);
    wk_numerals f = {.dtype = dtype, .width = dtype == WICK_BOOL ? 5 /* "False" */ : 1};
    for (int64_t i = 0; i < n && dtype != WICK_BOOL; i++)
        f.width = larger(f.width, snprintf(NULL, 0, "%" PRId64, load_integer(dtype, data, i)));
    return f;
}

void wk_numeral_write(const wk_numerals *f, const void *data, int64_t element,
                      char text[WK_NUMERAL_SIZE]) {
    if (wk_dtype_is_real(f->dtype)) {
        write_float(f, wk_scalar_load(f->dtype, data, element), text);
        return;
    }
    const int64_t value = load_integer(f->dtype, data, element);
    if (f->dtype == WICK_BOOL)
        snprintf(text, WK_NUMERAL_SIZE, "%*s", f->width, value != 0 ? "True" : "False");
    else
        snprintf(text, WK_NUMERAL_SIZE, "%*" PRId64, f->width, value);
}
