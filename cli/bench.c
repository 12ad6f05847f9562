/* bench.c: `wick bench`: how fast a model reads a prompt and generates, and what part of the
 * machine's limits that is. */
#include "bench.h"

#include "cli.h"
#include "engine.h"
#include "hush.h"
#include "interrupt.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNTS = 16 };

/* "128,512" */
typedef struct counts {
    uint32_t items[MAX_COUNTS];
    size_t n;
} counts;

typedef struct bench_options {
    cli_engine_options engine; /* first, see engine.h; its n_threads is one of threads */
    const char *model;
    counts n_prompt, n_generated, threads;
    uint32_t n_repetitions;
    const char *kernels;
    bool is_kernels, store, csv, json;
} bench_options;

_Static_assert(offsetof(bench_options, engine) == 0, "offsets of cli_engine_group");

/* ---- Options ---- */

static bool set_counts(const cli_option *option, const char *text, void *field, char *expected,
                       size_t size) {
    counts *const list = field;
    list->n = 0;
    do {
        char *end = NULL;
        const bool is_digit = text[0] >= '0' && text[0] <= '9';
        const unsigned long long value = is_digit ? strtoull(text, &end, 10) : 0;
        const bool is_end = is_digit && (*end == ',' || *end == '\0');
        if (!is_end || (double)value > option->most || list->n == MAX_COUNTS) {
            snprintf(expected, size, "a whole number from 0 to %.0f, or up to %d with commas",
                     option->most, (int)MAX_COUNTS);
            return false;
        }
        list->items[list->n++] = (uint32_t)value;
        text = *end == ',' ? end + 1 : NULL;
    } while (text != NULL);
    return true;
}

static void show_counts(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option;
    const counts *const list = field;
    snprintf(text, size, "%" PRIu32, list->items[0]); /* defaults are single numbers */
}

static const cli_kind counts_kind = {.set = set_counts, .show = show_counts};

static void set_defaults(void *given) {
    bench_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_FAST);
    o->engine.speculate = WICK_SPECULATE_NONE;
    o->n_prompt = (counts){.items = {512}, .n = 1};
    o->n_generated = (counts){.items = {128}, .n = 1};
    o->threads = (counts){.items = {0}, .n = 1};
    o->n_repetitions = 5;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model; without it the tiny one built into the command",
     .kind = &cli_model,
     .offset = offsetof(bench_options, model)},
    {.name = "prompt",
     .letter = 'p',
     .argument = "N,...",
     .help = "length of the prompt in tokens; 0: skip this test",
     .kind = &counts_kind,
     .offset = offsetof(bench_options, n_prompt),
     .most = 1 << 20},
    {.name = "generate",
     .letter = 'n',
     .argument = "N,...",
     .help = "tokens that are generated from an empty context; 0: skip this test",
     .kind = &counts_kind,
     .offset = offsetof(bench_options, n_generated),
     .most = 1 << 20},
    {.name = "threads",
     .letter = 't',
     .argument = "N,...",
     .help = "CPU threads; 0: one for each core that this process may use, which is "
             "also the maximum",
     .kind = &counts_kind,
     .offset = offsetof(bench_options, threads),
     .most = 1024},
    {.name = "repetitions",
     .letter = 'r',
     .argument = "N",
     .help = "runs of each test, after a warm-up",
     .kind = &cli_u32,
     .offset = offsetof(bench_options, n_repetitions),
     .least = 1,
     .most = 1000},
    {.name = "kernels",
     .help = "time every kernel of a GPU instead, in all of its tunings, on the operations of the "
             "model",
     .kind = &cli_flag,
     .offset = offsetof(bench_options, is_kernels)},
    {.name = "only",
     .argument = "KERNELS",
     .help = "with --kernels: only kernels of this name; * and ? stand for any characters",
     .kind = &cli_text,
     .offset = offsetof(bench_options, kernels)},
    {.name = "store",
     .help = "with --kernels: keep the fastest tunings of this GPU for all commands (--tuning)",
     .kind = &cli_flag,
     .offset = offsetof(bench_options, store)},
    {.name = "csv",
     .help = "print comma-separated values",
     .kind = &cli_flag,
     .offset = offsetof(bench_options, csv)},
    {.name = "json",
     .help = "print a JSON array of objects",
     .kind = &cli_flag,
     .offset = offsetof(bench_options, json)},
};
static const cli_group group = {"Benchmark", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, &cli_speculation_group, &cli_engine_rest_group,
                                          NULL};

/* ---- One run ---- */

typedef struct timer {
    const bench_options *options;
    const cli_engine *engine;
    wick_session *session;
    uint32_t *ids;            /* of the prompt */
    cli_bench_counts *counts; /* of the last generation */
    cli_progress line;        /* of the test, */
    char test[64];            /* and what it says: "prefill 512, run 2 of 5" */
    bool is_prompt;           /* it reads, else it generates */
    uint64_t n_done, n_total; /* tokens of the test that are read or generated, in all its runs */
} timer;

/* While a test runs. Nothing where there is no terminal, so that nothing is timed but the model. */
static void show_progress(timer *t) {
    if (t->line.is_terminal) cli_progress_show(&t->line, t->n_done, t->n_total);
}

static wick_device_stats stats_of(const timer *t) {
    wick_device_stats stats;
    wick_device_get_stats(t->engine->device, &stats);
    return stats;
}

/* Computes until the next token has been generated. */
static int next_token(timer *t) {
    wick_event event = {0};
    const uint64_t n_before = t->n_done;
    while (event.kind != WICK_EVENT_TOKEN) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        const wick_status status = wick_session_step(t->session, &event);
        if (status != WICK_OK)
            return cli_report_step(t->session, t->engine->device, cli_step_hint(status));
        if (event.kind == WICK_EVENT_PENDING) wick_pause(t->engine->device);
        if (event.kind == WICK_EVENT_END) return cli_error("the generation ended too early");
        if (event.kind == WICK_EVENT_PROMPT && t->is_prompt) t->n_done = n_before + event.done;
        show_progress(t);
    }
    return CLI_OK;
}

/* seconds[0]: to read the first n ids and choose the next token; [1]: to generate n_more tokens
 * after it. */
static int time_run(timer *t, uint32_t n, uint32_t n_more, double seconds[2]) {
    wick_session_reset(t->session);
    const wick_status status = wick_session_append_tokens(t->session, t->ids, n);
    if (status != WICK_OK) return cli_report_step(t->session, t->engine->device, NULL);
    const double start = wick_time();
    int code = next_token(t);
    const wick_device_stats before = stats_of(t);
    const double middle = wick_time();
    for (uint32_t i = 0; i < n_more && code == CLI_OK; i++) {
        code = next_token(t);
        t->n_done++;
    }
    seconds[0] = middle - start;
    seconds[1] = wick_time() - middle;
    const wick_device_stats after = stats_of(t);
    if (n_more > 0)
        *t->counts = (cli_bench_counts){
            .dispatches = (double)(after.n_dispatches - before.n_dispatches) / n_more,
            .submits = (double)(after.n_submits - before.n_submits) / n_more,
            .reads = (double)(after.n_reads - before.n_reads) / n_more,
            .encode_seconds = (after.encode_seconds - before.encode_seconds) / n_more,
        };
    return code;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* values: sorted here. */
static cli_bench_speed summary(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_size);
    return (cli_bench_speed){.median = 0.5 * (values[(n - 1) / 2] + values[n / 2]),
                             .least = values[0],
                             .most = values[n - 1]};
}

/* Run i of the test is about to begin; 0 warms up caches, pages and clocks. */
static void name_run(timer *t, uint32_t n_tokens, uint32_t i) {
    char run[32] = "warming up";
    if (i > 0)
        snprintf(run, sizeof run, "run %" PRIu32 " of %" PRIu32, i, t->options->n_repetitions);
    snprintf(t->test, sizeof t->test, "%s %" PRIu32 ", %s", t->is_prompt ? "prefill" : "decode",
             n_tokens, run);
}

/* Times reading n_prompt tokens or, if that is 0, generating n_generated tokens after a single
 * one. */
static int time_test(timer *t, uint32_t n_prompt, uint32_t n_generated, cli_bench_speed *speed) {
    const uint32_t n_runs = t->options->n_repetitions;
    double *const rates = calloc(n_runs, sizeof *rates);
    if (rates == NULL) return cli_error("out of memory for the results");
    const bool is_prompt = n_prompt > 0;
    const uint32_t n = is_prompt ? n_prompt : n_generated;
    double seconds[2] = {0};
    int code = CLI_OK;
    t->is_prompt = is_prompt;
    t->line = cli_progress_begin(t->test, "tokens");
    t->n_done = 0;
    t->n_total = (n_runs + UINT64_C(1)) * n;
    for (uint32_t i = 0; i <= n_runs && code == CLI_OK; i++) {
        name_run(t, n, i);
        code = time_run(t, is_prompt ? n_prompt : 1, n_generated, seconds);
        if (i > 0) rates[i - 1] = n / seconds[is_prompt ? 0 : 1];
    }
    cli_progress_clear(&t->line);
    if (code == CLI_OK) *speed = summary(rates, n_runs);
    free(rates);
    return code;
}

/* ---- What a token costs ---- */

typedef struct vocabulary_cost {
    bool is_known;
    bool is_tied;            /* the output matrix is the embedding */
    uint64_t embedding_size; /* bytes */
} vocabulary_cost;

static vocabulary_cost read_vocabulary_cost(const char *path) {
    vocabulary_cost cost = {.is_tied = true};
    wick_file *file = NULL;
    if (path == NULL || wick_file_open(path, &file, NULL) != WICK_OK) return cost;
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        if (strcmp(tensor->name.text, "output.weight") == 0) cost.is_tied = false;
        if (strcmp(tensor->name.text, "token_embd.weight") != 0) continue;
        cost.embedding_size = tensor->size;
        cost.is_known = true;
    }
    wick_file_close(file);
    return cost;
}

/* Prompts need the output matrix for their last token only, generation needs of an embedding that
 * is not the output matrix too a single row. */
static void set_cost(cli_bench_row *row, const char *path) {
    const vocabulary_cost cost = read_vocabulary_cost(path);
    if (!cost.is_known) return;
    const uint64_t n_vocabulary = (uint64_t)row->info.n_vocab * row->info.n_embd;
    const uint64_t n_tables = cost.is_tied ? 1 : 2;
    const double n_inner = (double)(row->info.n_parameters - n_tables * n_vocabulary);
    if (row->n_prompt > 0)
        row->ops_per_token = 2 * (n_inner + (double)n_vocabulary / row->n_prompt);
    const double cache_bytes = (double)row->session.cache_bytes / row->session.context_length;
    const double n_cached = 0.5 * (row->n_generated + 1); /* on average */
    const bool is_split = row->info.host_layers > 0 && row->info.host_layers < row->info.n_layers;
    const uint64_t unread = cost.is_tied && !is_split ? 0 : cost.embedding_size;
    const uint64_t n_weights = row->info.weight_bytes + row->info.host_weight_bytes;
    row->bytes_per_token = (double)(n_weights - unread) + cache_bytes * n_cached;
}

/* ---- All runs ---- */

/* Any ids do; always the same ones, well spread over the vocabulary. */
static void fill_ids(uint32_t *ids, uint32_t n, uint32_t n_vocab) {
    uint32_t state = 1;
    for (uint32_t i = 0; i < n; i++) {
        state = state * 1664525U + 1013904223U; /* Numerical Recipes */
        ids[i] = (uint32_t)(((uint64_t)state * n_vocab) >> 32);
    }
}

static wick_session_desc session_desc(const bench_options *o, uint32_t n_prompt,
                                      uint32_t n_generated) {
    const uint32_t n_ids = n_prompt > 0 ? n_prompt : 1;
    return (wick_session_desc){
        .context_length = n_ids > n_generated + 1 ? n_ids + 1 : n_generated + 2,
        .chunk_length = o->engine.chunk_length,
        .cache = (wick_cache)o->engine.cache,
        .ignore_end = true,
        .speculate = (wick_speculate)o->engine.speculate,
        .no_reuse = true,
    };
}

static int time_row(timer *t, cli_bench_row *row) {
    const uint32_t n_ids = row->n_prompt > 0 ? row->n_prompt : 1;
    wick_session_desc desc = session_desc(t->options, row->n_prompt, row->n_generated);
    desc.draft = t->engine->draft;
    t->counts = &row->counts;
    cli_warn_context(t->engine->model, desc.context_length);
    wick_error error = {0};
    if (wick_session_open(t->engine->model, &desc, &t->session, &error) != WICK_OK)
        return cli_report(&error, error.status == WICK_ERR_OUT_OF_MEMORY
                                      ? "fewer tokens need less memory"
                                      : NULL);
    int code = CLI_OK;
    t->ids = calloc(n_ids, sizeof *t->ids);
    if (t->ids == NULL) code = cli_error("out of memory for the prompt");
    if (code == CLI_OK) {
        fill_ids(t->ids, n_ids, row->info.n_vocab);
        if (row->n_prompt > 0) code = time_test(t, row->n_prompt, 0, &row->prompt);
    }
    if (code == CLI_OK && row->n_generated > 0)
        code = time_test(t, 0, row->n_generated, &row->generation);
    wick_session_get_stats(t->session, &row->session);
    set_cost(row, t->options->model);
    row->peak_memory = wick_peak_memory();
    row->longest_submit = stats_of(t).longest_submit;
    free(t->ids);
    wick_session_close(t->session);
    return code;
}

/* Every pair of lengths with one number of threads. */
static int time_device(const bench_options *o, cli_bench_row *rows) {
    cli_engine engine = {0};
    const double start = wick_time();
    const wick_session_desc first = session_desc(o, o->n_prompt.items[0], o->n_generated.items[0]);
    int code = cli_engine_open(&engine, &o->engine, &first, o->model);
    if (code != CLI_OK) return code;
    cli_print_placement(engine.model);
    cli_bench_row common = {
        .model = o->model != NULL ? o->model : "(built-in model)",
        .is_fast = wick_device_math(engine.device) == WICK_MATH_FAST,
        .n_repetitions = o->n_repetitions,
        .load_seconds = wick_time() - start,
    };
    wick_model_get_info(engine.model, &common.info);
    wick_device_get_info(engine.device, &common.device);
    const size_t n_rows = o->n_prompt.n * o->n_generated.n;
    for (size_t i = 0; i < n_rows && code == CLI_OK; i++) {
        rows[i] = common;
        rows[i].n_prompt = o->n_prompt.items[i / o->n_generated.n];
        rows[i].n_generated = o->n_generated.items[i % o->n_generated.n];
        timer t = {.options = o, .engine = &engine};
        code = time_row(&t, &rows[i]);
    }
    if (code == CLI_OK && o->engine.verify) cli_print_verified(engine.model);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    cli_engine_close(&engine);
    return code;
}

static wick_webgpu_desc webgpu_of(const bench_options *o) {
    return (wick_webgpu_desc){
        .library = o->engine.webgpu_lib, .adapter = o->engine.adapter, .as_gpu = o->engine.as_gpu};
}

/* After all models are closed: it needs memory that does not belong to their peak. */
static void measure_limits(const bench_options *o, cli_bench_row *rows, size_t n) {
    const wick_device_desc desc = {
        .backend = rows[0].device.backend,
        .n_threads = rows[0].device.n_threads,
        .isa = (wick_isa)o->engine.isa,
        .webgpu = webgpu_of(o),
    };
    wick_device *device = NULL;
    if (cli_open_device(&desc, &device, NULL) != WICK_OK) return;
    wick_device_limits limits = {0};
    if (wick_device_measure(device, &limits, NULL) == WICK_OK) {
        for (size_t i = 0; i < n; i++) rows[i].limits = limits;
    }
    wick_device_close(device);
}

static int time_all(bench_options *o, cli_bench_row *rows, size_t n_pairs) {
    for (size_t i = 0; i < o->threads.n; i++) {
        o->engine.n_threads = o->threads.items[i];
        const int code = time_device(o, rows + i * n_pairs);
        if (code != CLI_OK) return code;
    }
    for (size_t i = 0; i < o->threads.n; i++) measure_limits(o, rows + i * n_pairs, n_pairs);
    return CLI_OK;
}

static int time_kernels(const bench_options *o, cli_bench_format format) {
    const wick_device_desc device = {
        .backend = o->engine.backend,
        .webgpu = webgpu_of(o),
    };
    return cli_bench_kernels(&device, &(cli_kernel_bench){.model = o->model,
                                                          .kernels = o->kernels,
                                                          .tuning = o->engine.tuning,
                                                          .n_prompt = o->n_prompt.items[0],
                                                          .is_stored = o->store,
                                                          .format = format});
}

static bool are_zero(const counts *numbers) {
    for (size_t i = 0; i < numbers->n; i++)
        if (numbers->items[i] != 0) return false;
    return true;
}

static int run(void *given) {
    bench_options *const o = given;
    if (o->csv && o->json)
        return cli_usage_error(&cli_bench, "--csv and --json exclude each other");
    const cli_bench_format format = o->json  ? CLI_BENCH_JSON
                                    : o->csv ? CLI_BENCH_CSV
                                             : CLI_BENCH_MARKDOWN;
    if (o->is_kernels) return time_kernels(o, format);
    if (o->kernels != NULL || o->store)
        return cli_usage_error(&cli_bench, "--only and --store belong to --kernels");
    if (are_zero(&o->n_prompt) && are_zero(&o->n_generated))
        return cli_usage_error(&cli_bench, "-p 0 with -n 0 measures nothing");
    const size_t n_pairs = o->n_prompt.n * o->n_generated.n;
    const size_t n_rows = o->threads.n * n_pairs;
    cli_bench_row *const rows = calloc(n_rows, sizeof *rows);
    if (rows == NULL) return cli_error("out of memory for the results");
    const int code = time_all(o, rows, n_pairs);
    if (code == CLI_OK) cli_bench_print(rows, n_rows, format);
    free(rows);
    return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "measure how fast a model reads prompts and generates",
    .details =
        "Several numbers, comma-separated, are combined with each other. Shares are of this\n"
        "machine's measured peak: bytes read per second when generating, multiplications\n"
        "and additions per second when reading a prompt.\n\n"
        "  wick bench MODEL.gguf -p 512 -n 128 -t 1,2 -r 5\n"
        "  wick bench --kernels --store --backend webgpu MODEL.gguf\n",
    .groups = groups,
    .options_size = sizeof(bench_options),
    .defaults = set_defaults,
    .run = run,
};
