/* grammar/json_pattern.c: see json_pattern.h. */
#include "grammar/json_pattern.h"

#include "core/compiler.h"
#include "core/cursor.h"
#include "text/unicode/unicode.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_REPEAT = 100000, MAX_RANGES = 512 };

/* --- Characters --- */

/* What may stand in a JSON string as it is: RFC 8259, section 7. */
static const wk_code_range plain[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}};

static bool contains(const wk_expr *set, uint32_t code) {
    for (size_t i = 0; i < set->n_ranges; i++)
        if (code >= set->ranges[i].first && code <= set->ranges[i].last) return true;
    return false;
}

static wk_expr *escaped(wk_rules *rules, uint32_t code) {
    static const char codes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char text[8];
    const char *const found = code > 0 ? strchr(codes, (int)code) : NULL;
    if (found)
        snprintf(text, sizeof text, "\\%c", letters[found - codes]);
    else
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    return wk_expr_word(rules, text);
}

/* The part of set that needs no escape. */
static wk_expr *plain_part(wk_rules *rules, const wk_expr *set) {
    const size_t most = set->n_ranges + WK_COUNT(plain);
    wk_code_range *const ranges = wk_arena_array(rules->arena, most, sizeof *ranges);
    size_t n = 0;
    if (!ranges) {
        rules->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < set->n_ranges; i++) {
        for (size_t k = 0; k < WK_COUNT(plain); k++) {
            const wk_code_range a = set->ranges[i], b = plain[k];
            const wk_code_range both = {a.first > b.first ? a.first : b.first,
                                        a.last < b.last ? a.last : b.last};
            if (both.first <= both.last) ranges[n++] = both;
        }
    }
    return n > 0 ? wk_expr_class(rules, ranges, n, false) : NULL;
}

/* One character of the ranges. What JSON cannot hold as it is, is escaped; nothing else is. */
static wk_expr *class_of(wk_rules *rules, const wk_code_range *ranges, size_t n, bool is_negated) {
    const wk_expr *const set = wk_expr_class(rules, ranges, n, is_negated);
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    if (!set) return NULL;
    wk_expr_add(choice, plain_part(rules, set));
    for (uint32_t code = 0; code <= '\\'; code++) {
        const bool needs_escape = code < 0x20 || code == '"' || code == '\\';
        if (needs_escape && contains(set, code)) wk_expr_add(choice, escaped(rules, code));
    }
    return choice;
}

/* \uXXXX without surrogates: one alone is not a character, and a pair would count twice. */
static wk_expr *unicode_escape(wk_rules *rules) {
    static const wk_code_range hex[] = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
    static const wk_code_range not_d[] = {
        {'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}};
    static const wk_code_range d[] = {{'d', 'd'}, {'D', 'D'}}, low[] = {{'0', '7'}};
    wk_expr *const usual = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    wk_expr_add(usual, wk_expr_class(rules, not_d, WK_COUNT(not_d), false));
    wk_expr_add(usual,
                wk_expr_repeat(rules, wk_expr_class(rules, hex, WK_COUNT(hex), false), 3, 3));
    wk_expr *const below = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    wk_expr_add(below, wk_expr_class(rules, d, WK_COUNT(d), false));
    wk_expr_add(below, wk_expr_class(rules, low, WK_COUNT(low), false));
    wk_expr_add(below,
                wk_expr_repeat(rules, wk_expr_class(rules, hex, WK_COUNT(hex), false), 2, 2));
    wk_expr *const either = wk_expr_list(rules, WK_EXPR_CHOICE);
    wk_expr_add(either, usual);
    wk_expr_add(either, below);
    wk_expr *const all = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    wk_expr_add(all, wk_expr_word(rules, "u"));
    wk_expr_add(all, either);
    return all;
}

wk_expr *wk_json_character(wk_rules *rules) {
    static const wk_code_range letters[] = {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'},
                                            {'f', 'f'}, {'n', 'n'},   {'r', 'r'}, {'t', 't'}};
    wk_expr *const after = wk_expr_list(rules, WK_EXPR_CHOICE);
    wk_expr_add(after, wk_expr_class(rules, letters, WK_COUNT(letters), false));
    wk_expr_add(after, unicode_escape(rules));
    wk_expr *const escape = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    wk_expr_add(escape, wk_expr_word(rules, "\\"));
    wk_expr_add(escape, after);
    wk_expr *const choice = wk_expr_list(rules, WK_EXPR_CHOICE);
    wk_expr_add(choice, wk_expr_class(rules, plain, WK_COUNT(plain), false));
    wk_expr_add(choice, escape);
    return choice;
}

wk_expr *wk_json_literal(wk_rules *rules, wk_str text) {
    wk_expr *const all = wk_expr_list(rules, WK_EXPR_SEQUENCE);
    size_t begin = 0;
    for (size_t i = 0; i <= text.size; i++) {
        const uint32_t code = i < text.size ? (unsigned char)text.text[i] : '"';
        if (code >= 0x20 && code != '"' && code != '\\') continue;
        if (i > begin)
            wk_expr_add(all, wk_expr_text(rules, (wk_str){text.text + begin, i - begin}));
        if (i < text.size) wk_expr_add(all, escaped(rules, code));
        begin = i + 1;
    }
    return all;
}

/* --- Patterns --- */

typedef struct reader {
    wk_rules *rules;
    wk_cursor in;
    int depth;
    wk_code_range ranges[MAX_RANGES]; /* [n_ranges] of the class that is being read */
    size_t n_ranges;
    wick_error *err;
} reader;

static wick_status fail_format(const reader *r, const char *what) {
    return wk_fail(r->err, WICK_ERR_FORMAT, "the pattern '%s', byte %zu: %s",
                   wk_str_show(r->in.text).text, r->in.at, what);
}

static wick_status fail_unsupported(const reader *r, const char *what) {
    return wk_fail(r->err, WICK_ERR_UNSUPPORTED, "the pattern '%s', byte %zu: %s not supported",
                   wk_str_show(r->in.text).text, r->in.at, what);
}

static wick_status add_ranges(reader *r, const wk_code_range *ranges, size_t n) {
    if (n > MAX_RANGES - r->n_ranges) return fail_unsupported(r, "a class of too many ranges is");
    memcpy(r->ranges + r->n_ranges, ranges, n * sizeof *ranges);
    r->n_ranges += n;
    return WICK_OK;
}

/* \d, \w, \s and their negations, by ECMA-262, section 22.2.2.9. */
static wick_status add_named(reader *r, int letter) {
    static const wk_code_range digits[] = {{'0', '9'}};
    static const wk_code_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const wk_code_range spaces[] = {
        {0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    const bool is_negated = letter < 'a';
    const int kind = is_negated ? letter - 'A' + 'a' : letter;
    const wk_code_range *const ranges = kind == 'd' ? digits : kind == 'w' ? words : spaces;
    const size_t n = kind == 'd'   ? WK_COUNT(digits)
                     : kind == 'w' ? WK_COUNT(words)
                                   : WK_COUNT(spaces);
    const wk_expr *const set = wk_expr_class(r->rules, ranges, n, is_negated);
    return set ? add_ranges(r, set->ranges, set->n_ranges) : WICK_OK;
}

static wick_status read_hex(reader *r, size_t n, uint32_t *code) {
    uint32_t low;
    if (!wk_accept_hex(&r->in, n, code)) return fail_format(r, "too few hexadecimal digits");
    const size_t end = r->in.at;
    if (*code >> 10 == 0xD800 >> 10 && wk_accept(&r->in, "\\u") && wk_accept_hex(&r->in, 4, &low) &&
        low >> 10 == 0xDC00 >> 10) {
        *code = 0x10000 + ((*code & 0x3FF) << 10 | (low & 0x3FF));
        return WICK_OK;
    }
    r->in.at = end;
    if (*code >= 0xD800 && *code <= 0xDFFF) return fail_unsupported(r, "surrogates are");
    return WICK_OK;
}

static bool is_letter(int c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

/* One character after the backslash. */
static wick_status read_escape(reader *r, bool is_in_class, uint32_t *code) {
    static const char letters[] = "tnvfr", values[] = "\t\n\v\f\r";
    const int letter = wk_peek(&r->in);
    if (letter < 0) return fail_format(r, "it ends in a backslash");
    const char *const found = letter > 0 ? strchr(letters, letter) : NULL;
    const bool is_word = (letter >= '0' && letter <= '9') || is_letter(letter);
    r->in.at++;
    if (found) {
        *code = (unsigned char)values[found - letters];
    } else if (letter == 'x') {
        return read_hex(r, 2, code);
    } else if (letter == 'u') {
        return read_hex(r, 4, code);
    } else if (letter == 'c' && is_letter(wk_peek(&r->in))) {
        *code = (uint32_t)r->in.text.text[r->in.at++] & 31;
    } else if (letter == 'b' && is_in_class) {
        *code = '\b';
    } else if (letter == '0' && !(wk_peek(&r->in) >= '0' && wk_peek(&r->in) <= '9')) {
        *code = 0;
    } else if (is_word) {
        r->in.at--;
        return fail_unsupported(r, "this escape is");
    } else {
        r->in.at--;
        r->in.at += wk_utf8_decode(r->in.text.text + r->in.at, r->in.text.size - r->in.at, code);
    }
    return WICK_OK;
}

/* One character, or a named class (then *is_set): what an atom or an item of a class is. */
static wick_status read_set(reader *r, bool is_in_class, bool *is_set, uint32_t *code) {
    *is_set = false;
    if (!wk_accept(&r->in, "\\")) {
        r->in.at += wk_utf8_decode(r->in.text.text + r->in.at, r->in.text.size - r->in.at, code);
        return WICK_OK;
    }
    const int letter = wk_peek(&r->in);
    if (letter <= 0 || !strchr("dDwWsS", letter)) return read_escape(r, is_in_class, code);
    r->in.at++;
    *is_set = true;
    return add_named(r, letter);
}

/* Begins after the opening bracket. */
static wick_status read_class(reader *r, wk_expr **out) {
    const bool is_negated = wk_accept(&r->in, "^");
    r->n_ranges = 0;
    while (!wk_accept(&r->in, "]")) {
        bool is_set, is_last_set = false;
        wk_code_range range;
        if (wk_peek(&r->in) < 0) return fail_format(r, "the class does not end");
        WK_TRY(read_set(r, true, &is_set, &range.first));
        range.last = range.first;
        const bool is_range = wk_peek(&r->in) == '-' && r->in.at + 1 < r->in.text.size &&
                              r->in.text.text[r->in.at + 1] != ']';
        if (is_range) {
            r->in.at++;
            WK_TRY(read_set(r, true, &is_last_set, &range.last));
            /* Beside \d and the like, '-' stands for itself (ECMA-262, annex B.1.2). */
            if (is_set || is_last_set) WK_TRY(add_ranges(r, &(wk_code_range){'-', '-'}, 1));
            if (is_set && !is_last_set)
                WK_TRY(add_ranges(r, &(wk_code_range){range.last, range.last}, 1));
            if (is_last_set) range.last = range.first;
        }
        if (!is_set && range.last < range.first)
            return fail_format(r, "the range ends before it begins");
        if (!is_set) WK_TRY(add_ranges(r, &range, 1));
    }
    *out = class_of(r->rules, r->ranges, r->n_ranges, is_negated);
    return WICK_OK;
}

static wick_status read_choice(reader *r, wk_expr **out);

/* Begins after the opening bracket. */
static wick_status read_group(reader *r, wk_expr **out) {
    const size_t begin = r->in.at;
    const bool has_name = wk_accept(&r->in, "?<") && is_letter(wk_peek(&r->in));
    while (has_name && wk_peek(&r->in) >= 0 && !wk_accept(&r->in, ">")) r->in.at++;
    if (!has_name) r->in.at = begin;
    if (wk_peek(&r->in) == '?' && !has_name && !wk_accept(&r->in, "?:"))
        return fail_unsupported(r, "look-around is");
    if (r->depth == MAX_DEPTH) return fail_format(r, "nested deeper than 100");
    r->depth++;
    WK_TRY(read_choice(r, out));
    r->depth--;
    return wk_accept(&r->in, ")") ? WICK_OK : fail_format(r, "a group does not end");
}

static wick_status read_atom(reader *r, wk_expr **out) {
    static const wk_code_range ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    bool is_set;
    uint32_t code;
    if (wk_accept(&r->in, "(")) return read_group(r, out);
    if (wk_accept(&r->in, "[")) return read_class(r, out);
    if (wk_accept(&r->in, ".")) {
        *out = class_of(r->rules, ends, WK_COUNT(ends), true);
        return WICK_OK;
    }
    if (strchr("^$", wk_peek(&r->in))) return fail_unsupported(r, "an anchor here is");
    if (strchr("*+?{", wk_peek(&r->in))) return fail_format(r, "nothing to repeat");
    r->n_ranges = 0;
    WK_TRY(read_set(r, false, &is_set, &code));
    if (!is_set) WK_TRY(add_ranges(r, &(wk_code_range){code, code}, 1));
    *out = class_of(r->rules, r->ranges, r->n_ranges, false);
    return WICK_OK;
}

static wick_status read_count(reader *r, uint32_t *count) {
    const size_t begin = r->in.at;
    *count = 0;
    for (; wk_peek(&r->in) >= '0' && wk_peek(&r->in) <= '9'; r->in.at++) {
        *count = *count * 10 + (uint32_t)(wk_peek(&r->in) - '0');
        if (*count > MAX_REPEAT) return fail_unsupported(r, "more than 100000 repetitions are");
    }
    return r->in.at > begin ? WICK_OK : fail_format(r, "a number is expected here");
}

/* Lazy ones have the same strings. */
static wick_status read_repeat(reader *r, wk_expr **atom) {
    uint32_t least = 0, most = WK_REPEAT_FOREVER;
    if (wk_accept(&r->in, "+")) {
        least = 1;
    } else if (wk_accept(&r->in, "?")) {
        most = 1;
    } else if (wk_accept(&r->in, "{")) {
        WK_TRY(read_count(r, &least));
        most = least;
        if (wk_accept(&r->in, ",")) {
            most = WK_REPEAT_FOREVER;
            if (wk_peek(&r->in) != '}') WK_TRY(read_count(r, &most));
        }
        if (!wk_accept(&r->in, "}")) return fail_format(r, "'}' is expected here");
        if (most < least) return fail_format(r, "the most repetitions are fewer than the least");
    } else if (!wk_accept(&r->in, "*")) {
        return WICK_OK;
    }
    (void)wk_accept(&r->in, "?");
    *atom = wk_expr_repeat(r->rules, *atom, least, most);
    return WICK_OK;
}

static bool is_at_end(const reader *r) {
    return wk_peek(&r->in) < 0 || wk_peek(&r->in) == '|' || wk_peek(&r->in) == ')';
}

static wk_expr *anything(wk_rules *rules) {
    return wk_expr_repeat(rules, wk_json_character(rules), 0, WK_REPEAT_FOREVER);
}

static wick_status read_sequence(reader *r, wk_expr **out) {
    const bool is_outermost = r->depth == 0;
    bool is_anchored = false;
    *out = wk_expr_list(r->rules, WK_EXPR_SEQUENCE);
    if (is_outermost && !wk_accept(&r->in, "^")) wk_expr_add(*out, anything(r->rules));
    while (!is_at_end(r) && !is_anchored) {
        wk_expr *atom;
        is_anchored = is_outermost && wk_accept(&r->in, "$");
        if (is_anchored) break;
        WK_TRY(read_atom(r, &atom));
        WK_TRY(read_repeat(r, &atom));
        wk_expr_add(*out, atom);
    }
    if (is_outermost && !is_anchored) wk_expr_add(*out, anything(r->rules));
    return is_at_end(r) ? WICK_OK : fail_unsupported(r, "an anchor inside is");
}

static wick_status read_choice(reader *r, wk_expr **out) {
    *out = wk_expr_list(r->rules, WK_EXPR_CHOICE);
    do {
        wk_expr *sequence;
        WK_TRY(read_sequence(r, &sequence));
        wk_expr_add(*out, sequence);
    } while (wk_accept(&r->in, "|"));
    return WICK_OK;
}

wick_status wk_json_pattern(wk_rules *rules, wk_str pattern, wk_expr **out, wick_error *err) {
    reader r = {.rules = rules, .in = {.text = pattern}, .err = err};
    WK_TRY(read_choice(&r, out));
    return r.in.at == pattern.size ? WICK_OK
                                   : fail_format(&r, "a bracket closes what was not opened");
}
