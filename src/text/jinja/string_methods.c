/* text/jinja/string_methods.c: methods of str that make something. */
#include "text/jinja/chars.h"
#include "text/jinja/format.h"
#include "text/jinja/strings.h"

#include <string.h>

/* An argument that must be a string. */
static wick_status need_text(wk_jinja *j, const wk_jargs *args, size_t i, wk_jtext *out) {
    const wk_jvalue *const value = &args->values[i];
    *out = (wk_jtext){"", 0, NULL};
    if (value->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, value);
    if (value->kind != WK_J_STRING) return wk_jfail(j, "must be str, not %s", wk_jtype_name(value));
    *out = value->string;
    return WICK_OK;
}

/* *given false: not given, or None. */
static wick_status optional_text(wk_jinja *j, const wk_jargs *args, size_t i, bool *given,
                                 wk_jtext *out) {
    *given = wk_jhas(args, i) && args->values[i].kind != WK_J_NONE;
    return *given ? need_text(j, args, i, out) : WICK_OK;
}

/* A value as markup takes it: as a text, escaped if it is not markup. */
static wick_status get_escaped(wk_jinja *j, const wk_jvalue *value, wk_jtext *out) {
    wk_jvalue text = *value;
    if (value->kind != WK_J_STRING) {
        wk_jbuilder shown = wk_jbuilder_begin(j);
        wk_jput_str(&shown, value);
        WK_TRY(wk_jbuilder_end(&shown, &text));
    }
    if (!text.is_markup) WK_TRY(wk_jescape(j, text.string, &text));
    *out = text.string;
    return WICK_OK;
}

/* Argument i, which is put into self. */
static wick_status get_inserted(wk_jinja *j, const wk_jargs *args, size_t i, wk_jtext *out) {
    return args->self->is_markup ? get_escaped(j, &args->values[i], out)
                                 : need_text(j, args, i, out);
}

/* ---- Letters ---- */

static wick_status letters(wk_jinja *j, const wk_jargs *args, wk_jletters how, wk_jvalue *out) {
    return wk_jletters_of(j, args->self->string, how, out);
}
static wick_status m_upper(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_UPPER_CASE, out);
}
static wick_status m_lower(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_LOWER_CASE, out);
}
static wick_status m_casefold(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_FOLD_CASE, out);
}
static wick_status m_title(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_TITLE_CASE, out);
}
static wick_status m_capitalize(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_CAPITALISE, out);
}
static wick_status m_swapcase(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_SWAP_CASE, out);
}

/* ---- Stripping ---- */

static wick_status strip(wk_jinja *j, const wk_jargs *args, bool left, bool right, wk_jvalue *out) {
    bool given;
    wk_jtext chars;
    WK_TRY(optional_text(j, args, 0, &given, &chars));
    wk_jtext text = args->self->string;
    WK_TRY(wk_jstrip(j, &text, given ? &chars : NULL, left, right));
    *out = wk_jstring(text);
    return WICK_OK;
}
static wick_status m_strip(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return strip(j, args, true, true, out);
}
static wick_status m_lstrip(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return strip(j, args, true, false, out);
}
static wick_status m_rstrip(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return strip(j, args, false, true, out);
}

static wick_status is_affix(wk_jinja *j, wk_jtext text, wk_jtext part, bool at_end, bool *is) {
    *is = false;
    if (part.size > text.size) return WICK_OK;
    const size_t at = at_end ? text.size - part.size : 0;
    *is = part.size == 0 || memcmp(text.text + at, part.text, part.size) == 0;
    return wk_jread(j, part.size);
}

static wick_status remove_affix(wk_jinja *j, const wk_jargs *args, bool at_end, wk_jvalue *out) {
    const wk_jtext text = args->self->string;
    wk_jtext part;
    bool is_there;
    WK_TRY(need_text(j, args, 0, &part));
    WK_TRY(is_affix(j, text, part, at_end, &is_there));
    const size_t size = is_there ? part.size : 0;
    *out = wk_jstring(at_end ? wk_jtext_part(text, 0, text.size - size)
                             : wk_jtext_part(text, size, text.size));
    return WICK_OK;
}
static wick_status m_removeprefix(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return remove_affix(j, args, false, out);
}
static wick_status m_removesuffix(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return remove_affix(j, args, true, out);
}

/* ---- Searching ---- */

/* The part of the string that the arguments at i and i + 1 bound, and its first character. */
static wick_status bounded(wk_jinja *j, const wk_jargs *args, size_t i, wk_jtext *out,
                           int64_t *first) {
    const wk_str text = wk_jtext_str(args->self->string);
    *first = 0;
    *out = args->self->string;
    if (!wk_jhas(args, i) && !wk_jhas(args, i + 1)) return WICK_OK;
    WK_TRY(wk_jread(j, 2 * text.size));
    const int64_t n = (int64_t)wk_jcount_chars(text);
    int64_t ends[2] = {0, n};
    for (size_t k = 0; k < 2; k++) {
        if (wk_jhas(args, i + k) && args->values[i + k].kind != WK_J_NONE)
            WK_TRY(wk_jarg_integer(j, args, i + k, ends[k], &ends[k]));
        if (ends[k] < 0) ends[k] += n;
        if (ends[k] < 0) ends[k] = 0;
    }
    if (ends[1] > n) ends[1] = n;
    *first = ends[0];
    *out = (wk_jtext){NULL, 0, NULL}; /* nothing is found in it, not even an empty text */
    if (ends[0] > ends[1]) return WICK_OK;
    *out = wk_jtext_part(args->self->string, wk_jchar_offset(text, (size_t)ends[0]),
                         wk_jchar_offset(text, (size_t)ends[1]));
    return WICK_OK;
}

/* Index of the character, -1: not found. */
static wick_status find(wk_jinja *j, const wk_jargs *args, bool last, int64_t *out) {
    wk_jtext part, text;
    int64_t first;
    size_t at = SIZE_MAX;
    *out = -1;
    WK_TRY(need_text(j, args, 0, &part));
    WK_TRY(bounded(j, args, 1, &text, &first));
    if (text.text == NULL) return WICK_OK;
    WK_TRY(last ? wk_jfind_last(j, text, part, text.size, &at)
                : wk_jfind_text(j, text, part, 0, &at));
    if (at == SIZE_MAX) return WICK_OK;
    *out = first + (int64_t)wk_jcount_chars((wk_str){text.text, at});
    return wk_jread(j, at);
}

static wick_status find_index(wk_jinja *j, const wk_jargs *args, bool last, bool must,
                              wk_jvalue *out) {
    int64_t index;
    WK_TRY(find(j, args, last, &index));
    if (must && index < 0) return wk_jfail(j, "substring not found");
    *out = wk_jinteger(index);
    return WICK_OK;
}
static wick_status m_find(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return find_index(j, args, false, false, out);
}
static wick_status m_rfind(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return find_index(j, args, true, false, out);
}
static wick_status m_index(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return find_index(j, args, false, true, out);
}
static wick_status m_rindex(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return find_index(j, args, true, true, out);
}

static wick_status m_count(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext part, text;
    int64_t first, n = 0;
    WK_TRY(need_text(j, args, 0, &part));
    WK_TRY(bounded(j, args, 1, &text, &first));
    for (size_t at = 0; text.text != NULL && part.size > 0; at += part.size, n++) {
        WK_TRY(wk_jfind_text(j, text, part, at, &at));
        if (at == SIZE_MAX) break;
    }
    if (part.size == 0 && text.text != NULL) n = (int64_t)wk_jcount_chars(wk_jtext_str(text)) + 1;
    *out = wk_jinteger(n);
    return WICK_OK;
}

/* startswith, endswith: of one text or any of a tuple. */
static wick_status affix(wk_jinja *j, const wk_jargs *args, bool at_end, wk_jvalue *out) {
    wk_jtext text;
    int64_t first;
    const wk_jvalue *const given = &args->values[0];
    const bool is_tuple = given->kind == WK_J_TUPLE;
    if (given->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, given);
    WK_TRY(bounded(j, args, 1, &text, &first));
    *out = wk_jbool(false);
    for (size_t i = 0; i < (is_tuple ? given->list->n : 1); i++) {
        const wk_jvalue *const part = is_tuple ? &given->list->items[i] : given;
        bool is_there = false;
        if (part->kind != WK_J_STRING)
            return wk_jfail(j, "%s first arg must be str or a tuple of str, not %s",
                            at_end ? "endswith" : "startswith", wk_jtype_name(part));
        WK_TRY(wk_jwork(j, 1));
        if (text.text != NULL) WK_TRY(is_affix(j, text, part->string, at_end, &is_there));
        out->boolean |= is_there;
    }
    return WICK_OK;
}
static wick_status m_startswith(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return affix(j, args, false, out);
}
static wick_status m_endswith(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return affix(j, args, true, out);
}

/* ---- Splitting and joining ---- */

static wick_status push_part(wk_jinja *j, wk_jvalue *list, wk_jtext text, size_t from, size_t to) {
    return wk_jlist_push(j, list->list, wk_jstring(wk_jtext_part(text, from, to)));
}

static void reverse(wk_jlist *list) {
    for (size_t i = 0; i < list->n / 2; i++) {
        const wk_jvalue first = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = first;
    }
}

/* At runs of white space, none at the ends. */
static wick_status split_words(wk_jinja *j, wk_jtext text, int64_t most, bool from_end,
                               wk_jvalue *out) {
    for (;; most--) {
        WK_TRY(wk_jstrip(j, &text, NULL, !from_end, from_end));
        if (text.size == 0) return WICK_OK;
        if (most == 0) break;
        const wk_str str = wk_jtext_str(text);
        size_t at = from_end ? text.size : 0;
        if (from_end) { /* to the white space before the last word */
            while (at > 0 && wk_jspace_at_end((wk_str){str.text, at}) == 0) at--;
        } else {
            while (at < text.size &&
                   wk_jspace_at_begin((wk_str){str.text + at, str.size - at}) == 0)
                wk_jnext_char(str, &at);
        }
        WK_TRY(wk_jread(j, WK_J_CHAR * (from_end ? text.size - at : at)));
        WK_TRY(push_part(j, out, text, from_end ? at : 0, from_end ? text.size : at));
        text = wk_jtext_part(text, from_end ? 0 : at, from_end ? at : text.size);
    }
    return push_part(j, out, text, 0, text.size);
}

static wick_status split_at(wk_jinja *j, wk_jtext text, wk_jtext separator, int64_t most,
                            wk_jvalue *out) {
    size_t from = 0, at;
    for (; most != 0; most--, from = at + separator.size) {
        WK_TRY(wk_jfind_text(j, text, separator, from, &at));
        if (at == SIZE_MAX) break;
        WK_TRY(push_part(j, out, text, from, at));
    }
    return push_part(j, out, text, from, text.size);
}

static wick_status split_at_end(wk_jinja *j, wk_jtext text, wk_jtext separator, int64_t most,
                                wk_jvalue *out) {
    size_t to = text.size, at;
    for (; most != 0; most--, to = at) {
        WK_TRY(wk_jfind_last(j, text, separator, to, &at));
        if (at == SIZE_MAX) break;
        WK_TRY(push_part(j, out, text, at + separator.size, to));
    }
    return push_part(j, out, text, 0, to);
}

static wick_status split(wk_jinja *j, const wk_jargs *args, bool from_end, wk_jvalue *out) {
    const wk_jtext text = args->self->string;
    bool given;
    wk_jtext separator;
    int64_t most;
    WK_TRY(optional_text(j, args, 0, &given, &separator));
    WK_TRY(wk_jarg_integer(j, args, 1, -1, &most));
    WK_TRY(wk_jlist_make(j, WK_J_LIST, 0, out));
    if (given && separator.size == 0) return wk_jfail(j, "empty separator");
    if (!given)
        WK_TRY(split_words(j, text, most, from_end, out));
    else
        WK_TRY(from_end ? split_at_end(j, text, separator, most, out)
                        : split_at(j, text, separator, most, out));
    if (from_end) reverse(out->list);
    return WICK_OK;
}
static wick_status m_split(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return split(j, args, false, out);
}
static wick_status m_rsplit(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return split(j, args, true, out);
}

static wick_status m_splitlines(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return wk_jsplit_lines(j, args->self->string, wk_jarg_truth(args, 0, false), out);
}

static wick_status partition(wk_jinja *j, const wk_jargs *args, bool last, wk_jvalue *out) {
    const wk_jtext text = args->self->string;
    wk_jtext separator;
    size_t at;
    WK_TRY(need_text(j, args, 0, &separator));
    if (separator.size == 0) return wk_jfail(j, "empty separator");
    WK_TRY(last ? wk_jfind_last(j, text, separator, text.size, &at)
                : wk_jfind_text(j, text, separator, 0, &at));
    const bool is_found = at != SIZE_MAX;
    size_t size = separator.size;
    if (!is_found) { /* the whole text is on the side that is looked at last */
        at = last ? 0 : text.size;
        size = 0;
    }
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, 3, out));
    WK_TRY(push_part(j, out, text, 0, at));
    WK_TRY(push_part(j, out, text, at, at + size));
    return push_part(j, out, text, at + size, text.size);
}
static wick_status m_partition(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return partition(j, args, false, out);
}
static wick_status m_rpartition(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return partition(j, args, true, out);
}

static wick_status m_join(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jlist items;
    wk_jvalue given = args->values[0];
    WK_TRY(wk_jitems(j, &given, &items));
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (size_t i = 0; i < items.n; i++) {
        const wk_jvalue *const value = &items.items[i];
        wk_jtext item = value->string;
        if (args->self->is_markup)
            WK_TRY(get_escaped(j, value, &item));
        else if (value->kind != WK_J_STRING)
            return wk_jfail(j, "sequence item %zu: expected str instance, %s found", i,
                            wk_jtype_name(value));
        if (i > 0) wk_jput(&made, args->self->string);
        wk_jput(&made, item);
    }
    return wk_jbuilder_end(&made, out);
}

static wick_status m_replace(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext old, new_text;
    int64_t most;
    WK_TRY(need_text(j, args, 0, &old));
    WK_TRY(get_inserted(j, args, 1, &new_text));
    WK_TRY(wk_jarg_integer(j, args, 2, -1, &most));
    return wk_jreplace(j, args->self->string, old, new_text, most, out);
}

/* ---- Filling up ---- */

static wick_status pad(wk_jinja *j, const wk_jargs *args, char align, wk_jvalue *out) {
    int64_t width;
    wk_jtext fill = wk_jtext_of(" ");
    WK_TRY(wk_jarg_integer(j, args, 0, 0, &width));
    if (wk_jhas(args, 1)) WK_TRY(get_inserted(j, args, 1, &fill));
    if (wk_jcount_chars(wk_jtext_str(fill)) != 1)
        return wk_jfail(j, "The fill character must be exactly one character long");
    const wk_jtext text = args->self->string;
    if (align == '^') return wk_jcenter(j, text, width, fill, out);
    const int64_t room = width - (int64_t)wk_jcount_chars(wk_jtext_str(text));
    wk_jbuilder made = wk_jbuilder_begin(j);
    if (align == '<') wk_jput(&made, text);
    wk_jput_repeated(&made, fill, room > 0 ? (size_t)room : 0);
    if (align == '>') wk_jput(&made, text);
    return wk_jbuilder_end(&made, out);
}
static wick_status m_ljust(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pad(j, args, '<', out);
}
static wick_status m_rjust(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pad(j, args, '>', out);
}
static wick_status m_center(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return pad(j, args, '^', out);
}

static wick_status m_zfill(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jtext text = args->self->string;
    int64_t width;
    WK_TRY(wk_jarg_integer(j, args, 0, 0, &width));
    const int64_t room = width - (int64_t)wk_jcount_chars(wk_jtext_str(text));
    const size_t sign = text.size > 0 && (text.text[0] == '-' || text.text[0] == '+');
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput(&made, wk_jtext_part(text, 0, sign));
    wk_jput_repeated(&made, wk_jtext_of("0"), room > 0 ? (size_t)room : 0);
    wk_jput(&made, wk_jtext_part(text, sign, text.size));
    return wk_jbuilder_end(&made, out);
}

static wick_status m_expandtabs(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jtext text = args->self->string;
    int64_t width, column = 0;
    WK_TRY(wk_jarg_integer(j, args, 0, 8, &width));
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (size_t at = 0; at < text.size && made.status == WICK_OK;) {
        const size_t start = at;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        if (code == '\t') {
            const int64_t n = width > 0 ? width - column % width : 0;
            wk_jput_repeated(&made, wk_jtext_of(" "), (size_t)n);
            column += n;
            continue;
        }
        wk_jput(&made, wk_jtext_part(text, start, at));
        column = code == '\n' || code == '\r' ? 0 : column + 1;
    }
    return wk_jbuilder_end(&made, out);
}

static const wk_jbuiltin methods[] = {
    {"upper", m_upper, "", 0, WK_J_READS_ALL},
    {"lower", m_lower, "", 0, WK_J_READS_ALL},
    {"casefold", m_casefold, "", 0, WK_J_READS_ALL},
    {"title", m_title, "", 0, WK_J_READS_ALL},
    {"capitalize", m_capitalize, "", 0, WK_J_READS_ALL},
    {"swapcase", m_swapcase, "", 0, WK_J_READS_ALL},
    {"strip", m_strip, "chars", 0, WK_J_COUNTS},
    {"lstrip", m_lstrip, "chars", 0, WK_J_COUNTS},
    {"rstrip", m_rstrip, "chars", 0, WK_J_COUNTS},
    {"removeprefix", m_removeprefix, "prefix", 1, WK_J_COUNTS},
    {"removesuffix", m_removesuffix, "suffix", 1, WK_J_COUNTS},
    {"find", m_find, "sub start end", 1, WK_J_COUNTS},
    {"rfind", m_rfind, "sub start end", 1, WK_J_READS_ALL},
    {"index", m_index, "sub start end", 1, WK_J_COUNTS},
    {"rindex", m_rindex, "sub start end", 1, WK_J_READS_ALL},
    {"count", m_count, "sub start end", 1, WK_J_READS_ALL},
    {"startswith", m_startswith, "prefix start end", 1, WK_J_COUNTS},
    {"endswith", m_endswith, "suffix start end", 1, WK_J_COUNTS},
    {"split", m_split, "sep maxsplit", 0, WK_J_COUNTS},
    {"rsplit", m_rsplit, "sep maxsplit", 0, WK_J_READS_ALL},
    {"splitlines", m_splitlines, "keepends", 0, WK_J_READS_ALL},
    {"partition", m_partition, "sep", 1, WK_J_COUNTS},
    {"rpartition", m_rpartition, "sep", 1, WK_J_READS_ALL},
    {"join", m_join, "iterable", 1, WK_J_READS_ALL},
    {"replace", m_replace, "old new count", 2, WK_J_READS_ALL},
    {"ljust", m_ljust, "width fillchar", 1, WK_J_READS_ALL},
    {"rjust", m_rjust, "width fillchar", 1, WK_J_READS_ALL},
    {"center", m_center, "width fillchar", 1, WK_J_READS_ALL},
    {"zfill", m_zfill, "width", 1, WK_J_READS_ALL},
    {"expandtabs", m_expandtabs, "tabsize", 0, WK_J_READS_ALL},
    {"format", wk_jformat_braces, NULL, 0, WK_J_READS_ALL},
};
const wk_jtable wk_jstring_methods = {methods, WK_COUNT(methods)};
