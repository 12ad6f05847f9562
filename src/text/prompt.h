/* text/prompt.h: what a template made of a conversation (wick_prompt), and more text after it. */
#ifndef WK_TEXT_PROMPT_H
#define WK_TEXT_PROMPT_H

#include "core/str.h"

#include <wick/chat.h>

/* Puts a text at the end: the template's own, where special tokens are found, or a message's. */
wick_status wk_prompt_append(wick_prompt *prompt, wk_str text, bool is_of_template);

#endif
