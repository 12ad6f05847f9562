/* history.h: what was typed, kept between runs: $XDG_STATE_HOME/wick/history, else below
 * ~/.local/state. Chats that run at the same time append to it in turn. */
#ifndef WICK_CLI_HISTORY_H
#define WICK_CLI_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

/* When the file grows beyond the first size, its oldest entries go, down to the second one. An
 * entry beyond the third is not kept. */
enum { CLI_HISTORY_MOST = 256 << 10, CLI_HISTORY_LEFT = 128 << 10, CLI_ENTRY_MOST = 32 << 10 };

/* False: there is no such folder. */
bool cli_history_path(char *path, size_t size);

typedef void (*cli_entry_fn)(void *user, const char *entry);

/* Each entry, the oldest first. A file that is not there holds none. */
void cli_history_read(const char *path, cli_entry_fn take, void *user);
/* entry may have several lines. The file and its folder are made, for their owner alone. False: it
 * could not be written (errno), which does no harm. */
bool cli_history_add(const char *path, const char *entry);

#endif
