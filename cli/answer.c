/* answer.c: looks for the tags that models put around thinking and tool calls. */
#define _POSIX_C_SOURCE 200809L

#include "answer.h"

#include "terminal.h"

#include <wick/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct tags {
    const char *open, *close;            /* close NULL: up to the end */
    enum { THINKING, CALL, FRAME } kind; /* FRAME: open alone, which is left out */
} tags;

/* As Qwen and DeepSeek, Mistral, Seed and gpt-oss think, which also frames what it says; as Hermes,
 * Qwen and GLM, Llama 3.1, Mistral, Functionary, LFM2, DeepSeek, Kimi and gpt-oss call. */
static const tags known[] = {
    {"<think>", "</think>", THINKING},
    {"[THINK]", "[/THINK]", THINKING},
    {"<seed:think>", "</seed:think>", THINKING},
    {"<|channel|>analysis<|message|>", "<|end|>", THINKING},
    {"<|start|>assistant", NULL, FRAME},
    {"<|channel|>final<|message|>", NULL, FRAME},
    {"<|channel|>commentary<|message|>", NULL, FRAME},
    {"<|channel|>commentary to=", "<|call|>", CALL},
    {"<tool_call>", "</tool_call>", CALL},
    {"<seed:tool_call>", "</seed:tool_call>", CALL},
    {"<|tool_call|>", "<|/tool_call|>", CALL},
    {"<|python_tag|>", NULL, CALL},
    {"[TOOL_CALLS]", NULL, CALL},
    {"<function=", "</function>", CALL},
    {"<|tool_call_start|>", "<|tool_call_end|>", CALL},
    {"<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     CALL},
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", CALL},
};
static const tags bare_call = {"", NULL, CALL}; /* an answer that is JSON */

enum { N_KNOWN = sizeof known / sizeof *known };

/* ---- Writing ---- */

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

/* ---- Tags ---- */

/* Where word stands in text; size: it does not. */
static size_t find(const char *text, size_t size, const char *word) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= size; i++) {
        if (memcmp(text + i, word, n) == 0) return i;
    }
    return size;
}

/* Bytes at the end of text that may be the beginning of word. */
static size_t unfinished(const char *text, size_t size, const char *word) {
    size_t n = strlen(word) - 1;
    if (n > size) n = size;
    while (n > 0 && memcmp(text + size - n, word, n) != 0) n--;
    return n;
}

/* Thinking differs from the answer by its style, or where there are no styles by its tags. */
static void put_edge(cli_answer *a, bool is_end, const char *tag) {
    if (a->has_colors)
        set_style(a, is_end, is_end ? CLI_STYLE_NONE : CLI_STYLE_DIM);
    else
        put(a, tag, strlen(tag));
}

static void enter(cli_answer *a, const tags *t) {
    a->inside = t;
    if (t->kind == THINKING) put_edge(a, false, t->open);
}

/* Up to the first opening tag, or to what may become one. False: the text is used up. */
static bool show_outside(cli_answer *a, bool is_end) {
    const char *const text = a->text + a->shown;
    const size_t size = a->size - a->shown;
    const tags *first = NULL;
    size_t at = size, held = 0;
    for (size_t i = 0; i < N_KNOWN; i++) {
        const size_t here = find(text, size, known[i].open);
        const size_t open = is_end ? 0 : unfinished(text, size, known[i].open);
        if (here < at) {
            at = here;
            first = &known[i];
        }
        if (open > held) held = open;
    }
    if (a->has_tools && a->shown == 0 && size > 0 && text[0] == '{') {
        enter(a, &bare_call);
        return true;
    }
    if (first == NULL) at = size - held;
    put(a, text, at);
    a->shown += at;
    if (first == NULL) return false;
    a->shown += strlen(first->open);
    if (first->kind != FRAME) enter(a, first);
    return true;
}

/* A call is shown when it is whole, thinking as it comes. */
static bool show_inside(cli_answer *a, bool is_end) {
    const tags *const t = a->inside;
    const char *const text = a->text + a->shown;
    const size_t size = a->size - a->shown;
    const size_t at = t->close != NULL ? find(text, size, t->close) : size;
    const bool is_closed = at < size;
    if (!is_closed && !is_end && t->kind == CALL) return false;
    const size_t held =
        is_closed || is_end || t->close == NULL ? 0 : unfinished(text, size, t->close);
    const size_t n = is_closed ? at : size - held;
    if (t->kind == CALL)
        put_call(a, text, n);
    else
        put(a, text, n);
    a->shown += n;
    if (!is_closed && !is_end) return false;
    if (t->kind == THINKING) put_edge(a, true, is_closed ? t->close : "");
    if (is_closed) a->shown += strlen(t->close);
    a->inside = NULL;
    return is_closed;
}

static void show(cli_answer *a, bool is_end) {
    if (a->is_terminal && cli_is_terminal(STDOUT_FILENO))
        a->out.wrap.columns = cli_columns(STDOUT_FILENO);
    bool goes_on = true;
    while (goes_on) goes_on = a->inside != NULL ? show_inside(a, is_end) : show_outside(a, is_end);
    fflush(stdout);
}

cli_answer cli_answer_of(bool has_tools) {
    return (cli_answer){.is_terminal = isatty(STDOUT_FILENO) == 1,
                        .has_colors = cli_has_colors(STDOUT_FILENO),
                        .has_tools = has_tools};
}

void cli_answer_begin(cli_answer *answer, bool begins_thinking) {
    answer->out = (cli_markdown){.is_plain = !answer->has_colors,
                                 .wrap = {.out = stdout, .has_styles = answer->has_colors}};
    if (begins_thinking) enter(answer, &known[0]);
}

bool cli_answer_add(cli_answer *answer, const char *text, size_t size) {
    if (answer->capacity - answer->size < size) {
        const size_t capacity = 2 * answer->capacity + size + 256;
        char *const grown = realloc(answer->text, capacity);
        if (grown == NULL) return false;
        answer->text = grown;
        answer->capacity = capacity;
    }
    if (size > 0) memcpy(answer->text + answer->size, text, size);
    answer->size += size;
    show(answer, false);
    return true;
}

void cli_answer_end(cli_answer *answer) {
    if (answer->size > 0 || answer->inside != NULL) show(answer, true);
    if (is_shown(answer)) cli_markdown_end(&answer->out);
}
