/* manual.h: what is installed beside the command, made of the tables of options: the manual page
 * and what shells need to complete commands, options and their words. */
#ifndef WICK_CLI_MANUAL_H
#define WICK_CLI_MANUAL_H

#include "cli.h"

/* All of these write to standard output. */
void cli_print_manual(void); /* roff */

typedef enum cli_shell { CLI_NO_SHELL, CLI_BASH, CLI_ZSH, CLI_FISH } cli_shell;
void cli_print_completion(cli_shell shell);

#endif
