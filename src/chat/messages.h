/* chat/messages.h: the messages of a conversation, as the JSON that templates read. */
#ifndef WK_CHAT_MESSAGES_H
#define WK_CHAT_MESSAGES_H

#include "core/json.h"

typedef struct wk_chat_messages {
    wk_heap *heap;
    wk_json list; /* an array; each item is part of a block of its own */
} wk_chat_messages;

wk_chat_messages wk_chat_messages_none(wk_heap *heap);
/* All but the first n are freed. */
void wk_chat_messages_cut(wk_chat_messages *messages, size_t n);

/* A failure of any of these changes nothing. Bytes of texts that are not UTF-8 become U+FFFD. */
wick_status wk_chat_messages_add(wk_chat_messages *messages, const char *role, wk_str content,
                                 wick_error *err);
/* A copy. WICK_ERR_VALUE: not an object with a text as its role. */
wick_status wk_chat_messages_add_json(wk_chat_messages *messages, const wk_json *message,
                                      wick_error *err);
/* NULL or "": takes the system message away. */
wick_status wk_chat_messages_set_system(wk_chat_messages *messages, const char *text,
                                        wick_error *err);
/* Goes on with the content of the last message, which wk_chat_messages_add made. */
wick_status wk_chat_messages_grow(wk_chat_messages *messages, wk_str text, wick_error *err);

/* How many system messages the conversation begins with. */
size_t wk_chat_messages_fixed(const wk_chat_messages *messages);
/* How many turns begin after message `first`: messages of the user. */
size_t wk_chat_messages_turns(const wk_chat_messages *messages, size_t first);
/* The message that the n-th of these turns begins with; 0: first itself. */
size_t wk_chat_messages_turn(const wk_chat_messages *messages, size_t first, size_t n);
/* The system messages and those from `first` up to before `end`, as an array in arena. NULL: out of
 * memory. */
const wk_json *wk_chat_messages_view(const wk_chat_messages *messages, size_t first, size_t end,
                                     wk_arena *arena);

#endif
