/* text/jinja/select_filters.c: filters that take the name of another filter, a test or an
 * attribute.
 */
#include "text/jinja/list.h"

static wk_jvalue named(const wk_jargs *args, const char *name) {
    for (size_t i = 0; i < args->n_named; i++) {
        if (wk_jtext_is(args->named[i].key.string, name)) return args->named[i].value;
    }
    return (wk_jvalue){.kind = WK_J_ABSENT};
}

/* map(attribute="a", default=1), or map("filter", arguments) */
static wick_status map_item(wk_jinja *j, const wk_jargs *args, const wk_jvalue *item,
                            wk_jvalue *out) {
    const wk_jvalue path = named(args, "attribute"), fallback = named(args, "default");
    if (args->n == 0) {
        WK_TRY(wk_jpath(j, item, &path, out));
        if (out->kind == WK_J_UNDEFINED && fallback.kind != WK_J_ABSENT) *out = fallback;
        return WICK_OK;
    }
    if (args->values[0].kind != WK_J_STRING)
        return wk_jfail(j, "map requires the name of a filter");
    const wk_str name = wk_jtext_str(args->values[0].string);
    const wk_jbuiltin *const filter = wk_jfind_filter(name);
    if (filter == NULL) return wk_jfail(j, "No filter named '%s'.", wk_str_show(name).text);
    const wk_jargs rest = {.self = item,
                           .values = args->values + 1,
                           .n = args->n - 1,
                           .named = args->named,
                           .n_named = args->n_named};
    return wk_jcall_builtin(j, filter, &rest, out);
}

/* What is false has none, whether it can be looped over or not. */
static wick_status items_if_true(wk_jinja *j, const wk_jargs *args, wk_jlist *out) {
    *out = (wk_jlist){.n = 0};
    return wk_jtruth(args->self) ? wk_jself_items(j, args, out) : WICK_OK;
}

static wick_status f_map(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    if (args->n == 0 && named(args, "attribute").kind == WK_J_ABSENT)
        return wk_jfail(j, "map requires a filter argument");
    WK_TRY(items_if_true(j, args, &items));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, items.n, out));
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue mapped;
        WK_TRY(map_item(j, args, &items.items[i], &mapped));
        WK_TRY(wk_jlist_push(j, out->list, mapped));
    }
    return WICK_OK;
}

/* Whether the test that args name from their n_before-th on holds; without one, whether it is true.
 */
static wick_status passes(wk_jinja *j, const wk_jargs *args, size_t n_before,
                          const wk_jvalue *value, bool *out) {
    *out = wk_jtruth(value);
    if (args->n <= n_before) return WICK_OK;
    if (args->values[n_before].kind != WK_J_STRING)
        return wk_jfail(j, "the name of a test must be a text");
    const wk_str name = wk_jtext_str(args->values[n_before].string);
    const wk_jbuiltin *const test = wk_jfind_test(name);
    if (test == NULL) return wk_jfail(j, "No test named '%s'.", wk_str_show(name).text);
    const wk_jargs rest = {.self = value,
                           .values = args->values + n_before + 1,
                           .n = args->n - n_before - 1,
                           .named = args->named,
                           .n_named = args->n_named};
    wk_jvalue result;
    WK_TRY(wk_jcall_builtin(j, test, &rest, &result));
    *out = wk_jtruth(&result);
    return WICK_OK;
}

static wick_status pick(wk_jinja *j, const wk_jargs *args, bool by_attribute, bool wanted,
                        wk_jvalue *out) {
    wk_jlist items;
    if (by_attribute && args->n == 0) return wk_jfail(j, "Missing parameter for attribute name");
    WK_TRY(items_if_true(j, args, &items));
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    for (size_t i = 0; i < items.n; i++) {
        wk_jvalue value = items.items[i];
        bool holds;
        if (by_attribute) WK_TRY(wk_jpath(j, &items.items[i], &args->values[0], &value));
        WK_TRY(passes(j, args, by_attribute, &value, &holds));
        if (holds == wanted) WK_TRY(wk_jlist_push(j, out->list, items.items[i]));
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
    {"map", f_map, NULL, 0},
    {"select", f_select, NULL, 0},
    {"reject", f_reject, NULL, 0},
    {"selectattr", f_selectattr, NULL, 0},
    {"rejectattr", f_rejectattr, NULL, 0},
    {"default", f_default, "default_value boolean", 0},
    {"d", f_default, "default_value boolean", 0},
    {"attr", f_attr, "name", 1},
};
const wk_jtable wk_jselect_filters = {filters, WK_COUNT(filters)};
