/* perplexity.c: `wick perplexity`: how well a model predicts a text, and how far it is from another
 * model. */
#include "cli.h"
#include "engine.h"
#include "input.h"
#include "json_out.h"
#include "progress.h"

#include <inttypes.h>
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
     .argument = "TEXT",
     .help = "the file with the text to read",
     .kind = &cli_text,
     .offset = offsetof(perplexity_options, file)},
    {.name = "tokens",
     .argument = "\"1 2 3\"",
     .help = "token ids instead of a text, taken as given",
     .kind = &cli_text,
     .offset = offsetof(perplexity_options, tokens)},
    {.name = "context",
     .argument = "N",
     .help = "tokens of a chunk: each is read from an empty context",
     .kind = &cli_u32,
     .offset = offsetof(perplexity_options, context),
     .least = 2,
     .most = 1 << 24},
    {.name = "skip",
     .argument = "N",
     .help =
         "tokens at the beginning of a chunk that are read and not scored; 1: all that have one "
         "before them are scored; 0: half of the chunk and one, as in llama.cpp",
     .kind = &cli_u32,
     .offset = offsetof(perplexity_options, skip),
     .most = 1 << 24},
    {.name = "kl",
     .argument = "BASE.gguf",
     .help = "compare with this model, of the same vocabulary: KL divergence and how often both "
             "hold the same token for the likeliest",
     .kind = &cli_model,
     .offset = offsetof(perplexity_options, base)},
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(perplexity_options, json)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_group, NULL};

/* ---- Printing ---- */

static void print_judged(const char *name, const wick_judged *judged) {
    printf("%-14s %.4f +- %.4f (negative log-likelihood %.5f +- %.5f)\n", name, judged->perplexity,
           judged->perplexity_error, judged->nll, judged->nll_error);
}

static void print_text(const perplexity_options *o, const wick_judgement *j) {
    print_judged("perplexity", &j->model);
    if (o->base != NULL) {
        print_judged("of the base", &j->base);
        printf("%-14s %.6f +- %.6f\n", "log of ratio", j->log_ratio, j->log_ratio_error);
        printf("%-14s mean %.6f +- %.6f, median %.6f, 99 %% %.6f, max %.6f\n", "KL divergence",
               j->kl, j->kl_error, j->kl_median, j->kl_99, j->kl_largest);
        printf("%-14s %.2f +- %.2f %%\n", "same top token", 100 * j->same_top,
               100 * j->same_top_error);
    }
    printf("%" PRIu64 " tokens scored in %" PRIu64 " chunk%s of %" PRIu32 "\n", j->n_scored,
           j->n_chunks, j->n_chunks == 1 ? "" : "s", o->context);
}

static void put_judged(cli_json *json, const wick_judged *judged) {
    cli_json_put_number(json, "perplexity", judged->perplexity);
    cli_json_put_number(json, "perplexity_error", judged->perplexity_error);
    cli_json_put_number(json, "nll", judged->nll);
    cli_json_put_number(json, "nll_error", judged->nll_error);
}

static void put_base(cli_json *json, const wick_judgement *j) {
    cli_json_key(json, "base");
    cli_json_open(json, '{');
    put_judged(json, &j->base);
    cli_json_close(json, '}');
    cli_json_put_number(json, "log_ratio", j->log_ratio);
    cli_json_put_number(json, "log_ratio_error", j->log_ratio_error);
    cli_json_key(json, "kl");
    cli_json_open(json, '{');
    cli_json_put_number(json, "mean", j->kl);
    cli_json_put_number(json, "mean_error", j->kl_error);
    cli_json_put_number(json, "median", j->kl_median);
    cli_json_put_number(json, "p99", j->kl_99);
    cli_json_put_number(json, "max", j->kl_largest);
    cli_json_close(json, '}');
    cli_json_put_number(json, "same_top", j->same_top);
    cli_json_put_number(json, "same_top_error", j->same_top_error);
}

static void print_json(const perplexity_options *o, const wick_judgement *j) {
    cli_json json = {.out = stdout};
    cli_json_open(&json, '{');
    put_judged(&json, &j->model);
    if (o->base != NULL) put_base(&json, j);
    cli_json_put_unsigned(&json, "context", o->context);
    cli_json_put_unsigned(&json, "chunks", j->n_chunks);
    cli_json_put_unsigned(&json, "scored", j->n_scored);
    cli_json_close(&json, '}');
}

/* ---- Reading ---- */

static wick_status poll(void *judging, wick_progress *progress, wick_error *error) {
    return wick_judge_poll(judging, progress, error);
}

static int work(wick_judging *judging, wick_device *device) {
    wick_error error = {0};
    const wick_status status = cli_poll_all("reading", poll, judging, device, &error);
    if (status < 0) return cli_report(&error, cli_step_hint(status));
    return status == WICK_OK ? CLI_OK : CLI_INTERRUPTED;
}

static int judge(const perplexity_options *o, const cli_engine *engine, wick_model *base,
                 const uint32_t *ids, size_t n) {
    const wick_judge_desc desc = {.context_length = o->context,
                                  .n_unscored = o->skip,
                                  .chunk_length = o->engine.chunk_length,
                                  .cache = (wick_cache)o->engine.cache};
    wick_judging *judging = NULL;
    wick_error error = {0};
    cli_warn_context(engine->model, o->context);
    if (wick_judge_start(engine->model, base, ids, n, &desc, &judging, &error) != WICK_OK)
        return cli_report(&error, error.status == WICK_ERR_VALUE ? "" : NULL);
    const int code = work(judging, engine->device);
    wick_judgement judgement;
    wick_judge_get(judging, &judgement);
    wick_judge_finish(judging);
    if (code == CLI_OK) (o->json ? print_json : print_text)(o, &judgement);
    return code;
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
    .summary = "measure how well a model predicts a text, and how far it is from another",
    .details = "  wick perplexity MODEL-Q4_K_M.gguf -f TEXT.txt --kl MODEL-F16.gguf\n\n"
               "The tokens of the text are cut into chunks of --context; what is left at the\n"
               "end is not read. Where the text begins with the model's begin token, so does\n"
               "every chunk, in place of its first token. Scored are the tokens that have at\n"
               "least --skip tokens of their chunk before them: perplexity is exp of the mean\n"
               "of their -log p. Errors are standard errors of the mean. docs/judging.md has\n"
               "more.\n",
    .groups = groups,
    .options_size = sizeof(perplexity_options),
    .defaults = set_defaults,
    .run = run,
};
