/* progress.c: see progress.h. */
#define _POSIX_C_SOURCE 200809L /* isatty */

#include "progress.h"

#include "interrupt.h"

#include <wick/device.h>
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

wick_status cli_poll_all(const char *what, cli_poll_fn poll, void *job, wick_device *device,
                         wick_error *error) {
    cli_progress line = cli_progress_begin();
    wick_progress progress = {0};
    wick_status status = WICK_PENDING;
    while (status == WICK_PENDING && !cli_interrupted()) {
        const uint64_t before = progress.done;
        status = poll(job, &progress, error);
        if (status == WICK_PENDING && device != NULL && progress.done == before) wick_pause(device);
        if (progress.total > 0)
            cli_progress_show(&line, what, (double)progress.done / (double)progress.total);
    }
    cli_progress_clear(&line);
    return status;
}
