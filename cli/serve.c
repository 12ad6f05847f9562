/* serve.c: `wick serve`: answers the APIs that programs speak (wick/api.h), over HTTP. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "lora.h"
#include "prefixes.h"
#include "sampling.h"
#include "serve_clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct serve_options {
    cli_engine_options engine; /* these two first, see sampling.h */
    cli_sampling_options sampling;
    const char *model, *models, *host, *socket, *alias, *tags, *compiled, *chat_template, *key_file;
    const char *origins, *hosts, *certificate, *private_key, *slot_folder, *prefix_cache;
    cli_texts keys;
    int pooling, reasoning, reasoning_format;
    bool context_shift, metrics, no_slots, reranks, logs_requests;
    uint32_t n_keep, ping_interval, idle_seconds;
    uint32_t port, n_parallel, context_length, max_tokens, max_queue, timeout;
} serve_options;

_Static_assert(offsetof(serve_options, engine) == offsetof(cli_sampling_place, engine) &&
                   offsetof(serve_options, sampling) == offsetof(cli_sampling_place, sampling),
               "offsets of cli_engine_group and cli_sampling_group");

static void set_defaults(void *given) {
    serve_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_FAST);
    cli_sampling_defaults(&o->sampling);
    o->host = "127.0.0.1";
    o->port = 8080;
    o->n_parallel = 4;
    o->max_queue = 64;
    o->timeout = 25;
    o->ping_interval = 10;
    o->idle_seconds = 600;
    o->origins = "*";
}

#define OFFSET(member) offsetof(serve_options, member)
static const cli_option table[] = {
    {.argument = "MODEL.gguf",
     .help = "the model; none: those that were fetched, loaded when a request names them",
     .kind = &cli_model,
     .offset = OFFSET(model)},
    {.name = "models",
     .argument = "FOLDER",
     .help = "in place of a model: each FILE.gguf of a folder, loaded when a request names FILE",
     .kind = &cli_place,
     .offset = OFFSET(models)},
    {.name = "idle",
     .argument = "SECONDS",
     .help = "with several models: how long one stays loaded without a request",
     .kind = &cli_u32,
     .offset = OFFSET(idle_seconds),
     .most = INT32_MAX},
    {.name = "host",
     .argument = "ADDRESS",
     .help = "the address to listen at, or several, comma-separated; 0.0.0.0: every "
             "network",
     .kind = &cli_text,
     .offset = OFFSET(host)},
    {.name = "port",
     .argument = "N",
     .help = "the port; 0: any free one",
     .kind = &cli_u32,
     .offset = OFFSET(port),
     .most = 65535},
    {.name = "socket",
     .argument = "PATH",
     .help = "a UNIX socket in place of an address",
     .kind = &cli_place,
     .offset = OFFSET(socket)},
    {.name = "parallel",
     .argument = "N",
     .help = "texts generated at the same time; others wait",
     .kind = &cli_u32,
     .offset = OFFSET(n_parallel),
     .least = 1,
     .most = 1024},
    {.name = "max-queue",
     .argument = "N",
     .help = "requests that may wait; more get status 503",
     .kind = &cli_u32,
     .offset = OFFSET(max_queue),
     .least = 1,
     .most = 100000},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "tokens of one conversation; 0: the model's, at most 16384 and a quarter of the free "
             "memory",
     .kind = &cli_u32,
     .offset = OFFSET(context_length),
     .most = INT32_MAX},
    {.name = "max-tokens",
     .letter = 'n',
     .argument = "N",
     .help = "most tokens of an answer if the request sets no limit; 0 or -1: no limit",
     .kind = &cli_limit,
     .offset = OFFSET(max_tokens)},
    {.name = "alias",
     .argument = "NAME",
     .help = "the model's name in answers; further names of it after commas",
     .kind = &cli_text,
     .offset = OFFSET(alias)},
    {.name = "template",
     .argument = "FILE.jinja",
     .alias = "chat-template-file",
     .help = "chat template to use instead of the model's own",
     .kind = &cli_in,
     .offset = OFFSET(compiled)},
    {.name = "chat-template",
     .argument = "chatml|TEXT",
     .help = "the same: ChatML, or the text of a template",
     .kind = &cli_text,
     .offset = OFFSET(chat_template)},
    {.name = "reasoning",
     .argument = "auto|on|off",
     .help = "whether a model thinks, if its template lets one choose (enable_thinking)",
     .kind = &cli_word,
     .offset = OFFSET(reasoning)},
    {.name = "reasoning-format",
     .argument = "auto|none|deepseek",
     .help = "none: reasoning stays in the content, with its tags; else it is a field "
             "of its own",
     .kind = &cli_word,
     .offset = OFFSET(reasoning_format)},
    {.name = "pooling",
     .argument = "auto|none|mean|cls|last",
     .help = "how the states of tokens become an embedding; auto: as the model says",
     .kind = &cli_word,
     .offset = OFFSET(pooling)},
    {.name = "rerank",
     .alias = "reranking",
     .help = "refuse a model that is not a reranker (rerankers serve /v1/rerank "
             "without this, too)",
     .kind = &cli_flag,
     .offset = OFFSET(reranks)},
    {.name = "context-shift",
     .help = "let a text continue after it has filled the context, without its older half "
             "(docs/sessions.md)",
     .kind = &cli_flag,
     .offset = OFFSET(context_shift)},
    {.name = "keep",
     .argument = "N",
     .help = "with --context-shift: tokens at the beginning that stay",
     .kind = &cli_u32,
     .offset = OFFSET(n_keep),
     .most = INT32_MAX},
    {.name = "cache-limit",
     .argument = "BYTES",
     .help = "most memory for what texts leave in the cache, such as 500M or 2G; else "
             "a quarter of the free memory",
     .kind = &cli_size,
     .offset = OFFSET(engine.cache_limit)},
    CLI_PREFIX_CACHE(serve_options, prefix_cache),
    {.name = "slot-save-path",
     .argument = "FOLDER",
     .help = "a folder where clients may save and restore slots (POST "
             "/slots/N?action=save)",
     .kind = &cli_place,
     .offset = OFFSET(slot_folder)},
    {.name = "tags",
     .argument = "LIST",
     .help = "tags of the model for /v1/models, comma-separated",
     .kind = &cli_text,
     .offset = OFFSET(tags)},
    {.name = "metrics",
     .help = "answer /metrics, for Prometheus",
     .kind = &cli_flag,
     .offset = OFFSET(metrics)},
    {.name = "no-slots",
     .help = "do not answer /slots",
     .kind = &cli_flag,
     .offset = OFFSET(no_slots)},
    {.name = "log-requests",
     .help = "log each request and its body as a line of JSON on standard error; "
             "--verbose: without the body",
     .kind = &cli_flag,
     .offset = OFFSET(logs_requests)},
    {.name = "api-key",
     .argument = "KEY",
     .help = "a key that requests must have, as Bearer or x-api-key; may be given again",
     .kind = &cli_list,
     .offset = OFFSET(keys)},
    {.name = "api-key-file",
     .argument = "FILE",
     .help = "a file of keys, one on each line",
     .kind = &cli_in,
     .offset = OFFSET(key_file)},
    {.name = "cors-origins",
     .argument = "LIST",
     .help = "pages that may send requests: *, localhost, or comma-separated origins",
     .kind = &cli_text,
     .offset = OFFSET(origins)},
    {.name = "allowed-hosts",
     .argument = "LIST",
     .help = "host names that requests may use (header Host), comma-separated; else any",
     .kind = &cli_text,
     .offset = OFFSET(hosts)},
    {.name = "tls-cert",
     .argument = "FILE.pem",
     .help = "a certificate, for TLS; with --tls-key",
     .kind = &cli_in,
     .offset = OFFSET(certificate)},
    {.name = "tls-key",
     .argument = "FILE.pem",
     .help = "its private key",
     .kind = &cli_in,
     .offset = OFFSET(private_key)},
    {.name = "sse-ping-interval",
     .argument = "SECONDS",
     .help = "send a comment on a stream that was silent for this long, so that "
             "proxies keep it open",
     .kind = &cli_u32,
     .offset = OFFSET(ping_interval),
     .least = 1,
     .most = 3600},
    {.name = "timeout",
     .argument = "SECONDS",
     .help = "how long a client may take to send its request, or read nothing of its "
             "answer",
     .kind = &cli_u32,
     .offset = OFFSET(timeout),
     .least = 1,
     .most = 3600},
};
#undef OFFSET
static const cli_group serve_group = {"Server", table, sizeof table / sizeof *table};
static const cli_group *const groups[] = {&serve_group, &cli_sampling_group, &cli_speculation_group,
                                          &cli_engine_group, NULL};

/* ---- The command ---- */

static int read_keys(const serve_options *o, cli_input *input, const char ***keys, size_t *n) {
    size_t most = o->keys.n;
    if (o->key_file != NULL) {
        const int code = cli_read_file(o->key_file, input);
        if (code != CLI_OK) return code;
        for (size_t i = 0; i <= input->size; i++)
            most += i == input->size || input->text[i] == '\n';
    }
    *keys = calloc(most > 0 ? most : 1, sizeof **keys);
    if (*keys == NULL) return cli_error("out of memory");
    for (size_t i = 0; i < o->keys.n; i++) (*keys)[(*n)++] = o->keys.items[i];
    if (o->key_file == NULL) return CLI_OK;
    for (char *line = strtok((char *)input->text, "\r\n"); line != NULL;
         line = strtok(NULL, "\r\n"))
        (*keys)[(*n)++] = line;
    return *n > 0 ? CLI_OK : cli_error("'%s' has no key", o->key_file);
}

/* Items of a list with commas between them, in the text, which is changed. */
typedef struct list {
    char *text;
    const char *items[CLI_MAX_TEXTS];
    size_t n;
} list;

static int read_list(const char *option, const char *given, list *made) {
    *made = (list){.text = strdup(given != NULL ? given : "")};
    if (made->text == NULL) return cli_error("out of memory");
    for (char *item = strtok(made->text, ","); item != NULL; item = strtok(NULL, ",")) {
        if (made->n == CLI_MAX_TEXTS)
            return cli_usage_error(&cli_serve, "%s has more than %d items", option, CLI_MAX_TEXTS);
        made->items[made->n++] = item;
    }
    return CLI_OK;
}

/* Adapters that requests choose; those of the command line are on from the start. */
static int open_loras(const cli_engine *engine, const cli_loras *given, wick_api_lora *loras) {
    for (size_t i = 0; i < given->n; i++) {
        wick_error error = {0};
        loras[i].path = given->items[i].path;
        loras[i].use.scale = given->items[i].scale;
        if (wick_lora_open(engine->model, loras[i].path, &loras[i].use.lora, &error) != WICK_OK)
            return cli_report(&error, NULL);
    }
    return CLI_OK;
}

static int check_options(const serve_options *o) {
    if ((o->certificate == NULL) != (o->private_key == NULL))
        return cli_usage_error(&cli_serve, "--tls-cert and --tls-key belong together");
    if (o->compiled != NULL && o->chat_template != NULL)
        return cli_usage_error(&cli_serve, "--template and --chat-template exclude each other");
    struct stat info;
    if (o->slot_folder != NULL && (stat(o->slot_folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return cli_error("--slot-save-path: there is no folder '%s'", o->slot_folder);
    return CLI_OK;
}

static int check_reranker(const cli_engine *engine, const serve_options *o) {
    wick_model_info info;
    wick_model_get_info(engine->model, &info);
    return o->reranks && info.n_labels == 0
               ? cli_error("--rerank: '%s' is not a reranker", o->model)
               : CLI_OK;
}

static int listen_and_serve(cli_served_models *models, const cli_server_desc *at) {
    char why[320];
    cli_server *const server = cli_server_start(at, why, sizeof why);
    if (server == NULL) return cli_error("%s", why);
    if (!cli_common.quiet) cli_say("Listening at %s", cli_server_address(server));
    cli_serve_clients(server, models);
    cli_server_stop(server);
    return CLI_OK;
}

/* What the options name by files and lists. */
typedef struct parts {
    cli_sampling sampling;
    cli_input compiled, key_file, certificate, private_key;
    const char **keys;
    size_t n_keys;
    list names, tags;
    cli_loras *loras;
    wick_api_lora api_loras[CLI_MAX_TEXTS];
} parts;

static int read_parts(const serve_options *o, parts *p) {
    int code = check_options(o);
    if (code == CLI_OK) code = cli_sampling_read(&cli_serve, &o->sampling, &p->sampling);
    if (code == CLI_OK && o->compiled != NULL) code = cli_read_file(o->compiled, &p->compiled);
    if (code == CLI_OK && o->certificate != NULL)
        code = cli_read_file(o->certificate, &p->certificate);
    if (code == CLI_OK && o->private_key != NULL)
        code = cli_read_file(o->private_key, &p->private_key);
    if (code == CLI_OK) code = read_keys(o, &p->key_file, &p->keys, &p->n_keys);
    if (code != CLI_OK) return code;
    code = read_list("--alias", o->alias, &p->names);
    if (code == CLI_OK) code = read_list("--tags", o->tags, &p->tags);
    if (code != CLI_OK) return code;
    p->loras = cli_read_loras(&o->engine.adapters);
    return p->loras != NULL ? CLI_OK : CLI_FAILURE;
}

static void free_parts(parts *p) {
    free(p->keys);
    free(p->loras);
    free(p->names.text);
    free(p->tags.text);
    cli_input_free(&p->private_key);
    cli_input_free(&p->certificate);
    cli_input_free(&p->key_file);
    cli_input_free(&p->compiled);
    cli_sampling_free(&p->sampling);
}

static wick_session_desc session_desc(const serve_options *o, const parts *p) {
    return (wick_session_desc){.context_length = o->context_length,
                               .chunk_length = o->engine.chunk_length,
                               .cache = (wick_cache)o->engine.cache,
                               .max_tokens = o->max_tokens,
                               .sampler = p->sampling.desc,
                               .speculate = (wick_speculate)o->engine.speculate,
                               .context_shift = o->context_shift,
                               .n_keep = o->n_keep};
}

static wick_api_desc api_desc(const serve_options *o, const parts *p) {
    enum { NONE = 1 };
    static const int thinking[] = {0, 1, -1};
    return (wick_api_desc){
        .name = p->names.n > 0 ? p->names.items[0] : NULL,
        .path = o->model,
        .modified = o->model != NULL ? cli_modified(o->model, NULL) : 0,
        .aliases = p->names.items + 1,
        .n_aliases = p->names.n > 1 ? p->names.n - 1 : 0,
        .tags = p->tags.items,
        .n_tags = p->tags.n,
        .session = session_desc(o, p),
        .chat_template = o->chat_template != NULL ? o->chat_template : p->compiled.text,
        .n_parallel = o->n_parallel,
        .max_queue = o->max_queue,
        .loras = p->api_loras,
        .n_loras = p->loras->n,
        .pooling = (wick_pooling)o->pooling,
        .reasoning = o->reasoning_format == NONE ? WICK_REASONING_IN_CONTENT : WICK_REASONING_APART,
        .thinking = thinking[o->reasoning],
        .slot_folder = o->slot_folder,
        .has_metrics = o->metrics,
        .has_no_slots = o->no_slots,
        .is_verbose = cli_common.verbose,
        .ping_interval = o->ping_interval,
    };
}

static cli_server_desc server_desc(const serve_options *o, const parts *p) {
    return (cli_server_desc){
        .host = o->host,
        .socket = o->socket,
        .port = o->port,
        .timeout = o->timeout,
        .access = {.keys = p->keys, .n_keys = p->n_keys, .origins = o->origins, .hosts = o->hosts},
        .certificate = p->certificate.text,
        .private_key = p->private_key.text,
        .log = o->logs_requests     ? cli_log_request_whole
               : cli_common.verbose ? cli_log_request
                                    : NULL};
}

static int serve_one(const cli_engine *engine, const serve_options *o, const wick_api_desc *desc,
                     const cli_server_desc *at) {
    cli_served_models models = {.is_one = true};
    wick_error error = {0};
    if (!cli_models_add(&models, "", o->model)) return cli_error("out of memory");
    models.items[0].model = engine->model;
    int code = CLI_OK;
    if (wick_api_open(engine->model, desc, &models.items[0].api, &error) != WICK_OK)
        code = cli_report(&error, NULL);
    if (code == CLI_OK) code = listen_and_serve(&models, at);
    cli_models_close(&models);
    return code;
}

/* Whether one fits a model is known when that is loaded. */
static int check_adapters(const cli_loras *loras) {
    for (size_t i = 0; i < loras->n; i++)
        if (access(loras->items[i].path, R_OK) != 0)
            return cli_error("cannot read the adapter '%s': %s", loras->items[i].path,
                             strerror(errno));
    return CLI_OK;
}

static int serve_several(const serve_options *o, const parts *p) {
    cli_engine engine = {0};
    const cli_server_desc at = server_desc(o, p);
    cli_served_models models = {.api = api_desc(o, p),
                                .loras = p->loras,
                                .prefix_cache = o->prefix_cache,
                                .idle_seconds = o->idle_seconds};
    wick_session_desc *const sessions = &models.api.session;
    if (o->model != NULL || o->alias != NULL)
        return cli_usage_error(&cli_serve, "several models take no MODEL.gguf and no --alias");
    if (o->engine.speculate == WICK_SPECULATE_HEADS)
        return cli_usage_error(&cli_serve, "--speculate heads is for a single model");
    int code = check_adapters(p->loras);
    if (code == CLI_OK) code = cli_models_find(&models, o->models);
    if (code == CLI_OK) code = cli_engine_open_device(&engine, &o->engine);
    if (code == CLI_OK) code = cli_engine_load_draft(&engine, &o->engine, sessions);
    sessions->draft = engine.draft;
    models.device = engine.device;
    models.model = cli_engine_model_desc(&o->engine, sessions);
    if (code == CLI_OK) code = listen_and_serve(&models, &at);
    cli_models_close(&models);
    cli_engine_close(&engine);
    return code;
}

static int open_and_serve(const serve_options *o, parts *p) {
    cli_engine engine = {0};
    cli_engine_options options = o->engine;
    options.adapters.n = 0; /* requests choose them */
    wick_api_desc desc = api_desc(o, p);
    const cli_server_desc at = server_desc(o, p);
    int code = cli_engine_open(&engine, &options, &desc.session, o->model);
    if (code == CLI_OK) code = check_reranker(&engine, o);
    if (code == CLI_OK) code = open_loras(&engine, p->loras, p->api_loras);
    if (code == CLI_OK) {
        desc.session.draft = engine.draft;
        cli_print_placement(engine.model);
        cli_load_prefixes(engine.model, o->prefix_cache);
        code = serve_one(&engine, o, &desc, &at);
        cli_save_prefixes(engine.model, o->prefix_cache);
    }
    cli_engine_close(&engine);
    return code;
}

static int run(void *given) {
    const serve_options *const o = given;
    cli_keep_closed_pipe(); /* clients are answered, whoever reads the log */
    parts p = {.n_keys = 0};
    int code = read_parts(o, &p);
    const bool has_one = o->model != NULL && o->models == NULL;
    if (code == CLI_OK) code = has_one ? open_and_serve(o, &p) : serve_several(o, &p);
    free_parts(&p);
    return code;
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "answer OpenAI's API over HTTP",
    .details =
        "  wick serve MODEL.gguf --port 8080\n"
        "  curl http://127.0.0.1:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'\n",
    .groups = groups,
    .options_size = sizeof(serve_options),
    .defaults = set_defaults,
    .run = run,
    .fetches = true,
};
