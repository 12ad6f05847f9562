/* run.c: `wick run`: answers a question, or continues a text. Standard output holds that alone. */
#define _POSIX_C_SOURCE 200809L

#include "chat.h"
#include "cli.h"
#include "engine.h"
#include "generate.h"
#include "input.h"
#include "interrupt.h"
#include "prefixes.h"
#include "sampling.h"
#include "statistics.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run_options {
    cli_engine_options engine; /* these two first, see sampling.h */
    cli_sampling_options sampling;
    const char *model;
    const char *prompt, *argument, *file, *tokens; /* at most one */
    const char *load_path, *save_path;             /* of sessions */
    const char *system, *compiled, *prefix_cache;
    uint32_t max_tokens, context_length;
    uint32_t n_logprobs, n_keep;
    cli_texts stop;
    bool raw, no_thinking, ignore_end, special, print_ids, context_shift;
} run_options;

_Static_assert(offsetof(run_options, engine) == offsetof(cli_sampling_place, engine) &&
                   offsetof(run_options, sampling) == offsetof(cli_sampling_place, sampling),
               "offsets of cli_engine_group and cli_sampling_group");

static const char default_prompt[] = "Once upon a time"; /* of the model inside the command */

static void set_defaults(void *given) {
    run_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_FAST);
    cli_sampling_defaults(&o->sampling);
}

static const cli_option prompt_options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model; without it, the tiny one built into the command tells a story",
     .kind = &cli_model,
     .offset = offsetof(run_options, model)},
    {.argument = "PROMPT",
     .help = "the question",
     .kind = &cli_text,
     .offset = offsetof(run_options, argument)},
    {.name = "prompt",
     .letter = 'p',
     .argument = "TEXT",
     .help = "the question, given as an option",
     .kind = &cli_text,
     .offset = offsetof(run_options, prompt)},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "take the question from a file, without its last line end; with --raw every byte of "
             "it; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(run_options, file)},
    {.name = "system",
     .argument = "TEXT",
     .help = "the system message",
     .kind = &cli_text,
     .offset = offsetof(run_options, system)},
    {.name = "template",
     .argument = "FILE.jinja",
     .help = "chat template to use instead of the model's own",
     .kind = &cli_in,
     .offset = offsetof(run_options, compiled)},
    {.name = "no-thinking",
     .help = "ask the template for an answer without thinking first (enable_thinking)",
     .kind = &cli_flag,
     .offset = offsetof(run_options, no_thinking)},
    {.name = "raw",
     .help = "continue the text as it is, without the model's chat template; special tokens in it "
             "are recognised",
     .kind = &cli_flag,
     .offset = offsetof(run_options, raw)},
    {.name = "tokens",
     .argument = "\"1 2 3\"",
     .help = "continue these token ids, taken as given",
     .kind = &cli_text,
     .offset = offsetof(run_options, tokens)},
};

static const cli_option output_options[] = {
    {.name = "max-tokens",
     .letter = 'n',
     .argument = "N",
     .help = "end after N tokens; 0 or -1: where the model ends or the context is full",
     .kind = &cli_limit,
     .offset = offsetof(run_options, max_tokens)},
    {.name = "stop",
     .argument = "TEXT",
     .help = "end before this text; may be given again",
     .kind = &cli_list,
     .offset = offsetof(run_options, stop)},
    {.name = "ignore-end",
     .help = "continue when the model ends the text",
     .kind = &cli_flag,
     .offset = offsetof(run_options, ignore_end)},
    {.name = "special",
     .help = "also print special tokens",
     .kind = &cli_flag,
     .offset = offsetof(run_options, special)},
    {.name = "print-ids",
     .help = "print token ids instead of text, including the end token",
     .kind = &cli_flag,
     .offset = offsetof(run_options, print_ids)},
    {.name = "logprobs",
     .argument = "N",
     .help = "for each token print a line of JSON on standard error: its log probability and the N "
             "best",
     .kind = &cli_u32,
     .offset = offsetof(run_options, n_logprobs),
     .most = 1024},
};

static const cli_option memory_options[] = {
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "tokens of prompt and text together; 0: the model's, at most 16384 and a quarter of "
             "the free memory",
     .kind = &cli_u32,
     .offset = offsetof(run_options, context_length),
     .most = INT32_MAX},
    {.name = "context-shift",
     .help = "when the context is full, continue the text without the older half of its tokens; an "
             "answer always makes room by leaving out whole messages",
     .kind = &cli_flag,
     .offset = offsetof(run_options, context_shift)},
    {.name = "keep",
     .argument = "N",
     .help = "with --context-shift: tokens at the beginning that stay",
     .kind = &cli_u32,
     .offset = offsetof(run_options, n_keep),
     .most = INT32_MAX},
};

static const cli_option session_options[] = {
    {.name = "load-session",
     .argument = "FILE",
     .help = "continue a session that --save-session wrote; a prompt is appended to it",
     .kind = &cli_text, /* not cli_in: read whole before --save-session may replace it */
     .offset = offsetof(run_options, load_path)},
    {.name = "save-session",
     .argument = "FILE",
     .help = "write the session at the end, with its cache: nothing has to be read again",
     .kind = &cli_out,
     .offset = offsetof(run_options, save_path)},
    CLI_PREFIX_CACHE(run_options, prefix_cache),
};

static const cli_group prompt_group = {"Prompt", prompt_options,
                                       sizeof prompt_options / sizeof *prompt_options};
static const cli_group output_group = {"Output", output_options,
                                       sizeof output_options / sizeof *output_options};
static const cli_group memory_group = {"Memory", memory_options,
                                       sizeof memory_options / sizeof *memory_options};
static const cli_group session_group = {"Session", session_options,
                                        sizeof session_options / sizeof *session_options};
static const cli_group *const groups[] = {&prompt_group,     &output_group, &cli_sampling_group,
                                          &session_group,    &memory_group, &cli_speculation_group,
                                          &cli_engine_group, NULL};

/* `echo text | wick run`: the line's end belongs to echo, or to an editor, not to the prompt. */
static void drop_line_end(cli_input *input) {
    if (input->size == 0 || input->text[input->size - 1] != '\n') return;
    input->size--;
    if (input->size > 0 && input->text[input->size - 1] == '\r') input->size--;
    input->text[input->size] = '\0';
}

static int read_stdin(const run_options *o, cli_input *prompt) {
    const bool has_stdin = isatty(STDIN_FILENO) == 0;
    if (!has_stdin && o->load_path != NULL) return cli_read_text("", prompt);
    if (!has_stdin && o->model != NULL)
        return cli_usage_error(&cli_run, "no prompt: give one after the model");
    if (has_stdin) {
        const int code = cli_read_file(NULL, prompt);
        if (code != CLI_OK) return code;
        drop_line_end(prompt);
        if (prompt->size > 0 || o->model != NULL || o->load_path != NULL) return CLI_OK;
        cli_input_free(prompt);
    }
    return cli_read_text(default_prompt, prompt);
}

/* The prompt is text to continue, even where the model has a chat template. */
static bool is_text(const run_options *o) {
    return o->raw || o->tokens != NULL || o->load_path != NULL;
}

static bool is_for_template(const run_options *o) {
    return o->system != NULL || o->compiled != NULL || o->no_thinking;
}

/* prompt: text, or ids where --tokens was given. */
static int read_prompt(const run_options *o, cli_input *prompt) {
    const char *const text = o->prompt != NULL     ? o->prompt
                             : o->argument != NULL ? o->argument
                                                   : o->tokens;
    const int n_given =
        (o->prompt != NULL) + (o->argument != NULL) + (o->file != NULL) + (o->tokens != NULL);
    if (n_given > 1)
        return cli_usage_error(&cli_run,
                               "PROMPT, --prompt, --file and --tokens exclude each other");
    if (is_text(o) && is_for_template(o))
        return cli_usage_error(&cli_run, "--system, --template and --no-thinking are for answers, "
                                         "not for a text to continue");
    if (o->n_keep > 0 && !o->context_shift)
        return cli_usage_error(&cli_run, "--keep says what stays with --context-shift");
    if (o->file != NULL) {
        const int code = cli_read_file(o->file, prompt);
        if (code != CLI_OK) return code;
        if (!is_text(o)) drop_line_end(prompt);
    } else if (n_given == 1) {
        return cli_read_text(text, prompt);
    } else {
        const int code = read_stdin(o, prompt);
        if (code != CLI_OK) return code;
    }
    const size_t length = strlen(prompt->text);
    if (length == prompt->size) return CLI_OK;
    return cli_error("the prompt contains a zero byte at %zu; remove it, or pass token ids with "
                     "--tokens ('wick tokenize --file' accepts it)",
                     length);
}

static int append_prompt(const run_options *o, const cli_input *prompt, const cli_engine *engine,
                         wick_session *session) {
    wick_status status;
    if (o->tokens != NULL) {
        uint32_t *ids = NULL;
        size_t n = 0;
        const int code = cli_parse_ids(prompt, &ids, &n);
        if (code != CLI_OK) return code;
        if (n == 0) {
            free(ids);
            return cli_error("--tokens is empty: give ids like \"1 403 407\"");
        }
        status = wick_session_append_tokens(session, ids, n);
        free(ids);
    } else if (o->load_path != NULL && prompt->size == 0) {
        status = wick_session_append_tokens(session, NULL, 0); /* goes on */
    } else {
        status = wick_session_append_text(session, prompt->text);
    }
    if (status == WICK_OK) return CLI_OK;
    const bool is_long = status == WICK_ERR_STATE;
    return cli_report_step(session, engine->device,
                           is_long ? "a larger --context is needed" : NULL);
}

static const char *load_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_MISMATCH: return "it needs the model and the --cache that it was saved with";
    case WICK_ERR_STATE: return "a larger --context is needed";
    case WICK_ERR_FORMAT:
    case WICK_ERR_UNSUPPORTED: return "give the text again, with -f";
    case WICK_ERR_NOT_FOUND: return "check the path";
    default: return NULL;
    }
}

static int load_session(const run_options *o, wick_session *session) {
    wick_error error = {0};
    if (o->load_path == NULL || wick_session_load(session, o->load_path, &error) == WICK_OK)
        return CLI_OK;
    return cli_report_file(&error, o->load_path, load_hint(error.status));
}

/* Warns of two begin tokens: most models were not trained on such a prompt. */
static void warn_two_begins(const wick_session *session, const wick_tokenizer *tokenizer) {
    size_t n = 0;
    const uint32_t *const ids = wick_session_tokens(session, &n);
    const uint32_t begin = wick_token_begin(tokenizer);
    if (n >= 2 && ids[0] == begin && ids[1] == begin)
        cli_warn(
            "the prompt begins with the begin token, which Wick puts first anyway: it is there "
            "twice");
}

/* A chunk is no longer than the prompt can be, so that no kernels for longer ones are compiled: a
 * token is a byte at least, and a few come in front, or a template around it, most of which are
 * short. What is loaded may have to be read again. */
static wick_session_desc session_desc(const run_options *o, const wick_sampler_desc *sampler,
                                      const cli_input *prompt) {
    enum { IN_FRONT = 4, AROUND = 96 };
    const uint32_t chunk = o->engine.chunk_length;
    const size_t system = o->system != NULL ? strlen(o->system) : 0;
    const size_t more = is_text(o) ? IN_FRONT : AROUND + system;
    const size_t most = o->load_path != NULL ? chunk : prompt->size + more;
    return (wick_session_desc){.context_length = o->context_length,
                               .chunk_length = most < chunk ? (uint32_t)most : chunk,
                               .cache = (wick_cache)o->engine.cache,
                               .max_tokens = o->max_tokens,
                               .sampler = *sampler,
                               .speculate = (wick_speculate)o->engine.speculate,
                               .n_logprobs = o->n_logprobs,
                               .stop = o->stop.items,
                               .n_stop = o->stop.n,
                               .special = o->special,
                               .ignore_end = o->ignore_end};
}

/* Figures begin on a line of their own, and so does the shell's prompt. */
static void end_line(const cli_generation *generation, bool has_figures) {
    const bool is_open = generation->last_byte != 0 && generation->last_byte != '\n';
    const bool is_seen = isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    if (is_open && (has_figures || is_seen)) fputc('\n', stderr);
}

/* They are dimmed where they stand below the text. */
static void print_figures(const run_options *o, const cli_engine *engine,
                          const cli_generation *generation) {
    const bool is_dimmed = cli_has_colors(STDERR_FILENO) && isatty(STDOUT_FILENO) == 1;
    if (is_dimmed) fputs("\033[2m", stderr);
    if (!cli_common.quiet)
        cli_print_statistics(engine->model, generation->session, generation->reason);
    if (o->engine.verify) cli_print_verified(engine->model);
    if (o->engine.profile) cli_print_profile(engine->model);
    if (is_dimmed) fputs("\033[0m", stderr);
}

static int save_session(const run_options *o, wick_session *session) {
    wick_error error = {0};
    if (o->save_path == NULL || wick_session_save(session, o->save_path, &error) == WICK_OK)
        return CLI_OK;
    const int code = cli_report_file(&error, o->save_path, NULL);
    return cli_interrupted() ? CLI_INTERRUPTED : code;
}

/* The prompt is in the session, or asked in chat; continued: the text that goes on, or NULL. */
static int generate(const run_options *o, const cli_engine *engine, wick_session *session,
                    wick_chat *chat, const char *continued) {
    cli_generation generation = {.device = engine->device,
                                 .session = session,
                                 .chat = chat,
                                 .tokenizer = wick_model_tokenizer(engine->model),
                                 .prints_ids = o->print_ids,
                                 .is_shown = isatty(STDOUT_FILENO) == 1,
                                 .is_saved = o->save_path != NULL,
                                 .prompt = continued};
    const int code = cli_generate(&generation);
    const bool has_run = code == CLI_OK || code == CLI_INTERRUPTED;
    const bool has_figures = !cli_common.quiet || o->engine.verify || o->engine.profile;
    end_line(&generation, has_run && has_figures);
    if (has_run) print_figures(o, engine, &generation);
    const int saved = has_run ? save_session(o, session) : CLI_OK;
    return saved != CLI_OK ? saved : code;
}

static int continue_text(const run_options *o, const wick_session_desc *desc,
                         const cli_input *prompt, const cli_engine *engine) {
    wick_session *session = NULL;
    wick_error error = {0};
    wick_session_desc shifting = *desc;
    shifting.context_shift = o->context_shift;
    shifting.n_keep = o->n_keep;
    if (wick_session_open(engine->model, &shifting, &session, &error) != WICK_OK)
        return cli_report_session(&error, &o->sampling);
    cli_warn_context(engine->model, desc->context_length);
    cli_note_short_context(engine->model, desc->context_length);
    int code = load_session(o, session);
    if (code == CLI_OK) code = append_prompt(o, prompt, engine, session);
    if (code == CLI_OK && o->tokens == NULL)
        warn_two_begins(session, wick_model_tokenizer(engine->model));
    if (code == CLI_OK)
        code = generate(o, engine, session, NULL, o->tokens == NULL ? prompt->text : NULL);
    wick_session_close(session);
    return code;
}

static int answer(const run_options *o, const char *question, const cli_engine *engine,
                  wick_chat *chat) {
    if (cli_is_blank(question))
        return cli_error("there is no question: give one after the model, or with -p");
    if (wick_chat_send(chat, question) != WICK_OK) return cli_report_chat(chat);
    return generate(o, engine, wick_chat_session(chat), chat, NULL);
}

/* A model with a template answers; one without continues the text. */
static int answer_or_continue(const run_options *o, const wick_chat_desc *desc,
                              const cli_input *prompt, const cli_engine *engine) {
    wick_chat *chat = NULL;
    wick_error error = {0};
    if (is_text(o)) return continue_text(o, &desc->session, prompt, engine);
    const wick_status status = wick_chat_open(engine->model, desc, &chat, &error);
    if (status == WICK_ERR_NOT_FOUND && is_for_template(o))
        return cli_error("this model has no chat template, which --system and --no-thinking need; "
                         "give one with --template");
    if (status == WICK_ERR_NOT_FOUND) return continue_text(o, &desc->session, prompt, engine);
    if (status == WICK_ERR_FORMAT && !cli_is_of_grammar(&error))
        return cli_report(&error, o->compiled == NULL ? "--raw continues the text as it is" : NULL);
    if (status != WICK_OK) return cli_report_session(&error, &o->sampling);
    cli_warn_context(engine->model, desc->session.context_length);
    cli_note_short_context(engine->model, desc->session.context_length);
    const int code = answer(o, prompt->text, engine, chat);
    wick_chat_close(chat);
    return code;
}

static int run(void *given) {
    const run_options *const o = given;
    if (o->save_path != NULL || o->prefix_cache != NULL) cli_keep_closed_pipe();
    cli_input prompt = {0}, compiled = {0};
    cli_sampling sampling;
    int code = cli_sampling_read(&cli_run, &o->sampling, &sampling);
    if (code == CLI_OK) code = read_prompt(o, &prompt);
    cli_engine engine = {0};
    wick_chat_desc desc = {.session = session_desc(o, &sampling.desc, &prompt),
                           .system = o->system,
                           .thinking = o->no_thinking ? WICK_THINKING_OFF : WICK_THINKING_DEFAULT,
                           .now = cli_local_time(),
                           .stops = cli_stops};
    if (code == CLI_OK) code = cli_read_template(o->compiled, &compiled, &desc.chat_template);
    if (code == CLI_OK) code = cli_engine_open(&engine, &o->engine, &desc.session, o->model);
    desc.session.draft = engine.draft;
    if (code == CLI_OK) {
        cli_load_prefixes(engine.model, o->prefix_cache);
        code = answer_or_continue(o, &desc, &prompt, &engine);
        cli_save_prefixes(engine.model, o->prefix_cache);
    }
    cli_engine_close(&engine);
    cli_input_free(&compiled);
    cli_input_free(&prompt);
    cli_sampling_free(&sampling);
    return code;
}

const cli_command cli_run = {
    .name = "run",
    .summary = "answer a question, or continue a text",
    .details =
        "A model with a chat template answers the question; without one, or with --raw, --tokens "
        "or\n--load-session, the text is continued.\n"
        "Without a prompt the text comes from standard input (less one line end), unless "
        "that is a\nterminal. Ctrl-C ends the text and prints the statistics; a second one "
        "ends the program.\n\n"
        "Models: GGUF files with tensors of f32, f16, bf16 or any block type; docs/families.md "
        "lists the\narchitectures, docs/tokenizers.md the tokenizers. Others are refused by "
        "name.\n\n"
        "  wick run MODEL.gguf \"What is the capital of France?\"\n"
        "  wick run MODEL.gguf --system \"Be brief.\" -f question.txt\n"
        "  wick run MODEL.gguf -p \"The capital of France is\" --raw -n 20 --temp 0\n"
        "  git log -1 | wick run MODEL.gguf --raw -n 60 --stop $'\\n\\n'\n"
        "  wick run MODEL.gguf -f story.txt --raw -n 200 --save-session story.session\n"
        "  wick run MODEL.gguf --load-session story.session -n 200\n",
    .groups = groups,
    .options_size = sizeof(run_options),
    .defaults = set_defaults,
    .run = run,
    .fetches = true,
};
