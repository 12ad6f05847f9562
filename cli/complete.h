/* complete.h: what may follow what has been typed: names of commands, their words, paths. */
#ifndef WICK_CLI_COMPLETE_H
#define WICK_CLI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

/* "/NAME ARGUMENT" */
typedef struct cli_typed {
    const char *name;         /* NULL: the end of a list */
    bool takes_path;          /* the argument is one */
    const char *const *words; /* what the argument begins with, NULL at the end; NULL: anything */
} cli_typed;

enum { CLI_MAX_CANDIDATES = 256 };

typedef struct cli_completion {
    char *items[CLI_MAX_CANDIDATES]; /* of the word before the cursor: what it may become */
    size_t n, n_left_out;            /* candidates: in items, and beyond their number */
    size_t typed;                    /* bytes of each that are there already */
    size_t common;                   /* bytes that all candidates begin with: whole characters */
    const char *after;               /* follows a single one: " ", or "" */
} cli_completion;

/* line: up to the cursor. Frees nothing: completion is for cli_completion_free. */
void cli_complete(const cli_typed *words, const char *line, cli_completion *completion);
void cli_completion_free(cli_completion *completion);

#endif
