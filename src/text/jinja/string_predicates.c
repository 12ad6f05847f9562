/* text/jinja/string_predicates.c: str.isdigit and its like. */
#include "text/jinja/chars.h"
#include "text/jinja/state.h"
#include "text/unicode/unicode_case.h"

typedef bool (*holds_fn)(uint32_t code);

static bool is_alpha(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_ALPHABETIC); }
static bool is_decimal(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_DECIMAL); }
static bool is_digit(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_DIGIT); }
static bool is_numeric(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_NUMERIC); }
static bool is_printable(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_PRINTABLE); }
static bool is_upper(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_UPPER); }
static bool is_lower(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_LOWER); }
static bool is_title(uint32_t c) { return wk_unicode_is(c, WK_UNICODE_TITLE); }
static bool is_alnum(uint32_t c) { return is_alpha(c) || is_numeric(c); }
static bool is_ascii(uint32_t c) { return c < 0x80; }

/* Whether it holds for all characters of the string, of which there is one, unless empty says that
 * none is enough. */
static wick_status all(wk_jinja *j, const wk_jargs *args, holds_fn holds, bool empty,
                       wk_jvalue *out) {
    const wk_str text = wk_jtext_str(args->self->string);
    bool holds_so_far = text.size > 0 || empty;
    WK_TRY(wk_jwork(j, text.size));
    for (size_t at = 0; at < text.size && holds_so_far;)
        holds_so_far = holds(wk_jnext_char(text, &at));
    *out = wk_jbool(holds_so_far);
    return WICK_OK;
}

static wick_status m_isalpha(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_alpha, false, out);
}
static wick_status m_isdecimal(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_decimal, false, out);
}
static wick_status m_isdigit(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_digit, false, out);
}
static wick_status m_isnumeric(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_numeric, false, out);
}
static wick_status m_isalnum(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_alnum, false, out);
}
static wick_status m_isspace(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, wk_jis_space, false, out);
}
static wick_status m_isascii(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_ascii, true, out);
}
static wick_status m_isprintable(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return all(j, args, is_printable, true, out);
}

/* One letter at least has this case, and none the other. */
static wick_status is_case(wk_jinja *j, const wk_jargs *args, holds_fn wanted, holds_fn other,
                           wk_jvalue *out) {
    const wk_str text = wk_jtext_str(args->self->string);
    bool is_found = false;
    WK_TRY(wk_jwork(j, text.size));
    *out = wk_jbool(false);
    for (size_t at = 0; at < text.size;) {
        const uint32_t code = wk_jnext_char(text, &at);
        if (other(code) || is_title(code)) return WICK_OK;
        is_found |= wanted(code);
    }
    out->boolean = is_found;
    return WICK_OK;
}
static wick_status m_islower(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return is_case(j, args, is_lower, is_upper, out);
}
static wick_status m_isupper(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    return is_case(j, args, is_upper, is_lower, out);
}

/* Lower case only after letters, upper case only elsewhere. */
static wick_status m_istitle(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_str text = wk_jtext_str(args->self->string);
    bool is_found = false, follows = false;
    WK_TRY(wk_jwork(j, text.size));
    *out = wk_jbool(false);
    for (size_t at = 0; at < text.size;) {
        const uint32_t code = wk_jnext_char(text, &at);
        const bool begins = is_upper(code) || is_title(code);
        if ((begins && follows) || (is_lower(code) && !follows)) return WICK_OK;
        follows = begins || is_lower(code);
        is_found |= follows;
    }
    out->boolean = is_found;
    return WICK_OK;
}

static wick_status m_isidentifier(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_str text = wk_jtext_str(args->self->string);
    bool holds = text.size > 0;
    WK_TRY(wk_jwork(j, text.size));
    for (size_t at = 0; at < text.size && holds;) {
        const bool is_first = at == 0;
        const uint32_t code = wk_jnext_char(text, &at);
        holds = code == '_' || is_alpha(code) || (!is_first && is_decimal(code));
    }
    *out = wk_jbool(holds);
    return WICK_OK;
}

static const wk_jbuiltin methods[] = {
    {"isalpha", m_isalpha, "", 0, WK_J_READS_ALL},
    {"isdecimal", m_isdecimal, "", 0, WK_J_READS_ALL},
    {"isdigit", m_isdigit, "", 0, WK_J_READS_ALL},
    {"isnumeric", m_isnumeric, "", 0, WK_J_READS_ALL},
    {"isalnum", m_isalnum, "", 0, WK_J_READS_ALL},
    {"isspace", m_isspace, "", 0, WK_J_READS_ALL},
    {"isascii", m_isascii, "", 0, WK_J_READS_ALL},
    {"isprintable", m_isprintable, "", 0, WK_J_READS_ALL},
    {"islower", m_islower, "", 0, WK_J_READS_ALL},
    {"isupper", m_isupper, "", 0, WK_J_READS_ALL},
    {"istitle", m_istitle, "", 0, WK_J_READS_ALL},
    {"isidentifier", m_isidentifier, "", 0, WK_J_READS_ALL},
};
const wk_jtable wk_jstring_predicates = {methods, WK_COUNT(methods)};
