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

/* Finds the filter or test that the argument at i names, and calls it for an item with the
 * arguments after it. */
static wick_status call_named(wk_jinja *j, wk_jgenerator *g, size_t i, bool is_test,
                              const wk_jvalue *item, wk_jvalue *out) {
    const char *const what = is_test ? "test" : "filter";
    wk_jargs args = g->args;
    if (g->called == NULL) {
        if (args.values[i].kind != WK_J_STRING)
            return wk_jfail(j, "the name of a %s must be a text", what);
        const wk_str name = wk_jtext_str(args.values[i].string);
        g->called = is_test ? wk_jfind_test(name) : wk_jfind_filter(name);
        if (g->called == NULL)
            return wk_jfail(j, "No %s named '%s'.", what, wk_str_show(name).text);
    }
    args.self = item;
    args.values += i + 1;
    args.n -= i + 1;
    return wk_jcall_builtin(j, g->called, &args, out);
}

/* map(attribute="a", default=1), or map("filter", arguments) */
static wick_status map_item(wk_jinja *j, wk_jgenerator *g, const wk_jvalue *item, wk_jvalue *out,
                            bool *yields) {
    wk_jvalue path, fallback;
    *yields = true;
    if (g->args.n > 0) return call_named(j, g, 0, false, item, out);
    WK_TRY(named(j, &g->args, "attribute", &path));
    WK_TRY(named(j, &g->args, "default", &fallback));
    if (path.kind == WK_J_ABSENT) return wk_jfail(j, "map requires a filter argument");
    return wk_jpath(j, item, &path, &fallback, out);
}

/* The items, or their attributes, for which the test of the next argument holds, or that are true
 * where there is none. */
static wick_status pick_item(wk_jinja *j, wk_jgenerator *g, const wk_jvalue *item, wk_jvalue *out,
                             bool *yields) {
    wk_jvalue value = *item, result;
    if (g->by_attribute && g->args.n == 0)
        return wk_jfail(j, "Missing parameter for attribute name");
    if (g->by_attribute) WK_TRY(wk_jpath(j, item, &g->args.values[0], NULL, &value));
    result = value;
    if (g->args.n > g->by_attribute)
        WK_TRY(call_named(j, g, g->by_attribute, true, &value, &result));
    *yields = wk_jtruth(&result) == g->wanted;
    *out = *item;
    return WICK_OK;
}

static wick_status generate(wk_jinja *j, const wk_jargs *args, bool by_attribute, bool wanted,
                            wk_jvalue *out) {
    WK_TRY(wk_jlist_make(j, WK_J_GENERATOR, 0, out));
    wk_jgenerator *const g = out->generator;
    g->step = pick_item;
    g->by_attribute = by_attribute;
    g->wanted = wanted;
    g->source = *args->self;
    g->args = *args;
    if (args->named != NULL) g->named = *args->named; /* theirs ends with the call */
    g->args.named = &g->named;
    return WICK_OK;
}
static wick_status f_map(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(generate(j, args, false, true, out));
    out->generator->step = map_item;
    return WICK_OK;
}
static wick_status f_select(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return generate(j, args, false, true, out);
}
static wick_status f_reject(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return generate(j, args, false, false, out);
}
static wick_status f_selectattr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return generate(j, args, true, true, out);
}
static wick_status f_rejectattr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return generate(j, args, true, false, out);
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
