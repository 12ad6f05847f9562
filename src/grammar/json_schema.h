/* grammar/json_schema.h: a JSON schema as a grammar of the JSON that it accepts (docs/grammar.md).
 */
#ifndef WK_GRAMMAR_JSON_SCHEMA_H
#define WK_GRAMMAR_JSON_SCHEMA_H

#include "core/status.h"
#include "grammar/expr.h"

/* Reads text into rules, which must be empty except for their arena. WICK_ERR_FORMAT: the text is
 * not JSON, or not a schema; WICK_ERR_UNSUPPORTED: it uses an unsupported keyword, which the error
 * names; WICK_ERR_VALUE: nothing can be valid; WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_json_schema_parse(wk_rules *rules, wk_str text, wick_error *err);

#endif
