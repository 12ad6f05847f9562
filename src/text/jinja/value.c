/* text/jinja/value.c: making values, and asking what they are. */
#include "text/jinja/value.h"

#include "text/jinja/chars.h"
#include "text/jinja/state.h"
#include "text/jinja/strings.h"

#include <assert.h>
#include <math.h>
#include <string.h>

wk_jtext wk_jtext_of(const char *terminated) {
    return (wk_jtext){terminated, strlen(terminated), NULL};
}

wk_jvalue wk_jliteral(const char *terminated) { return wk_jstring(wk_jtext_of(terminated)); }

wk_jtext wk_jtext_part(wk_jtext text, size_t from, size_t to) {
    assert(from <= to && to <= text.size);
    if (from == to) return (wk_jtext){"", 0, NULL};
    return (wk_jtext){text.text + from, to - from, text.origin ? text.origin + from : NULL};
}

wk_str wk_jtext_str(wk_jtext text) { return (wk_str){text.text, text.size}; }

bool wk_jtext_is(wk_jtext text, const char *terminated) {
    return wk_str_is(wk_jtext_str(text), terminated);
}

wick_status wk_jundefined(wk_jinja *j, const char *owner, wk_jtext name, wk_jvalue *out) {
    wk_jmissing *const missing = wk_jalloc(j, 1, sizeof *missing);
    if (missing == NULL) return WICK_ERR_VALUE;
    *missing = (wk_jmissing){.owner = owner, .name = name};
    *out = (wk_jvalue){.kind = WK_J_UNDEFINED, .missing = missing};
    return WICK_OK;
}

/* ---- Lists ---- */

wick_status wk_jlist_make(wk_jinja *j, wk_jkind kind, size_t capacity, wk_jvalue *out) {
    const size_t size = kind == WK_J_GENERATOR ? sizeof(wk_jgenerator) : sizeof(wk_jlist);
    wk_jlist *const list = wk_jalloc(j, 1, size);
    if (list == NULL) return WICK_ERR_VALUE;
    memset(list, 0, size);
    wk_jcount(j, WK_J_STEP);
    *list = (wk_jlist){.items = wk_jalloc(j, capacity, sizeof *list->items), .capacity = capacity};
    if (list->items == NULL) return WICK_ERR_VALUE;
    *out = (wk_jvalue){.kind = kind, .list = list};
    return WICK_OK;
}

wick_status wk_jlist_push(wk_jinja *j, wk_jlist *list, wk_jvalue item) {
    if (list->n == list->capacity) {
        wk_jvalue *const items = wk_jgrow(j, list->items, &list->capacity, 8, sizeof *items);
        if (items == NULL) return WICK_ERR_VALUE;
        list->items = items;
    }
    list->items[list->n++] = item;
    return wk_jwork(j, 1);
}

wick_status wk_jpair(wk_jinja *j, wk_jvalue first, wk_jvalue second, wk_jvalue *out) {
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, 2, out));
    out->list->items[0] = first;
    out->list->items[1] = second;
    out->list->n = 2;
    return WICK_OK;
}

/* ---- Asking ---- */

const char *wk_jtype_name(const wk_jvalue *value) {
    switch (value->kind) {
    case WK_J_ABSENT:
    case WK_J_UNDEFINED: return "Undefined";
    case WK_J_NONE: return "NoneType";
    case WK_J_BOOL: return "bool";
    case WK_J_INTEGER: return "int";
    case WK_J_FLOAT: return "float";
    case WK_J_STRING: return value->is_markup ? "Markup" : "str";
    case WK_J_LIST: return "list";
    case WK_J_TUPLE: return "tuple";
    case WK_J_GENERATOR: return "generator";
    case WK_J_DICT: return "dict";
    case WK_J_KEYS: return "dict_keys";
    case WK_J_VALUES: return "dict_values";
    case WK_J_ITEMS: return "dict_items";
    case WK_J_NAMESPACE: return "Namespace";
    case WK_J_RANGE: return "range";
    case WK_J_BUILTIN: return "builtin_function_or_method";
    case WK_J_MACRO: return "Macro";
    case WK_J_LOOP: return "LoopContext";
    case WK_J_CYCLER: return "Cycler";
    case WK_J_JOINER: return "Joiner";
    }
    return "object";
}

bool wk_jis_integer(const wk_jvalue *value) {
    return value->kind == WK_J_INTEGER || value->kind == WK_J_BOOL;
}

bool wk_jis_number(const wk_jvalue *value) {
    return wk_jis_integer(value) || value->kind == WK_J_FLOAT;
}

int64_t wk_jas_integer(const wk_jvalue *value) {
    assert(wk_jis_integer(value));
    return value->kind == WK_J_BOOL ? value->boolean : value->integer;
}

double wk_jas_float(const wk_jvalue *value) {
    return value->kind == WK_J_FLOAT ? value->number : (double)wk_jas_integer(value);
}

/* Items of a container; false: it is none. */
static bool count_items(const wk_jvalue *value, size_t *n) {
    switch (value->kind) {
    case WK_J_LIST:
    case WK_J_TUPLE: *n = value->list->n; return true;
    case WK_J_DICT:
    case WK_J_KEYS:
    case WK_J_VALUES:
    case WK_J_ITEMS: *n = value->dict->n; return true;
    case WK_J_RANGE: *n = value->range->n; return true;
    default: *n = 0; return false;
    }
}

bool wk_jhas_length(const wk_jvalue *value) {
    size_t n;
    return value->kind == WK_J_STRING || value->kind == WK_J_UNDEFINED || count_items(value, &n);
}

wick_status wk_jlength(wk_jinja *j, const wk_jvalue *value, size_t *length) {
    if (count_items(value, length) || value->kind != WK_J_STRING) return WICK_OK;
    *length = wk_jcount_chars(wk_jtext_str(value->string));
    return wk_jread(j, value->string.size);
}

bool wk_jis_iterable(const wk_jvalue *value) {
    return wk_jhas_length(value) || value->kind == WK_J_GENERATOR || value->kind == WK_J_LOOP;
}

bool wk_jtruth(const wk_jvalue *value) {
    size_t n;
    switch (value->kind) {
    case WK_J_ABSENT:
    case WK_J_UNDEFINED:
    case WK_J_NONE: return false;
    case WK_J_BOOL: return value->boolean;
    case WK_J_INTEGER: return value->integer != 0;
    case WK_J_FLOAT: return value->number != 0.0;
    case WK_J_STRING: return value->string.size > 0;
    default: return !count_items(value, &n) || n > 0;
    }
}

/* ---- Comparing ---- */

static bool is_sequence(const wk_jvalue *value) {
    return value->kind == WK_J_LIST || value->kind == WK_J_TUPLE;
}

static wick_status equal_lists(wk_jinja *j, const wk_jlist *a, const wk_jlist *b, bool *equal) {
    *equal = a->n == b->n;
    for (size_t i = 0; i < a->n && *equal; i++)
        WK_TRY(wk_jequal(j, &a->items[i], &b->items[i], equal));
    return WICK_OK;
}

static wick_status equal_dicts(wk_jinja *j, const wk_jdict *a, const wk_jdict *b, bool *equal) {
    *equal = a->n == b->n;
    for (size_t i = 0; i < a->n && *equal; i++) {
        wk_jvalue *other;
        WK_TRY(wk_jdict_find(j, b, &a->entries[i].key, &other));
        *equal = other != NULL;
        if (*equal) WK_TRY(wk_jequal(j, &a->entries[i].value, other, equal));
    }
    return WICK_OK;
}

/* Both of one kind that is neither a number, a string nor a container. */
static bool is_same(const wk_jvalue *a, const wk_jvalue *b) {
    switch (a->kind) {
    case WK_J_ABSENT:
    case WK_J_UNDEFINED:
    case WK_J_NONE: return true;
    case WK_J_BUILTIN:
        return a->method.builtin == b->method.builtin && a->method.self == b->method.self;
    case WK_J_RANGE:
        return a->range->n == b->range->n &&
               (a->range->n == 0 || (a->range->first == b->range->first &&
                                     (a->range->n == 1 || a->range->step == b->range->step)));
    case WK_J_MACRO: return a->macro == b->macro;
    case WK_J_LOOP: return a->loop == b->loop;
    case WK_J_CYCLER:
    case WK_J_JOINER: return a->cycle == b->cycle;
    case WK_J_NAMESPACE: return a->dict == b->dict;
    default: return a->list == b->list;
    }
}

wick_status wk_jequal(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, bool *equal) {
    WK_TRY(wk_jwork(j, 1));
    if (wk_jis_integer(a) && wk_jis_integer(b)) {
        *equal = wk_jas_integer(a) == wk_jas_integer(b);
    } else if (wk_jis_number(a) && wk_jis_number(b)) {
        *equal = wk_jas_float(a) == wk_jas_float(b);
    } else if (a->kind != b->kind) {
        *equal = false;
    } else if (a->kind == WK_J_STRING) {
        *equal = a->string.size == b->string.size;
        if (*equal) WK_TRY(wk_jread(j, a->string.size));
        *equal = wk_str_equal(wk_jtext_str(a->string), wk_jtext_str(b->string));
    } else if (is_sequence(a) || a->kind == WK_J_DICT) {
        WK_TRY(wk_jenter(j));
        WK_TRY(is_sequence(a) ? equal_lists(j, a->list, b->list, equal)
                              : equal_dicts(j, a->dict, b->dict, equal));
        j->depth--;
    } else {
        *equal = is_same(a, b);
    }
    return WICK_OK;
}

static wick_status compare_lists(wk_jinja *j, const wk_jlist *a, const wk_jlist *b,
                                 const char *sign, int *order) {
    WK_TRY(wk_jenter(j));
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        WK_TRY(wk_jequal(j, &a->items[i], &b->items[i], &equal));
        if (equal) continue;
        j->depth--;
        return wk_jcompare(j, &a->items[i], &b->items[i], sign, order);
    }
    j->depth--;
    *order = (a->n > b->n) - (a->n < b->n);
    return WICK_OK;
}

/* UTF-8 sorts by code point. */
static int compare_texts(wk_jtext a, wk_jtext b) {
    const size_t size = a.size < b.size ? a.size : b.size;
    const int order = size > 0 ? memcmp(a.text, b.text, size) : 0;
    return order != 0 ? (order > 0) - (order < 0) : (a.size > b.size) - (a.size < b.size);
}

wick_status wk_jcompare(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, const char *sign,
                        int *order) {
    WK_TRY(wk_jwork(j, 1));
    if (a->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, a);
    if (b->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, b);
    if (wk_jis_integer(a) && wk_jis_integer(b)) {
        const int64_t x = wk_jas_integer(a), y = wk_jas_integer(b);
        *order = (x > y) - (x < y);
    } else if (wk_jis_number(a) && wk_jis_number(b)) {
        const double x = wk_jas_float(a), y = wk_jas_float(b);
        *order = isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    } else if (a->kind == WK_J_STRING && b->kind == WK_J_STRING) {
        WK_TRY(wk_jread(j, a->string.size < b->string.size ? a->string.size : b->string.size));
        *order = compare_texts(a->string, b->string);
    } else if (is_sequence(a) && a->kind == b->kind) {
        return compare_lists(j, a->list, b->list, sign, order);
    } else {
        return wk_jfail(j, "'%s' not supported between instances of '%s' and '%s'", sign,
                        wk_jtype_name(a), wk_jtype_name(b));
    }
    return WICK_OK;
}

/* ---- Items ---- */

static wick_status text_items(wk_jinja *j, wk_jtext text, wk_jlist *out) {
    for (size_t at = 0; at < text.size;) {
        const size_t start = at;
        wk_jnext_char(wk_jtext_str(text), &at);
        WK_TRY(wk_jlist_push(j, out, wk_jstring(wk_jtext_part(text, start, at))));
    }
    return WICK_OK;
}

static wick_status dict_items(wk_jinja *j, wk_jkind kind, const wk_jdict *dict, wk_jlist *out) {
    for (size_t i = 0; i < dict->n; i++) {
        const wk_jentry *const entry = &dict->entries[i];
        wk_jvalue item = kind == WK_J_VALUES ? entry->value : entry->key;
        if (kind == WK_J_ITEMS) WK_TRY(wk_jpair(j, entry->key, entry->value, &item));
        WK_TRY(wk_jlist_push(j, out, item));
    }
    return WICK_OK;
}

static wick_status range_items(wk_jinja *j, const wk_jrange *range, wk_jlist *out) {
    wk_jvalue list;
    WK_TRY(wk_jlist_make(j, WK_J_LIST, range->n, &list));
    *out = *list.list;
    int64_t at = range->first;
    for (size_t i = 0; i < range->n; i++) {
        WK_TRY(wk_jlist_push(j, out, wk_jinteger(at)));
        if (i + 1 < range->n) at += range->step;
    }
    return WICK_OK;
}

wick_status wk_jnext(wk_jinja *j, wk_jgenerator *g, wk_jvalue *out, bool *found) {
    const bool is_chained = g->source.kind == WK_J_GENERATOR;
    wk_jvalue item;
    *found = false;
    WK_TRY(wk_jenter(j));
    if (g->step != NULL && !g->is_started && !is_chained && wk_jtruth(&g->source))
        WK_TRY(wk_jitems(j, &g->source, &g->items));
    g->is_started = true;
    for (bool exists = true; exists && !*found;) {
        exists = g->at < g->items.n;
        if (is_chained)
            WK_TRY(wk_jnext(j, g->source.generator, &item, &exists));
        else if (exists)
            item = g->items.items[g->at++];
        WK_TRY(wk_jwork(j, 1));
        if (g->step != NULL && exists) {
            WK_TRY(g->step(j, g, &item, out, found));
        } else if (exists) {
            *out = item;
            *found = true;
        }
    }
    j->depth--;
    return WICK_OK;
}

static wick_status rest_of(wk_jinja *j, wk_jgenerator *g, wk_jlist *out) {
    if (g->step == NULL) {
        const size_t n = g->items.n - g->at;
        *out = (wk_jlist){.items = g->items.items, .n = n, .capacity = n};
        if (n > 0) out->items += g->at; /* those of an empty list are NULL */
        g->at += n;
        return WICK_OK;
    }
    for (;;) {
        wk_jvalue item;
        bool found;
        WK_TRY(wk_jnext(j, g, &item, &found));
        if (!found) return WICK_OK;
        WK_TRY(wk_jlist_push(j, out, item));
    }
}

wick_status wk_jitems(wk_jinja *j, wk_jvalue *value, wk_jlist *out) {
    *out = (wk_jlist){.n = 0};
    switch (value->kind) {
    case WK_J_UNDEFINED: return WICK_OK;
    case WK_J_STRING: return text_items(j, value->string, out);
    case WK_J_LIST:
    case WK_J_TUPLE: *out = *value->list; return WICK_OK;
    case WK_J_GENERATOR: return rest_of(j, value->generator, out);
    case WK_J_DICT:
    case WK_J_KEYS:
    case WK_J_VALUES:
    case WK_J_ITEMS: return dict_items(j, value->kind, value->dict, out);
    case WK_J_RANGE: return range_items(j, value->range, out);
    default: return wk_jfail(j, "'%s' object is not iterable", wk_jtype_name(value));
    }
}

wick_status wk_jcontains(wk_jinja *j, const wk_jvalue *container, const wk_jvalue *item,
                         bool *contains) {
    *contains = false;
    if (container->kind == WK_J_STRING) {
        if (item->kind != WK_J_STRING)
            return wk_jfail(j, "'in <string>' requires string as left operand, not %s",
                            wk_jtype_name(item));
        size_t at;
        WK_TRY(wk_jfind_text(j, container->string, item->string, 0, &at));
        *contains = at != SIZE_MAX;
        return WICK_OK;
    }
    if (container->kind == WK_J_DICT || container->kind == WK_J_KEYS) {
        wk_jvalue *found;
        WK_TRY(wk_jdict_find(j, container->dict, item, &found));
        *contains = found != NULL;
        return WICK_OK;
    }
    if (!wk_jis_iterable(container))
        return wk_jfail(j, "argument of type '%s' is not iterable", wk_jtype_name(container));
    wk_jlist items;
    wk_jvalue copy = *container;
    for (bool found = container->kind == WK_J_GENERATOR; found;) { /* no further than needed */
        WK_TRY(wk_jnext(j, container->generator, &copy, &found));
        if (found) WK_TRY(wk_jequal(j, &copy, item, contains));
        if (*contains) return WICK_OK;
    }
    copy = *container;
    WK_TRY(wk_jitems(j, &copy, &items));
    for (size_t i = 0; i < items.n && !*contains; i++)
        WK_TRY(wk_jequal(j, &items.items[i], item, contains));
    return WICK_OK;
}
