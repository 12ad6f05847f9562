/* table.c: see table.h.
 *
 *     | name | size |          name │ size
 *     |:-----|-----:|    ->    ─────┼─────
 *     | a    | 12 |            a    │   12
 */
#include "table.h"

#include "wrap.h"

#include <string.h>

enum { MAX_CELLS = 32 };

typedef struct table_text {
    const char *bytes;
    size_t size;
} table_text;

typedef struct table_row {
    table_text cells[MAX_CELLS];
    size_t n; /* MAX_CELLS + 1: more than there is room for */
} table_row;

typedef enum alignment { LEFT, RIGHT, CENTER } alignment;

typedef struct grid {
    alignment alignments[MAX_CELLS];
    size_t widths[MAX_CELLS];
    size_t n; /* columns */
} grid;

/* ---- Reading ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static table_text trim(table_text t) {
    while (t.size > 0 && is_blank(t.bytes[t.size - 1])) t.size--;
    while (t.size > 0 && is_blank(t.bytes[0])) {
        t.bytes++;
        t.size--;
    }
    return t;
}

/* The next line of *rest without its end. */
static table_text take_line(table_text *rest) {
    const char *const end = rest->size > 0 ? memchr(rest->bytes, '\n', rest->size) : NULL;
    const table_text line = {rest->bytes, end != NULL ? (size_t)(end - rest->bytes) : rest->size};
    const size_t taken = line.size + (end != NULL);
    rest->bytes += taken;
    rest->size -= taken;
    return line;
}

/* A bar after a backslash belongs to the text; those at both ends of the line separate
 * nothing. */
static void split(table_text line, table_row *out) {
    line = trim(line);
    size_t begin = line.size > 0 && line.bytes[0] == '|' ? 1 : 0;
    out->n = 0;
    for (size_t i = begin; i <= line.size; i++) {
        const bool is_end = i == line.size;
        if (!is_end && line.bytes[i] == '\\' && i + 1 < line.size)
            i++;
        else if (is_end || line.bytes[i] == '|') {
            if (is_end && i == begin) break;
            if (out->n < MAX_CELLS)
                out->cells[out->n] = trim((table_text){line.bytes + begin, i - begin});
            if (out->n <= MAX_CELLS) out->n++;
            begin = i + 1;
        }
    }
}

/* "---", ":--", "--:" or ":-:"; an unfinished one may be shorter. */
static bool is_delimiter(table_text cell, alignment *out) {
    const bool is_left = cell.size > 0 && cell.bytes[0] == ':';
    const bool is_right = cell.size > 1 && cell.bytes[cell.size - 1] == ':';
    for (size_t i = is_left; i + is_right < cell.size; i++)
        if (cell.bytes[i] != '-') return false;
    *out = is_left && is_right ? CENTER : is_right ? RIGHT : LEFT;
    return cell.size > 0;
}

static bool read_delimiters(table_text line, grid *t) {
    table_row cells;
    split(line, &cells);
    bool is_one = cells.n > 0 && cells.n <= MAX_CELLS;
    for (size_t i = 0; is_one && i < cells.n; i++)
        is_one = is_delimiter(cells.cells[i], &t->alignments[i]);
    return is_one;
}

bool cli_is_table(const char *bytes, size_t size) {
    grid t;
    table_text rest = {bytes, size};
    (void)take_line(&rest);
    return read_delimiters(take_line(&rest), &t);
}

/* False: a row has too many cells. */
static bool measure(table_text rest, const cli_table_out *out, grid *t) {
    for (size_t i_row = 0; rest.size > 0; i_row++) {
        table_row cells;
        split(take_line(&rest), &cells);
        if (cells.n > MAX_CELLS) return false;
        if (cells.n > t->n) t->n = cells.n;
        for (size_t i = 0; i < cells.n && i_row != 1; i++) {
            const size_t width = out->columns(cells.cells[i].bytes, cells.cells[i].size);
            if (width > t->widths[i]) t->widths[i] = width;
        }
    }
    return true;
}

/* ---- Writing ---- */

static const char bar[] = " \xE2\x94\x82 "; /* U+2502 */
static const char rule[] = "\xE2\x94\x80", crossing[] = "\xE2\x94\x80\xE2\x94\xBC\xE2\x94\x80";

static void put_gap(const cli_table_out *out, size_t n) {
    while (n-- > 0) out->put(out->user, " ", 1, CLI_STYLE_NONE);
}

static void put_row(const grid *t, const table_row *cells, unsigned style,
                    const cli_table_out *out) {
    for (size_t i = 0; i < t->n; i++) {
        const table_text cell = i < cells->n ? cells->cells[i] : (table_text){"", 0};
        const size_t gap = t->widths[i] - out->columns(cell.bytes, cell.size);
        const size_t before = t->alignments[i] == RIGHT    ? gap
                              : t->alignments[i] == CENTER ? gap / 2
                                                           : 0;
        if (i > 0) out->put(out->user, bar, sizeof bar - 1, CLI_STYLE_DIM);
        put_gap(out, before);
        out->put_cell(out->user, cell.bytes, cell.size, style);
        put_gap(out, gap - before);
    }
}

static void put_crossings(const grid *t, const cli_table_out *out) {
    for (size_t i = 0; i < t->n; i++) {
        if (i > 0) out->put(out->user, crossing, sizeof crossing - 1, CLI_STYLE_DIM);
        for (size_t k = 0; k < t->widths[i]; k++)
            out->put(out->user, rule, sizeof rule - 1, CLI_STYLE_DIM);
    }
}

bool cli_table_put(const char *bytes, size_t size, size_t most, const cli_table_out *out) {
    table_text rest = {bytes, size};
    grid t = {.n = 0};
    if (!cli_is_table(bytes, size) || !measure(rest, out, &t)) return false;
    size_t total = 3 * (t.n - 1);
    for (size_t i = 0; i < t.n; i++) total += t.widths[i];
    if (most > 0 && total > most) return false;
    (void)take_line(&rest);
    (void)read_delimiters(take_line(&rest), &t);
    rest = (table_text){bytes, size};
    for (size_t i_row = 0; rest.size > 0; i_row++) {
        table_row cells;
        split(take_line(&rest), &cells);
        if (i_row == 1)
            put_crossings(&t, out);
        else
            put_row(&t, &cells, i_row == 0 ? CLI_STYLE_BOLD : CLI_STYLE_NONE, out);
        const bool is_ended = rest.size > 0 || bytes[size - 1] == '\n';
        if (is_ended) out->put(out->user, "\n", 1, CLI_STYLE_NONE);
    }
    return true;
}
