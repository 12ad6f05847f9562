/* grammar/json_schema_object.c: objects. The properties that a schema names come in its order,
 * followed by others where they are allowed. */
#include "grammar/json_schema_state.h"

#include "core/compiler.h"
#include "grammar/json_pattern.h"
#include "grammar/stacks.h"
#include "text/unicode/unicode.h"

enum { MAX_MEMBERS = 2000, MAX_NAME = 500 };

typedef struct member {
    wk_str name;
    const wk_json *schema;
    bool is_required;
} member;

typedef struct object_parts {
    member *members; /* [n] */
    size_t n;
    bool has_others;       /* members of other names may follow */
    const wk_json *others; /* their schema; NULL: any value */
    wk_str pattern;        /* that their names match; text NULL: any */
    const wk_json *names;  /* the schema of their names; NULL: any */
} object_parts;

/* --- Reading --- */

static member *find_member(const object_parts *o, wk_str name) {
    for (size_t i = 0; i < o->n; i++)
        if (wk_str_equal(o->members[i].name, name)) return &o->members[i];
    return NULL;
}

static wick_status read_properties(const wk_schema *s, const wk_json *schema, object_parts *o) {
    const wk_json *const properties = wk_json_get(schema, "properties"), *const required =
                                                                             wk_json_get(
                                                                                 schema,
                                                                                 "required");
    if (properties && properties->kind != WK_JSON_OBJECT)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "properties", "must be an object");
    if (required && required->kind != WK_JSON_ARRAY)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "required", "must be a list of texts");
    const size_t most = (properties ? properties->count : 0) + (required ? required->count : 0);
    if (most > MAX_MEMBERS)
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "properties",
                              "of more than 2000 names is "
                              "not supported");
    o->members = wk_arena_array(s->rules->arena, most, sizeof *o->members);
    if (!o->members) return wk_fail_memory(s->err, most * sizeof *o->members, "a JSON schema");
    for (const wk_json *item = properties ? properties->child : NULL; item; item = item->next) {
        member *const known = find_member(o, item->key);
        *(known ? known : &o->members[o->n++]) =
            (member){.name = item->key, .schema = item, .is_required = item->is_read};
    }
    return WICK_OK;
}

static wick_status read_others(const wk_schema *s, const wk_json *schema, object_parts *o) {
    const wk_json *const others = wk_json_get(schema, "additionalProperties"),
                         *const patterns = wk_json_get(schema, "patternProperties");
    o->others = others;
    /* Undescribed names are generated only where the schema describes no names or asks for others:
     * a schema that does not forbid them hardly ever wants them. */
    o->has_others = others ? !wk_schema_is_false(others) : !wk_json_get(schema, "properties");
    if (!patterns) return WICK_OK;
    if (patterns->kind != WK_JSON_OBJECT)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "patternProperties", "must be an object");
    if (patterns->count != 1 || o->n > 0 || (others && !wk_schema_is_false(others)))
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "patternProperties",
                              "of several patterns, or with other properties, is not supported");
    o->has_others = !wk_schema_is_false(patterns->child);
    o->others = patterns->child;
    o->pattern = patterns->child->key;
    return WICK_OK;
}

/* What is required without being described is as the others are. */
static wick_status read_required(const wk_schema *s, const wk_json *schema, object_parts *o) {
    const wk_json *const required = wk_json_get(schema, "required"), *const others = wk_json_get(
                                                                         schema,
                                                                         "additionalProperties");
    for (const wk_json *item = required ? required->child : NULL; item; item = item->next) {
        if (item->kind != WK_JSON_STRING)
            return wk_schema_fail(s, WICK_ERR_FORMAT, "required", "must be a list of texts");
        member *known = find_member(o, item->string);
        if (!known && o->pattern.text)
            return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "required",
                                  "beside 'patternProperties' is not supported");
        if (!known) {
            known = &o->members[o->n++];
            *known = (member){.name = item->string, .schema = others};
        }
        if (wk_schema_is_false(known->schema))
            return wk_schema_fail(s, WICK_ERR_VALUE, "required", "names what must not be there");
        known->is_required = true;
    }
    return WICK_OK;
}

/* Where the text leads in a grammar. NULL: memory is short. */
static wk_stacks *read_text(wk_stacks_store *grammar, wk_stacks *at, const wk_expr *text) {
    for (size_t i = 0; at && i < text->text.size; i++)
        at = wk_stacks_read(grammar, at,
                            grammar->program->class_of[(unsigned char)text->text.text[i]]);
    for (const wk_expr *part = text->first; at && part; part = part->next)
        at = read_text(grammar, at, part);
    return at;
}

/* Members whose names are not those of the grammar must not be there. */
static wick_status check_names(wk_schema *s, const object_parts *o, wk_stacks_store *grammar) {
    static const wk_json never = {.kind = WK_JSON_BOOL};
    for (member *m = o->members; m < o->members + o->n; m++) {
        const wk_expr *const name = wk_schema_quoted(s, wk_json_literal(s->rules, m->name));
        const wk_stacks *const end = name ? read_text(grammar, grammar->start, name) : NULL;
        if (!end) return wk_fail_memory(s->err, 0, "a JSON schema");
        if (wk_stacks_may_end(end)) continue;
        if (m->is_required)
            return wk_schema_fail(s, WICK_ERR_VALUE, "propertyNames",
                                  "does not allow a name that is required");
        m->schema = &never;
    }
    return WICK_OK;
}

static wick_status keep_named(wk_schema *s, const wk_json *names, const object_parts *o) {
    wk_program program;
    wk_stacks_store grammar;
    WK_TRY(wk_schema_program(s, names, &program));
    wick_status status = wk_stacks_store_make(program.heap, &program, &grammar, s->err);
    if (status == WICK_OK) {
        status = check_names(s, o, &grammar);
        wk_stacks_store_free(&grammar);
    }
    wk_program_free(&program);
    return status;
}

/* propertyNames beside members that are known: there are no others. A type alone changes nothing.
 */
static wick_status read_names(wk_schema *s, const wk_json *schema, object_parts *o) {
    const wk_json *const names = wk_json_get(schema, "propertyNames");
    const bool is_false = wk_schema_is_false(names);
    wk_json *rest, *const type = wk_arena_array(s->rules->arena, 1, sizeof *type);
    if (!type) return wk_fail_memory(s->err, sizeof *type, "a JSON schema");
    if (!names || (names->kind != WK_JSON_OBJECT && !is_false)) return WICK_OK;
    WK_TRY(wk_schema_without(s, names, "type", &rest));
    if (!rest->child && !is_false) return WICK_OK;
    *type =
        (wk_json){.kind = WK_JSON_STRING, .key = wk_str_of("type"), .string = wk_str_of("string")};
    wk_json_append(rest, type);
    if (o->pattern.text && wk_schema_is_false(wk_json_get(schema, "additionalProperties")))
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "propertyNames",
                              "beside 'patternProperties' without other names is not supported");
    o->names = rest;
    if (o->n > 0 || is_false) o->has_others = false;
    return o->n > 0 ? keep_named(s, is_false ? names : rest, o) : WICK_OK;
}

/* Properties whose schema is false must not be there; their names are still taken. */
static size_t drop_false(const object_parts *o, member *kept) {
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        if (!wk_schema_is_false(o->members[i].schema)) kept[n++] = o->members[i];
    return n;
}

/* --- Names --- */

/* Names that go on from the first size bytes of those in names [n], and are none of these. They are
 * written without escapes, so that none of them can be one of these in disguise. */
static wk_expr *other_names(wk_schema *s, const wk_str *names, size_t n, size_t size) {
    wk_rules *const rules = s->rules;
    wk_code_range *const taken = wk_arena_array(rules->arena, n + 3, sizeof *taken);
    wk_str *const same = wk_arena_array(rules->arena, n, sizeof *same);
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (!taken || !same) {
        rules->failed = true;
        return NULL;
    }
    size_t n_taken = 0;
    bool is_name = false;
    for (size_t i = 0; i < n; i++) {
        uint32_t code, other;
        is_name |= names[i].size == size;
        if (names[i].size == size) continue;
        const size_t step = wk_utf8_decode(names[i].text + size, names[i].size - size, &code);
        bool is_new = true;
        for (size_t k = 0; k < n_taken; k++) is_new &= taken[k].first != code;
        if (!is_new) continue;
        taken[n_taken++] = (wk_code_range){code, code};
        size_t n_same = 0;
        for (size_t k = i; k < n; k++) {
            if (names[k].size == size) continue;
            (void)wk_utf8_decode(names[k].text + size, names[k].size - size, &other);
            if (other == code) same[n_same++] = names[k];
        }
        if (code < 0x20 || code == '"' || code == '\\') continue; /* needs an escape */
        wk_expr *const parts[] = {wk_expr_text(rules, (wk_str){names[i].text + size, step}),
                                  n_same == 0 ? NULL : other_names(s, same, n_same, size + step)};
        wk_expr_add(choice, wk_schema_sequence(s, parts, WK_COUNT(parts)));
    }
    static const wk_code_range escaped[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    for (size_t i = 0; i < WK_COUNT(escaped); i++) taken[n_taken++] = escaped[i];
    wk_expr *const different[] = {
        wk_expr_class(rules, taken, n_taken, true),
        wk_expr_repeat(rules, wk_expr_class(rules, escaped, WK_COUNT(escaped), true), 0,
                       WK_REPEAT_FOREVER)};
    wk_expr_add(choice, wk_schema_sequence(s, different, WK_COUNT(different)));
    if (!is_name) wk_expr_add(choice, wk_expr_list(rules, WK_EXPR_SEQUENCE));
    return choice;
}

/* Between quotation marks. */
static wick_status compile_other_name(wk_schema *s, const object_parts *o, wk_expr **out) {
    if (o->names) return wk_schema_compile(s, o->names, out);
    if (o->pattern.text) {
        WK_TRY(wk_json_pattern(s->rules, o->pattern, out, s->err));
        *out = wk_schema_quoted(s, *out);
        return WICK_OK;
    }
    wk_str *const names = wk_arena_array(s->rules->arena, o->n, sizeof *names);
    if (!names) return wk_fail_memory(s->err, o->n * sizeof *names, "a JSON schema");
    for (size_t i = 0; i < o->n; i++) {
        names[i] = o->members[i].name;
        if (names[i].size > MAX_NAME)
            return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "additionalProperties",
                                  "beside names of more than 500 bytes is not supported");
    }
    *out = wk_schema_quoted(s, other_names(s, names, o->n, 0));
    return WICK_OK;
}

/* --- Members --- */

/* A rule: the name, a colon, the value and the space after it. */
static wick_status add_member(wk_schema *s, wk_expr *name, const wk_json *schema, uint32_t *rule) {
    wk_expr *value;
    WK_TRY(wk_schema_compile(s, schema, &value));
    wk_expr *const parts[] = {name, wk_expr_word(s->rules, ":"),
                              wk_schema_shared(s, WK_SCHEMA_SPACE), value,
                              wk_schema_shared(s, WK_SCHEMA_SPACE)};
    wk_expr *const body = wk_schema_sequence(s, parts, WK_COUNT(parts));
    *rule = wk_rules_add(s->rules, wk_str_of("member"));
    if (!s->rules->failed) s->rules->items[*rule].body = body;
    return WICK_OK;
}

static wk_expr *after_comma(wk_schema *s, uint32_t rule) {
    wk_expr *const parts[] = {wk_expr_word(s->rules, ","), wk_schema_shared(s, WK_SCHEMA_SPACE),
                              wk_expr_rule(s->rules, rule)};
    return wk_schema_sequence(s, parts, WK_COUNT(parts));
}

static wk_expr *pair(wk_schema *s, wk_expr *a, wk_expr *b) {
    wk_expr *const parts[] = {a, b};
    return wk_schema_sequence(s, parts, WK_COUNT(parts));
}

/* The members of an object in order, with commas between those that are there; from the last to the
 * first. tail: the rule for what may follow where something stands before. */
static wick_status compile_members(wk_schema *s, const member *members, size_t n,
                                   const uint32_t *other, bool may_be_empty, wk_expr **out) {
    wk_rules *const rules = s->rules;
    uint32_t tail = wk_rules_add(rules, wk_str_of("members"));
    wk_expr *body = other ? wk_expr_repeat(rules, after_comma(s, *other), 0, WK_REPEAT_FOREVER)
                          : wk_expr_list(rules, WK_EXPR_SEQUENCE);
    if (!rules->failed) rules->items[tail].body = body;
    wk_expr *first = wk_expr_list(rules, WK_EXPR_CHOICE); /* what there is from member i on */
    if (other) wk_expr_add(first, pair(s, wk_expr_rule(rules, *other), wk_expr_rule(rules, tail)));
    if (may_be_empty) wk_expr_add(first, wk_expr_list(rules, WK_EXPR_SEQUENCE));
    for (size_t i = n; i-- > 0;) {
        uint32_t rule;
        WK_TRY(add_member(s, wk_schema_quoted(s, wk_json_literal(rules, members[i].name)),
                          members[i].schema, &rule));
        wk_expr *const is_first = pair(s, wk_expr_rule(rules, rule), wk_expr_rule(rules, tail));
        if (members[i].is_required) first = wk_expr_list(rules, WK_EXPR_CHOICE);
        wk_expr_add(first, is_first);
        body = pair(s, wk_expr_repeat(rules, after_comma(s, rule), members[i].is_required, 1),
                    wk_expr_rule(rules, tail));
        tail = wk_rules_add(rules, wk_str_of("members"));
        if (rules->failed) return wk_fail_memory(s->err, 0, "a JSON schema");
        rules->items[tail].body = body;
    }
    *out = first;
    return WICK_OK;
}

wick_status wk_schema_object(wk_schema *s, const wk_json *schema, wk_expr **out) {
    object_parts o = {.n = 0};
    uint32_t other = 0, n_least = 0;
    WK_TRY(read_properties(s, schema, &o));
    WK_TRY(read_others(s, schema, &o));
    WK_TRY(read_required(s, schema, &o));
    WK_TRY(read_names(s, schema, &o));
    WK_TRY(wk_schema_count(s, schema, "minProperties", &n_least));
    member *const kept = wk_arena_array(s->rules->arena, o.n, sizeof *kept);
    if (!kept) return wk_fail_memory(s->err, o.n * sizeof *kept, "a JSON schema");
    const size_t n = drop_false(&o, kept);
    if (n_least > 0 && n == 0 && !o.has_others)
        return wk_schema_fail(s, WICK_ERR_VALUE, "minProperties", "is more than there can be");
    wk_expr *name, *members = NULL;
    if (o.has_others) {
        WK_TRY(compile_other_name(s, &o, &name));
        WK_TRY(add_member(s, name, o.others, &other));
    }
    WK_TRY(compile_members(s, kept, n, o.has_others ? &other : NULL, n_least == 0, &members));
    wk_expr *const parts[] = {wk_expr_word(s->rules, "{"), wk_schema_shared(s, WK_SCHEMA_SPACE),
                              members, wk_expr_word(s->rules, "}")};
    *out = wk_schema_sequence(s, parts, WK_COUNT(parts));
    return WICK_OK;
}
