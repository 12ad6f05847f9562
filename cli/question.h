/* question.h: what a person types for a conversation: one line, or several. */
#ifndef WICK_CLI_QUESTION_H
#define WICK_CLI_QUESTION_H

#include "line.h"

#include <stdbool.h>

typedef struct cli_question {
    char *text;      /* for the caller to free; "": nothing but blanks */
    bool is_command; /* it begins with '/', is one line, not quoted; blanks at its end are gone */
} cli_question;

/* A line that ends with \ goes on in the next one; a text between lines of """ has any number of
 * them, and may begin and end in the lines of these marks. */
cli_line_result cli_question_read(cli_line_reader *reader, cli_question *question);

#endif
