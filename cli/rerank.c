/* rerank.c: `wick rerank`: texts in the order in which they answer a query. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "embedding.h"
#include "engine.h"
#include "json_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rerank_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *query, *file;
    cli_texts texts;
    uint32_t context_length, n_best;
    bool is_json;
} rerank_options;

_Static_assert(offsetof(rerank_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    rerank_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_EXACT);
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model, a reranker",
     .kind = &cli_model,
     .offset = offsetof(rerank_options, model),
     .is_required = true},
    {.argument = "QUERY",
     .help = "what the texts are to answer",
     .kind = &cli_text,
     .offset = offsetof(rerank_options, query),
     .is_required = true},
    {.argument = "TEXT...",
     .help = "the texts",
     .kind = &cli_list,
     .offset = offsetof(rerank_options, texts)},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "each line of the file is a text, empty lines too; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(rerank_options, file)},
    {.name = "top",
     .argument = "N",
     .help = "how many are printed; 0: all",
     .kind = &cli_u32,
     .offset = offsetof(rerank_options, n_best),
     .most = UINT32_MAX},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "most tokens of the query and a text; 0: what the model was made for, at most 4096",
     .kind = &cli_u32,
     .offset = offsetof(rerank_options, context_length),
     .most = INT32_MAX},
    {.name = "json",
     .help = "print a line of JSON for each text",
     .kind = &cli_flag,
     .offset = offsetof(rerank_options, is_json)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_group, NULL};

typedef struct ranked {
    size_t index;
    float score;
} ranked;

static int by_score(const void *a, const void *b) {
    const ranked *const x = a, *const y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static int read_texts(const rerank_options *o, cli_text_list *texts) {
    if ((o->file != NULL) == (o->texts.n > 0))
        return cli_usage_error(&cli_rerank, o->file != NULL ? "TEXT and --file exclude each other"
                                                            : "no texts: give TEXT or --file");
    return o->file != NULL ? cli_list_lines(o->file, texts) : cli_list_arguments(&o->texts, texts);
}

/* Texts [first, first + n). */
static int score(const rerank_options *o, const cli_engine *engine, wick_embedder *embedder,
                 const cli_text_list *texts, size_t first, size_t n, ranked *order) {
    const wick_string query = {o->query, strlen(o->query)};
    wick_status status =
        wick_embedder_start_pairs(embedder, query, texts->items + first, texts->sizes + first, n);
    if (status == WICK_OK) status = cli_embedder_wait(embedder, engine->device);
    if (status == WICK_ERR_CANCELLED) return CLI_INTERRUPTED;
    if (status != WICK_OK)
        return cli_report_embedder(embedder, engine->device, cli_step_hint(status));
    size_t n_rows;
    wick_model_info info;
    wick_model_get_info(engine->model, &info);
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    for (size_t i = 0; i < n; i++) order[first + i] = (ranked){first + i, rows[i * info.n_labels]};
    return CLI_OK;
}

static void print(const rerank_options *o, const cli_text_list *texts, const ranked *order) {
    const size_t n = o->n_best > 0 && o->n_best < texts->n ? o->n_best : texts->n;
    for (size_t i = 0; i < n; i++) {
        const size_t at = order[i].index;
        if (!o->is_json) {
            printf("%9.4f  %.*s\n", (double)order[i].score, (int)texts->sizes[at],
                   texts->items[at]);
            continue;
        }
        cli_json json = {.out = stdout, .is_line = true};
        cli_json_open(&json, '{');
        cli_json_put_unsigned(&json, "index", at);
        cli_json_put_number(&json, "score", (double)order[i].score);
        cli_json_key(&json, "text");
        cli_json_bytes(&json, texts->items[at], texts->sizes[at]);
        cli_json_close(&json, '}');
    }
}

static int rank(const rerank_options *o, const cli_engine *engine, const cli_text_list *texts,
                ranked *order) {
    enum { GROUP = 128 }; /* texts that are given at once */
    const wick_embedder_desc desc = {.max_tokens = o->context_length,
                                     .chunk_length = o->engine.chunk_length,
                                     .pooling = WICK_POOLING_RANK};
    wick_embedder *embedder;
    wick_error error = {0};
    if (wick_embedder_open(engine->model, &desc, &embedder, &error) != WICK_OK)
        return cli_report(&error, NULL);
    int code = CLI_OK;
    cli_progress line = cli_progress_begin("reading", "texts");
    for (size_t i = 0; i < texts->n && code == CLI_OK; i += GROUP) {
        cli_progress_show(&line, i, texts->n);
        const size_t n = texts->n - i < GROUP ? texts->n - i : GROUP;
        code = score(o, engine, embedder, texts, i, n, order);
    }
    cli_progress_clear(&line);
    wick_embedder_close(embedder);
    if (code != CLI_OK) return code;
    qsort(order, texts->n, sizeof *order, by_score);
    print(o, texts, order);
    return CLI_OK;
}

static int run(void *given) {
    const rerank_options *const o = given;
    cli_text_list texts = {.n = 0};
    cli_engine engine = {0};
    int code = read_texts(o, &texts);
    ranked *const order = calloc(texts.n > 0 ? texts.n : 1, sizeof *order);
    if (code == CLI_OK && order == NULL) code = cli_error("out of memory for %zu texts", texts.n);
    const wick_session_desc desc = {.context_length = o->context_length,
                                    .chunk_length = o->engine.chunk_length,
                                    .cache = (wick_cache)o->engine.cache,
                                    .logits = WICK_LOGITS_SCORES};
    if (code == CLI_OK) code = cli_engine_open(&engine, &o->engine, &desc, o->model);
    if (code == CLI_OK) cli_print_placement(engine.model);
    if (code == CLI_OK) code = rank(o, &engine, &texts, order);
    if (code == CLI_OK && o->engine.verify) cli_print_verified(engine.model);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    cli_engine_close(&engine);
    cli_text_list_free(&texts);
    free(order);
    return code;
}

const cli_command cli_rerank = {
    .name = "rerank",
    .summary = "order texts by how well they answer a query",
    .details = "Prints the scores of a reranker's classifier, the best text first.\n\n"
               "  wick rerank MODEL.gguf \"who wrote it?\" --file texts.txt --top 3\n",
    .groups = groups,
    .options_size = sizeof(rerank_options),
    .defaults = set_defaults,
    .run = run,
};
