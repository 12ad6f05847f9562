/* chat_commands.c: the lines of `wick chat` that begin with '/'. */
#define _POSIX_C_SOURCE 200809L

#include "chat.h"
#include "cli.h"
#include "terminal.h"
#include "wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* argument: the text after the command's name. Returns true if the last question is to be asked. */
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
    if (wick_chat_set_system(chat->talk, argument) != WICK_OK)
        cli_report_chat(chat->talk);
    else
        puts(argument[0] != '\0' ? "System message set." : "System message removed.");
    return false;
}

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static bool do_save(cli_chat *chat, const char *argument) {
    const size_t n = cli_messages_count(chat->talk);
    if (argument[0] == '\0')
        cli_error("/save needs the name of a file");
    else if (cli_messages_save(chat->talk, argument) == CLI_OK)
        printf("Wrote %zu message%s to %s.\n", n, plural(n), argument);
    return false;
}

static bool do_load(cli_chat *chat, const char *argument) {
    if (argument[0] == '\0')
        cli_error("/load needs the name of a file");
    else if (cli_messages_load(chat->talk, argument) == CLI_OK) {
        const size_t n = cli_messages_count(chat->talk);
        printf("%zu message%s.\n", n, plural(n));
    }
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
    const size_t n = cli_messages_count(chat->talk);
    printf("%" PRIu32 " of %" PRIu32 " tokens in the cache, %zu message%s; %" PRIu32
           " prompt tokens were reused from the cache so far.\n",
           stats.n_context, stats.context_length, n, plural(n), stats.n_reused);
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

static void print_setting(const cli_chat *chat, const setting *of) {
    const char *const field = (const char *)&chat->session + of->offset;
    if (of->is_float)
        printf("  %s %g\n", of->name, (double)*(const float *)(const void *)field);
    else
        printf("  %s %" PRIu32 "\n", of->name, *(const uint32_t *)(const void *)field);
}

static void list_settings(const cli_chat *chat) {
    for (size_t i = 0; i < N_SETTINGS; i++) print_setting(chat, &settings[i]);
}

static bool do_set(cli_chat *chat, const char *argument) {
    if (strcmp(argument, "max-tokens -1") == 0) argument = "max-tokens 0"; /* as -n has it */
    const size_t size = strcspn(argument, " ");
    size_t i = 0;
    while (i < N_SETTINGS &&
           (strncmp(settings[i].name, argument, size) != 0 || settings[i].name[size] != '\0'))
        i++;
    char *end = NULL;
    const double value = strtod(argument + size, &end);
    const bool is_number = end != argument + size && *end == '\0' && value >= 0;
    const bool is_known = i < N_SETTINGS;
    const bool is_odd = is_known && is_number && !settings[i].is_float && value != floor(value);
    if (is_known && argument[size] != '\0' && (!is_number || is_odd || value > settings[i].most)) {
        cli_error("/set %s:%s is not a %snumber from 0 to %.0f", settings[i].name, argument + size,
                  settings[i].is_float ? "" : "whole ", settings[i].most);
        return false;
    }
    if (i == N_SETTINGS && size > 0)
        cli_error("/set: there is no setting '%.*s'", (int)size, argument);
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
    } else {
        print_setting(chat, &settings[i]);
    }
    return false;
}

/* ---- All of them ---- */

static bool do_help(cli_chat *chat, const char *argument);

static const struct {
    const char *names[3]; /* the first one is completed; NULL: no other */
    const char *argument, *help;
    command_fn run;
    bool takes_path;
} commands[] = {
    {{"help", "?"}, "", "this list", do_help, false},
    {{"reset"}, "", "forget the conversation, except for the system message", do_reset, false},
    {{"system"}, "TEXT", "set the system message; without a text, remove it", do_system, false},
    {{"save"}, "FILE", "write the conversation as JSON", do_save, true},
    {{"load"}, "FILE", "continue a conversation that /save wrote", do_load, true},
    {{"retry"}, "", "ask the last question again", do_retry, false},
    {{"set"},
     "NAME VALUE",
     "change how tokens are chosen; without a name, list the settings",
     do_set,
     false},
    {{"context"}, "", "how full the context is", do_context, false},
    {{"exit", "quit", "bye"}, "", "end, as Ctrl-D does", do_quit, false},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands, N_NAMES = 3 };

/* A paragraph whose lines after the first one begin at a column. */
static void put_paragraph(const char *text, size_t column) {
    cli_wrap wrap = {.out = stdout};
    if (cli_is_terminal(STDOUT_FILENO)) wrap.columns = cli_columns(STDOUT_FILENO);
    snprintf(wrap.indent, sizeof wrap.indent, "%*s", (int)column, "");
    cli_wrap_put(&wrap, text, strlen(text));
    cli_wrap_put(&wrap, "\n", 1);
}

static bool do_help(cli_chat *chat, const char *argument) {
    enum { MARGIN = 22 };
    (void)chat;
    (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char text[160] = " ";
        size_t n = 1;
        for (size_t k = 0; k < N_NAMES && commands[i].names[k] != NULL; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, " /%s", commands[i].names[k]);
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", commands[i].argument);
        snprintf(text + n, sizeof text - n, "%*s %s", n < MARGIN ? (int)(MARGIN - n) : 0, "",
                 commands[i].help);
        put_paragraph(text, MARGIN + 1);
    }
    put_paragraph(
        "A line that ends with \\ continues in the next one, and so does a text from \"\"\" to "
        "\"\"\".",
        0);
    put_paragraph("Ctrl-C stops an answer; Tab completes commands and paths.", 0);
    return false;
}

const cli_typed *cli_chat_words(void) {
    static const char *names[N_SETTINGS + 1];
    static cli_typed words[N_COMMANDS + 1];
    for (size_t i = 0; i < N_SETTINGS; i++) names[i] = settings[i].name;
    for (size_t i = 0; i < N_COMMANDS; i++)
        words[i] = (cli_typed){.name = commands[i].names[0],
                               .takes_path = commands[i].takes_path,
                               .words = commands[i].run == do_set ? names : NULL};
    return words;
}

bool cli_chat_command(cli_chat *chat, const char *line) {
    const char *all[N_COMMANDS * N_NAMES + 1] = {NULL};
    char name[32];
    const size_t size = strcspn(line + 1, " "), n = size < sizeof name ? size : 0;
    const char *const argument = line + 1 + size + strspn(line + 1 + size, " ");
    size_t n_all = 0;
    snprintf(name, sizeof name, "%.*s", (int)n, line + 1);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        for (size_t k = 0; k < N_NAMES && commands[i].names[k] != NULL; k++) {
            if (strcmp(commands[i].names[k], name) == 0) return commands[i].run(chat, argument);
            all[n_all++] = commands[i].names[k];
        }
    }
    const char *const nearest = cli_nearest(name, all);
    if (nearest != NULL)
        cli_error("there is no command '/%.*s', did you mean '/%s'?", (int)size, line + 1, nearest);
    else
        cli_error("there is no command '/%.*s'; /? lists them", (int)size, line + 1);
    return false;
}
