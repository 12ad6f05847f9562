/* line/plain.c: lines without a library: the terminal's own editing, no history. */
#define _POSIX_C_SOURCE 200809L

#include "line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

struct cli_line_reader {
    char *text;
    size_t capacity;
};

cli_line_reader *cli_line_open(void) { return calloc(1, sizeof(cli_line_reader)); }

void cli_line_close(cli_line_reader *reader) {
    if (reader == NULL) return;
    free(reader->text);
    free(reader);
}

cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line) {
    if (isatty(STDIN_FILENO) == 1) fputs(prompt, stderr);
    errno = 0;
    ssize_t size = getline(&reader->text, &reader->capacity, stdin);
    if (size < 0) {
        const int error = errno;
        clearerr(stdin);
        return error == EINTR ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
    }
    if (size > 0 && reader->text[size - 1] == '\n') reader->text[--size] = '\0';
    *line = reader->text;
    return CLI_LINE_READ;
}
