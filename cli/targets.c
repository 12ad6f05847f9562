/* targets.c: see targets.h. */
#include "targets.h"

#include "cli.h"

#include <assert.h>
#include <stdio.h>

enum { MAX_READS = 16 }; /* options of a command that are files to read */
static const char *reads[MAX_READS];
static size_t n_reads;

void cli_add_read_file(const char *path) {
    assert(n_reads < MAX_READS);
    reads[n_reads++] = path;
}

int cli_check_target(const char *path, const char *option) {
    wick_error error = {0};
    if (wick_file_check_target(path, reads, n_reads, &error) == WICK_OK) return CLI_OK;
    char hint[64] = "choose another place to write to";
    if (option != NULL) snprintf(hint, sizeof hint, "choose another place with --%s", option);
    return cli_report(&error, hint);
}
