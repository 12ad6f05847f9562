/* text/jinja/call.c: arguments, and whom they go to. */
#include "text/jinja/state.h"

#include <assert.h>
#include <string.h>

/* ---- Arguments of a call ---- */

typedef struct collected {
    wk_jlist positional;
    wk_jdict named;
} collected;

static wick_status add_star(wk_jinja *j, wk_jvalue value, collected *to) {
    wk_jlist items;
    WK_TRY(wk_jitems(j, &value, &items));
    for (size_t i = 0; i < items.n; i++) WK_TRY(wk_jlist_push(j, &to->positional, items.items[i]));
    return WICK_OK;
}

static wick_status add_named(wk_jinja *j, wk_jvalue name, wk_jvalue value, collected *to) {
    if (name.kind != WK_J_STRING) return wk_jfail(j, "keywords must be strings");
    wk_jvalue *found;
    WK_TRY(wk_jdict_find(j, &to->named, &name, &found));
    if (found != NULL)
        return wk_jfail(j, "got multiple values for keyword argument '%s'",
                        wk_str_show(wk_jtext_str(name.string)).text);
    return wk_jdict_set(j, &to->named, name, value);
}

static wick_status add_argument(wk_jinja *j, const wk_jnode *node, collected *to) {
    wk_jvalue value;
    WK_TRY(wk_jeval(j, node->first, &value));
    switch (node->op) {
    case WK_J_STAR: return add_star(j, value, to);
    case WK_J_NAMED:
        return add_named(j, wk_jstring((wk_jtext){node->name.text, node->name.size, NULL}), value,
                         to);
    case WK_J_STAR_STAR:
        if (value.kind != WK_J_DICT)
            return wk_jfail(j, "argument after ** must be a mapping, not %s",
                            wk_jtype_name(&value));
        for (size_t i = 0; i < value.dict->n; i++)
            WK_TRY(add_named(j, value.dict->entries[i].key, value.dict->entries[i].value, to));
        return WICK_OK;
    default: return wk_jlist_push(j, &to->positional, value);
    }
}

/* ---- Builtins ---- */

/* Which parameter in "old new count" is called name; -1: none. */
static int find_parameter(const char *parameters, wk_str name) {
    int i = 0;
    for (const char *at = parameters; *at != '\0'; i++) {
        const size_t size = strcspn(at, " ");
        if (wk_str_equal((wk_str){at, size}, name)) return i;
        at += size;
        at += *at == ' ';
    }
    return -1;
}

static size_t count_parameters(const char *parameters) {
    size_t n = parameters[0] != '\0';
    for (const char *at = parameters; *at != '\0'; at++) n += *at == ' ';
    return n;
}

/* Puts arguments where the builtin's parameters want them. values: [WK_J_MAX_PARAMETERS] */
static wick_status bind(wk_jinja *j, const wk_jbuiltin *builtin, const wk_jargs *args,
                        wk_jvalue *values, wk_jargs *bound) {
    const size_t n = count_parameters(builtin->parameters);
    assert(n <= WK_J_MAX_PARAMETERS && builtin->n_required <= n);
    if (args->n > n)
        return wk_jfail(j, "%s() takes at most %zu arguments (%zu given)", builtin->name, n,
                        args->n);
    for (size_t i = 0; i < n; i++)
        values[i] = i < args->n ? args->values[i] : (wk_jvalue){.kind = WK_J_ABSENT};
    for (size_t i = 0; i < wk_jn_named(args); i++) {
        const wk_str name = wk_jtext_str(args->named->entries[i].key.string);
        const int at = find_parameter(builtin->parameters, name);
        if (at < 0)
            return wk_jfail(j, "%s() got an unexpected keyword argument '%s'", builtin->name,
                            wk_str_show(name).text);
        if (values[at].kind != WK_J_ABSENT)
            return wk_jfail(j, "%s() got multiple values for argument '%s'", builtin->name,
                            wk_str_show(name).text);
        values[at] = args->named->entries[i].value;
    }
    for (size_t i = 0; i < builtin->n_required; i++) {
        if (values[i].kind == WK_J_ABSENT)
            return wk_jfail(j, "%s() takes at least %u argument(s) (%zu given)", builtin->name,
                            builtin->n_required, args->n + wk_jn_named(args));
    }
    *bound = (wk_jargs){.self = args->self, .values = values, .n = n};
    return WICK_OK;
}

/* The bytes or items of a value, roughly: what is read of it once. */
static uint64_t size_of(const wk_jvalue *value) {
    switch (value->kind) {
    case WK_J_STRING: return WK_J_CHAR * (uint64_t)value->string.size;
    case WK_J_LIST:
    case WK_J_TUPLE:
    case WK_J_GENERATOR: return WK_J_STEP * (uint64_t)value->list->n;
    case WK_J_DICT:
    case WK_J_KEYS:
    case WK_J_VALUES:
    case WK_J_ITEMS:
    case WK_J_NAMESPACE: return WK_J_STEP * (uint64_t)value->dict->n;
    case WK_J_RANGE: return WK_J_STEP * (uint64_t)value->range->n;
    default: return 0;
    }
}

static wick_status count_operands(wk_jinja *j, const wk_jargs *args) {
    if (args->self != NULL) wk_jcount(j, size_of(args->self));
    for (size_t i = 0; i < args->n; i++) wk_jcount(j, size_of(&args->values[i]));
    for (size_t i = 0; i < wk_jn_named(args); i++)
        wk_jcount(j, size_of(&args->named->entries[i].value));
    return wk_jwork(j, args->n + wk_jn_named(args));
}

wick_status wk_jcall_builtin(wk_jinja *j, const wk_jbuiltin *builtin, const wk_jargs *args,
                             wk_jvalue *out) {
    wk_jvalue values[WK_J_MAX_PARAMETERS];
    wk_jargs bound = *args;
    WK_TRY(wk_jenter(j));
    if (builtin->cost == WK_J_READS_ALL) WK_TRY(count_operands(j, args));
    if (builtin->parameters != NULL) WK_TRY(bind(j, builtin, args, values, &bound));
    WK_TRY(builtin->call(j, &bound, out));
    j->depth--;
    return WICK_OK;
}

/* What methods of markup give is markup. */
static void mark(wk_jvalue *value) {
    if (value->kind == WK_J_STRING) value->is_markup = true;
    if (value->kind != WK_J_LIST && value->kind != WK_J_TUPLE) return;
    for (size_t i = 0; i < value->list->n; i++) {
        if (value->list->items[i].kind == WK_J_STRING) value->list->items[i].is_markup = true;
    }
}

static wick_status call_joiner(const wk_jvalue *joiner, wk_jvalue *out) {
    *out = joiner->cycle->at++ == 0 ? wk_jliteral("") : joiner->cycle->items.items[0];
    return WICK_OK;
}

static wick_status call_value(wk_jinja *j, const wk_jvalue *callee, const wk_jargs *args,
                              wk_jvalue *out) {
    switch (callee->kind) {
    case WK_J_UNDEFINED: return wk_jfail_undefined(j, callee);
    case WK_J_MACRO: return wk_jcall_macro(j, callee->macro, args, out);
    case WK_J_LOOP: return wk_jcall_loop(j, callee->loop, args, out);
    case WK_J_JOINER: return call_joiner(callee, out);
    case WK_J_BUILTIN: break;
    default: return wk_jfail(j, "'%s' object is not callable", wk_jtype_name(callee));
    }
    wk_jargs with_self = *args;
    with_self.self = callee->method.self;
    WK_TRY(wk_jcall_builtin(j, callee->method.builtin, &with_self, out));
    if (with_self.self != NULL && with_self.self->kind == WK_J_STRING && with_self.self->is_markup)
        mark(out);
    return WICK_OK;
}

wick_status wk_jcall_node(wk_jinja *j, const wk_jnode *call, const wk_jvalue *callee,
                          const wk_jvalue *self, const wk_jbuiltin *builtin, wk_jvalue *out) {
    collected given = {.positional = {.n = 0}};
    for (const wk_jnode *node = call->list; node != NULL; node = node->next)
        WK_TRY(add_argument(j, node, &given));
    const wk_jargs args = {.self = self,
                           .values = given.positional.items,
                           .n = given.positional.n,
                           .named = &given.named};
    j->line = call->line;
    return builtin != NULL ? wk_jcall_builtin(j, builtin, &args, out)
                           : call_value(j, callee, &args, out);
}

/* ---- Finding them ---- */

static const wk_jbuiltin *find(const wk_jbuiltin *table, size_t n, wk_str name) {
    for (size_t i = 0; i < n; i++) {
        if (wk_str_is(name, table[i].name)) return &table[i];
    }
    return NULL;
}

const wk_jbuiltin *wk_jfind_filter(wk_str name) {
    const wk_jtable *const tables[] = {&wk_jstring_filters, &wk_jlist_filters, &wk_jselect_filters,
                                       &wk_jnumber_filters};
    const wk_jbuiltin *found = NULL;
    for (size_t i = 0; i < WK_COUNT(tables) && found == NULL; i++)
        found = find(tables[i]->items, tables[i]->n, name);
    return found;
}

const wk_jbuiltin *wk_jfind_test(wk_str name) {
    return find(wk_jtest_table.items, wk_jtest_table.n, name);
}

const wk_jbuiltin *wk_jfind_function(wk_str name) {
    return find(wk_jfunction_table.items, wk_jfunction_table.n, name);
}

const wk_jbuiltin *wk_jfind_method(const wk_jvalue *value, wk_str name) {
    const wk_jtable *table = NULL;
    switch (value->kind) {
    case WK_J_STRING: table = &wk_jstring_methods; break;
    case WK_J_LIST: table = &wk_jlist_methods; break;
    case WK_J_TUPLE: table = &wk_jtuple_methods; break;
    case WK_J_DICT: table = &wk_jdict_methods; break;
    case WK_J_INTEGER: table = &wk_jinteger_methods; break;
    case WK_J_FLOAT: table = &wk_jfloat_methods; break;
    case WK_J_LOOP: table = &wk_jloop_methods; break;
    case WK_J_CYCLER: table = &wk_jcycler_methods; break;
    default: return NULL;
    }
    const wk_jbuiltin *const found = find(table->items, table->n, name);
    if (found != NULL || table != &wk_jstring_methods) return found;
    return find(wk_jstring_predicates.items, wk_jstring_predicates.n, name);
}

/* ---- What builtins read their arguments with ---- */

wick_status wk_jarg_text(wk_jinja *j, const wk_jargs *args, size_t i, const char *fallback,
                         wk_jtext *out) {
    *out = wk_jtext_of(fallback != NULL ? fallback : "");
    return wk_jhas(args, i) ? wk_jstr(j, &args->values[i], out) : WICK_OK;
}

wick_status wk_jarg_integer(wk_jinja *j, const wk_jargs *args, size_t i, int64_t fallback,
                            int64_t *out) {
    *out = fallback;
    if (!wk_jhas(args, i)) return WICK_OK;
    if (args->values[i].kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, &args->values[i]);
    if (!wk_jis_integer(&args->values[i]))
        return wk_jfail(j, "'%s' object cannot be interpreted as an integer",
                        wk_jtype_name(&args->values[i]));
    *out = wk_jas_integer(&args->values[i]);
    return WICK_OK;
}

bool wk_jarg_truth(const wk_jargs *args, size_t i, bool fallback) {
    return wk_jhas(args, i) ? wk_jtruth(&args->values[i]) : fallback;
}
