/* terminal.h: whether a stream is a terminal, what it can show, and changes to its state that are
 * taken back on every way out of the program. */
#ifndef WICK_CLI_TERMINAL_H
#define WICK_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* A terminal that understands escape sequences; TERM=dumb does not. fd: a file descriptor. */
bool cli_is_terminal(int fd);
/* The same, and NO_COLOR (no-color.org) is not set. */
bool cli_has_colors(int fd);
/* Its width at this moment, 80 where it is not known. */
size_t cli_columns(int fd);

/* From cli_echo_off on, typed keys are neither shown nor held back until the end of the line: they
 * wait for whoever reads next. Signals of keys, such as Ctrl-C, work as before. Does nothing where
 * standard output is not a terminal, or belongs to another job. */
void cli_echo_off(void);
void cli_echo_on(void);

/* Pasted text arrives between ESC [ 200 ~ and ESC [ 201 ~. */
void cli_paste_marks(bool are_on);

/* Takes the changes above back. May be called by a handler of signals. */
void cli_terminal_restore(void);
/* The same again after the program was stopped and goes on. */
void cli_terminal_resume(void);

#endif
