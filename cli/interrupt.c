/* interrupt.c: signals. The flags are the only variables of the command that a handler may change.
 */
#define _XOPEN_SOURCE 700

#include "interrupt.h"

#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t noted; /* the request to end; 0: none yet */
static volatile sig_atomic_t is_pipe_kept, is_pipe_closed;

/* A request to end is more than Ctrl-C, which may be taken back. */
static void note(int number) {
    if (noted == 0 || noted == SIGINT) noted = number;
}

/* As the signal does by itself, with the terminal as it was found. */
static void end_by(int number) {
    cli_terminal_restore();
    signal(number, SIG_DFL);
    raise(number); /* ends the program when the handler returns, which its number waits for */
}

static void stop_by(int number) {
    const int error = errno;
    struct sigaction before, usual = {.sa_handler = SIG_DFL};
    sigset_t one;
    sigemptyset(&usual.sa_mask);
    sigemptyset(&one);
    sigaddset(&one, number);
    cli_terminal_restore();
    sigaction(number, &usual, &before);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* here it stops, and goes on */
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigaction(number, &before, NULL);
    cli_terminal_resume();
    errno = error;
}

static void note_signal(int number) {
    static const char advice[] = "\nstopping; press Ctrl-C again to quit at once\n";
    const int error = errno;
    struct termios terminal; /* asked for as isatty is not allowed in a handler */
    if (number == SIGINT && tcgetattr(STDERR_FILENO, &terminal) == 0) {
        const ssize_t written = write(STDERR_FILENO, advice, sizeof advice - 1);
        (void)written; /* a failure cannot be reported */
    }
    note(number);
    signal(number, end_by);
    errno = error;
}

static void meet_closed_pipe(int number) {
    (void)number;
    if (!is_pipe_kept) {
        cli_terminal_restore();
        _exit(0);
    }
    is_pipe_closed = 1;
}

/* Of a mapped file that was cut, nothing else can be said or done: the bytes are gone. The threads
 * that compute meet it at once: the first speaks and ends the process, the others wait for that.
 */
static void meet_lost_page(int number, siginfo_t *info, void *context) {
    static const char sentence[] =
        "wick: a file was cut while it was in use; --no-map reads it into memory first\n";
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        end_by(number); /* a crash as usual */
        return;
    }
    while (atomic_flag_test_and_set(&is_said)) pause();
    cli_terminal_restore();
    const ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)written;
    _exit(1);
}

/* Without SA_RESTART a read that waits for a person ends. A program that was stopped and goes on
 * must not notice: what it read or wrote is not cut off. */
static void handle(int number, void (*handler)(int)) {
    struct sigaction before, action = {.sa_handler = handler};
    if (number == SIGTSTP) action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    const bool is_known = sigaction(number, NULL, &before) == 0;
    if (is_known && before.sa_handler == SIG_IGN) return; /* nohup wants it so */
    sigaction(number, &action, NULL);
}

/* A sanitizer may have a handler for crashes already. */
static void handle_unless_handled(int number, void (*handler)(int)) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        handle(number, handler);
}

void cli_set_signals(void) {
    static const int crashes[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGFPE, SIGILL};
    struct sigaction pipe = {.sa_handler = meet_closed_pipe};
    struct sigaction page = {.sa_sigaction = meet_lost_page, .sa_flags = SA_SIGINFO};
    sigemptyset(&pipe.sa_mask);
    sigemptyset(&page.sa_mask);
    sigaction(SIGPIPE, &pipe, NULL);
    sigaction(SIGBUS, &page, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        handle_unless_handled(crashes[i], end_by);
    handle_unless_handled(SIGTSTP, stop_by);
    signal(SIGXFSZ, SIG_IGN); /* past the limit of file sizes write fails, and says so */
}

void cli_keep_closed_pipe(void) { is_pipe_kept = 1; }

bool cli_pipe_closed(void) { return is_pipe_closed != 0; }

void cli_watch_interrupt(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) handle(signals[i], note_signal);
}

void cli_keep_interrupt(void) { handle(SIGINT, note); }

void cli_end_on_request(bool ends) {
    handle(SIGTERM, ends ? end_by : note_signal);
    handle(SIGHUP, ends ? end_by : note_signal);
}

bool cli_take_interrupt(void) {
    const bool is_interrupt = noted == SIGINT;
    if (is_interrupt) noted = 0;
    return is_interrupt;
}

bool cli_interrupted(void) { return noted != 0; }

bool cli_stops(void *context) {
    (void)context;
    return cli_interrupted();
}

int cli_interrupt_code(void) { return 128 + noted; }

bool cli_wait_for_input(void) {
    sigset_t interrupt, before;
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    /* Let through by the wait alone: one that comes just before it is not lost. */
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    int n_ready = -1;
    errno = EINTR; /* also after a stop, which ends no wait of ours */
    while (n_ready < 0 && errno == EINTR && noted == 0)
        n_ready = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return n_ready > 0;
}
