/* serve_clients.c: see serve_clients.h. */
#define _POSIX_C_SOURCE 200809L

#include "serve_clients.h"

#include "cli.h"
#include "interrupt.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    wick_request request = {.method = cli_call_method(call),
                            .path = cli_call_path(call),
                            .query = cli_call_query(call),
                            .time = (int64_t)time(NULL)};
    request.body = cli_call_body(call, &request.body_size);
    client *const made = calloc(1, sizeof *made);
    if (made != NULL) *made = (client){.call = call, .next = s->clients};
    if (made == NULL || wick_exchange_open(s->api, &request, &made->exchange, NULL) != WICK_OK) {
        char text[256];
        const size_t size = wick_api_error(request.path, 503, "out of memory", text, sizeof text);
        cli_call_begin(call, 503, "application/json", false);
        cli_call_write(call, text, size);
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

void cli_serve_clients(cli_server *server, wick_api *api) {
    service s = {.server = server, .api = api};
    serve_all(&s);
}

/* ---- Requests in a log ---- */

static void log_request(const cli_served *served, bool has_body) {
    char time_text[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    char *line = NULL;
    size_t size = 0;
    FILE *const buffer = open_memstream(&line, &size); /* the line is written at once */
    if (buffer == NULL) return;
    cli_json json = {.out = buffer, .is_line = true};
    if (gmtime_r(&now, &parts) != NULL)
        strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    cli_json_open(&json, '{');
    cli_json_put_string(&json, "time", time_text);
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
