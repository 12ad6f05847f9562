/* streams.c: see streams.h. */
#define _POSIX_C_SOURCE 200809L

#include "streams.h"

#include <fcntl.h>
#include <unistd.h>

void cli_fill_streams(void) {
    static const int modes[] = {
        [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY};
    /* The lowest free number is given out, and those below are taken. */
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) == -1) (void)open("/dev/null", modes[i]);
}
