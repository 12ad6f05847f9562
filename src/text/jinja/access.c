/* text/jinja/access.c: attributes, items and slices. */
#include "text/jinja/chars.h"
#include "text/jinja/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Jinja's name for the owner of a missing attribute or element. */
static const char *owner_name(const wk_jvalue *value) {
    switch (value->kind) {
    case WK_J_NONE: return "None";
    case WK_J_BOOL: return "bool object";
    case WK_J_INTEGER: return "int object";
    case WK_J_FLOAT: return "float object";
    case WK_J_STRING: return "str object";
    case WK_J_LIST: return "list object";
    case WK_J_TUPLE: return "tuple object";
    case WK_J_DICT: return "dict object";
    case WK_J_GENERATOR: return "generator object";
    case WK_J_RANGE: return "range object";
    case WK_J_NAMESPACE: return "jinja2.utils.Namespace object";
    case WK_J_MACRO: return "jinja2.runtime.Macro object";
    case WK_J_LOOP: return "jinja2.runtime.LoopContext object";
    default: return "object";
    }
}

static wick_status missing(wk_jinja *j, const wk_jvalue *of, wk_jtext name, bool is_element,
                           bool is_unsafe, wk_jvalue *out) {
    wk_jmissing *const why = wk_jalloc(j, 1, sizeof *why);
    if (why == NULL) return WICK_ERR_VALUE;
    *why = (wk_jmissing){
        .owner = owner_name(of), .name = name, .is_element = is_element, .is_unsafe = is_unsafe};
    *out = (wk_jvalue){.kind = WK_J_UNDEFINED, .missing = why};
    return WICK_OK;
}

static wick_status bind_method(wk_jinja *j, const wk_jbuiltin *builtin, const wk_jvalue *self,
                               wk_jvalue *out) {
    wk_jvalue *const copy = wk_jalloc(j, 1, sizeof *copy);
    if (copy == NULL) return WICK_ERR_VALUE;
    *copy = *self;
    *out = (wk_jvalue){.kind = WK_J_BUILTIN, .method = {builtin, copy}};
    return WICK_OK;
}

/* What the value itself has of this name, a dict's members apart; ABSENT: nothing. */
static wick_status own_attribute(wk_jinja *j, const wk_jvalue *of, wk_str name, wk_jvalue *out) {
    *out = (wk_jvalue){.kind = WK_J_ABSENT};
    if (of->kind == WK_J_LOOP) WK_TRY(wk_jloop_attribute(j, of->loop, name, out));
    if (of->kind == WK_J_MACRO) WK_TRY(wk_jmacro_attribute(j, of->macro, name, out));
    if (of->kind == WK_J_TUPLE && of->is_markup && of->list->n == 2) { /* of groupby */
        if (wk_str_is(name, "grouper")) *out = of->list->items[0];
        if (wk_str_is(name, "list")) *out = of->list->items[1];
    }
    if (of->kind == WK_J_CYCLER && wk_str_is(name, "current"))
        *out = of->cycle->items.items[of->cycle->at];
    if (of->kind == WK_J_NAMESPACE) {
        wk_jvalue *found;
        WK_TRY(wk_jdict_named(j, of->dict, name, &found));
        if (found != NULL) *out = *found;
    }
    if (out->kind != WK_J_ABSENT) return WICK_OK;
    WK_TRY(wk_jwork(j, 4)); /* a table of names */
    const wk_jbuiltin *const method = wk_jfind_method(of, name);
    return method != NULL ? bind_method(j, method, of, out) : WICK_OK;
}

wick_status wk_jattribute(wk_jinja *j, const wk_jvalue *of, wk_jtext name, wk_jvalue *out) {
    const wk_str key = wk_jtext_str(name);
    if (of->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, of);
    const bool is_hidden = name.size > 0 && name.text[0] == '_';
    *out = (wk_jvalue){.kind = WK_J_ABSENT};
    if (!is_hidden) WK_TRY(own_attribute(j, of, key, out));
    if (out->kind != WK_J_ABSENT) return WICK_OK;
    if (of->kind == WK_J_DICT) {
        wk_jvalue *found;
        WK_TRY(wk_jdict_named(j, of->dict, key, &found));
        if (found != NULL) {
            *out = *found;
            return WICK_OK;
        }
    }
    return missing(j, of, name, false, is_hidden, out);
}

/* ---- Items ---- */

/* An index from the end made one from the beginning; false: out of range. */
static bool resolve(int64_t index, size_t length, size_t *out) {
    if (index < 0) index += (int64_t)length;
    *out = (size_t)index;
    return index >= 0 && (uint64_t)index < length;
}

/* Item i of a sequence other than a string. */
static wk_jvalue item_at(const wk_jvalue *of, size_t i) {
    if (of->kind == WK_J_RANGE) return wk_jinteger(of->range->first + (int64_t)i * of->range->step);
    return of->list->items[i];
}

static wick_status char_at(wk_jinja *j, const wk_jvalue *of, size_t i, wk_jvalue *out) {
    const wk_str text = wk_jtext_str(of->string);
    const size_t start = wk_jchar_offset(text, i);
    size_t end = start;
    wk_jnext_char(text, &end);
    *out = wk_jstring(wk_jtext_part(of->string, start, end));
    out->is_markup = of->is_markup;
    return wk_jread(j, end);
}

static bool is_sequence(const wk_jvalue *value) {
    return value->kind == WK_J_STRING || value->kind == WK_J_LIST || value->kind == WK_J_TUPLE ||
           value->kind == WK_J_RANGE;
}

wick_status wk_jitem(wk_jinja *j, const wk_jvalue *of, const wk_jvalue *item, wk_jvalue *out) {
    size_t length, index;
    if (of->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, of);
    if (is_sequence(of) && wk_jis_integer(item)) {
        WK_TRY(wk_jlength(j, of, &length));
        if (resolve(wk_jas_integer(item), length, &index)) {
            if (of->kind == WK_J_STRING) return char_at(j, of, index, out);
            *out = item_at(of, index);
            return WICK_OK;
        }
    }
    if (of->kind == WK_J_DICT && item->kind != WK_J_LIST && item->kind != WK_J_DICT) {
        wk_jvalue *found;
        WK_TRY(wk_jdict_find(j, of->dict, item, &found));
        if (found != NULL) {
            *out = *found;
            return WICK_OK;
        }
    }
    if (item->kind == WK_J_STRING) return wk_jattribute(j, of, item->string, out);
    wk_jbuilder name = wk_jbuilder_begin(j);
    wk_jput_repr(&name, item);
    WK_TRY(name.status);
    return missing(j, of, wk_jbuilder_text(&name), true, false, out);
}

/* ---- Slices ---- */

typedef struct bounds {
    int64_t first, end, step;
} bounds;

/* As Python's slice.indices: first and end within the sequence, -1 for "before it". */
static wick_status resolve_bounds(wk_jinja *j, const wk_jvalue given[3], int64_t n, bounds *out) {
    for (size_t i = 0; i < 3; i++) {
        if (given[i].kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, &given[i]);
        if (given[i].kind != WK_J_NONE && !wk_jis_integer(&given[i]))
            return wk_jfail(j, "slice indices must be integers or None");
    }
    out->step = given[2].kind == WK_J_NONE ? 1 : wk_jas_integer(&given[2]);
    if (out->step == 0) return wk_jfail(j, "slice step cannot be zero");
    const int64_t low = out->step < 0 ? -1 : 0, high = out->step < 0 ? n - 1 : n;
    int64_t *const places[2] = {&out->first, &out->end};
    for (size_t i = 0; i < 2; i++) {
        const bool is_low = (out->step > 0) == (i == 0);
        int64_t at = is_low ? low : high;
        if (given[i].kind != WK_J_NONE) {
            at = wk_jas_integer(&given[i]);
            if (at < 0) at += n;
            at = at < low ? low : at > high ? high : at;
        }
        *places[i] = at;
    }
    return WICK_OK;
}

static wick_status slice_text(wk_jinja *j, const wk_jvalue *of, const bounds *b, size_t n,
                              wk_jvalue *out) {
    const wk_str text = wk_jtext_str(of->string);
    WK_TRY(wk_jread(j, text.size));
    if (b->step == 1) {
        const size_t start = wk_jchar_offset(text, (size_t)b->first);
        const wk_str after = {text.text + start, text.size - start};
        const size_t end = start + wk_jchar_offset(after, n);
        *out = wk_jstring(wk_jtext_part(of->string, start, end));
        out->is_markup = of->is_markup;
        return WICK_OK;
    }
    wk_jvalue chars = *of;
    wk_jlist list;
    WK_TRY(wk_jitems(j, &chars, &list));
    wk_jbuilder picked = wk_jbuilder_begin(j);
    for (size_t i = 0; i < n; i++)
        wk_jput(&picked, list.items[b->first + (int64_t)i * b->step].string);
    return wk_jbuilder_end(&picked, out);
}

static wick_status slice_range(wk_jinja *j, const wk_jrange *of, const bounds *b, size_t n,
                               wk_jvalue *out) {
    wk_jrange *const part = wk_jalloc(j, 1, sizeof *part);
    if (part == NULL) return WICK_ERR_VALUE;
    const uint64_t first = (uint64_t)of->first, step = (uint64_t)of->step;
    *part = (wk_jrange){.first = (int64_t)(first + (uint64_t)b->first * step),
                        .end = (int64_t)(first + (uint64_t)b->end * step),
                        .step = (int64_t)((uint64_t)b->step * step),
                        .n = n};
    *out = (wk_jvalue){.kind = WK_J_RANGE, .range = part};
    return WICK_OK;
}

wick_status wk_jslice(wk_jinja *j, const wk_jvalue *of, const wk_jvalue given[3], wk_jvalue *out) {
    if (of->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, of);
    if (!is_sequence(of)) return wk_jfail(j, "'%s' object is not subscriptable", wk_jtype_name(of));
    size_t length;
    bounds b = {0, 0, 1};
    WK_TRY(wk_jlength(j, of, &length));
    WK_TRY(resolve_bounds(j, given, (int64_t)length, &b));
    const int64_t distance = b.step > 0 ? b.end - b.first : b.first - b.end;
    const uint64_t stride = b.step > 0 ? (uint64_t)b.step : 0 - (uint64_t)b.step;
    const size_t n = distance > 0 ? (size_t)(((uint64_t)distance - 1) / stride + 1) : 0;
    if (of->kind == WK_J_STRING) return slice_text(j, of, &b, n, out);
    if (of->kind == WK_J_RANGE) return slice_range(j, of->range, &b, n, out);
    const wk_jkind kind = of->kind == WK_J_TUPLE ? WK_J_TUPLE : WK_J_LIST;
    WK_TRY(wk_jlist_make(j, kind, n, out));
    for (size_t i = 0; i < n; i++) {
        const int64_t at = b.first + (int64_t)i * (n > 1 ? b.step : 0);
        WK_TRY(wk_jlist_push(j, out->list, item_at(of, (size_t)at)));
    }
    return WICK_OK;
}
