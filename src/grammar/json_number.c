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

enum { MAX_DIGITS = 18, MAX_TAILS = 2000 };

/* The digits that may follow others, as a rule. */
typedef struct tail tail;
struct tail {
    uint64_t key; /* what the others are worth, modulo step */
    uint32_t rule;
    tail *next;
};

/* Multiples of step from least to most, with a point before the last n_fraction digits. */
typedef struct multiples {
    wk_rules *rules;
    uint64_t step, least, most;
    uint32_t n_fraction;
    uint32_t n_tails;
    tail *tails[MAX_DIGITS]; /* by the number of digits that follow */
} multiples;

static uint64_t power_of_ten(uint32_t n) {
    uint64_t power = 1;
    while (n-- > 0) power *= 10;
    return power;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b > 0) {
        const uint64_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

/* Whether all numbers of a block (from begin on, size many) are within the bounds. */
static bool is_inside(const multiples *m, uint64_t begin, uint64_t size) {
    return begin >= m->least && begin + (size - 1) <= m->most;
}

static bool has_multiple(const multiples *m, uint64_t begin, uint64_t size) {
    const uint64_t first = begin > m->least ? begin : m->least, end = begin + (size - 1);
    const uint64_t last = end < m->most ? end : m->most;
    return first <= last && (last - first >= m->step - 1 || last % m->step < first % m->step ||
                             first % m->step == 0);
}

static wk_expr *digits_from(multiples *m, uint64_t begin, uint32_t n);

/* The last n digits of the numbers from begin on, the first of them at least first. */
static wk_expr *choose_digit(multiples *m, uint64_t begin, uint32_t n, int first) {
    wk_expr *choice = wk_expr_list(m->rules, WK_EXPR_CHOICE);
    const uint64_t size = power_of_ten(n - 1);
    for (int digit = first, end; digit < 10; digit = end) {
        const uint64_t at = begin + (uint64_t)digit * size;
        uint64_t other = at + size;
        for (end = digit + 1; end < 10; end++, other += size)
            if (!is_inside(m, at, size) || !is_inside(m, other, size) ||
                at % m->step != other % m->step)
                break;
        if (has_multiple(m, at, size))
            add_digits(m->rules, choice, digit, end - 1, digits_from(m, at, n - 1));
    }
    if (n == m->n_fraction) choice = pair(m->rules, wk_expr_word(m->rules, "."), choice);
    return choice;
}

/* The same where no bound is near: shared by all numbers that begin with as much, modulo step. */
static wk_expr *any_digits(multiples *m, uint64_t key, uint32_t n) {
    tail *r = m->tails[n];
    while (r && r->key != key) r = r->next;
    if (!r && m->n_tails < MAX_TAILS && (r = wk_arena_array(m->rules->arena, 1, sizeof *r))) {
        *r = (tail){key, wk_rules_add(m->rules, wk_str_of("digits")), m->tails[n]};
        m->tails[n] = r;
        m->n_tails++;
        const uint64_t least = m->least, most = m->most;
        m->least = 0;
        m->most = UINT64_MAX;
        wk_expr *const body = choose_digit(m, key, n, 0);
        m->least = least;
        m->most = most;
        if (r->rule > 0) m->rules->items[r->rule].body = body;
    }
    return r ? wk_expr_rule(m->rules, r->rule) : NULL;
}

/* The last n digits of the multiples among the numbers from begin on; there is one. */
static wk_expr *digits_from(multiples *m, uint64_t begin, uint32_t n) {
    if (n == 0) return wk_expr_list(m->rules, WK_EXPR_SEQUENCE);
    if (!is_inside(m, begin, power_of_ten(n))) return choose_digit(m, begin, n, 0);
    if (m->step > 1) return any_digits(m, begin % m->step, n);
    if (n > m->n_fraction && m->n_fraction > 0)
        return pair(m->rules, free_digits(m->rules, n - m->n_fraction, n - m->n_fraction),
                    digits_from(m, begin, m->n_fraction));
    wk_expr *const digits = free_digits(m->rules, n, n);
    return n == m->n_fraction ? pair(m->rules, wk_expr_word(m->rules, "."), digits) : digits;
}

/* All of them; a choice of none where there are none. */
static wk_expr *all_multiples(multiples *m) {
    wk_expr *const choice = wk_expr_list(m->rules, WK_EXPR_CHOICE);
    const uint32_t shortest = m->n_fraction + 1;
    for (uint32_t n = shortest; n <= MAX_DIGITS; n++) {
        const int first = n > shortest; /* none begins with a 0 but 0 and 0.1 */
        const uint64_t size = power_of_ten(n - 1), begin = (uint64_t)first * size;
        if (has_multiple(m, begin, 10 * size - begin))
            wk_expr_add(choice, choose_digit(m, 0, n, first));
    }
    return choice;
}

static wk_expr *whole_between(wk_rules *rules, uint64_t least, uint64_t most) {
    multiples m = {.rules = rules, .step = 1, .least = least, .most = most};
    return all_multiples(&m);
}

static wk_expr *negative(wk_rules *rules, wk_expr *magnitude) {
    return pair(rules, wk_expr_word(rules, "-"), magnitude);
}

static void add_side(multiples *m, int64_t least, int64_t most, bool is_negative, wk_expr *choice) {
    m->least = (uint64_t)least;
    m->most = (uint64_t)most;
    wk_expr *const all = all_multiples(m);
    if (all && all->first) wk_expr_add(choice, is_negative ? negative(m->rules, all) : all);
}

/* Those from low to high. */
static wick_status add_multiples(multiples *m, int64_t low, int64_t high, wk_expr *choice,
                                 wick_error *err) {
    if (low < 0 && low <= high) add_side(m, high < 0 ? -high : 1, -low, true, choice);
    if (high >= 0 && low <= high) add_side(m, low > 0 ? low : 0, high, false, choice);
    if (m->n_tails < MAX_TAILS) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "'multipleOf' is too large");
}

/* --- Multiples --- */

/* 25 and 2 for 0.25; 10 and 0 for 10. */
static wick_status step_of(double multiple, uint64_t *step, uint32_t *n_fraction, wick_error *err) {
    const decimal d = decimal_of(multiple);
    const int exponent = d.point - d.n_digits;
    *step = 0;
    *n_fraction = exponent < 0 ? (uint32_t)-exponent : 0;
    if (d.n_digits > 15 || d.point > 15 || *n_fraction > 9)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "'multipleOf' of more than 15 digits, or 9 after the point, is not "
                       "supported");
    for (int i = 0; i < d.n_digits; i++) *step = *step * 10 + (uint64_t)value_of(d.digits[i]);
    if (exponent > 0) *step *= power_of_ten((uint32_t)exponent);
    return WICK_OK;
}

/* A bound beyond the farthest number that is generated counts as that number. */
static wk_number_bound narrow(wk_number_bound bound, bool is_least, double most) {
    const double farthest = is_least ? -most : most;
    const bool is_beyond = is_least ? bound.value < farthest : bound.value > farthest;
    if (!bound.is_set || !is_beyond) return bound;
    return (wk_number_bound){.is_set = true, .value = farthest};
}

wick_status wk_json_integer(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                            double multiple, wk_expr **out, wick_error *err) {
    least = narrow(least, true, 9e15);
    most = narrow(most, false, 9e15);
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
    multiples m = {.rules = rules, .step = 1};
    if (multiple > 0) {
        uint32_t n_fraction;
        WK_TRY(step_of(multiple, &m.step, &n_fraction, err));
        m.step /= common_divisor(m.step, power_of_ten(n_fraction));
    }
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    WK_TRY(add_multiples(&m, (int64_t)low, (int64_t)high, choice, err));
    if (choice && !choice->first)
        return wk_fail(err, WICK_ERR_VALUE, "there is no whole number within the bounds");
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
    wk_expr *const after = pair(rules, wk_expr_word(rules, "."), digits);
    return pair(rules, whole, wk_expr_repeat(rules, after, !may_be_whole, 1));
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

/* The first or last whole number of units that lie within a bound; unit: 10^-n_fraction. */
static wick_status units_of(wk_number_bound bound, bool is_least, uint32_t n_fraction, int64_t *out,
                            wick_error *err) {
    limit l;
    WK_TRY(limit_of(bound, &l, err));
    const char *f = l.fraction;
    for (uint32_t i = 0; i < n_fraction; i++) {
        if (l.whole > largest_most / 10)
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "a bound has too many digits beside 'multipleOf'");
        l.whole = l.whole * 10 + (uint64_t)(*f ? value_of(*f++) : 0);
    }
    const bool is_negative = bound.value < 0;
    const int inwards = is_least ? 1 : -1;
    *out = is_negative ? -(int64_t)l.whole : (int64_t)l.whole;
    if (*f == '\0' ? bound.is_exclusive : is_negative != is_least) *out += inwards;
    return WICK_OK;
}

/* With as many digits after the point as they need, or zeros up to those of multiple. */
static wick_status multiples_between(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                                     double multiple, wk_expr **out, wick_error *err) {
    uint64_t step;
    uint32_t n_fraction;
    WK_TRY(step_of(multiple, &step, &n_fraction, err));
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    for (uint32_t n = 0; n <= n_fraction; n++) {
        int64_t low = -(int64_t)usual_most, high = (int64_t)usual_most;
        if (least.is_set) WK_TRY(units_of(least, true, n, &low, err));
        if (most.is_set) WK_TRY(units_of(most, false, n, &high, err));
        if (!most.is_set && low > high) high = (int64_t)largest_most;
        if (!least.is_set && high < low) low = -(int64_t)largest_most;
        multiples m = {.rules = rules,
                       .step = step / common_divisor(step, power_of_ten(n_fraction - n)),
                       .n_fraction = n};
        WK_TRY(add_multiples(&m, low, high, choice, err));
    }
    if (choice && !choice->first)
        return wk_fail(err, WICK_ERR_VALUE, "there is no number within the bounds");
    *out = choice;
    return WICK_OK;
}

wick_status wk_json_number(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                           double multiple, wk_expr **out, wick_error *err) {
    const double farthest = (double)usual_most;
    if (multiple > 0) { /* with many digits after the point they end before that */
        least.is_set = least.is_set && least.value >= -farthest;
        most.is_set = most.is_set && most.value <= farthest;
        return multiples_between(rules, least, most, multiple, out, err);
    }
    least = narrow(least, true, farthest);
    most = narrow(most, false, farthest);
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
