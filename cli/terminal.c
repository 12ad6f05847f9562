/* terminal.c: see terminal.h. The state below is also read by handlers of signals: a flag is set
 * before the terminal is changed, so that a signal in between takes back one change too many. */
#define _DEFAULT_SOURCE /* winsize */

#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before, quiet; /* valid while is_echo_off */
static volatile sig_atomic_t is_echo_off, is_styled, has_paste_marks;

static const char no_style[] = "\033[0m", paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";

bool cli_is_terminal(int fd) {
    const char *const name = getenv("TERM");
    return isatty(fd) == 1 && name != NULL && name[0] != '\0' && strcmp(name, "dumb") != 0;
}

bool cli_has_colors(int fd) {
    const char *const refusal = getenv("NO_COLOR");
    return cli_is_terminal(fd) && (refusal == NULL || refusal[0] == '\0');
}

size_t cli_columns(int fd) {
    enum { USUAL = 80 };
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL;
}

/* To change the terminal from the background would stop the program. */
static bool is_in_front(void) { return tcgetpgrp(STDOUT_FILENO) == getpgrp(); }

static void set_mode(const struct termios *mode) {
    if (is_in_front()) (void)tcsetattr(STDOUT_FILENO, TCSANOW, mode);
}

static void put(const char *code, size_t size) {
    const ssize_t written = write(STDOUT_FILENO, code, size);
    (void)written;
}

static void restore_at_exit(void) {
    static bool is_registered;
    if (!is_registered) is_registered = atexit(cli_terminal_restore) == 0;
}

void cli_echo_off(void) {
    if (is_echo_off || isatty(STDOUT_FILENO) != 1 || !is_in_front()) return;
    if (tcgetattr(STDOUT_FILENO, &before) != 0) return;
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    restore_at_exit();
    is_styled = cli_has_colors(STDOUT_FILENO);
    is_echo_off = 1;
    set_mode(&quiet);
}

void cli_echo_on(void) {
    if (!is_echo_off) return;
    set_mode(&before);
    is_echo_off = 0;
}

void cli_paste_marks(bool are_on) {
    if (are_on == (has_paste_marks != 0)) return;
    restore_at_exit();
    if (are_on) has_paste_marks = 1;
    put(are_on ? paste_on : paste_off, sizeof paste_on - 1);
    if (!are_on) has_paste_marks = 0;
}

void cli_terminal_restore(void) {
    const int error = errno;
    if (is_echo_off && is_styled) put(no_style, sizeof no_style - 1);
    if (is_echo_off) set_mode(&before);
    if (has_paste_marks) put(paste_off, sizeof paste_off - 1);
    errno = error;
}

void cli_terminal_resume(void) {
    const int error = errno;
    if (is_echo_off) set_mode(&quiet);
    if (has_paste_marks) put(paste_on, sizeof paste_on - 1);
    errno = error;
}
