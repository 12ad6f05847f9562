/* grammar/json_schema_types.c: strings, numbers, arrays and constants. */
#include "grammar/json_schema_state.h"

#include "core/compiler.h"
#include "grammar/json_number.h"
#include "grammar/json_pattern.h"

#include <inttypes.h>
#include <stdio.h>

wk_expr *wk_schema_sequence(wk_schema *s, wk_expr *const *parts, size_t n) {
    wk_expr *const sequence = wk_expr_list(s->rules, WK_EXPR_SEQUENCE);
    for (size_t i = 0; i < n; i++) wk_expr_add(sequence, parts[i]);
    return sequence;
}

wk_expr *wk_schema_quoted(wk_schema *s, wk_expr *content) {
    wk_expr *const parts[] = {wk_expr_word(s->rules, "\""), content, wk_expr_word(s->rules, "\"")};
    return wk_schema_sequence(s, parts, WK_COUNT(parts));
}

/* --- Strings --- */

/* Only days that every year has. Addresses: the forms in use, not all that the standards know. */
#define DATE                                                                                       \
    "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"       \
    "02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"
#define HOST LABEL "(\\." LABEL "){0,4}"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"email", "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,3}@" HOST "\\.[a-z]{2,10}$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" BYTE "(\\." BYTE "){3}$"},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$"},
    {"uri", "^[a-z][a-z0-9+-]{0,9}://" HOST "(/[A-Za-z0-9._~-]{0,40}){0,10}$"},
};

/* NULL: none that is known; others are annotations. */
static const char *pattern_of_format(wk_str format) {
    for (size_t i = 0; i < WK_COUNT(formats); i++)
        if (wk_str_is(format, formats[i].name)) return formats[i].pattern;
    return NULL;
}

/* What the schemas of Zod have beside the format: it looks ahead, and allows all that the format
 * here allows. */
static const char zod_email[] = "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@"
                                "([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$";

/* A pattern goes before a format; a format that cannot be held to a length, after it. */
wick_status wk_schema_string(wk_schema *s, const wk_json *schema, wk_expr **out) {
    const wk_json *const pattern = wk_json_get(schema, "pattern"), *const format = wk_json_get(
                                                                       schema, "format");
    uint32_t least = 0, most = WK_REPEAT_FOREVER;
    const char *known = NULL;
    wk_expr *content = NULL;
    if (pattern && pattern->kind != WK_JSON_STRING)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "pattern", "must be a text");
    if (format && format->kind != WK_JSON_STRING)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "format", "must be a text");
    WK_TRY(wk_schema_count(s, schema, "minLength", &least));
    WK_TRY(wk_schema_count(s, schema, "maxLength", &most));
    if (least > most)
        return wk_schema_fail(s, WICK_ERR_VALUE, "maxLength", "is less than 'minLength'");
    const bool is_narrower = format && pattern && wk_str_is(format->string, "email") &&
                             wk_str_is(pattern->string, zod_email);
    if (is_narrower || (format && !pattern)) known = pattern_of_format(format->string);
    if (pattern || known) {
        WK_TRY(wk_json_pattern(s->rules, known ? wk_str_of(known) : pattern->string, &content,
                               s->err));
        if (content && !wk_json_limit(content, least, most)) content = NULL;
        if (!content && pattern && !s->rules->failed)
            return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "pattern",
                                  "cannot be held to 'minLength' and 'maxLength'");
    }
    if (!content) content = wk_expr_repeat(s->rules, wk_json_character(s->rules), least, most);
    *out = wk_schema_quoted(s, content);
    return WICK_OK;
}

/* --- Numbers --- */

/* A bound and the exclusive form of it, which in the oldest drafts only says that it is. */
static wick_status read_bound(const wk_schema *s, const wk_json *schema, const char *const names[2],
                              bool is_least, wk_number_bound *out) {
    *out = (wk_number_bound){.is_set = false};
    for (int i = 0; i < 2; i++) {
        const wk_json *const value = wk_json_get(schema, names[i]);
        if (!value) continue;
        if (i == 1 && value->kind == WK_JSON_BOOL) {
            out->is_exclusive = out->is_set && value->boolean;
            continue;
        }
        if (value->kind != WK_JSON_NUMBER)
            return wk_schema_fail(s, WICK_ERR_FORMAT, names[i], "must be a number");
        const double number = value->number;
        const bool is_stricter = !out->is_set ||
                                 (is_least ? number > out->value : number < out->value) ||
                                 (i == 1 && number == out->value);
        if (is_stricter)
            *out = (wk_number_bound){.is_set = true, .is_exclusive = i == 1, .value = number};
    }
    return WICK_OK;
}

wick_status wk_schema_number(wk_schema *s, const wk_json *schema, bool is_integer, wk_expr **out) {
    static const char *const least_names[2] = {"minimum", "exclusiveMinimum"};
    static const char *const most_names[2] = {"maximum", "exclusiveMaximum"};
    const wk_json *const multiple = wk_json_get(schema, "multipleOf");
    wk_number_bound least, most;
    WK_TRY(read_bound(s, schema, least_names, true, &least));
    WK_TRY(read_bound(s, schema, most_names, false, &most));
    if (multiple && (multiple->kind != WK_JSON_NUMBER || !(multiple->number > 0)))
        return wk_schema_fail(s, WICK_ERR_FORMAT, "multipleOf", "must be a number above 0");
    const double step = multiple ? multiple->number : 0;
    return is_integer ? wk_json_integer(s->rules, least, most, step, out, s->err)
                      : wk_json_number(s->rules, least, most, step, out, s->err);
}

/* --- Arrays --- */

/* ", item" */
static wk_expr *after_comma(wk_schema *s, wk_expr *item) {
    wk_expr *const parts[] = {wk_expr_word(s->rules, ","), wk_schema_shared(s, WK_SCHEMA_SPACE),
                              item};
    return wk_schema_sequence(s, parts, WK_COUNT(parts));
}

/* An item and the space after it. */
static wick_status compile_item(wk_schema *s, const wk_json *schema, wk_expr **out) {
    wk_expr *value;
    WK_TRY(wk_schema_compile(s, schema, &value));
    wk_expr *const parts[] = {value, wk_schema_shared(s, WK_SCHEMA_SPACE)};
    *out = wk_schema_sequence(s, parts, WK_COUNT(parts));
    return WICK_OK;
}

typedef struct array_parts {
    const wk_json *items;  /* the schema of those after the prefix; NULL: any value */
    const wk_json *prefix; /* the first of prefixItems */
    uint32_t n_prefix, least, most;
    bool has_more; /* items may follow the prefix */
} array_parts;

static wick_status read_array(const wk_schema *s, const wk_json *schema, array_parts *a) {
    const wk_json *prefix = wk_json_get(schema, "prefixItems");
    a->items = wk_json_get(schema, "items");
    if (!prefix && a->items && a->items->kind == WK_JSON_ARRAY) { /* up to draft 2019-09 */
        prefix = a->items;
        a->items = wk_json_get(schema, "additionalItems");
    }
    if (prefix && (prefix->kind != WK_JSON_ARRAY || prefix->count > 256))
        return wk_schema_fail(s, WICK_ERR_FORMAT, "prefixItems", "must be a list of 256 at most");
    a->prefix = prefix ? prefix->child : NULL;
    a->n_prefix = prefix ? (uint32_t)prefix->count : 0;
    a->least = 0;
    a->most = WK_REPEAT_FOREVER;
    WK_TRY(wk_schema_count(s, schema, "minItems", &a->least));
    WK_TRY(wk_schema_count(s, schema, "maxItems", &a->most));
    /* More than what is described comes only where it is asked for. */
    a->has_more = a->most > a->n_prefix && !wk_schema_is_false(a->items) &&
                  (!prefix || a->items || a->least > a->n_prefix);
    if (!a->has_more && a->most > a->n_prefix) a->most = a->n_prefix;
    if (a->least > a->most)
        return wk_schema_fail(s, WICK_ERR_VALUE, "minItems", "is more than there can be");
    return WICK_OK;
}

/* What follows number items of an array: the rest, with commas where something is before it. */
static wick_status compile_rest(wk_schema *s, const array_parts *a, uint32_t number,
                                wk_expr **out) {
    const uint32_t least = a->least > number ? a->least - number : 0;
    const uint32_t most = a->most == WK_REPEAT_FOREVER ? a->most : a->most - number;
    wk_expr *item, *more;
    *out = wk_expr_list(s->rules, WK_EXPR_SEQUENCE);
    if (!a->has_more || most == 0) return WICK_OK;
    WK_TRY(compile_item(s, a->items, &item));
    if (number > 0) {
        *out = wk_expr_repeat(s->rules, after_comma(s, item), least, most);
        return WICK_OK;
    }
    WK_TRY(compile_item(s, a->items, &more));
    wk_expr *const parts[] = {item, wk_expr_repeat(s->rules, after_comma(s, more),
                                                   least > 0 ? least - 1 : 0,
                                                   most == WK_REPEAT_FOREVER ? most : most - 1)};
    *out = wk_expr_repeat(s->rules, wk_schema_sequence(s, parts, WK_COUNT(parts)), least > 0, 1);
    return WICK_OK;
}

/* From number items on, the first of which is schema: each opens the way for the next one. */
static wick_status compile_prefix(wk_schema *s, const array_parts *a, const wk_json *schema,
                                  uint32_t number, wk_expr **out) {
    wk_expr *item, *rest;
    if (!schema || number >= a->most) return compile_rest(s, a, number, out);
    WK_TRY(compile_item(s, schema, &item));
    WK_TRY(compile_prefix(s, a, schema->next, number + 1, &rest));
    wk_expr *const parts[] = {number > 0 ? after_comma(s, item) : item, rest};
    *out = wk_expr_repeat(s->rules, wk_schema_sequence(s, parts, WK_COUNT(parts)),
                          number < a->least, 1);
    return WICK_OK;
}

wick_status wk_schema_array(wk_schema *s, const wk_json *schema, wk_expr **out) {
    array_parts a;
    wk_expr *items;
    WK_TRY(read_array(s, schema, &a));
    WK_TRY(compile_prefix(s, &a, a.prefix, 0, &items));
    wk_expr *const parts[] = {wk_expr_word(s->rules, "["), wk_schema_shared(s, WK_SCHEMA_SPACE),
                              items, wk_expr_word(s->rules, "]")};
    *out = wk_schema_sequence(s, parts, WK_COUNT(parts));
    return WICK_OK;
}

/* --- Constants --- */

static wk_expr *number_literal(wk_schema *s, const wk_json *value) {
    char text[24];
    if (!value->is_integer) return wk_expr_word(s->rules, value->string.text);
    snprintf(text, sizeof text, "%" PRId64, value->integer);
    return wk_expr_word(s->rules, text);
}

/* A sign and the space after it. */
static void add_sign(wk_schema *s, wk_expr *list, const char *sign) {
    wk_expr_add(list, wk_expr_word(s->rules, sign));
    wk_expr_add(list, wk_schema_shared(s, WK_SCHEMA_SPACE));
}

static wk_expr *list_literal(wk_schema *s, const wk_json *value) {
    const bool is_object = value->kind == WK_JSON_OBJECT;
    wk_expr *const list = wk_expr_list(s->rules, WK_EXPR_SEQUENCE);
    add_sign(s, list, is_object ? "{" : "[");
    for (const wk_json *item = value->child; item; item = item->next) {
        if (item != value->child) add_sign(s, list, ",");
        if (is_object) {
            wk_expr_add(list, wk_schema_quoted(s, wk_json_literal(s->rules, item->key)));
            add_sign(s, list, ":");
        }
        wk_expr_add(list, wk_schema_literal(s, item));
        wk_expr_add(list, wk_schema_shared(s, WK_SCHEMA_SPACE));
    }
    wk_expr_add(list, wk_expr_word(s->rules, is_object ? "}" : "]"));
    return list;
}

wk_expr *wk_schema_literal(wk_schema *s, const wk_json *value) {
    switch (value->kind) {
    case WK_JSON_NULL: return wk_expr_word(s->rules, "null");
    case WK_JSON_BOOL: return wk_expr_word(s->rules, value->boolean ? "true" : "false");
    case WK_JSON_NUMBER: return number_literal(s, value);
    case WK_JSON_STRING: return wk_schema_quoted(s, wk_json_literal(s->rules, value->string));
    case WK_JSON_ARRAY:
    case WK_JSON_OBJECT: break;
    }
    return list_literal(s, value);
}
