/* parse.c: numbers from text. strtod rounds correctly: an estimate in double, and then its
 * neighbours are tried by exact comparison. */
#include "bits.h"
#include "number.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- Integers ---- */

static const char *skip_sign(const char *text, bool *is_negative) {
    while (isspace((unsigned char)*text)) text++;
    *is_negative = *text == '-';
    return *text == '-' || *text == '+' ? text + 1 : text;
}

static int digit_value(char c) {
    if (isdigit((unsigned char)c)) return c - '0';
    return isalpha((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : 99;
}

/* Saturates at most; base 10 or 16 with or without 0x. */
static unsigned long digits(const char *text, const char **end, int base, unsigned long most) {
    unsigned long value = 0;
    *end = text;
    if (base == 16 && text[0] == '0' && tolower((unsigned char)text[1]) == 'x' &&
        digit_value(text[2]) < base)
        text += 2;
    for (int digit; (digit = digit_value(*text)) < base; *end = ++text) {
        const unsigned long rest = most - (unsigned long)digit;
        value = value > rest / (unsigned)base ? most : value * (unsigned)base + (unsigned)digit;
    }
    return value;
}

long strtol(const char *text, char **end, int base) {
    bool is_negative;
    const char *const from = skip_sign(text, &is_negative);
    const char *stop;
    const unsigned long most = (unsigned long)__LONG_MAX__ + is_negative;
    const unsigned long value = digits(from, &stop, base, most);
    if (end) *end = (char *)(stop == from ? text : stop);
    return is_negative ? (long)(0 - value) : (long)value;
}

unsigned long strtoul(const char *text, char **end, int base) {
    bool is_negative;
    const char *const from = skip_sign(text, &is_negative);
    const char *stop;
    const unsigned long value = digits(from, &stop, base, ~0ul);
    if (end) *end = (char *)(stop == from ? text : stop);
    return is_negative ? 0 - value : value;
}

int atoi(const char *text) { return (int)strtol(text, NULL, 10); }

/* ---- Floats ---- */

/* digits * 10^exponent. More digits than these decide nothing but whether the number lies above
 * one that ends there. */
enum { MOST_DIGITS = 800 };

typedef struct decimal {
    char digits[MOST_DIGITS + 1]; /* values, the first one not 0 */
    int n, exponent;
} decimal;

static void add_digit(decimal *d, int digit, bool is_fraction) {
    const bool is_kept = d->n < MOST_DIGITS;
    if (is_kept && (d->n > 0 || digit > 0)) {
        d->digits[d->n++] = (char)digit;
    } else if (!is_kept && digit > 0) {
        d->digits[MOST_DIGITS] = 1; /* something follows */
    }
    const bool is_shifted = is_fraction ? is_kept : !is_kept;
    if (is_shifted) d->exponent += is_fraction ? -1 : 1;
}

/* After the number; NULL: there is none. */
static const char *decimal_read(decimal *d, const char *text) {
    d->n = d->exponent = 0;
    d->digits[MOST_DIGITS] = 0;
    bool has_digits = false, is_fraction = false;
    for (;; text++) {
        if (*text == '.' && !is_fraction) {
            is_fraction = true;
        } else if (isdigit((unsigned char)*text)) {
            has_digits = true;
            add_digit(d, *text - '0', is_fraction);
        } else {
            break;
        }
    }
    if (!has_digits) return NULL;
    if (tolower((unsigned char)*text) == 'e') {
        const char *const sign = text + 1;
        const char *const from = sign + (*sign == '-' || *sign == '+');
        if (isdigit((unsigned char)*from)) {
            enum { FAR = 100000 }; /* past every text's digits */
            const char *stop;
            const int exponent = (int)digits(from, &stop, 10, FAR);
            d->exponent += *sign == '-' ? -exponent : exponent;
            text = stop;
        }
    }
    return text;
}

/* A few units of the last place off at most. */
static double estimate(const decimal *d) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int n = d->n < 19 ? d->n : 19;
    uint64_t head = 0;
    for (int i = 0; i < n; i++) head = head * 10 + (uint64_t)d->digits[i];
    double x = (double)head;
    int exponent = d->exponent + d->n - n;
    for (; exponent > 22; exponent -= 22) x *= 1e22;
    for (; exponent < -22; exponent += 22) x /= 1e22;
    return exponent < 0 ? x / powers[-exponent] : x * powers[exponent];
}

/* Compares d with the number halfway between the finite x = of_bits(bits) >= 0 and the double above
 * it: (2 m + 1) 2^(e - 1) for x = m 2^e. */
static int compare_with_half_above(const decimal *d, uint64_t bits) {
    const int raw = (int)(bits >> 52);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint64_t m = raw > 0 ? fraction | UINT64_C(1) << 52 : fraction;
    const int e = (raw > 0 ? raw : 1) - 1075 - 1;
    number left, right;
    number_set(&left, 0);
    for (int i = 0; i < d->n; i++) {
        if (left.n == 0)
            number_set(&left, (uint64_t)d->digits[i]);
        else
            number_multiply(&left, 10, (uint32_t)d->digits[i]);
    }
    int exponent = d->exponent;
    if (d->n == MOST_DIGITS && d->digits[MOST_DIGITS]) {
        number_multiply(&left, 10, 1);
        exponent--;
    }
    number_set(&right, 2 * m + 1);
    if (exponent >= 0)
        number_times_ten_to(&left, exponent);
    else
        number_times_ten_to(&right, -exponent);
    number_shift(e < 0 ? &left : &right, e < 0 ? -e : e);
    return number_compare(&left, &right);
}

static double round_decimal(const decimal *d) {
    const uint64_t infinite = UINT64_C(0x7ff) << 52;
    const int top = d->exponent + d->n; /* 10^(top - 1) <= d < 10^top */
    if (d->n == 0 || top < -330) return 0;
    if (top > 310) return HUGE_VAL;
    uint64_t bits = bits_of(estimate(d));
    if (d->n <= 15 && d->exponent >= -22 && d->exponent <= 22) return of_bits(bits); /* exact */
    for (; bits < infinite; bits++) {
        const int order = compare_with_half_above(d, bits);
        if (order < 0 || (order == 0 && bits % 2 == 0)) break;
    }
    for (; bits > 0; bits--) {
        const int order = compare_with_half_above(d, bits - 1);
        if (order > 0 || (order == 0 && bits % 2 == 0)) break;
    }
    return of_bits(bits);
}

/* Behind word, in any case; NULL: text does not begin with it. */
static const char *skip_word(const char *text, const char *word) {
    for (; *word; text++, word++) {
        if (tolower((unsigned char)*text) != *word) return NULL;
    }
    return text;
}

double strtod(const char *text, char **end) {
    bool is_negative;
    const char *const from = skip_sign(text, &is_negative);
    decimal d;
    double value = 0;
    const char *stop = decimal_read(&d, from);
    if (stop) {
        value = round_decimal(&d);
    } else if ((stop = skip_word(from, "inf")) != NULL) {
        const char *const whole = skip_word(from, "infinity");
        if (whole) stop = whole;
        value = HUGE_VAL;
    } else if ((stop = skip_word(from, "nan")) != NULL) {
        value = (double)NAN;
    }
    if (end) *end = (char *)(stop ? stop : text);
    return is_negative && stop ? -value : value;
}
