/* table.h: tables of Markdown (GitHub's, with a bar at the beginning of each row) in columns. */
#ifndef WICK_CLI_TABLE_H
#define WICK_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* How a table is written: styles are those of wrap.h. */
typedef struct cli_table_out {
    void *user;
    void (*put)(void *user, const char *text, size_t size, unsigned style); /* as it is */
    void (*put_cell)(void *user, const char *text, size_t size, unsigned style);
    size_t (*columns)(const char *text, size_t size); /* that a cell takes */
} cli_table_out;

/* Whether the second row, as far as it has come, has nothing but dashes and colons in its cells. */
bool cli_is_table(const char *text, size_t size);
/* text: rows, the last one with or without an end of line. False, with nothing written: it is not a
 * table, or wider than most columns (0: any number). */
bool cli_table_put(const char *text, size_t size, size_t most, const cli_table_out *out);

#endif
