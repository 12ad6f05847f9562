/* wrap.h: text as it streams in, with styles, broken between words at the edge of a terminal. A
 * word is held back until it is complete. */
#ifndef WICK_CLI_WRAP_H
#define WICK_CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A sum of these and of one colour. */
typedef enum cli_style {
    CLI_STYLE_NONE = 0,
    CLI_STYLE_GREEN = 2, /* 1 to 7: the eight colours of every terminal, black left out */
    CLI_STYLE_MAGENTA = 5,
    CLI_STYLE_CYAN = 6,
    CLI_STYLE_COLOR = 7, /* mask */
    CLI_STYLE_BOLD = 8,
    CLI_STYLE_DIM = 16,
    CLI_STYLE_ITALIC = 32,
    CLI_STYLE_UNDERLINE = 64,
} cli_style;

enum { CLI_WORD_BYTES = 1024, CLI_INDENT_COLUMNS = 24 };

/* Begin with {.out = stdout, ...}. */
typedef struct cli_wrap {
    FILE *out; /* NULL: columns are counted alone */
    bool has_styles;
    bool is_verbatim; /* lines are not broken: code */
    size_t columns;   /* of the terminal, may change at any time; 0: lines are not broken */
    char indent[3 * CLI_INDENT_COLUMNS + 1]; /* what the rest of a broken line begins with */
    /* The rest is its own. */
    unsigned style, shown; /* of the next text, and what the terminal has */
    size_t column, n_blanks, word_size, word_columns, part_size;
    bool is_long;      /* in a word that is wider than the terminal */
    uint32_t previous; /* character */
    char part[4];      /* an unfinished UTF-8 sequence */
    char last_byte;    /* that was written; 0: none */
    char word[CLI_WORD_BYTES];
} cli_wrap;

void cli_wrap_style(cli_wrap *wrap, unsigned style);
/* Control characters except for ends of lines and tabs, and bytes that are not UTF-8, become \xNN.
 */
void cli_wrap_put(cli_wrap *wrap, const char *text, size_t size);
/* Writes what is held back, and resets the terminal's style. */
void cli_wrap_flush(cli_wrap *wrap);

/* Makes the C library take characters for UTF-8: the user's locale may have none except for ASCII.
 * False: there is no such locale. */
bool cli_use_utf8(void);
/* Columns of a character that follows another one (0: none). */
size_t cli_char_columns(uint32_t c, uint32_t previous);

#endif
