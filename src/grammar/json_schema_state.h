/* grammar/json_schema_state.h: what the files that read JSON schemas share. */
#ifndef WK_GRAMMAR_JSON_SCHEMA_STATE_H
#define WK_GRAMMAR_JSON_SCHEMA_STATE_H

#include "core/json.h"
#include "core/map.h"
#include "grammar/program.h"

/* Rules that schemas share, made when they are first needed. */
typedef enum wk_schema_rule {
    WK_SCHEMA_SPACE,
    WK_SCHEMA_STRING,
    WK_SCHEMA_NUMBER,
    WK_SCHEMA_INTEGER,
    WK_SCHEMA_ARRAY,
    WK_SCHEMA_OBJECT,
    WK_SCHEMA_VALUE,
    WK_SCHEMA_RULES, /* how many there are */
} wk_schema_rule;

typedef struct wk_schema {
    wk_rules *rules;
    const wk_json *root;
    wk_map64 targets;                 /* address of a schema that was referred to -> its rule */
    uint32_t shared[WK_SCHEMA_RULES]; /* their rules; 0: not there yet (rule 0 is the root) */
    int depth, n_compiled;
    wick_error *err;
} wk_schema;

/* The groups that keywords come in: what a value has to be for them to mean anything. */
enum {
    WK_SCHEMA_NOTES = 1, /* says nothing about values, or nothing that is enforced */
    WK_SCHEMA_OF_STRINGS = 2,
    WK_SCHEMA_OF_NUMBERS = 4,
    WK_SCHEMA_OF_ARRAYS = 8,
    WK_SCHEMA_OF_OBJECTS = 16,
    WK_SCHEMA_GENERAL = 32,
};

/* json_schema.c */
/* NULL or true: any value. WICK_ERR_VALUE: nothing is accepted. */
wick_status wk_schema_compile(wk_schema *s, const wk_json *schema, wk_expr **out);
/* A grammar of a schema alone; of no text where nothing is accepted. */
wick_status wk_schema_program(wk_schema *s, const wk_json *schema, wk_program *out);
wk_expr *wk_schema_shared(wk_schema *s, wk_schema_rule rule);
wick_status wk_schema_fail(const wk_schema *s, wick_status status, const char *keyword,
                           const char *what);
/* *count stays when the keyword is missing. WICK_ERR_FORMAT: it is not a whole number >= 0. */
wick_status wk_schema_count(const wk_schema *s, const wk_json *schema, const char *keyword,
                            uint32_t *count);

/* json_schema_keywords.c */
/* *groups: of all its keywords. WICK_ERR_UNSUPPORTED by name. */
wick_status wk_schema_check_keywords(const wk_schema *s, const wk_json *schema, unsigned *groups);
/* What "#/..." names; WICK_ERR_FORMAT when there is no such thing. */
wick_status wk_schema_find(const wk_schema *s, wk_str reference, const wk_json **out);
/* false, or what says the same: {"not": {}}. NULL is allowed: it is not. */
bool wk_schema_is_false(const wk_json *schema);
/* A schema that accepts what both accept; a comes from here or from wk_schema_without. */
wick_status wk_schema_merge(wk_schema *s, const wk_json *a, const wk_json *b, wk_json **out);
/* A copy without a keyword, and without those that say nothing about values. */
wick_status wk_schema_without(wk_schema *s, const wk_json *schema, const char *keyword,
                              wk_json **out);
/* Whether it is certain that no generated value is accepted by both: properties whose constants
 * distinguish them are marked (is_read) as required. */
bool wk_schema_are_disjoint(const wk_schema *s, const wk_json *a, const wk_json *b);
/* The same for each pair of a list; before anything is compiled. */
void wk_schema_mark_tags(const wk_schema *s, const wk_json *list);
bool wk_json_is_equal(const wk_json *a, const wk_json *b);

/* json_schema_types.c: values of one type. */
wick_status wk_schema_string(wk_schema *s, const wk_json *schema, wk_expr **out);
wick_status wk_schema_number(wk_schema *s, const wk_json *schema, bool is_integer, wk_expr **out);
wick_status wk_schema_array(wk_schema *s, const wk_json *schema, wk_expr **out);
/* One value, its members in this order. */
wk_expr *wk_schema_literal(wk_schema *s, const wk_json *value);
wk_expr *wk_schema_quoted(wk_schema *s, wk_expr *content);
wk_expr *wk_schema_sequence(wk_schema *s, wk_expr *const *parts, size_t n);

/* json_schema_object.c */
wick_status wk_schema_object(wk_schema *s, const wk_json *schema, wk_expr **out);

#endif
