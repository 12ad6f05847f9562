/* serve.c: `wick serve`: answers the APIs that programs speak (wick/api.h), by HTTP. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "sampling.h"
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct serve_options {
    cli_engine_options engine; /* these two first, see sampling.h */
    cli_sampling_options sampling;
    const char *model, *host, *socket, *alias, *compiled, *key_file, *origins;
    cli_texts keys;
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
    o->origins = "*";
}

#define OFFSET(member) offsetof(serve_options, member)
static const cli_option table[] = {
    {.argument = "MODEL.gguf",
     .help = "the model",
     .kind = &cli_model,
     .offset = OFFSET(model),
     .is_required = true},
    {.name = "host",
     .argument = "ADDRESS",
     .help = "where it listens; 0.0.0.0: on every network",
     .kind = &cli_text,
     .offset = OFFSET(host)},
    {.name = "port",
     .argument = "N",
     .help = "the port; 0: one that is free",
     .kind = &cli_u32,
     .offset = OFFSET(port),
     .most = 65535},
    {.name = "socket",
     .argument = "PATH",
     .help = "a UNIX socket in place of an address",
     .kind = &cli_text,
     .offset = OFFSET(socket)},
    {.name = "parallel",
     .argument = "N",
     .help = "texts that are generated at once; others wait",
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
     .help = "most tokens of an answer where a request does not say; 0 or -1: no limit",
     .kind = &cli_limit,
     .offset = OFFSET(max_tokens)},
    {.name = "alias",
     .argument = "NAME",
     .help = "the model's name in answers",
     .kind = &cli_text,
     .offset = OFFSET(alias)},
    {.name = "template",
     .argument = "FILE.jinja",
     .help = "chat template to use instead of the model's own",
     .kind = &cli_in,
     .offset = OFFSET(compiled)},
    {.name = "api-key",
     .argument = "KEY",
     .help = "a key that requests must have, as Bearer or x-api-key; may be given again",
     .kind = &cli_list,
     .offset = OFFSET(keys)},
    {.name = "api-key-file",
     .argument = "FILE",
     .help = "a key in each line",
     .kind = &cli_in,
     .offset = OFFSET(key_file)},
    {.name = "cors-origins",
     .argument = "LIST",
     .help = "pages that may ask: *, localhost, or origins with commas between them",
     .kind = &cli_text,
     .offset = OFFSET(origins)},
    {.name = "timeout",
     .argument = "SECONDS",
     .help = "how long a client may take for its request, or to take its answer",
     .kind = &cli_u32,
     .offset = OFFSET(timeout),
     .least = 1,
     .most = 3600},
};
#undef OFFSET
static const cli_group serve_group = {"Server", table, sizeof table / sizeof *table};
static const cli_group *const groups[] = {&serve_group, &cli_sampling_group, &cli_engine_group,
                                          NULL};

/* ---- Calls and their exchanges ---- */

typedef struct client client;
struct client {
    client *next;
    cli_call *call;
    wick_exchange *exchange;
    bool has_begun;
};

typedef struct service {
    cli_server *server;
    wick_api *api;
    client *clients;
} service;

static void end_client(client *c) {
    wick_exchange_close(c->exchange);
    cli_call_end(c->call);
    free(c);
}

static void take_call(service *s, cli_call *call) {
    wick_request request = {
        .method = cli_call_method(call), .path = cli_call_path(call), .time = (int64_t)time(NULL)};
    request.body = cli_call_body(call, &request.body_size);
    client *const made = calloc(1, sizeof *made);
    if (made != NULL) *made = (client){.call = call, .next = s->clients};
    if (made == NULL || wick_exchange_open(s->api, &request, &made->exchange, NULL) != WICK_OK) {
        static const char text[] = "{\"error\":{\"code\":503,\"message\":\"out of memory\","
                                   "\"type\":\"unavailable_error\",\"param\":null}}";
        cli_call_begin(call, 503, "application/json", false);
        cli_call_write(call, text, sizeof text - 1);
        cli_call_end(call);
        free(made);
        return;
    }
    s->clients = made;
}

/* What there is of the answer goes to the client. True: it is over, or the client is gone. */
static bool serve_client(client *c) {
    enum { MOST_WAITING = 64 * 1024 };
    size_t size;
    const bool is_over = wick_exchange_is_over(c->exchange);
    if (cli_call_is_gone(c->call)) return true;
    const char *const bytes = wick_exchange_take(c->exchange, &size);
    const int status = wick_exchange_status(c->exchange);
    if (!c->has_begun && status != 0) {
        cli_call_begin(c->call, status, wick_exchange_type(c->exchange), !is_over);
        c->has_begun = true;
    }
    wick_exchange_pause(c->exchange, cli_call_write(c->call, bytes, size) > MOST_WAITING);
    return is_over;
}

static void serve_clients(service *s) {
    for (client **at = &s->clients; *at != NULL;) {
        client *const c = *at;
        if (!serve_client(c)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        end_client(c);
    }
}

static void serve_all(service *s) {
    enum {
        IDLE_MS = 100, /* how soon a signal, and a client that is gone, are noticed */
        MOST_CALLS = 8 /* that are read before the texts go on */
    };
    unsigned wait = 0;
    while (!cli_interrupted()) {
        cli_call *call;
        for (int n = 0; n < MOST_CALLS && (call = cli_server_take(s->server, wait)) != NULL;
             n++, wait = 0)
            take_call(s, call);
        const bool is_idle = wick_api_step(s->api) != WICK_PENDING;
        serve_clients(s);
        wait = is_idle ? IDLE_MS : 0;
    }
    while (s->clients != NULL) {
        client *const c = s->clients;
        s->clients = c->next;
        wick_exchange_end(c->exchange, "the server is shutting down");
        (void)serve_client(c);
        end_client(c);
    }
}

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

static int listen_and_serve(const cli_engine *engine, const wick_api_desc *desc,
                            const cli_server_desc *at) {
    service s = {.server = NULL};
    wick_error error = {0};
    char why[320];
    if (wick_api_open(engine->model, desc, &s.api, &error) != WICK_OK)
        return cli_report(&error, NULL);
    s.server = cli_server_start(at, why, sizeof why);
    if (s.server == NULL) {
        wick_api_close(s.api);
        return cli_error("%s", why);
    }
    if (!cli_common.quiet) cli_say("Listening at %s", cli_server_address(s.server));
    serve_all(&s);
    cli_server_stop(s.server);
    wick_api_close(s.api);
    return CLI_OK;
}

static int run(void *given) {
    const serve_options *const o = given;
    cli_sampling sampling = {0};
    cli_input compiled = {0}, key_file = {0};
    cli_engine engine = {0};
    const char **keys = NULL;
    size_t n_keys = 0;
    int code = cli_sampling_read(&cli_serve, &o->sampling, &sampling);
    if (code == CLI_OK && o->compiled != NULL) code = cli_read_file(o->compiled, &compiled);
    if (code == CLI_OK) code = read_keys(o, &key_file, &keys, &n_keys);
    const wick_api_desc desc = {
        .name = o->alias,
        .session = {.context_length = o->context_length,
                    .chunk_length = o->engine.chunk_length,
                    .cache = (wick_cache)o->engine.cache,
                    .max_tokens = o->max_tokens,
                    .sampler = sampling.desc},
        .chat_template = compiled.text,
        .n_parallel = o->n_parallel,
        .max_queue = o->max_queue,
    };
    const cli_server_desc at = {.host = o->host,
                                .socket = o->socket,
                                .port = o->port,
                                .timeout = o->timeout,
                                .keys = keys,
                                .n_keys = n_keys,
                                .origins = o->origins};
    if (code == CLI_OK) code = cli_engine_open(&engine, &o->engine, &desc.session, o->model);
    if (code == CLI_OK) cli_print_placement(engine.model);
    if (code == CLI_OK) code = listen_and_serve(&engine, &desc, &at);
    cli_engine_close(&engine);
    free(keys);
    cli_input_free(&key_file);
    cli_input_free(&compiled);
    cli_sampling_free(&sampling);
    return code;
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "answer OpenAI's API by HTTP",
    .details =
        "  wick serve MODEL.gguf --port 8080\n"
        "  curl http://127.0.0.1:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'\n",
    .groups = groups,
    .options_size = sizeof(serve_options),
    .defaults = set_defaults,
    .run = run,
    .fetches = true,
};
