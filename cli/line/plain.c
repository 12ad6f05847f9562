/* line/plain.c: lines without a library: the terminal's own editing, no history. */
#include "line.h"

#include "terminal.h"

#include <stdlib.h>

struct cli_line_reader {
    char *text;
    size_t capacity;
};

cli_line_reader *cli_line_open(const cli_line_desc *desc) {
    (void)desc; /* is for editing */
    return calloc(1, sizeof(cli_line_reader));
}

void cli_line_close(cli_line_reader *reader) {
    if (reader == NULL) return;
    cli_echo_on();
    free(reader->text);
    free(reader);
}

cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line) {
    const cli_line_result result = cli_line_read_plain(prompt, &reader->text, &reader->capacity);
    *line = reader->text;
    return result;
}
