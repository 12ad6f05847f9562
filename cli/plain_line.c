/* plain_line.c: a line as it comes, edited by the terminal alone. */
#define _POSIX_C_SOURCE 200809L

#include "interrupt.h"
#include "line.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static cli_line_result read_line(const char *prompt, char **text, size_t *capacity) {
    if (isatty(STDIN_FILENO) == 1) {
        fputs(prompt, stderr);
        if (!cli_wait_for_input()) return CLI_LINE_INTERRUPTED;
    }
    errno = 0;
    if (getline(text, capacity, stdin) < 0) {
        const int error = errno;
        clearerr(stdin);
        return error == EINTR ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
    }
    (*text)[strcspn(*text, "\n")] = '\0';
    return CLI_LINE_READ;
}

cli_line_result cli_line_read_plain(const char *prompt, char **text, size_t *capacity) {
    cli_echo_on();
    const cli_line_result result = read_line(prompt, text, capacity);
    cli_echo_off();
    return result;
}
