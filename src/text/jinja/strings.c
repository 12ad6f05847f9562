/* text/jinja/strings.c: letters, stripping, searching, replacing. */
#include "text/jinja/strings.h"

#include "text/jinja/chars.h"
#include "text/unicode/unicode_case.h"

#include <string.h>

static bool is_cased(uint32_t code) {
    return wk_unicode_is(code, WK_UNICODE_LOWER) || wk_unicode_is(code, WK_UNICODE_UPPER) ||
           wk_unicode_is(code, WK_UNICODE_TITLE);
}

/* follows_letter: the character before was one with a case. */
static wk_unicode_case case_of(wk_jletters how, uint32_t code, bool is_first, bool follows_letter) {
    switch (how) {
    case WK_J_UPPER_CASE: return WK_UNICODE_TO_UPPER;
    case WK_J_FOLD_CASE: return WK_UNICODE_FOLD;
    case WK_J_TITLE_CASE: return follows_letter ? WK_UNICODE_TO_LOWER : WK_UNICODE_TO_TITLE;
    case WK_J_CAPITALISE: return is_first ? WK_UNICODE_TO_TITLE : WK_UNICODE_TO_LOWER;
    case WK_J_SWAP_CASE:
        return wk_unicode_is(code, WK_UNICODE_UPPER)   ? WK_UNICODE_TO_LOWER
               : wk_unicode_is(code, WK_UNICODE_LOWER) ? WK_UNICODE_TO_UPPER
                                                       : WK_UNICODE_TO_TITLE; /* as it is */
    default: return WK_UNICODE_TO_LOWER;
    }
}

wick_status wk_jletters_of(wk_jinja *j, wk_jtext text, wk_jletters how, wk_jvalue *out) {
    wk_jbuilder made = wk_jbuilder_begin(j);
    bool follows_letter = false;
    unsigned cost = 2;                                             /* of a character, as measured */
    if (how == WK_J_TITLE_CASE || how == WK_J_SWAP_CASE) cost = 3; /* they ask for its case */
    if (how == WK_J_FOLD_CASE) cost = 4;
    WK_TRY(wk_jread(j, WK_J_STEP + cost * WK_J_CHAR * (uint64_t)text.size));
    for (size_t at = 0; at < text.size && made.status == WICK_OK;) {
        const size_t start = at;
        const bool is_data = text.origin != NULL && text.origin[at] != 0;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        uint32_t codes[3];
        const wk_unicode_case to = case_of(how, code, start == 0, follows_letter);
        const size_t n = wk_unicode_convert(code, to, codes);
        for (size_t i = 0; i < n; i++) wk_jput_char(&made, codes[i], is_data);
        follows_letter = how == WK_J_TITLE_CASE && is_cased(code);
    }
    return wk_jbuilder_end(&made, out);
}

static bool is_one_of(wk_jtext chars, const char *text, size_t size) {
    for (size_t at = 0; at < chars.size;) {
        const size_t start = at;
        wk_jnext_char(wk_jtext_str(chars), &at);
        if (at - start == size && memcmp(chars.text + start, text, size) == 0) return true;
    }
    return false;
}

/* Bytes to strip at the beginning, or at the end. */
static size_t strip_size(wk_jtext text, const wk_jtext *chars, bool at_end) {
    const wk_str str = wk_jtext_str(text);
    if (chars == NULL) return at_end ? wk_jspace_at_end(str) : wk_jspace_at_begin(str);
    if (text.size == 0) return 0;
    size_t start = 0, end = 0;
    if (at_end) {
        start = text.size - 1;
        while (start > 0 && ((unsigned char)text.text[start] & 0xC0) == 0x80) start--;
        end = text.size;
    } else {
        wk_jnext_char(str, &end);
    }
    return is_one_of(*chars, text.text + start, end - start) ? end - start : 0;
}

wick_status wk_jstrip(wk_jinja *j, wk_jtext *text, const wk_jtext *chars, bool left, bool right) {
    const uint64_t cost = WK_J_STEP + WK_J_CHAR * (chars != NULL ? (uint64_t)chars->size : 0);
    for (size_t n; left && (n = strip_size(*text, chars, false)) > 0;) {
        *text = wk_jtext_part(*text, n, text->size);
        WK_TRY(wk_jread(j, cost));
    }
    for (size_t n; right && (n = strip_size(*text, chars, true)) > 0;) {
        *text = wk_jtext_part(*text, 0, text->size - n);
        WK_TRY(wk_jread(j, cost));
    }
    return wk_jread(j, 2 * cost);
}

static bool stands_at(wk_jtext text, wk_jtext part, size_t at) {
    return part.size == 0 || memcmp(text.text + at, part.text, part.size) == 0;
}

wick_status wk_jfind_text(wk_jinja *j, wk_jtext text, wk_jtext part, size_t from, size_t *at) {
    *at = SIZE_MAX;
    for (size_t i = from; i <= text.size && part.size <= text.size - i; i++) {
        const size_t places = text.size - i - part.size + 1;
        const char *const first =
            part.size > 0 ? memchr(text.text + i, part.text[0], places) : text.text + i;
        WK_TRY(wk_jread(j, first != NULL ? (size_t)(first - text.text) - i : places));
        if (first == NULL) break;
        i = (size_t)(first - text.text);
        WK_TRY(wk_jread(j, part.size + WK_J_CHAR));
        if (!stands_at(text, part, i)) continue;
        *at = i;
        break;
    }
    return WICK_OK;
}

wick_status wk_jfind_last(wk_jinja *j, wk_jtext text, wk_jtext part, size_t to, size_t *at) {
    *at = SIZE_MAX;
    if (part.size > to) return WICK_OK;
    for (size_t i = to - part.size + 1; i-- > 0;) {
        const bool may_stand = part.size == 0 || text.text[i] == part.text[0];
        WK_TRY(wk_jread(j, may_stand ? part.size + WK_J_CHAR : 1));
        if (!may_stand || !stands_at(text, part, i)) continue;
        *at = i;
        break;
    }
    return WICK_OK;
}

/* An empty text stands before each character and at the end. */
static wick_status replace_empty(wk_jinja *j, wk_jtext text, wk_jtext new_text, int64_t most,
                                 wk_jvalue *out) {
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (size_t at = 0; made.status == WICK_OK;) {
        if (most != 0) wk_jput(&made, new_text);
        if (most > 0) most--;
        if (at == text.size) break;
        const size_t start = at;
        wk_jnext_char(wk_jtext_str(text), &at);
        wk_jput(&made, wk_jtext_part(text, start, at));
    }
    return wk_jbuilder_end(&made, out);
}

wick_status wk_jreplace(wk_jinja *j, wk_jtext text, wk_jtext old, wk_jtext new_text, int64_t most,
                        wk_jvalue *out) {
    if (old.size == 0) return replace_empty(j, text, new_text, most, out);
    wk_jbuilder made = wk_jbuilder_begin(j);
    size_t from = 0, at;
    for (; most != 0; most--) {
        WK_TRY(wk_jfind_text(j, text, old, from, &at));
        if (at == SIZE_MAX) break;
        wk_jput(&made, wk_jtext_part(text, from, at));
        wk_jput(&made, new_text);
        WK_TRY(made.status);
        from = at + old.size;
    }
    wk_jput(&made, wk_jtext_part(text, from, text.size));
    return wk_jbuilder_end(&made, out);
}

static bool ends_line(uint32_t code) {
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

wick_status wk_jsplit_lines(wk_jinja *j, wk_jtext text, bool keep_ends, wk_jvalue *out) {
    size_t start = 0;
    WK_TRY(wk_jlist_make(j, WK_J_LIST, 0, out));
    WK_TRY(wk_jread(j, WK_J_CHAR * text.size));
    for (size_t at = 0; at < text.size;) {
        const size_t end = at;
        const uint32_t code = wk_jnext_char(wk_jtext_str(text), &at);
        if (!ends_line(code) && at < text.size) continue;
        if (code == '\r' && at < text.size && text.text[at] == '\n') at++;
        const size_t stop = keep_ends || !ends_line(code) ? at : end;
        WK_TRY(wk_jlist_push(j, out->list, wk_jstring(wk_jtext_part(text, start, stop))));
        start = at;
    }
    return WICK_OK;
}

/* Where the padding is odd, it is as Python has it. */
wick_status wk_jcenter(wk_jinja *j, wk_jtext text, int64_t width, wk_jtext fill, wk_jvalue *out) {
    WK_TRY(wk_jread(j, text.size));
    const int64_t size = (int64_t)wk_jcount_chars(wk_jtext_str(text));
    const int64_t room = width > size ? width - size : 0;
    const int64_t left = room / 2 + (room & width & 1);
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput_repeated(&made, fill, (size_t)left);
    wk_jput(&made, text);
    wk_jput_repeated(&made, fill, (size_t)(room - left));
    return wk_jbuilder_end(&made, out);
}
