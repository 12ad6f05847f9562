/* interrupt.c: signals. The flag is the one variable of the command that a handler may change. */
#define _POSIX_C_SOURCE 200809L

#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t first_signal; /* 0: none yet */

static void note_signal(int number) {
    static const char advice[] = "\nstopping; press Ctrl-C again to quit at once\n";
    const int error = errno;
    struct termios terminal; /* asked for as isatty is not allowed in a handler */
    if (number == SIGINT && tcgetattr(STDERR_FILENO, &terminal) == 0) {
        const ssize_t written = write(STDERR_FILENO, advice, sizeof advice - 1);
        (void)written; /* there is nobody to tell */
    }
    if (first_signal == 0) first_signal = number;
    errno = error;
}

static void end_quietly(int number) {
    (void)number;
    _exit(0);
}

/* Without SA_RESTART: a read that waits for a person ends. */
static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    const bool is_known = sigaction(number, NULL, &before) == 0;
    if (is_known && before.sa_handler == SIG_IGN) return; /* nohup wants it so */
    sigaction(number, &action, NULL);
}

void cli_watch_interrupt(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        handle(signals[i], note_signal, (int)SA_RESETHAND);
    signal(SIGXFSZ, SIG_IGN); /* past the limit of file sizes write fails, and says so */
}

static void note_quietly(int number) { first_signal = number; }

void cli_keep_interrupt(void) { handle(SIGINT, note_quietly, 0); }

void cli_end_on_request(bool ends) {
    handle(SIGTERM, ends ? SIG_DFL : note_signal, ends ? 0 : (int)SA_RESETHAND);
    handle(SIGHUP, ends ? SIG_DFL : note_signal, ends ? 0 : (int)SA_RESETHAND);
}

bool cli_take_interrupt(void) {
    const bool is_noted = first_signal == SIGINT;
    if (is_noted) first_signal = 0;
    return is_noted;
}

bool cli_interrupted(void) { return first_signal != 0; }

int cli_interrupt_code(void) { return 128 + first_signal; }

void cli_end_on_closed_pipe(void) {
    struct sigaction action = {.sa_handler = end_quietly};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
}
