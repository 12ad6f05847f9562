/* json_out.h: writes JSON (RFC 8259), valid for any bytes in the strings. */
#ifndef WICK_CLI_JSON_OUT_H
#define WICK_CLI_JSON_OUT_H

#include <wick/json.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Begin with {.out = stdout}. Inside an object every value comes after its key. */
typedef struct cli_json {
    FILE *out;
    unsigned depth;
    bool needs_comma, after_key;
    bool is_line; /* everything on one line */
} cli_json;

void cli_json_open(cli_json *json, char bracket);  /* '{' or '[' */
void cli_json_close(cli_json *json, char bracket); /* '}' or ']' */
void cli_json_key(cli_json *json, const char *key);
/* Invalid UTF-8 becomes U+FFFD. */
void cli_json_key_bytes(cli_json *json, const char *key, size_t size);
void cli_json_string(cli_json *json, const char *text);
void cli_json_bytes(cli_json *json, const char *text, size_t size);
void cli_json_unsigned(cli_json *json, uint64_t value);
void cli_json_signed(cli_json *json, int64_t value);
/* digits: 9 give back a float, 17 a double. null for what JSON has no number for. */
void cli_json_number(cli_json *json, double value, int digits);
/* A key with its value; put_number with digits for a double. */
void cli_json_put_unsigned(cli_json *json, const char *key, uint64_t value);
void cli_json_put_number(cli_json *json, const char *key, double value);
void cli_json_put_time(cli_json *json, const char *key, time_t time); /* "2026-01-31T23:59:59Z" */
void cli_json_put_string(cli_json *json, const char *key, const char *text);
void cli_json_bool(cli_json *json, bool value);
void cli_json_null(cli_json *json);
/* What was read, with all that it holds. */
void cli_json_value(cli_json *json, const wick_json *value);

#endif
