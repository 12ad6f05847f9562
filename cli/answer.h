/* answer.h: an answer as it streams in: thinking dimmed, tool calls shown as such; on a terminal
 * Markdown in colour and words wrapped. */
#ifndef WICK_CLI_ANSWER_H
#define WICK_CLI_ANSWER_H

#include "markdown.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_answer {
    bool is_terminal; /* standard output is one: lines are broken at its edge */
    bool has_colors;
    bool has_tools;     /* so an answer that begins with { is a call */
    const void *inside; /* the tags that are open; NULL: none */
    char *text;         /* all of it so far, for the caller to free */
    size_t size, capacity;
    size_t shown;     /* bytes of it that have been dealt with */
    char last_byte;   /* that was written */
    cli_markdown out; /* of a terminal */
} cli_answer;

/* For standard output as it is. */
cli_answer cli_answer_of(bool has_tools);

/* begins_thinking: the prompt has opened the thinking already. */
void cli_answer_begin(cli_answer *answer, bool begins_thinking);
/* False: out of memory. */
bool cli_answer_add(cli_answer *answer, const char *text, size_t size);
/* Shows what was held back. */
void cli_answer_end(cli_answer *answer);

#endif
