/* interrupt.h: Ctrl-C, requests to end, closed pipes, and files that end too soon. */
#ifndef WICK_CLI_INTERRUPT_H
#define WICK_CLI_INTERRUPT_H

#include <stdbool.h>

/* Called at the start of the program. A closed output pipe (`wick info ... | head`) then ends the
 * program quietly and as a success. Reaching the limit of file sizes is a write error. A mapped
 * file that is truncated ends the program with a message. */
void cli_set_signals(void);

/* For a command that does more than print: from here on a closed pipe is only noted. */
void cli_keep_closed_pipe(void);
bool cli_pipe_closed(void);

/* From here on the first Ctrl-C, SIGTERM or SIGHUP is only noted, unless they are ignored; the
 * second one of a kind ends the program as usual. */
void cli_watch_interrupt(void);
bool cli_interrupted(void);
/* The same, for what asks with a context, which it does not use. */
bool cli_stops(void *context);
/* 128 and the number of the signal, as shells report a program that it ended. */
int cli_interrupt_code(void);

/* For a program that goes on after Ctrl-C: from here on it is only noted, however often, and
 * cli_take_interrupt returns whether it was noted since the last call, and clears it. SIGTERM and
 * SIGHUP are as before. */
void cli_keep_interrupt(void);
bool cli_take_interrupt(void);
/* Waits until standard input can be read, or is at its end. False: a signal was noted before. */
bool cli_wait_for_input(void);
/* Whether SIGTERM and SIGHUP end the program at once: while it waits for a person, nothing else
 * would notice them before the next key. */
void cli_end_on_request(bool ends);

#endif
