/* chat_commands.c: the lines of `wick chat` that begin with '/'. */
#define _POSIX_C_SOURCE 200809L

#include "chat.h"
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each gets what stands behind its name; true: the last question shall be asked. */
typedef bool (*command_fn)(cli_chat *chat, const char *argument);

static bool do_reset(cli_chat *chat, const char *argument) {
    (void)argument;
    const wick_json *const first = wick_json_first(wick_chat_messages(chat->talk));
    const char *const role = wick_json_text(wick_json_get(first, "role"), NULL);
    wick_chat_cut(chat->talk, role != NULL && strcmp(role, "system") == 0);
    puts("A new conversation.");
    return false;
}

static bool do_system(cli_chat *chat, const char *argument) {
    if (wick_chat_set_system(chat->talk, argument) != WICK_OK) cli_report_chat(chat->talk);
    return false;
}

static bool do_save(cli_chat *chat, const char *argument) {
    if (argument[0] == '\0')
        cli_error("/save needs the name of a file");
    else if (cli_messages_save(chat->talk, argument) == CLI_OK)
        printf("%zu messages are in %s.\n", cli_messages_count(chat->talk), argument);
    return false;
}

static bool do_load(cli_chat *chat, const char *argument) {
    if (argument[0] == '\0')
        cli_error("/load needs the name of a file");
    else if (cli_messages_load(chat->talk, argument) == CLI_OK)
        printf("%zu messages.\n", cli_messages_count(chat->talk));
    return false;
}

/* Everything after the last question goes. */
static bool do_retry(cli_chat *chat, const char *argument) {
    (void)argument;
    const size_t n = cli_messages_up_to(chat->talk, "user");
    if (n == 0)
        puts("There is no question yet.");
    else
        wick_chat_cut(chat->talk, n);
    return n > 0;
}

static bool do_context(cli_chat *chat, const char *argument) {
    (void)argument;
    wick_session_stats stats;
    wick_session_get_stats(wick_chat_session(chat->talk), &stats);
    printf("%" PRIu32 " of %" PRIu32 " tokens, %zu messages; %" PRIu32
           " tokens of all prompts so far did not have to be read again.\n",
           stats.n_context, stats.context_length, cli_messages_count(chat->talk), stats.n_reused);
    return false;
}

static bool do_quit(cli_chat *chat, const char *argument) {
    (void)argument;
    chat->is_over = true;
    return false;
}

/* ---- /set ---- */

typedef struct setting {
    const char *name;
    size_t offset; /* in wick_session_desc */
    bool is_float;
    double most;
} setting;

static const setting settings[] = {
    {"temp", offsetof(wick_session_desc, sampler.temperature), true, 100},
    {"top-k", offsetof(wick_session_desc, sampler.top_k), false, UINT32_MAX},
    {"top-p", offsetof(wick_session_desc, sampler.top_p), true, 1},
    {"min-p", offsetof(wick_session_desc, sampler.min_p), true, 1},
    {"repeat-penalty", offsetof(wick_session_desc, sampler.repeat_penalty), true, 100},
    {"max-tokens", offsetof(wick_session_desc, max_tokens), false, UINT32_MAX},
};

enum { N_SETTINGS = sizeof settings / sizeof *settings };

static void list_settings(const cli_chat *chat) {
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const char *const field = (const char *)&chat->session + settings[i].offset;
        if (settings[i].is_float)
            printf("  %s %g\n", settings[i].name, (double)*(const float *)(const void *)field);
        else
            printf("  %s %" PRIu32 "\n", settings[i].name, *(const uint32_t *)(const void *)field);
    }
}

static bool do_set(cli_chat *chat, const char *argument) {
    const size_t size = strcspn(argument, " ");
    size_t i = 0;
    while (i < N_SETTINGS &&
           (strncmp(settings[i].name, argument, size) != 0 || settings[i].name[size] != '\0'))
        i++;
    char *end = NULL;
    const double value = strtod(argument + size, &end);
    const bool is_number = end != argument + size && *end == '\0' && value >= 0;
    if (i < N_SETTINGS && argument[size] != '\0' && (!is_number || value > settings[i].most)) {
        cli_error("/set %s:%s is not a number from 0 to %.0f", settings[i].name, argument + size,
                  settings[i].most);
        return false;
    }
    if (i == N_SETTINGS || !is_number) {
        puts("/set NAME VALUE, with one of");
        list_settings(chat);
        return false;
    }
    wick_error error = {0};
    const wick_session_desc before = chat->session;
    char *const field = (char *)&chat->session + settings[i].offset;
    if (settings[i].is_float)
        *(float *)(void *)field = (float)value;
    else
        *(uint32_t *)(void *)field = (uint32_t)value;
    if (wick_chat_configure(chat->talk, &chat->session, &error) != WICK_OK) {
        chat->session = before;
        cli_report(&error, NULL);
    }
    return false;
}

/* ---- All of them ---- */

static bool do_help(cli_chat *chat, const char *argument);

static const struct {
    const char *name, *argument, *help;
    command_fn run;
} commands[] = {
    {"help", "", "this list", do_help},
    {"reset", "", "forget the conversation, but for the system message", do_reset},
    {"system", "TEXT", "set the system message; without a text, take it away", do_system},
    {"save", "FILE", "write the conversation as JSON", do_save},
    {"load", "FILE", "go on with a conversation that /save wrote", do_load},
    {"retry", "", "ask the last question again", do_retry},
    {"set", "NAME VALUE", "how tokens are chosen; without a name, what there is", do_set},
    {"context", "", "how full the context is", do_context},
    {"quit", "", "end, as the end of input does", do_quit},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static bool do_help(cli_chat *chat, const char *argument) {
    (void)chat;
    (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const int width = 20 - (int)strlen(commands[i].name);
        printf("  /%s %-*s %s\n", commands[i].name, width, commands[i].argument, commands[i].help);
    }
    puts("Ctrl-C stops an answer. A line that ends with \\ goes on in the next one.");
    return false;
}

bool cli_chat_command(cli_chat *chat, const char *line) {
    const char *const name = line + 1;
    const size_t size = strcspn(name, " ");
    const char *const argument = name + size + strspn(name + size, " ");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strlen(commands[i].name) == size && memcmp(commands[i].name, name, size) == 0)
            return commands[i].run(chat, argument);
    }
    cli_error("there is no command '/%.*s'; /help lists them", (int)size, name);
    return false;
}
