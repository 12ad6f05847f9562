/* chat.h: what the files of `wick chat` share. */
#ifndef WICK_CLI_CHAT_H
#define WICK_CLI_CHAT_H

#include "engine.h"
#include "messages.h"
#include "sampling.h"

typedef struct cli_chat {
    cli_engine engine;
    wick_session *session;
    wick_session_desc desc; /* /set changes it: the session is opened again */
    wick_template *compiled;
    wick_json_document *tools; /* NULL: none */
    bool no_thinking;
    cli_messages messages;
    bool is_over; /* /quit */
} cli_chat;

/* chat_turn.c: asks what is new in the messages and shows the answer, which becomes one. Returns an
 * exit code; CLI_FAILURE has been told and leaves the messages as they are. */
int cli_chat_answer(cli_chat *chat);
/* Opens a session by chat->desc in place of the one that is. */
int cli_chat_open_session(cli_chat *chat);

/* chat_commands.c: a line that begins with '/'. True: the last question shall be asked. */
bool cli_chat_command(cli_chat *chat, const char *line);

#endif
