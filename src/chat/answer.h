/* chat/answer.h: how models mark thinking and calls of tools in what they say: one table. */
#ifndef WK_CHAT_ANSWER_H
#define WK_CHAT_ANSWER_H

#include <wick/chat.h>

typedef enum wk_mark_kind {
    WK_MARK_REASONING,
    WK_MARK_CALL,
    WK_MARK_FRAME,  /* open alone, which is left out: what follows is content */
    WK_MARK_HEADER, /* the beginning of a message's header, which says what follows */
} wk_mark_kind;

/* No open tag is the beginning of another one, or stands inside another one, but those of headers,
 * which come first. */
typedef struct wk_mark {
    const char *open, *close; /* close NULL: up to the end of the answer */
    wk_mark_kind kind;
    wick_call_format format;
} wk_mark;

enum { WK_N_MARKS = 29 };
extern const wk_mark wk_marks[WK_N_MARKS];

/* The thinking, or the header, that a prompt ends in; blanks after it do not count. NULL: neither.
 */
const wk_mark *wk_mark_at_end(const char *prompt, size_t size);

#endif
