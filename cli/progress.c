/* progress.c: see progress.h. */
#define _POSIX_C_SOURCE 200809L /* isatty */

#include "progress.h"

#include <wick/tools.h>

#include <stdio.h>
#include <unistd.h>

enum { LINE = 24 }; /* columns */

cli_progress cli_progress_begin(void) {
    return (cli_progress){.is_wanted = isatty(STDERR_FILENO) == 1, .start = wick_time()};
}

void cli_progress_show(cli_progress *line, const char *what, double share) {
    static const double patience = 0.5; /* seconds */
    if (!line->is_wanted || wick_time() - line->start < patience) return;
    line->is_shown = true;
    if (share >= 0)
        fprintf(stderr, "\r%s %3.0f %%", what, 100 * share);
    else
        fprintf(stderr, "\r%-*s", LINE, what);
}

void cli_progress_clear(cli_progress *line) {
    if (line->is_shown) fprintf(stderr, "\r%*s\r", LINE, "");
    line->is_shown = false;
}
