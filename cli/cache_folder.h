/* cache_folder.h: where the command keeps what it can fetch or make again: $WICK_HOME, else
 * $XDG_CACHE_HOME/wick, else ~/.cache/wick. */
#ifndef WICK_CLI_CACHE_FOLDER_H
#define WICK_CLI_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The path of name in that folder, or of the folder itself for "". False: nothing says where it is,
 * or the path is too long; it is "" then. Makes nothing. */
bool cli_cache_path(const char *name, char *path, size_t size);
/* The same for what is to be kept: $XDG_STATE_HOME/wick, else ~/.local/state/wick. */
bool cli_state_path(const char *name, char *path, size_t size);
/* Makes a folder with those above it, for this user alone. False: errno says why not. */
bool cli_make_folders(const char *folder);

#endif
