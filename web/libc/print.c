/* print.c: snprintf as C11 has it, except for long double, wide characters, %a and %n. Floats are
 * exact: the digits come from the whole decimal expansion of the double. */
#include "bits.h"
#include "number.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sink {
    char *out;
    size_t capacity, size; /* size: of the whole text, though only capacity fits */
} sink;

static void put(sink *to, char c) {
    if (to->size + 1 < to->capacity) to->out[to->size] = c;
    to->size++;
}

static void put_text(sink *to, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) put(to, text[i]);
}

static void put_many(sink *to, char c, int n) {
    for (int i = 0; i < n; i++) put(to, c);
}

typedef struct spec {
    bool left, plus, space, alternate, zeros;
    int width, precision; /* precision < 0: none was given */
    char length;          /* 'H' for hh, 'L' for ll, otherwise its letter; 0: none */
    char kind;
} spec;

/* prefix, zeros and body, padded to the width. */
static void put_padded(sink *to, const spec *s, const char *prefix, int zeros, const char *body,
                       size_t n) {
    const int size = (int)strlen(prefix) + zeros + (int)n;
    const int padding = s->width > size ? s->width - size : 0;
    if (!s->left && !s->zeros) put_many(to, ' ', padding);
    put_text(to, prefix, strlen(prefix));
    put_many(to, '0', zeros + (!s->left && s->zeros ? padding : 0));
    put_text(to, body, n);
    if (s->left) put_many(to, ' ', padding);
}

static const char *sign_of(const spec *s, bool is_negative) {
    if (is_negative) return "-";
    if (s->plus) return "+";
    return s->space ? " " : "";
}

/* ---- Integers ---- */

static void put_integer(sink *to, spec *s, uint64_t value, const char *prefix) {
    const unsigned base = s->kind == 'x' || s->kind == 'X' || s->kind == 'p' ? 16
                          : s->kind == 'o'                                   ? 8
                                                                             : 10;
    const char *const symbols = s->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char digits[24];
    char *at = digits + sizeof digits;
    for (uint64_t rest = value; rest > 0; rest /= base) *--at = symbols[rest % base];
    const int n = (int)(digits + sizeof digits - at);
    if (s->precision >= 0) s->zeros = false;
    int zeros = (s->precision >= 0 ? s->precision : 1) - n;
    if (s->kind == 'o' && s->alternate && zeros <= 0) zeros = 1;
    put_padded(to, s, prefix, zeros > 0 ? zeros : 0, at, (size_t)n);
}

static int64_t signed_argument(char length, va_list *arguments) {
    switch (length) {
    case 'H': return (signed char)va_arg(*arguments, int);
    case 'h': return (short)va_arg(*arguments, int);
    case 'l': return va_arg(*arguments, long);
    case 'L':
    case 'j': return va_arg(*arguments, long long);
    case 'z':
    case 't': return va_arg(*arguments, ptrdiff_t);
    default: return va_arg(*arguments, int);
    }
}

static uint64_t unsigned_argument(char length, va_list *arguments) {
    switch (length) {
    case 'H': return (unsigned char)va_arg(*arguments, int);
    case 'h': return (unsigned short)va_arg(*arguments, int);
    case 'l': return va_arg(*arguments, unsigned long);
    case 'L':
    case 'j': return va_arg(*arguments, unsigned long long);
    case 'z':
    case 't': return va_arg(*arguments, size_t);
    default: return va_arg(*arguments, unsigned);
    }
}

/* ---- Floats ---- */

/* All digits of the largest fraction: 2^-1074 has 751, the smallest normal number's neighbours 767.
 */
enum { MOST_DIGITS = 1100 };

typedef struct digits {
    char text[MOST_DIGITS]; /* [n], the first one not 0 unless the number is 0 */
    int n, point;           /* 0.text * 10^point */
} digits;

/* The whole expansion of a finite x >= 0. */
static void expand(digits *d, double x) {
    const uint64_t bits = bits_of(x);
    const int raw = (int)(bits >> 52);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int e = (raw > 0 ? raw : 1) - 1075;
    uint64_t m = raw > 0 ? fraction | UINT64_C(1) << 52 : fraction;
    while (e < 0 && m > 0 && m % 2 == 0) m /= 2, e++;
    number value;
    number_set(&value, m);
    if (e >= 0) {
        number_shift(&value, e);
    } else { /* m 2^e = m 5^-e 10^e */
        for (int i = 0; i < -e; i++) number_multiply(&value, 5, 0);
    }
    int at = MOST_DIGITS;
    while (value.n > 0) {
        uint32_t nine = number_divide(&value, 1000000000);
        for (int i = 0; i < 9 && (value.n > 0 || nine > 0); i++, nine /= 10)
            d->text[--at] = (char)('0' + nine % 10);
    }
    d->n = MOST_DIGITS - at;
    d->point = d->n + (e < 0 ? e : 0);
    memmove(d->text, d->text + at, (size_t)d->n);
    if (d->n == 0) *d = (digits){.text = {'0'}, .n = 1, .point = 1};
}

/* Keeps n digits (n may be negative: none), rounded to nearest, half to even. */
static void round_digits(digits *d, int n) {
    if (n >= d->n) return;
    bool is_up = false;
    if (n >= 0) {
        bool is_half = d->text[n] == '5';
        for (int i = n + 1; is_half && i < d->n; i++) is_half = d->text[i] == '0';
        const bool is_odd = n > 0 && (d->text[n - 1] - '0') % 2 == 1;
        is_up = is_half ? is_odd : d->text[n] >= '5';
    }
    d->n = n > 0 ? n : 0;
    if (!is_up) return;
    while (n > 0 && d->text[n - 1] == '9') d->text[--n] = '0';
    if (n > 0) {
        d->text[n - 1]++;
        return;
    }
    memmove(d->text + 1, d->text, (size_t)d->n);
    d->text[0] = '1';
    d->n = d->n > 0 ? d->n : 1;
    d->point++;
}

static char digit_at(const digits *d, int i) { return i >= 0 && i < d->n ? d->text[i] : '0'; }

/* Digits from the one before the point on: those of 10^(point - 1) and below. */
static void write_fixed(sink *to, const digits *d, int precision, bool alternate) {
    if (d->point <= 0) put(to, '0');
    for (int i = 0; i < d->point; i++) put(to, digit_at(d, i));
    if (precision > 0 || alternate) put(to, '.');
    for (int i = 0; i < precision; i++) put(to, digit_at(d, d->point + i));
}

static void write_scientific(sink *to, const digits *d, int precision, const spec *s) {
    int exponent = d->n == 0 || d->text[0] == '0' ? 0 : d->point - 1;
    put(to, digit_at(d, 0));
    if (precision > 0 || s->alternate) put(to, '.');
    for (int i = 1; i <= precision; i++) put(to, digit_at(d, i));
    put(to, isupper((unsigned char)s->kind) ? 'E' : 'e');
    put(to, exponent < 0 ? '-' : '+');
    if (exponent < 0) exponent = -exponent;
    if (exponent >= 100) put(to, (char)('0' + exponent / 100));
    put(to, (char)('0' + exponent / 10 % 10));
    put(to, (char)('0' + exponent % 10));
}

/* Trailing zeros of a fraction end the text at their first. */
static int without_zeros(const digits *d, int precision, int from) {
    while (precision > 0 && digit_at(d, from + precision - 1) == '0') precision--;
    return precision;
}

static void write_float(sink *to, double x, const spec *s) {
    digits d;
    expand(&d, x);
    int precision = s->precision < 0 ? 6 : s->precision;
    switch (tolower((unsigned char)s->kind)) {
    case 'f':
        round_digits(&d, d.point + precision);
        write_fixed(to, &d, precision, s->alternate);
        break;
    case 'e':
        round_digits(&d, precision + 1);
        write_scientific(to, &d, precision, s);
        break;
    default: /* 'g': whichever suits the exponent */
        if (precision == 0) precision = 1;
        round_digits(&d, precision);
        if (d.point - 1 < -4 || d.point - 1 >= precision) {
            precision--;
            if (!s->alternate) precision = without_zeros(&d, precision, 1);
            write_scientific(to, &d, precision, s);
        } else {
            precision -= d.point;
            if (!s->alternate) precision = without_zeros(&d, precision, d.point);
            write_fixed(to, &d, precision, s->alternate);
        }
    }
}

static void put_float(sink *to, spec *s, double x) {
    const char *const sign = sign_of(s, signbit(x));
    if (!isfinite(x)) {
        const bool is_upper = isupper((unsigned char)s->kind);
        s->zeros = false;
        put_padded(to, s, sign, 0,
                   isnan(x) ? (is_upper ? "NAN" : "nan") : (is_upper ? "INF" : "inf"), 3);
        return;
    }
    sink measure = {0};
    write_float(&measure, fabs(x), s);
    const int size = (int)(strlen(sign) + measure.size);
    const int padding = s->width > size ? s->width - size : 0;
    if (!s->left && !s->zeros) put_many(to, ' ', padding);
    put_text(to, sign, strlen(sign));
    if (!s->left && s->zeros) put_many(to, '0', padding);
    write_float(to, fabs(x), s);
    if (s->left) put_many(to, ' ', padding);
}

/* ---- Formats ---- */

static int read_number(const char **at, va_list *arguments) {
    if (**at == '*') {
        ++*at;
        return va_arg(*arguments, int);
    }
    int value = 0;
    for (; isdigit((unsigned char)**at); ++*at) value = value * 10 + (**at - '0');
    return value;
}

static const char *read_spec(spec *s, const char *at, va_list *arguments) {
    *s = (spec){.precision = -1};
    for (;; at++) {
        if (*at == '-')
            s->left = true;
        else if (*at == '+')
            s->plus = true;
        else if (*at == ' ')
            s->space = true;
        else if (*at == '#')
            s->alternate = true;
        else if (*at == '0')
            s->zeros = true;
        else
            break;
    }
    s->width = read_number(&at, arguments);
    if (s->width < 0) {
        s->left = true;
        s->width = -s->width;
    }
    if (*at == '.') {
        at++;
        s->precision = read_number(&at, arguments);
    }
    if (*at && strchr("hlzjt", *at)) {
        s->length = *at++;
        if (*at == s->length) s->length = *at++ == 'h' ? 'H' : 'L';
    }
    s->kind = *at;
    return *at ? at + 1 : at;
}

static void put_argument(sink *to, spec *s, va_list *arguments) {
    switch (s->kind) {
    case 'd':
    case 'i': {
        const int64_t value = signed_argument(s->length, arguments);
        put_integer(to, s, value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                    sign_of(s, value < 0));
        break;
    }
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
        const uint64_t value = unsigned_argument(s->length, arguments);
        const bool has_prefix = s->alternate && value != 0 && (s->kind == 'x' || s->kind == 'X');
        put_integer(to, s, value, !has_prefix ? "" : s->kind == 'x' ? "0x" : "0X");
        break;
    }
    case 'p': put_integer(to, s, (uintptr_t)va_arg(*arguments, void *), "0x"); break;
    case 'c': {
        const char c = (char)va_arg(*arguments, int);
        s->zeros = false;
        put_padded(to, s, "", 0, &c, 1);
        break;
    }
    case 's': {
        const char *const text = va_arg(*arguments, const char *);
        s->zeros = false;
        put_padded(to, s, "", 0, text,
                   s->precision < 0 ? strlen(text) : strnlen(text, (size_t)s->precision));
        break;
    }
    case '%': put(to, '%'); break;
    default: put_float(to, s, va_arg(*arguments, double)); break;
    }
}

int vsnprintf(char *out, size_t capacity, const char *format, va_list given) {
    sink to = {.out = out, .capacity = capacity};
    va_list arguments;
    va_copy(arguments, given);
    while (*format) {
        if (*format != '%') {
            put(&to, *format++);
            continue;
        }
        spec s;
        format = read_spec(&s, format + 1, &arguments);
        put_argument(&to, &s, &arguments);
    }
    va_end(arguments);
    if (capacity > 0) out[to.size < capacity ? to.size : capacity - 1] = 0;
    return (int)to.size;
}

int snprintf(char *out, size_t capacity, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(out, capacity, format, arguments);
    va_end(arguments);
    return size;
}
