/* file_out.h: small files that are written at once. */
#ifndef WICK_CLI_FILE_OUT_H
#define WICK_CLI_FILE_OUT_H

#include <stddef.h>

/* Whole or not at all, as wick_bytes_save. Returns an exit code; a failure has been reported. */
int cli_write_file(const char *path, const char *text, size_t size);

#endif
