/* llm/chat_variables.h: what templates read beside messages and tools. */
#ifndef WK_LLM_CHAT_VARIABLES_H
#define WK_LLM_CHAT_VARIABLES_H

#include "core/json.h"

#include <wick/text.h>

/* An object in arena with bos_token and eos_token, as far as there are such. NULL: out of memory.
 */
wk_json *wk_chat_variables(wk_arena *arena, const wick_tokenizer *tokenizer);
/* One more, whose value is the caller's to set. NULL: out of memory. */
wk_json *wk_chat_add_variable(wk_arena *arena, wk_json *variables, const char *key,
                              wk_json_kind kind);

#endif
