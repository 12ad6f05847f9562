/* serve_clients.c: see serve_clients.h. */
#define _POSIX_C_SOURCE 200809L

#include "serve_clients.h"

#include "cli.h"
#include "interrupt.h"
#include "json_out.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Calls and their exchanges ---- */

typedef struct client client;
struct client {
    client *next;
    cli_call *call;
    cli_served_model *model;
    wick_exchange *exchange; /* NULL: the model is being loaded */
    bool has_begun;
    bool is_reading; /* asks about the model, which is not used by that */
};

typedef struct service {
    cli_server *server;
    cli_served_models *models;
    client *clients;
} service;

static void end_client(client *c) {
    wick_exchange_close(c->exchange);
    cli_call_end(c->call);
    c->model->n_clients--;
    if (!c->is_reading) c->model->used = time(NULL);
    free(c);
}

static void answer_now(cli_call *call, int status, const char *text, size_t size) {
    cli_call_begin(call, status, "application/json", false);
    cli_call_write(call, text, size);
}

static void refuse(cli_call *call, int status, const char *message) {
    char text[512];
    const size_t size = wick_api_error(cli_call_path(call), status, message, text, sizeof text);
    answer_now(call, status, text, size);
}

/* Seconds that local time is ahead of UTC. */
static int32_t utc_offset(time_t now) {
    struct tm local = {0}, utc = {0};
    localtime_r(&now, &local);
    gmtime_r(&now, &utc);
    const int years = local.tm_year - utc.tm_year;
    const int days = years != 0 ? years : local.tm_yday - utc.tm_yday;
    const int hours = days * 24 + local.tm_hour - utc.tm_hour;
    return (hours * 60 + local.tm_min - utc.tm_min) * 60 + local.tm_sec - utc.tm_sec;
}

/* False: memory is short. */
static bool open_exchange(client *c) {
    const time_t now = time(NULL);
    wick_request request = {.method = cli_call_method(c->call),
                            .path = cli_call_path(c->call),
                            .query = cli_call_query(c->call),
                            .time = (int64_t)now,
                            .utc_offset = utc_offset(now)};
    request.body = cli_call_body(c->call, &request.body_size);
    return wick_exchange_open(c->model->api, &request, &c->exchange, NULL) == WICK_OK;
}

static bool is_get_of(const cli_call *call, const char *path) {
    const char *const method = cli_call_method(call);
    return (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) &&
           strcmp(cli_call_path(call), path) == 0;
}

/* ---- Of several models ---- */

static void answer_success(cli_call *call) {
    static const char text[] = "{\"success\":true}";
    answer_now(call, 200, text, sizeof text - 1);
}

/* text is freed. */
static void answer_made(cli_call *call, char *text, size_t size, int status, const char *why) {
    if (text != NULL)
        answer_now(call, 200, text, size);
    else
        refuse(call, status, why);
    free(text);
}

static bool answer_list(const service *s, cli_call *call) {
    static const struct {
        const char *path;
        cli_model_list list;
    } lists[] = {{"/v1/models", CLI_LIST_OPENAI},
                 {"/models", CLI_LIST_OPENAI},
                 {"/api/tags", CLI_LIST_TAGS},
                 {"/api/ps", CLI_LIST_RUNNING}};
    size_t size = 0, i = 0;
    const size_t n = sizeof lists / sizeof *lists;
    while (i < n && !is_get_of(call, lists[i].path)) i++;
    if (i == n) return false;
    char *const text = cli_models_list(s->models, lists[i].list, &size);
    answer_made(call, text, size, 503, "out of memory");
    return true;
}

/* The one that the query names: "model=NAME". False: it names none. */
static bool find_in_query(const service *s, const cli_call *call, cli_served_model **found) {
    const char *const name = cli_call_argument(call, "model");
    *found = NULL;
    if (name == NULL) return false;
    *found = cli_models_pick(s->models, (wick_string){name, strlen(name)});
    return true;
}

/* Seconds, or a text such as "1h30m" (time.ParseDuration of Go). False: it is neither. */
static bool read_duration(const wick_json *duration, double *seconds) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"h", 3600}, {"m", 60}, {"s", 1}};
    if (wick_json_get_number(duration, seconds)) return true;
    const char *at = wick_json_text(duration, NULL);
    if (at == NULL || *at == '\0') return false;
    const double sign = *at == '-' ? -1 : 1;
    *seconds = 0;
    at += *at == '-' || *at == '+';
    if (strcmp(at, "0") == 0) return true;
    while (*at != '\0') {
        size_t unit = 0;
        char *end;
        if ((*at < '0' || *at > '9') && *at != '.') return false;
        const double number = strtod(at, &end);
        for (at = end; unit < sizeof units / sizeof *units; unit++)
            if (strncmp(at, units[unit].name, strlen(units[unit].name)) == 0) break;
        if (unit == sizeof units / sizeof *units) return false;
        *seconds += sign * number * units[unit].seconds;
        at += strlen(units[unit].name);
    }
    return true;
}

/* How long a model stays after this request: for ever where ollama's clients say less than 0. */
static unsigned read_keep(const service *s, const wick_json *root) {
    double seconds;
    if (!read_duration(wick_json_get(root, "keep_alive"), &seconds)) return s->models->idle_seconds;
    return seconds >= 0 && seconds < UINT_MAX ? (unsigned)ceil(seconds) : UINT_MAX;
}

/* A request of ollama's clients that says nothing and keeps the model for no time. */
static bool is_unload(const wick_json *root) {
    const char *const prompt = wick_json_text(wick_json_get(root, "prompt"), NULL);
    double seconds;
    return read_duration(wick_json_get(root, "keep_alive"), &seconds) && seconds == 0 &&
           (prompt == NULL || prompt[0] == '\0') &&
           wick_json_first(wick_json_get(root, "messages")) == NULL;
}

/* The one that the body names ("name": as clients of ollama used to). NULL: the call has its
 * answer, which says why. unloads: NULL where the model is not used. */
static cli_served_model *find_in_body(const service *s, cli_call *call, bool *unloads) {
    wick_json_document *body = NULL;
    wick_error error = {0};
    wick_string name = {0};
    size_t size;
    const char *why = NULL;
    const char *const text = cli_call_body(call, &size);
    const int status = wick_api_check_body(text, size, &why);
    if (why != NULL) {
        refuse(call, status, why);
        return NULL;
    }
    if (wick_json_parse(size > 0 ? text : "{}", size > 0 ? size : 2, &body, &error) != WICK_OK) {
        refuse(call, 400, error.message);
        return NULL;
    }
    const wick_json *const root = wick_json_root(body);
    name.text = wick_json_text(wick_json_get(root, "model"), &name.size);
    if (name.text == NULL) name.text = wick_json_text(wick_json_get(root, "name"), &name.size);
    cli_served_model *const found = name.text != NULL ? cli_models_pick(s->models, name) : NULL;
    if (name.text == NULL)
        refuse(call, 400, "which model? \"model\" names it");
    else if (found == NULL)
        refuse(call, 404, "there is no model of this name");
    else if (unloads != NULL || wick_json_get(root, "keep_alive") != NULL)
        found->idle_seconds = read_keep(s, root);
    if (unloads != NULL) *unloads = is_unload(root);
    wick_json_free(body);
    return found;
}

static bool is_post_of(const cli_call *call, const char *path) {
    return strcmp(cli_call_method(call), "POST") == 0 && strcmp(cli_call_path(call), path) == 0;
}

/* False: the call has its answer, which says why. */
static bool has_unloaded(const service *s, cli_call *call, cli_served_model *model) {
    const bool is_done = cli_models_unload(s->models, model);
    if (!is_done) refuse(call, 400, "the model is being loaded, or is answering");
    return is_done;
}

/* POST /models/load and unload, as llama-server's router has them. */
static bool answer_loading(const service *s, cli_call *call) {
    const bool loads = is_post_of(call, "/models/load");
    bool ignored;
    if (!loads && !is_post_of(call, "/models/unload")) return false;
    cli_served_model *const model = find_in_body(s, call, &ignored);
    if (model == NULL) return true;
    if (loads) {
        cli_models_want(s->models, model);
        model->used = time(NULL);
    }
    if (loads && model->api == NULL && model->loading == NULL) {
        const bool is_full = model->error.status == WICK_ERR_OUT_OF_MEMORY;
        refuse(call, is_full ? 503 : 500, model->error.message);
        return true;
    }
    if (loads || has_unloaded(s, call, model)) answer_success(call);
    return true;
}

/* The same of ollama's clients, such as `ollama stop`. */
static void answer_unload(const service *s, cli_call *call, cli_served_model *model, bool is_chat) {
    size_t size = 0;
    if (!has_unloaded(s, call, model)) return;
    char *const text = cli_models_unloaded(model, is_chat, &size);
    answer_made(call, text, size, 503, "out of memory");
}

/* What is said of a model without a request that it computes does not load it. */
static bool is_about_loaded(const cli_call *call) {
    return is_get_of(call, "/props") || is_get_of(call, "/slots") || is_get_of(call, "/metrics");
}

static const char models_path[] = "/v1/models/";

static bool is_about_one(const cli_call *call) {
    const char *const path = cli_call_path(call);
    return is_get_of(call, path) && strncmp(path, models_path, sizeof models_path - 1) == 0;
}

/* What is said of one: by itself once it is loaded, and it is not loaded for that. */
static bool answer_about(const service *s, cli_call *call, cli_served_model **model) {
    const bool is_ollamas = is_post_of(call, "/api/show");
    const bool is_openais = is_about_one(call);
    const char *const name = cli_call_path(call) + sizeof models_path - 1;
    size_t size = 0;
    if (!is_ollamas && !is_openais) return false;
    *model = is_ollamas ? find_in_body(s, call, NULL)
                        : cli_models_pick(s->models, (wick_string){name, strlen(name)});
    if (*model == NULL && is_openais) refuse(call, 404, "there is no model of this name");
    if (*model == NULL) return true;
    if ((*model)->api != NULL) return false;
    char *const text = cli_models_show(*model, is_ollamas, &size);
    answer_made(call, text, size, 500, "the model's file cannot be read");
    return true;
}

/* ---- Calls ---- */

/* True: it has its answer, which no model gives; else model is the one that gives it. */
static bool answer_by_itself(const service *s, cli_call *call, cli_served_model **model) {
    const char *why = NULL;
    *model = &s->models->items[0];
    if (s->models->is_one) return false;
    if (answer_list(s, call) || answer_loading(s, call)) return true;
    const int status = wick_api_find(cli_call_method(call), cli_call_path(call), &why);
    if (status != 200) {
        refuse(call, status, why);
        return true;
    }
    if (is_get_of(call, "/api/version")) {
        char version[64];
        snprintf(version, sizeof version,
                 "{\"version\":\"" WICK_OLLAMA_VERSION "\",\"wick\":\"%s\"}", wick_version());
        answer_now(call, 200, version, strlen(version));
        return true;
    }
    *model = NULL;
    if (answer_about(s, call, model)) return true;
    if (*model != NULL) return false;
    if (!is_about_loaded(call)) {
        const bool is_chat = is_post_of(call, "/api/chat");
        bool unloads = false;
        if (!find_in_query(s, call, model))
            *model = find_in_body(s, call, &unloads);
        else if (*model == NULL)
            refuse(call, 404, "there is no model of this name");
        unloads = unloads && *model != NULL && (is_chat || is_post_of(call, "/api/generate"));
        if (unloads) answer_unload(s, call, *model, is_chat);
        return unloads || *model == NULL;
    }
    (void)find_in_query(s, call, model);
    if (*model != NULL && (*model)->api != NULL) return false;
    refuse(call, *model != NULL ? 400 : 404,
           *model != NULL ? "this model is not loaded" : "which model? PATH?model=NAME");
    return true;
}

static void take_call(service *s, cli_call *call) {
    cli_served_model *model;
    if (answer_by_itself(s, call, &model)) {
        cli_call_end(call);
        return;
    }
    client *const made = calloc(1, sizeof *made);
    if (made == NULL) {
        refuse(call, 503, "out of memory");
        cli_call_end(call);
        return;
    }
    *made = (client){.call = call,
                     .model = model,
                     .is_reading = is_about_loaded(call) || is_about_one(call) ||
                                   is_post_of(call, "/api/show")};
    model->n_clients++;
    client **end = &s->clients; /* in the order in which they came */
    while (*end != NULL) end = &(*end)->next;
    *end = made;
    cli_models_want(s->models, model);
}

/* What comes before there is an exchange. True: the call has had its answer. */
static bool open_client(client *c) {
    const cli_served_model *const model = c->model;
    if (model->loading != NULL) return false;
    if (model->api != NULL && open_exchange(c)) return false;
    if (model->api != NULL)
        refuse(c->call, 503, "out of memory");
    else
        refuse(c->call, model->error.status == WICK_ERR_OUT_OF_MEMORY ? 503 : 500,
               model->error.message);
    return true;
}

/* What there is of the answer goes to the client. True: it is over, or the client is gone. */
static bool serve_client(client *c) {
    enum { MOST_WAITING = 64 * 1024 };
    size_t size;
    if (cli_call_is_gone(c->call)) return true;
    if (c->exchange == NULL && open_client(c)) return true;
    if (c->exchange == NULL) return false;
    const bool is_over = wick_exchange_is_over(c->exchange);
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
        serve_clients(s); /* so that the step has what has just come */
        const bool is_idle = !cli_models_step(s->models);
        serve_clients(s);
        wait = is_idle ? IDLE_MS : 0;
    }
    while (s->clients != NULL) {
        client *const c = s->clients;
        s->clients = c->next;
        if (c->exchange != NULL) {
            wick_exchange_end(c->exchange, "the server is shutting down");
            (void)serve_client(c);
        } else {
            refuse(c->call, 503, "the server is shutting down");
        }
        end_client(c);
    }
}

void cli_serve_clients(cli_server *server, cli_served_models *models) {
    service s = {.server = server, .models = models};
    serve_all(&s);
}

/* ---- Requests in a log ---- */

static void log_request(const cli_served *served, bool has_body) {
    char *line = NULL;
    size_t size = 0;
    FILE *const buffer = open_memstream(&line, &size); /* the line is written at once */
    if (buffer == NULL) return;
    cli_json json = {.out = buffer, .is_line = true};
    cli_json_open(&json, '{');
    cli_json_put_time(&json, "time", time(NULL));
    cli_json_put_string(&json, "client", served->client);
    cli_json_put_string(&json, "method", served->method);
    cli_json_put_string(&json, "path", served->path);
    cli_json_put_unsigned(&json, "status", (uint64_t)served->status);
    cli_json_put_unsigned(&json, "bytes_read", served->n_read);
    cli_json_put_unsigned(&json, "bytes_written", served->n_written);
    cli_json_key(&json, "seconds");
    cli_json_number(&json, served->seconds, 6);
    if (has_body && served->n_read > 0) {
        cli_json_key(&json, "body");
        cli_json_bytes(&json, served->body, served->n_read);
    }
    cli_json_close(&json, '}');
    fclose(buffer);
    if (line != NULL) fputs(line, stderr);
    free(line);
}

void cli_log_request(const cli_served *served) { log_request(served, false); }

void cli_log_request_whole(const cli_served *served) { log_request(served, true); }
