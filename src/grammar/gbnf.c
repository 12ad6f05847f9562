/* grammar/gbnf.c: a recursive-descent reader of GBNF.
 *
 *   rule      name "::=" choice, to the end of its line
 *   choice    sequence { "|" sequence }
 *   sequence  { item [ "*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}" ] }
 *   item      "text" | [class] | . | name | ( choice ) | <token> | <[id]> | !<token> | !<[id]>
 *
 * Lines may end inside brackets, after "::=" and "|", and before "|". */
#include "grammar/gbnf.h"

#include "core/cursor.h"
#include "core/map.h"
#include "text/unicode/unicode.h"

#include <string.h>

enum { MAX_DEPTH = 200, MAX_REPEAT = 100000, MAX_SUFFIXES = 8, MAX_RANGES = 4096 };

typedef struct reader {
    wk_rules *rules;
    const wick_tokenizer *tokenizer;
    wk_map names; /* of rules -> their ids */
    wk_cursor in;
    int depth;
    wk_code_range *ranges; /* [capacity] of the class that is being read */
    size_t n_ranges, capacity;
    wick_error *err;
} reader;

/* --- Errors and characters --- */

static wick_status fail_at(const reader *r, size_t at, const char *what) {
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < at; i++) {
        if (r->in.text.text[i] != '\n') continue;
        line++;
        begin = i + 1;
    }
    return wk_fail(r->err, WICK_ERR_FORMAT, "the grammar, line %zu, column %zu: %s", line,
                   at - begin + 1, what);
}

static wick_status fail_name(const reader *r, wk_str name, const char *what) {
    return wk_fail(r->err, WICK_ERR_FORMAT, "the grammar: the rule '%s' %s", wk_str_show(name).text,
                   what);
}

static wick_status fail_memory(const reader *r) {
    return wk_fail_memory(r->err, r->in.text.size, "a grammar");
}

static void skip_space(reader *r, bool over_lines) {
    for (int c; (c = wk_peek(&r->in)) >= 0; r->in.at++) {
        if (c == '#')
            while (r->in.at + 1 < r->in.text.size && r->in.text.text[r->in.at + 1] != '\n')
                r->in.at++;
        else if (c != ' ' && c != '\t' && (!over_lines || (c != '\n' && c != '\r')))
            return;
    }
}

static bool is_name_byte(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Empty where none stands. */
static wk_str read_name(reader *r) {
    const size_t begin = r->in.at;
    while (is_name_byte(wk_peek(&r->in))) r->in.at++;
    return (wk_str){r->in.text.text + begin, r->in.at - begin};
}

/* n digits. */
static wick_status read_hex(reader *r, size_t n, uint32_t *code) {
    const size_t begin = r->in.at;
    if (!wk_accept_hex(&r->in, n, code))
        return fail_at(r, begin, "too few hexadecimal digits in an escape");
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF))
        return fail_at(r, begin, "there is no such character");
    return WICK_OK;
}

/* One character of a literal or class, escaped or not. */
static wick_status read_character(reader *r, uint32_t *code) {
    static const char letters[] = "nrt\\\"[]-^", values[] = "\n\r\t\\\"[]-^";
    if (wk_peek(&r->in) != '\\') {
        r->in.at += wk_utf8_decode(r->in.text.text + r->in.at, r->in.text.size - r->in.at, code);
        return *code != WK_CHAR_INVALID ? WICK_OK : fail_at(r, r->in.at - 1, "invalid UTF-8");
    }
    r->in.at++;
    const int letter = wk_peek(&r->in);
    r->in.at += letter >= 0;
    if (letter == 'x') return read_hex(r, 2, code);
    if (letter == 'u') return read_hex(r, 4, code);
    if (letter == 'U') return read_hex(r, 8, code);
    const char *const found = letter > 0 ? strchr(letters, letter) : NULL;
    if (!found) return fail_at(r, r->in.at - (letter >= 0), "unknown escape");
    *code = (unsigned char)values[found - letters];
    return WICK_OK;
}

/* --- Items --- */

/* At the opening quote. */
static wick_status read_literal(reader *r, wk_expr **out) {
    const size_t begin = r->in.at++;
    wk_strbuf text;
    wk_strbuf_init(&text, r->rules->arena->heap);
    wick_status status = WICK_OK;
    while (status == WICK_OK && wk_peek(&r->in) != '"') {
        uint32_t code;
        if (wk_peek(&r->in) < 0)
            status = fail_at(r, begin, "the literal does not end");
        else
            status = read_character(r, &code);
        if (status != WICK_OK) break;
        char bytes[4];
        wk_strbuf_append(&text, bytes, wk_utf8_encode(code, bytes));
    }
    r->in.at++;
    if (status == WICK_OK && text.failed) status = fail_memory(r);
    if (status == WICK_OK) *out = wk_expr_text(r->rules, (wk_str){text.data, text.size});
    wk_strbuf_release(&text);
    return status;
}

static bool add_range(reader *r, wk_code_range range) {
    if (r->n_ranges == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 32;
        wk_code_range *const ranges =
            wk_realloc(r->rules->arena->heap, r->ranges, r->capacity * sizeof *ranges,
                       capacity * sizeof *ranges);
        if (!ranges) return false;
        r->ranges = ranges;
        r->capacity = capacity;
    }
    r->ranges[r->n_ranges++] = range;
    return true;
}

/* Begins at the opening bracket. A '-' right before the closing one is a character of the class. */
static wick_status read_class(reader *r, wk_expr **out) {
    const size_t begin = r->in.at++;
    const bool is_negated = wk_accept(&r->in, "^");
    r->n_ranges = 0;
    while (wk_peek(&r->in) != ']') {
        wk_code_range range;
        if (wk_peek(&r->in) < 0) return fail_at(r, begin, "the class does not end");
        const size_t at = r->in.at;
        WK_TRY(read_character(r, &range.first));
        range.last = range.first;
        const bool is_range = wk_peek(&r->in) == '-' && r->in.at + 1 < r->in.text.size &&
                              r->in.text.text[r->in.at + 1] != ']';
        if (is_range) {
            r->in.at++;
            WK_TRY(read_character(r, &range.last));
        }
        if (range.last < range.first) return fail_at(r, at, "the range ends before it begins");
        if (r->n_ranges == MAX_RANGES) return fail_at(r, begin, "a class of more than 4096 ranges");
        if (!add_range(r, range)) return fail_memory(r);
    }
    r->in.at++;
    *out = wk_expr_class(r->rules, r->ranges, r->n_ranges, is_negated);
    return WICK_OK;
}

static wick_status read_number(reader *r, const char *what, uint32_t most, uint32_t *value) {
    const size_t begin = r->in.at;
    uint64_t number = 0;
    for (; wk_peek(&r->in) >= '0' && wk_peek(&r->in) <= '9' && number <= most; r->in.at++)
        number = number * 10 + (uint64_t)(wk_peek(&r->in) - '0');
    if (r->in.at == begin) return fail_at(r, begin, "a number is expected here");
    if (number > most) return fail_at(r, begin, what);
    *value = (uint32_t)number;
    return WICK_OK;
}

/* At '<': "<[5]>", or "<name>", the angle brackets being part of the name. */
static wick_status read_token(reader *r, bool is_negated, wk_expr **out) {
    const size_t begin = r->in.at;
    uint32_t id;
    size_t n = 0;
    if (wk_accept(&r->in, "<[")) {
        const uint32_t size = r->tokenizer ? wick_tokenizer_size(r->tokenizer) : 0;
        WK_TRY(read_number(r, "the vocabulary has no such token", UINT32_MAX - 1, &id));
        if (!wk_accept(&r->in, "]>")) return fail_at(r, r->in.at, "']>' is expected here");
        if (id >= size) return fail_at(r, begin, "the vocabulary has no such token");
    } else {
        const char *const end = memchr(r->in.text.text + begin, '>', r->in.text.size - begin);
        const size_t size = end ? (size_t)(end - r->in.text.text) + 1 - begin : 0;
        if (!end || memchr(r->in.text.text + begin, '\n', size))
            return fail_at(r, begin, "the token does not end on its line");
        r->in.at += size;
        if (wick_tokenize(r->tokenizer, r->in.text.text + begin, size, WICK_TOKENIZE_PARSE_SPECIAL,
                          &id, 1, &n) != WICK_OK ||
            n != 1)
            return fail_at(r, begin, "this is not exactly one token of the vocabulary");
    }
    *out = wk_expr_token(r->rules, id, is_negated);
    return WICK_OK;
}

static wick_status read_choice(reader *r, bool is_nested, wk_expr **out);

static wick_status read_group(reader *r, wk_expr **out) {
    const size_t begin = r->in.at++;
    if (r->depth == MAX_DEPTH) return fail_at(r, begin, "nested deeper than 200");
    r->depth++;
    WK_TRY(read_choice(r, true, out));
    r->depth--;
    return wk_accept(&r->in, ")") ? WICK_OK : fail_at(r, begin, "the group does not end");
}

static wick_status read_reference(reader *r, wk_expr **out) {
    const wk_str name = read_name(r);
    uint32_t id;
    if (!wk_map_get(&r->names, name, &id)) {
        id = wk_rules_add(r->rules, name);
        if (wk_map_put(&r->names, name, id) != WICK_OK) return fail_memory(r);
    }
    *out = wk_expr_rule(r->rules, id);
    return WICK_OK;
}

/* *out NULL: no item stands here. */
static wick_status read_item(reader *r, wk_expr **out) {
    *out = NULL;
    switch (wk_peek(&r->in)) {
    case '"': return read_literal(r, out);
    case '[': return read_class(r, out);
    case '(': return read_group(r, out);
    case '<': return read_token(r, false, out);
    case '!':
        r->in.at++;
        return wk_peek(&r->in) == '<'
                   ? read_token(r, true, out)
                   : fail_at(r, r->in.at, "'<' is expected here: only tokens are negated");
    case '.':
        r->in.at++;
        *out = wk_expr_class(r->rules, NULL, 0, true);
        return WICK_OK;
    default: return is_name_byte(wk_peek(&r->in)) ? read_reference(r, out) : WICK_OK;
    }
}

/* Begins after '{'. */
static wick_status read_bounds(reader *r, uint32_t *least, uint32_t *most) {
    static const char too_many[] = "at most 100000 repetitions are possible";
    const size_t begin = r->in.at;
    skip_space(r, false);
    WK_TRY(read_number(r, too_many, MAX_REPEAT, least));
    *most = *least;
    skip_space(r, false);
    if (wk_accept(&r->in, ",")) {
        skip_space(r, false);
        *most = WK_REPEAT_FOREVER;
        if (wk_peek(&r->in) != '}') WK_TRY(read_number(r, too_many, MAX_REPEAT, most));
        skip_space(r, false);
    }
    if (!wk_accept(&r->in, "}")) return fail_at(r, r->in.at, "'}' is expected here");
    if (*most < *least) return fail_at(r, begin, "the most repetitions are fewer than the least");
    return WICK_OK;
}

/* Wraps *item in the repetitions that follow it. */
static wick_status read_repeats(reader *r, bool is_nested, wk_expr **item) {
    for (int n = 0;; n++) {
        uint32_t least = 0, most = WK_REPEAT_FOREVER;
        skip_space(r, is_nested);
        if (wk_accept(&r->in, "+"))
            least = 1;
        else if (wk_accept(&r->in, "?"))
            most = 1;
        else if (wk_accept(&r->in, "{"))
            WK_TRY(read_bounds(r, &least, &most));
        else if (!wk_accept(&r->in, "*"))
            return WICK_OK;
        if (n == MAX_SUFFIXES) return fail_at(r, r->in.at, "too many repetitions of repetitions");
        *item = wk_expr_repeat(r->rules, *item, least, most);
    }
}

static wick_status read_sequence(reader *r, bool is_nested, wk_expr **out) {
    *out = wk_expr_list(r->rules, WK_EXPR_SEQUENCE);
    for (;;) {
        const size_t begin = r->in.at;
        wk_expr *item;
        skip_space(r, is_nested);
        WK_TRY(read_item(r, &item));
        if (r->rules->failed) return fail_memory(r);
        if (!item) return WICK_OK;
        WK_TRY(read_repeats(r, is_nested, &item));
        wk_expr_add(*out, item);
        if (r->in.at == begin) return WICK_OK;
    }
}

/* Whether a '|' follows; at the top level it may be on the next line. */
static bool accept_bar(reader *r, bool is_nested) {
    const size_t begin = r->in.at;
    skip_space(r, true);
    if (wk_accept(&r->in, "|")) return true;
    if (!is_nested) r->in.at = begin;
    return false;
}

static wick_status read_choice(reader *r, bool is_nested, wk_expr **out) {
    wk_expr *sequence;
    *out = wk_expr_list(r->rules, WK_EXPR_CHOICE);
    do {
        skip_space(r, true);
        WK_TRY(read_sequence(r, is_nested, &sequence));
        wk_expr_add(*out, sequence);
    } while (accept_bar(r, is_nested));
    return WICK_OK;
}

/* --- Rules --- */

static wick_status read_rule(reader *r) {
    const size_t begin = r->in.at;
    const wk_str name = read_name(r);
    uint32_t id;
    wk_expr *body;
    if (name.size == 0) return fail_at(r, begin, "the name of a rule is expected here");
    skip_space(r, false);
    if (!wk_accept(&r->in, "::=")) return fail_at(r, r->in.at, "'::=' is expected here");
    if (!wk_map_get(&r->names, name, &id)) {
        id = wk_rules_add(r->rules, name);
        if (wk_map_put(&r->names, name, id) != WICK_OK) return fail_memory(r);
    }
    if (r->rules->failed) return fail_memory(r);
    if (r->rules->items[id].body) return fail_at(r, begin, "this rule has been defined before");
    WK_TRY(read_choice(r, false, &body));
    if (r->rules->failed) return fail_memory(r);
    r->rules->items[id].body = body;
    skip_space(r, false);
    if (wk_peek(&r->in) >= 0 && wk_peek(&r->in) != '\n' && wk_peek(&r->in) != '\r')
        return fail_at(r, r->in.at, "the rule should end here");
    return WICK_OK;
}

static wick_status read_rules(reader *r) {
    const wk_str root = wk_str_of("root");
    (void)wk_rules_add(r->rules, root);
    if (r->rules->failed || wk_map_put(&r->names, root, 0) != WICK_OK) return fail_memory(r);
    for (skip_space(r, true); wk_peek(&r->in) >= 0; skip_space(r, true)) WK_TRY(read_rule(r));
    for (uint32_t i = 0; i < r->rules->n; i++)
        if (!r->rules->items[i].body)
            return fail_name(r, r->rules->items[i].name, "is not defined");
    return WICK_OK;
}

wick_status wk_gbnf_parse(wk_rules *rules, const wick_tokenizer *tokenizer, wk_str text,
                          wick_error *err) {
    wk_heap *const heap = rules->arena->heap;
    reader r = {.rules = rules, .tokenizer = tokenizer, .in = {.text = text}, .err = err};
    wk_map_init(&r.names, heap);
    const wick_status status = read_rules(&r);
    wk_map_release(&r.names);
    wk_free(heap, r.ranges, r.capacity * sizeof *r.ranges);
    return status;
}
