/* perplexity.c: `wick perplexity`: how well a model predicts a text, and how far it is from another
 * model. */
#include "cli.h"
#include "engine.h"
#include "input.h"
#include "judged.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct perplexity_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *file, *tokens, *base;
    uint32_t context, skip;
    bool json;
} perplexity_options;

_Static_assert(offsetof(perplexity_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    perplexity_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_EXACT);
    o->context = 512;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model",
     .kind = &cli_model,
     .offset = offsetof(perplexity_options, model),
     .is_required = true},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "the text to read; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(perplexity_options, file)},
    {.name = "tokens",
     .argument = "\"1 2 3\"",
     .help = "token ids instead of a text, taken as given",
     .kind = &cli_text,
     .offset = offsetof(perplexity_options, tokens)},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "tokens of a chunk: each is read from an empty context",
     .kind = &cli_u32,
     .offset = offsetof(perplexity_options, context),
     .least = 2,
     .most = 1 << 24},
    {.name = "skip",
     .argument = "N",
     .help =
         "tokens at the beginning of a chunk that are read but not scored; 1: only the first one; "
         "0: half of the chunk and one, as in llama.cpp",
     .kind = &cli_u32,
     .offset = offsetof(perplexity_options, skip),
     .most = 1 << 24},
    {.name = "kl",
     .argument = "BASE.gguf",
     .help = "compare with this model of the same vocabulary: KL divergence, and how "
             "often both rate the same token likeliest",
     .kind = &cli_model,
     .offset = offsetof(perplexity_options, base)},
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(perplexity_options, json)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_group, NULL};

/* ---- Reading ---- */

typedef struct reading {
    wick_judging *judging;
    uint32_t context;
    bool has_base;
    cli_judged result;
    uint64_t n_seen; /* chunks */
} reading;

static wick_status poll(void *job, wick_progress *progress, wick_error *error) {
    return wick_judge_poll(((reading *)job)->judging, progress, error);
}

/* The end of row i, in chunks. */
static uint64_t row_end(const cli_judged *result, size_t i) {
    return result->n_chunks * (i + 1) / result->n_rows;
}

/* At the end of a chunk: the estimate so far. With a base it is costly, and is made for rows alone.
 */
static void look(void *job, const wick_progress *progress, cli_progress *line) {
    reading *const r = job;
    cli_judged *const result = &r->result;
    const uint64_t n_read = progress->done / r->context;
    if (n_read == r->n_seen) return;
    r->n_seen = n_read;
    if (result->n_chunks == 0) {
        result->n_chunks = progress->total / r->context;
        result->n_rows =
            result->n_chunks < CLI_JUDGED_ROWS ? (size_t)result->n_chunks : CLI_JUDGED_ROWS;
    }
    const bool is_row = n_read == row_end(result, result->n_full);
    if (r->has_base && !is_row) return;
    wick_judgement j;
    wick_judge_get(r->judging, &j);
    snprintf(line->note, sizeof line->note, "perplexity %.2f", j.model.perplexity);
    if (is_row) cli_judged_add_row(result, &j);
}

static int judge(const perplexity_options *o, const cli_engine *engine, wick_model *base,
                 const uint32_t *ids, size_t n) {
    const wick_judge_desc desc = {.context_length = o->context,
                                  .n_unscored = o->skip,
                                  .chunk_length = o->engine.chunk_length,
                                  .cache = (wick_cache)o->engine.cache};
    reading r = {
        .context = o->context, .has_base = base != NULL, .result = {.context = o->context}};
    r.result.has_base = r.has_base;
    wick_error error = {0};
    cli_warn_context(engine->model, o->context);
    if (wick_judge_start(engine->model, base, ids, n, &desc, &r.judging, &error) != WICK_OK)
        return cli_report(&error, error.status == WICK_ERR_VALUE ? "" : NULL);
    const cli_job job = {.what = "reading",
                         .unit = "tokens",
                         .poll = poll,
                         .after = look,
                         .job = &r,
                         .device = engine->device};
    const wick_status status = cli_poll_all(&job, &error);
    wick_judge_get(r.judging, &r.result.judgement);
    wick_judge_finish(r.judging);
    if (status < 0) return cli_report(&error, cli_step_hint(status));
    r.result.is_stopped = status != WICK_OK;
    cli_judged_print(&r.result, o->json);
    return r.result.is_stopped ? CLI_INTERRUPTED : CLI_OK;
}

static int read_ids(const perplexity_options *o, const cli_engine *engine, uint32_t **ids,
                    size_t *n) {
    if (o->file != NULL)
        return cli_read_tokens(wick_model_tokenizer(engine->model), o->file, ids, n);
    cli_input input = {0};
    int code = cli_read_text(o->tokens, &input);
    if (code == CLI_OK) code = cli_parse_ids(&input, ids, n);
    cli_input_free(&input);
    return code;
}

static int run(void *given) {
    const perplexity_options *const o = given;
    if ((o->file == NULL) == (o->tokens == NULL))
        return cli_usage_error(&cli_perplexity, "either --file or --tokens is needed");
    wick_session_desc sessions = {.context_length = o->context,
                                  .chunk_length = o->engine.chunk_length,
                                  .cache = (wick_cache)o->engine.cache,
                                  .logits = WICK_LOGITS_ALL};
    cli_engine engine = {0};
    wick_model *base = NULL;
    uint32_t *ids = NULL;
    size_t n = 0;
    int code = cli_engine_open(&engine, &o->engine, &sessions, o->model);
    if (code == CLI_OK) code = read_ids(o, &engine, &ids, &n);
    sessions.cache = WICK_CACHE_AUTO; /* the base's, see wick_judge_desc */
    if (code == CLI_OK && o->base != NULL)
        code = cli_engine_load(&engine, &o->engine, &sessions, o->base, &base);
    if (code == CLI_OK) cli_print_placement(engine.model);
    if (code == CLI_OK) code = judge(o, &engine, base, ids, n);
    if (code == CLI_OK && o->engine.verify) cli_print_verified(engine.model);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    wick_model_close(base);
    cli_engine_close(&engine);
    free(ids);
    return code;
}

const cli_command cli_perplexity = {
    .name = "perplexity",
    .summary = "measure how well a model predicts a text, and how far it is from another model",
    .details = "  wick perplexity MODEL-Q4_K_M.gguf -f TEXT.txt --kl MODEL-F16.gguf\n\n"
               "The tokens of the text are cut into chunks of --context; what is left after the\n"
               "last whole chunk is not read. Where the text begins with the model's begin\n"
               "token, so does every chunk, in place of its first token. A token is scored if\n"
               "at least --skip tokens of its chunk come before it: perplexity is exp of the\n"
               "mean of their -log p. Errors are standard errors of the mean. Ctrl-C ends with\n"
               "the estimate so far. docs/judging.md has more.\n",
    .groups = groups,
    .options_size = sizeof(perplexity_options),
    .defaults = set_defaults,
    .run = run,
};
