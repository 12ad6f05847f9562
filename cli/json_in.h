/* json_in.h: reads JSON (RFC 8259) that a server sent, in place: the command sees the library's
 * public headers alone, and those have no JSON. */
#ifndef WICK_CLI_JSON_IN_H
#define WICK_CLI_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value where it stands in the text that was parsed; at NULL: there is none. Functions that get
 * none, or a value of another kind, return none, false or 0. */
typedef struct cli_json_value {
    const char *at, *end; /* end of the whole text */
} cli_json_value;

/* Checks the whole text. False: it is no JSON, or nested deeper than 64. */
bool cli_json_parse(const char *text, size_t size, cli_json_value *value);

/* The value of the first member with this key; keys with escapes are found by none. */
cli_json_value cli_json_member(cli_json_value object, const char *key);
/* The first item of an array, and the one behind an item. */
cli_json_value cli_json_first(cli_json_value array);
cli_json_value cli_json_next(cli_json_value item);

/* A string, decoded and terminated. False: it is none, has a zero byte or does not fit. */
bool cli_json_get_text(cli_json_value value, char *text, size_t size);
/* A whole number from 0 on. */
bool cli_json_get_whole(cli_json_value value, uint64_t *number);

#endif
