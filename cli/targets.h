/* targets.h: files that a command writes are never files that it reads. */
#ifndef WICK_CLI_TARGETS_H
#define WICK_CLI_TARGETS_H

/* The command reads the file at path, which must stay valid. Returns an exit code. */
int cli_add_read_file(const char *path);
/* Whether path can be written, and is not a file that the command reads, or a part of its model.
 * option: the name of the option that path is from, NULL: of none. Returns an exit code; the reason
 * has been printed. */
int cli_check_target(const char *path, const char *option);

#endif
