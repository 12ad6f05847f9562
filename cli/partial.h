/* partial.h: FILE.gguf.part, what has come of a file: locked against a second fetch, hashed as it
 * grows, renamed when it is whole. */
#ifndef WICK_CLI_PARTIAL_H
#define WICK_CLI_PARTIAL_H

#include "sha256.h"
#include "store.h"

typedef struct cli_partial {
    int descriptor;
    cli_path path;
    size_t there; /* bytes of path up to the end of the deepest folder that was there before */
    uint64_t size;
    cli_sha256 sha; /* of size bytes, once cli_partial_keep or _restart was called */
} cli_partial;

/* All functions return an exit code and report errors. */

/* Makes the folders above path and opens or makes path.part. */
int cli_partial_open(const char *path, cli_partial *partial);
/* is_kept false: removes the file, and the folders that were made for it and hold nothing. */
void cli_partial_close(cli_partial *partial, bool is_kept);

/* Whether the file that is locked still has the name: another fetch may have renamed it, or
 * somebody removed it. */
bool cli_partial_is_there(const cli_partial *partial);

/* Continue after the bytes that are there, or from the beginning. */
int cli_partial_keep(cli_partial *partial);
int cli_partial_restart(cli_partial *partial);
int cli_partial_append(cli_partial *partial, const void *bytes, size_t size);
/* Whether the disk has room for this number of bytes, and a reserve for all else. */
int cli_partial_check_space(const cli_partial *partial, uint64_t bytes);
/* Gives the file the name that it was opened for; it still has to be closed. */
int cli_partial_rename(cli_partial *partial, const char *path);

#endif
