/* chat.h: what the files of `wick chat` share. */
#ifndef WICK_CLI_CHAT_H
#define WICK_CLI_CHAT_H

#include "complete.h"
#include "engine.h"
#include "sampling.h"

typedef struct cli_chat {
    cli_engine engine;
    wick_chat *talk;
    wick_session_desc session; /* /set changes it */
    bool has_tools;
    bool is_over; /* /quit */
} cli_chat;

/* chat_turn.c: asks question, or NULL: the messages as they are, and shows the answer. Returns an
 * exit code; after CLI_FAILURE, which has been reported, the conversation is as before. */
int cli_chat_ask(cli_chat *chat, const char *question);
/* The last call with the conversation failed. Returns CLI_FAILURE. */
int cli_report_chat(const wick_chat *talk);

/* chat_turn.c: for templates that tell the date. */
wick_time_of_day cli_local_time(void);

/* chat_commands.c: a line that begins with '/'. True: the last question shall be asked. */
bool cli_chat_command(cli_chat *chat, const char *line);
/* Their names, for completion. */
const cli_typed *cli_chat_words(void);

/* messages.c: the messages of a file that /save wrote replace those of the conversation. Returns an
 * exit code; a failure has been reported. */
int cli_messages_load(wick_chat *talk, const char *path);
int cli_messages_save(const wick_chat *talk, const char *path);
size_t cli_messages_count(const wick_chat *talk);
/* How many there are up to the last one of this role, with it; 0: none. */
size_t cli_messages_up_to(const wick_chat *talk, const char *role);

#endif
