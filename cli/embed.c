/* embed.c: `wick embed`: texts as vectors, as a .npy file or as JSON. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "embedding.h"
#include "engine.h"
#include "interrupt.h"
#include "json_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct embed_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *tokens, *file, *out;
    cli_texts texts;
    int pooling; /* wick_pooling */
    uint32_t context_length;
    bool is_raw;
} embed_options;

_Static_assert(offsetof(embed_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    embed_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_EXACT);
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model",
     .kind = &cli_model,
     .offset = offsetof(embed_options, model),
     .is_required = true},
    {.argument = "TEXT...",
     .help = "the texts; each becomes a vector",
     .kind = &cli_list,
     .offset = offsetof(embed_options, texts)},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "each line of the file is a text, empty lines too; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(embed_options, file)},
    {.name = "tokens",
     .argument = "\"1 2 3\"",
     .help = "one text as token ids, taken as given",
     .kind = &cli_text,
     .offset = offsetof(embed_options, tokens)},
    {.name = "pooling",
     .argument = "auto|none|mean|cls|last",
     .help = "how the vectors of the tokens become one; none: print all of them",
     .kind = &cli_word,
     .offset = offsetof(embed_options, pooling)},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "most tokens of a text; 0: what the model was made for, at most 4096",
     .kind = &cli_u32,
     .offset = offsetof(embed_options, context_length),
     .most = INT32_MAX},
    {.name = "raw",
     .help = "do not scale the vectors to length 1",
     .kind = &cli_flag,
     .offset = offsetof(embed_options, is_raw)},
    {.name = "out",
     .letter = 'o',
     .argument = "FILE.npy",
     .help = "write float32 [n_texts, n_embd], whole or not at all, instead of JSON",
     .kind = &cli_out,
     .offset = offsetof(embed_options, out)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_engine_group, NULL};

/* What is to be embedded, by one of the three ways. */
typedef struct texts {
    cli_text_list list; /* empty: ids */
    size_t n;
    uint32_t *ids; /* [n_ids] */
    size_t n_ids;
} texts;

typedef struct job {
    const embed_options *options;
    const cli_engine *engine;
    const texts *texts;
    wick_embedder *embedder;
    size_t n_embd;
    wick_npy_writer *writer; /* NULL: not begun, or JSON */
} job;

/* ---- Input ---- */

static int read_ids(const char *text, texts *t) {
    cli_input input = {0};
    int code = cli_read_text(text, &input);
    if (code == CLI_OK) code = cli_parse_ids(&input, &t->ids, &t->n_ids);
    cli_input_free(&input);
    if (code == CLI_OK && t->n_ids == 0)
        return cli_error("--tokens is empty: give ids like \"1 403 407\"");
    t->n = 1;
    return code;
}

static int read_texts(const embed_options *o, texts *t) {
    const int n_ways = (o->tokens != NULL) + (o->file != NULL) + (o->texts.n > 0);
    if (n_ways != 1)
        return cli_usage_error(&cli_embed, n_ways == 0
                                               ? "nothing to embed: give TEXT, --file or --tokens"
                                               : "TEXT, --file and --tokens exclude each "
                                                 "other");
    if (o->out != NULL && strcmp(o->out, "-") == 0)
        return cli_usage_error(&cli_embed,
                               "--out: '-' is not a file; without --out JSON is printed");
    if (o->tokens != NULL) return read_ids(o->tokens, t);
    const int code = o->file != NULL ? cli_list_lines(o->file, &t->list)
                                     : cli_list_arguments(&o->texts, &t->list);
    t->n = t->list.n;
    return code;
}

/* ---- Output ---- */

static int write_rows(job *j, const float *rows, size_t n_rows) {
    static const char hint[] = "choose another place with --out";
    wick_error error = {0};
    const bool is_pooled = wick_embedder_pooling(j->embedder) != WICK_POOLING_NONE;
    const wick_shape shape =
        WICK_SHAPE((int64_t)(is_pooled ? j->texts->n : n_rows), (int64_t)j->n_embd);
    if (j->writer == NULL &&
        wick_npy_start(j->options->out, WICK_F32, shape, &j->writer, &error) != WICK_OK)
        return cli_report(&error, hint);
    if (wick_npy_write(j->writer, rows, n_rows * j->n_embd * sizeof *rows, &error) != WICK_OK)
        return cli_report(&error, hint);
    return CLI_OK;
}

/* A line for each text. */
static void print_rows(const job *j, size_t i, const float *rows, size_t n_rows) {
    cli_json json = {.out = stdout, .is_line = true};
    cli_json_open(&json, '{');
    if (j->texts->ids == NULL) {
        cli_json_key(&json, "text");
        cli_json_bytes(&json, j->texts->list.items[i], j->texts->list.sizes[i]);
    }
    const bool is_pooled = wick_embedder_pooling(j->embedder) != WICK_POOLING_NONE;
    cli_json_key(&json, is_pooled ? "embedding" : "embeddings");
    if (!is_pooled) cli_json_open(&json, '[');
    for (size_t r = 0; r < n_rows; r++) {
        cli_json_open(&json, '[');
        for (size_t k = 0; k < j->n_embd; k++)
            cli_json_number(&json, (double)rows[r * j->n_embd + k], 9);
        cli_json_close(&json, ']');
    }
    if (!is_pooled) cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* ---- The work ---- */

enum { GROUP = 128 }; /* texts that are given at once */

static wick_status start_group(const job *j, size_t first, size_t n) {
    const texts *const t = j->texts;
    return t->ids == NULL ? wick_embedder_start_texts(j->embedder, t->list.items + first,
                                                      t->list.sizes + first, n)
                          : wick_embedder_start_tokens(j->embedder, t->ids, t->n_ids);
}

static int write_group(job *j, size_t first, size_t n) {
    size_t n_rows;
    const float *const rows = wick_embedder_result(j->embedder, &n_rows);
    if (j->options->out != NULL) return write_rows(j, rows, n_rows);
    for (size_t i = 0; i < n; i++)
        print_rows(j, first + i, rows + n_rows / n * i * j->n_embd, n_rows / n);
    return CLI_OK;
}

static int embed_group(job *j, size_t first, size_t n);

/* Of several texts, those before the one that failed have vectors all the same. */
static int take_apart(job *j, size_t first, size_t n) {
    int code = CLI_OK;
    for (size_t i = 0; i < n && code == CLI_OK; i++) code = embed_group(j, first + i, 1);
    return code;
}

static int embed_group(job *j, size_t first, size_t n) {
    wick_status status = start_group(j, first, n);
    if (status == WICK_OK) status = cli_embedder_wait(j->embedder, j->engine->device);
    if (status == WICK_ERR_CANCELLED) return CLI_INTERRUPTED;
    if (status == WICK_OK) return write_group(j, first, n);
    if (n > 1) return take_apart(j, first, n);
    const int code = cli_report_embedder(j->embedder, j->engine->device, cli_step_hint(status));
    if (code == CLI_FAILURE && j->texts->n > 1)
        fprintf(stderr, "wick: that was text %zu of %zu\n", first + 1, j->texts->n);
    return code;
}

static int embed_all(job *j) {
    const bool is_pooled = wick_embedder_pooling(j->embedder) != WICK_POOLING_NONE;
    const size_t n_texts = j->texts->n, most = is_pooled ? GROUP : 1;
    if (j->options->out != NULL && n_texts > 1 && !is_pooled)
        return cli_usage_error(&cli_embed, "without pooling, --out takes one text");
    int code = CLI_OK;
    /* Lines of JSON on a terminal show by themselves how far it is. */
    const bool is_quiet = j->options->out == NULL && isatty(STDOUT_FILENO) == 1;
    cli_progress line = cli_progress_begin("embedding", "texts");
    for (size_t i = 0; i < n_texts && code == CLI_OK; i += most) {
        if (!is_quiet) cli_progress_show(&line, i, n_texts);
        code = embed_group(j, i, n_texts - i < most ? n_texts - i : most);
    }
    cli_progress_clear(&line);
    wick_error error = {0};
    if (j->writer != NULL && wick_npy_finish(j->writer, code == CLI_OK, &error) != WICK_OK &&
        code == CLI_OK)
        return cli_report(&error, "choose another place with --out");
    return code;
}

static uint32_t longest_text(const embed_options *o, const texts *t) {
    return o->context_length > 0 ? o->context_length : (uint32_t)t->n_ids;
}

static int compute(const embed_options *o, const cli_engine *engine, const texts *t) {
    wick_model_info info;
    wick_model_get_info(engine->model, &info);
    job j = {.options = o, .engine = engine, .texts = t, .n_embd = info.n_embd};
    const wick_embedder_desc desc = {.max_tokens = longest_text(o, t),
                                     .chunk_length = o->engine.chunk_length,
                                     .pooling = (wick_pooling)o->pooling,
                                     .is_raw = o->is_raw};
    wick_error error = {0};
    if (wick_embedder_open(engine->model, &desc, &j.embedder, &error) != WICK_OK)
        return cli_report(&error, NULL);
    const int code = embed_all(&j);
    wick_embedder_close(j.embedder);
    return code;
}

static int run(void *given) {
    const embed_options *const o = given;
    if (o->out != NULL) cli_keep_closed_pipe();
    texts t = {.n = 0};
    int code = read_texts(o, &t);
    cli_engine engine = {0};
    const wick_session_desc desc = {.context_length = longest_text(o, &t),
                                    .chunk_length = o->engine.chunk_length,
                                    .cache = (wick_cache)o->engine.cache,
                                    .logits = WICK_LOGITS_STATES};
    if (code == CLI_OK) code = cli_engine_open(&engine, &o->engine, &desc, o->model);
    if (code == CLI_OK) cli_print_placement(engine.model);
    if (code == CLI_OK) code = compute(o, &engine, &t);
    if (code == CLI_OK && o->engine.verify) cli_print_verified(engine.model);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    cli_engine_close(&engine);
    cli_text_list_free(&t.list);
    free(t.ids);
    return code;
}

const cli_command cli_embed = {
    .name = "embed",
    .summary = "turn texts into vectors: embeddings",
    .details = "Prints a line of JSON for each text.\n\n"
               "  wick embed MODEL.gguf \"a text\" \"another one\"\n"
               "  wick embed MODEL.gguf --file texts.txt --out vectors.npy\n",
    .groups = groups,
    .options_size = sizeof(embed_options),
    .defaults = set_defaults,
    .run = run,
};
