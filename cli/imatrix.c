/* imatrix.c: `wick imatrix`: how much each channel of a model matters, for `wick quantize`. */
#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct imatrix_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *file, *out;
    uint32_t length;
    bool force;
} imatrix_options;

_Static_assert(offsetof(imatrix_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    imatrix_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_FAST);
    o->engine.backend = WICK_BACKEND_CPU;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model, preferably not quantized yet",
     .kind = &cli_model,
     .offset = offsetof(imatrix_options, model),
     .is_required = true},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "the text to read, of the kind that the model is used for; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(imatrix_options, file)},
    {.name = "out",
     .letter = 'o',
     .argument = "FILE",
     .help = "the GGUF file to write, for 'wick quantize --imatrix'",
     .kind = &cli_out,
     .offset = offsetof(imatrix_options, out)},
    {.name = "length",
     .alias = "context",
     .letter = 'c',
     .argument = "N",
     .help = "tokens of a chunk, a power of two; 0: 512, or less if the model reads less at once",
     .kind = &cli_u32,
     .offset = offsetof(imatrix_options, length),
     .most = 8192},
    {.name = "force",
     .help = "replace an existing file",
     .kind = &cli_flag,
     .offset = offsetof(imatrix_options, force)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_host_group, NULL};

static wick_status poll(void *imatrix, wick_progress *progress, wick_error *error) {
    return wick_imatrix_poll(imatrix, progress, error);
}

static int work(wick_imatrix *imatrix) {
    wick_error error = {0};
    const cli_job job = {.what = "reading", .unit = "tokens", .poll = poll, .job = imatrix};
    const wick_status status = cli_poll_all(&job, &error);
    if (status == WICK_ERR_DEVICE) return cli_report(&error, "the file is damaged: fetch it again");
    if (status < 0) return cli_report(&error, cli_step_hint(status));
    return status == WICK_OK ? CLI_OK : CLI_INTERRUPTED;
}

static const char OUT_HINT[] = "choose another place with --out";

static const char *start_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_VALUE: return "see --length";
    case WICK_ERR_STATE: return "--force replaces it";
    case WICK_ERR_NOT_FOUND:
    case WICK_ERR_IO: return OUT_HINT;
    default: return NULL;
    }
}

static int compute(const imatrix_options *o, const cli_engine *engine, const uint32_t *ids,
                   size_t n) {
    const wick_imatrix_desc desc = {
        .path = o->out, .dataset = o->file, .chunk_length = o->length, .replace = o->force};
    wick_imatrix *imatrix = NULL;
    wick_error error = {0};
    if (wick_imatrix_start(engine->model, ids, n, &desc, &imatrix, &error) != WICK_OK)
        return cli_report(&error, start_hint(error.status));
    const int code = work(imatrix);
    if (wick_imatrix_finish(imatrix, code == CLI_OK, &error) != WICK_OK && code == CLI_OK)
        return cli_report(&error, OUT_HINT);
    return code;
}

static int run(void *given) {
    const imatrix_options *const o = given;
    if (o->file == NULL) return cli_usage_error(&cli_imatrix, "--file is missing");
    if (o->out == NULL) return cli_usage_error(&cli_imatrix, "--out is missing");
    cli_keep_closed_pipe();
    cli_engine engine = {0};
    uint32_t *ids = NULL;
    size_t n = 0;
    int code = cli_engine_open(&engine, &o->engine, NULL, o->model);
    if (code == CLI_OK && o->length > 0) cli_warn_context(engine.model, o->length);
    if (code == CLI_OK)
        code = cli_read_tokens(wick_model_tokenizer(engine.model), o->file, &ids, &n);
    if (code == CLI_OK) code = compute(o, &engine, ids, n);
    cli_engine_close(&engine);
    free(ids);
    return code;
}

const cli_command cli_imatrix = {
    .name = "imatrix",
    .summary = "measure how much each channel of a model matters, for 'wick quantize'",
    .details = "  wick imatrix MODEL-F16.gguf -f TEXT.txt -o MODEL.imatrix.gguf\n"
               "  wick quantize MODEL-F16.gguf MODEL-Q4_K_M.gguf Q4_K_M --imatrix "
               "MODEL.imatrix.gguf\n",
    .groups = groups,
    .options_size = sizeof(imatrix_options),
    .defaults = set_defaults,
    .run = run,
};
