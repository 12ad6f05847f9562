/* grammar/json_number.c: bounds become choices of digits: as long as a number has the digits of a
 * bound, the next one is compared; once it differs, the rest is free. */
#include "grammar/json_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRACTION = 24, FREE_FRACTION = 12, FREE_ZEROS = 8 };

static const uint64_t usual_most = 999999999999999;      /* 15 digits: exact as a double */
static const uint64_t largest_most = 999999999999999999; /* 18 */

/* --- Digits of doubles --- */

/* value = 0.d1 d2 d3 ... times 10^point, with the fewest digits that identify the double. */
typedef struct decimal {
    char digits[24];
    int n_digits, point;
} decimal;

/* Reads back what it wrote by the same locale, so the decimal point may be any. */
static decimal decimal_of(double value) {
    decimal d = {.n_digits = 0};
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(value));
        if (strtod(text, NULL) == fabs(value)) break;
    }
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') d.digits[d.n_digits++] = *at;
    d.point = (int)strtol(at + 1, NULL, 10) + 1;
    while (d.n_digits > 0 && d.digits[d.n_digits - 1] == '0') d.n_digits--;
    return d;
}

/* --- Building --- */

static wk_expr *digit_range(wk_rules *rules, int first, int last) {
    return wk_expr_class(rules, &(wk_code_range){(uint32_t)('0' + first), (uint32_t)('0' + last)},
                         1, false);
}

static wk_expr *free_digits(wk_rules *rules, uint32_t least, uint32_t most) {
    return wk_expr_repeat(rules, digit_range(rules, 0, 9), least, most);
}

static wk_expr *pair(wk_rules *rules, wk_expr *a, wk_expr *b) {
    wk_expr *const both = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    wk_expr_add(both, a);
    wk_expr_add(both, b);
    return both;
}

/* One of the digits, then rest. Where there is no such digit, nothing is added. */
static void add_digits(wk_rules *rules, wk_expr *choice, int first, int last, wk_expr *rest) {
    if (first <= last) wk_expr_add(choice, pair(rules, digit_range(rules, first, last), rest));
}

static int value_of(char digit) { return digit - '0'; }

/* --- Whole numbers --- */

/* Texts of n digits from least to most; NULL: no bound, the rest is free. */
static wk_expr *same_length(wk_rules *rules, const char *least, const char *most, uint32_t n) {
    if (n == 0) return wk_expr_list(rules, WK_EXPR_SEQUENCE);
    if (!least && !most) return free_digits(rules, n, n);
    const int first = least ? value_of(*least) : 0, last = most ? value_of(*most) : 9;
    const char *const rest_least = least ? least + 1 : NULL, *const rest_most =
                                                                 most ? most + 1 : NULL;
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (least && most && first == last) {
        add_digits(rules, choice, first, last, same_length(rules, rest_least, rest_most, n - 1));
        return choice;
    }
    if (least) add_digits(rules, choice, first, first, same_length(rules, rest_least, NULL, n - 1));
    add_digits(rules, choice, first + (least != NULL), last - (most != NULL),
               free_digits(rules, n - 1, n - 1));
    if (most) add_digits(rules, choice, last, last, same_length(rules, NULL, rest_most, n - 1));
    return choice;
}

static wk_expr *whole_between(wk_rules *rules, uint64_t least, uint64_t most) {
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    uint64_t from = 0, to = 9;
    for (uint32_t n = 1; n <= 19 && from <= most; n++, from = to + 1, to = to * 10 + 9) {
        char first[24], last[24];
        if (to < least) continue;
        snprintf(first, sizeof first, "%" PRIu64, from > least ? from : least);
        snprintf(last, sizeof last, "%" PRIu64, to < most ? to : most);
        wk_expr_add(choice, same_length(rules, first, last, n));
    }
    return choice;
}

static wk_expr *negative(wk_rules *rules, wk_expr *magnitude) {
    return pair(rules, wk_expr_word(rules, "-"), magnitude);
}

wick_status wk_json_integer(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                            wk_expr **out, wick_error *err) {
    double low = least.is_set ? ceil(least.value) : -(double)usual_most;
    double high = most.is_set ? floor(most.value) : (double)usual_most;
    if (least.is_set && least.is_exclusive && low == least.value) low += 1;
    if (most.is_set && most.is_exclusive && high == most.value) high -= 1;
    if (!most.is_set && low > high) high = (double)largest_most;
    if (!least.is_set && high < low) low = -(double)largest_most;
    if (fabs(low) > 9e15 && least.is_set)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "a bound of more than 9e15 is not supported");
    if (fabs(high) > 9e15 && most.is_set)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "a bound of more than 9e15 is not supported");
    if (!(low <= high))
        return wk_fail(err, WICK_ERR_VALUE, "there is no whole number within the bounds");
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (low < 0)
        wk_expr_add(choice, negative(rules, whole_between(rules, high < 0 ? (uint64_t)-high : 1,
                                                          (uint64_t)-low)));
    if (high >= 0)
        wk_expr_add(choice, whole_between(rules, low > 0 ? (uint64_t)low : 0, (uint64_t)high));
    *out = choice;
    return WICK_OK;
}

/* --- Fractions --- */

/* A bound of a magnitude, taken apart: whole.fraction, without zeros at the end. */
typedef struct limit {
    uint64_t whole;
    char fraction[MAX_FRACTION + 1];
    bool is_exclusive;
} limit;

/* Any digits after the point, at least one where needs_digit. */
static wk_expr *any_fraction(wk_rules *rules, bool needs_digit) {
    return free_digits(rules, needs_digit, FREE_FRACTION);
}

static wk_expr *positive_fraction(wk_rules *rules) {
    wk_expr *const zeros = wk_expr_repeat(rules, digit_range(rules, 0, 0), 0, FREE_ZEROS);
    return pair(rules, zeros, pair(rules, digit_range(rules, 1, 9), any_fraction(rules, false)));
}

/* The digits that follow; f: those of the bound that are left. */
static wk_expr *at_least(wk_rules *rules, const char *f, bool is_exclusive, bool needs_digit) {
    if (*f == '\0')
        return is_exclusive ? positive_fraction(rules) : any_fraction(rules, needs_digit);
    const int digit = value_of(*f);
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    add_digits(rules, choice, digit, digit, at_least(rules, f + 1, is_exclusive, false));
    add_digits(rules, choice, digit + 1, 9, any_fraction(rules, false));
    return choice;
}

static wk_expr *at_most(wk_rules *rules, const char *f, bool is_exclusive, bool needs_digit) {
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (*f == '\0') {
        if (!is_exclusive)
            wk_expr_add(choice,
                        wk_expr_repeat(rules, digit_range(rules, 0, 0), needs_digit, FREE_ZEROS));
        return choice;
    }
    const int digit = value_of(*f);
    if (!needs_digit) wk_expr_add(choice, wk_expr_list(rules, WK_EXPR_SEQUENCE));
    add_digits(rules, choice, 0, digit - 1, any_fraction(rules, false));
    add_digits(rules, choice, digit, digit, at_most(rules, f + 1, is_exclusive, false));
    return choice;
}

/* More than 0, and at most f. */
static wk_expr *positive_at_most(wk_rules *rules, const char *f, bool is_exclusive) {
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (*f == '\0') return choice;
    const int digit = value_of(*f);
    if (digit == 0) {
        add_digits(rules, choice, 0, 0, positive_at_most(rules, f + 1, is_exclusive));
        return choice;
    }
    add_digits(rules, choice, 0, 0, positive_fraction(rules));
    add_digits(rules, choice, 1, digit - 1, any_fraction(rules, false));
    add_digits(rules, choice, digit, digit, at_most(rules, f + 1, is_exclusive, false));
    return choice;
}

static wk_expr *between(wk_rules *rules, const limit *a, const limit *b, size_t at) {
    const char *const f = a->fraction + at, *const g = b->fraction + at;
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (*f == '\0')
        return a->is_exclusive ? positive_at_most(rules, g, b->is_exclusive)
                               : at_most(rules, g, b->is_exclusive, at == 0);
    if (*g == '\0' || *f > *g) return choice;
    const int first = value_of(*f), last = value_of(*g);
    if (first == last) {
        add_digits(rules, choice, first, last, between(rules, a, b, at + 1));
        return choice;
    }
    add_digits(rules, choice, first, first, at_least(rules, f + 1, a->is_exclusive, false));
    add_digits(rules, choice, first + 1, last - 1, any_fraction(rules, false));
    add_digits(rules, choice, last, last, at_most(rules, g + 1, b->is_exclusive, false));
    return choice;
}

/* whole, then a point and digits; or whole alone where that is allowed. */
static wk_expr *with_fraction(wk_rules *rules, wk_expr *whole, bool may_be_whole, wk_expr *digits) {
    wk_expr *const behind = pair(rules, wk_expr_word(rules, "."), digits);
    return pair(rules, whole, wk_expr_repeat(rules, behind, !may_be_whole, 1));
}

/* Numbers from a to b, neither negative. */
static wk_expr *magnitude_between(wk_rules *rules, const limit *a, const limit *b) {
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    const bool a_is_whole = a->fraction[0] == '\0' && !a->is_exclusive;
    const bool b_has_whole = b->fraction[0] != '\0' || !b->is_exclusive;
    wk_expr *const first = whole_between(rules, a->whole, a->whole);
    if (a->whole == b->whole) {
        wk_expr_add(choice, with_fraction(rules, first, a_is_whole && b_has_whole,
                                          between(rules, a, b, 0)));
        return choice;
    }
    wk_expr_add(choice, with_fraction(rules, first, a_is_whole,
                                      at_least(rules, a->fraction, a->is_exclusive, true)));
    if (a->whole + 1 < b->whole)
        wk_expr_add(choice, with_fraction(rules, whole_between(rules, a->whole + 1, b->whole - 1),
                                          true, any_fraction(rules, true)));
    if (b_has_whole)
        wk_expr_add(choice, with_fraction(rules, whole_between(rules, b->whole, b->whole), true,
                                          at_most(rules, b->fraction, b->is_exclusive, true)));
    return choice;
}

static wick_status limit_of(wk_number_bound bound, limit *out, wick_error *err) {
    *out = (limit){.is_exclusive = bound.is_exclusive};
    const double size = fabs(bound.value);
    const decimal d = decimal_of(bound.value);
    const int n_fraction = d.n_digits - d.point;
    if (size > (double)usual_most || n_fraction > MAX_FRACTION)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "a bound of more than 15 digits before the point or %d after it is not "
                       "supported",
                       MAX_FRACTION);
    out->whole = (uint64_t)size;
    size_t n = 0;
    for (int i = d.point; i < d.n_digits; i++) out->fraction[n++] = i < 0 ? '0' : d.digits[i];
    return WICK_OK;
}

/* Any number that a double holds well. */
static wk_expr *free_number(wk_rules *rules) {
    static const wk_code_range e[] = {{'e', 'e'}, {'E', 'E'}}, signs[] = {{'+', '+'}, {'-', '-'}};
    wk_expr *const exponent =
        pair(rules, wk_expr_class(rules, e, 2, false),
             pair(rules, wk_expr_repeat(rules, wk_expr_class(rules, signs, 2, false), 0, 1),
                  free_digits(rules, 1, 2)));
    wk_expr *const number =
        with_fraction(rules, whole_between(rules, 0, usual_most), true, any_fraction(rules, true));
    wk_expr *const sign = wk_expr_repeat(rules, wk_expr_word(rules, "-"), 0, 1);
    return pair(rules, sign, pair(rules, number, wk_expr_repeat(rules, exponent, 0, 1)));
}

wick_status wk_json_number(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                           wk_expr **out, wick_error *err) {
    const limit zero = {.whole = 0};
    limit low = {.whole = usual_most}, high = {.whole = usual_most};
    if (!least.is_set && !most.is_set) {
        *out = free_number(rules);
        return WICK_OK;
    }
    if (least.is_set) WK_TRY(limit_of(least, &low, err));
    if (most.is_set) WK_TRY(limit_of(most, &high, err));
    const double a = least.is_set ? least.value : -(double)usual_most;
    const double b = most.is_set ? most.value : (double)usual_most;
    if (!(a <= b) || (a == b && (low.is_exclusive || high.is_exclusive)))
        return wk_fail(err, WICK_ERR_VALUE, "there is no number within the bounds");
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    /* -0 is 0, too. */
    limit nearest = b < 0 ? high : zero;
    if (b == 0) nearest.is_exclusive = high.is_exclusive;
    if (a < 0) wk_expr_add(choice, negative(rules, magnitude_between(rules, &nearest, &low)));
    nearest = a > 0 ? low : zero;
    if (a == 0) nearest.is_exclusive = low.is_exclusive;
    if (b > 0 || (b == 0 && !high.is_exclusive))
        wk_expr_add(choice, magnitude_between(rules, &nearest, &high));
    *out = choice;
    return WICK_OK;
}
