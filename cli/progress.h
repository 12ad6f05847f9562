/* progress.h: how far a job is: on a terminal a line of standard error that is rewritten, anywhere
 * else a plain line now and then. */
#ifndef WICK_CLI_PROGRESS_H
#define WICK_CLI_PROGRESS_H

#include <wick/model.h>

typedef struct cli_progress {
    const char *what; /* "reading" */
    const char *unit; /* "tokens"; NULL: bytes */
    char note[64];    /* shown after the figures; "": nothing */
    bool is_terminal;
    double start, shown, marked; /* seconds: of the job, of the last line, of done_marked */
    uint64_t done_first, done_marked;
    double part_seconds; /* that the last measured part took */
    double rate;         /* units per second; 0: not known */
    char last[256];      /* the text of the last line that was shown */
} cli_progress;

cli_progress cli_progress_begin(const char *what, const char *unit);
/* Nothing is shown in the first half second. total 0 or UINT64_MAX: not known. */
void cli_progress_show(cli_progress *line, uint64_t done, uint64_t total);
void cli_progress_clear(cli_progress *line);
/* Erases the line on the terminal, if there is one, before other output; the next cli_progress_show
 * writes it again. */
void cli_progress_hide(void);

/* progress_text.c: what depends neither on a terminal nor on the clock. */

/* A measurement of the rate at the time now, smoothed over some seconds. */
void cli_progress_measure(cli_progress *line, uint64_t done, double now);
/* "reading  42 %  1.2 of 2.9 GiB, 350.0 MiB/s, 0:05 left" in text[size], at most this many
 * columns wide; a bar is added where there is room. */
void cli_progress_text(const cli_progress *line, uint64_t done, uint64_t total, size_t columns,
                       char *text, size_t size);

/* ---- Jobs ---- */

typedef wick_status (*cli_poll_fn)(void *job, wick_progress *progress, wick_error *error);
/* A slice of a job has been done; line->note may be set. */
typedef void (*cli_slice_fn)(void *job, const wick_progress *progress, cli_progress *line);

typedef struct cli_job {
    const char *what, *unit; /* as in cli_progress */
    cli_poll_fn poll;
    cli_slice_fn after; /* NULL: nothing is to be done */
    void *job;
    wick_device *device; /* to wait for when a poll makes no progress; NULL: each poll does work */
} cli_job;

/* Polls a job to its end, or up to the first signal (WICK_PENDING), and shows how far it is. */
wick_status cli_poll_all(const cli_job *job, wick_error *error);

#endif
