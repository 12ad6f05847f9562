/* chat/call.h: what a call of a tool says: the span of an answer that wick_answer_next gives, in
 * the form of any family, to the tool's name and its arguments as JSON. */
#ifndef WK_CHAT_CALL_H
#define WK_CHAT_CALL_H

#include "core/json.h"

#include <wick/chat.h>

typedef struct wk_tool_call wk_tool_call;
struct wk_tool_call {
    wk_str name;
    wk_str arguments; /* a JSON object */
    wk_tool_call *next;
};

/* The calls in a span, in arena. tools: an array of functions as the prompt had them, or NULL: what
 * a parameter is where the text does not say its type. WICK_CALL_JSON, which has no tags: each call
 * names one of the tools, if they are known, and has arguments or no other member. WICK_ERR_FORMAT:
 * it is none of them, or a part of one; WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_tool_calls_read(wk_arena *arena, wick_call_format format, wk_str text,
                               const wk_json *tools, wk_tool_call **calls);

/* The parameters of a tool of this name: its JSON schema. NULL: there is none. */
const wk_json *wk_tool_find(const wk_json *tools, wk_str name);
const wk_json *wk_tool_parameters(const wk_json *tool);
/* The member "function" of a tool where it has one, else the tool itself. */
const wk_json *wk_tool_function(const wk_json *tool);

#endif
