/* text/jinja/container_methods.c: methods of list, tuple, dict and numbers.
 *
 * append, pop and the like are here although transformers' sandbox refuses them: templates that use
 * them exist, and nothing but the rendering itself can be changed by them. */
#include "text/jinja/state.h"

#include <math.h>
#include <string.h>

/* ---- list and tuple ---- */

static wick_status l_count(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jlist *const list = args->self->list;
    int64_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool equal;
        WK_TRY(wk_jequal(j, &list->items[i], &args->values[0], &equal));
        n += equal;
    }
    *out = wk_jinteger(n);
    return WICK_OK;
}

static wick_status l_index(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jlist *const list = args->self->list;
    for (size_t i = 0; i < list->n; i++) {
        bool equal;
        WK_TRY(wk_jequal(j, &list->items[i], &args->values[0], &equal));
        if (!equal) continue;
        *out = wk_jinteger((int64_t)i);
        return WICK_OK;
    }
    return wk_jfail(j, "the value is not in the %s", wk_jtype_name(args->self));
}

static wick_status extend(wk_jinja *j, wk_jlist *list, const wk_jlist *by) {
    const size_t n = by->n; /* by may be the list itself */
    for (size_t i = 0; i < n; i++) WK_TRY(wk_jlist_push(j, list, by->items[i]));
    return WICK_OK;
}

static wick_status l_copy(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(wk_jlist_make(j, args->self->kind, args->self->list->n, out));
    return extend(j, out->list, args->self->list);
}

static wick_status l_append(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    *out = wk_jnone();
    return wk_jlist_push(j, args->self->list, args->values[0]);
}

static wick_status l_extend(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jvalue by = args->values[0];
    wk_jlist items;
    *out = wk_jnone();
    WK_TRY(wk_jitems(j, &by, &items));
    return extend(j, args->self->list, &items);
}

static wick_status l_insert(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist *const list = args->self->list;
    int64_t at;
    *out = wk_jnone();
    WK_TRY(wk_jarg_integer(j, args, 0, 0, &at));
    if (at < 0) at += (int64_t)list->n;
    if (at < 0) at = 0;
    WK_TRY(wk_jlist_push(j, list, args->values[1]));
    if ((uint64_t)at >= list->n) return WICK_OK;
    const size_t after = list->n - 1 - (size_t)at;
    memmove(&list->items[at + 1], &list->items[at], after * sizeof *list->items);
    list->items[at] = args->values[1];
    return wk_jread(j, WK_J_CHAR * after);
}

static wick_status l_pop(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist *const list = args->self->list;
    int64_t at;
    WK_TRY(wk_jarg_integer(j, args, 0, -1, &at));
    if (at < 0) at += (int64_t)list->n;
    if (at < 0 || (uint64_t)at >= list->n) return wk_jfail(j, "pop index out of range");
    *out = list->items[at];
    const size_t after = list->n - 1 - (size_t)at;
    memmove(&list->items[at], &list->items[at + 1], after * sizeof *list->items);
    list->n--;
    return wk_jread(j, WK_J_CHAR * after);
}

static wick_status l_clear(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    args->self->list->n = 0;
    *out = wk_jnone();
    return WICK_OK;
}

static const wk_jbuiltin list_methods[] = {
    {"count", l_count, "value", 1, WK_J_COUNTS},
    {"index", l_index, "value", 1, WK_J_COUNTS},
    {"copy", l_copy, "", 0, WK_J_COUNTS},
    {"append", l_append, "object", 1, WK_J_COUNTS},
    {"extend", l_extend, "iterable", 1, WK_J_COUNTS},
    {"insert", l_insert, "index object", 2, WK_J_COUNTS},
    {"pop", l_pop, "index", 0, WK_J_COUNTS},
    {"clear", l_clear, "", 0, WK_J_COUNTS},
};
const wk_jtable wk_jlist_methods = {list_methods, WK_COUNT(list_methods)};

static const wk_jbuiltin tuple_methods[] = {
    {"count", l_count, "value", 1, WK_J_COUNTS},
    {"index", l_index, "value", 1, WK_J_COUNTS},
};
const wk_jtable wk_jtuple_methods = {tuple_methods, WK_COUNT(tuple_methods)};

/* ---- dict ---- */

static wick_status view(const wk_jargs *args, wk_jkind kind, wk_jvalue *out) {
    *out = *args->self;
    out->kind = kind;
    return WICK_OK;
}
static wick_status d_items(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return view(args, WK_J_ITEMS, out);
}
static wick_status d_keys(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return view(args, WK_J_KEYS, out);
}
static wick_status d_values(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    return view(args, WK_J_VALUES, out);
}

static wick_status d_get(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jvalue *found;
    WK_TRY(wk_jdict_find(j, args->self->dict, &args->values[0], &found));
    *out = found != NULL ? *found : wk_jhas(args, 1) ? args->values[1] : wk_jnone();
    return WICK_OK;
}

static wick_status d_copy(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jdict *const dict = args->self->dict;
    WK_TRY(wk_jdict_make(j, WK_J_DICT, out));
    for (size_t i = 0; i < dict->n; i++)
        WK_TRY(wk_jdict_set(j, out->dict, dict->entries[i].key, dict->entries[i].value));
    return WICK_OK;
}

static wick_status d_update(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue *const from = &args->values[0];
    *out = wk_jnone();
    if (from->kind != WK_J_DICT) return wk_jfail(j, "update wants a mapping");
    const wk_jdict copy = *from->dict; /* it may be the dict itself */
    for (size_t i = 0; i < copy.n; i++)
        WK_TRY(wk_jdict_set(j, args->self->dict, copy.entries[i].key, copy.entries[i].value));
    return WICK_OK;
}

static wick_status d_setdefault(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jvalue *found;
    WK_TRY(wk_jdict_find(j, args->self->dict, &args->values[0], &found));
    *out = found != NULL ? *found : wk_jhas(args, 1) ? args->values[1] : wk_jnone();
    return found != NULL ? WICK_OK : wk_jdict_set(j, args->self->dict, args->values[0], *out);
}

static wick_status d_pop(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    bool is_found;
    WK_TRY(wk_jdict_remove(j, args->self->dict, &args->values[0], out, &is_found));
    if (is_found) return WICK_OK;
    if (!wk_jhas(args, 1)) return wk_jfail(j, "pop(): there is no such key");
    *out = args->values[1];
    return WICK_OK;
}

static wick_status d_clear(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jdict_clear(j, args->self->dict);
    *out = wk_jnone();
    return WICK_OK;
}

static const wk_jbuiltin dict_methods[] = {
    {"items", d_items, "", 0, WK_J_COUNTS},
    {"keys", d_keys, "", 0, WK_J_COUNTS},
    {"values", d_values, "", 0, WK_J_COUNTS},
    {"get", d_get, "key default", 1, WK_J_COUNTS},
    {"copy", d_copy, "", 0, WK_J_COUNTS},
    {"update", d_update, "other", 1, WK_J_COUNTS},
    {"setdefault", d_setdefault, "key default", 1, WK_J_COUNTS},
    {"pop", d_pop, "key default", 1, WK_J_COUNTS},
    {"clear", d_clear, "", 0, WK_J_COUNTS},
};
const wk_jtable wk_jdict_methods = {dict_methods, WK_COUNT(dict_methods)};

/* ---- Numbers ---- */

static wick_status i_bit_length(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    const int64_t value = args->self->integer;
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int64_t n = 0;
    for (; size > 0; size >>= 1) n++;
    *out = wk_jinteger(n);
    return WICK_OK;
}

static wick_status f_is_integer(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    const double number = args->self->number;
    *out = wk_jbool(isfinite(number) && floor(number) == number);
    return WICK_OK;
}

static const wk_jbuiltin integer_methods[] = {{"bit_length", i_bit_length, "", 0, WK_J_COUNTS}};
const wk_jtable wk_jinteger_methods = {integer_methods, WK_COUNT(integer_methods)};

static const wk_jbuiltin float_methods[] = {{"is_integer", f_is_integer, "", 0, WK_J_COUNTS}};
const wk_jtable wk_jfloat_methods = {float_methods, WK_COUNT(float_methods)};
