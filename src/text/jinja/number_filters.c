/* text/jinja/number_filters.c: filters that make numbers. */
#include "text/jinja/list.h"
#include "text/jinja/strings.h"

#include <math.h>
#include <string.h>

/* ---- Reading ---- */

/* The text without white space around it and underscores between digits; false: it has some where
 * Python allows none, or is long. */
static bool clean_number(wk_jtext text, char *out, size_t capacity) {
    text = wk_jstrip(text, NULL, true, true);
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.text[i] == '_') {
            const bool is_between = i > 0 && i + 1 < text.size && text.text[i - 1] != '_';
            if (!is_between || text.text[i + 1] == '_') return false;
            continue;
        }
        if (n + 1 >= capacity || text.text[i] == '\0') return false;
        out[n++] = text.text[i];
    }
    out[n] = '\0';
    return n > 0;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int letter = c | 0x20;
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 10 : 99;
}

/* int(text, base); base 0: by the prefix. */
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
    int64_t value = 0;
    for (; *text != '\0'; text++) {
        const int digit = digit_value(*text);
        if (digit >= base || value > (INT64_MAX - digit) / base) return false;
        value = value * base + digit;
    }
    *out = is_negative ? -value : value;
    return true;
}

/* Skips digits. */
static const char *after_digits(const char *text) {
    while (*text >= '0' && *text <= '9') text++;
    return text;
}

/* float(text): rewritten as JSON wants it, which has the one reader of decimals. */
static bool read_float(wk_jinja *j, const char *text, double *out) {
    const bool is_negative = *text == '-';
    char json[800]; /* what callers give is shorter */
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

enum { NUMBER_SIZE = 128 };

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
    } else if (self->kind == WK_J_STRING && clean_number(self->string, text, sizeof text)) {
        is_read = read_integer(text, base, &value) ||
                  (read_float(j, text, &number) && float_to_integer(number, &value));
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
    if (is_read)
        number = wk_jas_float(self);
    else if (self->kind == WK_J_STRING && clean_number(self->string, text, sizeof text))
        is_read = read_float(j, text, &number);
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
    char text[700];
    wk_jfixed_text(number, (int)precision, text, sizeof text);
    double rounded = number;
    return read_float(j, text, &rounded) ? rounded : number;
}

static wick_status f_round(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const self = args->self;
    int64_t precision;
    wk_jtext method;
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
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[0], &item));
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
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[1], &key));
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
    {"int", f_int, "default base", 0},
    {"float", f_float, "default", 0},
    {"abs", f_abs, "", 0},
    {"round", f_round, "precision method", 0},
    {"sum", f_sum, "attribute start", 0},
    {"min", f_min, "case_sensitive attribute", 0},
    {"max", f_max, "case_sensitive attribute", 0},
};
const wk_jtable wk_jnumber_filters = {filters, WK_COUNT(filters)};
