/* text/jinja/parser.c: statements, and the small steps that all of the parser is made of. */
#include "text/jinja/parser.h"

#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 250 }; /* of nested brackets, signs and blocks */

wick_status wk_jparse_fail(const wk_jparser *p, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wk_fail(p->err, WICK_ERR_FORMAT, "line %d: %s", p->at->line, text);
}

static wk_shown describe(const wk_jtoken *token) {
    switch (token->kind) {
    case WK_J_TOKEN_TEXT: return (wk_shown){"template data"};
    case WK_J_TOKEN_OUTPUT_BEGIN: return (wk_shown){"begin of print statement"};
    case WK_J_TOKEN_OUTPUT_END: return (wk_shown){"end of print statement"};
    case WK_J_TOKEN_TAG_BEGIN: return (wk_shown){"begin of statement block"};
    case WK_J_TOKEN_TAG_END: return (wk_shown){"end of statement block"};
    case WK_J_TOKEN_END: return (wk_shown){"end of template"};
    default: return wk_str_show(token->text);
    }
}

wick_status wk_jparse_fail_here(const wk_jparser *p) {
    return wk_jparse_fail(p, "unexpected '%s'", describe(p->at).text);
}

wick_status wk_jnode_make(wk_jparser *p, wk_jnode_kind kind, wk_jnode **out) {
    wk_jnode *const node = wk_arena_array(p->arena, 1, sizeof *node);
    if (node == NULL) return wk_fail_memory(p->err, sizeof *node, "a template");
    node->kind = kind;
    node->line = p->at->line;
    *out = node;
    return WICK_OK;
}

bool wk_jat_sign(const wk_jparser *p, const char *sign) {
    return p->at->kind == WK_J_TOKEN_SIGN && wk_str_is(p->at->text, sign);
}

bool wk_jat_name(const wk_jparser *p, const char *name) {
    return p->at->kind == WK_J_TOKEN_NAME && wk_str_is(p->at->text, name);
}

bool wk_jskip_sign(wk_jparser *p, const char *sign) {
    const bool is_here = wk_jat_sign(p, sign);
    p->at += is_here;
    return is_here;
}

bool wk_jskip_name(wk_jparser *p, const char *name) {
    const bool is_here = wk_jat_name(p, name);
    p->at += is_here;
    return is_here;
}

static wick_status fail_expected(const wk_jparser *p, const char *what) {
    return wk_jparse_fail(p, "expected token '%s', got '%s'", what, describe(p->at).text);
}

wick_status wk_jexpect_sign(wk_jparser *p, const char *sign) {
    return wk_jskip_sign(p, sign) ? WICK_OK : fail_expected(p, sign);
}

wick_status wk_jexpect_name(wk_jparser *p, wk_str *name) {
    if (p->at->kind != WK_J_TOKEN_NAME) return fail_expected(p, "name");
    *name = p->at++->text;
    return WICK_OK;
}

static wick_status expect_word(wk_jparser *p, const char *word) {
    return wk_jskip_name(p, word) ? WICK_OK : fail_expected(p, word);
}

static wick_status expect_kind(wk_jparser *p, wk_jtoken_kind kind, const char *what) {
    if (p->at->kind != kind) return fail_expected(p, what);
    p->at++;
    return WICK_OK;
}

static wick_status end_tag(wk_jparser *p) {
    return expect_kind(p, WK_J_TOKEN_TAG_END, "end of statement block");
}

wick_status wk_jparse_enter(wk_jparser *p) {
    return ++p->depth > MAX_DEPTH ? wk_jparse_fail(p, "nested deeper than %d", MAX_DEPTH) : WICK_OK;
}

/* Nothing guards what does not exist. */
static wick_status check_known(const wk_jparser *p) {
    if (p->unknown == NULL) return WICK_OK;
    return wk_fail(p->err, WICK_ERR_FORMAT, "line %d: No %s named '%s'.", p->unknown->line,
                   p->unknown->kind == WK_J_FILTER ? "filter" : "test",
                   wk_str_show(p->unknown->name).text);
}

/* ---- Bodies ---- */

/* "endfor else": the words that end a body. */
static bool is_word_of(const char *words, wk_str word) {
    const size_t size = word.size;
    for (const char *at = words; (at = strstr(at, word.text)) != NULL; at++) {
        const bool begins = at == words || at[-1] == ' ';
        if (begins && (at[size] == ' ' || at[size] == '\0')) return true;
    }
    return false;
}

static bool at_end_of_body(const wk_jparser *p, const char *ends) {
    char word[16];
    if (p->at->kind != WK_J_TOKEN_TAG_BEGIN || p->at[1].kind != WK_J_TOKEN_NAME) return false;
    const wk_str name = p->at[1].text;
    if (name.size >= sizeof word) return false;
    memcpy(word, name.text, name.size);
    word[name.size] = '\0';
    return is_word_of(ends, (wk_str){word, name.size});
}

static wick_status parse_statement(wk_jparser *p, wk_jnode **out);

static wick_status parse_piece(wk_jparser *p, wk_jnode **out) {
    if (p->at->kind == WK_J_TOKEN_TEXT) {
        WK_TRY(wk_jnode_make(p, WK_J_TEXT, out));
        const wk_str text = p->at++->text;
        (*out)->value = wk_jstring((wk_jtext){text.text, text.size, NULL});
        return WICK_OK;
    }
    if (p->at->kind == WK_J_TOKEN_TAG_BEGIN) {
        p->at++;
        return parse_statement(p, out);
    }
    p->at++;
    WK_TRY(wk_jnode_make(p, WK_J_OUTPUT, out));
    WK_TRY(wk_jparse_tuple(p, WK_J_TUPLE_EXPRESSIONS, NULL, &(*out)->first));
    return expect_kind(p, WK_J_TOKEN_OUTPUT_END, "end of print statement");
}

/* Up to the tag that begins with one of the words, of which the name is the next token then; ends
 * "": up to the end of the template. */
static wick_status parse_body(wk_jparser *p, const char *ends, wk_jnode **list) {
    wk_jnode **link = list;
    WK_TRY(wk_jparse_enter(p));
    while (!at_end_of_body(p, ends)) {
        if (p->at->kind == WK_J_TOKEN_END && ends[0] == '\0') break;
        if (p->at->kind == WK_J_TOKEN_END)
            return wk_jparse_fail(p,
                                  "Unexpected end of template. Jinja was looking for the "
                                  "following tags: '%s'.",
                                  ends);
        WK_TRY(parse_piece(p, link));
        while (*link != NULL) link = &(*link)->next;
    }
    p->depth--;
    if (p->at->kind != WK_J_TOKEN_END) p->at++; /* "{%" */
    return WICK_OK;
}

/* Parses, from the end of the opening tag on, a body with a scope of its own and its end tag.
 * Filters in it are not guarded. */
static wick_status parse_block(wk_jparser *p, const char *ends, wk_jnode **list) {
    WK_TRY(check_known(p));
    WK_TRY(end_tag(p));
    WK_TRY(parse_body(p, ends, list));
    return check_known(p);
}

static wick_status parse_whole_block(wk_jparser *p, const char *end, wk_jnode **list) {
    const wk_jnode *const unknown = p->unknown;
    p->unknown = NULL;
    WK_TRY(parse_block(p, end, list));
    p->unknown = unknown;
    WK_TRY(expect_word(p, end));
    return WICK_OK;
}

/* ---- Statements, after their first word ---- */

static wick_status parse_if(wk_jparser *p, wk_jnode **out) {
    const wk_jnode *const unknown = p->unknown;
    WK_TRY(wk_jnode_make(p, WK_J_IF, out));
    wk_jnode **link = &(*out)->list;
    do {
        WK_TRY(wk_jnode_make(p, WK_J_BRANCH, link));
        WK_TRY(wk_jparse_tuple(p, WK_J_TUPLE_CONDITIONS, NULL, &(*link)->first));
        WK_TRY(end_tag(p));
        WK_TRY(parse_body(p, "elif else endif", &(*link)->list));
        link = &(*link)->next;
    } while (wk_jskip_name(p, "elif"));
    if (wk_jskip_name(p, "else")) {
        WK_TRY(end_tag(p));
        WK_TRY(parse_body(p, "endif", &(*out)->other));
    }
    p->unknown = unknown;
    return expect_word(p, "endif");
}

static bool is_loop_target(const wk_jnode *target) {
    if (target->kind == WK_J_NAME) return wk_str_is(target->name, "loop");
    for (const wk_jnode *item = target->list; item != NULL; item = item->next) {
        if (is_loop_target(item)) return true;
    }
    return false;
}

static wick_status parse_for_head(wk_jparser *p, wk_jnode *node) {
    WK_TRY(wk_jparse_target(p, WK_J_TUPLE_NAMES, &node->first));
    if (is_loop_target(node->first))
        return wk_jparse_fail(p, "Can't assign to special loop variable in for-loop target");
    WK_TRY(expect_word(p, "in"));
    WK_TRY(wk_jparse_tuple(p, WK_J_TUPLE_CONDITIONS, "recursive", &node->second));
    if (wk_jskip_name(p, "if")) WK_TRY(wk_jparse_expression(p, &node->third));
    node->is_recursive = wk_jskip_name(p, "recursive");
    return WICK_OK;
}

static wick_status parse_for(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_FOR, out));
    WK_TRY(parse_for_head(p, *out));
    const wk_jnode *const unknown = p->unknown;
    p->unknown = NULL;
    p->n_loops++;
    WK_TRY(parse_block(p, "endfor else", &(*out)->list));
    p->n_loops--;
    if (wk_jskip_name(p, "else")) WK_TRY(parse_block(p, "endfor", &(*out)->other));
    p->unknown = unknown;
    return expect_word(p, "endfor");
}

static wick_status parse_set(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_SET, out));
    WK_TRY(wk_jparse_target(p, WK_J_TUPLE_TARGETS, &(*out)->first));
    if (wk_jskip_sign(p, "="))
        return wk_jparse_tuple(p, WK_J_TUPLE_EXPRESSIONS, NULL, &(*out)->second);
    (*out)->kind = WK_J_SET_BLOCK;
    if (wk_jat_sign(p, "|")) WK_TRY(wk_jparse_filters(p, NULL, &(*out)->second));
    return parse_whole_block(p, "endset", &(*out)->list);
}

/* "(a, b=1)" */
static wick_status parse_signature(wk_jparser *p, wk_jnode **list) {
    wk_jnode **link = list;
    bool has_default = false;
    WK_TRY(wk_jexpect_sign(p, "("));
    while (!wk_jskip_sign(p, ")")) {
        if (*list != NULL) WK_TRY(wk_jexpect_sign(p, ","));
        WK_TRY(wk_jnode_make(p, WK_J_NAME, link));
        WK_TRY(wk_jparse_target_name(p, &(*link)->name));
        if (wk_jskip_sign(p, "=")) {
            WK_TRY(wk_jparse_expression(p, &(*link)->first));
            has_default = true;
        } else if (has_default) {
            return wk_jparse_fail(p, "non-default argument follows default argument");
        }
        link = &(*link)->next;
    }
    return WICK_OK;
}

/* The body of a macro or a call block: which of the special names it reads is noted. */
static wick_status parse_macro_body(wk_jparser *p, const char *end, wk_jnode *node) {
    const wk_jparser outside = *p;
    p->uses_varargs = p->uses_kwargs = p->uses_caller = false;
    p->n_loops = 0;
    WK_TRY(parse_whole_block(p, end, &node->list));
    node->takes_varargs = p->uses_varargs;
    node->takes_kwargs = p->uses_kwargs;
    node->takes_caller = p->uses_caller;
    p->uses_varargs |= outside.uses_varargs;
    p->uses_kwargs |= outside.uses_kwargs;
    p->uses_caller |= outside.uses_caller;
    p->n_loops = outside.n_loops;
    return WICK_OK;
}

static wick_status parse_macro(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_MACRO_BLOCK, out));
    WK_TRY(wk_jparse_target_name(p, &(*out)->name));
    WK_TRY(parse_signature(p, &(*out)->other));
    return parse_macro_body(p, "endmacro", *out);
}

/* The block is an argument of the call that it stands with; the name it has until then is one that
 * no template can write. */
static wick_status add_caller(wk_jparser *p, wk_jnode *call) {
    wk_jnode **link = &call->list;
    while (*link != NULL) link = &(*link)->next;
    WK_TRY(wk_jnode_make(p, WK_J_ARGUMENT, link));
    (*link)->op = WK_J_NAMED;
    (*link)->name = wk_str_of("caller");
    WK_TRY(wk_jnode_make(p, WK_J_NAME, &(*link)->first));
    (*link)->first->name = wk_str_of(WK_J_CALLER);
    return WICK_OK;
}

static wick_status parse_call_block(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_CALL_BLOCK, out));
    if (wk_jat_sign(p, "(")) WK_TRY(parse_signature(p, &(*out)->other));
    WK_TRY(wk_jparse_expression(p, &(*out)->first));
    if ((*out)->first->kind != WK_J_CALL) return wk_jparse_fail(p, "expected call");
    WK_TRY(add_caller(p, (*out)->first));
    return parse_macro_body(p, "endcall", *out);
}

static wick_status parse_filter_block(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_FILTER_BLOCK, out));
    WK_TRY(wk_jparse_filters(p, NULL, &(*out)->first));
    return parse_whole_block(p, "endfilter", &(*out)->list);
}

static wick_status parse_with(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_WITH, out));
    wk_jnode **link = &(*out)->other;
    while (p->at->kind != WK_J_TOKEN_TAG_END) {
        if ((*out)->other != NULL) WK_TRY(wk_jexpect_sign(p, ","));
        WK_TRY(wk_jnode_make(p, WK_J_SET, link));
        WK_TRY(wk_jparse_target(p, WK_J_TUPLE_NAMES, &(*link)->first));
        WK_TRY(wk_jexpect_sign(p, "="));
        WK_TRY(wk_jparse_expression(p, &(*link)->second));
        link = &(*link)->next;
    }
    return parse_whole_block(p, "endwith", &(*out)->list);
}

static wick_status parse_generation(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_SCOPED, out));
    return parse_whole_block(p, "endgeneration", &(*out)->list);
}

/* Without templates that extend each other, a block is where it stands. */
static wick_status parse_named_block(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_SCOPED, out));
    WK_TRY(wk_jexpect_name(p, &(*out)->name));
    wk_jskip_name(p, "scoped");
    wk_jskip_name(p, "required");
    WK_TRY(parse_whole_block(p, "endblock", &(*out)->list));
    if (p->at->kind == WK_J_TOKEN_NAME && wk_str_equal(p->at->text, (*out)->name)) p->at++;
    return WICK_OK;
}

static wick_status parse_autoescape(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_AUTOESCAPE, out));
    WK_TRY(wk_jparse_expression(p, &(*out)->first));
    return parse_whole_block(p, "endautoescape", &(*out)->list);
}

/* {% print a, b %}: an output for each. */
static wick_status parse_print(wk_jparser *p, wk_jnode **out) {
    wk_jnode **link = out;
    while (p->at->kind != WK_J_TOKEN_TAG_END) {
        if (link != out) WK_TRY(wk_jexpect_sign(p, ","));
        WK_TRY(wk_jnode_make(p, WK_J_OUTPUT, link));
        WK_TRY(wk_jparse_expression(p, &(*link)->first));
        link = &(*link)->next;
    }
    return link != out ? WICK_OK : wk_jparse_fail_here(p);
}

static wick_status parse_jump(wk_jparser *p, wk_jnode_kind kind, wk_jnode **out) {
    if (p->n_loops == 0)
        return wk_jparse_fail(p, "'%s' outside loop",
                              kind == WK_J_BREAK_LOOP ? "break" : "continue");
    return wk_jnode_make(p, kind, out);
}

static wick_status parse_break(wk_jparser *p, wk_jnode **out) {
    return parse_jump(p, WK_J_BREAK_LOOP, out);
}

static wick_status parse_continue(wk_jparser *p, wk_jnode **out) {
    return parse_jump(p, WK_J_CONTINUE_LOOP, out);
}

/* Only that it ends is looked at: there is nothing to load from. */
static wick_status parse_load(wk_jparser *p, wk_jnode **out) {
    WK_TRY(wk_jnode_make(p, WK_J_LOAD, out));
    (*out)->name = p->at[-1].text;
    while (p->at->kind != WK_J_TOKEN_TAG_END && p->at->kind != WK_J_TOKEN_END) p->at++;
    return WICK_OK;
}

static wick_status parse_statement(wk_jparser *p, wk_jnode **out) {
    static const struct {
        const char *word;
        wick_status (*parse)(wk_jparser *p, wk_jnode **out);
    } statements[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"macro", parse_macro},
        {"call", parse_call_block},
        {"filter", parse_filter_block},
        {"with", parse_with},
        {"generation", parse_generation},
        {"block", parse_named_block},
        {"autoescape", parse_autoescape},
        {"print", parse_print},
        {"break", parse_break},
        {"continue", parse_continue},
        {"include", parse_load},
        {"import", parse_load},
        {"from", parse_load},
        {"extends", parse_load},
    };
    if (p->at->kind != WK_J_TOKEN_NAME) return wk_jparse_fail(p, "tag name expected");
    for (size_t i = 0; i < WK_COUNT(statements); i++) {
        if (!wk_jskip_name(p, statements[i].word)) continue;
        WK_TRY(statements[i].parse(p, out));
        return end_tag(p);
    }
    return wk_jparse_fail(p, "Encountered unknown tag '%s'.", wk_str_show(p->at->text).text);
}

wick_status wk_jinja_parse(wk_arena *arena, wk_str text, wk_jinja_template **out, wick_error *err) {
    *out = NULL;
    wk_jtokens tokens;
    WK_TRY(wk_jinja_lex(arena, text, &tokens, err));
    wk_jparser p = {.arena = arena, .err = err, .at = tokens.items};
    wk_jnode *body = NULL;
    WK_TRY(parse_body(&p, "", &body));
    WK_TRY(check_known(&p));
    wk_jinja_template *const made = wk_arena_array(arena, 1, sizeof *made);
    if (made == NULL) return wk_fail_memory(err, sizeof *made, "a template");
    made->body = body;
    *out = made;
    return WICK_OK;
}
