/* markdown.h: answers as they stream in, on a terminal: Markdown and code in colour, words wrapped.
 * Only complete marks are taken for marks: a span such as **bold** is held back until it ends, and
 * shown as it is where its line ends before. A table is held back until it ends, and shown in
 * columns if it fits. */
#ifndef WICK_CLI_MARKDOWN_H
#define WICK_CLI_MARKDOWN_H

#include "highlight.h"
#include "wrap.h"

enum { CLI_SPAN_BYTES = 400 }; /* longer spans are not recognised */

/* Begin with {.wrap = {.out = stdout, ...}}. */
typedef struct cli_markdown {
    cli_wrap wrap;
    bool is_plain; /* text is wrapped and styled by base alone */
    unsigned base; /* style of all text, see wrap.h */
    /* The rest is its own. */
    enum {
        CLI_LINE_START,
        CLI_IN_LINE,
        CLI_FENCE_LINE,
        CLI_IN_CODE,
        CLI_CODE_START,
        CLI_IN_TABLE
    } state;
    unsigned line_style; /* of a heading or a quotation */
    char before;         /* the character before held, for spans; 0: none in this line */
    char fence;          /* ` or ~ */
    size_t fence_size;   /* of what opened the code */
    cli_highlight code;
    char held[CLI_SPAN_BYTES + 8];
    size_t n_held;
    /* The rows of a table, until it ends. */
    char *table; /* freed by cli_markdown_end */
    size_t n_table, table_capacity, n_rows;
    size_t rows_size;    /* bytes of complete rows */
    bool takes_no_table; /* a row is text */
} cli_markdown;

void cli_markdown_put(cli_markdown *markdown, const char *text, size_t size);
/* Writes what is held back; what follows begins in a line of its own. */
void cli_markdown_end(cli_markdown *markdown);

#endif
