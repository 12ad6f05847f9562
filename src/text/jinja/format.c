/* text/jinja/format.c: "%5.2f" % x and "{:>5}".format(x), as Python has them. */
#include "text/jinja/format.h"

#include "text/jinja/chars.h"
#include "text/jinja/strings.h"
#include "text/unicode/unicode_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 20, MAX_PRECISION = 300, NUMBER_SIZE = 720 };

/* What a format specification says: [[fill]align][sign][z][#][0][width][,][.precision][type] */
typedef struct format_spec {
    uint32_t fill;   /* a code point */
    char align;      /* < > ^ =, 0: by the kind of the value */
    char sign;       /* - + or a blank */
    bool drops_sign; /* of a float that is shown as 0 */
    bool alternate;
    int width, precision; /* precision -1: not given */
    char grouping;        /* , or _, 0: none */
    char type;            /* 0: not given */
} format_spec;

/* ---- Numbers ---- */

void wk_jfixed_text(double number, int precision, char *out, size_t size) {
    snprintf(out, size, "%.*f", precision, number);
    wk_use_point(out);
}

/* Digits of a float without its sign; type one of f F e E g G n %, or 0 for repr. */
static void float_digits(double number, const format_spec *spec, char *out) {
    const bool is_percent = spec->type == '%', is_plain = spec->type == '\0';
    const double size = fabs(number) * (is_percent ? 100.0 : 1.0);
    int precision = spec->precision < 0 ? 6 : spec->precision;
    char form[8];
    if (is_plain && spec->precision < 0) {
        wk_jfloat_text(size, out);
        return;
    }
    if (is_plain && precision == 0) precision = 1;
    snprintf(form, sizeof form, "%%%s.*%c", spec->alternate ? "#" : "",
             is_percent                      ? 'f'
             : is_plain || spec->type == 'n' ? 'g'
                                             : spec->type);
    snprintf(out, NUMBER_SIZE, form, precision, size);
    wk_use_point(out);
    if (is_percent) strcat(out, "%");
    if (is_plain && strpbrk(out, ".en") == NULL) strcat(out, ".0");
}

/* At least spec->precision of them. */
static void integer_digits(uint64_t number, const format_spec *spec, char *out) {
    const unsigned base = spec->type == 'x' || spec->type == 'X' ? 16
                          : spec->type == 'o'                    ? 8
                          : spec->type == 'b'                    ? 2
                                                                 : 10;
    const char *const letters = spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char reversed[72];
    size_t n = 0;
    do {
        reversed[n++] = letters[number % base];
        number /= base;
    } while (number > 0);
    for (int i = (int)n; i < spec->precision; i++) *out++ = '0';
    while (n > 0) *out++ = reversed[--n];
    *out = '\0';
}

/* A mark between groups of three whole digits, or four of other bases. */
static void put_grouped(wk_jbuilder *to, const char *digits, const format_spec *spec) {
    const bool is_binary = spec->type != '\0' && strchr("xXob", spec->type) != NULL;
    const size_t group = is_binary ? 4 : 3;
    const size_t whole = is_binary ? strlen(digits) : strspn(digits, "0123456789");
    for (size_t i = 0; i < whole; i++) {
        if (spec->grouping != '\0' && i > 0 && (whole - i) % group == 0)
            wk_jput_char(to, (unsigned char)spec->grouping, false);
        wk_jput_char(to, (unsigned char)digits[i], false);
    }
    wk_jput_word(to, digits + whole);
}

static bool is_float_type(char type) { return type != '\0' && strchr("eEfFgGn%", type) != NULL; }

static void put_padded(wk_jbuilder *to, const format_spec *spec, wk_jtext text, char align) {
    const size_t n = wk_jcount_chars(wk_jtext_str(text));
    const size_t room = (size_t)spec->width > n ? (size_t)spec->width - n : 0;
    const size_t left = align == '<' ? 0 : align == '^' ? room / 2 : room;
    char fill[4];
    const wk_jtext one = {fill, wk_utf8_encode(spec->fill, fill), NULL};
    wk_jcount(to->j, text.size);
    wk_jput_repeated(to, one, left);
    wk_jput(to, text);
    wk_jput_repeated(to, one, room - left);
}

/* A number as spec.type wants it, padded. */
static wick_status put_number(wk_jbuilder *to, const format_spec *spec, const wk_jvalue *value) {
    char digits[NUMBER_SIZE];
    const bool is_float = value->kind == WK_J_FLOAT || is_float_type(spec->type);
    bool is_negative;
    if (is_float) {
        WK_TRY(wk_jwork(to->j, WK_J_FLOAT_STEPS));
        const double number = wk_jas_float(value);
        is_negative = signbit(number) && !isnan(number);
        float_digits(number, spec, digits);
        if (spec->drops_sign && isfinite(number) && strpbrk(digits, "123456789") == NULL)
            is_negative = false;
    } else {
        const int64_t number = wk_jas_integer(value);
        is_negative = number < 0;
        integer_digits(is_negative ? 0 - (uint64_t)number : (uint64_t)number, spec, digits);
    }
    const char sign = is_negative                              ? '-'
                      : spec->sign == '+' || spec->sign == ' ' ? spec->sign
                                                               : '\0';
    wk_jbuilder body = wk_jbuilder_begin(to->j);
    const char align = spec->align != '\0' ? spec->align : '>';
    format_spec inside = *spec;
    char lead[4] = {sign, '\0'}; /* the sign and "0x" */
    if (spec->alternate && !is_float && spec->type != '\0' && strchr("xXob", spec->type) != NULL)
        memcpy(lead + strlen(lead), (char[3]){'0', spec->type, '\0'}, 3);
    wk_jput_word(align == '=' ? to : &body, lead);
    const int n_lead = (int)strlen(lead);
    if (align == '=') inside.width = spec->width > n_lead ? spec->width - n_lead : 0;
    put_grouped(&body, digits, spec);
    WK_TRY(body.status);
    put_padded(to, &inside, wk_jbuilder_text(&body), align);
    return to->status;
}

/* ---- % ---- */

typedef struct percent {
    wk_jtext format;
    size_t at;
    const wk_jvalue *values;
    size_t n_used;  /* of a tuple; 1: of one value */
    bool is_named;  /* by %(name)s */
    bool is_markup; /* texts are escaped */
} percent;

static wick_status next_value(wk_jinja *j, percent *p, wk_jvalue *out) {
    const bool is_tuple = p->values->kind == WK_J_TUPLE;
    if (p->n_used >= (is_tuple ? p->values->list->n : 1))
        return wk_jfail(j, "not enough arguments for format string");
    *out = is_tuple ? p->values->list->items[p->n_used] : *p->values;
    p->n_used++;
    return WICK_OK;
}

static char peek(const percent *p) { return p->at < p->format.size ? p->format.text[p->at] : '\0'; }

static int read_digits(wk_jtext text, size_t *at) {
    int n = 0;
    for (; *at < text.size && text.text[*at] >= '0' && text.text[*at] <= '9'; ++*at) {
        if (n < MAX_WIDTH) n = n * 10 + (text.text[*at] - '0');
    }
    return n;
}

/* A width or precision: digits, or * for a value. */
static wick_status read_size(wk_jinja *j, percent *p, int most, int *out) {
    wk_jvalue value;
    int64_t size;
    if (peek(p) != '*') {
        *out = read_digits(p->format, &p->at);
    } else {
        p->at++;
        WK_TRY(next_value(j, p, &value));
        if (p->is_markup || !wk_jis_integer(&value)) return wk_jfail(j, "* wants int");
        size = wk_jas_integer(&value);
        *out = size < -most || size > most ? most + 1 : (int)size;
    }
    return *out <= most ? WICK_OK : wk_jfail(j, "a width or precision is larger than %d", most);
}

/* Flags, width and precision. */
static wick_status read_percent_spec(wk_jinja *j, percent *p, format_spec *spec) {
    *spec = (format_spec){.fill = ' ', .align = '>', .precision = -1};
    for (; peek(p) != '\0' && strchr("-+ #0", peek(p)) != NULL; p->at++) {
        switch (peek(p)) {
        case '-': spec->align = '<'; break;
        case '#': spec->alternate = true; break;
        case '0':
            if (spec->align == '>') spec->align = '=';
            break;
        default:
            if (spec->sign != '+') spec->sign = peek(p);
            break;
        }
    }
    WK_TRY(read_size(j, p, MAX_WIDTH, &spec->width));
    if (spec->width < 0) {
        spec->align = '<';
        spec->width = -spec->width;
    }
    if (peek(p) == '.') {
        p->at++;
        WK_TRY(read_size(j, p, MAX_PRECISION, &spec->precision));
        if (spec->precision < 0) spec->precision = 0;
    }
    while (peek(p) == 'l' || peek(p) == 'h' || peek(p) == 'L') p->at++;
    return WICK_OK;
}

static wk_jtext cut(wk_jtext text, int precision) {
    if (precision < 0) return text;
    return wk_jtext_part(text, 0, wk_jchar_offset(wk_jtext_str(text), (size_t)precision));
}

/* %d of a float drops the fraction. */
static wick_status put_percent_number(wk_jbuilder *to, format_spec *spec, wk_jvalue *value) {
    wk_jinja *const j = to->j;
    if (value->kind == WK_J_UNDEFINED) return wk_jfail_undefined(j, value);
    if (!wk_jis_number(value))
        return wk_jfail(j, "%%%c format: a number is required, not %s", spec->type,
                        wk_jtype_name(value));
    const bool wants_float = is_float_type(spec->type);
    if (!wants_float && value->kind == WK_J_FLOAT) {
        if (spec->type == 'x' || spec->type == 'X' || spec->type == 'o')
            return wk_jfail(j, "%%%c format: an integer is required, not float", spec->type);
        if (!(fabs(value->number) < 9.2e18)) return wk_jfail(j, "the number does not fit 64 bits");
        *value = wk_jinteger((int64_t)value->number);
    }
    if (spec->align == '=') spec->fill = '0';
    return put_number(to, spec, value);
}

static wick_status put_percent_text(wk_jbuilder *to, const format_spec *spec,
                                    const wk_jvalue *value, bool is_markup) {
    wk_jbuilder shown = wk_jbuilder_begin(to->j);
    const bool is_char =
        value->kind == WK_J_STRING && wk_jcount_chars(wk_jtext_str(value->string)) == 1;
    if (spec->type == 'c' && !is_char && !wk_jis_integer(value))
        return wk_jfail(to->j, "%%c requires int or char");
    if (spec->type == 'c' && !is_char) {
        const int64_t code = wk_jas_integer(value);
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return wk_jfail(to->j, "%%c arg not in range(0x110000)");
        wk_jput_char(&shown, (uint32_t)code, false);
    } else if (spec->type == 'r') {
        wk_jput_repr(&shown, value);
    } else if (spec->type == 'a') {
        wk_jput_ascii(&shown, value);
    } else {
        wk_jput_str(&shown, value);
    }
    wk_jvalue text;
    WK_TRY(wk_jbuilder_end(&shown, &text));
    const bool is_escaped = value->kind == WK_J_STRING && value->is_markup && spec->type == 's';
    if (is_markup && !is_escaped) WK_TRY(wk_jescape(to->j, text.string, &text));
    put_padded(to, spec, cut(text.string, spec->precision), spec->align == '<' ? '<' : '>');
    return to->status;
}

/* After '%'. */
static wick_status put_conversion(wk_jbuilder *to, percent *p) {
    wk_jinja *const j = to->j;
    format_spec spec;
    wk_jvalue value = {.kind = WK_J_ABSENT}, *found;
    if (peek(p) == '(') {
        const size_t start = ++p->at;
        while (p->at < p->format.size && peek(p) != ')') p->at++;
        if (p->at == p->format.size) return wk_jfail(j, "incomplete format key");
        if (p->values->kind != WK_J_DICT) return wk_jfail(j, "format requires a mapping");
        const wk_jvalue key = wk_jstring(wk_jtext_part(p->format, start, p->at++));
        WK_TRY(wk_jdict_find(j, p->values->dict, &key, &found));
        if (found == NULL)
            return wk_jfail(j, "'%s': there is no such key",
                            wk_str_show(wk_jtext_str(key.string)).text);
        value = *found;
        p->is_named = true;
    }
    WK_TRY(read_percent_spec(j, p, &spec));
    spec.type = peek(p);
    if (spec.type == '\0') return wk_jfail(j, "incomplete format");
    p->at++;
    if (spec.type == '%') {
        wk_jput_word(to, "%");
        return to->status;
    }
    if (strchr("diufFeEgGxXosrac", spec.type) == NULL)
        return wk_jfail(j, "unsupported format character '%c'", spec.type);
    if (p->is_markup && strchr("cxXo", spec.type) != NULL)
        return wk_jfail(j, "%%%c is not for markup", spec.type);
    if (value.kind == WK_J_ABSENT) WK_TRY(next_value(j, p, &value));
    return strchr("srac", spec.type) != NULL ? put_percent_text(to, &spec, &value, p->is_markup)
                                             : put_percent_number(to, &spec, &value);
}

wick_status wk_jformat_percent(wk_jinja *j, const wk_jvalue *format, const wk_jvalue *values,
                               wk_jvalue *out) {
    percent p = {.format = format->string, .values = values, .is_markup = format->is_markup};
    wk_jbuilder made = wk_jbuilder_begin(j);
    while (p.at < p.format.size) {
        const size_t start = p.at;
        const char *const next = memchr(p.format.text + start, '%', p.format.size - start);
        p.at = next != NULL ? (size_t)(next - p.format.text) : p.format.size;
        wk_jput(&made, wk_jtext_part(p.format, start, p.at));
        if (next == NULL) break;
        p.at++;
        WK_TRY(put_conversion(&made, &p));
    }
    const bool is_tuple = values->kind == WK_J_TUPLE;
    const bool has_items = values->kind == WK_J_DICT || values->kind == WK_J_LIST ||
                           values->kind == WK_J_RANGE || values->kind == WK_J_UNDEFINED;
    if (!has_items && !p.is_named && p.n_used < (is_tuple ? values->list->n : 1))
        return wk_jfail(j, "not all arguments converted during string formatting");
    WK_TRY(wk_jbuilder_end(&made, out));
    out->is_markup = format->is_markup;
    return WICK_OK;
}

/* ---- {} ---- */

typedef struct braces {
    wk_jinja *j;
    const wk_jargs *args;
    size_t n_automatic; /* {} so far */
    bool is_manual;     /* {0} */
} braces;

static bool is_align(char c) { return c != '\0' && strchr("<>^=", c) != NULL; }

/* [[fill]align][sign][z][#][0][width][,_][.precision][type] */
static wick_status read_spec(wk_jinja *j, wk_jtext text, format_spec *spec) {
    *spec = (format_spec){.fill = ' ', .precision = -1};
    size_t at = 0, after = 0;
    if (text.size > 0) wk_jnext_char(wk_jtext_str(text), &after);
    const bool has_fill = after < text.size && is_align(text.text[after]);
    if (has_fill) {
        spec->fill = wk_jnext_char(wk_jtext_str(text), &at);
        spec->align = text.text[at++];
    } else if (text.size > 0 && is_align(text.text[0])) {
        spec->align = text.text[at++];
    }
    if (at < text.size && strchr("+- ", text.text[at])) spec->sign = text.text[at++];
    if (at < text.size && text.text[at] == 'z') {
        spec->drops_sign = true;
        at++;
    }
    if (at < text.size && text.text[at] == '#') {
        spec->alternate = true;
        at++;
    }
    if (at < text.size && text.text[at] == '0') {
        if (!has_fill) spec->fill = '0';
        if (spec->align == '\0') spec->align = '=';
        at++;
    }
    spec->width = read_digits(text, &at);
    if (at < text.size && (text.text[at] == ',' || text.text[at] == '_'))
        spec->grouping = text.text[at++];
    if (at < text.size && text.text[at] == '.') {
        at++;
        spec->precision = read_digits(text, &at);
    }
    if (at < text.size) spec->type = text.text[at++];
    if (at != text.size || spec->width >= MAX_WIDTH || spec->precision > MAX_PRECISION)
        return wk_jfail(j, "Invalid format specifier '%s'", wk_str_show(wk_jtext_str(text)).text);
    return WICK_OK;
}

static wick_status put_with_spec(wk_jbuilder *to, const wk_jvalue *value, wk_jtext text) {
    format_spec spec;
    wk_jinja *const j = to->j;
    WK_TRY(read_spec(j, text, &spec));
    const bool is_number = wk_jis_number(value) && spec.type != 's';
    const char *const types = value->kind == WK_J_FLOAT ? "eEfFgGn%" : "eEfFgGn%dxXobc";
    if (is_number && text.size > 0) {
        if (spec.type != '\0' && strchr(types, spec.type) == NULL)
            return wk_jfail(j, "Unknown format code '%c' for object of type '%s'", spec.type,
                            wk_jtype_name(value));
        if ((spec.precision >= 0 || spec.drops_sign) && value->kind != WK_J_FLOAT &&
            !is_float_type(spec.type))
            return wk_jfail(j, "Precision and z not allowed in integer format specifier");
        if (spec.type != 'c') return put_number(to, &spec, value);
        return put_percent_text(to, &spec, value, false);
    }
    if (spec.type != '\0' && spec.type != 's')
        return wk_jfail(j, "Unknown format code '%c' for object of type '%s'", spec.type,
                        wk_jtype_name(value));
    if (value->kind != WK_J_STRING && text.size > 0)
        return wk_jfail(j, "unsupported format string passed to %s.__format__",
                        wk_jtype_name(value));
    if (spec.grouping != '\0') return wk_jfail(j, "Cannot specify '%c' with 's'.", spec.grouping);
    if (spec.sign != '\0' || spec.drops_sign)
        return wk_jfail(j, "Sign not allowed in string format specifier");
    wk_jtext shown;
    WK_TRY(wk_jstr(j, value, &shown));
    put_padded(to, &spec, cut(shown, spec.precision),
               spec.align == '\0' || spec.align == '=' ? '<' : spec.align);
    return to->status;
}

static wick_status argument_at(braces *b, size_t i, wk_jvalue *out) {
    if (i >= b->args->n)
        return wk_jfail(b->j, "Replacement index %zu out of range for positional args tuple", i);
    *out = b->args->values[i];
    return WICK_OK;
}

/* The argument that the beginning of a field names: "", "0" or "name". */
static wick_status find_argument(braces *b, wk_jtext name, wk_jvalue *out) {
    size_t at = 0;
    if (name.size == 0) {
        if (b->is_manual)
            return wk_jfail(b->j, "cannot switch from manual field specification to automatic "
                                  "field numbering");
        return argument_at(b, b->n_automatic++, out);
    }
    const int index = read_digits(name, &at);
    if (at == name.size) {
        b->is_manual = true;
        if (b->n_automatic > 0)
            return wk_jfail(b->j, "cannot switch from automatic field numbering to manual field "
                                  "specification");
        return argument_at(b, (size_t)index, out);
    }
    wk_jvalue *named = NULL;
    if (b->args->named != NULL)
        WK_TRY(wk_jdict_named(b->j, b->args->named, wk_jtext_str(name), &named));
    if (named != NULL) {
        *out = *named;
        return WICK_OK;
    }
    return wk_jfail(b->j, "'%s': there is no such argument", wk_str_show(wk_jtext_str(name)).text);
}

/* "0.a[b]" */
static wick_status find_field(braces *b, wk_jtext field, wk_jvalue *out) {
    size_t at = 0;
    while (at < field.size && field.text[at] != '.' && field.text[at] != '[') at++;
    WK_TRY(find_argument(b, wk_jtext_part(field, 0, at), out));
    while (at < field.size) {
        const bool is_item = field.text[at++] == '[';
        const size_t start = at;
        while (at < field.size &&
               (is_item ? field.text[at] != ']' : field.text[at] != '.' && field.text[at] != '['))
            at++;
        if (is_item && at == field.size) return wk_jfail(b->j, "expected '}' before end of string");
        const wk_jtext name = wk_jtext_part(field, start, at);
        wk_jvalue of = *out, key = wk_jstring(name);
        size_t digits = 0;
        const int index = read_digits(name, &digits);
        if (is_item && name.size > 0 && digits == name.size) key = wk_jinteger(index);
        WK_TRY(is_item ? wk_jitem(b->j, &of, &key, out) : wk_jattribute(b->j, &of, name, out));
        at += is_item;
    }
    return WICK_OK;
}

static wick_status put_braces(wk_jbuilder *to, braces *b, wk_jtext format, int depth);

/* Between the braces: field[!conversion][:spec], of which spec may hold fields again. */
static wick_status put_field(wk_jbuilder *to, braces *b, wk_jtext text, int depth) {
    size_t end = 0;
    for (bool in_item = false; end < text.size; end++) {
        const char c = text.text[end];
        if (!in_item && (c == ':' || c == '!')) break;
        in_item = c == '[' || (in_item && c != ']');
    }
    wk_jvalue value, spec;
    WK_TRY(find_field(b, wk_jtext_part(text, 0, end), &value));
    if (end < text.size && text.text[end] == '!') {
        const char letter = end + 1 < text.size ? text.text[end + 1] : '\0';
        wk_jbuilder shown = wk_jbuilder_begin(b->j);
        if (letter == 's')
            wk_jput_str(&shown, &value);
        else if (letter == 'r')
            wk_jput_repr(&shown, &value);
        else if (letter == 'a')
            wk_jput_ascii(&shown, &value);
        else
            return wk_jfail(b->j, "Unknown conversion specifier");
        WK_TRY(wk_jbuilder_end(&shown, &value));
        end += 2;
    }
    if (end < text.size && text.text[end] != ':')
        return wk_jfail(b->j, "expected ':' after conversion specifier");
    wk_jbuilder made = wk_jbuilder_begin(b->j);
    if (end < text.size)
        WK_TRY(put_braces(&made, b, wk_jtext_part(text, end + 1, text.size), depth + 1));
    WK_TRY(wk_jbuilder_end(&made, &spec));
    const bool is_markup = value.kind == WK_J_STRING && value.is_markup;
    if (b->args->self->is_markup && is_markup && spec.string.size > 0)
        return wk_jfail(b->j, "Unsupported format specification for Markup.");
    if (!b->args->self->is_markup || is_markup) return put_with_spec(to, &value, spec.string);
    made = wk_jbuilder_begin(b->j);
    WK_TRY(put_with_spec(&made, &value, spec.string));
    WK_TRY(wk_jbuilder_end(&made, &value));
    wk_jput_html(to, value.string);
    return to->status;
}

/* Offset of the brace that closes the one before at. */
static size_t find_close(wk_jtext format, size_t at) {
    for (int open = 1; at < format.size; at++) {
        open += format.text[at] == '{';
        open -= format.text[at] == '}';
        if (open == 0) break;
    }
    return at;
}

static wick_status put_braces(wk_jbuilder *to, braces *b, wk_jtext format, int depth) {
    if (depth > 2) return wk_jfail(b->j, "Max string recursion exceeded");
    size_t from = 0;
    for (size_t at = 0; at < format.size; at++) {
        const char c = format.text[at];
        if (c != '{' && c != '}') continue;
        wk_jput(to, wk_jtext_part(format, from, at));
        if (at + 1 < format.size && format.text[at + 1] == c) {
            wk_jput(to, wk_jtext_part(format, at, at + 1));
            from = ++at + 1;
            continue;
        }
        if (c == '}') return wk_jfail(b->j, "Single '}' encountered in format string");
        const size_t close = find_close(format, at + 1);
        if (close == format.size) return wk_jfail(b->j, "expected '}' before end of string");
        WK_TRY(put_field(to, b, wk_jtext_part(format, at + 1, close), depth));
        at = close;
        from = close + 1;
    }
    wk_jput(to, wk_jtext_part(format, from, format.size));
    return to->status;
}

wick_status wk_jformat_braces(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    braces b = {.j = j, .args = args};
    wk_jbuilder made = wk_jbuilder_begin(j);
    WK_TRY(put_braces(&made, &b, args->self->string, 1));
    return wk_jbuilder_end(&made, out);
}
