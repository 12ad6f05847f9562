/* file_out.c: see file_out.h. */
#include "file_out.h"

#include "cli.h"
#include "targets.h"

#include <wick/tools.h>

int cli_write_file(const char *path, const char *text, size_t size) {
    wick_error error = {0};
    if (cli_check_target(path, NULL) != CLI_OK) return CLI_FAILURE;
    return wick_bytes_save(path, text, size, &error) == WICK_OK ? CLI_OK : cli_report(&error, NULL);
}
