/* web/glue/answer.c: doors to what an answer consists of. */
#include "door.h"

/* Takes size bytes of text (is_end: the last ones) and gives the next span: 1 where there is one,
 * else 0. out: kind, text, its size; of a call the tag before it and its calls as JSON, or NULL. */
DOOR(int, answer_next, wick_answer *answer, const char *text, size_t size, int is_end,
     uint32_t out[5]) {
    wick_answer_span span;
    if (size > 0) {
        const wick_status status = wick_answer_feed(answer, text, size);
        if (status != WICK_OK) return door_fail(status, NULL);
    }
    if (is_end) wick_answer_finish(answer);
    if (!wick_answer_next(answer, &span)) return 0;
    out[0] = span.kind;
    out[1] = (uint32_t)(uintptr_t)span.text;
    out[2] = (uint32_t)span.size;
    out[3] = span.kind == WICK_ANSWER_CALL ? (uint32_t)(uintptr_t)span.open : 0;
    out[4] = (uint32_t)(uintptr_t)wick_answer_calls(answer, NULL);
    return 1;
}

DOOR(void, answer_close, wick_answer *answer) { wick_answer_close(answer); }
