/* logits.c: `wick logits`: what a model thinks after every token, as a .npy file. */
#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct logits_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *tokens, *out;
} logits_options;

_Static_assert(offsetof(logits_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    logits_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_EXACT);
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model",
     .kind = &cli_model,
     .offset = offsetof(logits_options, model),
     .is_required = true},
    {.name = "tokens",
     .argument = "\"1 2 3\"",
     .help = "token ids, taken as given; 'wick tokenize --ids' makes them from text",
     .kind = &cli_text,
     .offset = offsetof(logits_options, tokens)},
    {.name = "out",
     .letter = 'o',
     .argument = "FILE.npy",
     .help = "where to write float32 [n_tokens, n_vocab]: whole or not at all",
     .kind = &cli_out,
     .offset = offsetof(logits_options, out)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_group, NULL};

typedef struct job {
    const cli_engine *engine;
    wick_session *session; /* reads all tokens, shows the logits after each */
    wick_npy_writer *writer;
    size_t row_size; /* bytes */
    size_t n_tokens;
    cli_progress line;
} job;

static bool is_finite(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

/* Every row is written when it is known: nothing grows with the number of tokens. */
static int write_rows(job *j) {
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        const wick_status status = wick_session_step(j->session, &event);
        if (status != WICK_OK)
            return cli_report_step(j->session, j->engine->device, cli_step_hint(status));
        if (event.kind == WICK_EVENT_PENDING) wick_pause(j->engine->device);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        if (!is_finite(event.logits, j->row_size / sizeof *event.logits))
            return cli_error("the logits after token %" PRIu32
                             " are not all finite numbers; the file is "
                             "damaged: fetch it again",
                             event.position);
        wick_error error = {0};
        if (wick_npy_write(j->writer, event.logits, j->row_size, &error) != WICK_OK)
            return cli_report(&error, "choose another place with --out");
        cli_progress_show(&j->line, event.position, j->n_tokens);
    }
    return CLI_OK;
}

static int write_file(const logits_options *o, job *j) {
    wick_model_info info;
    wick_model_get_info(j->engine->model, &info);
    j->row_size = info.n_vocab * sizeof(float);
    wick_error error = {0};
    const wick_shape shape = WICK_SHAPE((int64_t)j->n_tokens, (int64_t)info.n_vocab);
    if (wick_npy_start(o->out, WICK_F32, shape, &j->writer, &error) != WICK_OK)
        return cli_report(&error, "choose another place with --out");
    const int code = write_rows(j);
    cli_progress_clear(&j->line);
    if (wick_npy_finish(j->writer, code == CLI_OK, &error) != WICK_OK && code == CLI_OK)
        return cli_report(&error, "choose another place with --out");
    return code;
}

static int compute(const logits_options *o, const cli_engine *engine, const wick_session_desc *desc,
                   const uint32_t *ids, size_t n) {
    job j = {.engine = engine, .n_tokens = n, .line = cli_progress_begin("computing", "tokens")};
    wick_error error = {0};
    if (wick_session_open(engine->model, desc, &j.session, &error) != WICK_OK)
        return cli_report(&error, error.status == WICK_ERR_OUT_OF_MEMORY
                                      ? "fewer tokens need less memory"
                                      : NULL);
    cli_warn_context(engine->model, desc->context_length);
    const wick_status status = wick_session_append_tokens(j.session, ids, n);
    const int code =
        status == WICK_OK ? write_file(o, &j) : cli_report_step(j.session, engine->device, NULL);
    wick_session_close(j.session);
    return code;
}

static int read_ids(const logits_options *o, uint32_t **ids, size_t *n) {
    if (o->tokens == NULL) return cli_usage_error(&cli_logits, "--tokens is missing");
    if (o->out == NULL) return cli_usage_error(&cli_logits, "--out is missing");
    if (strcmp(o->out, "-") == 0)
        return cli_usage_error(&cli_logits, "--out: '-' would be standard output, which takes no "
                                            "arrays; './-' is a file of that name");
    cli_input input = {0};
    int code = cli_read_text(o->tokens, &input);
    if (code == CLI_OK) code = cli_parse_ids(&input, ids, n);
    cli_input_free(&input);
    if (code == CLI_OK && *n == 0)
        return cli_error("--tokens is empty: give ids like \"1 403 407\"");
    return code;
}

static int run(void *given) {
    const logits_options *const o = given;
    cli_keep_closed_pipe();
    uint32_t *ids = NULL;
    size_t n = 0;
    int code = read_ids(o, &ids, &n);
    cli_engine engine = {0};
    const wick_session_desc desc = {.context_length = (uint32_t)n,
                                    .chunk_length = o->engine.chunk_length,
                                    .cache = (wick_cache)o->engine.cache,
                                    .logits = WICK_LOGITS_ALL};
    if (code == CLI_OK) code = cli_engine_open(&engine, &o->engine, &desc, o->model);
    if (code == CLI_OK) cli_print_placement(engine.model);
    if (code == CLI_OK) code = compute(o, &engine, &desc, ids, n);
    if (code == CLI_OK && o->engine.verify) cli_print_verified(engine.model);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    cli_engine_close(&engine);
    free(ids);
    return code;
}

const cli_command cli_logits = {
    .name = "logits",
    .summary = "write the logits after every token to a .npy file",
    .details = "  wick logits MODEL.gguf --tokens \"1 403 407\" --out logits.npy\n",
    .groups = groups,
    .options_size = sizeof(logits_options),
    .defaults = set_defaults,
    .run = run,
};
