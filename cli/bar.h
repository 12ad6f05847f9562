/* bar.h: a share as a bar of block characters. */
#ifndef WICK_CLI_BAR_H
#define WICK_CLI_BAR_H

#include <stddef.h>

enum { CLI_BAR_COLUMNS = 20, CLI_BAR_BYTES = 3 * CLI_BAR_COLUMNS + 1 };

/* "█████▌              " in UTF-8: n columns (CLI_BAR_COLUMNS at most), filled up with blanks.
 * share: from 0 to 1; others are cut, what is not a number is empty. */
typedef struct cli_bar {
    char text[CLI_BAR_BYTES];
} cli_bar;
cli_bar cli_bar_of(double share, size_t n);

#endif
