/* grammar/expr.h: a grammar as a tree: what GBNF and JSON schemas are read into, and what
 * program.c compiles.
 *
 * Everything lies in one arena. What allocates gives NULL once memory has run out, takes NULL for a
 * part, and sets failed: one check at the end is enough. */
#ifndef WK_GRAMMAR_EXPR_H
#define WK_GRAMMAR_EXPR_H

#include "core/arena.h"
#include "core/str.h"

typedef enum wk_expr_kind {
    WK_EXPR_TEXT,     /* these bytes */
    WK_EXPR_CLASS,    /* one character of ranges */
    WK_EXPR_SEQUENCE, /* all parts in order; of none: the empty text */
    WK_EXPR_CHOICE,   /* one of the parts; of none: nothing matches */
    WK_EXPR_REPEAT,   /* the part, least to most times */
    WK_EXPR_RULE,     /* the rule of that id */
    WK_EXPR_TOKEN,    /* the token of that id, or any other one where is_negated */
} wk_expr_kind;

typedef struct wk_code_range {
    uint32_t first, last; /* code points, both included */
} wk_code_range;

typedef struct wk_expr wk_expr;
struct wk_expr {
    wk_expr_kind kind;
    bool is_negated;
    uint32_t id;
    uint32_t least, most; /* most WK_REPEAT_FOREVER: no limit */
    wk_str text;
    const wk_code_range *ranges; /* [n_ranges] rising, apart, without surrogates */
    size_t n_ranges;
    wk_expr *first, *last; /* parts */
    wk_expr *next, *previous;
};

#define WK_REPEAT_FOREVER UINT32_MAX

typedef struct wk_rule {
    wk_str name;
    wk_expr *body; /* NULL: not defined yet */
} wk_rule;

typedef struct wk_rules {
    wk_arena *arena;
    wk_rule *items; /* the first is where a text begins */
    uint32_t n, capacity;
    bool failed;
} wk_rules;

/* name is not copied. Returns the id, 0 when memory is short. */
uint32_t wk_rules_add(wk_rules *rules, wk_str name);

/* Bytes are copied. */
wk_expr *wk_expr_text(wk_rules *rules, wk_str text);
wk_expr *wk_expr_word(wk_rules *rules, const char *terminated);
/* In any order; copied. Surrogates are left out, whether named or not. */
wk_expr *wk_expr_class(wk_rules *rules, const wk_code_range *ranges, size_t n, bool is_negated);
/* An empty sequence or choice. */
wk_expr *wk_expr_list(wk_rules *rules, wk_expr_kind kind);
/* A part belongs to one list only. */
void wk_expr_add(wk_expr *list, wk_expr *part);
wk_expr *wk_expr_repeat(wk_rules *rules, wk_expr *part, uint32_t least, uint32_t most);
wk_expr *wk_expr_rule(wk_rules *rules, uint32_t id);
wk_expr *wk_expr_token(wk_rules *rules, uint32_t id, bool is_negated);

#endif
