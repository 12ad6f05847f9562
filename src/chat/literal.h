/* chat/literal.h: values as Python writes them, and Gemma 4 (keys without quotes, texts between
 * <|"|>), as JSON. Each takes what it reads off the beginning of text. False: it is no such value;
 * what has been written then is of no use. */
#ifndef WK_CHAT_LITERAL_H
#define WK_CHAT_LITERAL_H

#include "core/str.h"

bool wk_literal_write(wk_strbuf *to, wk_str *text);
/* key=value, ... and the closing bracket, as an object. */
bool wk_literal_write_keywords(wk_strbuf *to, wk_str *text);

#endif
