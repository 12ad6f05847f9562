/* wrap.c: see wrap.h. Columns of characters are those of the C library (wcwidth), which needs a
 * locale with UTF-8; sequences that some terminals join and others do not count as not joined: a
 * line may then end too early, but never runs over the edge. */
#define _XOPEN_SOURCE 700

#include "wrap.h"

#include "text_out.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

/* ---- Columns ---- */

bool cli_use_utf8(void) {
    static const char *const locales[] = {"", "C.UTF-8", "en_US.UTF-8"};
    static bool is_done, is_utf8;
    for (size_t i = 0; i < sizeof locales / sizeof *locales && !is_done && !is_utf8; i++)
        is_utf8 =
            setlocale(LC_CTYPE, locales[i]) != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    is_done = true;
    return is_utf8;
}

static bool is_between(uint32_t c, uint32_t first, uint32_t last) {
    return c >= first && c <= last;
}

size_t cli_char_columns(uint32_t c, uint32_t previous) {
    enum { JOINER = 0x200D, AS_EMOJI = 0xFE0F };
    (void)cli_use_utf8();
    if (c < 0x80) return 1;
    if (c == JOINER) return 0;
    if (c == AS_EMOJI) { /* the character before it is drawn as an emoji, twice as wide */
        const bool is_keycap = is_between(previous, '0', '9') || previous == '#' || previous == '*';
        return is_keycap || (previous >= 0x80 && cli_char_columns(previous, 0) == 1) ? 1 : 0;
    }
    if (is_between(c, 0x1F3FB, 0x1F3FF) && is_between(previous, 0x261D, 0x1FAFF))
        return 0; /* the colour of a skin */
    const int columns = wcwidth((wchar_t)c);
    return columns >= 0 ? (size_t)columns : 1;
}

static bool is_one_of(uint32_t c, const uint32_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == c) return true;
    return false;
}

/* Scripts without blanks break between any two characters, except before closing and after opening
 * marks. */
static bool may_break(uint32_t before, uint32_t after) {
    static const uint32_t closing[] = {
        0x3001, 0x3002, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0x3015, 0x3017, 0x30FC, 0xFF01,
        0xFF09, 0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF3D, 0xFF5D, 0x2026, 0x201D, 0x2019,
        '.',    ',',    '!',    '?',    ':',    ';',    ')',    ']',    '}',    '"',    '\''};
    static const uint32_t opening[] = {0x3008, 0x300A, 0x300C, 0x300E, 0x3010, 0x3014,
                                       0x3016, 0xFF08, 0xFF3B, 0xFF5B, 0x201C, 0x2018,
                                       '(',    '[',    '{',    '"',    '\''};
    enum { JOINER = 0x200D };
    if (before == 0 || before == JOINER || cli_char_columns(after, before) == 0) return false;
    const bool is_hangul = is_between(before, 0xAC00, 0xD7A3) || is_between(after, 0xAC00, 0xD7A3);
    const bool is_wide = cli_char_columns(before, 0) == 2 || cli_char_columns(after, 0) == 2;
    return is_wide && !is_hangul && !is_one_of(after, closing, sizeof closing / sizeof *closing) &&
           !is_one_of(before, opening, sizeof opening / sizeof *opening);
}

/* ---- Words ---- */

static void write_out(cli_wrap *w, const char *bytes, size_t size) {
    if (size == 0) return;
    if (w->out != NULL) fwrite(bytes, 1, size, w->out);
    w->last_byte = bytes[size - 1];
}

static void advance(cli_wrap *w, size_t columns) {
    w->column += columns;
    while (w->columns > 0 && w->column > w->columns) w->column -= w->columns; /* it wraps itself */
}

static void break_line(cli_wrap *w) {
    write_out(w, "\n", 1);
    write_out(w, w->indent, strlen(w->indent));
    w->column = 0;
    for (const char *at = w->indent; *at != '\0'; at++)
        w->column += ((unsigned char)*at & 0xC0) != 0x80;
}

static void put_blanks(cli_wrap *w) {
    for (; w->n_blanks > 0; w->n_blanks--) {
        write_out(w, " ", 1);
        advance(w, 1);
    }
}

static void put_word(cli_wrap *w) {
    const bool is_too_long = w->column + w->n_blanks + w->word_columns > w->columns;
    if (w->word_columns > 0 && w->columns > 0 && !w->is_verbatim && w->column > 0 && is_too_long &&
        !w->is_long) {
        w->n_blanks = 0;
        break_line(w);
    }
    if (w->word_columns > 0) put_blanks(w);
    write_out(w, w->word, w->word_size);
    advance(w, w->word_columns);
    w->word_size = w->word_columns = 0;
}

static void add_bytes(cli_wrap *w, const char *bytes, size_t size) {
    if (w->word_size + size > sizeof w->word) put_word(w);
    memcpy(w->word + w->word_size, bytes, size);
    w->word_size += size;
}

/* "\033[0;1;36m"; without the 0 where nothing was set. */
static void add_style(cli_wrap *w) {
    static const struct {
        unsigned style, code;
    } codes[] = {
        {CLI_STYLE_BOLD, 1}, {CLI_STYLE_DIM, 2}, {CLI_STYLE_ITALIC, 3}, {CLI_STYLE_UNDERLINE, 4}};
    char text[40] = "\033[";
    size_t n = 2;
    if (w->style == w->shown || !w->has_styles) return;
    if (w->shown != 0) n += (size_t)snprintf(text + n, sizeof text - n, "0;");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if ((w->style & codes[i].style) != 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%u;", codes[i].code);
    if ((w->style & CLI_STYLE_COLOR) != 0)
        n += (size_t)snprintf(text + n, sizeof text - n, "%u;", 30 + (w->style & CLI_STYLE_COLOR));
    text[n - 1] = 'm'; /* for the last semicolon */
    w->shown = w->style;
    add_bytes(w, text, n);
}

static void end_line(cli_wrap *w) {
    if (w->shown != w->style) add_style(w);
    put_word(w);
    w->n_blanks = 0; /* at the end of a line they show nothing */
    w->is_long = false;
    write_out(w, "\n", 1);
    w->column = 0;
}

/* ---- Characters ---- */

static void put_char(cli_wrap *w, const char *bytes, size_t size, uint32_t c, size_t columns) {
    if (c == '\n') {
        end_line(w);
    } else if (c == ' ' && !w->is_verbatim) {
        add_style(w);
        put_word(w);
        w->is_long = false;
        w->n_blanks++;
    } else if (c == '\t') {
        enum { STOP = 8 };
        put_word(w);
        put_blanks(w);
        write_out(w, "\t", 1);
        w->column += STOP - w->column % STOP;
    } else {
        if (may_break(w->previous, c)) put_word(w);
        add_style(w);
        add_bytes(w, bytes, size);
        w->word_columns += columns;
        const bool fits = w->columns == 0 || w->word_columns + strlen(w->indent) <= w->columns;
        if (!fits || w->is_long || w->is_verbatim) {
            put_word(w);
            w->is_long = !w->is_verbatim;
        }
    }
    w->previous = c;
}

static void put_escaped(cli_wrap *w, unsigned char byte) {
    char text[8];
    snprintf(text, sizeof text, "\\x%02X", byte);
    for (size_t i = 0; i < 4; i++) put_char(w, text + i, 1, (unsigned char)text[i], 1);
}

static uint32_t decode(const char *bytes, size_t size) {
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++) c = c << 6 | ((unsigned char)bytes[i] & 0x3FU);
    return c;
}

/* Bytes at the beginning of text that are one character, or none that can become one; 0: more bytes
 * are needed to tell. */
static size_t take_char(cli_wrap *w, const char *text, size_t size, bool is_end) {
    const size_t n = cli_utf8_size(text, size);
    if (n == 0) {
        const unsigned char first = (unsigned char)text[0];
        const size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
        if (size < wanted && !is_end) return 0;
        put_escaped(w, first);
        return 1;
    }
    const uint32_t c = decode(text, n);
    const bool is_control = (c < 0x20 && c != '\n' && c != '\t') || is_between(c, 0x7F, 0x9F);
    for (size_t i = 0; i < n && is_control; i++) put_escaped(w, (unsigned char)text[i]);
    if (!is_control) put_char(w, text, n, c, cli_char_columns(c, w->previous));
    return n;
}

void cli_wrap_style(cli_wrap *wrap, unsigned style) { wrap->style = style; }

void cli_wrap_put(cli_wrap *wrap, const char *text, size_t size) {
    while (size > 0) {
        /* A character in pieces is put together first. */
        if (wrap->part_size > 0) {
            wrap->part[wrap->part_size++] = *text++;
            size--;
            const size_t n = take_char(wrap, wrap->part, wrap->part_size, false);
            memmove(wrap->part, wrap->part + n, wrap->part_size - n);
            wrap->part_size -= n;
            continue;
        }
        const size_t n = take_char(wrap, text, size, false);
        if (n == 0) {
            wrap->part[wrap->part_size++] = *text++;
            size--;
        }
        text += n;
        size -= n;
    }
}

void cli_wrap_flush(cli_wrap *wrap) {
    for (size_t at = 0; at < wrap->part_size;)
        at += take_char(wrap, wrap->part + at, wrap->part_size - at, true);
    wrap->part_size = 0;
    wrap->style = 0;
    add_style(wrap);
    put_word(wrap);
    put_blanks(wrap);
}
