/* grammar/gbnf.h: grammars written in GBNF, the notation of llama.cpp (docs/grammar.md). */
#ifndef WK_GRAMMAR_GBNF_H
#define WK_GRAMMAR_GBNF_H

#include "core/status.h"
#include "grammar/expr.h"

#include <wick/text.h>

/* Reads text into rules, which must be empty except for their arena; text must outlive them. The
 * rule "root" comes first. tokenizer: for tokens that are named by their text; may be NULL.
 * WICK_ERR_FORMAT with line and column; WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_gbnf_parse(wk_rules *rules, const wick_tokenizer *tokenizer, wk_str text,
                          wick_error *err);

#endif
