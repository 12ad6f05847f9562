/* reading.h: how much of a prompt has been read, shown on a terminal until the text begins. */
#ifndef WICK_CLI_READING_H
#define WICK_CLI_READING_H

#include "progress.h"

#include <wick/session.h>

typedef struct cli_reading {
    cli_progress line;
    const wick_session *session;
    /* The session held n_held tokens before the prompt and had found n_reused in the cache. */
    uint32_t n_held, n_reused;
    uint64_t done, total; /* tokens of the prompt that are, or were, to be computed */
    bool is_over;
} cli_reading;

/* Once the prompt has been appended; before: the session's figures before that, zeros of a session
 * that was opened for this prompt. */
cli_reading cli_reading_begin(const wick_session *session, const wick_session_stats *before);
/* The event of a step. False: the prompt has been read; cli_progress_hide removes the line. */
bool cli_reading_take(cli_reading *reading, const wick_event *event);

#endif
