/* answer.c: writes the content, reasoning and calls of an answer. */
#define _POSIX_C_SOURCE 200809L

#include "answer.h"

#include "terminal.h"

#include <wick/json.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* To a person, whose terminal the text must not steer. */
static bool is_shown(const cli_answer *a) { return a->is_terminal || a->has_colors; }

static void put(cli_answer *a, const char *text, size_t size) {
    if (size == 0) return;
    if (is_shown(a))
        cli_markdown_put(&a->out, text, size);
    else
        fwrite(text, 1, size, stdout);
    a->last_byte = text[size - 1];
}

/* Text that follows is Markdown, or plain in a style. */
static void set_style(cli_answer *a, bool is_markdown, unsigned style) {
    if (!is_shown(a)) return;
    cli_markdown_end(&a->out);
    a->out.is_plain = !is_markdown || !a->has_colors;
    a->out.base = style;
}

/* The name in {"name": ...} or [{"name": ...}]; NULL: it is no such JSON. */
static const char *called_name(const wick_json *call) {
    if (wick_json_kind_of(call) == WICK_JSON_ARRAY) call = wick_json_first(call);
    const char *const name = wick_json_text(wick_json_get(call, "name"), NULL);
    return name != NULL
               ? name
               : wick_json_text(wick_json_get(wick_json_get(call, "function"), "name"), NULL);
}

/* On a line of its own: [tool call NAME] and what the model wrote. */
static void put_call(cli_answer *a, const char *text, size_t size) {
    wick_json_document *json = NULL;
    while (size > 0 && strchr(" \n", text[size - 1]) != NULL) size--;
    for (; size > 0 && strchr(" \n", *text) != NULL; size--) text++;
    const char *name = NULL;
    if (wick_json_parse(text, size, &json, NULL) == WICK_OK)
        name = called_name(wick_json_root(json));
    if (a->last_byte != '\0' && a->last_byte != '\n') put(a, "\n", 1);
    set_style(a, false, CLI_STYLE_CYAN);
    put(a, "[tool call", strlen("[tool call"));
    if (name != NULL) put(a, " ", 1);
    if (name != NULL) put(a, name, strlen(name));
    put(a, "]", 1);
    set_style(a, false, CLI_STYLE_NONE);
    put(a, " ", 1);
    put(a, text, size);
    put(a, "\n", 1);
    set_style(a, true, CLI_STYLE_NONE);
    wick_json_free(json);
}

/* Thinking differs from the answer by its style, or where there are no styles by its tags. */
static void put_edge(cli_answer *a, bool is_end, const char *tag) {
    if (a->has_colors)
        set_style(a, is_end, is_end ? CLI_STYLE_NONE : CLI_STYLE_DIM);
    else
        put(a, tag, strlen(tag));
}

static void show(cli_answer *a) {
    if (a->is_terminal && cli_is_terminal(STDOUT_FILENO))
        a->out.wrap.columns = cli_columns(STDOUT_FILENO);
    wick_answer_span span;
    while (wick_answer_next(a->parts, &span)) {
        const bool is_reasoning = span.kind == WICK_ANSWER_REASONING;
        if (is_reasoning && span.open != NULL) put_edge(a, false, span.open);
        if (span.kind == WICK_ANSWER_CALL)
            put_call(a, span.text, span.size);
        else
            put(a, span.text, span.size);
        if (is_reasoning && span.close != NULL) put_edge(a, true, span.close);
    }
    fflush(stdout);
}

cli_answer cli_answer_of(bool has_tools) {
    return (cli_answer){.is_terminal = isatty(STDOUT_FILENO) == 1,
                        .has_colors = cli_has_colors(STDOUT_FILENO),
                        .has_tools = has_tools};
}

void cli_answer_begin(cli_answer *answer, const char *prompt, size_t size) {
    const wick_answer_desc desc = {
        .prompt = prompt, .prompt_size = size, .has_tools = answer->has_tools};
    answer->has_begun = true;
    answer->out = (cli_markdown){.is_plain = !answer->has_colors,
                                 .wrap = {.out = stdout, .has_styles = answer->has_colors}};
    (void)wick_answer_open(&desc, &answer->parts);
    show(answer);
}

bool cli_answer_add(cli_answer *answer, const char *text, size_t size) {
    if (wick_answer_feed(answer->parts, text, size) != WICK_OK) return false;
    show(answer);
    return true;
}

void cli_answer_end(cli_answer *answer) {
    wick_answer_finish(answer->parts);
    show(answer);
    wick_answer_close(answer->parts);
    answer->parts = NULL;
    if (is_shown(answer)) cli_markdown_end(&answer->out);
}
