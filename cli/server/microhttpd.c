/* server/microhttpd.c: the HTTP server over libmicrohttpd. See server.h. */
#define _GNU_SOURCE /* POLLRDHUP */

#include "server.h"
#include "server/access.h"
#include "server/listen.h"
#include "server/mhd.h"
#include "server/page.h"
#include "server/peers.h"
#include "server/request.h"
#include "server/response.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_CONNECTIONS = 2000,
    BLOCK = 16 * 1024, /* of an answer that is handed to a client at once */
};

/* ---- Servers ---- */

enum { MOST_ADDRESSES = 8 };

struct cli_server {
    struct MHD_Daemon *daemons[MOST_ADDRESSES]; /* one for each address, with a thread of its own */
    cli_listener listeners[MOST_ADDRESSES];
    size_t n_listeners, n_daemons;
    char addresses[512];
    cli_access access;
    cli_peers peers;
    void (*log)(const cli_served *served);
    char started[24];     /* seconds since 1970, as llama-server's /metrics says in a header */
    uint32_t timeout;     /* seconds */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_come, has_gone;
    bool is_stopping;       /* nothing is queued any more */
    cli_call *first, *last; /* the queue */
    unsigned n_calls;       /* that a client waits for, or is being sent */
};

typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

struct cli_call {
    cli_server *server;
    cli_call *next; /* in the queue */
    struct MHD_Connection *connection;
    int socket;
    char *method, *path, *query; /* query NULL: none */
    char *host;                  /* that the target names: NULL: the header does */
    uint64_t since_ns;
    bytes body;
    int refused; /* a status: the request is answered without the caller; 0: it is not */
    bool is_queued;

    pthread_mutex_t lock; /* of all below */
    int n_users;          /* the connection, and the caller once it is queued */
    bool is_suspended, has_begun, is_stream, is_ended, is_gone;
    int status;
    const char *type;
    bytes answer;
    size_t n_sent, n_written;
};

/* ---- Bytes ---- */

static bool append(bytes *to, const char *data, size_t size) {
    if (size > to->capacity - to->size) {
        size_t capacity = to->capacity > 0 ? to->capacity : 1024;
        while (capacity - to->size < size) capacity *= 2;
        char *const grown = realloc(to->data, capacity);
        if (grown == NULL) return false;
        to->data = grown;
        to->capacity = capacity;
    }
    if (size > 0) memcpy(to->data + to->size, data, size);
    to->size += size;
    return true;
}

/* ---- A call ---- */

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A target in absolute form ("http://host/path", RFC 9112, 3.2.2) names the host, and the header
 * counts no more. */
static void set_target(cli_call *call, const char *target) {
    const char *at = target;
    if (strncasecmp(at, "http://", 7) == 0 || strncasecmp(at, "https://", 8) == 0) {
        at = strchr(at, ':') + 3;
        const size_t size = strcspn(at, "/");
        call->host = strndup(at, size);
        if (call->host == NULL) return; /* without a path, which is an answer */
        at += size;
    }
    call->path = strdup(at[0] != '\0' ? at : "/");
}

/* Escapes of a target. Those of zero bytes, which would end it, stay as they are. */
static size_t unescape(void *given, struct MHD_Connection *connection, char *text) {
    char *to = text;
    (void)given;
    (void)connection;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned byte = 0;
        if (at[0] == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]))
            (void)sscanf(at + 1, "%2x", &byte);
        *to++ = byte > 0 ? (char)byte : *at;
        at += byte > 0 ? 2 : 0;
    }
    *to = '\0';
    return (size_t)(to - text);
}

static cli_call *make_call(cli_server *server, struct MHD_Connection *connection,
                           const char *method, const char *path) {
    cli_call *const call = calloc(1, sizeof *call);
    if (call == NULL) return NULL;
    call->server = server;
    call->connection = connection;
    call->method = strdup(method);
    set_target(call, path);
    call->n_users = 1;
    pthread_mutex_init(&call->lock, NULL);
    call->socket = cli_socket_of(connection);
    call->since_ns = nanoseconds();
    call->query = cli_request_query(connection);
    return call;
}

/* One user less; the last one frees it. Its lock is held. */
static void leave(cli_call *call) {
    const bool is_last = --call->n_users == 0;
    pthread_mutex_unlock(&call->lock);
    if (!is_last) return;
    pthread_mutex_destroy(&call->lock);
    free(call->method);
    free(call->path);
    free(call->query);
    free(call->host);
    free(call->body.data);
    free(call->answer.data);
    free(call);
}

/* Its lock is held. */
static void wake(cli_call *call) {
    if (!call->is_suspended) return;
    call->is_suspended = false;
    mhd.resume_connection(call->connection);
}

/* False: the server is about to stop. */
static bool queue_call(cli_call *call) {
    cli_server *const server = call->server;
    pthread_mutex_lock(&server->lock);
    const bool is_taken = !server->is_stopping;
    if (is_taken) {
        call->is_queued = true;
        call->n_users++;
        call->is_suspended = true;
        mhd.suspend_connection(call->connection);
        *(server->last != NULL ? &server->last->next : &server->first) = call;
        server->last = call;
        server->n_calls++;
        pthread_cond_signal(&server->has_come);
    }
    pthread_mutex_unlock(&server->lock);
    return is_taken;
}

static struct timespec after(unsigned milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

cli_call *cli_server_take(cli_server *server, unsigned milliseconds) {
    const struct timespec until = after(milliseconds);
    pthread_mutex_lock(&server->lock);
    while (server->first == NULL && milliseconds > 0 &&
           pthread_cond_timedwait(&server->has_come, &server->lock, &until) == 0)
        continue;
    cli_call *const call = server->first;
    if (call != NULL) {
        server->first = call->next;
        if (server->first == NULL) server->last = NULL;
        call->next = NULL;
    }
    pthread_mutex_unlock(&server->lock);
    cli_peers_sweep(&server->peers, server->timeout);
    return call;
}

const char *cli_call_method(const cli_call *call) { return call->method; }

const char *cli_call_path(const cli_call *call) { return call->path; }

const char *cli_call_query(const cli_call *call) { return call->query; }

const char *cli_call_argument(const cli_call *call, const char *key) {
    return mhd.lookup_connection_value(call->connection, MHD_GET_ARGUMENT_KIND, key);
}

const char *cli_call_body(const cli_call *call, size_t *size) {
    *size = call->body.size;
    return call->body.data;
}

void cli_call_begin(cli_call *call, int status, const char *type, bool is_stream) {
    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->type = type;
    call->is_stream = is_stream;
    call->has_begun = true;
    if (is_stream) wake(call);
    pthread_mutex_unlock(&call->lock);
}

size_t cli_call_write(cli_call *call, const char *data, size_t size) {
    pthread_mutex_lock(&call->lock);
    bytes *const answer = &call->answer;
    answer->size -= call->n_sent;
    if (call->n_sent > 0) memmove(answer->data, answer->data + call->n_sent, answer->size);
    call->n_sent = 0;
    if (!call->is_gone && !append(answer, data, size)) call->is_gone = true;
    const size_t n_waiting = answer->size - call->n_sent;
    if (call->is_stream && n_waiting > 0) wake(call);
    pthread_mutex_unlock(&call->lock);
    return n_waiting;
}

/* libmicrohttpd does not look at connections that are suspended. */
bool cli_call_is_gone(cli_call *call) {
    struct pollfd at = {.fd = call->socket, .events = POLLRDHUP};
    pthread_mutex_lock(&call->lock);
    if (!call->is_gone && call->is_suspended && poll(&at, 1, 0) > 0 &&
        (at.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
        call->is_gone = true;
    const bool is_gone = call->is_gone;
    pthread_mutex_unlock(&call->lock);
    return is_gone;
}

void cli_call_end(cli_call *call) {
    pthread_mutex_lock(&call->lock);
    call->is_ended = true;
    wake(call);
    leave(call);
}

/* ---- Answers ---- */

/* Bytes for the client: [max] of them at most. */
static ssize_t read_answer(void *given, uint64_t position, char *to, size_t max) {
    cli_call *const call = given;
    (void)position;
    pthread_mutex_lock(&call->lock);
    const size_t left = call->answer.size - call->n_sent, n = left < max ? left : max;
    ssize_t result = (ssize_t)n;
    if (n > 0) {
        memcpy(to, call->answer.data + call->n_sent, n);
        call->n_sent += n;
        call->n_written += n;
    } else if (call->is_ended) {
        result =
            call->is_gone ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        call->is_suspended = true;
        mhd.suspend_connection(call->connection);
    }
    pthread_mutex_unlock(&call->lock);
    return result;
}

static enum MHD_Result send_response(cli_call *call, int status, const char *type,
                                     struct MHD_Response *response) {
    if (response == NULL) return MHD_NO;
    call->status = status;
    if (type != NULL) mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    cli_response_headers(response, call->connection, &call->server->access, call->path, status);
    if (call->path != NULL && strcmp(call->path, "/metrics") == 0)
        mhd.add_response_header(response, "Process-Start-Time-Unix", call->server->started);
    const enum MHD_Result result = mhd.queue_response(call->connection, (unsigned)status, response);
    mhd.destroy_response(response);
    return result;
}

static enum MHD_Result answer_now(cli_call *call, int status, const char *text) {
    return send_response(
        call, status, text[0] != '\0' ? "application/json" : NULL,
        mhd.create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result answer_page(cli_call *call, const cli_page_file *file) {
    void *const data = (void *)(uintptr_t)file->data;
    return send_response(call, MHD_HTTP_OK, cli_page_type(file),
                         mhd.create_response_from_buffer(file->size, data, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer_error(cli_call *call, int status) {
    char text[CLI_ERROR_TEXT];
    cli_request_error(call->path, status, text);
    return answer_now(call, status, text);
}

/* A call that has no taker. */
static void refuse_call(cli_call *call) {
    char text[CLI_ERROR_TEXT];
    cli_request_error(call->path, MHD_HTTP_SERVICE_UNAVAILABLE, text);
    cli_call_begin(call, MHD_HTTP_SERVICE_UNAVAILABLE, "application/json", false);
    cli_call_write(call, text, strlen(text));
    cli_call_end(call);
}

static enum MHD_Result answer_call(cli_call *call) {
    struct MHD_Response *const response =
        call->is_stream
            ? mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_answer, call, NULL)
            : mhd.create_response_from_buffer(call->answer.size, call->answer.data,
                                              MHD_RESPMEM_MUST_COPY);
    if (response != NULL && call->is_stream)
        mhd.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    return send_response(call, call->status, call->type, response);
}

/* ---- Requests ---- */

/* The status that refuses the call before its body is read; 0: none. */
static int refuse(const cli_call *call) {
    if (call->method == NULL || call->path == NULL) return MHD_HTTP_SERVICE_UNAVAILABLE;
    return cli_request_refuses(call->connection, &call->server->access, call->method, call->path,
                               call->host);
}

static enum MHD_Result take_body(cli_call *call, const char *data, size_t *size) {
    if (call->refused == 0 && *size > CLI_MOST_BODY - call->body.size)
        call->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    if (call->refused == 0 && !append(&call->body, data, *size))
        call->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result take_request(void *given, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *data, size_t *size, void **state) {
    cli_call *call = *state;
    (void)version;
    if (call == NULL) {
        call = make_call(given, connection, method, path);
        if (call == NULL) return MHD_NO;
        *state = call;
        call->refused = refuse(call);
        /* Without reading a body that may never end. */
        return call->refused != 0 ? answer_error(call, call->refused) : MHD_YES;
    }
    if (*size > 0) return take_body(call, data, size);
    if (!call->is_queued) cli_peers_set_whole(&((cli_server *)given)->peers, connection, true);
    if (call->refused != 0) return answer_error(call, call->refused);
    if (strcmp(method, "OPTIONS") == 0) return answer_now(call, MHD_HTTP_OK, "");
    if (cli_request_is_health(method, call->path))
        return answer_now(call, MHD_HTTP_OK, "{\"status\":\"ok\"}");
    const cli_page_file *const file = cli_page_find(method, call->path);
    if (file != NULL) return answer_page(call, file);
    if (call->is_queued) return answer_call(call);
    return queue_call(call) ? MHD_YES : answer_error(call, MHD_HTTP_SERVICE_UNAVAILABLE);
}

static void log_call(const cli_call *call) {
    const union MHD_ConnectionInfo *const info =
        mhd.get_connection_info(call->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *const address = info != NULL ? info->client_addr : NULL;
    char client[INET6_ADDRSTRLEN] = "unix";
    if (call->server->log == NULL) return;
    if (address != NULL && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, client,
                  sizeof client);
    if (address != NULL && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                  client, sizeof client);
    const cli_served served = {.client = client,
                               .method = call->method != NULL ? call->method : "",
                               .path = call->path != NULL ? call->path : "",
                               .status = call->status,
                               .n_read = call->body.size,
                               .n_written = call->is_stream ? call->n_written : call->answer.size,
                               .seconds = (double)(nanoseconds() - call->since_ns) * 1e-9,
                               .body = call->body.data};
    call->server->log(&served);
}

static void end_request(void *given, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code) {
    cli_call *const call = *state;
    if (call == NULL) return;
    *state = NULL;
    cli_peers_set_whole(&((cli_server *)given)->peers, connection, false);
    log_call(call);
    if (call->is_queued) {
        pthread_mutex_lock(&call->server->lock);
        call->server->n_calls--;
        pthread_cond_signal(&call->server->has_gone);
        pthread_mutex_unlock(&call->server->lock);
    }
    pthread_mutex_lock(&call->lock);
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) call->is_gone = true;
    leave(call);
}

/* ---- Starting and stopping ---- */

const char *cli_server_address(const cli_server *server) { return server->addresses; }

static void free_server(cli_server *server) {
    for (size_t i = 0; i < server->n_listeners; i++) {
        if (server->listeners[i].socket >= 0) close(server->listeners[i].socket);
        cli_listener_remove(&server->listeners[i]);
    }
    pthread_mutex_destroy(&server->peers.lock);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->has_come);
    pthread_cond_destroy(&server->has_gone);
    free(server);
}

/* Every connection is a file. */
static void allow_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t wanted = MOST_CONNECTIONS + 100;
    if (limit.rlim_cur >= wanted) return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static struct MHD_Daemon *start_daemon(cli_server *server, const cli_server_desc *desc,
                                       int listener) {
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)desc->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)desc->private_key},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    const bool has_tls = desc->certificate != NULL;
    return mhd.start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
            (has_tls ? MHD_USE_TLS : 0u),
        0, NULL, NULL, take_request, server, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape,
        NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, cli_peers_watch,
        &server->peers, MHD_OPTION_CONNECTION_TIMEOUT, desc->timeout, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MOST_CONNECTIONS, MHD_OPTION_ARRAY, has_tls ? tls : none, MHD_OPTION_END);
}

static cli_server *make_server(const cli_server_desc *desc) {
    cli_server *const server = calloc(1, sizeof *server);
    if (server == NULL) return NULL;
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->peers.lock, NULL);
    pthread_cond_init(&server->has_come, NULL);
    pthread_cond_init(&server->has_gone, NULL);
    server->access = desc->access;
    if (server->access.origins == NULL) server->access.origins = "*";
    server->timeout = desc->timeout;
    server->log = desc->log;
    snprintf(server->started, sizeof server->started, "%lld", (long long)time(NULL));
    return server;
}

/* At one of several addresses: the [size] bytes of host. Why it cannot, or NULL. */
static const char *listen_at_host(cli_server *server, const char *host, size_t size,
                                  uint32_t port) {
    char name[256];
    if (size >= sizeof name) return "the name is too long";
    if (server->n_listeners == MOST_ADDRESSES) return "these are too many addresses";
    memcpy(name, host, size);
    name[size] = '\0';
    cli_listener *const listener = &server->listeners[server->n_listeners++];
    /* The free port that the first one found is that of the others. */
    return cli_listen_at_host(listener, name, port > 0 ? port : server->listeners[0].port);
}

/* Why it cannot, or NULL. */
static const char *listen_everywhere(cli_server *server, const cli_server_desc *desc) {
    if (desc->socket != NULL) {
        server->n_listeners = 1;
        return cli_listen_at_path(&server->listeners[0], desc->socket);
    }
    for (const char *at = desc->host; *at != '\0';) {
        const size_t size = strcspn(at, ",");
        const char *const why = listen_at_host(server, at, size, desc->port);
        if (why != NULL) return why;
        at += size + (at[size] == ',');
    }
    return server->n_listeners > 0 ? NULL : "no address is given";
}

static bool start_daemons(cli_server *server, const cli_server_desc *desc) {
    for (size_t i = 0; i < server->n_listeners; i++) {
        cli_listener *const listener = &server->listeners[i];
        const size_t used = strlen(server->addresses);
        struct MHD_Daemon *const daemon = start_daemon(server, desc, listener->socket);
        if (daemon == NULL) return false;
        listener->socket = -1; /* the daemon's */
        server->daemons[server->n_daemons++] = daemon;
        const char *const rest = strstr(listener->address, "://"); /* NULL: a UNIX socket */
        const bool is_secure = rest != NULL && desc->certificate != NULL;
        snprintf(server->addresses + used, sizeof server->addresses - used, "%s%s%s",
                 used > 0 ? ", " : "", is_secure ? "https" : "",
                 is_secure ? rest : listener->address);
    }
    return true;
}

cli_server *cli_server_start(const cli_server_desc *desc, char *error, size_t size) {
    const bool has_tls = desc->certificate != NULL;
    if (!cli_mhd_load()) {
        snprintf(error, size, "'wick serve' needs libmicrohttpd, which is not installed");
        return NULL;
    }
    if (has_tls && mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        snprintf(error, size, "this libmicrohttpd was built without TLS");
        return NULL;
    }
    cli_server *const server = make_server(desc);
    if (server == NULL) {
        snprintf(error, size, "out of memory");
        return NULL;
    }
    allow_files();
    const char *const why = listen_everywhere(server, desc);
    if (why != NULL) {
        const bool has_port = desc->socket == NULL && desc->port > 0;
        snprintf(error, size,
                 has_port ? "cannot listen at %.100s, port %u: %s"
                          : "cannot listen at %.100s%.0u: %s",
                 desc->socket != NULL ? desc->socket : desc->host, has_port ? desc->port : 0, why);
    } else if (!start_daemons(server, desc)) {
        snprintf(error, size, "the HTTP server does not start%s",
                 has_tls ? ": check that the certificate is in PEM and "
                           "that the key belongs to it"
                         : "");
    } else {
        return server;
    }
    cli_server_stop(server);
    return NULL;
}

void cli_server_stop(cli_server *server) {
    enum { MOST_MS = 5000 };
    if (server == NULL) return;
    for (size_t i = 0; i < server->n_daemons; i++)
        server->listeners[i].socket = mhd.quiesce_daemon(server->daemons[i]);
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    pthread_mutex_unlock(&server->lock);
    /* libmicrohttpd does not end while a connection is suspended. */
    for (cli_call *call; (call = cli_server_take(server, 0)) != NULL;) refuse_call(call);
    const struct timespec until = after(MOST_MS);
    pthread_mutex_lock(&server->lock);
    while (server->n_calls > 0 &&
           pthread_cond_timedwait(&server->has_gone, &server->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < server->n_daemons; i++) mhd.stop_daemon(server->daemons[i]);
    free_server(server);
}
