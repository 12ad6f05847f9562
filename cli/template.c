/* template.c: `wick template`: chat templates over conversations in a file. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "file_out.h"
#include "input.h"
#include "interrupt.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct template_options {
    const char *path, *cases, *language, *out;
} template_options;

static const cli_option options[] = {
    {.argument = "FILE.jinja",
     .help = "the template; or MODEL.gguf, for the model's own",
     .kind = &cli_model,
     .offset = offsetof(template_options, path)},
    {.name = "cases",
     .argument = "FILE.json",
     .help = "the conversations: an array of {\"messages\", \"tools\", \"add_generation_prompt\", "
             "\"vars\", \"now\"}",
     .kind = &cli_in,
     .offset = offsetof(template_options, cases)},
    {.name = "language",
     .argument = "FILE.json",
     .help = "instead of both: an array of {\"template\", \"vars\", \"now\"}",
     .kind = &cli_in,
     .offset = offsetof(template_options, language)},
    {.name = "out",
     .letter = 'o',
     .argument = "FILE.json",
     .help = "write the array of texts to this file instead of standard output",
     .kind = &cli_out,
     .offset = offsetof(template_options, out)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

/* ---- One rendering ---- */

/* "2026-01-15T12:34:56"; zeros where there is none. False: it is of another form. */
static bool read_time(const wick_json *value, wick_time_of_day *t) {
    *t = (wick_time_of_day){0};
    if (wick_json_kind_of(value) == WICK_JSON_NULL) return true;
    const char *const text = wick_json_text(value, NULL);
    return text != NULL && sscanf(text, "%d-%d-%dT%d:%d:%d", &t->year, &t->month, &t->day, &t->hour,
                                  &t->minute, &t->second) == 6;
}

static wick_conversation read_case(const wick_json *from, bool is_language) {
    const wick_json *const variables = wick_json_get(from, "vars");
    const wick_json *const prompt = wick_json_get(from, "add_generation_prompt");
    wick_conversation c = {
        .variables = variables, .generation_prompt = WICK_GENERATION_PROMPT_UNSET, .is_raw = true};
    (void)read_time(wick_json_get(from, "now"), &c.now); /* read_cases has checked it */
    if (is_language) return c;
    c.is_raw = wick_json_is_true(wick_json_get(from, "raw"));
    c.messages = wick_json_get(from, "messages");
    c.tools = wick_json_get(from, "tools");
    c.documents = wick_json_get(variables, "documents");
    if (c.is_raw && wick_json_kind_of(c.tools) == WICK_JSON_NULL) c.tools = NULL;
    if (!c.is_raw || wick_json_kind_of(prompt) != WICK_JSON_NULL)
        c.generation_prompt =
            wick_json_is_true(prompt) ? WICK_GENERATION_PROMPT_ON : WICK_GENERATION_PROMPT_OFF;
    return c;
}

static void put_result(cli_json *json, const wick_json *from, const wick_prompt *prompt,
                       const wick_error *error) {
    size_t size = 0;
    const char *const name = wick_json_text(wick_json_get(from, "name"), &size);
    cli_json_open(json, '{');
    cli_json_key(json, "name");
    cli_json_bytes(json, name != NULL ? name : "", size);
    cli_json_put_string(json, "outcome", prompt != NULL ? "ok" : "error");
    cli_json_key(json, prompt != NULL ? "text" : "message");
    const char *const text = prompt != NULL ? wick_prompt_text(prompt, &size) : error->message;
    cli_json_bytes(json, text, prompt != NULL ? size : strlen(text));
    cli_json_close(json, '}');
}

/* compiled NULL: the case brings a template along. A template that fails is a result. */
static void render_case(const wick_template *compiled, const wick_json *from, cli_json *json) {
    wick_template *own = NULL;
    wick_prompt *prompt = NULL;
    wick_error error = {0};
    const wick_conversation conversation = read_case(from, compiled == NULL);
    if (compiled == NULL) {
        size_t size = 0;
        const char *const text = wick_json_text(wick_json_get(from, "template"), &size);
        wick_template_parse(text, size, &own, &error);
    }
    const wick_template *const used = compiled != NULL ? compiled : own;
    if (used != NULL) wick_template_render(used, &conversation, &prompt, &error);
    put_result(json, from, prompt, &error);
    wick_prompt_free(prompt);
    wick_template_free(own);
}

/* ---- All of them ---- */

static int check_times(const char *path, const wick_json *cases) {
    wick_time_of_day ignored;
    int i = 1;
    for (const wick_json *c = wick_json_first(cases); c != NULL; c = wick_json_next(c), i++)
        if (!read_time(wick_json_get(c, "now"), &ignored))
            return cli_error("'%s', case %d: \"now\" must be a text like \"2026-01-15T12:34:56\"",
                             path, i);
    return CLI_OK;
}

static int read_cases(const char *path, wick_json_document **cases) {
    cli_input input = {0};
    int code = cli_read_file(path, &input);
    if (code != CLI_OK) return code;
    wick_error error = {0};
    if (wick_json_parse(input.text, input.size, cases, &error) != WICK_OK)
        code = cli_report_file(&error, path, "");
    cli_input_free(&input);
    if (code != CLI_OK) return code;
    if (wick_json_kind_of(wick_json_root(*cases)) != WICK_JSON_ARRAY)
        return cli_error("'%s' is not an array of cases", path);
    return check_times(path, wick_json_root(*cases));
}

static int parse_own(const wick_file *model, const char *path, wick_template **compiled,
                     wick_error *error) {
    const wick_value *const value = wick_file_find_value(model, "tokenizer.chat_template");
    if (value == NULL || value->type != WICK_VALUE_STRING)
        return cli_error("'%s' has no chat template", path);
    wick_template_parse(value->string.text, value->string.size, compiled, error);
    return CLI_OK;
}

/* A template that cannot be parsed is what becomes of each case; *compiled is NULL then. */
static int read_template(const char *path, wick_template **compiled, wick_error *error) {
    cli_input input = {0};
    wick_file *model = NULL;
    wick_error not_open = {0};
    if (wick_file_open(path, &model, &not_open) == WICK_OK) {
        const int code = parse_own(model, path, compiled, error);
        wick_file_close(model);
        return code;
    }
    int code = cli_read_file(path, &input);
    if (code != CLI_OK) return code;
    if (strncmp(input.text, "GGUF", 4) == 0)
        code = cli_report_file(&not_open, path, NULL);
    else
        wick_template_parse(input.text, input.size, compiled, error);
    cli_input_free(&input);
    return code;
}

static void put_results(const template_options *o, const wick_template *compiled,
                        const wick_error *unparsed, const wick_json *cases, FILE *out) {
    cli_json json = {.out = out};
    cli_json_open(&json, '[');
    for (const wick_json *c = wick_json_first(cases); c != NULL; c = wick_json_next(c)) {
        if (compiled != NULL || o->language != NULL)
            render_case(compiled, c, &json);
        else
            put_result(&json, c, NULL, unparsed);
    }
    cli_json_close(&json, ']');
}

static int write_results(const template_options *o, const wick_template *compiled,
                         const wick_error *unparsed, const wick_json *cases) {
    char *text = NULL;
    size_t size = 0;
    FILE *const out = o->out != NULL ? open_memstream(&text, &size) : stdout;
    if (out == NULL) return cli_error("out of memory for the texts");
    put_results(o, compiled, unparsed, cases, out);
    if (o->out == NULL) return CLI_OK; /* main sees whether it arrived */
    const bool is_whole = ferror(out) == 0;
    int code = CLI_OK;
    if (fclose(out) != 0 || !is_whole)
        code = cli_error("out of memory for the texts");
    else
        code = cli_write_file(o->out, text, size);
    free(text);
    return code;
}

static int run(void *given) {
    const template_options *const o = given;
    if ((o->language != NULL) == (o->path != NULL) || (o->path != NULL) != (o->cases != NULL))
        return cli_usage_error(&cli_template, "give FILE.jinja and --cases, or --language");
    if (o->out != NULL) cli_keep_closed_pipe();
    wick_json_document *cases = NULL;
    wick_template *compiled = NULL;
    wick_error unparsed = {0};
    int code = read_cases(o->language != NULL ? o->language : o->cases, &cases);
    if (code == CLI_OK && o->path != NULL) code = read_template(o->path, &compiled, &unparsed);
    if (code == CLI_OK) code = write_results(o, compiled, &unparsed, wick_json_root(cases));
    wick_template_free(compiled);
    wick_json_free(cases);
    return code;
}

const cli_command cli_template = {
    .name = "template",
    .summary = "render chat templates over conversations",
    .details = "Writes an array of {\"name\", \"outcome\": \"ok\", \"text\"} or {\"name\", "
               "\"outcome\": \"error\",\n\"message\"}, one for each case. What templates may say: "
               "docs/chat.md.\n\n"
               "  wick template chatml.jinja --cases conversations.json\n"
               "  wick template MODEL.gguf --cases conversations.json\n",
    .groups = groups,
    .options_size = sizeof(template_options),
    .run = run,
};
