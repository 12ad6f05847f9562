/* plain_line.c: a line as it comes, edited by the terminal alone. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "interrupt.h"
#include "line.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static cli_line_result end_or_fail(int error, bool has_failed) {
    if (error == EINTR) return CLI_LINE_INTERRUPTED;
    if (!has_failed) return CLI_LINE_END;
    cli_error("cannot read standard input: %s", strerror(error));
    return CLI_LINE_FAILED;
}

static cli_line_result read_line(const char *prompt, char **text, size_t *capacity) {
    const bool is_typed = isatty(STDIN_FILENO) == 1;
    if (is_typed) {
        fputs(prompt, stderr);
        if (!cli_wait_for_input()) return CLI_LINE_INTERRUPTED;
    }
    errno = 0;
    const ssize_t size = getline(text, capacity, stdin);
    if (size < 0) {
        const cli_line_result result = end_or_fail(errno, feof(stdin) == 0);
        clearerr(stdin);
        return result;
    }
    const size_t length = strlen(*text);
    if (length != (size_t)size && !is_typed) {
        cli_error("a question contains a zero byte after %zu bytes of its line; remove it", length);
        return CLI_LINE_FAILED;
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
