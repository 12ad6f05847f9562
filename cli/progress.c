/* progress.c: when progress is shown, see progress.h. */
#define _POSIX_C_SOURCE 200809L /* isatty */

#include "progress.h"

#include "interrupt.h"
#include "options.h"
#include "terminal.h"

#include <wick/device.h>
#include <wick/tools.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_shown; /* a line on the terminal: there is one terminal */

cli_progress cli_progress_begin(const char *what, const char *unit) {
    const double now = wick_time();
    return (cli_progress){.what = what,
                          .unit = unit,
                          .is_terminal = cli_is_terminal(STDERR_FILENO),
                          .start = now,
                          .shown = now};
}

void cli_progress_show(cli_progress *line, uint64_t done, uint64_t total) {
    static const double patience = 0.5, on_terminal = 0.1, elsewhere = 30; /* seconds */
    enum { PLAIN_COLUMNS = 80 };
    const double now = wick_time();
    if (cli_common.quiet) return;
    cli_progress_measure(line, done, now);
    if (now - line->start < patience) return;
    if (now - line->shown < (line->is_terminal ? on_terminal : elsewhere)) return;
    char text[sizeof line->last];
    const size_t columns = line->is_terminal ? cli_columns(STDERR_FILENO) : PLAIN_COLUMNS;
    cli_progress_text(line, done, total, columns, text, sizeof text);
    line->shown = now;
    if (strcmp(text, line->last) == 0 && (is_shown || !line->is_terminal)) return;
    memcpy(line->last, text, sizeof text);
    /* In one call: standard error has no buffer, and a line in pieces flickers. */
    fprintf(stderr, line->is_terminal ? "\r%s\033[K" : "%s\n", text);
    is_shown = line->is_terminal;
}

void cli_progress_clear(cli_progress *line) {
    cli_progress_hide();
    line->last[0] = '\0';
}

void cli_progress_hide(void) {
    if (is_shown) fputs("\r\033[K", stderr);
    is_shown = false;
}

wick_status cli_poll_all(const cli_job *job, wick_error *error) {
    cli_progress line = cli_progress_begin(job->what, job->unit);
    wick_progress progress = {0};
    wick_status status = WICK_PENDING;
    while (status == WICK_PENDING && !cli_interrupted()) {
        const uint64_t before = progress.done;
        status = job->poll(job->job, &progress, error);
        if (status == WICK_PENDING && job->device != NULL && progress.done == before)
            wick_pause(job->device);
        if (job->after != NULL) job->after(job->job, &progress, &line);
        if (status == WICK_PENDING) cli_progress_show(&line, progress.done, progress.total);
    }
    cli_progress_clear(&line);
    return status;
}
