/* line/libedit.c: lines with editing, history and UTF-8 by libedit (NetBSD's editline). */
#define _POSIX_C_SOURCE 200809L

#include "line.h"

#include "history.h"
#include "terminal.h"
#include "text_out.h"
#include "wrap.h"

#include <errno.h>
#include <histedit.h>
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
    char *path; /* of the history's file; NULL: none */
    const cli_typed *words;
    const char *prompt;
    char *text;
    size_t capacity;
    bool is_interrupted;
};

static cli_line_reader *reader_of(EditLine *edit) {
    cli_line_reader *reader = NULL;
    el_get(edit, EL_CLIENTDATA, &reader);
    return reader;
}

static char *show_prompt(EditLine *edit) { return (char *)reader_of(edit)->prompt; }

/* Ctrl-C as a key: where it is a signal, libedit asks for another one before it gives up a line. */
static unsigned char interrupt_line(EditLine *edit, int key) {
    (void)key;
    reader_of(edit)->is_interrupted = true;
    return CC_EOF;
}

/* The terminal says where pasted text begins and ends: ends of lines in it are text. */
static unsigned char paste(EditLine *edit, int key) {
    static const wchar_t end[] = L"\033[201~";
    enum { END = 6, INTERRUPT = 3, PIECE = 256 };
    (void)key;
    wchar_t piece[PIECE + 1], c = 0, previous = 0;
    size_t n = 0, n_end = 0;
    while (n_end < END && el_wgetc(edit, &c) == 1) {
        if (c == INTERRUPT) return interrupt_line(edit, key); /* the end did not come */
        n_end = c == end[n_end] ? n_end + 1 : c == end[0];
        if (n_end > 0) continue;
        const bool is_second = c == L'\n' && previous == L'\r'; /* of "\r\n" */
        previous = c;
        if (c == L'\r') c = L'\n';
        if ((c >= 0x20 || c == L'\n' || c == L'\t') && !is_second) piece[n++] = c;
        piece[n] = L'\0';
        if (n < PIECE) continue;
        el_winsertstr(edit, piece);
        n = 0;
    }
    piece[n] = L'\0';
    if (n > 0) el_winsertstr(edit, piece);
    return CC_REFRESH;
}

/* A column with what the word may become, or as many as there is room for. */
static void list_candidates(const cli_completion *c) {
    size_t width = 1;
    for (size_t i = 0; i < c->n; i++)
        if (strlen(c->items[i]) > width) width = strlen(c->items[i]);
    const size_t columns = cli_columns(STDOUT_FILENO) / (width + 2);
    for (size_t i = 0; i < c->n; i++) {
        fputs(i == 0 || columns < 2 || i % columns == 0 ? "\n" : "  ", stdout);
        cli_put_padded(stdout, c->items[i], width);
    }
    if (c->n_left_out > 0) printf("\n... and %zu more", c->n_left_out);
    fputc('\n', stdout);
}

static unsigned char complete(EditLine *edit, int key) {
    (void)key;
    const LineInfo *const info = el_line(edit);
    cli_completion c = {.n = 0};
    char *const line = strndup(info->buffer, (size_t)(info->cursor - info->buffer));
    if (line == NULL) return CC_ERROR;
    cli_complete(reader_of(edit)->words, line, &c);
    free(line);
    unsigned char result = c.n > 0 ? CC_REFRESH : CC_REFRESH_BEEP;
    if (c.common > c.typed) {
        char *const more = strndup(c.items[0] + c.typed, c.common - c.typed);
        if (more != NULL) el_insertstr(edit, more);
        free(more);
    } else if (c.n > 1) {
        list_candidates(&c);
        result = CC_REDISPLAY;
    }
    if (c.n == 1 && c.after[0] != '\0') el_insertstr(edit, c.after);
    cli_completion_free(&c);
    return result;
}

/* Ctrl-Z is a key as well. With EL_SIGNAL libedit puts the terminal in order around the stop; the
 * second signal is for a program that no shell can stop and let go on. */
static unsigned char suspend(EditLine *edit, int key) {
    (void)edit, (void)key;
    raise(SIGTSTP);
    raise(SIGCONT);
    return CC_REDISPLAY; /* what the shell wrote meanwhile is in between */
}

static void remember(void *user, const char *entry) {
    cli_line_reader *const reader = user;
    HistEvent event;
    history(reader->history, &event, H_ENTER, entry);
}

static void set_up(cli_line_reader *reader) {
    HistEvent event;
    reader->edit = el_init("wick", stdin, stdout, stderr);
    reader->history = history_init();
    if (reader->edit == NULL || reader->history == NULL) return;
    history(reader->history, &event, H_SETSIZE, HISTORY_LINES);
    el_set(reader->edit, EL_CLIENTDATA, reader);
    el_set(reader->edit, EL_PROMPT, show_prompt);
    el_set(reader->edit, EL_EDITOR, "emacs");
    el_set(reader->edit, EL_SIGNAL, 1); /* follows the size of the window */
    el_set(reader->edit, EL_HIST, history, reader->history);
    el_set(reader->edit, EL_ADDFN, "wick-interrupt", "Drops the line", interrupt_line);
    el_set(reader->edit, EL_BIND, "^C", "wick-interrupt", NULL);
    el_set(reader->edit, EL_ADDFN, "wick-suspend", "Stops the program", suspend);
    el_set(reader->edit, EL_BIND, "^Z", "wick-suspend", NULL);
    el_set(reader->edit, EL_ADDFN, "wick-paste", "Takes pasted text", paste);
    el_set(reader->edit, EL_BIND, "\033[200~", "wick-paste", NULL);
    el_set(reader->edit, EL_ADDFN, "wick-complete", "Completes commands and paths", complete);
    el_set(reader->edit, EL_BIND, "^I", "wick-complete", NULL);
    el_set(reader->edit, EL_SETTY, "-d", "-isig", NULL);
    /* The two bytes of CR LF in pasted text stay what they are. */
    el_set(reader->edit, EL_SETTY, "-d", "-icrnl", "-inlcr", NULL);
    if (reader->path != NULL) cli_history_read(reader->path, remember, reader);
}

cli_line_reader *cli_line_open(const cli_line_desc *desc) {
    cli_line_reader *const reader = calloc(1, sizeof *reader);
    /* Without a terminal to draw on, libedit does not edit, nor does the terminal driver then. */
    const bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    if (reader == NULL) return NULL;
    if (desc->history != NULL) reader->path = strdup(desc->history);
    reader->words = desc->words;
    cli_echo_on(); /* libedit comes back to the mode that it finds */
    if (is_terminal && cli_use_utf8()) set_up(reader);
    return reader;
}

void cli_line_close(cli_line_reader *reader) {
    if (reader == NULL) return;
    cli_echo_on();
    if (reader->edit != NULL) el_end(reader->edit);
    if (reader->history != NULL) history_end(reader->history);
    free(reader->path);
    free(reader->text);
    free(reader);
}

static cli_line_result end_or_interrupt(int error) {
    return error == EINTR ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
}

/* libedit's line lives until its next call, but holds the end of the line. */
static cli_line_result read_edited(cli_line_reader *reader) {
    int count = 0;
    reader->is_interrupted = false;
    cli_echo_on();
    /* Before el_gets does so itself, which shows the prompt first: Ctrl-C would be lost. */
    el_set(reader->edit, EL_PREP_TERM, 1);
    cli_paste_marks(cli_is_terminal(STDOUT_FILENO));
    errno = 0;
    const char *const typed = el_gets(reader->edit, &count);
    const int error = errno;
    cli_paste_marks(false);
    if (typed == NULL || count <= 0) {
        const cli_line_result result = end_or_interrupt(count < 0 ? error : 0);
        fputs(reader->is_interrupted ? "^C\n" : "\n", stdout);
        return reader->is_interrupted ? CLI_LINE_INTERRUPTED : result;
    }
    free(reader->text);
    reader->text = strdup(typed);
    if (reader->text == NULL) return CLI_LINE_END;
    size_t size = strlen(reader->text);
    while (size > 0 && reader->text[size - 1] == '\n') size--;
    reader->text[size] = '\0';
    HistEvent newest;
    const bool is_known =
        history(reader->history, &newest, H_FIRST) >= 0 && strcmp(newest.str, reader->text) == 0;
    if (size == 0 || is_known) return CLI_LINE_READ;
    remember(reader, reader->text);
    if (reader->path != NULL) (void)cli_history_add(reader->path, reader->text);
    return CLI_LINE_READ;
}

cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line) {
    reader->prompt = prompt;
    const bool is_edited = reader->edit != NULL && reader->history != NULL;
    const cli_line_result result =
        is_edited ? read_edited(reader)
                  : cli_line_read_plain(prompt, &reader->text, &reader->capacity);
    cli_echo_off();
    *line = reader->text;
    return result;
}
