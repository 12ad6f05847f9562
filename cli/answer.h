/* answer.h: an answer as it streams in: thinking dimmed, tool calls shown as such; on a terminal
 * Markdown in colour and words wrapped. */
#ifndef WICK_CLI_ANSWER_H
#define WICK_CLI_ANSWER_H

#include "markdown.h"

#include <wick/chat.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_answer {
    bool is_terminal; /* standard output is one: lines are broken at its edge */
    bool has_colors;
    bool has_tools;     /* so an answer that begins with { is a call */
    wick_answer *parts; /* cuts it; NULL: out of memory */
    bool has_begun;
    char last_byte;   /* that was written */
    cli_markdown out; /* of a terminal */
} cli_answer;

/* For standard output as it is. */
cli_answer cli_answer_of(bool has_tools);

/* prompt: what is answered, which may have opened the thinking; NULL: nothing. */
void cli_answer_begin(cli_answer *answer, const char *prompt, size_t size);
/* False: out of memory. */
bool cli_answer_add(cli_answer *answer, const char *text, size_t size);
/* Shows what was held back. */
void cli_answer_end(cli_answer *answer);

#endif
