/* text/jinja/text.c: building texts, and values as Python's str() and repr() write them. */
#include "text/jinja/chars.h"
#include "text/jinja/state.h"
#include "text/unicode/unicode.h"
#include "text/unicode/unicode_case.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Building ---- */

enum { PUT = 8 }; /* bytes that a wk_jput counts as, beside its text's */

wk_jbuilder wk_jbuilder_begin(wk_jinja *j) { return (wk_jbuilder){.j = j}; }

static bool reserve(wk_jbuilder *to, size_t extra) {
    assert(to->size <= to->capacity);
    if (to->status != WICK_OK) return false;
    if (to->capacity - to->size >= extra) return true;
    size_t capacity = 2 * to->capacity < 64 ? 64 : 2 * to->capacity;
    if (capacity - to->size < extra) /* SIZE_MAX is refused below */
        capacity = extra > SIZE_MAX - to->size ? SIZE_MAX : to->size + extra;
    char *const text = wk_jalloc(to->j, capacity, 1);
    uint8_t *origin = NULL;
    if (text != NULL && to->origin != NULL) origin = wk_jalloc(to->j, capacity, 1);
    if (text == NULL || (to->origin != NULL && origin == NULL)) {
        to->status = WICK_ERR_VALUE;
        return false;
    }
    if (to->size > 0) memcpy(text, to->text, to->size);
    if (origin != NULL && to->size > 0) memcpy(origin, to->origin, to->size);
    to->text = text;
    to->origin = origin;
    to->capacity = capacity;
    return true;
}

/* Begins to keep origins: all so far is the template's. */
static bool keep_origin(wk_jbuilder *to) {
    if (to->origin != NULL) return true;
    to->origin = wk_jalloc(to->j, to->capacity, 1);
    if (to->origin == NULL)
        to->status = WICK_ERR_VALUE;
    else
        memset(to->origin, 0, to->size);
    return to->origin != NULL;
}

void wk_jput(wk_jbuilder *to, wk_jtext text) {
    if (text.size == 0 || !reserve(to, text.size)) return;
    if (text.origin != NULL && !keep_origin(to)) return;
    memcpy(to->text + to->size, text.text, text.size);
    if (text.origin != NULL)
        memcpy(to->origin + to->size, text.origin, text.size);
    else if (to->origin != NULL)
        memset(to->origin + to->size, 0, text.size);
    to->size += text.size;
    to->status = wk_jread(to->j, text.size + PUT);
}

void wk_jput_word(wk_jbuilder *to, const char *terminated) { wk_jput(to, wk_jtext_of(terminated)); }

void wk_jput_repeated(wk_jbuilder *to, wk_jtext text, size_t n) {
    if (text.size == 0 || n == 0) return;
    if (!reserve(to, n > SIZE_MAX / text.size ? SIZE_MAX : n * text.size)) return;
    const size_t start = to->size, end = start + n * text.size;
    wk_jput(to, text);
    while (to->size < end && to->status == WICK_OK) { /* what is there, once more */
        const size_t made = to->size - start, left = end - to->size;
        const size_t size = made < left ? made : left;
        wk_jput(to, (wk_jtext){to->text + start, size, to->origin ? to->origin + start : NULL});
    }
}

void wk_jput_char(wk_jbuilder *to, uint32_t code, bool is_data) {
    static const uint8_t data[4] = {1, 1, 1, 1};
    char bytes[4];
    const size_t size = wk_utf8_encode(code, bytes);
    wk_jput(to, (wk_jtext){bytes, size, is_data ? data : NULL});
}

wk_jtext wk_jbuilder_text(const wk_jbuilder *builder) {
    return builder->size > 0 ? (wk_jtext){builder->text, builder->size, builder->origin}
                             : wk_jtext_of("");
}

wick_status wk_jbuilder_end(wk_jbuilder *builder, wk_jvalue *out) {
    *out = wk_jstring(wk_jbuilder_text(builder));
    return builder->status;
}

wk_jbuilder wk_jbuilder_resume(wk_jinja *j, wk_jtext text) {
    wk_jbuilder builder = wk_jbuilder_begin(j);
    for (size_t i = 0; i < WK_J_TAILS; i++) {
        wk_jtail *const tail = &j->tails[i];
        const bool is_it = tail->text.text == text.text && tail->text.size == text.size &&
                           tail->text.origin == text.origin;
        if (!is_it || tail->capacity == 0) continue;
        builder.text = (char *)tail->text.text;
        builder.origin = (uint8_t *)tail->text.origin;
        builder.size = tail->text.size;
        builder.capacity = tail->capacity;
        tail->capacity = 0; /* no other text goes on there */
        return builder;
    }
    wk_jput(&builder, text);
    return builder;
}

wick_status wk_jbuilder_end_resumed(wk_jbuilder *builder, wk_jvalue *out) {
    enum { WORTH = 256 }; /* bytes; less is copied as fast */
    wk_jinja *const j = builder->j;
    WK_TRY(wk_jbuilder_end(builder, out));
    if (builder->size < WORTH) return WICK_OK;
    j->tails[j->next_tail] = (wk_jtail){out->string, builder->capacity};
    j->next_tail = (j->next_tail + 1) % WK_J_TAILS;
    return WICK_OK;
}

/* ---- Numbers ---- */

/* Digits and the power of ten of the first one, from "-d.ddde+xx" with any locale's point. */
static size_t take_apart(const char *text, char *digits, int *exponent) {
    size_t n = 0;
    for (; *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9') digits[n++] = *text;
    }
    *exponent = atoi(text + 1);
    return n;
}

/* Fewest digits that read back as number; which is finite. */
static size_t shortest_digits(double number, char *digits, int *exponent) {
    char text[40];
    for (int precision = 0;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(number));
        if (precision == 16 || strtod(text, NULL) == fabs(number)) break;
    }
    return take_apart(text, digits, exponent);
}

void wk_jfloat_text(double number, char *out) {
    if (isnan(number) || isinf(number)) {
        snprintf(out, 32, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    char digits[32];
    int exponent;
    const int n = (int)shortest_digits(number, digits, &exponent);
    const char *const sign = signbit(number) ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        snprintf(out, 32, "%s%c%s%.*se%c%02d", sign, digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        snprintf(out, 32, "%s0.%.*s%.*s", sign, -exponent - 1, "0000", n, digits);
    } else if (n <= exponent + 1) {
        snprintf(out, 32, "%s%.*s%.*s.0", sign, n, digits, exponent + 1 - n, "0000000000000000");
    } else {
        snprintf(out, 32, "%s%.*s.%.*s", sign, exponent + 1, digits, n - exponent - 1,
                 digits + exponent + 1);
    }
}

/* ---- repr ---- */

static void put_data(wk_jbuilder *to, const char *text, bool is_data) {
    for (; *text != '\0'; text++) wk_jput_char(to, (unsigned char)*text, is_data);
}

static void put_code(wk_jbuilder *to, uint32_t code, bool is_data) {
    char text[16];
    snprintf(text, sizeof text,
             code < 0x100     ? "\\x%02x"
             : code < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
             (unsigned)code);
    put_data(to, text, is_data);
}

static void put_escaped_char(wk_jbuilder *to, uint32_t code, char quote, bool is_data) {
    if (code == (uint32_t)quote || code == '\\')
        put_data(to, (char[3]){'\\', (char)code, '\0'}, is_data);
    else if (code == '\n' || code == '\r' || code == '\t')
        put_data(to, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t", is_data);
    else if (wk_unicode_is(code, WK_UNICODE_PRINTABLE))
        wk_jput_char(to, code, is_data);
    else
        put_code(to, code, is_data);
}

static bool has_char(wk_jtext text, char c) {
    return text.size > 0 && memchr(text.text, c, text.size) != NULL;
}

static void put_text_repr(wk_jbuilder *to, wk_jtext text) {
    wk_jcount(to->j, 2 * WK_J_CHAR * text.size);
    const bool is_double = has_char(text, '\'') && !has_char(text, '"');
    const char quote = is_double ? '"' : '\'';
    wk_jput_char(to, (unsigned char)quote, false);
    for (size_t at = 0; at < text.size && to->status == WICK_OK;) {
        const bool is_data = text.origin != NULL && text.origin[at] != 0;
        put_escaped_char(to, wk_jnext_char(wk_jtext_str(text), &at), quote, is_data);
    }
    wk_jput_char(to, (unsigned char)quote, false);
}

static void put_items(wk_jbuilder *to, const wk_jvalue *value) {
    const wk_jlist *const list = value->list;
    const bool is_tuple = value->kind == WK_J_TUPLE;
    wk_jput_word(to, is_tuple ? "(" : "[");
    for (size_t i = 0; i < list->n && to->status == WICK_OK; i++) {
        if (i > 0) wk_jput_word(to, ", ");
        wk_jput_repr(to, &list->items[i]);
    }
    wk_jput_word(to, !is_tuple ? "]" : list->n == 1 ? ",)" : ")");
}

static void put_entries(wk_jbuilder *to, const wk_jdict *dict) {
    wk_jput_word(to, "{");
    for (size_t i = 0; i < dict->n && to->status == WICK_OK; i++) {
        if (i > 0) wk_jput_word(to, ", ");
        wk_jput_repr(to, &dict->entries[i].key);
        wk_jput_word(to, ": ");
        wk_jput_repr(to, &dict->entries[i].value);
    }
    wk_jput_word(to, "}");
}

static void put_view(wk_jbuilder *to, const wk_jvalue *value) {
    wk_jvalue copy = *value, list;
    wk_jput_word(to, wk_jtype_name(value));
    wk_jput_word(to, "(");
    to->status = wk_jlist_make(to->j, WK_J_LIST, 0, &list);
    if (to->status == WICK_OK) to->status = wk_jitems(to->j, &copy, list.list);
    if (to->status == WICK_OK) put_items(to, &list);
    wk_jput_word(to, ")");
}

static void put_range(wk_jbuilder *to, const wk_jrange *range) {
    char text[96];
    const int n =
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, range->first, range->end);
    if (range->step != 1) snprintf(text + n, sizeof text - (size_t)n, ", %" PRId64, range->step);
    wk_jput_word(to, text);
    wk_jput_word(to, ")");
}

static void put_container(wk_jbuilder *to, const wk_jvalue *value) {
    if (to->status == WICK_OK) to->status = wk_jenter(to->j);
    if (to->status != WICK_OK) return;
    switch (value->kind) {
    case WK_J_LIST:
    case WK_J_TUPLE: put_items(to, value); break;
    case WK_J_DICT: put_entries(to, value->dict); break;
    case WK_J_NAMESPACE:
        wk_jput_word(to, "<Namespace ");
        put_entries(to, value->dict);
        wk_jput_word(to, ">");
        break;
    default: put_view(to, value); break;
    }
    to->j->depth--;
}

static void put_integer(wk_jbuilder *to, int64_t integer) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, integer);
    wk_jput_word(to, text);
}

void wk_jput_float(wk_jbuilder *to, double number) {
    char text[32];
    wk_jcount(to->j, WK_J_STEP * WK_J_FLOAT_STEPS);
    wk_jfloat_text(number, text);
    wk_jput_word(to, text);
}

static void put_named(wk_jbuilder *to, const char *what, wk_str name) {
    wk_jput_word(to, what);
    wk_jput(to, (wk_jtext){name.text, name.size, NULL});
    wk_jput_word(to, ">");
}

void wk_jput_repr(wk_jbuilder *to, const wk_jvalue *value) {
    switch (value->kind) {
    case WK_J_ABSENT:
    case WK_J_UNDEFINED: wk_jput_word(to, "Undefined"); break;
    case WK_J_NONE: wk_jput_word(to, "None"); break;
    case WK_J_BOOL: wk_jput_word(to, value->boolean ? "True" : "False"); break;
    case WK_J_INTEGER: put_integer(to, value->integer); break;
    case WK_J_FLOAT: wk_jput_float(to, value->number); break;
    case WK_J_STRING:
        if (value->is_markup) wk_jput_word(to, "Markup(");
        put_text_repr(to, value->string);
        if (value->is_markup) wk_jput_word(to, ")");
        break;
    case WK_J_RANGE: put_range(to, value->range); break;
    case WK_J_BUILTIN:
        put_named(to, value->method.self != NULL ? "<built-in method " : "<function ",
                  wk_str_of(value->method.builtin->name));
        break;
    case WK_J_GENERATOR: wk_jput_word(to, "<generator object>"); break;
    case WK_J_CYCLER: wk_jput_word(to, "<Cycler>"); break;
    case WK_J_JOINER: wk_jput_word(to, "<Joiner>"); break;
    case WK_J_MACRO: wk_jput_macro(to, value->macro); break;
    case WK_J_LOOP: wk_jput_loop(to, value->loop); break;
    default: put_container(to, value); break;
    }
}

void wk_jput_ascii(wk_jbuilder *to, const wk_jvalue *value) {
    wk_jbuilder shown = wk_jbuilder_begin(to->j);
    wk_jput_repr(&shown, value);
    if (to->status == WICK_OK) to->status = shown.status;
    const wk_jtext text = wk_jbuilder_text(&shown);
    for (size_t at = 0; at < text.size && to->status == WICK_OK;) {
        const bool is_data = text.origin != NULL && text.origin[at] != 0;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        if (code < 0x80)
            wk_jput_char(to, code, is_data);
        else
            put_code(to, code, is_data);
    }
}

void wk_jput_str(wk_jbuilder *to, const wk_jvalue *value) {
    if (value->kind == WK_J_STRING)
        wk_jput(to, value->string);
    else if (value->kind != WK_J_UNDEFINED)
        wk_jput_repr(to, value);
}

wick_status wk_jstr(wk_jinja *j, const wk_jvalue *value, wk_jtext *out) {
    if (value->kind == WK_J_STRING) {
        *out = value->string;
        return WICK_OK;
    }
    wk_jbuilder builder = wk_jbuilder_begin(j);
    wk_jput_str(&builder, value);
    *out = wk_jbuilder_text(&builder);
    return builder.status;
}
