/* text_out.h: bytes and sizes for people to read. */
#ifndef WICK_CLI_TEXT_OUT_H
#define WICK_CLI_TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 sequence that text begins with; 0: it is none. */
size_t cli_utf8_size(const char *text, size_t size);
/* Whether these n bytes, a sequence, are a control character: C0, delete or C1, which steer
 * terminals. */
bool cli_is_control(const char *text, size_t n);

/* Valid UTF-8 as it is; control characters, backslashes and other bytes as \n, \t, \\ or \xNN. */
void cli_put_escaped(FILE *out, const char *text, size_t size);
/* The same, terminated, and filled up with blanks to width bytes: a name in a column. */
void cli_put_padded(FILE *out, const char *text, size_t width);
/* The same, terminated, with backslashes as they are: for messages, which quote nothing. */
void cli_put_sentence(FILE *out, const char *text);

/* "1.5 GiB". */
typedef struct cli_size_text {
    char text[32];
} cli_size_text;
cli_size_text cli_bytes_text(uint64_t bytes);

#endif
