/* grammar/json_schema_keywords.c: which keywords there are, where references lead, and schemas that
 * have to hold at once, as one. */
#include "grammar/json_schema_state.h"

#include "core/compiler.h"
#include "core/cursor.h"

#include <string.h>

enum { MAX_EXPANDED = 200 }; /* references to references */

/* --- Keywords --- */

static const struct {
    const char *name;
    unsigned group; /* 0: narrows what is valid, in a way that no grammar here does */
} keywords[] = {
    {"not", 0},
    {"if", 0},
    {"contains", 0},
    {"dependencies", 0},
    {"dependentRequired", 0},
    {"dependentSchemas", 0},
    {"unevaluatedItems", 0},
    {"$dynamicRef", 0},
    {"$recursiveRef", 0},
    {"type", WK_SCHEMA_GENERAL},
    {"enum", WK_SCHEMA_GENERAL},
    {"const", WK_SCHEMA_GENERAL},
    {"$ref", WK_SCHEMA_GENERAL},
    {"allOf", WK_SCHEMA_GENERAL},
    {"anyOf", WK_SCHEMA_GENERAL},
    {"oneOf", WK_SCHEMA_GENERAL},
    {"minLength", WK_SCHEMA_OF_STRINGS},
    {"maxLength", WK_SCHEMA_OF_STRINGS},
    {"pattern", WK_SCHEMA_OF_STRINGS},
    {"format", WK_SCHEMA_OF_STRINGS},
    {"minimum", WK_SCHEMA_OF_NUMBERS},
    {"maximum", WK_SCHEMA_OF_NUMBERS},
    {"exclusiveMinimum", WK_SCHEMA_OF_NUMBERS},
    {"exclusiveMaximum", WK_SCHEMA_OF_NUMBERS},
    {"multipleOf", WK_SCHEMA_OF_NUMBERS},
    {"items", WK_SCHEMA_OF_ARRAYS},
    {"prefixItems", WK_SCHEMA_OF_ARRAYS},
    {"additionalItems", WK_SCHEMA_OF_ARRAYS},
    {"minItems", WK_SCHEMA_OF_ARRAYS},
    {"maxItems", WK_SCHEMA_OF_ARRAYS},
    {"properties", WK_SCHEMA_OF_OBJECTS},
    {"required", WK_SCHEMA_OF_OBJECTS},
    {"additionalProperties", WK_SCHEMA_OF_OBJECTS},
    {"patternProperties", WK_SCHEMA_OF_OBJECTS},
    {"propertyNames", WK_SCHEMA_OF_OBJECTS},
    {"minProperties", WK_SCHEMA_OF_OBJECTS},
};

/* Unknown keywords are annotations (JSON Schema Core, section 6.5), and so are treated
 * those that would ask for counting or comparing: uniqueItems, maxProperties. */
static unsigned group_of(const wk_json *item) {
    for (size_t i = 0; i < WK_COUNT(keywords); i++)
        if (wk_str_is(item->key, keywords[i].name)) return keywords[i].group;
    return WK_SCHEMA_NOTES;
}

bool wk_schema_is_false(const wk_json *schema) {
    if (!schema) return false;
    if (schema->kind == WK_JSON_BOOL) return !schema->boolean;
    const wk_json *const not = wk_json_get(schema, "not");
    return not &&
           (not->kind == WK_JSON_BOOL ? not->boolean : not->kind == WK_JSON_OBJECT && !not->child);
}

wick_status wk_schema_check_keywords(const wk_schema *s, const wk_json *schema, unsigned *groups) {
    *groups = 0;
    for (const wk_json *item = schema->child; item; item = item->next) {
        const unsigned group = group_of(item);
        if (group == 0)
            return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, wk_str_show(item->key).text,
                                  "is not supported");
        *groups |= group;
    }
    return WICK_OK;
}

/* --- References --- */

/* One step of a JSON pointer (RFC 6901), where ~1 is a slash and ~0 a tilde. */
static bool is_step(wk_str key, wk_str step) {
    size_t k = 0;
    for (size_t i = 0; i < step.size; i++, k++) {
        char c = step.text[i];
        if (c == '~' && i + 1 < step.size) c = step.text[++i] == '1' ? '/' : '~';
        if (k == key.size || key.text[k] != c) return false;
    }
    return k == key.size;
}

static const wk_json *find_step(const wk_json *at, wk_str step) {
    size_t number = 0;
    const wk_json *item = at->child;
    if (at->kind == WK_JSON_OBJECT) {
        while (item && !is_step(item->key, step)) item = item->next;
        return item;
    }
    if (at->kind != WK_JSON_ARRAY || step.size == 0 || step.size > 6) return NULL;
    for (size_t i = 0; i < step.size; i++) {
        if (step.text[i] < '0' || step.text[i] > '9') return NULL;
        number = number * 10 + (size_t)(step.text[i] - '0');
    }
    while (item && number-- > 0) item = item->next;
    return item;
}

static wick_status fail_memory(const wk_schema *s) {
    return wk_fail_memory(s->err, sizeof(wk_json), "a JSON schema");
}

/* A pointer stands in a URI: "%20" is a space (RFC 6901, section 6). */
static bool decode_percent(const wk_schema *s, wk_str text, wk_str *out) {
    char *const copy = wk_arena_array(s->rules->arena, text.size, 1);
    wk_cursor in = {.text = text};
    *out = (wk_str){copy, 0};
    while (copy && in.at < text.size) {
        uint32_t code = (unsigned char)text.text[in.at++];
        if (code == '%') (void)wk_accept_hex(&in, 2, &code);
        copy[out->size++] = (char)code;
    }
    return copy != NULL;
}

wick_status wk_schema_find(const wk_schema *s, wk_str reference, const wk_json **out) {
    const wk_shown shown = wk_str_show(reference);
    const bool is_local = reference.size > 0 && reference.text[0] == '#' &&
                          (reference.size == 1 || reference.text[1] == '/');
    if (!is_local)
        return wk_fail(s->err, WICK_ERR_UNSUPPORTED,
                       "the JSON schema: the reference '%s' is not supported, only those that "
                       "begin with '#/' are",
                       shown.text);
    wk_str path;
    if (!decode_percent(s, reference, &path)) return fail_memory(s);
    const wk_json *at = s->root;
    for (size_t i = 1; i < path.size && at;) {
        const size_t begin = ++i;
        while (i < path.size && path.text[i] != '/') i++;
        at = find_step(at, (wk_str){path.text + begin, i - begin});
    }
    *out = at;
    return at ? WICK_OK
              : wk_fail(s->err, WICK_ERR_FORMAT,
                        "the JSON schema: the reference '%s' leads nowhere", shown.text);
}

/* --- Copies --- */

/* Appends a copy of item, without what follows it; its children are shared. NULL: no memory. */
static wk_json *append(wk_schema *s, wk_json *list, const wk_json *item) {
    wk_json *const copy = wk_arena_array(s->rules->arena, 1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *item;
    wk_json_append(list, copy);
    return copy;
}

static wick_status append_all(wk_schema *s, wk_json *list, const wk_json *from) {
    for (const wk_json *item = from->child; item; item = item->next)
        if (!append(s, list, item)) return fail_memory(s);
    return WICK_OK;
}

static wk_json *make(wk_schema *s, wk_json_kind kind, wk_str key) {
    wk_json *const value = wk_arena_array(s->rules->arena, 1, sizeof *value);
    if (!value) return NULL;
    value->kind = kind;
    value->key = key;
    return value;
}

wick_status wk_schema_without(wk_schema *s, const wk_json *schema, const char *keyword,
                              wk_json **out) {
    *out = make(s, WK_JSON_OBJECT, schema->key);
    if (!*out) return fail_memory(s);
    for (const wk_json *item = schema->child; item; item = item->next) {
        if (wk_str_is(item->key, keyword) || group_of(item) == WK_SCHEMA_NOTES) continue;
        if (!append(s, *out, item)) return fail_memory(s);
    }
    return WICK_OK;
}

/* --- Merging --- */

bool wk_json_is_equal(const wk_json *a, const wk_json *b) {
    if (a->kind != b->kind || a->count != b->count) return false;
    switch (a->kind) {
    case WK_JSON_NULL: return true;
    case WK_JSON_BOOL: return a->boolean == b->boolean;
    case WK_JSON_NUMBER: return a->number == b->number;
    case WK_JSON_STRING: return wk_str_equal(a->string, b->string);
    case WK_JSON_ARRAY:
    case WK_JSON_OBJECT: break;
    }
    const wk_json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        if (!wk_str_equal(x->key, y->key) || !wk_json_is_equal(x, y)) return false;
    return true;
}

static wk_json *find(const wk_json *object, wk_str key) {
    wk_json *item = object->child;
    while (item && !wk_str_equal(item->key, key)) item = item->next;
    return item;
}

/* In the place of *a a schema that both have to accept. */
static wick_status join(wk_schema *s, wk_json *a, const wk_json *b) {
    wk_json *const both = make(s, WK_JSON_OBJECT, a->key);
    wk_json *const list = make(s, WK_JSON_ARRAY, wk_str_of("allOf"));
    if (!both || !list || !append(s, list, a) || !append(s, list, b)) return fail_memory(s);
    if (!append(s, both, list)) return fail_memory(s);
    both->is_read = a->is_read || b->is_read;
    both->next = a->next;
    *a = *both;
    return WICK_OK;
}

static wick_status join_properties(wk_schema *s, wk_json *a, const wk_json *b) {
    wk_json *const all = make(s, WK_JSON_OBJECT, a->key);
    if (!all) return fail_memory(s);
    WK_TRY(append_all(s, all, a));
    for (const wk_json *item = b->child; item; item = item->next) {
        wk_json *const known = find(all, item->key);
        if (known)
            WK_TRY(join(s, known, item));
        else if (!append(s, all, item))
            return fail_memory(s);
    }
    all->next = a->next;
    *a = *all;
    return WICK_OK;
}

static wick_status join_lists(wk_schema *s, wk_json *a, const wk_json *b) {
    wk_json *const all = make(s, WK_JSON_ARRAY, a->key);
    if (!all) return fail_memory(s);
    WK_TRY(append_all(s, all, a));
    WK_TRY(append_all(s, all, b));
    all->next = a->next;
    *a = *all;
    return WICK_OK;
}

static bool has_type(const wk_json *types, const char *type) {
    if (types->kind == WK_JSON_STRING) return wk_str_is(types->string, type);
    for (const wk_json *item = types->child; item; item = item->next)
        if (item->kind == WK_JSON_STRING && wk_str_is(item->string, type)) return true;
    return false;
}

static const char *const all_types[] = {"null",   "boolean", "object", "array",
                                        "string", "number",  "integer"};

static bool accepts_type(const wk_json *types, const char *type) {
    return has_type(types, type) || (strcmp(type, "integer") == 0 && has_type(types, "number"));
}

static wick_status join_types(wk_schema *s, wk_json *a, const wk_json *b) {
    wk_json *const both = make(s, WK_JSON_ARRAY, a->key);
    if (!both) return fail_memory(s);
    for (size_t i = 0; i < WK_COUNT(all_types); i++) {
        const wk_json type = {.kind = WK_JSON_STRING, .string = wk_str_of(all_types[i])};
        const bool is_implied = strcmp(all_types[i], "integer") == 0 && has_type(both, "number");
        if (accepts_type(a, all_types[i]) && accepts_type(b, all_types[i]) && !is_implied &&
            !append(s, both, &type))
            return fail_memory(s);
    }
    if (!both->child) return wk_schema_fail(s, WICK_ERR_VALUE, "allOf", "leaves no type");
    both->next = a->next;
    *a = *both;
    return WICK_OK;
}

/* What is in both lists. */
static wick_status join_constants(wk_schema *s, wk_json *a, const wk_json *b) {
    wk_json *const both = make(s, WK_JSON_ARRAY, a->key);
    if (!both) return fail_memory(s);
    for (const wk_json *item = a->child; item; item = item->next) {
        const wk_json *other = b->child;
        while (other && !wk_json_is_equal(item, other)) other = other->next;
        if (other && !append(s, both, item)) return fail_memory(s);
    }
    both->next = a->next;
    *a = *both;
    return WICK_OK;
}

/* The stricter of two bounds. */
static void join_bounds(wk_json *a, const wk_json *b, bool is_least) {
    if (is_least ? b->number <= a->number : b->number >= a->number) return;
    wk_json *const next = a->next;
    *a = *b;
    a->next = next;
}

/* Two values of one keyword. */
static wick_status join_keyword(wk_schema *s, wk_json *a, const wk_json *b) {
    const char *const key = a->key.text;
    const bool is_exclusive = a->key.size > 9 && memcmp(key, "exclusiveM", 10) == 0;
    const char *const bound = is_exclusive                     ? key + 10
                              : a->key.size > 2 && *key == 'm' ? key + 1
                                                               : "";
    if (wk_json_is_equal(a, b)) return WICK_OK;
    if (a->kind == WK_JSON_NUMBER && b->kind == WK_JSON_NUMBER &&
        (*bound == 'i' || *bound == 'a')) {
        join_bounds(a, b, *bound == 'i'); /* minimum, minLength, ...; maximum, ... */
        return WICK_OK;
    }
    if (wk_str_is(a->key, "properties")) return join_properties(s, a, b);
    if (wk_str_is(a->key, "required")) return join_lists(s, a, b);
    if (wk_str_is(a->key, "allOf")) return join_lists(s, a, b);
    if (wk_str_is(a->key, "type")) return join_types(s, a, b);
    if (wk_str_is(a->key, "items")) return join(s, a, b);
    if (wk_str_is(a->key, "enum")) return join_constants(s, a, b);
    if (wk_str_is(a->key, "const"))
        return wk_schema_fail(s, WICK_ERR_VALUE, "const", "leaves no value");
    if (wk_str_is(a->key, "format")) return WICK_OK;
    return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, wk_str_show(a->key).text,
                          "in two schemas that have to hold at once is not supported");
}

/* Whether a forbids names that b may bring in. */
static bool closes(const wk_json *a, const wk_json *b) {
    const wk_json *const others = wk_json_get(a, "additionalProperties"), *const own = wk_json_get(
                                                                              a, "properties");
    const wk_json *const properties = wk_json_get(b, "properties");
    if (!others || (others->kind == WK_JSON_BOOL && others->boolean)) return false;
    for (const wk_json *item = properties ? properties->child : NULL; item; item = item->next)
        if (!own || !find(own, item->key)) return true;
    return false;
}

/* Whether a has items of its own at the beginning, which those of b are to be, too. */
static bool has_list_of(const wk_json *a, const wk_json *b) {
    const wk_json *const items = wk_json_get(b, "items");
    const bool has_items = items && !(items->kind == WK_JSON_BOOL && items->boolean);
    return wk_json_get(a, "prefixItems") && has_items && !wk_json_get(b, "prefixItems");
}

/* What a schema that is referred to says beside what stands next to the reference. */
static wick_status expand(wk_schema *s, const wk_json **schema) {
    const wk_json *const reference = wk_json_get(*schema, "$ref"), *target;
    wk_json *rest, *all;
    if (!reference) return WICK_OK;
    if (reference->kind != WK_JSON_STRING)
        return wk_schema_fail(s, WICK_ERR_FORMAT, "$ref", "must be a text");
    WK_TRY(wk_schema_find(s, reference->string, &target));
    WK_TRY(wk_schema_without(s, *schema, "$ref", &rest));
    if (s->depth >= MAX_EXPANDED)
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "$ref", "leads to itself");
    s->depth++;
    const wick_status status = wk_schema_merge(s, rest, target, &all);
    s->depth--;
    if (status == WICK_OK) *schema = all;
    return status;
}

wick_status wk_schema_merge(wk_schema *s, const wk_json *a, const wk_json *b, wk_json **out) {
    static const wk_json no_keywords = {.kind = WK_JSON_OBJECT};
    if (b->kind == WK_JSON_BOOL && b->boolean) b = &no_keywords;
    if (b->kind != WK_JSON_OBJECT)
        return wk_schema_fail(s, WICK_ERR_VALUE, "allOf", "must contain only object schemas");
    WK_TRY(expand(s, &b));
    if (closes(a, b) || closes(b, a))
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "additionalProperties",
                              "in one of several schemas that have to hold at once is not "
                              "supported");
    if (has_list_of(a, b) || has_list_of(b, a))
        return wk_schema_fail(s, WICK_ERR_UNSUPPORTED, "prefixItems",
                              "beside 'items' of another schema that has to hold at once is not "
                              "supported");
    *out = make(s, WK_JSON_OBJECT, a->key);
    if (!*out) return fail_memory(s);
    WK_TRY(append_all(s, *out, a));
    for (const wk_json *item = b->child; item; item = item->next) {
        if (group_of(item) == WK_SCHEMA_NOTES) continue;
        wk_json *const known = find(*out, item->key);
        if (known)
            WK_TRY(join_keyword(s, known, item));
        else if (!append(s, *out, item))
            return fail_memory(s);
    }
    return WICK_OK;
}

/* --- Disjoint schemas --- */

/* The schema that a chain of references leads to; NULL: none, or more than 16 references. */
static const wk_json *resolve(const wk_schema *s, const wk_json *schema) {
    const wk_schema quiet = {.root = s->root, .rules = s->rules};
    for (int i = 0; i < 16; i++) {
        const wk_json *const reference = wk_json_get(schema, "$ref");
        if (!reference || reference->kind != WK_JSON_STRING) return schema;
        if (wk_schema_find(&quiet, reference->string, &schema) != WICK_OK) return NULL;
    }
    return NULL;
}

/* The first of the values that it has to be; *is_one: there is no other. */
static const wk_json *constants(const wk_json *schema, bool *is_one) {
    const wk_json *const constant = wk_json_get(schema, "const"), *const list =
                                                                      wk_json_get(schema, "enum");
    *is_one = constant != NULL;
    return constant ? constant : list && list->kind == WK_JSON_ARRAY ? list->child : NULL;
}

static bool have_other_constants(const wk_json *a, const wk_json *b) {
    bool is_one_a, is_one_b;
    const wk_json *const x = constants(a, &is_one_a), *const y = constants(b, &is_one_b);
    if (!x || !y) return false;
    for (const wk_json *i = x; i; i = is_one_a ? NULL : i->next)
        for (const wk_json *k = y; k; k = is_one_b ? NULL : k->next)
            if (wk_json_is_equal(i, k) || i->kind >= WK_JSON_ARRAY) return false;
    return true;
}

static bool have_other_types(const wk_json *a, const wk_json *b) {
    const wk_json *const x = wk_json_get(a, "type"), *const y = wk_json_get(b, "type");
    if (!x || !y) return false;
    for (size_t i = 0; i < WK_COUNT(all_types); i++)
        if (accepts_type(x, all_types[i]) && accepts_type(y, all_types[i])) return false;
    return true;
}

/* Nothing but an object; without a type, that is what properties say. */
static bool is_object(const wk_json *schema) {
    const wk_json *const type = wk_json_get(schema, "type");
    return !type || (type->kind == WK_JSON_STRING && wk_str_is(type->string, "object"));
}

/* Both are objects, with a property whose values distinguish them. It need not be required: from
 * now on it is (is_read), so that what is generated always has it. */
static bool have_other_tags(const wk_json *a, const wk_json *b) {
    const wk_json *const x = wk_json_get(a, "properties"), *const y = wk_json_get(b, "properties");
    for (wk_json *i = x ? x->child : NULL; i; i = i->next) {
        wk_json *const k = y ? find(y, i->key) : NULL;
        if (!k || !have_other_constants(i, k)) continue;
        i->is_read = k->is_read = true;
        return true;
    }
    return false;
}

/* Whether a requires a name that b forbids. */
static bool requires_other(const wk_json *a, const wk_json *b) {
    const wk_json *const required = wk_json_get(a, "required");
    const wk_json *const properties = wk_json_get(b, "properties");
    for (const wk_json *item = required ? required->child : NULL; item; item = item->next)
        if (item->kind == WK_JSON_STRING && (!properties || !find(properties, item->string)))
            return true;
    return false;
}

static bool is_closed(const wk_json *schema) {
    const wk_json *const others = wk_json_get(schema, "additionalProperties");
    return others && others->kind == WK_JSON_BOOL && !others->boolean &&
           !wk_json_get(schema, "patternProperties");
}

bool wk_schema_are_disjoint(const wk_schema *s, const wk_json *a, const wk_json *b) {
    const wk_json *const x = resolve(s, a), *const y = resolve(s, b);
    if (!x || !y) return false;
    if (have_other_types(x, y) || have_other_constants(x, y)) return true;
    return is_object(x) && is_object(y) &&
           (have_other_tags(x, y) || (is_closed(x) && requires_other(y, x)) ||
            (is_closed(y) && requires_other(x, y)));
}

void wk_schema_mark_tags(const wk_schema *s, const wk_json *list) {
    for (const wk_json *a = list->child; a; a = a->next)
        for (const wk_json *b = a->next; b; b = b->next) (void)wk_schema_are_disjoint(s, a, b);
}
