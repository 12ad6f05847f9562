/* text/jinja/lexer.h: a template as tokens; white space around tags is decided here. */
#ifndef WK_TEXT_JINJA_LEXER_H
#define WK_TEXT_JINJA_LEXER_H

#include "core/arena.h"
#include "core/status.h"
#include "core/str.h"

typedef enum wk_jtoken_kind {
    WK_J_TOKEN_TEXT,         /* between tags */
    WK_J_TOKEN_OUTPUT_BEGIN, /* {{ */
    WK_J_TOKEN_OUTPUT_END,
    WK_J_TOKEN_TAG_BEGIN, /* {% */
    WK_J_TOKEN_TAG_END,
    WK_J_TOKEN_NAME,
    WK_J_TOKEN_STRING, /* decoded */
    WK_J_TOKEN_INTEGER,
    WK_J_TOKEN_FLOAT,
    WK_J_TOKEN_SIGN, /* an operator or a bracket */
    WK_J_TOKEN_END,
} wk_jtoken_kind;

typedef struct wk_jtoken {
    wk_jtoken_kind kind;
    int line;
    wk_str text; /* as in the template, less underscores in numbers */
} wk_jtoken;

typedef struct wk_jtokens {
    const wk_jtoken *items; /* the last one is WK_J_TOKEN_END */
    size_t n;
} wk_jtokens;

/* The character of this Unicode name, in any case; 0: it is none of the few that are known. */
uint32_t wk_jchar_named(wk_str name);

/* In the arena, text included. */
wick_status wk_jinja_lex(wk_arena *arena, wk_str text, wk_jtokens *out, wick_error *err);

#endif
