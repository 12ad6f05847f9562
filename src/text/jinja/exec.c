/* text/jinja/exec.c: statements. */
#include "text/jinja/format.h"
#include "text/jinja/state.h"

#include <string.h>

/* ---- Scopes ---- */

wick_status wk_jscope_push(wk_jinja *j, wk_jscope *parent) {
    wk_jscope *scope = j->unused;
    if (scope != NULL) {
        j->unused = scope->parent;
        wk_jdict_clear(j, &scope->variables);
    } else {
        scope = wk_jalloc(j, 1, sizeof *scope);
        if (scope == NULL) return WICK_ERR_VALUE;
        scope->variables = (wk_jdict){.entries = scope->first, .capacity = WK_COUNT(scope->first)};
        scope->is_kept = false;
    }
    scope->parent = parent;
    j->scope = scope;
    return wk_jwork(j, 1);
}

void wk_jscope_pop(wk_jinja *j, wk_jscope *before) {
    wk_jscope *const scope = j->scope;
    j->scope = before;
    if (scope->is_kept) return;
    scope->parent = j->unused;
    j->unused = scope;
}

void wk_jscope_keep(wk_jscope *scope) {
    for (; scope != NULL && !scope->is_kept; scope = scope->parent) scope->is_kept = true;
}

wick_status wk_jassign(wk_jinja *j, wk_str name, wk_jvalue value) {
    const wk_jvalue key = wk_jstring((wk_jtext){name.text, name.size, NULL});
    return wk_jdict_set(j, &j->scope->variables, key, value);
}

static wick_status assign_attribute(wk_jinja *j, const wk_jnode *target, wk_jvalue value) {
    wk_jvalue space;
    WK_TRY(wk_jlookup(j, target->name, &space));
    if (space.kind != WK_J_NAMESPACE)
        return wk_jfail(j, "cannot assign attribute on non-namespace object");
    WK_TRY(wk_jcheck_space_name(j, &target->value));
    return wk_jdict_set(j, space.dict, target->value, value);
}

wick_status wk_jassign_target(wk_jinja *j, const wk_jnode *target, wk_jvalue value) {
    if (target->kind == WK_J_NAME) return wk_jassign(j, target->name, value);
    if (target->kind == WK_J_SPACE_NAME) return assign_attribute(j, target, value);
    size_t n = 0;
    wk_jlist items;
    for (const wk_jnode *part = target->list; part != NULL; part = part->next) n++;
    if (value.kind == WK_J_UNDEFINED && value.missing == NULL) return wk_jfail_undefined(j, &value);
    WK_TRY(wk_jitems(j, &value, &items));
    if (items.n > n) return wk_jfail(j, "too many values to unpack (expected %zu)", n);
    if (items.n < n)
        return wk_jfail(j, "not enough values to unpack (expected %zu, got %zu)", n, items.n);
    size_t i = 0;
    for (const wk_jnode *part = target->list; part != NULL; part = part->next)
        WK_TRY(wk_jassign_target(j, part, items.items[i++]));
    return WICK_OK;
}

/* The text that statements make in a scope of their own. */
static wick_status capture(wk_jinja *j, const wk_jnode *body, wk_jvalue *out) {
    wk_jbuilder text = wk_jbuilder_begin(j), *const before = j->out;
    wk_jscope *const scope = j->scope;
    WK_TRY(wk_jscope_push(j, scope));
    j->out = &text;
    WK_TRY(wk_jexec(j, body));
    j->out = before;
    wk_jscope_pop(j, scope);
    WK_TRY(wk_jbuilder_end(&text, out));
    out->is_markup = j->escapes;
    return WICK_OK;
}

static wick_status exec_scoped(wk_jinja *j, const wk_jnode *body) {
    wk_jscope *const scope = j->scope;
    WK_TRY(wk_jscope_push(j, scope));
    WK_TRY(wk_jexec(j, body));
    wk_jscope_pop(j, scope);
    return WICK_OK;
}

/* ---- Statements ---- */

static wick_status put_value(wk_jinja *j, const wk_jvalue *value) {
    wk_jtext text;
    if (j->escapes && !value->is_markup) {
        WK_TRY(wk_jstr(j, value, &text));
        wk_jput_html(j->out, text);
    } else {
        wk_jput_str(j->out, value);
    }
    return j->out->status;
}

static wick_status exec_output(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue value;
    WK_TRY(wk_jeval(j, node->first, &value));
    return put_value(j, &value);
}

static wick_status exec_if(wk_jinja *j, const wk_jnode *node) {
    for (const wk_jnode *branch = node->list; branch != NULL; branch = branch->next) {
        wk_jvalue condition;
        WK_TRY(wk_jeval(j, branch->first, &condition));
        if (wk_jtruth(&condition)) return wk_jexec(j, branch->list);
    }
    return wk_jexec(j, node->other);
}

static wick_status exec_set(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue value;
    WK_TRY(wk_jeval(j, node->second, &value));
    return wk_jassign_target(j, node->first, value);
}

static wick_status exec_set_block(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue value;
    WK_TRY(capture(j, node->list, &value));
    if (node->second != NULL) WK_TRY(wk_jfilter_node(j, node->second, &value, &value));
    return wk_jassign_target(j, node->first, value);
}

static wick_status exec_filter_block(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue value;
    WK_TRY(capture(j, node->list, &value));
    WK_TRY(wk_jfilter_node(j, node->first, &value, &value));
    if (value.kind != WK_J_STRING)
        return wk_jfail(j, "sequence item 0: expected str instance, %s found",
                        wk_jtype_name(&value));
    return put_value(j, &value);
}

/* The values are those outside, whatever names stand before them. */
static wick_status exec_with(wk_jinja *j, const wk_jnode *node) {
    wk_jscope *const scope = j->scope;
    WK_TRY(wk_jscope_push(j, scope));
    wk_jscope *const inside = j->scope;
    for (const wk_jnode *set = node->other; set != NULL; set = set->next) {
        wk_jvalue value;
        j->scope = scope;
        WK_TRY(wk_jeval(j, set->second, &value));
        j->scope = inside;
        WK_TRY(wk_jassign_target(j, set->first, value));
    }
    WK_TRY(wk_jexec(j, node->list));
    wk_jscope_pop(j, scope);
    return WICK_OK;
}

static wick_status exec_autoescape(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue value;
    const bool before = j->escapes;
    WK_TRY(wk_jeval(j, node->first, &value));
    j->escapes = wk_jtruth(&value);
    WK_TRY(exec_scoped(j, node->list));
    j->escapes = before;
    return WICK_OK;
}

/* ---- Macros ---- */

struct wk_jmacro {
    const wk_jnode *node; /* MACRO_BLOCK or CALL_BLOCK */
    wk_str name;
    wk_jscope *scope; /* where it stands */
};

static wick_status make_macro(wk_jinja *j, const wk_jnode *node, wk_str name, wk_jvalue *out) {
    wk_jmacro *const macro = wk_jalloc(j, 1, sizeof *macro);
    if (macro == NULL) return WICK_ERR_VALUE;
    wk_jscope_keep(j->scope);
    *macro = (wk_jmacro){.node = node, .name = name, .scope = j->scope};
    *out = (wk_jvalue){.kind = WK_J_MACRO, .macro = macro};
    return WICK_OK;
}

static wick_status exec_macro(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue macro;
    WK_TRY(make_macro(j, node, node->name, &macro));
    return wk_jassign(j, node->name, macro);
}

static wick_status exec_call_block(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue caller, value;
    wk_jscope *const scope = j->scope;
    WK_TRY(make_macro(j, node, wk_str_of("caller"), &caller));
    WK_TRY(wk_jscope_push(j, scope));
    WK_TRY(wk_jassign(j, wk_str_of(WK_J_CALLER), caller));
    WK_TRY(wk_jeval(j, node->first, &value));
    wk_jscope_pop(j, scope);
    return put_value(j, &value);
}

/* The parameters as variables; *n: how many there are. */
static wick_status bind_parameters(wk_jinja *j, const wk_jnode *list, const wk_jargs *args,
                                   size_t *n) {
    for (*n = 0; list != NULL; list = list->next, ++*n) {
        wk_jvalue *named = NULL, value;
        if (args->named != NULL) WK_TRY(wk_jdict_named(j, args->named, list->name, &named));
        if (*n < args->n && named != NULL)
            return wk_jfail(j, "got multiple values for argument '%s'",
                            wk_str_show(list->name).text);
        if (*n < args->n) {
            value = args->values[*n];
        } else if (named != NULL) {
            value = *named;
        } else if (list->first != NULL) {
            WK_TRY(wk_jeval(j, list->first, &value));
        } else {
            wk_jmissing *const why = wk_jalloc(j, 1, sizeof *why);
            if (why == NULL) return WICK_ERR_VALUE;
            *why = (wk_jmissing){.name = {list->name.text, list->name.size, NULL},
                                 .is_parameter = true};
            value = (wk_jvalue){.kind = WK_J_UNDEFINED, .missing = why};
        }
        WK_TRY(wk_jassign(j, list->name, value));
    }
    return WICK_OK;
}

/* Arguments that no parameter of the scope takes: varargs, caller, kwargs, or a failure. */
static wick_status bind_rest(wk_jinja *j, const wk_jmacro *macro, const wk_jargs *args,
                             size_t n_parameters) {
    const wk_jnode *const node = macro->node;
    wk_jvalue rest, keywords;
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, 0, &rest));
    WK_TRY(wk_jdict_make(j, WK_J_DICT, &keywords));
    for (size_t i = n_parameters; i < args->n; i++)
        WK_TRY(wk_jlist_push(j, rest.list, args->values[i]));
    for (size_t i = 0; i < wk_jn_named(args); i++) {
        const wk_jentry *const entry = &args->named->entries[i];
        const wk_str name = wk_jtext_str(entry->key.string);
        wk_jvalue *parameter;
        WK_TRY(wk_jdict_named(j, &j->scope->variables, name, &parameter));
        if (parameter != NULL) continue;
        if (node->takes_caller && wk_str_is(name, "caller"))
            WK_TRY(wk_jassign(j, name, entry->value));
        else if (node->takes_kwargs)
            WK_TRY(wk_jdict_set(j, keywords.dict, entry->key, entry->value));
        else
            return wk_jfail(j, "macro '%s' takes no keyword argument '%s'",
                            wk_str_show(macro->name).text, wk_str_show(name).text);
    }
    if (args->n > n_parameters && !node->takes_varargs)
        return wk_jfail(j, "macro '%s' takes not more than %zu argument(s)",
                        wk_str_show(macro->name).text, n_parameters);
    if (node->takes_varargs) WK_TRY(wk_jassign(j, wk_str_of("varargs"), rest));
    return node->takes_kwargs ? wk_jassign(j, wk_str_of("kwargs"), keywords) : WICK_OK;
}

wick_status wk_jcall_macro(wk_jinja *j, const wk_jmacro *macro, const wk_jargs *args,
                           wk_jvalue *out) {
    wk_jscope *const scope = j->scope;
    size_t n;
    WK_TRY(wk_jenter(j));
    WK_TRY(wk_jscope_push(j, macro->scope));
    WK_TRY(bind_parameters(j, macro->node->other, args, &n));
    WK_TRY(bind_rest(j, macro, args, n));
    WK_TRY(capture(j, macro->node->list, out));
    wk_jscope_pop(j, scope);
    j->depth--;
    return WICK_OK;
}

wick_status wk_jmacro_attribute(wk_jinja *j, const wk_jmacro *macro, wk_str name, wk_jvalue *out) {
    const wk_jnode *const node = macro->node;
    if (wk_str_is(name, "name"))
        *out = wk_jstring((wk_jtext){macro->name.text, macro->name.size, NULL});
    else if (wk_str_is(name, "catch_varargs"))
        *out = wk_jbool(node->takes_varargs);
    else if (wk_str_is(name, "catch_kwargs"))
        *out = wk_jbool(node->takes_kwargs);
    else if (wk_str_is(name, "caller"))
        *out = wk_jbool(node->takes_caller);
    if (!wk_str_is(name, "arguments")) return WICK_OK;
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, 0, out));
    for (const wk_jnode *p = node->other; p != NULL; p = p->next) {
        const wk_jtext text = {p->name.text, p->name.size, NULL};
        WK_TRY(wk_jlist_push(j, out->list, wk_jstring(text)));
    }
    return WICK_OK;
}

void wk_jput_macro(wk_jbuilder *to, const wk_jmacro *macro) {
    wk_jput_word(to, "<Macro '");
    wk_jput(to, (wk_jtext){macro->name.text, macro->name.size, NULL});
    wk_jput_word(to, "'>");
}

/* ---- All of them ---- */

static wick_status exec_statement(wk_jinja *j, const wk_jnode *node) {
    switch (node->kind) {
    case WK_J_TEXT: wk_jput(j->out, node->value.string); return j->out->status;
    case WK_J_OUTPUT: return exec_output(j, node);
    case WK_J_IF: return exec_if(j, node);
    case WK_J_FOR: return wk_jexec_for(j, node);
    case WK_J_SET: return exec_set(j, node);
    case WK_J_SET_BLOCK: return exec_set_block(j, node);
    case WK_J_MACRO_BLOCK: return exec_macro(j, node);
    case WK_J_CALL_BLOCK: return exec_call_block(j, node);
    case WK_J_FILTER_BLOCK: return exec_filter_block(j, node);
    case WK_J_WITH: return exec_with(j, node);
    case WK_J_SCOPED: return exec_scoped(j, node->list);
    case WK_J_AUTOESCAPE: return exec_autoescape(j, node);
    case WK_J_BREAK_LOOP: j->flow = WK_J_BREAK; return WICK_OK;
    case WK_J_CONTINUE_LOOP: j->flow = WK_J_CONTINUE; return WICK_OK;
    default:
        return wk_jfail(j, "no loader for this environment specified (%s)",
                        wk_str_show(node->name).text);
    }
}

wick_status wk_jexec(wk_jinja *j, const wk_jnode *statements) {
    WK_TRY(wk_jenter(j));
    for (const wk_jnode *node = statements; node != NULL && j->flow == WK_J_NEXT;
         node = node->next) {
        j->line = node->line;
        WK_TRY(wk_jwork(j, 1));
        WK_TRY(exec_statement(j, node));
    }
    j->depth--;
    return WICK_OK;
}
