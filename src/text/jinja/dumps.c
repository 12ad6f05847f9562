/* text/jinja/dumps.c: the filter tojson: Python's json.dumps. */
#include "text/jinja/chars.h"
#include "text/jinja/format.h"
#include "text/jinja/list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct style {
    bool ensure_ascii, sort_keys, is_indented;
    wk_jtext indent; /* of one level */
    wk_jtext comma, colon;
    uint32_t level;
} style;

static void put_data(wk_jbuilder *to, const char *text, bool is_data) {
    for (; *text != '\0'; text++) wk_jput_char(to, (unsigned char)*text, is_data);
}

static void put_char(wk_jbuilder *to, uint32_t code, const style *s, bool is_data) {
    static const char letters[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
    const char *const found = code < 0x80 && code > 0 ? strchr(letters, (int)code) : NULL;
    char text[16] = "";
    if (found != NULL)
        snprintf(text, sizeof text, "\\%c", names[found - letters]);
    else if (code < 0x20 || (s->ensure_ascii && code >= 0x7F && code < 0x10000))
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    else if (s->ensure_ascii && code >= 0x10000)
        snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
                 (unsigned)(0xDC00 + (code & 0x3FF)));
    if (text[0] != '\0')
        put_data(to, text, is_data);
    else
        wk_jput_char(to, code, is_data);
}

static void put_string(wk_jbuilder *to, wk_jtext text, const style *s) {
    wk_jput_word(to, "\"");
    wk_jcount(to->j, WK_J_CHAR * text.size);
    for (size_t at = 0; at < text.size && to->status == WICK_OK;) {
        const bool is_data = text.origin != NULL && text.origin[at] != 0;
        put_char(to, wk_jnext_char(wk_jtext_str(text), &at), s, is_data);
    }
    wk_jput_word(to, "\"");
}

static void put_line(wk_jbuilder *to, const style *s) {
    if (!s->is_indented) return;
    wk_jput_word(to, "\n");
    wk_jput_repeated(to, s->indent, s->level);
}

static wick_status put_value(wk_jbuilder *to, const wk_jvalue *value, style *s);

/* A key of any simple kind as a string. */
static wick_status put_key(wk_jbuilder *to, const wk_jvalue *key, const style *s) {
    if (key->kind == WK_J_STRING) {
        put_string(to, key->string, s);
        return to->status;
    }
    if (!wk_jis_number(key) && key->kind != WK_J_NONE)
        return wk_jfail(to->j, "keys must be str, int, float, bool or None, not %s",
                        wk_jtype_name(key));
    style plain = *s;
    wk_jput_word(to, "\"");
    WK_TRY(put_value(to, key, &plain));
    wk_jput_word(to, "\"");
    return to->status;
}

static wick_status sorted_entries(wk_jinja *j, const wk_jvalue *dict, wk_jlist *out) {
    const wk_jvalue path = wk_jinteger(0);
    wk_jvalue pairs = *dict, sorted;
    pairs.kind = WK_J_ITEMS;
    WK_TRY(wk_jitems(j, &pairs, out));
    WK_TRY(wk_jsorted(j, out, &(wk_jsorting){.path = &path, .case_sensitive = true}, &sorted));
    *out = *sorted.list;
    return WICK_OK;
}

static wick_status put_dict(wk_jbuilder *to, const wk_jvalue *value, style *s) {
    const wk_jdict *const dict = value->dict;
    wk_jlist sorted = {.n = 0};
    if (s->sort_keys) WK_TRY(sorted_entries(to->j, value, &sorted));
    wk_jput_word(to, "{");
    s->level++;
    for (size_t i = 0; i < dict->n; i++) {
        const wk_jvalue *const pair = s->sort_keys ? sorted.items[i].list->items : NULL;
        if (i > 0) wk_jput(to, s->comma);
        put_line(to, s);
        WK_TRY(put_key(to, pair != NULL ? &pair[0] : &dict->entries[i].key, s));
        wk_jput(to, s->colon);
        WK_TRY(put_value(to, pair != NULL ? &pair[1] : &dict->entries[i].value, s));
    }
    s->level--;
    if (dict->n > 0) put_line(to, s);
    wk_jput_word(to, "}");
    return to->status;
}

static wick_status put_list(wk_jbuilder *to, const wk_jlist *list, style *s) {
    wk_jput_word(to, "[");
    s->level++;
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0) wk_jput(to, s->comma);
        put_line(to, s);
        WK_TRY(put_value(to, &list->items[i], s));
    }
    s->level--;
    if (list->n > 0) put_line(to, s);
    wk_jput_word(to, "]");
    return to->status;
}

static void put_float(wk_jbuilder *to, double number) {
    if (isfinite(number))
        wk_jput_float(to, number);
    else
        wk_jput_word(to, isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
}

static wick_status put_value(wk_jbuilder *to, const wk_jvalue *value, style *s) {
    wk_jlist items;
    WK_TRY(wk_jenter(to->j));
    switch (value->kind) {
    case WK_J_NONE: wk_jput_word(to, "null"); break;
    case WK_J_BOOL: wk_jput_word(to, value->boolean ? "true" : "false"); break;
    case WK_J_INTEGER: wk_jput_repr(to, value); break;
    case WK_J_FLOAT: put_float(to, value->number); break;
    case WK_J_STRING: put_string(to, value->string, s); break;
    case WK_J_LIST:
    case WK_J_GENERATOR: /* which Python refuses, and templates mean */
    case WK_J_TUPLE:
        WK_TRY(wk_jitems(to->j, &(wk_jvalue){.kind = value->kind, .list = value->list}, &items));
        WK_TRY(put_list(to, &items, s));
        break;
    case WK_J_DICT: WK_TRY(put_dict(to, value, s)); break;
    default:
        return wk_jfail(to->j, "Object of type %s is not JSON serializable", wk_jtype_name(value));
    }
    to->j->depth--;
    return to->status;
}

/* indent: a number of blanks or a text. */
static wick_status read_indent(wk_jinja *j, const wk_jargs *args, style *s) {
    wk_jbuilder blanks = wk_jbuilder_begin(j);
    int64_t n;
    s->is_indented = wk_jhas(args, 1) && args->values[1].kind != WK_J_NONE;
    if (!s->is_indented) return WICK_OK;
    s->comma = wk_jtext_of(",");
    if (args->values[1].kind == WK_J_STRING) {
        s->indent = args->values[1].string;
        return WICK_OK;
    }
    WK_TRY(wk_jarg_integer(j, args, 1, 0, &n));
    wk_jput_repeated(&blanks, wk_jtext_of(" "), n > 0 ? (size_t)n : 0);
    s->indent = wk_jbuilder_text(&blanks);
    return blanks.status;
}

static wick_status read_separators(wk_jinja *j, const wk_jargs *args, style *s) {
    wk_jlist pair;
    wk_jvalue given = args->values[2];
    if (!wk_jhas(args, 2) || given.kind == WK_J_NONE) return WICK_OK;
    WK_TRY(wk_jitems(j, &given, &pair));
    if (pair.n != 2 || pair.items[0].kind != WK_J_STRING || pair.items[1].kind != WK_J_STRING)
        return wk_jfail(j, "separators must be two texts");
    s->comma = pair.items[0].string;
    s->colon = pair.items[1].string;
    return WICK_OK;
}

wick_status wk_jfilter_tojson(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    style s = {.ensure_ascii = wk_jarg_truth(args, 0, false),
               .sort_keys = wk_jarg_truth(args, 3, false),
               .comma = wk_jtext_of(", "),
               .colon = wk_jtext_of(": ")};
    WK_TRY(read_indent(j, args, &s));
    WK_TRY(read_separators(j, args, &s));
    wk_jbuilder made = wk_jbuilder_begin(j);
    WK_TRY(put_value(&made, args->self, &s));
    return wk_jbuilder_end(&made, out);
}
