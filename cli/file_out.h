/* file_out.h: small files that are written at once. */
#ifndef WICK_CLI_FILE_OUT_H
#define WICK_CLI_FILE_OUT_H

#include <stddef.h>

/* Whole or not at all: under another name first, so that what is there stays where the disk is
 * full. What is no regular file (/dev/stdout) is written as it is. Returns an exit code; a failure
 * has been told. */
int cli_write_file(const char *path, const char *text, size_t size);

#endif
