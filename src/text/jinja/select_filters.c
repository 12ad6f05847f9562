/* text/jinja/select_filters.c: filters that take the name of another filter, a test or an
 * attribute.
 */
#include "text/jinja/list.h"

static wick_status named(wk_jinja *j, const wk_jargs *args, const char *name, wk_jvalue *out) {
    wk_jvalue *found = NULL;
    if (args->named != NULL) WK_TRY(wk_jdict_named(j, args->named, wk_str_of(name), &found));
    *out = found != NULL ? *found : (wk_jvalue){.kind = WK_J_ABSENT};
    return WICK_OK;
}

/* What is false has none, whether it can be looped over or not. */
static wick_status items_if_true(wk_jinja *j, const wk_jargs *args, wk_jlist *out) {
    *out = (wk_jlist){.n = 0};
    return wk_jtruth(args->self) ? wk_jself_items(j, args, out) : WICK_OK;
}

/* A filter or a test for each item, with the arguments after its name. */
typedef struct called {
    const wk_jbuiltin *builtin;
    wk_jargs args;
} called;

/* By the argument at i. */
static wick_status find_called(wk_jinja *j, const wk_jargs *args, size_t i, bool is_test,
                               called *out) {
    const char *const what = is_test ? "test" : "filter";
    if (args->values[i].kind != WK_J_STRING)
        return wk_jfail(j, "the name of a %s must be a text", what);
    const wk_str name = wk_jtext_str(args->values[i].string);
    out->builtin = is_test ? wk_jfind_test(name) : wk_jfind_filter(name);
    if (out->builtin == NULL) return wk_jfail(j, "No %s named '%s'.", what, wk_str_show(name).text);
    out->args = *args;
    out->args.values += i + 1;
    out->args.n -= i + 1;
    return WICK_OK;
}

static wick_status call_for(wk_jinja *j, called *c, const wk_jvalue *item, wk_jvalue *out) {
    c->args.self = item;
    return wk_jcall_builtin(j, c->builtin, &c->args, out);
}

/* map(attribute="a", default=1), or map("filter", arguments) */
static wick_status f_map(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue path, fallback;
    called filter;
    WK_TRY(named(j, args, "attribute", &path));
    WK_TRY(named(j, args, "default", &fallback));
    if (args->n == 0 && path.kind == WK_J_ABSENT)
        return wk_jfail(j, "map requires a filter argument");
    WK_TRY(items_if_true(j, args, &items));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, items.n, out));
    if (items.n > 0 && args->n > 0) WK_TRY(find_called(j, args, 0, false, &filter));
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue mapped;
        WK_TRY(args->n > 0 ? call_for(j, &filter, &items.items[i], &mapped)
                           : wk_jpath(j, &items.items[i], &path, &mapped));
        const bool is_missing = args->n == 0 && mapped.kind == WK_J_UNDEFINED;
        if (is_missing && fallback.kind != WK_J_ABSENT) mapped = fallback;
        WK_TRY(wk_jlist_push(j, out->list, mapped));
    }
    return WICK_OK;
}

/* The items, or their attributes, for which the test of the next argument holds, or that are true
 * where there is none. */
static wick_status pick(wk_jinja *j, const wk_jargs *args, bool by_attribute, bool wanted,
                        wk_jvalue *out) {
    wk_jlist items;
    called test;
    const bool has_test = args->n > (by_attribute ? 1 : 0);
    if (by_attribute && args->n == 0) return wk_jfail(j, "Missing parameter for attribute name");
    WK_TRY(items_if_true(j, args, &items));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    if (items.n > 0 && has_test) WK_TRY(find_called(j, args, by_attribute, true, &test));
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue value = items.items[i], result;
        WK_TRY(wk_jwork(j, 1));
        if (by_attribute) WK_TRY(wk_jpath(j, &items.items[i], &args->values[0], &value));
        result = value;
        if (has_test) WK_TRY(call_for(j, &test, &value, &result));
        if (wk_jtruth(&result) == wanted) WK_TRY(wk_jlist_push(j, out->list, items.items[i]));
    }
    return WICK_OK;
}
static wick_status f_select(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pick(j, args, false, true, out);
}
static wick_status f_reject(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pick(j, args, false, false, out);
}
static wick_status f_selectattr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pick(j, args, true, true, out);
}
static wick_status f_rejectattr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pick(j, args, true, false, out);
}

static wick_status f_default(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    const bool is_missing = args->self->kind == WK_J_UNDEFINED ||
                            (wk_jarg_truth(args, 1, false) && !wk_jtruth(args->self));
    *out = !is_missing ? *args->self : wk_jhas(args, 0) ? args->values[0] : wk_jliteral("");
    return WICK_OK;
}

static wick_status f_attr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext name;
    WK_TRY(wk_jarg_text(j, args, 0, NULL, &name));
    if (args->self->kind != WK_J_DICT) return wk_jattribute(j, args->self, name, out);
    /* Methods, and no members. */
    const wk_jvalue empty = {.kind = WK_J_DICT, .dict = &(wk_jdict){.n = 0}};
    WK_TRY(wk_jattribute(j, &empty, name, out));
    return out->kind == WK_J_UNDEFINED ? WICK_OK : wk_jattribute(j, args->self, name, out);
}

static const wk_jbuiltin filters[] = {
    {"map", f_map, NULL, 0, WK_J_COUNTS},
    {"select", f_select, NULL, 0, WK_J_COUNTS},
    {"reject", f_reject, NULL, 0, WK_J_COUNTS},
    {"selectattr", f_selectattr, NULL, 0, WK_J_COUNTS},
    {"rejectattr", f_rejectattr, NULL, 0, WK_J_COUNTS},
    {"default", f_default, "default_value boolean", 0, WK_J_COUNTS},
    {"d", f_default, "default_value boolean", 0, WK_J_COUNTS},
    {"attr", f_attr, "name", 1, WK_J_COUNTS},
};
const wk_jtable wk_jselect_filters = {filters, WK_COUNT(filters)};
