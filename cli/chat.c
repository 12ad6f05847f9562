/* chat.c: `wick chat`: a conversation with a model, by its own chat template. */
#define _POSIX_C_SOURCE 200809L

#include "chat.h"

#include "cli.h"
#include "history.h"
#include "input.h"
#include "interrupt.h"
#include "prefixes.h"
#include "question.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct chat_options {
    cli_engine_options engine; /* these two first, see sampling.h */
    cli_sampling_options sampling;
    const char *model, *system, *prompt, *tools, *compiled, *load, *prefix_cache;
    uint32_t max_tokens, context_length;
    bool no_thinking, no_history;
} chat_options;

_Static_assert(offsetof(chat_options, engine) == offsetof(cli_sampling_place, engine) &&
                   offsetof(chat_options, sampling) == offsetof(cli_sampling_place, sampling),
               "offsets of cli_engine_group and cli_sampling_group");

/* For models that have no template. */
static const char chatml[] =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static void set_defaults(void *given) {
    chat_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_FAST);
    cli_sampling_defaults(&o->sampling);
}

static const cli_option table[] = {
    {.argument = "MODEL.gguf",
     .help = "the model",
     .kind = &cli_model,
     .offset = offsetof(chat_options, model),
     .is_required = true},
    {.name = "prompt",
     .letter = 'p',
     .argument = "TEXT",
     .help = "ask one question, then end",
     .kind = &cli_text,
     .offset = offsetof(chat_options, prompt)},
    {.name = "system",
     .argument = "TEXT",
     .help = "the system message",
     .kind = &cli_text,
     .offset = offsetof(chat_options, system)},
    {.name = "load",
     .argument = "FILE.json",
     .help = "continue a conversation that /save wrote",
     .kind = &cli_text, /* not cli_in: read whole before /save may replace it */
     .offset = offsetof(chat_options, load)},
    {.name = "tools",
     .argument = "FILE.json",
     .help = "functions that the model may call: an array as in OpenAI's API",
     .kind = &cli_in,
     .offset = offsetof(chat_options, tools)},
    {.name = "template",
     .argument = "FILE.jinja",
     .help = "chat template to use instead of the model's own",
     .kind = &cli_in,
     .offset = offsetof(chat_options, compiled)},
    {.name = "no-thinking",
     .help = "ask the template for an answer without thinking first (enable_thinking)",
     .kind = &cli_flag,
     .offset = offsetof(chat_options, no_thinking)},
    {.name = "no-history",
     .help = "neither read nor write the history of typed lines (docs/chat.md)",
     .kind = &cli_flag,
     .offset = offsetof(chat_options, no_history)},
    CLI_PREFIX_CACHE(chat_options, prefix_cache),
    {.name = "max-tokens",
     .letter = 'n',
     .argument = "N",
     .help = "end an answer after N tokens; 0 or -1: where the model ends or the context is full",
     .kind = &cli_limit,
     .offset = offsetof(chat_options, max_tokens)},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "tokens of the whole conversation; 0: the model's, at most 16384 and a quarter of "
             "the free memory",
     .kind = &cli_u32,
     .offset = offsetof(chat_options, context_length),
     .most = INT32_MAX},
};

static const cli_group chat_group = {"Conversation", table, sizeof table / sizeof *table};
static const cli_group *const groups[] = {&chat_group, &cli_sampling_group, &cli_engine_group,
                                          NULL};

/* ---- Before the first question ---- */

static int open_chat(const chat_options *o, wick_chat_desc *desc, cli_chat *chat) {
    wick_error error = {0};
    wick_chat_open(chat->engine.model, desc, &chat->talk, &error);
    if (error.status == WICK_ERR_NOT_FOUND) {
        cli_warn("this model has no chat template: ChatML is tried, but the model may not be made "
                 "for conversations");
        error = (wick_error){0};
        desc->chat_template = chatml;
        wick_chat_open(chat->engine.model, desc, &chat->talk, &error);
    }
    if (error.status == WICK_OK) return CLI_OK;
    if (error.status == WICK_ERR_OUT_OF_MEMORY || cli_is_of_grammar(&error))
        return cli_report_session(&error, &o->sampling);
    const bool is_format = error.status == WICK_ERR_FORMAT;
    if (is_format && strncmp(error.message, "tools", 5) == 0)
        return cli_report(&error, "they were given with --tools");
    return cli_report(&error,
                      is_format && o->compiled == NULL ? "give another one with --template" : NULL);
}

static int prepare(const chat_options *o, cli_chat *chat) {
    cli_input tools = {0}, compiled = {0};
    wick_chat_desc desc = {.session = chat->session,
                           .system = o->system,
                           .thinking = o->no_thinking ? WICK_THINKING_OFF : WICK_THINKING_DEFAULT,
                           .now = cli_local_time(),
                           .stops = cli_stops};
    int code = cli_read_given(o->tools, &tools, &desc.tools);
    if (code == CLI_OK) code = cli_read_template(o->compiled, &compiled, &desc.chat_template);
    if (code == CLI_OK) code = cli_engine_open(&chat->engine, &o->engine, &chat->session, o->model);
    chat->session.draft = desc.session.draft = chat->engine.draft;
    if (code == CLI_OK) cli_load_prefixes(chat->engine.model, o->prefix_cache);
    if (code == CLI_OK) code = open_chat(o, &desc, chat);
    if (code == CLI_OK) cli_warn_context(chat->engine.model, o->context_length);
    if (code == CLI_OK) cli_note_short_context(chat->engine.model, o->context_length);
    if (code == CLI_OK && o->load != NULL) code = cli_messages_load(chat->talk, o->load);
    if (code == CLI_OK && o->load != NULL && o->system != NULL &&
        wick_chat_set_system(chat->talk, o->system) != WICK_OK)
        code = cli_report_chat(chat->talk);
    cli_input_free(&tools);
    cli_input_free(&compiled);
    return code;
}

/* ---- Questions ---- */

static cli_line_reader *open_reader(const chat_options *o) {
    char path[4096];
    cli_line_desc desc = {.words = cli_chat_words()};
    if (!o->no_history && cli_history_path(path, sizeof path)) desc.history = path;
    return cli_line_open(&desc);
}

static int converse(const chat_options *o, cli_chat *chat) {
    const bool is_seen = isatty(STDIN_FILENO) == 1;
    cli_line_reader *const reader = open_reader(o);
    if (reader == NULL) return cli_error("out of memory");
    if (is_seen) fputs("Ask something; /? lists commands, Ctrl-D ends.\n", stderr);
    int code = CLI_OK;
    while (!chat->is_over && code == CLI_OK && !cli_pipe_closed()) {
        cli_question question;
        cli_end_on_request(true);
        const cli_line_result result = cli_question_read(reader, &question);
        cli_end_on_request(false);
        if (is_seen) cli_take_interrupt();
        if (result == CLI_LINE_FAILED) code = CLI_FAILURE;
        if (result == CLI_LINE_END || cli_interrupted()) chat->is_over = true;
        const bool is_read = result == CLI_LINE_READ && !chat->is_over;
        if (is_read && question.is_command && cli_chat_command(chat, question.text))
            code = cli_chat_ask(chat, NULL);
        else if (is_read && !question.is_command && !cli_is_blank(question.text))
            code = cli_chat_ask(chat, question.text);
        if (is_seen && code == CLI_INTERRUPTED && cli_take_interrupt()) code = CLI_OK;
        /* A question or a command that failed is reported; a person goes on. */
        if (is_seen && result == CLI_LINE_READ && code == CLI_FAILURE) code = CLI_OK;
        if (!is_seen && code == CLI_OK && cli_has_failed()) code = CLI_FAILURE;
        free(question.text);
    }
    cli_line_close(reader);
    return cli_interrupted() ? CLI_INTERRUPTED : code;
}

static int run(void *given) {
    const chat_options *const o = given;
    cli_sampling sampling;
    cli_chat chat = {.has_tools = o->tools != NULL};
    int code = cli_sampling_read(&cli_chat_command_line, &o->sampling, &sampling);
    chat.session = (wick_session_desc){.context_length = o->context_length,
                                       .chunk_length = o->engine.chunk_length,
                                       .cache = (wick_cache)o->engine.cache,
                                       .max_tokens = o->max_tokens,
                                       .sampler = sampling.desc,
                                       .speculate = (wick_speculate)o->engine.speculate,
                                       .special = true};
    if (o->prefix_cache != NULL) cli_keep_closed_pipe();
    if (o->prompt == NULL) cli_echo_off(); /* keys wait for the first prompt */
    if (code == CLI_OK) code = prepare(o, &chat);
    cli_keep_interrupt();
    if (code == CLI_OK)
        code = o->prompt == NULL         ? converse(o, &chat)
               : cli_is_blank(o->prompt) ? cli_error("there is no question: -p has an empty text")
                                         : cli_chat_ask(&chat, o->prompt);
    wick_chat_close(chat.talk);
    if (code == CLI_OK || code == CLI_INTERRUPTED)
        cli_save_prefixes(chat.engine.model, o->prefix_cache);
    cli_engine_close(&chat.engine);
    cli_sampling_free(&sampling);
    return code;
}

const cli_command cli_chat_command_line = {
    .name = "chat",
    .summary = "talk with a model",
    .details = "The model's own chat template is used (docs/chat.md). Thinking is dimmed, tool "
               "calls are marked.\nCtrl-C stops an answer; /help lists the commands. Without a "
               "terminal, each line of standard\ninput is a question.\n\n"
               "  wick chat MODEL.gguf\n"
               "  wick chat MODEL.gguf --system \"Be brief.\" -p \"What is a prime?\"\n",
    .groups = groups,
    .options_size = sizeof(chat_options),
    .defaults = set_defaults,
    .run = run,
    .fetches = true,
};
