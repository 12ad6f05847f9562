/* highlight.c: see highlight.h. */
#include "highlight.h"

#include "wrap.h"

#include <ctype.h>
#include <string.h>

struct cli_language {
    const char *names;               /* each between blanks */
    const char *line, *open, *close; /* comments; NULL: there are none */
    const char *quotes;              /* characters that begin a string */
    const char *keywords;            /* each between blanks */
    bool has_triple_quotes;          /* strings of several lines */
    bool ignores_case;               /* of keywords */
};

static const cli_language languages[] = {
    {" c h cpp c++ cc hpp cxx java js javascript jsx ts typescript tsx cs csharp go swift kotlin "
     "kt "
     "php scala dart wgsl glsl hlsl cuda zig json jsonc ",
     "//", "/*", "*/", "\"'`",
     " if else for while do switch case default break continue return goto struct union enum "
     "typedef "
     "class interface extends implements public private protected static const constexpr final "
     "void int char float double bool boolean long short unsigned signed auto var let new delete "
     "this super null nullptr undefined true false try catch finally throw throws import export "
     "from package func fun function async await yield of in is as namespace using template "
     "typename virtual override inline extern sizeof type defer chan map range select nil fn val "
     "when where guard #include #define #if #ifdef #ifndef #else #endif #pragma ",
     false, false},
    {" rust rs ", "//", "/*", "*/", "\"",
     " as async await break const continue crate dyn else enum extern false fn for if impl in let "
     "loop match mod move mut pub ref return self Self static struct super trait true type unsafe "
     "use where while ",
     false, false},
    {" python py python3 starlark ", "#", NULL, NULL, "\"'",
     " and as assert async await break class continue def del elif else except finally for from "
     "global if import in is lambda match nonlocal not or pass raise return try while with yield "
     "None True False self ",
     true, false},
    {" sh bash shell zsh console fish makefile make dockerfile docker ", "#", NULL, NULL, "\"'",
     " if then else elif fi for while until do done case esac in function return exit export local "
     "set unset source alias FROM RUN COPY CMD ENV WORKDIR ENTRYPOINT ",
     false, false},
    {" ruby rb yaml yml toml ini r perl pl elixir ex julia jl nix cmake ", "#", NULL, NULL, "\"'",
     " def end class module if elsif else unless while until for in do begin rescue ensure return "
     "yield self nil true false null and or not require function my sub use ",
     false, false},
    {" sql sqlite mysql postgres postgresql plsql ", "--", "/*", "*/", "\"'",
     " select from where insert into values update set delete create table drop alter index view "
     "join left right inner outer on and or not null is in like order by group having limit offset "
     "as distinct union all primary key foreign references default begin commit case when then "
     "else end with ",
     false, true},
    {" lua haskell hs ", "--", NULL, NULL, "\"",
     " and break do else elseif end false for function if in local nil not or repeat return then "
     "true until while module import where let data type class instance of case deriving ",
     false, false},
};

static bool has_word(const char *list, const char *word, size_t size, bool ignores_case) {
    char text[64] = " ";
    if (size == 0 || size + 3 > sizeof text) return false;
    for (size_t i = 0; i < size; i++)
        text[i + 1] = ignores_case ? (char)tolower((unsigned char)word[i]) : word[i];
    memcpy(text + 1 + size, " ", 2);
    return strstr(list, text) != NULL;
}

const cli_language *cli_find_language(const char *name, size_t size) {
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (has_word(languages[i].names, name, size, true)) return &languages[i];
    return NULL;
}

/* ---- States ---- */

static void emit(cli_highlight *h, const char *text, size_t size, unsigned style) {
    if (size > 0) h->put(h->user, text, size, style);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* A word or a number, or characters between them. */
static void put_held(cli_highlight *h) {
    const char first = h->n_held > 0 ? h->held[0] : '\0';
    unsigned style = CLI_STYLE_NONE;
    if (isdigit((unsigned char)first))
        style = CLI_STYLE_CYAN;
    else if (has_word(h->language->keywords, h->held, h->n_held, h->language->ignores_case))
        style = CLI_STYLE_MAGENTA;
    emit(h, h->held, h->n_held, style);
    h->n_held = 0;
}

/* mark: what begins a comment. Whether held can become, or is, it. */
static bool begins(const cli_highlight *h, const char *mark) {
    return mark != NULL && h->n_held <= strlen(mark) && memcmp(mark, h->held, h->n_held) == 0;
}

static bool is_mark(const cli_highlight *h, const char *mark) {
    return begins(h, mark) && h->n_held == strlen(mark);
}

static void enter_comment(cli_highlight *h, bool is_block) {
    emit(h, h->held, h->n_held, CLI_STYLE_DIM);
    h->n_held = 0;
    h->state = is_block ? CLI_BLOCK_COMMENT : CLI_LINE_COMMENT;
}

/* A number sign within a word is not a comment. */
static bool may_be_mark(const cli_highlight *h, char c) {
    return c != '#' || h->before == '\0' || strchr(" \t\n;(", h->before) != NULL;
}

/* held: what may be the beginning of a comment. True: c was taken. */
static bool take_mark(cli_highlight *h, char c) {
    const cli_language *const l = h->language;
    if (!may_be_mark(h, c)) return false;
    h->held[h->n_held++] = c;
    if (is_mark(h, l->line) || is_mark(h, l->open)) {
        enter_comment(h, !is_mark(h, l->line));
        return true;
    }
    if (begins(h, l->line) || begins(h, l->open)) return true;
    h->n_held--;
    return false;
}

static void enter_string(cli_highlight *h, char c) {
    h->state = CLI_STRING;
    h->quote = c;
    h->n_quotes = h->n_seen = 1;
    h->is_opening = h->language->has_triple_quotes;
    h->is_escaped = false;
    emit(h, &c, 1, CLI_STYLE_GREEN);
}

static void take_code(cli_highlight *h, char c) {
    const bool holds_word = h->n_held > 0 && (is_word(h->held[0]) || h->held[0] == '#');
    if (h->n_held > 0 && !holds_word) {
        if (take_mark(h, c)) return;
        put_held(h);
    }
    const bool is_number = holds_word && isdigit((unsigned char)h->held[0]);
    if (holds_word && (is_word(c) || (is_number && c == '.'))) {
        if (h->n_held == sizeof h->held) put_held(h); /* no keyword is that long */
        h->held[h->n_held++] = c;
        return;
    }
    if (holds_word) put_held(h);
    if (is_word(c)) {
        h->held[h->n_held++] = c;
    } else if (c != '\0' && strchr(h->language->quotes, c) != NULL) {
        enter_string(h, c);
    } else if (!take_mark(h, c)) {
        if (c == '#')
            h->held[h->n_held++] = c; /* of the preprocessor */
        else
            emit(h, &c, 1, CLI_STYLE_NONE);
    }
}

static void leave(cli_highlight *h) {
    h->state = CLI_CODE;
    h->is_opening = h->is_escaped = false;
    h->n_seen = 0;
}

static void take_string(cli_highlight *h, char c) {
    /* One quote, two that are an empty string, or three that open a long one. */
    if (h->is_opening && c == h->quote) {
        h->n_seen++;
        emit(h, &c, 1, CLI_STYLE_GREEN);
        if (h->n_seen < 3) return;
        h->n_quotes = 3;
        h->n_seen = 0;
        h->is_opening = false;
        return;
    }
    if (h->is_opening && h->n_seen == 2) {
        leave(h);
        take_code(h, c);
        return;
    }
    if (h->is_opening) h->n_seen = 0;
    h->is_opening = false;
    if (c == '\n' && h->n_quotes < 3 && h->quote != '`') { /* it was not closed */
        leave(h);
        emit(h, &c, 1, CLI_STYLE_NONE);
        return;
    }
    emit(h, &c, 1, CLI_STYLE_GREEN);
    const bool is_quote = c == h->quote && !h->is_escaped;
    h->is_escaped = c == '\\' && !h->is_escaped;
    if (h->n_quotes == 1) h->n_seen = 0;
    h->n_seen = is_quote ? h->n_seen + 1 : 0;
    if (h->n_seen == h->n_quotes) leave(h);
}

static void take_comment(cli_highlight *h, char c) {
    if (h->state == CLI_LINE_COMMENT && c == '\n') {
        leave(h);
        emit(h, &c, 1, CLI_STYLE_NONE);
        return;
    }
    emit(h, &c, 1, CLI_STYLE_DIM);
    if (h->state == CLI_LINE_COMMENT) return;
    const char *const close = h->language->close;
    h->n_seen = c == close[h->n_seen] ? h->n_seen + 1 : c == close[0];
    if (close[h->n_seen] == '\0') leave(h);
}

void cli_highlight_put(cli_highlight *highlight, const char *text, size_t size) {
    if (highlight->language == NULL) {
        emit(highlight, text, size, CLI_STYLE_NONE);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        switch (highlight->state) {
        case CLI_CODE:
            take_code(highlight, text[i]);
            highlight->before = text[i];
            break;
        case CLI_STRING: take_string(highlight, text[i]); break;
        case CLI_LINE_COMMENT:
        case CLI_BLOCK_COMMENT: take_comment(highlight, text[i]); break;
        }
    }
}

void cli_highlight_end(cli_highlight *highlight) {
    if (highlight->language != NULL && highlight->state == CLI_CODE) put_held(highlight);
    leave(highlight);
    highlight->n_held = 0;
}
