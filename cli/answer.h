/* answer.h: an answer as it streams in: thinking dimmed, tool calls shown as such. */
#ifndef WICK_CLI_ANSWER_H
#define WICK_CLI_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_answer {
    bool has_colors;    /* standard output is a terminal */
    bool has_tools;     /* so an answer that begins with { is a call */
    const void *inside; /* the tags that are open; NULL: none */
    char *text;         /* all of it so far, for the caller to free */
    size_t size, capacity;
    size_t shown;   /* bytes of it that have been dealt with */
    char last_byte; /* that was written */
} cli_answer;

/* begins_thinking: the prompt has opened the thinking already. */
void cli_answer_begin(cli_answer *answer, bool begins_thinking);
/* False: out of memory. */
bool cli_answer_add(cli_answer *answer, const char *text, size_t size);
/* Shows what was held back. */
void cli_answer_end(cli_answer *answer);

#endif
