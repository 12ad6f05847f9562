/* grammar/json_schema.c: schemas of any kind: references, combinations, constants, types. What is
 * generated may be less than what a schema accepts (docs/grammar.md), never more. */
#include "grammar/json_schema.h"

#include "core/compiler.h"
#include "grammar/json_number.h"
#include "grammar/json_pattern.h"
#include "grammar/json_schema_state.h"

#include <math.h>
#include <string.h>

/* How deep schemas nest, how many there are when those that hold at once are written out. */
enum { MAX_DEPTH = 200, MAX_COMPILED = 50000, MAX_KEYS = 10000, MAX_TAGGED = 1000 };

wick_status wk_schema_fail(const wk_schema *s, wick_status status, const char *keyword,
                           const char *what) {
    return wk_fail(s->err, status, "the JSON schema: '%s' %s", keyword, what);
}

wick_status wk_schema_count(const wk_schema *s, const wk_json *schema, const char *keyword,
                            uint32_t *count) {
    enum { MOST = 100000 };
    const wk_json *const value = wk_json_get(schema, keyword);
    if (!value) return WICK_OK;
    if (!value->is_integer || value->integer < 0)
        return wk_schema_fail(s, WICK_ERR_FORMAT, keyword, "must be a whole number, 0 or more");
    if (value->integer > MOST)
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, keyword,
                              "of more than 100000 is not "
                              "supported");
    *count = (uint32_t)value->integer;
    return WICK_OK;
}

/* --- Shared rules --- */

/* Nothing, a space, or a new line with some indentation. */
static wk_expr *space(wk_schema *s) {
    static const wk_code_range blanks[] = {{' ', ' '}, {'\t', '\t'}};
    wk_rules *const rules = s->rules;
    wk_expr *const indented[] = {
        wk_expr_word(rules, "\n"),
        wk_expr_repeat(rules, wk_expr_class(rules, blanks, WK_COUNT(blanks), false), 0, 20)};
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    wk_expr_add(choice, wk_expr_list(rules, WK_EXPR_SEQUENCE));
    wk_expr_add(choice, wk_expr_word(rules, " "));
    wk_expr_add(choice, wk_schema_sequence(s, indented, WK_COUNT(indented)));
    return choice;
}

static wick_status any_value(wk_schema *s, wk_expr **out) {
    static const wk_schema_rule rules[] = {WK_SCHEMA_OBJECT, WK_SCHEMA_ARRAY, WK_SCHEMA_STRING,
                                           WK_SCHEMA_NUMBER};
    wk_expr *const choice = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    for (size_t i = 0; i < WK_COUNT(rules); i++) wk_expr_add(choice, wk_schema_shared(s, rules[i]));
    wk_expr_add(choice, wk_expr_word(s->rules, "true"));
    wk_expr_add(choice, wk_expr_word(s->rules, "false"));
    wk_expr_add(choice, wk_expr_word(s->rules, "null"));
    *out = choice;
    return WICK_OK;
}

/* A schema of which the type is known. */
static wick_status compile_kind(wk_schema *s, const wk_json *schema, wk_schema_rule kind,
                                wk_expr **out) {
    switch (kind) {
    case WK_SCHEMA_STRING: return wk_schema_string(s, schema, out);
    case WK_SCHEMA_NUMBER:
    case WK_SCHEMA_INTEGER: return wk_schema_number(s, schema, kind == WK_SCHEMA_INTEGER, out);
    case WK_SCHEMA_ARRAY: return wk_schema_array(s, schema, out);
    case WK_SCHEMA_OBJECT: return wk_schema_object(s, schema, out);
    case WK_SCHEMA_VALUE: return any_value(s, out);
    case WK_SCHEMA_SPACE:
    case WK_SCHEMA_RULES: break;
    }
    *out = space(s);
    return WICK_OK;
}

/* A shared rule fails only when memory is short; rules->failed is then set. */
wk_expr *wk_schema_shared(wk_schema *s, wk_schema_rule rule) {
    static const wk_json empty = {.kind = WK_JSON_OBJECT};
    static const char *const names[] = {"space", "string", "number", "integer",
                                        "array", "object", "value"};
    if (s->shared[rule] == 0) {
        wk_expr *body = NULL;
        s->shared[rule] = wk_rules_add(s->rules, wk_str_of(names[rule]));
        if (s->rules->failed) return NULL;
        if (compile_kind(s, &empty, rule, &body) != WICK_OK) s->rules->failed = true;
        s->rules->items[s->shared[rule]].body = body;
    }
    return wk_expr_rule(s->rules, s->shared[rule]);
}

/* --- References --- */

/* The rule of a schema that is referred to: what is recursive calls it again. */
static wick_status compile_reference(wk_schema *s, const wk_json *reference, wk_expr **out) {
    const wk_json *target;
    uint32_t rule;
    if (reference->kind != WK_JSON_STRING)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "$ref", "must be a text");
    WK_TRY(wk_schema_find(s, reference->string, &target));
    const uint64_t key = (uint64_t)(uintptr_t)target;
    if (!wk_map64_get(&s->targets, key, &rule)) {
        wk_expr *body;
        rule = wk_rules_add(s->rules, reference->string);
        if (s->rules->failed || wk_map64_put(&s->targets, key, rule) != WICK_OK)
            return wk_fail_memory(s->err, 0, "a JSON schema");
        const wick_status status = wk_schema_compile(s, target, &body);
        if (status == WICK_ERR_VALUE) {
            body = wk_expr_list(s->rules, WK_EXPR_CHOICE);
            if (wk_map64_put(&s->targets, key, UINT32_MAX) != WICK_OK)
                return wk_fail_memory(s->err, 0, "a JSON schema");
        } else {
            WK_TRY(status);
        }
        s->rules->items[rule].body = body;
        WK_TRY(status);
    }
    if (rule == UINT32_MAX) return wk_schema_fail(s, WICK_ERR_VALUE, "$ref", "accepts nothing");
    *out = wk_expr_rule(s->rules, rule);
    return WICK_OK;
}

/* --- Combinations --- */

/* Alternatives that accept nothing are left out, unless it is all of them: last says why then. */
static wick_status any_left(const wk_schema *s, const wk_expr *choice, wick_status status,
                            const wick_error *last) {
    return s->rules->failed || choice->first ? WICK_OK : wk_pass_on(s->err, status, last);
}

/* A schema with a list of others, and with keywords of its own that hold for all of them. */
static wick_status compile_choice(wk_schema *s, const wk_json *schema, const char *keyword,
                                  wk_expr **out) {
    const wk_json *const list = wk_json_get(schema, keyword);
    wick_status status = WICK_OK;
    wk_json *rest;
    unsigned groups;
    if (list->kind != WK_JSON_ARRAY || !list->child)
        return wk_schema_fail(s, WICK_ERR_FORMAT, keyword, "must be a list of schemas");
    if (strcmp(keyword, "oneOf") == 0) {
        for (const wk_json *a = list->child; a; a = a->next)
            for (const wk_json *b = a->next; b; b = b->next)
                if (!wk_schema_are_disjoint(s, a, b))
                    return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, keyword,
                                          "of schemas that may accept the same value is not "
                                          "supported; use 'anyOf'");
    }
    WK_TRY(wk_schema_without(s, schema, keyword, &rest));
    WK_TRY(wk_schema_check_keywords(s, rest, &groups));
    *out = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    const bool is_alone = !(groups & ~(unsigned)WK_SCHEMA_NOTES);
    wick_error *const err = s->err;
    wick_error last = {0};
    for (const wk_json *item = list->child; item; item = item->next) {
        wk_json *both;
        wk_expr *one;
        last = (wick_error){0};
        s->err = &last;
        status = is_alone ? WICK_OK : wk_schema_merge(s, rest, item, &both);
        if (status == WICK_OK) status = wk_schema_compile(s, is_alone ? item : both, &one);
        s->err = err;
        if (status == WICK_OK) wk_expr_add(*out, one);
        if (status != WICK_OK && status != WICK_ERR_VALUE) return wk_pass_on(err, status, &last);
    }
    return any_left(s, *out, status, &last);
}

static wick_status compile_all(wk_schema *s, const wk_json *schema, wk_expr **out) {
    const wk_json *const list = wk_json_get(schema, "allOf");
    wk_json *merged;
    if (list->kind != WK_JSON_ARRAY)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "allOf", "must be a list of schemas");
    WK_TRY(wk_schema_without(s, schema, "allOf", &merged));
    for (const wk_json *item = list->child; item; item = item->next)
        WK_TRY(wk_schema_merge(s, merged, item, &merged));
    return wk_schema_compile(s, merged, out);
}

/* A reference with other keywords beside it. */
static wick_status compile_extended(wk_schema *s, const wk_json *schema, wk_expr **out) {
    const wk_json *const reference = wk_json_get(schema, "$ref"), *target;
    wk_json *rest, *merged;
    unsigned groups;
    WK_TRY(wk_schema_without(s, schema, "$ref", &rest));
    WK_TRY(wk_schema_check_keywords(s, rest, &groups));
    if (!(groups & ~(unsigned)WK_SCHEMA_NOTES)) return compile_reference(s, reference, out);
    if (reference->kind != WK_JSON_STRING)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "$ref", "must be a text");
    WK_TRY(wk_schema_find(s, reference->string, &target));
    WK_TRY(wk_schema_merge(s, rest, target, &merged));
    return wk_schema_compile(s, merged, out);
}

/* --- Types and constants --- */

static bool is_of_type(const wk_json *value, wk_str type) {
    switch (value->kind) {
    case WK_JSON_NULL: return wk_str_is(type, "null");
    case WK_JSON_BOOL: return wk_str_is(type, "boolean");
    case WK_JSON_STRING: return wk_str_is(type, "string");
    case WK_JSON_ARRAY: return wk_str_is(type, "array");
    case WK_JSON_OBJECT: return wk_str_is(type, "object");
    case WK_JSON_NUMBER: break;
    }
    const bool is_whole = value->number == floor(value->number); /* 1.0, too */
    return wk_str_is(type, "number") || (is_whole && wk_str_is(type, "integer"));
}

static bool fits_type(const wk_json *value, const wk_json *type) {
    if (!type || type->kind == WK_JSON_STRING) return !type || is_of_type(value, type->string);
    for (const wk_json *item = type->child; item; item = item->next)
        if (is_of_type(value, item->string)) return true;
    return false;
}

/* A text's length and a number, against the bounds; the other keywords are not asked. */
static bool fits_bounds(const wk_json *value, const wk_json *schema) {
    const bool is_text = value->kind == WK_JSON_STRING;
    const wk_json *const least = wk_json_get(schema, is_text ? "minLength" : "minimum");
    const wk_json *const most = wk_json_get(schema, is_text ? "maxLength" : "maximum");
    if (!is_text && value->kind != WK_JSON_NUMBER) return true;
    double size = is_text ? 0 : value->number;
    for (size_t i = 0; is_text && i < value->string.size; i++)
        size += (value->string.text[i] & 0xC0) != 0x80; /* characters, not bytes */
    return (!least || least->kind != WK_JSON_NUMBER || size >= least->number) &&
           (!most || most->kind != WK_JSON_NUMBER || size <= most->number);
}

/* enum and const, or what is in both. */
static wick_status compile_constants(wk_schema *s, const wk_json *schema, wk_expr **out) {
    const wk_json *const constant = wk_json_get(schema, "const"),
                         *const list = wk_json_get(schema, "enum"),
                         *const type = wk_json_get(schema, "type");
    if (list && list->kind != WK_JSON_ARRAY)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "enum", "must be a list");
    *out = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    for (const wk_json *value = list ? list->child : constant; value;
         value = list ? value->next : NULL) {
        const bool is_meant = !list || !constant || wk_json_is_equal(value, constant);
        if (is_meant && fits_type(value, type) && fits_bounds(value, schema))
            wk_expr_add(*out, wk_schema_literal(s, value));
    }
    if (*out && !(*out)->first && !s->rules->failed)
        return wk_schema_fail(s, WICK_ERR_VALUE, constant ? "const" : "enum", "leaves no value");
    return WICK_OK;
}

static const struct {
    const char *name;
    unsigned group;     /* of the keywords that say more about it */
    wk_schema_rule any; /* without them */
} kinds[] = {{"object", WK_SCHEMA_OF_OBJECTS, WK_SCHEMA_OBJECT},
             {"array", WK_SCHEMA_OF_ARRAYS, WK_SCHEMA_ARRAY},
             {"string", WK_SCHEMA_OF_STRINGS, WK_SCHEMA_STRING},
             {"number", WK_SCHEMA_OF_NUMBERS, WK_SCHEMA_NUMBER},
             {"integer", WK_SCHEMA_OF_NUMBERS, WK_SCHEMA_INTEGER}};

/* groups: of the keywords of the schema. */
static wick_status compile_type(wk_schema *s, const wk_json *schema, unsigned groups, wk_str type,
                                wk_expr **out) {
    for (size_t i = 0; i < WK_COUNT(kinds); i++) {
        if (!wk_str_is(type, kinds[i].name)) continue;
        if (groups & kinds[i].group) return compile_kind(s, schema, kinds[i].any, out);
        *out = wk_schema_shared(s, kinds[i].any);
        return WICK_OK;
    }
    *out = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    if (wk_str_is(type, "null")) {
        wk_expr_add(*out, wk_expr_word(s->rules, "null"));
    } else if (wk_str_is(type, "boolean")) {
        wk_expr_add(*out, wk_expr_word(s->rules, "true"));
        wk_expr_add(*out, wk_expr_word(s->rules, "false"));
    } else {
        return wk_fail(s->err, WICK_ERR_FORMAT, "the JSON schema: there is no type '%s'",
                       wk_str_show(type).text);
    }
    return WICK_OK;
}

/* Without a type, keywords say which types are meant. */
static wick_status compile_untyped(wk_schema *s, const wk_json *schema, unsigned groups,
                                   wk_expr **out) {
    *out = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    for (size_t i = 0; i < WK_COUNT(kinds); i++) {
        wk_expr *one;
        if (!(groups & kinds[i].group) || kinds[i].any == WK_SCHEMA_INTEGER) continue;
        WK_TRY(compile_kind(s, schema, kinds[i].any, &one));
        wk_expr_add(*out, one);
    }
    if (*out && !(*out)->first) *out = wk_schema_shared(s, WK_SCHEMA_VALUE);
    return WICK_OK;
}

static wick_status compile_types(wk_schema *s, const wk_json *schema, unsigned groups,
                                 wk_expr **out) {
    const wk_json *const type = wk_json_get(schema, "type");
    if (!type) return compile_untyped(s, schema, groups, out);
    if (type->kind == WK_JSON_STRING) return compile_type(s, schema, groups, type->string, out);
    if (type->kind != WK_JSON_ARRAY || !type->child)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "type", "must be a text or a list of texts");
    *out = wk_expr_list(s->rules, WK_EXPR_CHOICE);
    wick_error *const err = s->err;
    wick_error last;
    wick_status status = WICK_OK;
    for (const wk_json *item = type->child; item; item = item->next) {
        wk_expr *one;
        if (item->kind != WK_JSON_STRING)
            return wk_schema_fail(s, WICK_ERR_FORMAT, "type", "must be a text or a list of texts");
        last = (wick_error){0};
        s->err = &last;
        status = compile_type(s, schema, groups, item->string, &one);
        s->err = err;
        if (status == WICK_OK) wk_expr_add(*out, one);
        if (status != WICK_OK && status != WICK_ERR_VALUE) return wk_pass_on(err, status, &last);
    }
    return any_left(s, *out, status, &last);
}

/* --- Everything --- */

static wick_status compile_object_schema(wk_schema *s, const wk_json *schema, wk_expr **out) {
    unsigned groups;
    WK_TRY(wk_schema_check_keywords(s, schema, &groups));
    if (wk_json_get(schema, "$ref")) return compile_extended(s, schema, out);
    if (wk_json_get(schema, "allOf")) return compile_all(s, schema, out);
    if (wk_json_get(schema, "anyOf")) return compile_choice(s, schema, "anyOf", out);
    if (wk_json_get(schema, "oneOf")) return compile_choice(s, schema, "oneOf", out);
    if (wk_json_get(schema, "const") || wk_json_get(schema, "enum"))
        return compile_constants(s, schema, out);
    return compile_types(s, schema, groups, out);
}

wick_status wk_schema_compile(wk_schema *s, const wk_json *schema, wk_expr **out) {
    if (!schema || (schema->kind == WK_JSON_BOOL && schema->boolean)) {
        *out = wk_schema_shared(s, WK_SCHEMA_VALUE);
        return WICK_OK;
    }
    if (wk_schema_is_false(schema))
        return wk_fail(s->err, WICK_ERR_VALUE, "the JSON schema: 'false' accepts nothing");
    if (schema->kind != WK_JSON_OBJECT)
        return wk_fail(s->err, WICK_ERR_FORMAT,
                       "the JSON schema: a schema must be an object, true or false");
    if (s->depth == MAX_DEPTH)
        return wk_fail(s->err, WICK_ERR_UNSUPPORTED, "the JSON schema nests too deeply");
    if (s->n_compiled++ >= MAX_COMPILED)
        return wk_fail(s->err, WICK_ERR_UNSUPPORTED,
                       "the JSON schema is too large: it comes to more than %d schemas",
                       MAX_COMPILED);
    s->depth++;
    const wick_status status = compile_object_schema(s, schema, out);
    s->depth--;
    return status;
}

wick_status wk_schema_program(wk_schema *s, const wk_json *schema, wk_program *out) {
    wick_error last = {0};
    wk_rules rules = {.arena = s->rules->arena};
    wk_schema own = {.rules = &rules,
                     .root = s->root,
                     .depth = s->depth,
                     .n_compiled = s->n_compiled,
                     .err = &last};
    wk_expr *body = NULL;
    wk_map64_init(&own.targets, rules.arena->heap);
    (void)wk_rules_add(&rules, wk_str_of("root"));
    const wick_status status = wk_schema_compile(&own, schema, &body);
    wk_map64_release(&own.targets);
    if (status == WICK_ERR_VALUE)
        body = wk_expr_list(&rules, WK_EXPR_CHOICE);
    else if (status != WICK_OK)
        return wk_pass_on(s->err, status, &last);
    if (rules.failed) return wk_fail_memory(s->err, 0, "a JSON schema");
    rules.items[0].body = body;
    WK_TRY(wk_program_make(rules.arena->heap, &rules, out, s->err));
    s->n_compiled = own.n_compiled + (int)out->n / 16; /* bounds the time of many large ones */
    return WICK_OK;
}

/* What the reader of JSON lets through, or would take long; and the tags of alternatives. */
static wick_status check_text(const wk_schema *s, const wk_json *value) {
    if (value->kind == WK_JSON_NUMBER && !isfinite(value->number))
        return wk_fail(s->err, WICK_ERR_FORMAT,
                       "the JSON schema holds a number that is not finite");
    if (value->kind == WK_JSON_OBJECT && value->count > MAX_KEYS)
        return wk_fail(s->err, WICK_ERR_UNSUPPORTED,
                       "the JSON schema: an object of more than %d keys is not supported",
                       MAX_KEYS);
    const wk_json *const alternatives = wk_json_get(value, "oneOf");
    if (alternatives && alternatives->count <= MAX_TAGGED) wk_schema_mark_tags(s, alternatives);
    for (const wk_json *item = value->child; item; item = item->next) WK_TRY(check_text(s, item));
    return WICK_OK;
}

static wick_status parse(wk_schema *s, wk_str text) {
    wk_json *root;
    wk_expr *body;
    (void)wk_rules_add(s->rules, wk_str_of("root"));
    WK_TRY(wk_json_parse(s->rules->arena, text.text, text.size, &root, s->err));
    s->root = root;
    WK_TRY(check_text(s, root));
    WK_TRY(wk_schema_compile(s, root, &body));
    if (s->rules->failed) return wk_fail_memory(s->err, text.size, "a JSON schema");
    s->rules->items[0].body = body;
    return WICK_OK;
}

wick_status wk_json_schema_parse(wk_rules *rules, wk_str text, wick_error *err) {
    wk_schema s = {.rules = rules, .err = err};
    wk_map64_init(&s.targets, rules->arena->heap);
    const wick_status status = parse(&s, text);
    wk_map64_release(&s.targets);
    return status;
}
