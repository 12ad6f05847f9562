/* text/jinja/operators.c: arithmetic as Python's, within 64 bits. */
#include "text/jinja/format.h"
#include "text/jinja/state.h"

#include <math.h>

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

static wick_status fail_operands(wk_jinja *j, wk_joperator op, const wk_jvalue *a,
                                 const wk_jvalue *b) {
    const bool is_concat =
        op == WK_J_ADD && (a->kind == WK_J_STRING || a->kind == WK_J_LIST || a->kind == WK_J_TUPLE);
    const char *const type = wk_jtype_name(a);
    if (is_concat)
        return wk_jfail(j, "can only concatenate %s (not \"%s\") to %s", type, wk_jtype_name(b),
                        type);
    return wk_jfail(j, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op], type,
                    wk_jtype_name(b));
}

static wick_status fail_overflow(wk_jinja *j) {
    return wk_jfail(j, "the result does not fit 64 bits");
}

static bool multiply(int64_t a, int64_t b, int64_t *out) {
    if (a == 0 || b == 0) {
        *out = 0;
        return true;
    }
    const bool is_negative = (a < 0) != (b < 0);
    const uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    const uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (x > (uint64_t)INT64_MAX / y) return false;
    *out = is_negative ? -(int64_t)(x * y) : (int64_t)(x * y);
    return true;
}

/* exponent >= 0 */
static bool raise(int64_t base, int64_t exponent, int64_t *out) {
    *out = 1;
    while (exponent > 0) {
        if ((exponent & 1) && !multiply(*out, base, out)) return false;
        exponent >>= 1;
        if (exponent > 0 && !multiply(base, base, &base)) return false;
    }
    return true;
}

static wick_status add_integers(wk_jinja *j, int64_t a, int64_t b, wk_jvalue *out) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return fail_overflow(j);
    *out = wk_jinteger(a + b);
    return WICK_OK;
}

/* Rounds down; the remainder has the sign of b. */
static wick_status divide_integers(wk_jinja *j, bool wants_rest, int64_t a, int64_t b,
                                   wk_jvalue *out) {
    if (b == 0) return wk_jfail(j, "integer division or modulo by zero");
    if (b == -1) {
        if (a == INT64_MIN) return fail_overflow(j);
        *out = wk_jinteger(wants_rest ? 0 : -a);
        return WICK_OK;
    }
    const int64_t rest = a % b, quotient = a / b;
    const bool is_off = rest != 0 && (rest < 0) != (b < 0);
    *out = wk_jinteger(wants_rest ? rest + (is_off ? b : 0) : quotient - is_off);
    return WICK_OK;
}

/* Python's divmod: the remainder is exact and has the sign of b, the quotient is what fits it. */
static double divide_floats(bool wants_rest, double a, double b) {
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest == 0.0) {
        rest = copysign(0.0, b);
    } else if ((rest < 0.0) != (b < 0.0)) {
        rest += b;
        quotient -= 1.0;
    }
    if (wants_rest) return rest;
    const double whole = floor(quotient);
    if (quotient == 0.0) return copysign(0.0, a / b);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

static wick_status float_operation(wk_jinja *j, wk_joperator op, double a, double b,
                                   wk_jvalue *out) {
    const bool divides = op == WK_J_DIVIDE || op == WK_J_FLOOR_DIVIDE || op == WK_J_MODULO;
    if (b == 0.0 && divides) return wk_jfail(j, "division by zero");
    WK_TRY(wk_jwork(j, op == WK_J_FLOOR_DIVIDE || op == WK_J_MODULO ? WK_J_FLOAT_STEPS : 0));
    double result = 0.0;
    switch (op) {
    case WK_J_ADD: result = a + b; break;
    case WK_J_SUBTRACT: result = a - b; break;
    case WK_J_MULTIPLY: result = a * b; break;
    case WK_J_DIVIDE: result = a / b; break;
    case WK_J_FLOOR_DIVIDE:
    case WK_J_MODULO: result = divide_floats(op == WK_J_MODULO, a, b); break;
    default:
        if (a == 0.0 && b < 0.0) return wk_jfail(j, "0.0 cannot be raised to a negative power");
        result = pow(a, b);
        if (isnan(result) && !isnan(a) && !isnan(b))
            return wk_jfail(j, "complex numbers are not supported");
        break;
    }
    *out = wk_jfloat(result);
    return WICK_OK;
}

static wick_status integer_operation(wk_jinja *j, wk_joperator op, int64_t a, int64_t b,
                                     wk_jvalue *out) {
    int64_t result = 0;
    switch (op) {
    case WK_J_ADD: return add_integers(j, a, b, out);
    case WK_J_SUBTRACT:
        if (b == INT64_MIN) return fail_overflow(j);
        return add_integers(j, a, -b, out);
    case WK_J_MULTIPLY:
        if (!multiply(a, b, &result)) return fail_overflow(j);
        break;
    case WK_J_FLOOR_DIVIDE:
    case WK_J_MODULO: return divide_integers(j, op == WK_J_MODULO, a, b, out);
    case WK_J_POWER:
        if (b < 0) return float_operation(j, op, (double)a, (double)b, out);
        if (!raise(a, b, &result)) return fail_overflow(j);
        break;
    default: return float_operation(j, op, (double)a, (double)b, out);
    }
    *out = wk_jinteger(result);
    return WICK_OK;
}

/* A string that is markup escapes what it is joined with. */
static wick_status add_texts(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, wk_jvalue *out) {
    const bool is_markup = a->is_markup || b->is_markup;
    const bool escapes_a = is_markup && !a->is_markup, escapes_b = is_markup && !b->is_markup;
    wk_jbuilder text = escapes_a ? wk_jbuilder_begin(j) : wk_jbuilder_resume(j, a->string);
    if (escapes_a) wk_jput_html(&text, a->string);
    if (escapes_b)
        wk_jput_html(&text, b->string);
    else
        wk_jput(&text, b->string);
    WK_TRY(wk_jbuilder_end_resumed(&text, out));
    out->is_markup = is_markup;
    return WICK_OK;
}

static wick_status add_sequences(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b,
                                 wk_jvalue *out) {
    if (a->kind == WK_J_STRING) return add_texts(j, a, b, out);
    WK_TRY(wk_jlist_make(j, a->kind, a->list->n + b->list->n, out));
    for (size_t i = 0; i < a->list->n; i++) WK_TRY(wk_jlist_push(j, out->list, a->list->items[i]));
    for (size_t i = 0; i < b->list->n; i++) WK_TRY(wk_jlist_push(j, out->list, b->list->items[i]));
    return WICK_OK;
}

static bool is_sequence(const wk_jvalue *value) {
    return value->kind == WK_J_STRING || value->kind == WK_J_LIST || value->kind == WK_J_TUPLE;
}

static wick_status repeat(wk_jinja *j, const wk_jvalue *sequence, int64_t n, wk_jvalue *out) {
    if (sequence->kind == WK_J_STRING) {
        wk_jbuilder text = wk_jbuilder_begin(j);
        wk_jput_repeated(&text, sequence->string, n > 0 ? (size_t)n : 0);
        WK_TRY(wk_jbuilder_end(&text, out));
        out->is_markup = sequence->is_markup;
        return WICK_OK;
    }
    const wk_jlist *const list = sequence->list;
    WK_TRY(wk_jlist_make(j, sequence->kind, 0, out));
    for (int64_t i = 0; i < n && list->n > 0; i++) {
        for (size_t k = 0; k < list->n; k++) WK_TRY(wk_jlist_push(j, out->list, list->items[k]));
    }
    return WICK_OK;
}

wick_status wk_jbinary(wk_jinja *j, wk_joperator op, const wk_jvalue *a, const wk_jvalue *b,
                       wk_jvalue *out) {
    if (a->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, a);
    if (op == WK_J_MODULO && a->kind == WK_J_STRING) return wk_jformat_percent(j, a, b, out);
    if (b->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, b);
    if (wk_jis_number(a) && wk_jis_number(b)) {
        if (wk_jis_integer(a) && wk_jis_integer(b))
            return integer_operation(j, op, wk_jas_integer(a), wk_jas_integer(b), out);
        return float_operation(j, op, wk_jas_float(a), wk_jas_float(b), out);
    }
    if (op == WK_J_ADD && a->kind == b->kind && is_sequence(a)) return add_sequences(j, a, b, out);
    if (op == WK_J_MULTIPLY && is_sequence(a) && wk_jis_integer(b))
        return repeat(j, a, wk_jas_integer(b), out);
    if (op == WK_J_MULTIPLY && is_sequence(b) && wk_jis_integer(a))
        return repeat(j, b, wk_jas_integer(a), out);
    return fail_operands(j, op, a, b);
}

wick_status wk_junary(wk_jinja *j, bool negate, const wk_jvalue *a, wk_jvalue *out) {
    if (a->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, a);
    if (!wk_jis_number(a))
        return wk_jfail(j, "bad operand type for unary %s: '%s'", negate ? "-" : "+",
                        wk_jtype_name(a));
    if (a->kind == WK_J_FLOAT) {
        *out = wk_jfloat(negate ? -a->number : a->number);
        return WICK_OK;
    }
    const int64_t value = wk_jas_integer(a);
    if (negate && value == INT64_MIN) return fail_overflow(j);
    *out = wk_jinteger(negate ? -value : value);
    return WICK_OK;
}
