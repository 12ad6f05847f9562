/* progress.h: a line on standard error that rewrites itself, for people who wait. */
#ifndef WICK_CLI_PROGRESS_H
#define WICK_CLI_PROGRESS_H

#include <wick/model.h>

typedef struct cli_progress {
    bool is_wanted, is_shown;
    double start; /* seconds */
} cli_progress;

/* Where standard error is no terminal nothing will be shown. */
cli_progress cli_progress_begin(void);
/* "loading  42 %", once some time has passed; share is from 0 to 1, or negative: there is none. */
void cli_progress_show(cli_progress *line, const char *what, double share);
void cli_progress_clear(cli_progress *line);

typedef wick_status (*cli_poll_fn)(void *job, wick_progress *progress, wick_error *error);

/* Polls a job to its end, or up to the first signal (WICK_PENDING), and shows how far it is.
 * device: is waited for where a poll brings nothing forward; NULL: polls work themselves. */
wick_status cli_poll_all(const char *what, cli_poll_fn poll, void *job, wick_device *device,
                         wick_error *error);

#endif
