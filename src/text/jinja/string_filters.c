/* text/jinja/string_filters.c: filters that make text. */
#include "text/jinja/chars.h"
#include "text/jinja/format.h"
#include "text/jinja/strings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is filtered, as text; markup stays markup in *is_markup. */
static wick_status self_text(wk_jinja *j, const wk_jargs *args, wk_jtext *out) {
    return wk_jstr(j, args->self, out);
}

/* Where Python would call a method of it. */
static wick_status own_text(wk_jinja *j, const wk_jargs *args, wk_jtext *out) {
    if (args->self->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, args->self);
    if (args->self->kind != WK_J_STRING)
        return wk_jfail(j, "'%s' object has no attribute 'splitlines'", wk_jtype_name(args->self));
    return self_text(j, args, out);
}

static wick_status letters(wk_jinja *j, const wk_jargs *args, wk_jletters how, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jletters_of(j, text, how, out));
    out->is_markup = args->self->kind == WK_J_STRING && args->self->is_markup;
    return WICK_OK;
}
static wick_status f_upper(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_UPPER_CASE, out);
}
static wick_status f_lower(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_LOWER_CASE, out);
}
static wick_status f_capitalize(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return letters(j, args, WK_J_CAPITALISE, out);
}

/* Upper case for its first character, lower case for the others. */
static wick_status put_title_word(wk_jbuilder *to, wk_jtext word) {
    size_t first = 0;
    wk_jvalue part;
    if (word.size > 0) wk_jnext_char(wk_jtext_str(word), &first);
    WK_TRY(wk_jletters_of(to->j, wk_jtext_part(word, 0, first), WK_J_UPPER_CASE, &part));
    wk_jput(to, part.string);
    WK_TRY(wk_jletters_of(to->j, wk_jtext_part(word, first, word.size), WK_J_LOWER_CASE, &part));
    wk_jput(to, part.string);
    return to->status;
}

/* Words begin after white space, hyphens and opening brackets. */
static wick_status f_title(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(self_text(j, args, &text));
    wk_jbuilder made = wk_jbuilder_begin(j);
    size_t start = 0;
    for (size_t at = 0; at < text.size;) {
        const size_t here = at;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        const bool separates =
            wk_jis_space(code) || (code < 0x80 && code != 0 && strchr("-([{<", (int)code));
        if (!separates && at < text.size) continue;
        const size_t end = separates ? here : at;
        WK_TRY(put_title_word(&made, wk_jtext_part(text, start, end)));
        wk_jput(&made, wk_jtext_part(text, end, at));
        start = at;
    }
    return wk_jbuilder_end(&made, out);
}

static wick_status f_trim(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text, chars;
    const bool given = wk_jhas(args, 0) && args->values[0].kind != WK_J_NONE;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jarg_text(j, args, 0, NULL, &chars));
    WK_TRY(wk_jstrip(j, &text, given ? &chars : NULL, true, true));
    *out = wk_jstring(text);
    out->is_markup = args->self->kind == WK_J_STRING && args->self->is_markup;
    return WICK_OK;
}

static wick_status f_replace(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text, old, new_text;
    int64_t most = -1;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jarg_text(j, args, 0, NULL, &old));
    WK_TRY(wk_jarg_text(j, args, 1, NULL, &new_text));
    if (wk_jhas(args, 2) && args->values[2].kind != WK_J_NONE)
        WK_TRY(wk_jarg_integer(j, args, 2, -1, &most));
    return wk_jreplace(j, text, old, new_text, most, out);
}

static wick_status f_string(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(self_text(j, args, &text));
    *out = wk_jstring(text);
    out->is_markup = args->self->kind == WK_J_STRING && args->self->is_markup;
    return WICK_OK;
}

static wick_status f_safe(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(f_string(j, args, out));
    out->is_markup = true;
    return WICK_OK;
}

void wk_jput_html(wk_jbuilder *to, wk_jtext text) {
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    size_t from = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char *const found = text.text[i] != '\0' ? strchr(special, text.text[i]) : NULL;
        if (found == NULL) continue;
        wk_jput(to, wk_jtext_part(text, from, i));
        wk_jput_word(to, escaped[found - special]);
        from = i + 1;
    }
    wk_jput(to, wk_jtext_part(text, from, text.size));
}

wick_status wk_jescape(wk_jinja *j, wk_jtext text, wk_jvalue *out) {
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput_html(&made, text);
    return wk_jbuilder_end(&made, out);
}

static wick_status f_forceescape(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jescape(j, text, out));
    out->is_markup = true;
    return WICK_OK;
}

static wick_status f_escape(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    if (args->self->kind != WK_J_STRING || !args->self->is_markup)
        return f_forceescape(j, args, out);
    *out = *args->self;
    return WICK_OK;
}

/* The text without what stands from an opening to the next closing. */
static wick_status cut_out(wk_jinja *j, wk_jtext text, const char *open, const char *close,
                           wk_jtext *out) {
    wk_jbuilder kept = wk_jbuilder_begin(j);
    for (size_t from = 0, start, end;; from = end + strlen(close)) {
        WK_TRY(wk_jfind_text(j, text, wk_jtext_of(open), from, &start));
        end = SIZE_MAX;
        if (start != SIZE_MAX) WK_TRY(wk_jfind_text(j, text, wk_jtext_of(close), start, &end));
        wk_jput(&kept, wk_jtext_part(text, from, end != SIZE_MAX ? start : text.size));
        if (end == SIZE_MAX) break;
    }
    *out = wk_jbuilder_text(&kept);
    return kept.status;
}

/* Comments and tags go, white space becomes single blanks. */
static wick_status f_striptags(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(cut_out(j, text, "<!--", "-->", &text));
    WK_TRY(cut_out(j, text, "<", ">", &text));
    wk_jbuilder made = wk_jbuilder_begin(j);
    bool owes_blank = false;
    for (size_t at = 0; at < text.size && made.status == WICK_OK;) {
        const size_t start = at;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        if (wk_jis_space(code)) {
            owes_blank = made.size > 0;
            continue;
        }
        if (owes_blank) wk_jput_word(&made, " ");
        owes_blank = false;
        wk_jput(&made, wk_jtext_part(text, start, at));
    }
    return wk_jbuilder_end(&made, out);
}

static bool breaks_attribute(wk_jtext name) {
    for (size_t i = 0; i < name.size; i++) {
        if (name.text[i] != '\0' && strchr(" \t\n\v\f\r/>=", name.text[i]) != NULL) return true;
    }
    return false;
}

/* A dict as attributes of a tag, a blank before each of them; none and undefined are left out. */
static wick_status f_xmlattr(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const bool leads = wk_jarg_truth(args, 0, true);
    wk_jbuilder made = wk_jbuilder_begin(j);
    if (args->self->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, args->self);
    if (args->self->kind != WK_J_DICT) return wk_jfail(j, "xmlattr wants a mapping");
    for (size_t i = 0; i < args->self->dict->n; i++) {
        const wk_jentry *const entry = &args->self->dict->entries[i];
        wk_jtext name, value;
        if (entry->value.kind == WK_J_NONE || entry->value.kind == WK_J_UNDEFINED) continue;
        WK_TRY(wk_jstr(j, &entry->key, &name));
        WK_TRY(wk_jstr(j, &entry->value, &value));
        WK_TRY(wk_jread(j, name.size));
        if (entry->key.kind != WK_J_STRING || breaks_attribute(name))
            return wk_jfail(j, "Invalid character in attribute name");
        if (made.size > 0 || leads) wk_jput_word(&made, " ");
        wk_jput_html(&made, name);
        wk_jput_word(&made, "=\"");
        if (entry->value.is_markup)
            wk_jput(&made, value);
        else
            wk_jput_html(&made, value);
        wk_jput_word(&made, "\"");
    }
    WK_TRY(wk_jbuilder_end(&made, out));
    out->is_markup = j->escapes;
    return WICK_OK;
}

/* It finds addresses in a text and makes HTML of them: nothing that a prompt can want. */
static wick_status f_urlize(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)args, (void)out;
    return wk_jfail(j, "the filter 'urlize' is not supported");
}

/* width: a number of blanks or a text. */
static wick_status f_indent(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    wk_jvalue lines;
    wk_jbuilder blanks = wk_jbuilder_begin(j), ended = blanks, made = blanks;
    int64_t width = 4;
    WK_TRY(own_text(j, args, &text));
    if (wk_jhas(args, 0) && args->values[0].kind == WK_J_STRING) {
        wk_jput(&blanks, args->values[0].string);
    } else {
        WK_TRY(wk_jarg_integer(j, args, 0, 4, &width));
        wk_jput_repeated(&blanks, wk_jtext_of(" "), width > 0 ? (size_t)width : 0);
    }
    wk_jput(&ended, text);
    wk_jput_word(&ended, "\n"); /* so that an empty last line is one */
    WK_TRY(blanks.status);
    WK_TRY(ended.status);
    WK_TRY(wk_jsplit_lines(j, wk_jbuilder_text(&ended), false, &lines));
    const bool first = wk_jarg_truth(args, 1, false), blank = wk_jarg_truth(args, 2, false);
    for (size_t i = 0; i < lines.list->n && made.status == WICK_OK; i++) {
        const wk_jtext line = lines.list->items[i].string;
        if (i > 0) wk_jput_word(&made, "\n");
        if (i == 0 ? first : blank || line.size > 0) wk_jput(&made, wk_jbuilder_text(&blanks));
        wk_jput(&made, line);
    }
    return wk_jbuilder_end(&made, out);
}

static wick_status f_center(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    int64_t width;
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jarg_integer(j, args, 0, 80, &width));
    return wk_jcenter(j, text, width, wk_jtext_of(" "), out);
}

/* length, killwords, end, leeway: cut at a word, unless killwords. */
static wick_status f_truncate(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text, end;
    int64_t length, leeway;
    if (!wk_jhas_length(args->self))
        return wk_jfail(j, "object of type '%s' has no len()", wk_jtype_name(args->self));
    WK_TRY(self_text(j, args, &text));
    WK_TRY(wk_jarg_integer(j, args, 0, 255, &length));
    WK_TRY(wk_jarg_text(j, args, 2, "...", &end));
    WK_TRY(wk_jarg_integer(j, args, 3, 5, &leeway));
    const int64_t n_end = (int64_t)wk_jcount_chars(wk_jtext_str(end));
    if (length < n_end) return wk_jfail(j, "expected length >= %" PRId64, n_end);
    if (leeway < 0) return wk_jfail(j, "expected leeway >= 0");
    *out = wk_jstring(text);
    if ((int64_t)wk_jcount_chars(wk_jtext_str(text)) - length <= leeway) return WICK_OK;
    wk_jtext kept =
        wk_jtext_part(text, 0, wk_jchar_offset(wk_jtext_str(text), (size_t)(length - n_end)));
    size_t blank = SIZE_MAX;
    if (!wk_jarg_truth(args, 1, false))
        WK_TRY(wk_jfind_last(j, kept, wk_jtext_of(" "), kept.size, &blank));
    if (blank != SIZE_MAX) kept = wk_jtext_part(kept, 0, blank);
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput(&made, kept);
    wk_jput(&made, end);
    return wk_jbuilder_end(&made, out);
}

/* Runs of letters, digits and underscores. */
static wick_status f_wordcount(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text;
    int64_t n = 0;
    bool in_word = false;
    WK_TRY(self_text(j, args, &text));
    for (size_t at = 0; at < text.size;) {
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        const bool is_word = code == '_' || wk_jis_word(code);
        n += is_word && !in_word;
        in_word = is_word;
    }
    *out = wk_jinteger(n);
    return WICK_OK;
}

/* ---- Wrapping, as textwrap does it ---- */

/* Bytes of the word that the text begins with, or of the white space; *n: its characters, of which
 * no more than most + 1 are looked at. */
static size_t chunk_size(wk_jtext text, size_t most, size_t *n) {
    const wk_str str = wk_jtext_str(text);
    const bool is_space = wk_jspace_at_begin(str) > 0;
    size_t at = 0;
    for (*n = 0; at < str.size && *n <= most; ++*n) {
        if ((wk_jspace_at_begin((wk_str){str.text + at, str.size - at}) > 0) != is_space) break;
        wk_jnext_char(str, &at);
    }
    return at;
}

/* Takes one line from *rest: whole words, or the part of a word that is too long for any line.
 * Blanks at both ends are dropped, except for those at the beginning of the text. */
static wk_jtext take_line(wk_jtext *rest, size_t width, bool breaks_long, bool is_first) {
    size_t n, n_line = 0, start = 0;
    if (!is_first && wk_jspace_at_begin(wk_jtext_str(*rest)) > 0)
        start = chunk_size(*rest, rest->size, &n);
    size_t end = start, last = start; /* last: where the last chunk begins */
    while (end < rest->size) {
        const wk_jtext ahead = wk_jtext_part(*rest, end, rest->size);
        const size_t size = chunk_size(ahead, breaks_long ? width : ahead.size, &n);
        const bool is_long = n > width;
        if (n_line + n > width && !(is_long && (breaks_long || end == start))) break;
        last = end;
        end += is_long && breaks_long ? wk_jchar_offset(wk_jtext_str(ahead), width - n_line) : size;
        n_line += n;
        if (is_long) break;
    }
    const wk_jtext line = wk_jtext_part(*rest, start, end);
    const wk_jtext tail = wk_jtext_part(*rest, last, end);
    *rest = wk_jtext_part(*rest, end, rest->size);
    const bool ends_blank = wk_jspace_at_begin(wk_jtext_str(tail)) > 0;
    return ends_blank ? wk_jtext_part(line, 0, last - start) : line;
}

static wick_status put_wrapped(wk_jbuilder *to, wk_jtext text, size_t width, bool breaks_long,
                               wk_jtext end) {
    for (bool is_first = true; text.size > 0 && to->status == WICK_OK;) {
        const size_t before = text.size;
        const wk_jtext line = take_line(&text, width, breaks_long, is_first);
        WK_TRY(wk_jread(to->j, 4 * WK_J_STEP + WK_J_CHAR * (before - text.size)));
        if (line.size == 0) continue;
        if (!is_first) wk_jput(to, end);
        wk_jput(to, line);
        is_first = false;
    }
    return to->status;
}

static wick_status f_wordwrap(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jtext text, end;
    wk_jvalue lines;
    int64_t width;
    WK_TRY(own_text(j, args, &text));
    WK_TRY(wk_jarg_integer(j, args, 0, 79, &width));
    WK_TRY(wk_jarg_text(j, args, 2, "\n", &end));
    if (width <= 0) return wk_jfail(j, "invalid width %" PRId64 " (must be > 0)", width);
    WK_TRY(wk_jsplit_lines(j, text, false, &lines));
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (size_t i = 0; i < lines.list->n; i++) {
        if (i > 0) wk_jput(&made, end);
        WK_TRY(put_wrapped(&made, lines.list->items[i].string, (size_t)width,
                           wk_jarg_truth(args, 1, true), end));
    }
    return wk_jbuilder_end(&made, out);
}

static wick_status f_format(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jvalue values, format;
    if (args->n > 0 && wk_jn_named(args) > 0)
        return wk_jfail(j, "can't handle positional and keyword arguments at the same time");
    WK_TRY(f_string(j, args, &format));
    WK_TRY(wk_jn_named(args) > 0 ? wk_jdict_make(j, WK_J_DICT, &values)
                                 : wk_jlist_make(j, WK_J_TUPLE, args->n, &values));
    for (size_t i = 0; i < args->n; i++) WK_TRY(wk_jlist_push(j, values.list, args->values[i]));
    for (size_t i = 0; i < wk_jn_named(args); i++) {
        const wk_jentry *const entry = &args->named->entries[i];
        WK_TRY(wk_jdict_set(j, values.dict, entry->key, entry->value));
    }
    return wk_jformat_percent(j, &format, &values, out);
}

/* In a query a blank is a plus. */
static void put_encoded(wk_jbuilder *to, wk_jtext text, bool is_query) {
    const char *const safe = is_query ? "_.-~" : "/_.-~";
    for (size_t i = 0; i < text.size && to->status == WICK_OK; i++) {
        const unsigned char c = (unsigned char)text.text[i];
        const bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                              (c != '\0' && strchr(safe, c) != NULL);
        static const char hex[] = "0123456789ABCDEF";
        const char code[4] = {'%', hex[c >> 4], hex[c & 15], '\0'};
        if (is_plain)
            wk_jput(to, wk_jtext_part(text, i, i + 1));
        else if (is_query && c == ' ')
            wk_jput_word(to, "+");
        else
            wk_jput_word(to, code);
    }
}

/* Of a text, or of pairs as a query. */
static wick_status f_urlencode(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jvalue given = *args->self;
    wk_jtext text;
    if (given.kind == WK_J_STRING || !wk_jis_iterable(&given)) {
        WK_TRY(self_text(j, args, &text));
        put_encoded(&made, text, false);
        return wk_jbuilder_end(&made, out);
    }
    wk_jlist pairs, pair;
    if (given.kind == WK_J_DICT) given.kind = WK_J_ITEMS;
    WK_TRY(wk_jitems(j, &given, &pairs));
    for (size_t i = 0; i < pairs.n; i++) {
        wk_jvalue item = pairs.items[i];
        WK_TRY(wk_jitems(j, &item, &pair));
        if (pair.n != 2) return wk_jfail(j, "urlencode wants pairs");
        for (size_t k = 0; k < 2; k++) {
            if (i + k > 0) wk_jput_word(&made, k > 0 ? "=" : "&");
            WK_TRY(wk_jstr(j, &pair.items[k], &text));
            put_encoded(&made, text, true);
        }
    }
    return wk_jbuilder_end(&made, out);
}

static wick_status f_filesizeformat(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    static const char letters_of[] = "kMGTPEZY";
    const wk_jvalue fallback = wk_jnone();
    wk_jvalue number;
    WK_TRY(wk_jcall_builtin(j, wk_jfind_filter(wk_str_of("float")),
                            &(wk_jargs){.self = args->self, .values = &fallback, .n = 1}, &number));
    if (number.kind == WK_J_NONE) return wk_jfail(j, "filesizeformat wants a number");
    WK_TRY(wk_jwork(j, WK_J_FLOAT_STEPS));
    const bool is_binary = wk_jarg_truth(args, 0, false);
    const double bytes = number.number, base = is_binary ? 1024 : 1000;
    char text[400]; /* of 10^308 */
    double unit = base;
    size_t i = 0;
    while (i < 7 && bytes >= unit * base) {
        unit *= base;
        i++;
    }
    if (bytes == 1.0)
        snprintf(text, sizeof text, "1 Byte");
    else if (bytes < base)
        snprintf(text, sizeof text, "%.0f Bytes", trunc(bytes));
    else /* tenths by hand: no locale has a say in the point */
        snprintf(text, sizeof text, "%.0f.%d %c%sB", floor(round(bytes / unit * 10) / 10),
                 (int)fmod(round(bytes / unit * 10), 10.0),
                 is_binary && i == 0 ? 'K' : letters_of[i], is_binary ? "i" : "");
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput_word(&made, text);
    return wk_jbuilder_end(&made, out);
}

static wick_status f_pprint(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput_repr(&made, args->self);
    return wk_jbuilder_end(&made, out);
}

static const wk_jbuiltin filters[] = {
    {"upper", f_upper, "", 0, WK_J_READS_ALL},
    {"lower", f_lower, "", 0, WK_J_READS_ALL},
    {"capitalize", f_capitalize, "", 0, WK_J_READS_ALL},
    {"title", f_title, "", 0, WK_J_READS_ALL},
    {"trim", f_trim, "chars", 0, WK_J_COUNTS},
    {"replace", f_replace, "old new count", 2, WK_J_READS_ALL},
    {"string", f_string, "", 0, WK_J_COUNTS},
    {"safe", f_safe, "", 0, WK_J_COUNTS},
    {"escape", f_escape, "", 0, WK_J_READS_ALL},
    {"e", f_escape, "", 0, WK_J_READS_ALL},
    {"forceescape", f_forceescape, "", 0, WK_J_READS_ALL},
    {"striptags", f_striptags, "", 0, WK_J_READS_ALL},
    {"indent", f_indent, "width first blank", 0, WK_J_READS_ALL},
    {"center", f_center, "width", 0, WK_J_READS_ALL},
    {"truncate", f_truncate, "length killwords end leeway", 0, WK_J_READS_ALL},
    {"wordcount", f_wordcount, "", 0, WK_J_READS_ALL},
    {"wordwrap", f_wordwrap, "width break_long_words wrapstring break_on_hyphens", 0,
     WK_J_READS_ALL},
    {"format", f_format, NULL, 0, WK_J_READS_ALL},
    {"urlencode", f_urlencode, "", 0, WK_J_READS_ALL},
    {"filesizeformat", f_filesizeformat, "binary", 0, WK_J_READS_ALL},
    {"pprint", f_pprint, "", 0, WK_J_READS_ALL},
    {"xmlattr", f_xmlattr, "autospace", 0, WK_J_READS_ALL},
    {"urlize", f_urlize, NULL, 0, WK_J_COUNTS},
    {"tojson", wk_jfilter_tojson, "ensure_ascii indent separators sort_keys", 0, WK_J_READS_ALL},
};
const wk_jtable wk_jstring_filters = {filters, WK_COUNT(filters)};
