/* text/jinja/tests.c: the tests that may follow `is`. */
#include "text/jinja/state.h"

#include <string.h>

static wick_status answer(bool holds, wk_jvalue *out) {
    *out = wk_jbool(holds);
    return WICK_OK;
}

/* ---- Kinds ---- */

static wick_status t_defined(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind != WK_J_UNDEFINED, out);
}
static wick_status t_undefined(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_UNDEFINED, out);
}
static wick_status t_none(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_NONE, out);
}
static wick_status t_boolean(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_BOOL, out);
}
static wick_status t_true(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_BOOL && args->self->boolean, out);
}
static wick_status t_false(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_BOOL && !args->self->boolean, out);
}
static wick_status t_integer(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_INTEGER, out);
}
static wick_status t_float(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_FLOAT, out);
}
static wick_status t_number(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(wk_jis_number(args->self), out);
}
static wick_status t_string(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_STRING, out);
}
static wick_status t_mapping(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_DICT, out);
}
static wick_status t_iterable(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(wk_jis_iterable(args->self), out);
}
/* It has a length and items by number or key. */
static wick_status t_sequence(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    const wk_jkind kind = args->self->kind;
    const bool is_view = kind == WK_J_KEYS || kind == WK_J_VALUES || kind == WK_J_ITEMS;
    return answer(wk_jhas_length(args->self) && !is_view, out);
}
static wick_status t_callable(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    const wk_jkind kind = args->self->kind;
    return answer(kind == WK_J_BUILTIN || kind == WK_J_MACRO || kind == WK_J_LOOP ||
                      kind == WK_J_JOINER || kind == WK_J_UNDEFINED,
                  out);
}
static wick_status t_escaped(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return answer(args->self->kind == WK_J_STRING && args->self->is_markup, out);
}
static wick_status t_filter(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext name;
    WK_TRY(wk_jstr(j, args->self, &name));
    return answer(wk_jfind_filter(wk_jtext_str(name)) != NULL, out);
}
static wick_status t_test(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext name;
    WK_TRY(wk_jstr(j, args->self, &name));
    return answer(wk_jfind_test(wk_jtext_str(name)) != NULL, out);
}

/* ---- Letters ---- */

static wick_status ask_method(wk_jinja *j, const wk_jargs *args, const char *name, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(wk_jstr(j, args->self, &text));
    const wk_jvalue self = wk_jstring(text);
    const wk_jargs none = {.self = &self};
    return wk_jcall_builtin(j, wk_jfind_method(&self, wk_str_of(name)), &none, out);
}
static wick_status t_lower(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return ask_method(j, args, "islower", out);
}
static wick_status t_upper(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return ask_method(j, args, "isupper", out);
}

/* ---- Numbers ---- */

static wick_status remainder_is(wk_jinja *j, const wk_jargs *args, const wk_jvalue *divisor,
                                int64_t wanted, wk_jvalue *out) {
    wk_jvalue rest;
    const wk_jvalue expected = wk_jinteger(wanted);
    bool equal;
    WK_TRY(wk_jbinary(j, WK_J_MODULO, args->self, divisor, &rest));
    WK_TRY(wk_jequal(j, &rest, &expected, &equal));
    return answer(equal, out);
}
static wick_status t_odd(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue two = wk_jinteger(2);
    return remainder_is(j, args, &two, 1, out);
}
static wick_status t_even(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue two = wk_jinteger(2);
    return remainder_is(j, args, &two, 0, out);
}
static wick_status t_divisibleby(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return remainder_is(j, args, &args->values[0], 0, out);
}

/* ---- Comparing ---- */

static wick_status t_eq(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    *out = wk_jbool(false);
    return wk_jequal(j, args->self, &args->values[0], &out->boolean);
}
static wick_status t_ne(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(t_eq(j, args, out));
    out->boolean = !out->boolean;
    return WICK_OK;
}
static wick_status order_is(wk_jinja *j, const wk_jargs *args, const char *sign, wk_jvalue *out) {
    int order;
    WK_TRY(wk_jcompare(j, args->self, &args->values[0], sign, &order));
    const bool holds = order == (sign[0] == '<' ? -1 : 1) || (sign[1] == '=' && order == 0);
    return answer(holds, out);
}
static wick_status t_lt(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return order_is(j, args, "<", out);
}
static wick_status t_le(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return order_is(j, args, "<=", out);
}
static wick_status t_gt(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return order_is(j, args, ">", out);
}
static wick_status t_ge(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return order_is(j, args, ">=", out);
}
static wick_status t_in(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    *out = wk_jbool(false);
    return wk_jcontains(j, &args->values[0], args->self, &out->boolean);
}
/* The same object: what is not shared is the same where it is equal and of one kind. */
static wick_status t_sameas(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const a = args->self, *const b = &args->values[0];
    *out = wk_jbool(false);
    if (a->kind != b->kind) return WICK_OK;
    if (a->kind == WK_J_LIST || a->kind == WK_J_TUPLE) return answer(a->list == b->list, out);
    if (a->kind == WK_J_DICT) return answer(a->dict == b->dict, out);
    return wk_jequal(j, a, b, &out->boolean);
}

static const wk_jbuiltin tests[] = {
    {"defined", t_defined, "", 0, WK_J_COUNTS},
    {"undefined", t_undefined, "", 0, WK_J_COUNTS},
    {"none", t_none, "", 0, WK_J_COUNTS},
    {"boolean", t_boolean, "", 0, WK_J_COUNTS},
    {"true", t_true, "", 0, WK_J_COUNTS},
    {"false", t_false, "", 0, WK_J_COUNTS},
    {"integer", t_integer, "", 0, WK_J_COUNTS},
    {"float", t_float, "", 0, WK_J_COUNTS},
    {"number", t_number, "", 0, WK_J_COUNTS},
    {"string", t_string, "", 0, WK_J_COUNTS},
    {"mapping", t_mapping, "", 0, WK_J_COUNTS},
    {"iterable", t_iterable, "", 0, WK_J_COUNTS},
    {"sequence", t_sequence, "", 0, WK_J_COUNTS},
    {"callable", t_callable, "", 0, WK_J_COUNTS},
    {"escaped", t_escaped, "", 0, WK_J_COUNTS},
    {"filter", t_filter, "", 0, WK_J_READS_ALL},
    {"test", t_test, "", 0, WK_J_READS_ALL},
    {"lower", t_lower, "", 0, WK_J_READS_ALL},
    {"upper", t_upper, "", 0, WK_J_READS_ALL},
    {"odd", t_odd, "", 0, WK_J_READS_ALL},
    {"even", t_even, "", 0, WK_J_READS_ALL},
    {"divisibleby", t_divisibleby, "num", 1, WK_J_READS_ALL},
    {"eq", t_eq, "other", 1, WK_J_COUNTS},
    {"equalto", t_eq, "other", 1, WK_J_COUNTS},
    {"==", t_eq, "other", 1, WK_J_COUNTS},
    {"ne", t_ne, "other", 1, WK_J_COUNTS},
    {"!=", t_ne, "other", 1, WK_J_COUNTS},
    {"lt", t_lt, "other", 1, WK_J_COUNTS},
    {"lessthan", t_lt, "other", 1, WK_J_COUNTS},
    {"<", t_lt, "other", 1, WK_J_COUNTS},
    {"le", t_le, "other", 1, WK_J_COUNTS},
    {"<=", t_le, "other", 1, WK_J_COUNTS},
    {"gt", t_gt, "other", 1, WK_J_COUNTS},
    {"greaterthan", t_gt, "other", 1, WK_J_COUNTS},
    {">", t_gt, "other", 1, WK_J_COUNTS},
    {"ge", t_ge, "other", 1, WK_J_COUNTS},
    {">=", t_ge, "other", 1, WK_J_COUNTS},
    {"in", t_in, "seq", 1, WK_J_COUNTS},
    {"sameas", t_sameas, "other", 1, WK_J_COUNTS},
};
const wk_jtable wk_jtest_table = {tests, WK_COUNT(tests)};
