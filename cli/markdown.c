/* markdown.c: see markdown.h. What of CommonMark models use: headings, lists, quotations, rules,
 * fenced code, code spans, emphasis; and tables. */
#include "markdown.h"

#include "table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* strchr finds a zero byte in every list. */
static bool is_one_of_these(char c, const char *list) {
    return c != '\0' && strchr(list, c) != NULL;
}

static void put_styled(cli_markdown *m, const char *text, size_t size, unsigned style) {
    cli_wrap_style(&m->wrap, m->base | style);
    cli_wrap_put(&m->wrap, text, size);
}

/* ---- Spans ---- */

static size_t run_of(const char *text, size_t size, char c) {
    size_t n = 0;
    while (n < size && text[n] == c) n++;
    return n;
}

static bool is_span_mark(char c) { return c == '`' || c == '*' || c == '_' || c == '~'; }

/* Of ASCII: scripts without blanks have marks between letters. */
static bool is_letter(char c) { return (unsigned char)c < 0x80 && isalnum((unsigned char)c); }

typedef enum found { SPAN, NO_SPAN, UNFINISHED } found;

/* Where the run that closes a code span stands. */
static found find_code_end(const char *text, size_t size, size_t n, size_t *end) {
    for (size_t i = n; i < size; i++) {
        const size_t run = run_of(text + i, size - i, '`');
        *end = i;
        if (run == n) return i + run < size ? SPAN : UNFINISHED;
        if (run > 0) i += run - 1;
    }
    return UNFINISHED;
}

/* The same for emphasis: code spans within it are passed over. */
static found find_emphasis_end(const char *text, size_t size, size_t n, size_t *end) {
    const char c = text[0];
    for (size_t i = n; i < size;) {
        const size_t run = run_of(text + i, size - i, text[i]);
        size_t code_end = 0;
        *end = i;
        if (text[i] == '\\') {
            i += 2;
        } else if (text[i] == '`') {
            const found code = find_code_end(text + i, size - i, run, &code_end);
            i += code == SPAN ? code_end + run : run;
        } else if (text[i] == c && run == n && text[i - 1] != ' ') {
            if (i + run == size) return UNFINISHED;
            if (run > 1 || !is_letter(text[i + run])) return SPAN;
            i += run;
        } else {
            i += run;
        }
    }
    return UNFINISHED;
}

/* text begins with a mark. *n: the length of its run; *end: where what closes it begins. */
static found find_span(const cli_markdown *m, const char *text, size_t size, size_t *n,
                       size_t *end) {
    const char c = text[0];
    *n = run_of(text, size, c);
    if (*n == size) return UNFINISHED;
    if (c == '`') return find_code_end(text, size, *n, end);
    if (*n > 3 || (c == '~' && *n != 2)) return NO_SPAN;
    if (is_letter(m->before) || isspace((unsigned char)text[*n])) return NO_SPAN;
    return find_emphasis_end(text, size, *n, end);
}

static unsigned style_of(char c, size_t n) {
    static const unsigned emphasis[] = {CLI_STYLE_NONE, CLI_STYLE_ITALIC, CLI_STYLE_BOLD,
                                        CLI_STYLE_BOLD | CLI_STYLE_ITALIC};
    if (c == '`') return CLI_STYLE_CYAN;
    return c == '~' ? CLI_STYLE_DIM : emphasis[n];
}

static void put_inline(cli_markdown *m, const char *text, size_t size, unsigned style);

/* The colour of an inner span replaces that of the outer one. */
static void put_span(cli_markdown *m, const char *text, size_t n, size_t end, unsigned style) {
    style |= style_of(text[0], n);
    if (text[0] == '`')
        put_styled(m, text + n, end - n, style);
    else
        put_inline(m, text + n, end - n, style);
}

/* Shows what is certain at the beginning of a line's rest; returns its length. is_end: nothing
 * follows in this line. */
static size_t put_certain(cli_markdown *m, const char *text, size_t size, bool is_end,
                          unsigned style) {
    size_t at = 0;
    while (at < size) {
        const char c = text[at];
        size_t n = 1, end = 0;
        if (c == '\\' && at + 1 == size && !is_end) return at;
        if (c == '\\' && at + 1 < size && is_one_of_these(text[at + 1], "*_`~#>|")) {
            put_styled(m, text + at + 1, 1, style);
            n = 2;
        } else if (is_span_mark(c)) {
            /* A line's end is as good as a blank after what closes a span. */
            char line[CLI_SPAN_BYTES + 16];
            const size_t rest = size - at < sizeof line - 1 ? size - at : sizeof line - 1;
            memcpy(line, text + at, rest);
            line[rest] = '\n';
            const found f = find_span(m, line, rest + is_end, &n, &end);
            if (f == UNFINISHED && !is_end && rest < CLI_SPAN_BYTES) return at;
            if (f == SPAN) {
                put_span(m, text + at, n, end, style);
                n += end;
            } else {
                if (n > size - at) n = size - at;
                put_styled(m, text + at, n, style);
            }
        } else {
            put_styled(m, &c, 1, style);
        }
        at += n;
        m->before = text[at - 1];
    }
    return at;
}

static void put_inline(cli_markdown *m, const char *text, size_t size, unsigned style) {
    const char before = m->before;
    m->before = '\0';
    (void)put_certain(m, text, size, true, style);
    m->before = before;
}

/* ---- Lines ---- */

static void drop(cli_markdown *m, size_t n) {
    memmove(m->held, m->held + n, m->n_held - n);
    m->n_held -= n;
}

/* Blanks under what stands before the text of a list's item. */
static void indent(cli_markdown *m, size_t columns) {
    if (columns > CLI_INDENT_COLUMNS) columns = CLI_INDENT_COLUMNS;
    memset(m->wrap.indent, ' ', columns);
    m->wrap.indent[columns] = '\0';
}

/* The beginning of a line as far as it has come, after a number of blanks. */
typedef struct line_start {
    const char *text;
    size_t size, blanks;
    bool is_end; /* of the line */
} line_start;

/* What the line is, once that is certain; n: bytes that are taken from it. */
typedef enum line_kind { UNDECIDED, TEXT, HEADING, ITEM, QUOTATION, RULE, FENCE, ROW } line_kind;

static line_kind mark_kind(const line_start *l, size_t *n) {
    const char c = l->text[0];
    const size_t run = run_of(l->text, l->size, c);
    const bool is_all = run == l->size;
    if (c == '`' || c == '~') {
        if (run >= 3) *n = run;
        return run >= 3 && (!is_all || l->is_end) ? FENCE : is_all && !l->is_end ? UNDECIDED : TEXT;
    }
    if (c == '#') {
        *n = run + 1;
        if (is_all) return l->is_end ? TEXT : UNDECIDED;
        return run <= 6 && l->text[run] == ' ' ? HEADING : TEXT;
    }
    *n = 2; /* - * + _ */
    if (run == 1 && l->size > 1 && l->text[1] == ' ' && c != '_') return ITEM;
    if (is_all && l->is_end) return run >= 3 && c != '+' ? RULE : TEXT;
    return is_all ? UNDECIDED : TEXT;
}

static line_kind kind_of(const line_start *l, size_t *n) {
    enum { DIGITS = 9 };
    if (l->size == 0) return l->is_end ? TEXT : UNDECIDED;
    if (is_one_of_these(l->text[0], "`~#-*+_")) return mark_kind(l, n);
    if (l->text[0] == '|') return ROW;
    if (l->text[0] == '>') {
        *n = l->size > 1 && l->text[1] == ' ' ? 2 : 1;
        return l->size > 1 || l->is_end ? QUOTATION : UNDECIDED;
    }
    size_t digits = 0;
    while (digits < l->size && isdigit((unsigned char)l->text[digits])) digits++;
    if (digits == 0 || digits > DIGITS) return TEXT;
    const size_t rest = l->size - digits;
    if (rest > 0 && l->text[digits] != '.' && l->text[digits] != ')') return TEXT;
    if (rest < 2) return l->is_end ? TEXT : UNDECIDED;
    *n = digits + 2;
    return l->text[digits + 1] == ' ' ? ITEM : TEXT;
}

static void put_rule(cli_markdown *m) {
    enum { WIDTH = 40 };
    const size_t columns = m->wrap.columns;
    const size_t n = columns > 0 && columns < WIDTH ? columns : WIDTH;
    for (size_t i = 0; i < n; i++) put_styled(m, "\xE2\x94\x80", 3, CLI_STYLE_DIM); /* U+2500 */
}

/* What stands before the text of a line; the line's style is set. */
static void begin_line(cli_markdown *m, const line_start *l, line_kind kind, size_t n) {
    static const char bar[] = "\xE2\x94\x82 "; /* U+2502 */
    indent(m, l->blanks);
    m->line_style = CLI_STYLE_NONE;
    switch (kind) {
    case HEADING:
        m->line_style = n == 2 ? CLI_STYLE_BOLD | CLI_STYLE_UNDERLINE : CLI_STYLE_BOLD;
        break;
    case ITEM:
        put_styled(m, m->held, l->blanks + n, CLI_STYLE_CYAN);
        indent(m, l->blanks + n);
        break;
    case QUOTATION:
        m->line_style = CLI_STYLE_DIM;
        put_styled(m, bar, sizeof bar - 1, CLI_STYLE_DIM);
        memcpy(m->wrap.indent, bar, sizeof bar);
        break;
    case RULE: put_rule(m); break;
    default: put_styled(m, m->held, l->blanks, CLI_STYLE_NONE); break;
    }
}

/* ---- Tables ---- */

/* False: out of memory, or the table is too long to be held back. */
static bool hold_row(cli_markdown *m, const char *text, size_t size) {
    enum { LEAST = 512, MOST = 64 << 10 };
    if (m->n_table + size > m->table_capacity) {
        const size_t capacity = m->table_capacity > 0 ? 2 * m->table_capacity : LEAST;
        char *const more = capacity <= MOST ? realloc(m->table, capacity) : NULL;
        if (more == NULL) return false;
        m->table = more;
        m->table_capacity = capacity;
    }
    memcpy(m->table + m->n_table, text, size);
    m->n_table += size;
    return true;
}

/* With the beginning of its first row. */
static bool enter_table(cli_markdown *m) {
    m->n_table = m->n_rows = m->rows_size = 0;
    if (m->takes_no_table || !hold_row(m, m->held, m->n_held)) return false;
    m->n_held = 0;
    m->state = CLI_IN_TABLE;
    return true;
}

static void put_to(void *user, const char *text, size_t size, unsigned style) {
    put_styled(user, text, size, style);
}

/* In a cell "\\|" is a bar everywhere, in code spans too. */
static void put_cell(void *user, const char *text, size_t size, unsigned style) {
    char cell[CLI_SPAN_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < size && size <= sizeof cell; i++)
        if (text[i] != '\\' || i + 1 == size || text[i + 1] != '|') cell[n++] = text[i];
    put_inline(user, size <= sizeof cell ? cell : text, size <= sizeof cell ? n : size, style);
}

static size_t cell_columns(const char *text, size_t size) {
    cli_markdown scratch = {.wrap = {.out = NULL}};
    put_cell(&scratch, text, size, CLI_STYLE_NONE);
    cli_wrap_flush(&scratch.wrap);
    return scratch.wrap.column;
}

static void take(cli_markdown *m, char c);

/* Shows the complete rows, as text where they do not make a table or are too wide; the rest begins
 * a line. */
static void leave_table(cli_markdown *m) {
    const cli_table_out out = {m, put_to, put_cell, cell_columns};
    char *const text = m->table;
    const size_t size = m->n_table, n_rows = m->rows_size;
    m->table = NULL;
    m->table_capacity = 0;
    m->state = CLI_LINE_START;
    const bool is_shown = n_rows > 0 && cli_table_put(text, n_rows, m->wrap.columns, &out);
    m->takes_no_table = true;
    for (size_t i = is_shown ? n_rows : 0; i < size; i++) take(m, text[i]);
    m->takes_no_table = false;
    free(text);
}

static bool is_row(const cli_markdown *m) {
    const char *const line = m->table + m->rows_size;
    const size_t size = m->n_table - m->rows_size, blanks = run_of(line, size, ' ');
    return blanks < size && line[blanks] == '|';
}

static void take_in_table(cli_markdown *m, char c) {
    if (!hold_row(m, &c, 1)) {
        leave_table(m);
        take(m, c);
    } else if (!is_row(m)) {
        if (c != ' ') leave_table(m);
    } else if (c == '\n') {
        m->rows_size = m->n_table;
        if (++m->n_rows == 2 && !cli_is_table(m->table, m->n_table)) leave_table(m);
    }
}

/* ---- Beginnings of lines ---- */

/* True: the line has begun, and what is still held is its text. */
static bool try_begin(cli_markdown *m, bool is_end) {
    size_t n = 0;
    const size_t blanks = run_of(m->held, m->n_held, ' ');
    const line_start l = {
        .text = m->held + blanks, .size = m->n_held - blanks, .blanks = blanks, .is_end = is_end};
    line_kind kind = kind_of(&l, &n);
    if (kind == UNDECIDED && m->n_held < CLI_SPAN_BYTES) return false;
    if (kind == UNDECIDED || (kind == ROW && !enter_table(m))) kind = TEXT;
    if (kind == ROW) return true;
    if (kind == FENCE) {
        m->fence = l.text[0];
        m->fence_size = n;
        m->state = CLI_FENCE_LINE;
        return true;
    }
    begin_line(m, &l, kind, n);
    m->before = '\0';
    m->state = CLI_IN_LINE;
    drop(m, kind == TEXT ? blanks : kind == RULE ? m->n_held : blanks + n);
    return true;
}

/* The rest of a paragraph's line. */
static void put_rest(cli_markdown *m, bool is_end) {
    drop(m, put_certain(m, m->held, m->n_held, is_end, m->line_style));
    if (!is_end) return;
    put_styled(m, "\n", 1, CLI_STYLE_NONE);
    m->wrap.indent[0] = '\0';
    m->state = CLI_LINE_START;
}

/* ---- Code ---- */

static void enter_code(cli_markdown *m) {
    const char *name = m->held;
    const char *const end = m->held + m->n_held;
    while (name < end && (*name == ' ' || *name == m->fence)) name++;
    size_t size = 0;
    while (name + size < end && !is_one_of_these(name[size], " {,\r")) size++;
    m->code = (cli_highlight){.language = cli_find_language(name, size), .put = put_to, .user = m};
    m->wrap.is_verbatim = true;
    put_styled(m, m->held, m->n_held, CLI_STYLE_DIM);
    put_styled(m, "\n", 1, CLI_STYLE_NONE);
    m->n_held = 0;
    m->state = CLI_CODE_START;
}

static void leave_code(cli_markdown *m) {
    cli_highlight_end(&m->code);
    put_styled(m, m->held, m->n_held, CLI_STYLE_DIM);
    put_styled(m, "\n", 1, CLI_STYLE_NONE);
    m->wrap.is_verbatim = false;
    m->n_held = 0;
    m->state = CLI_LINE_START;
}

/* Whether the line, as far as it has come, is or may become the one that ends the code. */
static bool may_end_code(const cli_markdown *m, bool is_end) {
    const size_t blanks = run_of(m->held, m->n_held, ' ');
    const size_t run = run_of(m->held + blanks, m->n_held - blanks, m->fence);
    size_t n = blanks + run;
    while (n < m->n_held && (m->held[n] == ' ' || m->held[n] == '\r')) n++;
    return n == m->n_held && n < CLI_SPAN_BYTES && (is_end ? run >= m->fence_size : true) &&
           (run >= m->fence_size || n == blanks + run);
}

static void take_code_start(cli_markdown *m, char c) {
    if (c == '\n' && may_end_code(m, true)) {
        leave_code(m);
        return;
    }
    m->held[m->n_held++] = c;
    if (c != '\n' && may_end_code(m, false)) return;
    cli_highlight_put(&m->code, m->held, m->n_held);
    m->n_held = 0;
    m->state = c == '\n' ? CLI_CODE_START : CLI_IN_CODE;
}

/* ---- Characters ---- */

static void take(cli_markdown *m, char c) {
    const bool is_end = c == '\n';
    switch (m->state) {
    case CLI_LINE_START:
        if (!is_end) m->held[m->n_held++] = c;
        if (!try_begin(m, is_end)) break;
        if (m->state == CLI_IN_LINE)
            put_rest(m, is_end);
        else if (is_end)
            enter_code(m);
        break;
    case CLI_IN_LINE:
        if (!is_end) m->held[m->n_held++] = c;
        put_rest(m, is_end);
        break;
    case CLI_FENCE_LINE:
        if (!is_end && m->n_held < CLI_SPAN_BYTES) {
            m->held[m->n_held++] = c;
            break;
        }
        enter_code(m);
        if (!is_end) take_code_start(m, c); /* what does not fit is code */
        break;
    case CLI_CODE_START: take_code_start(m, c); break;
    case CLI_IN_TABLE: take_in_table(m, c); break;
    case CLI_IN_CODE:
        cli_highlight_put(&m->code, &c, 1);
        if (is_end) m->state = CLI_CODE_START;
        break;
    }
}

void cli_markdown_put(cli_markdown *markdown, const char *text, size_t size) {
    if (markdown->is_plain) {
        put_styled(markdown, text, size, CLI_STYLE_NONE);
        return;
    }
    for (size_t i = 0; i < size; i++) take(markdown, text[i]);
}

/* As at the end of a line, without one. */
void cli_markdown_end(cli_markdown *markdown) {
    cli_markdown *const m = markdown;
    if (m->state == CLI_IN_TABLE) {
        if (is_row(m)) m->rows_size = m->n_table;
        leave_table(m);
    }
    switch (m->state) {
    case CLI_LINE_START:
        if (m->n_held > 0 && try_begin(m, true) && m->state == CLI_IN_LINE)
            (void)put_certain(m, m->held, m->n_held, true, m->line_style);
        if (m->state == CLI_FENCE_LINE) put_styled(m, m->held, m->n_held, CLI_STYLE_DIM);
        break;
    case CLI_IN_LINE: (void)put_certain(m, m->held, m->n_held, true, m->line_style); break;
    case CLI_FENCE_LINE: put_styled(m, m->held, m->n_held, CLI_STYLE_DIM); break;
    case CLI_IN_TABLE: break; /* was left */
    case CLI_CODE_START:
    case CLI_IN_CODE:
        if (!may_end_code(m, true)) cli_highlight_put(&m->code, m->held, m->n_held);
        cli_highlight_end(&m->code);
        if (may_end_code(m, true)) put_styled(m, m->held, m->n_held, CLI_STYLE_DIM);
        break;
    }
    cli_wrap_flush(&m->wrap);
    m->wrap.is_verbatim = false;
    m->wrap.indent[0] = '\0';
    m->n_held = 0;
    m->state = CLI_LINE_START;
}
