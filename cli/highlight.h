/* highlight.h: colours for source code that streams in: comments, strings, numbers and keywords, by
 * rules that languages have in common. */
#ifndef WICK_CLI_HIGHLIGHT_H
#define WICK_CLI_HIGHLIGHT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_language cli_language;

/* Where coloured text goes; style as in wrap.h. */
typedef void (*cli_styled_fn)(void *user, const char *text, size_t size, unsigned style);

/* Begin with {.language = ..., .put = ..., .user = ...}. */
typedef struct cli_highlight {
    const cli_language *language; /* NULL: no colours */
    cli_styled_fn put;
    void *user;
    /* The rest is its own. */
    enum { CLI_CODE, CLI_STRING, CLI_LINE_COMMENT, CLI_BLOCK_COMMENT } state;
    char quote;        /* of a string */
    unsigned n_quotes; /* that end it */
    unsigned n_seen;   /* quotes in a row, at its beginning or its end */
    bool is_opening, is_escaped;
    char before;   /* the character before held; 0: none */
    char held[64]; /* an unfinished word or mark */
    size_t n_held;
} cli_highlight;

/* By the word after the fence of a Markdown block, "python"; NULL: not known. */
const cli_language *cli_find_language(const char *name, size_t size);
void cli_highlight_put(cli_highlight *highlight, const char *text, size_t size);
/* Writes what is held back. */
void cli_highlight_end(cli_highlight *highlight);

#endif
