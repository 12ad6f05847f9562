/* core/json.c: a recursive-descent reader for JSON (RFC 8259), and strings written as JSON. */
#include "core/json.h"

#include "core/cursor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 128 };

typedef struct reader {
    wk_arena *arena;
    wk_cursor in;
    int depth;
    wick_error *err;
} reader;

static wick_status fail_at(const reader *r, size_t at, const char *what) {
    return wk_fail(r->err, WICK_ERR_FORMAT, "JSON, byte %zu: %s", at, what);
}

static wick_status fail_memory(const reader *r, size_t size) {
    return wk_fail_memory(r->err, size, "JSON");
}

static void skip_space(reader *r) {
    while (r->in.at < r->in.text.size && memchr(" \t\n\r", r->in.text.text[r->in.at], 4))
        r->in.at++;
}

/* After "\u": one code unit, or two that are a pair. JavaScript cuts texts within pairs, and writes
 * the halves like this. */
static wick_status read_unicode(reader *r, size_t start, char **out) {
    uint32_t code, second;
    if (!wk_accept_hex(&r->in, 4, &code))
        return fail_at(r, start, "\\u needs four hexadecimal digits");
    const size_t at = r->in.at;
    if (code >= 0xD800 && code <= 0xDBFF && wk_accept(&r->in, "\\u") &&
        wk_accept_hex(&r->in, 4, &second) && second >= 0xDC00 && second <= 0xDFFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    } else {
        r->in.at = at;
        if (code >= 0xD800 && code <= 0xDFFF) code = 0xFFFD;
    }
    *out += wk_utf8_encode(code, *out);
    return WICK_OK;
}

static const char escape_letters[] = "\"\\/bfnrt";
static const char escape_values[] = "\"\\/\b\f\n\r\t";

static wick_status read_escape(reader *r, char **out) {
    const size_t start = r->in.at++;
    const int letter = wk_peek(&r->in);
    if (letter < 0) return fail_at(r, start, "the string does not end");
    r->in.at++;
    if (letter == 'u') return read_unicode(r, start, out);
    const char *const found = letter ? strchr(escape_letters, letter) : NULL;
    if (!found) return fail_at(r, start, "unknown escape");
    *(*out)++ = escape_values[found - escape_letters];
    return WICK_OK;
}

/* Bytes from the current position to the closing quote; false where there is none. */
static bool find_quote(const reader *r, size_t *length) {
    for (size_t i = r->in.at; i < r->in.text.size; i++) {
        if (r->in.text.text[i] == '"') {
            *length = i - r->in.at;
            return true;
        }
        if (r->in.text.text[i] == '\\') i++;
    }
    return false;
}

/* The current byte is the opening quote. */
static wick_status read_string(reader *r, wk_str *string) {
    const size_t start = r->in.at++;
    size_t length;
    if (!find_quote(r, &length)) return fail_at(r, start, "the string does not end");
    /* No escape is shorter than what it stands for. */
    char *const decoded = wk_arena_alloc(r->arena, length + 1);
    if (!decoded) return fail_memory(r, length + 1);
    char *out = decoded;
    const size_t end = r->in.at + length;
    while (r->in.at < end) {
        if (r->in.text.text[r->in.at] == '\\') {
            WK_TRY(read_escape(r, &out));
            continue;
        }
        if ((unsigned char)r->in.text.text[r->in.at] < 0x20)
            return fail_at(r, r->in.at, "control character");
        size_t bad;
        const size_t n = wk_utf8_size(r->in.text.text + r->in.at, end - r->in.at, &bad);
        if (n == 0) return fail_at(r, r->in.at, "invalid UTF-8");
        memcpy(out, r->in.text.text + r->in.at, n);
        out += n;
        r->in.at += n;
    }
    r->in.at++;
    *out = '\0';
    *string = (wk_str){decoded, (size_t)(out - decoded)};
    return WICK_OK;
}

/* A decimal number taken apart: digits * 10^exponent, without leading zeros. A double is decided by
 * at most 767 digits and by whether anything but zeros follows them. */
enum { MAX_DIGITS = 800, MAX_EXPONENT = 1000000 };
typedef struct decimal {
    char digits[MAX_DIGITS + 32]; /* room for "1e-1000000" after the digits */
    size_t n_digits;
    int64_t exponent;
    bool has_more; /* digits other than 0 were dropped */
} decimal;

static void add_digit(decimal *d, char digit, bool is_fraction) {
    if (is_fraction) d->exponent--;
    if (d->n_digits == 0 && digit == '0') return;
    if (d->n_digits < MAX_DIGITS) {
        d->digits[d->n_digits++] = digit;
    } else {
        d->exponent++;
        d->has_more |= digit != '0';
    }
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static void read_digits(reader *r, decimal *d, bool is_fraction) {
    for (; is_digit(wk_peek(&r->in)); r->in.at++)
        add_digit(d, r->in.text.text[r->in.at], is_fraction);
}

/* The digits after 'e'. Beyond 10^17 the number is zero or infinity, regardless of the others. */
static int64_t read_exponent(reader *r) {
    const bool is_negative = wk_peek(&r->in) == '-';
    if (is_negative || wk_peek(&r->in) == '+') r->in.at++;
    int64_t exponent = 0;
    for (; is_digit(wk_peek(&r->in)); r->in.at++) {
        if (exponent < 100000000000000000)
            exponent = exponent * 10 + (r->in.text.text[r->in.at] - '0');
    }
    return is_negative ? -exponent : exponent;
}

/* strtod rounds correctly, but takes its decimal point from the locale: it gets none to read. */
static double decimal_value(decimal *d) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->n_digits == 0) return 0.0;
    /* Up to 2^53 and 10^22 both factors are exact, so one operation rounds once. */
    if (d->n_digits <= 15 && d->exponent >= -22 && d->exponent <= 22) {
        int64_t whole = 0;
        for (size_t i = 0; i < d->n_digits; i++) whole = whole * 10 + (d->digits[i] - '0');
        return d->exponent < 0 ? (double)whole / powers[-d->exponent]
                               : (double)whole * powers[d->exponent];
    }
    int64_t exponent = d->exponent;
    char *out = d->digits + d->n_digits;
    if (d->has_more) {
        *out++ = '1';
        exponent--;
    }
    /* Zero or infinity beyond this. */
    if (exponent > MAX_EXPONENT) exponent = MAX_EXPONENT;
    if (exponent < -MAX_EXPONENT) exponent = -MAX_EXPONENT;
    snprintf(out, 16, "e%" PRId64, exponent);
    return strtod(d->digits, NULL);
}

/* Whether the number is an int64_t; d has no fraction. */
static bool decimal_integer(const decimal *d, bool is_negative, int64_t *integer) {
    if (d->n_digits > 19 || d->exponent != 0) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < d->n_digits; i++) value = value * 10 + (uint64_t)(d->digits[i] - '0');
    if (value > (uint64_t)INT64_MAX + (is_negative ? 1 : 0)) return false;
    *integer = is_negative && value > 0 ? -(int64_t)(value - 1) - 1 : (int64_t)value;
    return true;
}

static wick_status read_number(reader *r, wk_json *value) {
    const size_t start = r->in.at;
    const bool is_negative = wk_accept(&r->in, "-");
    value->kind = WK_JSON_NUMBER;
    if (wk_accept(&r->in, "Infinity")) {
        value->number = is_negative ? -(double)INFINITY : (double)INFINITY;
        return WICK_OK;
    }
    decimal d;
    d.n_digits = 0;
    d.exponent = 0;
    d.has_more = false;
    if (!is_digit(wk_peek(&r->in))) return fail_at(r, start, "a value is expected here");
    const bool leading_zero = wk_peek(&r->in) == '0';
    const size_t first_digit = r->in.at;
    read_digits(r, &d, false);
    if (leading_zero && r->in.at > first_digit + 1) return fail_at(r, start, "leading zero");
    value->is_integer = true;
    if (wk_accept(&r->in, ".")) {
        value->is_integer = false;
        if (!is_digit(wk_peek(&r->in))) return fail_at(r, r->in.at, "a digit is expected here");
        read_digits(r, &d, true);
    }
    if (wk_peek(&r->in) == 'e' || wk_peek(&r->in) == 'E') {
        value->is_integer = false;
        r->in.at++;
        d.exponent += read_exponent(r);
        if (!is_digit(r->in.text.text[r->in.at - 1]))
            return fail_at(r, r->in.at, "a digit is expected here");
    }
    if (value->is_integer) value->is_integer = decimal_integer(&d, is_negative, &value->integer);
    value->number = is_negative ? -decimal_value(&d) : decimal_value(&d);
    if (value->is_integer) return WICK_OK;
    /* So that a number beyond int64_t can be written as it was. */
    const wk_str bytes = {r->in.text.text + start, r->in.at - start};
    return wk_json_copy_text(r->arena, bytes, &value->string) ? WICK_OK
                                                              : fail_memory(r, bytes.size);
}

static wick_status read_value(reader *r, wk_json **out);

/* One member of an object: its key, the colon, its value. */
static wick_status read_member(reader *r, wk_json **out) {
    wk_str key;
    if (wk_peek(&r->in) != '"') return fail_at(r, r->in.at, "a key in quotes is expected here");
    WK_TRY(read_string(r, &key));
    skip_space(r);
    if (!wk_accept(&r->in, ":")) return fail_at(r, r->in.at, "':' is expected here");
    WK_TRY(read_value(r, out));
    (*out)->key = key;
    return WICK_OK;
}

/* The current byte is '[' or '{'. */
static wick_status read_list(reader *r, wk_json *value) {
    if (r->depth == MAX_DEPTH) return fail_at(r, r->in.at, "nested deeper than 128");
    const bool is_object = r->in.text.text[r->in.at++] == '{';
    const char *const close = is_object ? "}" : "]";
    value->kind = is_object ? WK_JSON_OBJECT : WK_JSON_ARRAY;
    skip_space(r);
    if (wk_accept(&r->in, close)) return WICK_OK;
    r->depth++;
    for (;;) {
        wk_json *item;
        skip_space(r);
        WK_TRY(is_object ? read_member(r, &item) : read_value(r, &item));
        wk_json_append(value, item);
        skip_space(r);
        if (wk_accept(&r->in, close)) break;
        if (!wk_accept(&r->in, ",")) {
            return fail_at(r, r->in.at,
                           is_object ? "',' or '}' is expected here"
                                     : "',' or ']' is expected here");
        }
    }
    r->depth--;
    return WICK_OK;
}

static bool read_word(reader *r, wk_json *value) {
    if (wk_accept(&r->in, "null")) return true; /* kind 0 */
    if (wk_accept(&r->in, "NaN")) {
        value->kind = WK_JSON_NUMBER;
        value->number = (double)NAN;
        return true;
    }
    value->kind = WK_JSON_BOOL;
    value->boolean = wk_accept(&r->in, "true");
    return value->boolean || wk_accept(&r->in, "false");
}

static wick_status read_value(reader *r, wk_json **out) {
    skip_space(r);
    wk_json *const value = wk_arena_array(r->arena, 1, sizeof *value);
    if (!value) return fail_memory(r, sizeof *value);
    *out = value;
    switch (wk_peek(&r->in)) {
    case '[':
    case '{': return read_list(r, value);
    case '"': value->kind = WK_JSON_STRING; return read_string(r, &value->string);
    default: return read_word(r, value) ? WICK_OK : read_number(r, value);
    }
}

wick_status wk_json_parse(wk_arena *arena, const char *text, size_t size, wk_json **out,
                          wick_error *err) {
    *out = NULL;
    static const char mark[] = "\xEF\xBB\xBF"; /* of the byte order, which some programs write */
    const bool has_mark = size >= 3 && memcmp(text, mark, 3) == 0;
    reader r = {.arena = arena, .in = {.text = {text, size}, .at = has_mark ? 3 : 0}, .err = err};
    wk_json *value;
    WK_TRY(read_value(&r, &value));
    skip_space(&r);
    if (r.in.at != size) return fail_at(&r, r.in.at, "text after the end of the value");
    *out = value;
    return WICK_OK;
}

void wk_json_append(wk_json *list, wk_json *item) {
    *(list->last ? &list->last->next : &list->child) = item;
    list->last = item;
    item->next = NULL;
    list->count++;
}

void wk_json_drop(wk_json *list, const wk_json *item) {
    wk_json *before = NULL;
    for (wk_json *at = list->child; at != item; at = at->next) before = at;
    *(before ? &before->next : &list->child) = item->next;
    if (list->last == item) list->last = before;
    list->count--;
}

bool wk_json_copy_text(wk_arena *arena, wk_str text, wk_str *out) {
    char *const copy = wk_arena_alloc(arena, text.size + 1);
    if (!copy) return false;
    if (text.size > 0) memcpy(copy, text.text, text.size);
    copy[text.size] = '\0';
    *out = (wk_str){copy, text.size};
    return true;
}

bool wk_json_copy(wk_arena *arena, const wk_json *from, wk_json *to) {
    *to = *from;
    to->child = to->last = to->next = NULL;
    to->count = 0;
    if (from->key.text && !wk_json_copy_text(arena, from->key, &to->key)) return false;
    if (from->string.text && !wk_json_copy_text(arena, from->string, &to->string)) return false;
    for (const wk_json *item = from->child; item; item = item->next) {
        wk_json *const copy = wk_arena_alloc(arena, sizeof *copy);
        if (!copy || !wk_json_copy(arena, item, copy)) return false;
        wk_json_append(to, copy);
    }
    return true;
}

const wk_json *wk_json_get(const wk_json *object, const char *key) {
    if (!object || object->kind != WK_JSON_OBJECT) return NULL;
    const wk_json *found = NULL;
    for (const wk_json *item = object->child; item; item = item->next) {
        if (wk_str_is(item->key, key)) found = item;
    }
    return found;
}

wk_json *wk_json_find(wk_json *object, const char *key) {
    return (wk_json *)wk_json_get(object, key);
}

bool wk_json_is(const wk_json *value, const char *text) {
    return value && value->kind == WK_JSON_STRING && wk_str_is(value->string, text);
}
