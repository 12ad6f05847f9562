/* input.h: texts and token ids that a command is given. */
#ifndef WICK_CLI_INPUT_H
#define WICK_CLI_INPUT_H

#include <wick/text.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, with a zero byte after them that size does not count; freed with cli_input_free. */
typedef struct cli_input {
    char *text;
    size_t size;
} cli_input;

/* Reads all of a file, or of standard input for NULL. Returns an exit code and reports errors. */
int cli_read_file(const char *path, cli_input *input);
/* A copy of a text from the command line. */
int cli_read_text(const char *text, cli_input *input);
/* *text: that of a file without zero bytes, which input owns; as it was where path is NULL. */
int cli_read_given(const char *path, cli_input *input, const char **text);
/* The same of a chat template, which must not be blank. */
int cli_read_template(const char *path, cli_input *input, const char **text);
void cli_input_free(cli_input *input);

/* Nothing but white space, in UTF-8: such a text is not a question. */
bool cli_is_blank(const char *text);

/* Whole numbers with blanks or commas between them; *ids is freed by the caller. Returns an exit
 * code and reports errors. */
int cli_parse_ids(const cli_input *input, uint32_t **ids, size_t *n);

/* The tokens of a file, or of standard input for NULL, with the begin token where the model wants
 * one. *n must be 0 and *ids NULL before; the caller frees *ids, also after a failure. Reports
 * errors. */
int cli_read_tokens(const wick_tokenizer *tokenizer, const char *path, uint32_t **ids, size_t *n);

#endif
