/* text/jinja/number_filters.c: filters that make numbers. */
#include "text/jinja/chars.h"
#include "text/jinja/list.h"
#include "text/jinja/strings.h"
#include "text/unicode/unicode_case.h"

#include <math.h>
#include <string.h>

enum { NUMBER_SIZE = 720 }; /* the longest number that is read, or made: 300 digits on both sides */

/* ---- Reading ---- */

/* Decimal digits of a script are ten in a row, the zero first; some rows touch. */
static char decimal_digit(uint32_t code) {
    uint32_t n = 0;
    while (wk_unicode_is(code - n - 1, WK_UNICODE_DECIMAL)) n++;
    return (char)('0' + n % 10);
}

/* The text without white space around it, digits of all scripts as ASCII's; false: it has other
 * characters, or too many. */
static wick_status clean_number(wk_jinja *j, wk_jtext text, char *out, size_t capacity, bool *is) {
    size_t n = 0;
    *is = false;
    WK_TRY(wk_jstrip(j, &text, NULL, true, true));
    for (size_t at = 0; at < text.size;) {
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        const bool is_digit = code >= 0x80 && wk_unicode_is(code, WK_UNICODE_DECIMAL);
        if (n + 1 >= capacity || code == 0 || (code >= 0x80 && !is_digit)) return WICK_OK;
        out[n++] = is_digit ? decimal_digit(code) : (char)code;
        WK_TRY(wk_jwork(j, 2));
    }
    out[n] = '\0';
    *is = n > 0;
    return WICK_OK;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int letter = c | 0x20;
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 10 : 99;
}

/* int(text, base); base 0: by the prefix. Single underscores may stand before digits, but not
 * first. */
static bool read_integer(const char *text, int64_t base, int64_t *out) {
    const bool is_negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    const int letter = text[0] == '0' ? text[1] | 0x20 : 0;
    const int64_t prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == 0 || base == prefixed)) {
        base = prefixed;
        text += 2;
    }
    if (base == 0) base = 10;
    if (base < 2 || base > 36 || *text == '\0') return false;
    if (prefixed != base && *text == '_') return false;
    int64_t value = 0;
    for (; *text != '\0'; text++) {
        if (*text == '_') text++;
        const int digit = digit_value(*text);
        if (digit >= base || value > (INT64_MAX - digit) / base) return false;
        value = value * base + digit;
    }
    *out = is_negative ? -value : value;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Skips digits. */
static const char *after_digits(const char *text) {
    while (is_digit(*text)) text++;
    return text;
}

/* Takes out underscores; false: one does not stand between two digits. */
static bool drop_underscores(const char *text, char *out) {
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] != '_')
            *out++ = text[i];
        else if (i == 0 || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
            return false;
    }
    *out = '\0';
    return true;
}

/* float(text): rewritten as JSON wants it, which has the one reader of decimals. */
static bool read_float(wk_jinja *j, const char *given, double *out) {
    char plain[NUMBER_SIZE], json[NUMBER_SIZE + 8];
    const char *text = plain;
    wk_jcount(j, WK_J_STEP * WK_J_FLOAT_STEPS);
    if (!drop_underscores(given, plain)) return false;
    const bool is_negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    static const char *const words[] = {"inf", "infinity", "nan"};
    for (size_t i = 0; i < WK_COUNT(words); i++) {
        size_t n = 0;
        while (words[i][n] != '\0' && (text[n] | 0x20) == words[i][n]) n++;
        if (words[i][n] != '\0' || text[n] != '\0') continue;
        *out = i == 2 ? (double)NAN : is_negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    while (text[0] == '0' && text[1] >= '0' && text[1] <= '9') text++;
    const char *const whole = after_digits(text);
    const char *fraction = whole + (*whole == '.'), *const end = after_digits(fraction);
    if (whole == text && end == fraction) return false;
    const size_t n_whole = (size_t)(whole - text), n_fraction = (size_t)(end - fraction);
    size_t n = 0;
    json[n++] = is_negative ? '-' : '0';
    if (!is_negative) n = 0;
    if (n_whole == 0) json[n++] = '0';
    memcpy(json + n, text, n_whole);
    n += n_whole;
    if (n_fraction > 0) {
        json[n++] = '.';
        memcpy(json + n, fraction, n_fraction);
        n += n_fraction;
    }
    const size_t rest = strlen(end);
    memcpy(json + n, end, rest);
    wk_json *value;
    wick_error ignored = {.status = WICK_OK};
    if (wk_json_parse(j->arena, json, n + rest, &value, &ignored) != WICK_OK ||
        value->kind != WK_JSON_NUMBER)
        return false;
    *out = value->number;
    return true;
}

static bool float_to_integer(double number, int64_t *out) {
    if (!(number > -9.2e18 && number < 9.2e18)) return false;
    *out = (int64_t)number;
    return true;
}

static wick_status f_int(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const self = args->self;
    int64_t base, value = 0;
    char text[NUMBER_SIZE];
    double number;
    bool is_read = wk_jis_integer(self);
    if (self->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, self);
    WK_TRY(wk_jarg_integer(j, args, 1, 10, &base));
    if (is_read) {
        value = wk_jas_integer(self);
    } else if (self->kind == WK_J_FLOAT) {
        is_read = float_to_integer(self->number, &value);
    } else if (self->kind == WK_J_STRING) {
        WK_TRY(clean_number(j, self->string, text, sizeof text, &is_read));
        is_read = is_read && (read_integer(text, base, &value) ||
                              (read_float(j, text, &number) && float_to_integer(number, &value)));
    }
    *out = is_read ? wk_jinteger(value) : wk_jhas(args, 0) ? args->values[0] : wk_jinteger(0);
    return WICK_OK;
}

static wick_status f_float(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const self = args->self;
    char text[NUMBER_SIZE];
    double number = 0.0;
    bool is_read = wk_jis_number(self);
    if (self->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, self);
    if (is_read) {
        number = wk_jas_float(self);
    } else if (self->kind == WK_J_STRING) {
        WK_TRY(clean_number(j, self->string, text, sizeof text, &is_read));
        is_read = is_read && read_float(j, text, &number);
    }
    *out = is_read ? wk_jfloat(number) : wk_jhas(args, 0) ? args->values[0] : wk_jfloat(0.0);
    return WICK_OK;
}

/* ---- Computing ---- */

static wick_status f_abs(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const self = args->self;
    if (!wk_jis_number(self))
        return wk_jfail(j, "bad operand type for abs(): '%s'", wk_jtype_name(self));
    if (self->kind == WK_J_FLOAT) {
        *out = wk_jfloat(fabs(self->number));
        return WICK_OK;
    }
    if (wk_jas_integer(self) < 0) return wk_junary(j, true, self, out);
    *out = wk_jinteger(wk_jas_integer(self));
    return WICK_OK;
}

/* To even where two are as near, as Python rounds: by the digits of the number, not by a product
 * that is rounded itself. */
static double round_common(wk_jinja *j, double number, int64_t precision) {
    if (!isfinite(number) || precision > 300) return number;
    if (precision < -300) return copysign(0.0, number);
    if (precision <= 0) {
        const double unit = pow(10.0, (double)-precision);
        return nearbyint(number / unit) * unit;
    }
    char text[NUMBER_SIZE];
    wk_jfixed_text(number, (int)precision, text, sizeof text);
    double rounded = number;
    return read_float(j, text, &rounded) ? rounded : number;
}

static wick_status f_round(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const self = args->self;
    int64_t precision;
    wk_jtext method;
    WK_TRY(wk_jwork(j, WK_J_FLOAT_STEPS));
    WK_TRY(wk_jarg_integer(j, args, 0, 0, &precision));
    WK_TRY(wk_jarg_text(j, args, 1, "common", &method));
    const bool is_ceil = wk_jtext_is(method, "ceil"), is_floor = wk_jtext_is(method, "floor");
    if (!is_ceil && !is_floor && !wk_jtext_is(method, "common"))
        return wk_jfail(j, "method must be common, ceil or floor");
    if (self->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, self);
    if (!wk_jis_number(self))
        return wk_jfail(j, "type %s doesn't define __round__ method", wk_jtype_name(self));
    const double number = wk_jas_float(self);
    if (is_ceil || is_floor) {
        const double unit = pow(10.0, (double)precision);
        const double whole = is_ceil ? ceil(number * unit) : floor(number * unit);
        *out = wk_jfloat((whole + 0.0) / unit); /* of an integer: no -0.0 */
        return WICK_OK;
    }
    *out = wk_jis_integer(self) && precision >= 0 ? wk_jinteger(wk_jas_integer(self))
                                                  : wk_jfloat(round_common(j, number, precision));
    int64_t whole;
    if (wk_jis_integer(self) && precision < 0 && float_to_integer(out->number, &whole))
        *out = wk_jinteger(whole);
    return WICK_OK;
}

static wick_status f_sum(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue total = wk_jhas(args, 1) ? args->values[1] : wk_jinteger(0), item;
    WK_TRY(wk_jself_items(j, args, &items));
    for (size_t i = 0; i < items.n; i++) {
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[0], NULL, &item));
        const wk_jvalue before = total;
        WK_TRY(wk_jbinary(j, WK_J_ADD, &before, &item, &total));
    }
    *out = total;
    return WICK_OK;
}

static wick_status extreme(wk_jinja *j, const wk_jargs *args, bool is_max, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue best = {.kind = WK_J_ABSENT}, key;
    WK_TRY(wk_jself_items(j, args, &items));
    if (items.n == 0) return wk_jundefined(j, NULL, wk_jtext_of("item of an empty sequence"), out);
    for (size_t i = 0; i < items.n; i++) {
        int order = -1;
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[1], NULL, &key));
        WK_TRY(wk_jfolded(j, &key, wk_jarg_truth(args, 0, false)));
        if (i > 0)
            WK_TRY(is_max ? wk_jcompare(j, &best, &key, ">", &order)
                          : wk_jcompare(j, &key, &best, "<", &order));
        if (order != -1) continue;
        best = key;
        *out = items.items[i];
    }
    return WICK_OK;
}
static wick_status f_min(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return extreme(j, args, false, out);
}
static wick_status f_max(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return extreme(j, args, true, out);
}

static const wk_jbuiltin filters[] = {
    {"int", f_int, "default base", 0, WK_J_COUNTS},
    {"float", f_float, "default", 0, WK_J_COUNTS},
    {"abs", f_abs, "", 0, WK_J_READS_ALL},
    {"round", f_round, "precision method", 0, WK_J_READS_ALL},
    {"sum", f_sum, "attribute start", 0, WK_J_READS_ALL},
    {"min", f_min, "case_sensitive attribute", 0, WK_J_READS_ALL},
    {"max", f_max, "case_sensitive attribute", 0, WK_J_READS_ALL},
};
const wk_jtable wk_jnumber_filters = {filters, WK_COUNT(filters)};
