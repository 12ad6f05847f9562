/* targets.c: see targets.h. */
#include "targets.h"

#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

static const char **reads; /* [n_reads]; lives as long as the program */
static size_t n_reads;

int cli_add_read_file(const char *path) {
    const char **const more = realloc(reads, (n_reads + 1) * sizeof *reads);
    if (more == NULL) return cli_error("out of memory for the names of files");
    reads = more;
    reads[n_reads++] = path;
    return CLI_OK;
}

int cli_check_target(const char *path, const char *option) {
    wick_error error = {0};
    if (wick_file_check_target(path, reads, n_reads, &error) == WICK_OK) return CLI_OK;
    char hint[64] = "choose another place to write to";
    if (option != NULL) snprintf(hint, sizeof hint, "choose another place with --%s", option);
    return cli_report(&error, hint);
}
