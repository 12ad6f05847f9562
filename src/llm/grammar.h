/* llm/grammar.h: from the texts in a sampler's desc to what chooses by them. */
#ifndef WK_LLM_GRAMMAR_H
#define WK_LLM_GRAMMAR_H

#include "grammar/matcher.h"
#include "llm/llm.h"

/* *out NULL: desc names no grammar. WICK_ERR_FORMAT, WICK_ERR_VALUE, WICK_ERR_UNSUPPORTED with a
 * sentence, WICK_ERR_OUT_OF_MEMORY. The model must outlive it. */
wick_status wk_grammar_open(wick_model *model, const wick_sampler_desc *desc, wk_matcher **out,
                            wick_error *err);

#endif
