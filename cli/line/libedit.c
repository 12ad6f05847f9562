/* line/libedit.c: lines with editing, history and UTF-8 by libedit (NetBSD's editline). */
#define _POSIX_C_SOURCE 200809L

#include "line.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HISTORY_LINES = 1000 };

struct cli_line_reader {
    EditLine *edit; /* NULL: lines are read as they come */
    History *history;
    const char *prompt;
    char *text;
    size_t capacity;
    bool is_interrupted;
};

static char *show_prompt(EditLine *edit) {
    cli_line_reader *reader = NULL;
    el_get(edit, EL_CLIENTDATA, &reader);
    return (char *)reader->prompt;
}

/* Ctrl-C as a key: where it is a signal, libedit asks for another one before it gives up a line. */
static unsigned char interrupt_line(EditLine *edit, int key) {
    (void)key;
    cli_line_reader *reader = NULL;
    el_get(edit, EL_CLIENTDATA, &reader);
    reader->is_interrupted = true;
    return CC_EOF;
}

/* Ctrl-Z is a key as well. With EL_SIGNAL libedit puts the terminal in order around the stop. */
static unsigned char suspend(EditLine *edit, int key) {
    (void)edit, (void)key;
    raise(SIGTSTP);
    return CC_REFRESH;
}

/* What libedit takes for a character: of the user's locale, which may have none but ASCII. */
static bool is_utf8(void) {
    static const char *const locales[] = {"", "C.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
        if (setlocale(LC_CTYPE, locales[i]) != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
            return true;
    return false;
}

static void set_up(cli_line_reader *reader) {
    HistEvent event;
    reader->edit = el_init("wick", stdin, stdout, stderr);
    reader->history = history_init();
    if (reader->edit == NULL || reader->history == NULL) return;
    history(reader->history, &event, H_SETSIZE, HISTORY_LINES);
    history(reader->history, &event, H_SETUNIQUE, 1);
    el_set(reader->edit, EL_CLIENTDATA, reader);
    el_set(reader->edit, EL_PROMPT, show_prompt);
    el_set(reader->edit, EL_EDITOR, "emacs");
    el_set(reader->edit, EL_SIGNAL, 1); /* follows the size of the window */
    el_set(reader->edit, EL_HIST, history, reader->history);
    el_set(reader->edit, EL_ADDFN, "wick-interrupt", "Drops the line", interrupt_line);
    el_set(reader->edit, EL_BIND, "^C", "wick-interrupt", NULL);
    el_set(reader->edit, EL_ADDFN, "wick-suspend", "Stops the program", suspend);
    el_set(reader->edit, EL_BIND, "^Z", "wick-suspend", NULL);
    el_set(reader->edit, EL_SETTY, "-d", "-isig", NULL);
}

cli_line_reader *cli_line_open(void) {
    cli_line_reader *const reader = calloc(1, sizeof *reader);
    /* Without a terminal to draw on libedit does not edit, and leaves the line to nobody. */
    const bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    if (reader != NULL && is_terminal && is_utf8()) set_up(reader);
    return reader;
}

void cli_line_close(cli_line_reader *reader) {
    if (reader == NULL) return;
    if (reader->edit != NULL) el_end(reader->edit);
    if (reader->history != NULL) history_end(reader->history);
    free(reader->text);
    free(reader);
}

static cli_line_result end_or_interrupt(int error) {
    return error == EINTR ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
}

/* libedit's line lives until its next call, but holds the end of the line. */
static cli_line_result read_edited(cli_line_reader *reader) {
    int count = 0;
    HistEvent event;
    reader->is_interrupted = false;
    /* Before el_gets does so itself, which shows the prompt first: Ctrl-C would be lost. */
    el_set(reader->edit, EL_PREP_TERM, 1);
    errno = 0;
    const char *const typed = el_gets(reader->edit, &count);
    if (typed == NULL || count <= 0) {
        const cli_line_result result = end_or_interrupt(count < 0 ? errno : 0);
        fputs(reader->is_interrupted ? "^C\n" : "\n", stdout);
        return reader->is_interrupted ? CLI_LINE_INTERRUPTED : result;
    }
    if (typed[0] != '\n') history(reader->history, &event, H_ENTER, typed);
    free(reader->text);
    reader->text = strdup(typed);
    if (reader->text == NULL) return CLI_LINE_END;
    reader->text[strcspn(reader->text, "\n")] = '\0';
    return CLI_LINE_READ;
}

cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line) {
    reader->prompt = prompt;
    const bool is_edited = reader->edit != NULL && reader->history != NULL;
    const cli_line_result result =
        is_edited ? read_edited(reader)
                  : cli_line_read_plain(prompt, &reader->text, &reader->capacity);
    *line = reader->text;
    return result;
}
