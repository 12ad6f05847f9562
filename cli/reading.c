/* reading.c: see reading.h. */
#include "reading.h"

cli_reading cli_reading_begin(const wick_session *session, const wick_session_stats *before) {
    wick_session_stats now;
    wick_session_get_stats(session, &now);
    /* A session that began again counts from 0. */
    const bool goes_on = now.n_prompt >= before->n_prompt;
    const uint32_t n = goes_on ? now.n_prompt - before->n_prompt : now.n_prompt;
    return (cli_reading){.line = cli_progress_begin("reading", "tokens"),
                         .session = session,
                         .n_held = now.n_context > n ? now.n_context - n : 0,
                         .n_reused = goes_on ? before->n_reused : 0,
                         .total = n};
}

/* Events count from the beginning of the session. Where it held 2000 tokens before the prompt, or
 * found its first 2000 in the cache, 2512 of 3000 stands for 512 of 1000 that are read. */
static void count(cli_reading *r, const wick_event *event) {
    wick_session_stats now;
    wick_session_get_stats(r->session, &now);
    const uint32_t n_reused = now.n_reused > r->n_reused ? now.n_reused - r->n_reused : 0;
    const uint32_t n_before = r->n_held > n_reused ? r->n_held : n_reused; /* may be the same */
    const bool is_known = n_before <= event->done;
    r->done = event->done - (is_known ? n_before : 0);
    r->total = event->total - (is_known ? n_before : 0);
}

bool cli_reading_take(cli_reading *r, const wick_event *event) {
    const bool is_prompt = event->kind == WICK_EVENT_PROMPT;
    r->is_over |= !is_prompt && event->kind != WICK_EVENT_PENDING &&
                  event->kind != WICK_EVENT_LEFT_OUT; /* which comes before the prompt is read */
    if (r->is_over) return false;
    if (is_prompt) count(r, event);
    if (r->line.is_terminal) cli_progress_show(&r->line, r->done, r->total);
    return true;
}
