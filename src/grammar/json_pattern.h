/* grammar/json_pattern.h: characters and regular expressions as they stand inside a JSON string. */
#ifndef WK_GRAMMAR_JSON_PATTERN_H
#define WK_GRAMMAR_JSON_PATTERN_H

#include "core/status.h"
#include "grammar/expr.h"

/* Any character, escaped or not. */
wk_expr *wk_json_character(wk_rules *rules);
/* The text between quotation marks, escaped only where it has to be. */
wk_expr *wk_json_literal(wk_rules *rules, wk_str text);

/* The strings in which an ECMA-262 pattern finds something, without their quotation marks: all of
 * the syntax but look-around, back references, word boundaries, properties (\p), and anchors other
 * than ^ and $ at the ends of the whole alternatives. WICK_ERR_FORMAT, WICK_ERR_UNSUPPORTED. */
wick_status wk_json_pattern(wk_rules *rules, wk_str pattern, wk_expr **out, wick_error *err);

/* Leaves of a pattern's strings some of those with least to most characters (most
 * WK_REPEAT_FOREVER: any number). False: it found none, and the expression is spoilt. */
bool wk_json_limit(wk_expr *pattern, uint32_t least, uint32_t most);

#endif
