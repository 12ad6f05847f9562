/* generate.h: steps a session and writes what it says. */
#ifndef WICK_CLI_GENERATE_H
#define WICK_CLI_GENERATE_H

#include "answer.h"

#include <wick/wick.h>

typedef struct cli_generation {
    wick_device *device;
    wick_session *session; /* its prompt has been appended */
    wick_chat *chat;       /* the session's, which has been asked; NULL: the session is alone */
    const wick_tokenizer *tokenizer;
    bool prints_ids;    /* instead of text */
    bool is_shown;      /* to a person, whose terminal the text must not steer */
    bool is_saved;      /* with the session: goes on where it cannot be written */
    const char *prompt; /* what the text continues, shown dimmed before it; NULL: nothing is */
    bool has_begun;     /* what stands before the text is written */
    wick_end_reason reason;
    char last_byte;    /* that was written */
    cli_wrap wrap;     /* where a text is shown, */
    cli_answer answer; /* and where that of a chat is */
} cli_generation;

/* Writes to standard output until the end, flushed token by token. Returns an exit code and
 * reports errors. */
int cli_generate(cli_generation *generation);

#endif
