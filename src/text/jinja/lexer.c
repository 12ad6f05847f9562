/* text/jinja/lexer.c: a template as tokens, by the rules of Jinja 2.11 and later. */
#include "text/jinja/lexer.h"

#include "text/jinja/chars.h"
#include "text/unicode/unicode.h"

#include <assert.h>
#include <string.h>

enum { MAX_BRACKETS = 200 };

typedef struct lexer {
    wk_arena *arena;
    wick_error *err;
    wk_str text;
    size_t at;
    int line;
    bool is_line_start; /* the last tag took the end of its line with it */
    wk_jtoken *items;
    size_t n, capacity;
    char brackets[MAX_BRACKETS]; /* open ones, as the characters that close them */
    size_t n_brackets;
} lexer;

static wick_status fail(const lexer *l, const char *what, wk_str shown) {
    return wk_fail(l->err, WICK_ERR_FORMAT, "line %d: %s%s", l->line, what,
                   wk_str_show(shown).text);
}

static wick_status fail_memory(const lexer *l, size_t size) {
    return wk_fail_memory(l->err, size, "a template");
}

static wk_str rest(const lexer *l) { return (wk_str){l->text.text + l->at, l->text.size - l->at}; }

static bool begins(const lexer *l, size_t at, const char *word) {
    const size_t size = strlen(word);
    return l->text.size - at >= size && memcmp(l->text.text + at, word, size) == 0;
}

/* The byte at offset i from here; 0 past the end. */
static char peek(const lexer *l, size_t i) {
    return l->text.size - l->at > i ? l->text.text[l->at + i] : '\0';
}

static void advance(lexer *l, size_t n) {
    assert(n <= l->text.size - l->at);
    for (; n > 0; n--, l->at++) l->line += l->text.text[l->at] == '\n';
}

static void skip_space(lexer *l) {
    for (size_t n; (n = wk_jspace_at_begin(rest(l))) > 0;) advance(l, n);
}

static wick_status push(lexer *l, wk_jtoken_kind kind, wk_str text) {
    if (l->n == l->capacity) {
        const size_t capacity = l->capacity > 0 ? 2 * l->capacity : 64;
        wk_jtoken *const items = wk_arena_array(l->arena, capacity, sizeof *items);
        if (items == NULL) return fail_memory(l, capacity * sizeof *items);
        if (l->n > 0) memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->n++] = (wk_jtoken){.kind = kind, .line = l->line, .text = text};
    return WICK_OK;
}

/* ---- Between tags ---- */

/* lstrip_blocks: what is before a tag on its line goes if it is white space alone. */
static wk_str strip_line(const lexer *l, wk_str text) {
    size_t start = text.size;
    while (start > 0 && text.text[start - 1] != '\n') start--;
    if (start == 0 && !l->is_line_start) return text;
    wk_str blank = {text.text + start, text.size - start};
    for (size_t n; (n = wk_jspace_at_begin(blank)) > 0; blank.size -= n) blank.text += n;
    return blank.size == 0 ? (wk_str){text.text, start} : text;
}

static wk_str strip_end(wk_str text) {
    for (size_t n; (n = wk_jspace_at_end(text)) > 0;) text.size -= n;
    return text;
}

/* The text before the tag that begins at the current position; sign follows its brackets. */
static wick_status push_text(lexer *l, wk_str text, char sign, bool is_output) {
    if (sign == '-')
        text = strip_end(text);
    else if (sign != '+' && !is_output)
        text = strip_line(l, text);
    return text.size > 0 ? push(l, WK_J_TOKEN_TEXT, text) : WICK_OK;
}

/* Skips white space after a tag's closing bracket. sign: '-' skips all of it, '+' none, others one
 * line end where trims. */
static void end_tag(lexer *l, char sign, bool trims) {
    const size_t start = l->at;
    if (sign == '-')
        skip_space(l);
    else if (sign != '+' && trims && peek(l, 0) == '\n')
        advance(l, 1);
    l->is_line_start = l->at > start && l->text.text[l->at - 1] == '\n';
}

/* Begins after "{#" and its sign. */
static wick_status skip_comment(lexer *l) {
    const size_t start = l->at;
    if (start == l->text.size) return WICK_OK; /* as Jinja has it */
    while (l->at < l->text.size && !begins(l, l->at, "#}")) advance(l, 1);
    if (l->at == l->text.size) return fail(l, "missing end of comment tag", (wk_str){NULL, 0});
    const char sign = l->at > start ? l->text.text[l->at - 1] : ' ';
    advance(l, 2);
    end_tag(l, sign, true);
    return WICK_OK;
}

/* The size of "{%- raw -%}" at offset at, for this word; 0: it does not stand there. *sign: the
 * first sign, *end: the second one. */
static size_t raw_tag_size(const lexer *l, size_t at, const char *word, char *sign, char *end) {
    lexer ahead = *l;
    ahead.at = at;
    if (!begins(l, at, "{%")) return 0;
    ahead.at += 2;
    *sign = peek(&ahead, 0);
    if (*sign == '-' || *sign == '+') ahead.at++;
    skip_space(&ahead);
    if (!begins(l, ahead.at, word)) return 0;
    ahead.at += strlen(word);
    skip_space(&ahead);
    *end = peek(&ahead, 0);
    if (*end == '-' || (*end == '+' && strcmp(word, "endraw") == 0)) ahead.at++;
    return begins(l, ahead.at, "%}") ? ahead.at + 2 - at : 0;
}

/* Begins after {% raw %}, which ended with sign. */
static wick_status read_raw(lexer *l, char sign) {
    end_tag(l, sign, false);
    const size_t start = l->at;
    char end;
    for (; l->at < l->text.size; advance(l, 1)) {
        const size_t size = raw_tag_size(l, l->at, "endraw", &sign, &end);
        if (size == 0) continue;
        WK_TRY(push_text(l, (wk_str){l->text.text + start, l->at - start}, sign, false));
        advance(l, size);
        end_tag(l, end, true);
        return WICK_OK;
    }
    return fail(l, "missing end of raw directive", (wk_str){NULL, 0});
}

/* ---- Inside of tags ---- */

static bool is_digit(char c, int base) {
    if (c >= '0' && c <= '9') return c - '0' < base;
    return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

/* Bytes of digits, single underscores between them, from offset i on. */
static size_t digits(const lexer *l, size_t i, int base) {
    size_t n = 0;
    while (is_digit(peek(l, i + n), base) ||
           (n > 0 && peek(l, i + n) == '_' && is_digit(peek(l, i + n + 1), base)))
        n++;
    return n;
}

static int number_base(const lexer *l) {
    if (peek(l, 0) != '0') return 10;
    switch (peek(l, 1) | 0x20) {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 10;
    }
}

/* Bytes of the fraction and the exponent after n whole digits; 0: it is an integer. */
static size_t fraction_size(const lexer *l, size_t n) {
    const bool is_item = l->at > 0 && l->text.text[l->at - 1] == '.'; /* a.1.2 */
    if (is_item) return 0;
    size_t size = 0;
    if (peek(l, n) == '.' && digits(l, n + 1, 10) > 0) size = 1 + digits(l, n + 1, 10);
    if ((peek(l, n + size) | 0x20) != 'e') return size;
    const char sign = peek(l, n + size + 1);
    const size_t start = n + size + (sign == '+' || sign == '-' ? 2 : 1);
    const size_t exponent = digits(l, start, 10);
    return exponent > 0 ? start + exponent - n : size;
}

/* Digits without underscores, "0x" and the like included. */
static wick_status read_number(lexer *l) {
    const int base = number_base(l);
    size_t size = 2;
    bool is_float = false;
    if (base != 10 && digits(l, 2, base) > 0) {
        size += digits(l, 2, base);
    } else {
        const size_t n = digits(l, 0, 10);
        const size_t after = fraction_size(l, n);
        is_float = after > 0;
        bool is_zero = true;
        for (size_t i = 0; i < n; i++) is_zero &= peek(l, i) == '0' || peek(l, i) == '_';
        if (!is_float && peek(l, 0) == '0' && !is_zero)
            return fail(l, "an integer begins with a zero", (wk_str){NULL, 0});
        size = n + after;
    }
    char *const copy = wk_arena_alloc(l->arena, size);
    if (copy == NULL) return fail_memory(l, size);
    size_t kept = 0;
    for (size_t i = 0; i < size; i++) {
        if (peek(l, i) != '_') copy[kept++] = peek(l, i);
    }
    WK_TRY(push(l, is_float ? WK_J_TOKEN_FLOAT : WK_J_TOKEN_INTEGER, (wk_str){copy, kept}));
    advance(l, size);
    return WICK_OK;
}

/* Value of up to most digits at from, of which *n are read. */
static uint32_t read_code(wk_str text, size_t from, size_t most, int base, size_t *n) {
    uint32_t code = 0;
    for (*n = 0; *n < most && from + *n < text.size; (*n)++) {
        const char c = text.text[from + *n];
        if (!is_digit(c, base)) break;
        code = code * (uint32_t)base + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
}

/* *at is after a backslash: skips the escape and writes the character that it stands for. */
static bool decode_escape(wk_str text, size_t *at, char **out) {
    static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const char letter = text.text[*at];
    const char *const simple = letter != '\0' ? strchr(letters, letter) : NULL;
    const size_t n_hex = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    size_t n;
    uint32_t code;
    if (simple != NULL) {
        *(*out)++ = values[simple - letters];
        ++*at;
        return true;
    }
    if (letter == '\n') { /* the line goes on */
        ++*at;
        return true;
    }
    if (n_hex > 0) {
        code = read_code(text, *at + 1, n_hex, 16, &n);
        if (n != n_hex) return false;
        *at += 1 + n;
        if (code >= 0xD800 && code < 0xDC00 && text.size - *at >= 6 && text.text[*at] == '\\' &&
            text.text[*at + 1] == 'u') {
            const uint32_t low = read_code(text, *at + 2, 4, 16, &n);
            if (n == 4 && low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                *at += 6;
            }
        }
    } else if (letter >= '0' && letter <= '7') {
        code = read_code(text, *at, 3, 8, &n);
        *at += n;
    } else { /* unknown: it stands for itself */
        *(*out)++ = '\\';
        return true;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    *out += wk_utf8_encode(code, *out);
    return true;
}

/* At the N of '\N{BULLET}'. */
static wick_status decode_name(const lexer *l, wk_str text, size_t *at, char **out) {
    const char *const end = memchr(text.text + *at, '}', text.size - *at);
    const wk_str name = {text.text + *at + 2,
                         end != NULL ? (size_t)(end - text.text) - *at - 2 : 0};
    if (end == NULL || text.text[*at + 1] != '{' || name.size == 0)
        return fail(l, "a name in braces must follow \\N in the string ", text);
    const uint32_t code = wk_jchar_named(name);
    if (code == 0)
        return fail(l, "no character is known by this name (write \\u and its number): ", name);
    *out += wk_utf8_encode(code, *out);
    *at += name.size + 3;
    return WICK_OK;
}

/* At a quote. No escape is shorter than what it stands for. */
static wick_status read_string(lexer *l) {
    const char quote = peek(l, 0);
    size_t size = 1;
    while (l->at + size < l->text.size && peek(l, size) != quote) {
        size += peek(l, size) == '\\' ? 2 : 1;
    }
    if (l->at + size >= l->text.size) return fail(l, "unexpected char ", (wk_str){&quote, 1});
    const wk_str inside = {l->text.text + l->at + 1, size - 1};
    char *const text = wk_arena_alloc(l->arena, inside.size);
    if (text == NULL) return fail_memory(l, inside.size);
    char *out = text;
    for (size_t i = 0; i < inside.size;) {
        if (inside.text[i] != '\\') {
            *out++ = inside.text[i++];
            continue;
        }
        i++;
        if (inside.text[i] == 'N')
            WK_TRY(decode_name(l, inside, &i, &out));
        else if (!decode_escape(inside, &i, &out))
            return fail(l, "bad escape in the string ", inside);
    }
    WK_TRY(push(l, WK_J_TOKEN_STRING, (wk_str){text, (size_t)(out - text)}));
    advance(l, size + 1);
    return WICK_OK;
}

/* Bytes of the identifier that begins here. */
static size_t name_size(const lexer *l) {
    const wk_str text = rest(l);
    size_t size = 0;
    for (size_t at = 0; at < text.size; size = at) {
        const uint32_t code = wk_jnext_char(text, &at);
        if (code != '_' && !wk_jis_word(code)) break;
    }
    return size;
}

/* Keeps count of brackets: a tag does not end inside of them. */
static wick_status balance(lexer *l, char sign) {
    static const char open[] = "([{", close[] = ")]}";
    const char *const opened = strchr(open, sign);
    if (opened != NULL) {
        if (l->n_brackets == MAX_BRACKETS)
            return fail(l, "brackets are nested too deep", (wk_str){NULL, 0});
        l->brackets[l->n_brackets++] = close[opened - open];
    } else if (strchr(close, sign) != NULL) {
        if (l->n_brackets == 0) return fail(l, "unexpected ", (wk_str){&sign, 1});
        if (l->brackets[--l->n_brackets] != sign)
            return fail(l, "this bracket does not close the last one: ", (wk_str){&sign, 1});
    }
    return WICK_OK;
}

static wick_status read_sign(lexer *l) {
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    const wk_str here = rest(l);
    size_t size = 0;
    for (size_t i = 0; i < WK_COUNT(two); i++) {
        if (begins(l, l->at, two[i])) size = 2;
    }
    if (size == 0 && peek(l, 0) != '\0' && strchr("+-/*%~[](){}><=.:|,;", peek(l, 0))) size = 1;
    if (size == 0) {
        size_t at = 0;
        wk_jnext_char(here, &at);
        return fail(l, "unexpected char ", (wk_str){here.text, at});
    }
    if (size == 1) WK_TRY(balance(l, peek(l, 0)));
    WK_TRY(push(l, WK_J_TOKEN_SIGN, (wk_str){here.text, size}));
    advance(l, size);
    return WICK_OK;
}

/* The end of a tag, if it stands here: bytes with its sign. */
static size_t end_size(const lexer *l, bool is_output) {
    const char *const end = is_output ? "}}" : "%}";
    if (l->n_brackets > 0) return 0;
    if (begins(l, l->at, end)) return 2;
    const char sign = peek(l, 0);
    return (sign == '-' || (sign == '+' && !is_output)) && begins(l, l->at + 1, end) ? 3 : 0;
}

static wick_status read_token(lexer *l) {
    const char c = peek(l, 0);
    if (is_digit(c, 10)) return read_number(l);
    const size_t name = name_size(l);
    if (name > 0) {
        WK_TRY(push(l, WK_J_TOKEN_NAME, (wk_str){l->text.text + l->at, name}));
        advance(l, name);
        return WICK_OK;
    }
    return c == '"' || c == '\'' ? read_string(l) : read_sign(l);
}

/* Begins after {{ or {% and the sign. */
static wick_status read_tag(lexer *l, bool is_output) {
    WK_TRY(push(l, is_output ? WK_J_TOKEN_OUTPUT_BEGIN : WK_J_TOKEN_TAG_BEGIN, (wk_str){0}));
    l->n_brackets = 0;
    for (;;) {
        skip_space(l);
        const size_t end = end_size(l, is_output);
        if (end > 0) {
            const char sign = peek(l, 0);
            WK_TRY(push(l, is_output ? WK_J_TOKEN_OUTPUT_END : WK_J_TOKEN_TAG_END, (wk_str){0}));
            advance(l, end);
            end_tag(l, sign, !is_output);
            return WICK_OK;
        }
        if (l->at == l->text.size) /* as in Jinja, it is the parser that misses something */
            return WICK_OK;
        WK_TRY(read_token(l));
    }
}

/* Text up to the next tag, and the tag. */
static wick_status read_piece(lexer *l) {
    const size_t start = l->at;
    while (l->at < l->text.size &&
           (peek(l, 0) != '{' || !(peek(l, 1) == '{' || peek(l, 1) == '%' || peek(l, 1) == '#')))
        advance(l, 1);
    const wk_str text = {l->text.text + start, l->at - start};
    if (l->at == l->text.size) return push_text(l, text, '+', true);
    char sign, raw_end;
    const size_t raw = raw_tag_size(l, l->at, "raw", &sign, &raw_end);
    const char kind = peek(l, 1);
    sign = peek(l, 2);
    WK_TRY(push_text(l, text, sign, kind == '{'));
    if (raw > 0) {
        advance(l, raw);
        return read_raw(l, raw_end);
    }
    advance(l, sign == '-' || sign == '+' ? 3 : 2);
    l->is_line_start = false;
    return kind == '#' ? skip_comment(l) : read_tag(l, kind == '{');
}

/* Line ends become "\n", the last one goes. */
static wk_str normalise(wk_str text, char *copy) {
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.text[i] == '\r' && i + 1 < text.size && text.text[i + 1] == '\n') continue;
        copy[n++] = text.text[i] == '\r' ? '\n' : text.text[i];
    }
    if (n > 0 && copy[n - 1] == '\n') n--;
    return (wk_str){copy, n};
}

wick_status wk_jinja_lex(wk_arena *arena, wk_str text, wk_jtokens *out, wick_error *err) {
    lexer l = {.arena = arena, .err = err, .line = 1, .is_line_start = true};
    size_t bad;
    if (!wk_str_is_utf8(text, &bad))
        return wk_fail(err, WICK_ERR_FORMAT, "the template is not valid UTF-8 at byte %zu", bad);
    char *const copy = wk_arena_alloc(arena, text.size);
    if (copy == NULL) return fail_memory(&l, text.size);
    l.text = normalise(text, copy);
    while (l.at < l.text.size) WK_TRY(read_piece(&l));
    WK_TRY(push(&l, WK_J_TOKEN_END, (wk_str){0}));
    *out = (wk_jtokens){l.items, l.n};
    return WICK_OK;
}
