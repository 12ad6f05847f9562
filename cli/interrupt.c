/* interrupt.c: signals. The flag is the one variable of the command that a handler may change. */
#define _POSIX_C_SOURCE 200809L

#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t was_interrupted;

static void note_interrupt(int number) {
    (void)number;
    was_interrupted = 1;
}

static void end_quietly(int number) {
    (void)number;
    _exit(0);
}

void cli_watch_interrupt(void) {
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool cli_interrupted(void) { return was_interrupted != 0; }

void cli_end_on_closed_pipe(void) {
    struct sigaction action = {.sa_handler = end_quietly};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
}
