/* text/jinja/parser.h: what the two files of the parser share: statements and expressions. */
#ifndef WK_TEXT_JINJA_PARSER_H
#define WK_TEXT_JINJA_PARSER_H

#include "core/arena.h"
#include "text/jinja/lexer.h"
#include "text/jinja/node.h"

typedef struct wk_jparser {
    wk_arena *arena;
    wick_error *err;
    const wk_jtoken *at; /* the current token */
    uint32_t depth;      /* of nested statements and expressions */
    uint32_t n_loops;    /* open ones, of this macro */
    /* Which of these names the macro that is being read uses. */
    bool uses_varargs, uses_kwargs, uses_caller;
    /* A filter or test that does not exist is refused, unless an inline if or an if statement
     * decides whether it is reached: then it is a failure there. */
    const wk_jnode *unknown;
} wk_jparser;

wick_status wk_jparse_fail(const wk_jparser *p, const char *format, ...) WK_PRINTF(2, 3);
/* "unexpected 'end of print statement'": the current token. */
wick_status wk_jparse_fail_here(const wk_jparser *p);
wick_status wk_jnode_make(wk_jparser *p, wk_jnode_kind kind, wk_jnode **out);
/* Whether the current token is this sign or this name. */
bool wk_jat_sign(const wk_jparser *p, const char *sign);
bool wk_jat_name(const wk_jparser *p, const char *name);
/* Steps over it if it is. */
bool wk_jskip_sign(wk_jparser *p, const char *sign);
bool wk_jskip_name(wk_jparser *p, const char *name);
wick_status wk_jexpect_sign(wk_jparser *p, const char *sign);
wick_status wk_jexpect_name(wk_jparser *p, wk_str *name);
wick_status wk_jparse_enter(wk_jparser *p);

typedef enum wk_jtuple_form {
    WK_J_TUPLE_EXPRESSIONS, /* with inline ifs */
    WK_J_TUPLE_CONDITIONS,  /* without */
    WK_J_TUPLE_TARGETS,     /* names, attributes of namespaces, tuples of names */
    WK_J_TUPLE_NAMES,       /* names and tuples of names */
    WK_J_TUPLE_PARENTHESES, /* in brackets: may be empty */
} wk_jtuple_form;

/* With an inline if. */
wick_status wk_jparse_expression(wk_jparser *p, wk_jnode **out);
/* One expression, or a tuple where there are commas. end_name: a name that ends it, or NULL. */
wick_status wk_jparse_tuple(wk_jparser *p, wk_jtuple_form form, const char *end_name,
                            wk_jnode **out);
/* name(arguments) | name ... over first (NULL: the text of a block). At '|', or at the name. */
wick_status wk_jparse_filters(wk_jparser *p, wk_jnode *first, wk_jnode **out);
/* What may stand left of '=' or 'in', as WK_J_TUPLE_TARGETS or WK_J_TUPLE_NAMES. */
wick_status wk_jparse_target(wk_jparser *p, wk_jtuple_form form, wk_jnode **out);
wick_status wk_jparse_target_name(wk_jparser *p, wk_str *name);

#endif
