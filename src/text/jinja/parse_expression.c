/* text/jinja/parse_expression.c: expressions, by the grammar of Jinja 2 (jinja2/parser.py describes
 * it): ** binds to the left, filters and calls bind tighter than a sign, ~ tighter than +. */
#include "text/jinja/parser.h"
#include "text/jinja/state.h"

#include <string.h>

typedef wick_status (*parse_fn)(wk_jparser *p, wk_jnode **out);

static wick_status parse_unary(wk_jparser *p, bool with_filters, wk_jnode **out);
static wick_status parse_or(wk_jparser *p, wk_jnode **out);

/* Appends to a list whose end is **link. */
static void append(wk_jnode ***link, wk_jnode *node) {
    **link = node;
    *link = &node->next;
}

/* ---- Primary expressions ---- */

static bool is_any(const wk_jparser *p, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (wk_jat_name(p, names[i])) return true;
    }
    return false;
}

static bool read_constant(const wk_jparser *p, wk_jvalue *value) {
    if (wk_jat_name(p, "true") || wk_jat_name(p, "True")) {
        *value = wk_jbool(true);
    } else if (wk_jat_name(p, "false") || wk_jat_name(p, "False")) {
        *value = wk_jbool(false);
    } else if (wk_jat_name(p, "none") || wk_jat_name(p, "None")) {
        *value = wk_jnone();
    } else {
        return false;
    }
    return true;
}

static wick_status parse_name(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_NAME, out));
    (*out)->name = p->at->text;
    p->uses_varargs |= wk_jat_name(p, "varargs");
    p->uses_kwargs |= wk_jat_name(p, "kwargs");
    p->uses_caller |= wk_jat_name(p, "caller");
    if (read_constant(p, &(*out)->value)) (*out)->kind = WK_J_CONSTANT;
    p->at++;
    return WICK_OK;
}

/* Strings side by side are one. */
static wick_status parse_strings(wk_jparser *p, wk_jnode **out) {
    size_t size = 0;
    for (const wk_jtoken *t = p->at; t->kind == WK_J_TOKEN_STRING; t++) size += t->text.size;
    char *const text = wk_arena_alloc(p->arena, size);
    if (text == NULL) return wk_fail_memory(p->err, size, "a template");
    WK_TRY(wk_jnode_make(p, WK_J_CONSTANT, out));
    size_t n = 0;
    for (; p->at->kind == WK_J_TOKEN_STRING; p->at++) {
        if (p->at->text.size > 0) memcpy(text + n, p->at->text.text, p->at->text.size);
        n += p->at->text.size;
    }
    (*out)->value = wk_jstring((wk_jtext){text, size, NULL});
    return WICK_OK;
}

/* The digits after 0x, 0o, 0b or of a decimal number. */
static bool read_integer(wk_str text, int64_t *out) {
    uint64_t base = 10, value = 0;
    size_t i = 0;
    if (text.size > 2 && text.text[0] == '0' && text.text[1] > '9') {
        const int letter = text.text[1] | 0x20;
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
        i = 2;
    }
    for (; i < text.size; i++) {
        const char c = text.text[i];
        const uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (value > ((uint64_t)INT64_MAX - digit) / base) return false;
        value = value * base + digit;
    }
    *out = (int64_t)value;
    return true;
}

static wick_status parse_number(wk_jparser *p, wk_jnode **out) {
    const wk_str text = p->at->text;
    WK_TRY(wk_jnode_make(p, WK_J_CONSTANT, out));
    if (p->at->kind == WK_J_TOKEN_INTEGER) {
        int64_t value;
        if (!read_integer(text, &value))
            return wk_jparse_fail(p, "the number %s does not fit 64 bits", wk_str_show(text).text);
        (*out)->value = wk_jinteger(value);
    } else { /* as JSON writes it, leading zeros apart */
        size_t zeros = 0;
        while (text.text[zeros] == '0' && text.text[zeros + 1] >= '0' &&
               text.text[zeros + 1] <= '9')
            zeros++;
        wk_json *number;
        WK_TRY(wk_json_parse(p->arena, text.text + zeros, text.size - zeros, &number, p->err));
        (*out)->value = wk_jfloat(number->number);
    }
    p->at++;
    return WICK_OK;
}

static wick_status parse_list(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_MAKE_LIST, out));
    wk_jnode **link = &(*out)->list, *item;
    while (!wk_jskip_sign(p, "]")) {
        if ((*out)->list != NULL) WK_TRY(wk_jexpect_sign(p, ","));
        if (wk_jskip_sign(p, "]")) break;
        WK_TRY(wk_jparse_expression(p, &item));
        append(&link, item);
    }
    return WICK_OK;
}

static wick_status parse_dict(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_MAKE_DICT, out));
    wk_jnode **link = &(*out)->list, *pair;
    while (!wk_jskip_sign(p, "}")) {
        if ((*out)->list != NULL) WK_TRY(wk_jexpect_sign(p, ","));
        if (wk_jskip_sign(p, "}")) break;
        WK_TRY(wk_jnode_make(p, WK_J_PAIR, &pair));
        WK_TRY(wk_jparse_expression(p, &pair->first));
        WK_TRY(wk_jexpect_sign(p, ":"));
        WK_TRY(wk_jparse_expression(p, &pair->second));
        append(&link, pair);
    }
    return WICK_OK;
}

static wick_status parse_primary(wk_jparser *p, wk_jnode **out) {
    switch (p->at->kind) {
    case WK_J_TOKEN_NAME: return parse_name(p, out);
    case WK_J_TOKEN_STRING: return parse_strings(p, out);
    case WK_J_TOKEN_INTEGER:
    case WK_J_TOKEN_FLOAT: return parse_number(p, out);
    default: break;
    }
    if (wk_jskip_sign(p, "[")) return parse_list(p, out);
    if (wk_jskip_sign(p, "{")) return parse_dict(p, out);
    if (!wk_jskip_sign(p, "(")) return wk_jparse_fail_here(p);
    WK_TRY(wk_jparse_tuple(p, WK_J_TUPLE_PARENTHESES, NULL, out));
    return wk_jexpect_sign(p, ")");
}

/* ---- What follows a primary expression ---- */

/* An index, or a slice. */
static wick_status parse_bounds(wk_jparser *p, wk_jnode *of, wk_jnode **out) {
    wk_jnode *bounds[3] = {NULL};
    size_t n = 0;
    bool is_slice = false;
    while (n < 3 && !wk_jat_sign(p, "]") && !wk_jat_sign(p, ",")) {
        if (!wk_jat_sign(p, ":")) WK_TRY(wk_jparse_expression(p, &bounds[n]));
        if (!wk_jskip_sign(p, ":")) break;
        is_slice = true;
        n++;
    }
    if (!is_slice && bounds[0] == NULL) return wk_jparse_fail_here(p);
    if (n == 3) return wk_jparse_fail_here(p);
    WK_TRY(wk_jnode_make(p, is_slice ? WK_J_SLICE : WK_J_ITEM, out));
    (*out)->first = of;
    (*out)->second = bounds[0];
    if (!is_slice) return WICK_OK;
    wk_jnode **link = &(*out)->list;
    for (size_t i = 0; i < 3; i++) {
        if (bounds[i] == NULL) {
            WK_TRY(wk_jnode_make(p, WK_J_CONSTANT, &bounds[i]));
            bounds[i]->value = wk_jnone();
        }
        append(&link, bounds[i]);
    }
    return WICK_OK;
}

/* After '['. Several indices are a tuple. */
static wick_status parse_subscript(wk_jparser *p, wk_jnode *of, wk_jnode **out) {
    WK_TRY(parse_bounds(p, of, out));
    if (wk_jat_sign(p, ",") && (*out)->kind == WK_J_ITEM) {
        wk_jnode *tuple, *item;
        WK_TRY(wk_jnode_make(p, WK_J_MAKE_TUPLE, &tuple));
        wk_jnode **link = &tuple->list;
        append(&link, (*out)->second);
        while (wk_jskip_sign(p, ",")) {
            WK_TRY(wk_jparse_expression(p, &item));
            append(&link, item);
        }
        (*out)->second = tuple;
    }
    return wk_jexpect_sign(p, "]");
}

/* After '.': a name, or the number of an item. */
static wick_status parse_dotted(wk_jparser *p, wk_jnode *of, wk_jnode **out) {
    if (p->at->kind == WK_J_TOKEN_NAME) {
        WK_TRY(wk_jnode_make(p, WK_J_ATTRIBUTE, out));
        (*out)->name = p->at++->text;
    } else if (p->at->kind == WK_J_TOKEN_INTEGER) {
        WK_TRY(wk_jnode_make(p, WK_J_ITEM, out));
        WK_TRY(parse_number(p, &(*out)->second));
    } else {
        return wk_jparse_fail(p, "expected name or number");
    }
    (*out)->first = of;
    return WICK_OK;
}

static bool next_is_sign(const wk_jparser *p, const char *sign) {
    return p->at[1].kind == WK_J_TOKEN_SIGN && wk_str_is(p->at[1].text, sign);
}

static wick_status parse_argument(wk_jparser *p, bool *is_named, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_ARGUMENT, out));
    (*out)->op = WK_J_POSITIONAL;
    if (wk_jskip_sign(p, "**")) {
        (*out)->op = WK_J_STAR_STAR;
    } else if (wk_jskip_sign(p, "*")) {
        (*out)->op = WK_J_STAR;
    } else if (p->at->kind == WK_J_TOKEN_NAME && next_is_sign(p, "=")) {
        (*out)->op = WK_J_NAMED;
        (*out)->name = p->at->text;
        p->at += 2;
    }
    const bool is_positional = (*out)->op == WK_J_POSITIONAL;
    if (is_positional && *is_named)
        return wk_jparse_fail(p, "invalid syntax for function call expression");
    *is_named |= !is_positional && (*out)->op != WK_J_STAR;
    return wk_jparse_expression(p, &(*out)->first);
}

/* After '('. */
static wick_status parse_arguments(wk_jparser *p, wk_jnode **list) {
    wk_jnode **link = list, *argument;
    bool is_named = false;
    while (!wk_jskip_sign(p, ")")) {
        if (*list != NULL) WK_TRY(wk_jexpect_sign(p, ","));
        if (*list != NULL && wk_jskip_sign(p, ")")) break;
        WK_TRY(parse_argument(p, &is_named, &argument));
        append(&link, argument);
    }
    return WICK_OK;
}

static wick_status parse_call(wk_jparser *p, wk_jnode *of, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_CALL, out));
    (*out)->first = of;
    return parse_arguments(p, &(*out)->list);
}

static wick_status parse_postfix(wk_jparser *p, wk_jnode **node) {
    for (;;) {
        if (wk_jskip_sign(p, "."))
            WK_TRY(parse_dotted(p, *node, node));
        else if (wk_jskip_sign(p, "["))
            WK_TRY(parse_subscript(p, *node, node));
        else if (wk_jskip_sign(p, "("))
            WK_TRY(parse_call(p, *node, node));
        else
            return WICK_OK;
    }
}

/* "name" or "name.of.it"; the text from the first to the last part. */
static wick_status parse_dotted_name(wk_jparser *p, wk_str *name) {
    WK_TRY(wk_jexpect_name(p, name));
    while (wk_jskip_sign(p, ".")) {
        wk_str part;
        WK_TRY(wk_jexpect_name(p, &part));
        name->size = (size_t)(part.text + part.size - name->text);
    }
    return WICK_OK;
}

static wick_status parse_filter(wk_jparser *p, wk_jnode *first, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_FILTER, out));
    (*out)->first = first;
    WK_TRY(parse_dotted_name(p, &(*out)->name));
    (*out)->builtin = wk_jfind_filter((*out)->name);
    if ((*out)->builtin == NULL && p->unknown == NULL) p->unknown = *out;
    return wk_jskip_sign(p, "(") ? parse_arguments(p, &(*out)->list) : WICK_OK;
}

wick_status wk_jparse_filters(wk_jparser *p, wk_jnode *first, wk_jnode **out) {
    wk_jskip_sign(p, "|");
    do WK_TRY(parse_filter(p, first, &first));
    while (wk_jskip_sign(p, "|"));
    *out = first;
    return WICK_OK;
}

/* Whether an argument without brackets follows the name of a test. */
static bool has_bare_argument(const wk_jparser *p) {
    static const char *const ends[] = {"else", "or", "and"};
    switch (p->at->kind) {
    case WK_J_TOKEN_NAME: return !is_any(p, ends, WK_COUNT(ends));
    case WK_J_TOKEN_STRING:
    case WK_J_TOKEN_INTEGER:
    case WK_J_TOKEN_FLOAT: return true;
    default: return wk_jat_sign(p, "[") || wk_jat_sign(p, "{");
    }
}

/* After "is". */
static wick_status parse_test(wk_jparser *p, wk_jnode *first, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_TEST, out));
    (*out)->first = first;
    (*out)->is_negated = wk_jskip_name(p, "not");
    WK_TRY(parse_dotted_name(p, &(*out)->name));
    (*out)->builtin = wk_jfind_test((*out)->name);
    if ((*out)->builtin == NULL && p->unknown == NULL) p->unknown = *out;
    if (wk_jskip_sign(p, "(")) return parse_arguments(p, &(*out)->list);
    if (!has_bare_argument(p)) return WICK_OK;
    if (wk_jat_name(p, "is")) return wk_jparse_fail(p, "You cannot chain multiple tests with is");
    WK_TRY(wk_jnode_make(p, WK_J_ARGUMENT, &(*out)->list));
    (*out)->list->op = WK_J_POSITIONAL;
    WK_TRY(parse_primary(p, &(*out)->list->first));
    return parse_postfix(p, &(*out)->list->first);
}

static wick_status parse_filters_and_tests(wk_jparser *p, wk_jnode **node) {
    for (;;) {
        if (wk_jat_sign(p, "|"))
            WK_TRY(wk_jparse_filters(p, *node, node));
        else if (wk_jskip_name(p, "is"))
            WK_TRY(parse_test(p, *node, node));
        else if (wk_jskip_sign(p, "("))
            WK_TRY(parse_call(p, *node, node));
        else
            return WICK_OK;
    }
}

/* ---- Operators, the tightest first ---- */

static wick_status parse_unary(wk_jparser *p, bool with_filters, wk_jnode **out) {
    WK_TRY(wk_jparse_enter(p));
    const bool negates = wk_jat_sign(p, "-");
    if (wk_jskip_sign(p, "-") || wk_jskip_sign(p, "+")) {
        WK_TRY(wk_jnode_make(p, WK_J_UNARY, out));
        (*out)->op = negates ? WK_J_NEGATE : WK_J_POSITIVE;
        WK_TRY(parse_unary(p, false, &(*out)->first));
    } else {
        WK_TRY(parse_primary(p, out));
    }
    WK_TRY(parse_postfix(p, out));
    if (with_filters) WK_TRY(parse_filters_and_tests(p, out));
    p->depth--;
    return WICK_OK;
}

static wick_status parse_operand(wk_jparser *p, wk_jnode **out) {
    return parse_unary(p, true, out);
}

typedef struct level {
    const char *sign;
    wk_joperator op;
} level;

/* operand (sign operand)*, from the left. */
static wick_status parse_level(wk_jparser *p, const level *levels, size_t n, parse_fn operand,
                               wk_jnode **out) {
    WK_TRY(operand(p, out));
    for (size_t i = 0; i < n;) {
        if (!wk_jskip_sign(p, levels[i].sign)) {
            i++;
            continue;
        }
        wk_jnode *node;
        WK_TRY(wk_jnode_make(p, WK_J_BINARY, &node));
        node->op = levels[i].op;
        node->first = *out;
        WK_TRY(operand(p, &node->second));
        *out = node;
        i = 0;
    }
    return WICK_OK;
}

static wick_status parse_power(wk_jparser *p, wk_jnode **out) {
    static const level levels[] = {{"**", WK_J_POWER}};
    return parse_level(p, levels, WK_COUNT(levels), parse_operand, out);
}

static wick_status parse_product(wk_jparser *p, wk_jnode **out) {
    static const level levels[] = {
        {"*", WK_J_MULTIPLY}, {"/", WK_J_DIVIDE}, {"//", WK_J_FLOOR_DIVIDE}, {"%", WK_J_MODULO}};
    return parse_level(p, levels, WK_COUNT(levels), parse_power, out);
}

static wick_status parse_concat(wk_jparser *p, wk_jnode **out) {
    WK_TRY(parse_product(p, out));
    if (!wk_jat_sign(p, "~")) return WICK_OK;
    wk_jnode *node, *part;
    WK_TRY(wk_jnode_make(p, WK_J_CONCAT, &node));
    wk_jnode **link = &node->list;
    append(&link, *out);
    while (wk_jskip_sign(p, "~")) {
        WK_TRY(parse_product(p, &part));
        append(&link, part);
    }
    *out = node;
    return WICK_OK;
}

static wick_status parse_sum(wk_jparser *p, wk_jnode **out) {
    static const level levels[] = {{"+", WK_J_ADD}, {"-", WK_J_SUBTRACT}};
    return parse_level(p, levels, WK_COUNT(levels), parse_concat, out);
}

/* Steps over a sign or word of comparison. */
static bool skip_comparison(wk_jparser *p, wk_joperator *op) {
    static const level levels[] = {{"==", WK_J_EQUAL},  {"!=", WK_J_UNEQUAL},
                                   {"<", WK_J_LESS},    {"<=", WK_J_LESS_EQUAL},
                                   {">", WK_J_GREATER}, {">=", WK_J_GREATER_EQUAL}};
    for (size_t i = 0; i < WK_COUNT(levels); i++) {
        *op = levels[i].op;
        if (wk_jskip_sign(p, levels[i].sign)) return true;
    }
    *op = WK_J_IN;
    if (wk_jskip_name(p, "in")) return true;
    *op = WK_J_NOT_IN;
    const bool is_not_in =
        wk_jat_name(p, "not") && p->at[1].kind == WK_J_TOKEN_NAME && wk_str_is(p->at[1].text, "in");
    if (is_not_in) p->at += 2;
    return is_not_in;
}

static wick_status parse_comparison(wk_jparser *p, wk_jnode **out) {
    WK_TRY(parse_sum(p, out));
    wk_jnode *compare = NULL, **link = NULL, *operand;
    for (wk_joperator op; skip_comparison(p, &op);) {
        if (compare == NULL) {
            WK_TRY(wk_jnode_make(p, WK_J_COMPARE, &compare));
            compare->first = *out;
            link = &compare->list;
        }
        WK_TRY(wk_jnode_make(p, WK_J_OPERAND, &operand));
        operand->op = op;
        WK_TRY(parse_sum(p, &operand->first));
        append(&link, operand);
    }
    if (compare != NULL) *out = compare;
    return WICK_OK;
}

static wick_status parse_not(wk_jparser *p, wk_jnode **out) {
    if (!wk_jskip_name(p, "not")) return parse_comparison(p, out);
    WK_TRY(wk_jparse_enter(p));
    WK_TRY(wk_jnode_make(p, WK_J_UNARY, out));
    (*out)->op = WK_J_NOT;
    WK_TRY(parse_not(p, &(*out)->first));
    p->depth--;
    return WICK_OK;
}

/* operand (word operand)*, from the left. */
static wick_status parse_words(wk_jparser *p, const char *word, wk_jnode_kind kind,
                               parse_fn operand, wk_jnode **out) {
    WK_TRY(operand(p, out));
    while (wk_jskip_name(p, word)) {
        wk_jnode *node;
        WK_TRY(wk_jnode_make(p, kind, &node));
        node->first = *out;
        WK_TRY(operand(p, &node->second));
        *out = node;
    }
    return WICK_OK;
}

static wick_status parse_and(wk_jparser *p, wk_jnode **out) {
    return parse_words(p, "and", WK_J_AND, parse_not, out);
}

static wick_status parse_or(wk_jparser *p, wk_jnode **out) {
    return parse_words(p, "or", WK_J_OR, parse_and, out);
}

wick_status wk_jparse_expression(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jparse_enter(p));
    const wk_jnode *const unknown = p->unknown;
    WK_TRY(parse_or(p, out));
    while (wk_jskip_name(p, "if")) {
        wk_jnode *node;
        WK_TRY(wk_jnode_make(p, WK_J_IF_ELSE, &node));
        node->first = *out;
        WK_TRY(parse_or(p, &node->second));
        if (wk_jskip_name(p, "else")) WK_TRY(wk_jparse_expression(p, &node->third));
        *out = node;
        p->unknown = unknown;
    }
    p->depth--;
    return WICK_OK;
}

/* ---- Tuples and targets ---- */

static bool ends_tuple(const wk_jparser *p, const char *end_name) {
    return p->at->kind == WK_J_TOKEN_OUTPUT_END || p->at->kind == WK_J_TOKEN_TAG_END ||
           wk_jat_sign(p, ")") || (end_name != NULL && wk_jat_name(p, end_name));
}

static wick_status parse_target_part(wk_jparser *p, wk_jnode **out) {
    if (p->at->kind != WK_J_TOKEN_NAME || !next_is_sign(p, ".")) return parse_primary(p, out);
    WK_TRY(wk_jnode_make(p, WK_J_SPACE_NAME, out));
    (*out)->name = p->at->text;
    p->at += 2;
    wk_str attribute;
    WK_TRY(wk_jexpect_name(p, &attribute));
    (*out)->value = wk_jstring((wk_jtext){attribute.text, attribute.size, NULL});
    return WICK_OK;
}

wick_status wk_jparse_tuple(wk_jparser *p, wk_jtuple_form form, const char *end_name,
                            wk_jnode **out) {
    static const parse_fn parts[] = {wk_jparse_expression, parse_or, parse_target_part,
                                     parse_primary, wk_jparse_expression};
    wk_jnode *list = NULL, **link = &list, *item;
    bool is_tuple = false;
    WK_TRY(wk_jparse_enter(p));
    while (!ends_tuple(p, end_name)) {
        WK_TRY(parts[form](p, &item));
        append(&link, item);
        if (!wk_jskip_sign(p, ",")) break;
        is_tuple = true;
    }
    p->depth--;
    if (!is_tuple && list != NULL) {
        *out = list;
        return WICK_OK;
    }
    if (!is_tuple && form != WK_J_TUPLE_PARENTHESES) return wk_jparse_fail_here(p);
    WK_TRY(wk_jnode_make(p, WK_J_MAKE_TUPLE, out));
    (*out)->list = list;
    return WICK_OK;
}

/* Depth is bounded by that of the brackets. */
static wick_status check_target(const wk_jparser *p, const wk_jnode *target) {
    if (target->kind == WK_J_NAME || target->kind == WK_J_SPACE_NAME) return WICK_OK;
    if (target->kind != WK_J_MAKE_TUPLE)
        return wk_jparse_fail(p, "can't assign to this expression");
    for (const wk_jnode *item = target->list; item != NULL; item = item->next)
        WK_TRY(check_target(p, item));
    return WICK_OK;
}

wick_status wk_jparse_target(wk_jparser *p, wk_jtuple_form form, wk_jnode **out) {
    WK_TRY(wk_jparse_tuple(p, form, "in", out));
    return check_target(p, *out);
}

wick_status wk_jparse_target_name(wk_jparser *p, wk_str *name) {
    wk_jvalue value;
    if (read_constant(p, &value)) return wk_jparse_fail(p, "can't assign to a constant");
    return wk_jexpect_name(p, name);
}
