/* pull.h: models of a server for commands that need one at once. */
#ifndef WICK_CLI_PULL_H
#define WICK_CLI_PULL_H

#include "store.h"

/* As `wick pull SOURCE`, but *path has what that prints. Returns an exit code. */
int cli_pull_model(const char *source, cli_path *path);

#endif
