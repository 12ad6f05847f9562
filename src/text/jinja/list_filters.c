/* text/jinja/list_filters.c: filters over whatever has items. */
#include "text/jinja/list.h"

#include "text/jinja/chars.h"
#include "text/jinja/strings.h"

#include <string.h>

wick_status wk_jself_items(wk_jinja *j, const wk_jargs *args, wk_jlist *out) {
    wk_jvalue self = *args->self;
    return wk_jitems(j, &self, out);
}

/* One step of a path. */
static wick_status item_or(wk_jinja *j, wk_jvalue of, const wk_jvalue *part,
                           const wk_jvalue *fallback, wk_jvalue *out) {
    WK_TRY(wk_jitem(j, &of, part, out));
    if (out->kind == WK_J_UNDEFINED && fallback != NULL && fallback->kind > WK_J_NONE)
        *out = *fallback;
    return WICK_OK;
}

wick_status wk_jpath(wk_jinja *j, const wk_jvalue *item, const wk_jvalue *path,
                     const wk_jvalue *fallback, wk_jvalue *out) {
    *out = *item;
    if (path->kind == WK_J_ABSENT || path->kind == WK_J_NONE) return WICK_OK;
    if (path->kind != WK_J_STRING) return item_or(j, *item, path, fallback, out);
    const wk_jtext text = path->string;
    WK_TRY(wk_jread(j, WK_J_CHAR * text.size));
    for (size_t from = 0; from <= text.size;) {
        const char *const dot =
            from < text.size ? memchr(text.text + from, '.', text.size - from) : NULL;
        const size_t to = dot != NULL ? (size_t)(dot - text.text) : text.size;
        wk_jvalue part = wk_jstring(wk_jtext_part(text, from, to));
        int64_t index = 0;
        bool is_index = to > from && to - from < 10;
        for (size_t i = from; i < to && is_index; i++) {
            is_index = text.text[i] >= '0' && text.text[i] <= '9';
            index = index * 10 + (text.text[i] - '0');
        }
        if (is_index) part = wk_jinteger(index);
        WK_TRY(item_or(j, *out, &part, fallback, out));
        from = to + 1;
    }
    return WICK_OK;
}

/* What items are compared by: strings without their case. */
wick_status wk_jfolded(wk_jinja *j, wk_jvalue *key, bool case_sensitive) {
    if (case_sensitive || key->kind != WK_J_STRING) return WICK_OK;
    return wk_jletters_of(j, key->string, WK_J_LOWER_CASE, key);
}

/* ---- Sorting ---- */

typedef struct keyed {
    wk_jvalue key, item;
} keyed;

static wick_status is_before(wk_jinja *j, const keyed *a, const keyed *b, const wk_jsorting *by,
                             bool *out) {
    int order;
    bool is_equal = false;
    if (by->skips_equal) WK_TRY(wk_jequal(j, &a->key, &b->key, &is_equal));
    *out = false;
    if (is_equal) return WICK_OK;
    WK_TRY(by->reverse ? wk_jcompare(j, &b->key, &a->key, "<", &order)
                       : wk_jcompare(j, &a->key, &b->key, "<", &order));
    *out = order == -1;
    return WICK_OK;
}

/* Merges from [first, middle) and [middle, last) of from to to: equal ones stay in order. */
static wick_status merge(wk_jinja *j, const keyed *from, size_t first, size_t middle, size_t last,
                         const wk_jsorting *by, keyed *to) {
    size_t a = first, b = middle;
    for (size_t i = first; i < last; i++) {
        bool takes_b = a == middle;
        if (a < middle && b < last) WK_TRY(is_before(j, &from[b], &from[a], by, &takes_b));
        to[i] = from[takes_b ? b++ : a++];
    }
    return WICK_OK;
}

static wick_status merge_sort(wk_jinja *j, keyed *items, size_t n, const wk_jsorting *by) {
    keyed *from = items, *to = wk_jalloc(j, n, sizeof *to);
    if (to == NULL) return WICK_ERR_VALUE;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t first = 0; first < n; first += 2 * width) {
            const size_t middle = first + width < n ? first + width : n;
            const size_t last = middle + width < n ? middle + width : n;
            WK_TRY(merge(j, from, first, middle, last, by, to));
        }
        keyed *const other = from;
        from = to;
        to = other;
    }
    if (from != items && n > 0) memcpy(items, from, n * sizeof *items);
    return WICK_OK;
}

/* The path "a,b.c" is of several keys, the first counts most. */
static wick_status sort_key(wk_jinja *j, const wk_jvalue *item, const wk_jsorting *by,
                            wk_jvalue *out) {
    const wk_jvalue *const paths = by->path;
    if (paths->kind == WK_J_STRING) WK_TRY(wk_jread(j, paths->string.size));
    if (paths->kind != WK_J_STRING || !memchr(paths->string.text, ',', paths->string.size)) {
        WK_TRY(wk_jpath(j, item, paths, by->fallback, out));
        return wk_jfolded(j, out, by->case_sensitive);
    }
    wk_jtext rest = paths->string;
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, 2, out));
    for (;;) {
        const char *const comma = rest.size > 0 ? memchr(rest.text, ',', rest.size) : NULL;
        const size_t to = comma != NULL ? (size_t)(comma - rest.text) : rest.size;
        const wk_jvalue path = wk_jstring(wk_jtext_part(rest, 0, to));
        wk_jvalue part;
        WK_TRY(wk_jpath(j, item, &path, NULL, &part));
        WK_TRY(wk_jfolded(j, &part, by->case_sensitive));
        WK_TRY(wk_jlist_push(j, out->list, part));
        if (comma == NULL) return WICK_OK;
        rest = wk_jtext_part(rest, to + 1, rest.size);
    }
}

wick_status wk_jsorted(wk_jinja *j, const wk_jlist *items, const wk_jsorting *by, wk_jvalue *out) {
    keyed *const keys = wk_jalloc(j, items->n, sizeof *keys);
    if (keys == NULL) return WICK_ERR_VALUE;
    for (size_t i = 0; i < items->n; i++) {
        keys[i].item = items->items[i];
        WK_TRY(sort_key(j, &items->items[i], by, &keys[i].key));
    }
    WK_TRY(merge_sort(j, keys, items->n, by));
    WK_TRY(wk_jlist_make(j, WK_J_LIST, items->n, out));
    for (size_t i = 0; i < items->n; i++) WK_TRY(wk_jlist_push(j, out->list, keys[i].item));
    return WICK_OK;
}

static wick_status f_sort(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    WK_TRY(wk_jself_items(j, args, &items));
    const wk_jsorting by = {.path = &args->values[2],
                            .case_sensitive = wk_jarg_truth(args, 1, false),
                            .reverse = wk_jarg_truth(args, 0, false),
                            .skips_equal = true};
    return wk_jsorted(j, &items, &by, out);
}

static wick_status f_dictsort(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    if (args->self->kind != WK_J_DICT)
        return args->self->kind == WK_J_UNDEFINED
                   ? wk_jfail_undefined(j, args->self)
                   : wk_jfail(j, "'%s object' has no attribute 'items'", wk_jtype_name(args->self));
    bool by_value = false;
    if (wk_jhas(args, 1)) {
        const wk_jvalue *const by = &args->values[1];
        by_value = by->kind == WK_J_STRING && wk_jtext_is(by->string, "value");
        if (!by_value && !(by->kind == WK_J_STRING && wk_jtext_is(by->string, "key")))
            return wk_jfail(j, "You can only sort by either \"key\" or \"value\"");
    }
    wk_jvalue pairs = *args->self;
    wk_jlist items;
    pairs.kind = WK_J_ITEMS;
    WK_TRY(wk_jitems(j, &pairs, &items));
    const wk_jvalue path = wk_jinteger(by_value ? 1 : 0);
    const wk_jsorting by = {.path = &path,
                            .case_sensitive = wk_jarg_truth(args, 0, false),
                            .reverse = wk_jarg_truth(args, 2, false)};
    return wk_jsorted(j, &items, &by, out);
}

/* Pairs of a value and the items that have it, by value. */
static wick_status f_groupby(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue sorted, before = {.kind = WK_J_ABSENT};
    const wk_jsorting by = {.path = &args->values[0],
                            .fallback = &args->values[1],
                            .case_sensitive = wk_jarg_truth(args, 2, false)};
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jsorted(j, &items, &by, &sorted));
    WK_TRY(wk_jlist_make(j, WK_J_LIST, 0, out));
    for (size_t i = 0; i < sorted.list->n; i++) {
        wk_jvalue shown, key, group;
        bool equal = false;
        WK_TRY(wk_jpath(j, &sorted.list->items[i], by.path, by.fallback, &shown));
        key = shown;
        WK_TRY(wk_jfolded(j, &key, by.case_sensitive));
        if (before.kind != WK_J_ABSENT) WK_TRY(wk_jequal(j, &key, &before, &equal));
        if (!equal) {
            WK_TRY(wk_jlist_make(j, WK_J_LIST, 1, &group));
            WK_TRY(wk_jpair(j, shown, group, &group));
            group.is_markup = true;
            WK_TRY(wk_jlist_push(j, out->list, group));
            before = key;
        }
        const wk_jvalue *const last = &out->list->items[out->list->n - 1];
        WK_TRY(wk_jlist_push(j, last->list->items[1].list, sorted.list->items[i]));
    }
    return WICK_OK;
}

static wick_status f_unique(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue seen;
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jdict_make(j, WK_J_DICT, &seen));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue key, *found;
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[1], NULL, &key));
        WK_TRY(wk_jfolded(j, &key, wk_jarg_truth(args, 0, false)));
        WK_TRY(wk_jdict_find(j, seen.dict, &key, &found));
        if (found != NULL) continue;
        WK_TRY(wk_jdict_set(j, seen.dict, key, wk_jnone()));
        WK_TRY(wk_jlist_push(j, out->list, items.items[i]));
    }
    return WICK_OK;
}

/* ---- Picking ---- */

/* Nothing else of a string is looked at. */
static wick_status f_first(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue self = *args->self;
    size_t end = 0;
    bool found = false;
    if (self.kind == WK_J_GENERATOR) {
        WK_TRY(wk_jnext(j, self.generator, out, &found));
        if (found) return WICK_OK;
    }
    if (self.kind == WK_J_STRING && self.string.size > 0) {
        wk_jnext_char(wk_jtext_str(self.string), &end);
        *out = wk_jstring(wk_jtext_part(self.string, 0, end));
        return WICK_OK;
    }
    WK_TRY(wk_jitems(j, &self, &items));
    if (items.n == 0) return wk_jundefined(j, NULL, wk_jtext_of("first item"), out);
    *out = items.items[0];
    return WICK_OK;
}

static wick_status f_last(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    if (args->self->kind == WK_J_GENERATOR)
        return wk_jfail(j, "'generator' object is not reversible");
    WK_TRY(wk_jself_items(j, args, &items));
    if (items.n == 0) return wk_jundefined(j, NULL, wk_jtext_of("last item"), out);
    *out = items.items[items.n - 1];
    return WICK_OK;
}

static wick_status f_length(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    size_t length;
    if (!wk_jhas_length(args->self))
        return wk_jfail(j, "object of type '%s' has no len()", wk_jtype_name(args->self));
    WK_TRY(wk_jlength(j, args->self, &length));
    *out = wk_jinteger((int64_t)length);
    return WICK_OK;
}

static wick_status f_list(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jlist_make(j, WK_J_LIST, items.n, out));
    for (size_t i = 0; i < items.n; i++) WK_TRY(wk_jlist_push(j, out->list, items.items[i]));
    return WICK_OK;
}

static wick_status f_items(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jvalue self = *args->self;
    if (self.kind != WK_J_UNDEFINED && self.kind != WK_J_DICT)
        return wk_jfail(j, "Can only get item pairs from a mapping.");
    if (self.kind == WK_J_DICT) self.kind = WK_J_ITEMS;
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    return wk_jitems(j, &self, out->list);
}

static wick_status f_reverse(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    WK_TRY(wk_jself_items(j, args, &items));
    if (args->self->kind == WK_J_STRING) {
        wk_jbuilder made = wk_jbuilder_begin(j);
        for (size_t i = items.n; i > 0; i--) wk_jput(&made, items.items[i - 1].string);
        return wk_jbuilder_end(&made, out);
    }
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, items.n, out));
    for (size_t i = items.n; i > 0; i--) WK_TRY(wk_jlist_push(j, out->list, items.items[i - 1]));
    return WICK_OK;
}

static wick_status f_random(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return f_first(j, args, out); /* a rendering is the same each time */
}

static wick_status f_join(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jtext separator;
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jarg_text(j, args, 0, "", &separator));
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue item;
        WK_TRY(wk_jpath(j, &items.items[i], &args->values[1], NULL, &item));
        if (i > 0) wk_jput(&made, separator);
        wk_jput_str(&made, &item);
    }
    return wk_jbuilder_end(&made, out);
}

/* ---- Cutting up ---- */

static wick_status f_batch(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue row = {.kind = WK_J_ABSENT};
    int64_t size;
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jarg_integer(j, args, 0, 1, &size));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    for (size_t i = 0; i < items.n; i++) {
        if (row.kind == WK_J_ABSENT || (int64_t)row.list->n == size) {
            WK_TRY(wk_jlist_make(j, WK_J_LIST, 0, &row));
            WK_TRY(wk_jlist_push(j, out->list, row));
        }
        WK_TRY(wk_jlist_push(j, row.list, items.items[i]));
    }
    const bool fills = wk_jhas(args, 1) && args->values[1].kind != WK_J_NONE;
    while (fills && row.kind != WK_J_ABSENT && (int64_t)row.list->n < size)
        WK_TRY(wk_jlist_push(j, row.list, args->values[1]));
    return WICK_OK;
}

static wick_status f_slice(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    int64_t n;
    WK_TRY(wk_jself_items(j, args, &items));
    WK_TRY(wk_jarg_integer(j, args, 0, 1, &n));
    if (n == 0) return wk_jfail(j, "integer division or modulo by zero");
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    const bool fills = wk_jhas(args, 1) && args->values[1].kind != WK_J_NONE;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        wk_jvalue column;
        const size_t size = items.n / (size_t)n + ((size_t)i < items.n % (size_t)n);
        WK_TRY(wk_jlist_make(j, WK_J_LIST, size, &column));
        for (size_t k = 0; k < size; k++) WK_TRY(wk_jlist_push(j, column.list, items.items[at++]));
        if (fills && (size_t)i >= items.n % (size_t)n)
            WK_TRY(wk_jlist_push(j, column.list, args->values[1]));
        WK_TRY(wk_jlist_push(j, out->list, column));
    }
    return WICK_OK;
}

static const wk_jbuiltin filters[] = {
    {"sort", f_sort, "reverse case_sensitive attribute", 0, WK_J_READS_ALL},
    {"dictsort", f_dictsort, "case_sensitive by reverse", 0, WK_J_READS_ALL},
    {"groupby", f_groupby, "attribute default case_sensitive", 1, WK_J_READS_ALL},
    {"unique", f_unique, "case_sensitive attribute", 0, WK_J_READS_ALL},
    {"first", f_first, "", 0, WK_J_COUNTS},
    {"last", f_last, "", 0, WK_J_COUNTS},
    {"length", f_length, "", 0, WK_J_COUNTS},
    {"count", f_length, "", 0, WK_J_COUNTS},
    {"list", f_list, "", 0, WK_J_COUNTS},
    {"items", f_items, "", 0, WK_J_COUNTS},
    {"reverse", f_reverse, "", 0, WK_J_READS_ALL},
    {"random", f_random, "", 0, WK_J_COUNTS},
    {"join", f_join, "d attribute", 0, WK_J_READS_ALL},
    {"batch", f_batch, "linecount fill_with", 1, WK_J_READS_ALL},
    {"slice", f_slice, "slices fill_with", 1, WK_J_READS_ALL},
};
const wk_jtable wk_jlist_filters = {filters, WK_COUNT(filters)};
