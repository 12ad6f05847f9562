/* line.h: lines that a person types: with editing and a history where libedit was found and
 * standard input and output are a terminal (line/libedit.c), else as they come (line/plain.c). */
#ifndef WICK_CLI_LINE_H
#define WICK_CLI_LINE_H

#include "complete.h"

#include <stddef.h>

typedef struct cli_line_reader cli_line_reader;

typedef enum cli_line_result {
    CLI_LINE_READ,
    CLI_LINE_INTERRUPTED, /* Ctrl-C: what was typed is gone */
    CLI_LINE_END,         /* of the input */
    CLI_LINE_FAILED,      /* it cannot be read, which was reported */
} cli_line_result;

typedef struct cli_line_desc {
    const char *history;    /* path (copied), see history.h; NULL: of this run alone */
    const cli_typed *words; /* what Tab completes; must outlive the reader */
} cli_line_desc;

/* Until it is closed, keys that are typed while no line is read are not shown, and wait for the
 * next one (terminal.h). NULL: out of memory. Needs a watched Ctrl-C (interrupt.h). */
cli_line_reader *cli_line_open(const cli_line_desc *desc);
void cli_line_close(cli_line_reader *reader);
/* *line: without its end; pasted text may have ends of lines in it. Valid until the next call. */
cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line);

/* For both; at a terminal the prompt is shown. *text grows to *capacity; the caller frees it. */
cli_line_result cli_line_read_plain(const char *prompt, char **text, size_t *capacity);

#endif
