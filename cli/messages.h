/* messages.h: the messages of a conversation, and their form as JSON. */
#ifndef WICK_CLI_MESSAGES_H
#define WICK_CLI_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_message {
    char *role, *content;
    size_t size; /* of content */
} cli_message;

typedef struct cli_messages {
    cli_message *items;
    size_t n;
} cli_messages;

/* Copies. False: out of memory. */
bool cli_messages_add(cli_messages *messages, const char *role, const char *content, size_t size);
/* The first n stay. */
void cli_messages_cut(cli_messages *messages, size_t n);
/* Sets the system message, which comes first; NULL or "": takes it away. False: out of memory. */
bool cli_messages_set_system(cli_messages *messages, const char *content);

/* An array of {"role", "content"}, terminated, for the caller to free. NULL: out of memory. */
char *cli_messages_json(const cli_messages *messages, size_t *size);
/* What cli_messages_json writes; *messages is replaced where that succeeds. Returns an exit code; a
 * failure has been told. */
int cli_messages_load(cli_messages *messages, const char *path);
int cli_messages_save(const cli_messages *messages, const char *path);

#endif
