/* text/jinja/eval.c: expressions. */
#include "text/jinja/chars.h"
#include "text/jinja/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Failures and limits ---- */

wick_status wk_jfail(wk_jinja *j, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (j->failure == WICK_OK) j->failure = WICK_ERR_VALUE;
    return wk_fail(j->err, WICK_ERR_VALUE, "line %d: %s", j->line, text);
}

wick_status wk_jfail_undefined(wk_jinja *j, const wk_jvalue *value) {
    const wk_jmissing *const missing = value->missing;
    if (missing == NULL)
        return wk_jfail(j, "the inline if-expression evaluated to false and no else section was "
                           "defined.");
    const wk_shown name = wk_str_show(wk_jtext_str(missing->name));
    if (missing->is_parameter) return wk_jfail(j, "parameter '%s' was not provided", name.text);
    if (missing->is_unsafe)
        return wk_jfail(j, "access to attribute '%s' of '%s' is unsafe.", name.text,
                        missing->owner);
    if (missing->owner == NULL) return wk_jfail(j, "'%s' is undefined", name.text);
    if (missing->is_element) return wk_jfail(j, "%s has no element %s", missing->owner, name.text);
    return wk_jfail(j, "'%s' has no attribute '%s'", missing->owner, name.text);
}

static wick_status fail_memory(wk_jinja *j, size_t size) {
    if (j->failure == WICK_OK) j->failure = WICK_ERR_OUT_OF_MEMORY;
    return wk_fail_memory(j->err, size, "a chat template");
}

wick_status wk_jcheck(wk_jinja *j) {
    enum { INTERVAL = 4096 }; /* steps; less than a millisecond */
    const wk_jinja_desc *const desc = j->desc;
    if (j->failure != WICK_OK) return j->failure;
    if (j->work / WK_J_STEP > desc->max_steps) {
        j->next_check = 0;
        return wk_jfail(j, "the template takes more than %" PRIu64 " steps", desc->max_steps);
    }
    if (desc->stops != NULL && desc->stops(desc->stop_context)) {
        j->next_check = 0;
        j->failure = WICK_ERR_CANCELLED;
        return wk_fail(j->err, WICK_ERR_CANCELLED, "the rendering was cancelled");
    }
    const bool is_near = desc->max_steps - j->work / WK_J_STEP < INTERVAL;
    j->next_check =
        is_near ? WK_J_STEP * (desc->max_steps + 1) : j->work + WK_J_STEP * (uint64_t)INTERVAL;
    return WICK_OK;
}

wick_status wk_jenter(wk_jinja *j) {
    if (++j->depth <= j->desc->max_depth) return wk_jwork(j, 1);
    return wk_jfail(j, "maximum recursion depth exceeded: %lu levels",
                    (unsigned long)j->desc->max_depth);
}

void *wk_jalloc(wk_jinja *j, size_t n, size_t size) {
    const uint64_t used = j->arena->bytes - j->bytes_before, most = j->desc->max_bytes;
    const uint64_t left = used < most ? most - used : 0;
    if (n > 0 && size > left / n) {
        wk_jfail(j, "the template takes more than %" PRIu64 " MiB of memory", most >> 20);
        return NULL;
    }
    wk_jcount(j, n * size / 8); /* touched for the first time */
    void *const memory = wk_arena_alloc(j->arena, n * size);
    if (memory == NULL) fail_memory(j, n * size);
    return memory;
}

void *wk_jgrow(wk_jinja *j, const void *items, size_t *capacity, size_t least, size_t size) {
    const size_t n = *capacity, grown = n > 0 ? 2 * n : least;
    void *const more = wk_jalloc(j, grown, size);
    if (more == NULL) return NULL;
    if (n > 0) memcpy(more, items, n * size);
    *capacity = grown;
    return more;
}

/* ---- Names ---- */

wick_status wk_jlookup(wk_jinja *j, wk_str name, wk_jvalue *out) {
    wk_jvalue *found = NULL;
    for (const wk_jscope *scope = j->scope; scope != NULL && found == NULL; scope = scope->parent) {
        WK_TRY(wk_jread(j, 4));
        WK_TRY(wk_jdict_named(j, &scope->variables, name, &found));
    }
    if (found == NULL) WK_TRY(wk_jdict_named(j, j->context, name, &found));
    const wk_jbuiltin *const function = found == NULL ? wk_jfind_function(name) : NULL;
    if (found != NULL)
        *out = *found;
    else if (function != NULL)
        *out = (wk_jvalue){.kind = WK_J_BUILTIN, .method = {.builtin = function}};
    else
        *out = (wk_jvalue){.kind = WK_J_ABSENT};
    return WICK_OK;
}

static wick_status eval_name(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    WK_TRY(wk_jlookup(j, node->name, out));
    if (out->kind != WK_J_ABSENT) return WICK_OK;
    return wk_jundefined(j, NULL, (wk_jtext){node->name.text, node->name.size, NULL}, out);
}

/* ---- Making ---- */

static wick_status eval_list(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    WK_TRY(wk_jlist_make(j, node->kind == WK_J_MAKE_LIST ? WK_J_LIST : WK_J_TUPLE, 0, out));
    for (const wk_jnode *item = node->list; item != NULL; item = item->next) {
        wk_jvalue value;
        WK_TRY(wk_jeval(j, item, &value));
        WK_TRY(wk_jlist_push(j, out->list, value));
    }
    return WICK_OK;
}

static wick_status eval_dict(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    WK_TRY(wk_jdict_make(j, WK_J_DICT, out));
    for (const wk_jnode *pair = node->list; pair != NULL; pair = pair->next) {
        wk_jvalue key, value;
        WK_TRY(wk_jeval(j, pair->first, &key));
        WK_TRY(wk_jeval(j, pair->second, &value));
        WK_TRY(wk_jdict_set(j, out->dict, key, value));
    }
    return WICK_OK;
}

static wick_status eval_concat(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue value;
    WK_TRY(wk_jeval(j, node->list, &value));
    const bool is_text = value.kind == WK_J_STRING;
    wk_jbuilder text = is_text ? wk_jbuilder_resume(j, value.string) : wk_jbuilder_begin(j);
    if (!is_text) wk_jput_str(&text, &value);
    for (const wk_jnode *part = node->list->next; part != NULL; part = part->next) {
        WK_TRY(wk_jeval(j, part, &value));
        wk_jput_str(&text, &value);
    }
    return wk_jbuilder_end_resumed(&text, out);
}

/* ---- Comparing ---- */

static wick_status compare_order(wk_jinja *j, wk_joperator op, const wk_jvalue *a,
                                 const wk_jvalue *b, bool *holds) {
    static const char *const signs[] = {"<", "<=", ">", ">="};
    int order;
    WK_TRY(wk_jcompare(j, a, b, signs[op - WK_J_LESS], &order));
    switch (op) {
    case WK_J_LESS: *holds = order == -1; break;
    case WK_J_LESS_EQUAL: *holds = order == -1 || order == 0; break;
    case WK_J_GREATER: *holds = order == 1; break;
    default: *holds = order == 1 || order == 0; break;
    }
    return WICK_OK;
}

static wick_status compare(wk_jinja *j, wk_joperator op, const wk_jvalue *a, const wk_jvalue *b,
                           bool *holds) {
    if (op == WK_J_EQUAL || op == WK_J_UNEQUAL) {
        WK_TRY(wk_jequal(j, a, b, holds));
        *holds = *holds == (op == WK_J_EQUAL);
        return WICK_OK;
    }
    if (op == WK_J_IN || op == WK_J_NOT_IN) {
        WK_TRY(wk_jcontains(j, b, a, holds));
        *holds = *holds == (op == WK_J_IN);
        return WICK_OK;
    }
    return compare_order(j, op, a, b, holds);
}

/* a < b < c: each pair, up to the first that does not hold. */
static wick_status eval_compare(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue left, right;
    bool holds = true;
    WK_TRY(wk_jeval(j, node->first, &left));
    for (const wk_jnode *o = node->list; o != NULL && holds; o = o->next, left = right) {
        WK_TRY(wk_jeval(j, o->first, &right));
        WK_TRY(compare(j, o->op, &left, &right, &holds));
    }
    *out = wk_jbool(holds);
    return WICK_OK;
}

/* ---- The rest ---- */

static wick_status eval_logic(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    WK_TRY(wk_jeval(j, node->first, out));
    return wk_jtruth(out) == (node->kind == WK_J_AND) ? wk_jeval(j, node->second, out) : WICK_OK;
}

static wick_status eval_if_else(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue condition;
    WK_TRY(wk_jeval(j, node->second, &condition));
    if (wk_jtruth(&condition)) return wk_jeval(j, node->first, out);
    if (node->third != NULL) return wk_jeval(j, node->third, out);
    *out = (wk_jvalue){.kind = WK_J_UNDEFINED, .missing = NULL};
    return WICK_OK;
}

static wick_status eval_unary(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue value;
    WK_TRY(wk_jeval(j, node->first, &value));
    if (node->op != WK_J_NOT) return wk_junary(j, node->op == WK_J_NEGATE, &value, out);
    *out = wk_jbool(!wk_jtruth(&value));
    return WICK_OK;
}

static wick_status eval_binary(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue a, b;
    WK_TRY(wk_jeval(j, node->first, &a));
    WK_TRY(wk_jeval(j, node->second, &b));
    j->line = node->line;
    return wk_jbinary(j, node->op, &a, &b, out);
}

static wick_status eval_access(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue of, item;
    WK_TRY(wk_jeval(j, node->first, &of));
    if (node->kind == WK_J_ATTRIBUTE)
        return wk_jattribute(j, &of, (wk_jtext){node->name.text, node->name.size, NULL}, out);
    WK_TRY(wk_jeval(j, node->second, &item));
    return wk_jitem(j, &of, &item, out);
}

static wick_status eval_slice(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue of, bounds[3];
    size_t n = 0;
    WK_TRY(wk_jeval(j, node->first, &of));
    for (const wk_jnode *bound = node->list; bound != NULL; bound = bound->next)
        WK_TRY(wk_jeval(j, bound, &bounds[n++]));
    return wk_jslice(j, &of, bounds, out);
}

static wick_status eval_call(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue callee;
    WK_TRY(wk_jeval(j, node->first, &callee));
    return wk_jcall_node(j, node, &callee, NULL, NULL, out);
}

wick_status wk_jfilter_node(wk_jinja *j, const wk_jnode *filter, const wk_jvalue *value,
                            wk_jvalue *out) {
    wk_jvalue of = *value;
    WK_TRY(wk_jenter(j));
    if (filter->first != NULL && filter->first->kind == WK_J_FILTER && value->kind != WK_J_ABSENT)
        WK_TRY(wk_jfilter_node(j, filter->first, value, &of));
    else if (filter->first != NULL)
        WK_TRY(wk_jeval(j, filter->first, &of));
    if (filter->builtin == NULL)
        return wk_jfail(j, "No filter named '%s' found.", wk_str_show(filter->name).text);
    WK_TRY(wk_jcall_node(j, filter, NULL, &of, filter->builtin, out));
    j->depth--;
    return WICK_OK;
}

static wick_status eval_test(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    wk_jvalue of;
    WK_TRY(wk_jeval(j, node->first, &of));
    if (node->builtin == NULL)
        return wk_jfail(j, "No test named '%s' found.", wk_str_show(node->name).text);
    WK_TRY(wk_jcall_node(j, node, NULL, &of, node->builtin, out));
    *out = wk_jbool(wk_jtruth(out) != node->is_negated);
    return WICK_OK;
}

static wick_status eval_kind(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    static const wk_jvalue absent = {.kind = WK_J_ABSENT};
    switch (node->kind) {
    case WK_J_CONSTANT: *out = node->value; return WICK_OK;
    case WK_J_NAME: return eval_name(j, node, out);
    case WK_J_MAKE_LIST:
    case WK_J_MAKE_TUPLE: return eval_list(j, node, out);
    case WK_J_MAKE_DICT: return eval_dict(j, node, out);
    case WK_J_UNARY: return eval_unary(j, node, out);
    case WK_J_BINARY: return eval_binary(j, node, out);
    case WK_J_AND:
    case WK_J_OR: return eval_logic(j, node, out);
    case WK_J_CONCAT: return eval_concat(j, node, out);
    case WK_J_COMPARE: return eval_compare(j, node, out);
    case WK_J_IF_ELSE: return eval_if_else(j, node, out);
    case WK_J_ATTRIBUTE:
    case WK_J_ITEM: return eval_access(j, node, out);
    case WK_J_SLICE: return eval_slice(j, node, out);
    case WK_J_CALL: return eval_call(j, node, out);
    case WK_J_FILTER: return wk_jfilter_node(j, node, &absent, out);
    case WK_J_TEST: return eval_test(j, node, out);
    default: return wk_jfail(j, "this is not an expression");
    }
}

wick_status wk_jeval(wk_jinja *j, const wk_jnode *node, wk_jvalue *out) {
    WK_TRY(wk_jenter(j));
    j->line = node->line;
    WK_TRY(eval_kind(j, node, out));
    j->depth--;
    return WICK_OK;
}
